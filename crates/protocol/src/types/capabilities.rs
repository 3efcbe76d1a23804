//! Capabilities of clients and servers.

use super::Extra;

record! {
    /// The capabilities of a client. The set is open: unknown ones are in `extra`.
    ///
    /// ```
    /// use belay_protocol::types::{ClientCapabilities, ElicitationCapability};
    /// let mut capabilities = ClientCapabilities::new();
    /// capabilities.elicitation = Some(ElicitationCapability::new());
    /// assert_eq!(serde_json::to_string(&capabilities).unwrap(), r#"{"elicitation":{}}"#);
    /// ```
    pub struct ClientCapabilities {
        optional {
            /// Non-standard capabilities.
            experimental: Extra = "experimental",
            /// The client lists the folders that it offers to the server.
            roots: ListCapability = "roots",
            /// The client calls a language model on the server's behalf.
            sampling: SamplingCapability = "sampling",
            /// The client asks its user on the server's behalf.
            elicitation: ElicitationCapability = "elicitation",
            /// Protocol extensions, by identifier.
            extensions: Extra = "extensions",
        }
    }
}

record! {
    /// The capabilities of a server. The set is open: unknown ones are in `extra`.
    pub struct ServerCapabilities {
        optional {
            /// Non-standard capabilities.
            experimental: Extra = "experimental",
            /// The server sends log messages.
            logging: Extra = "logging",
            /// The server completes arguments.
            completions: Extra = "completions",
            /// The server offers prompts.
            prompts: ListCapability = "prompts",
            /// The server offers resources.
            resources: ResourcesCapability = "resources",
            /// The server offers tools.
            tools: ListCapability = "tools",
            /// Protocol extensions, by identifier.
            extensions: Extra = "extensions",
        }
    }
}

record! {
    /// The capability to list something: roots, prompts or tools.
    pub struct ListCapability {
        optional {
            /// Whether a notification is sent when the list changes.
            list_changed: bool = "listChanged",
        }
    }
}

record! {
    /// The capability to offer resources.
    pub struct ResourcesCapability {
        optional {
            /// Whether clients can subscribe to a resource.
            subscribe: bool = "subscribe",
            /// Whether a notification is sent when the list changes.
            list_changed: bool = "listChanged",
        }
    }
}

record! {
    /// The capability to call a language model.
    pub struct SamplingCapability {
        optional {
            /// Whether `includeContext` is supported.
            context: Extra = "context",
            /// Whether the model can be given tools.
            tools: Extra = "tools",
        }
    }
}

record! {
    /// The capability to ask the user. If neither mode is named, it means forms.
    pub struct ElicitationCapability {
        optional {
            /// With a form.
            form: Extra = "form",
            /// With a page to visit.
            url: Extra = "url",
        }
    }
}

impl Default for ClientCapabilities {
    fn default() -> Self {
        Self::new()
    }
}

impl Default for ServerCapabilities {
    fn default() -> Self {
        Self::new()
    }
}
