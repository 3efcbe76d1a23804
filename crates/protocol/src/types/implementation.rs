//! Name and version of a client or a server.

record! {
    /// How a client or a server describes itself. None of it is verified.
    ///
    /// ```
    /// use belay_protocol::types::Implementation;
    /// let me = Implementation::new("orders", "1.0.0");
    /// assert_eq!(serde_json::to_string(&me).unwrap(), r#"{"name":"orders","version":"1.0.0"}"#);
    /// ```
    pub struct Implementation {
        required {
            /// The programmatic name.
            name: String = "name",
            /// The version.
            version: String = "version",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// A URL with more information.
            website_url: String = "websiteUrl",
            /// Icons for display.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// An icon. A client that displays it must check the scheme of `src` first.
    pub struct Icon {
        required {
            /// An `https:` or `data:` URI.
            src: String = "src",
        }
        optional {
            /// The MIME type, for when the one that the server of the icon sends is missing or too
            /// general.
            mime_type: String = "mimeType",
            /// Its sizes, such as `48x48`, or `any`.
            sizes: Vec<String> = "sizes",
            /// The theme that it is drawn for: `light` or `dark`.
            theme: String = "theme",
        }
    }
}
