//! Who is speaking.

record! {
    /// A client or a server, as it describes itself. Nothing of it is verified.
    ///
    /// ```
    /// use belay_protocol::types::Implementation;
    /// let me = Implementation::new("orders", "1.0.0");
    /// assert_eq!(serde_json::to_string(&me).unwrap(), r#"{"name":"orders","version":"1.0.0"}"#);
    /// ```
    pub struct Implementation {
        required {
            /// Its name, for programs.
            name: String = "name",
            /// Its version.
            version: String = "version",
        }
        optional {
            /// Its name, for people.
            title: String = "title",
            /// What it does.
            description: String = "description",
            /// Where to read more.
            website_url: String = "websiteUrl",
            /// What it looks like.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// A picture of something. Whoever shows it checks the scheme of `src` first.
    pub struct Icon {
        required {
            /// An `https:` or `data:` URI.
            src: String = "src",
        }
        optional {
            /// Its type, where the server's own answer is missing or too general.
            mime_type: String = "mimeType",
            /// Its sizes, such as `48x48`, or `any`.
            sizes: Vec<String> = "sizes",
            /// The background it is drawn for: `light` or `dark`.
            theme: String = "theme",
        }
    }
}
