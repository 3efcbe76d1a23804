//! What a client and a server can do beyond the base protocol.

use super::Extra;

record! {
    /// What a client can do. The set is open: unknown ones are in `extra`.
    ///
    /// ```
    /// use belay_protocol::types::{ClientCapabilities, ElicitationCapability};
    /// let mut capabilities = ClientCapabilities::new();
    /// capabilities.elicitation = Some(ElicitationCapability::new());
    /// assert_eq!(serde_json::to_string(&capabilities).unwrap(), r#"{"elicitation":{}}"#);
    /// ```
    pub struct ClientCapabilities {
        optional {
            /// Non-standard ones.
            experimental: Extra = "experimental",
            /// It lists the folders the server may look at.
            roots: ListCapability = "roots",
            /// It asks a language model on the server's behalf.
            sampling: SamplingCapability = "sampling",
            /// It asks its user on the server's behalf.
            elicitation: ElicitationCapability = "elicitation",
            /// Extensions of the protocol, by identifier.
            extensions: Extra = "extensions",
        }
    }
}

record! {
    /// What a server can do. The set is open: unknown ones are in `extra`.
    pub struct ServerCapabilities {
        optional {
            /// Non-standard ones.
            experimental: Extra = "experimental",
            /// It sends log messages.
            logging: Extra = "logging",
            /// It completes arguments.
            completions: Extra = "completions",
            /// It offers prompts.
            prompts: ListCapability = "prompts",
            /// It offers resources.
            resources: ResourcesCapability = "resources",
            /// It offers tools.
            tools: ListCapability = "tools",
            /// Extensions of the protocol, by identifier.
            extensions: Extra = "extensions",
        }
    }
}

record! {
    /// Something that is listed.
    pub struct ListCapability {
        optional {
            /// Whether it tells when the list changes.
            list_changed: bool = "listChanged",
        }
    }
}

record! {
    /// Resources.
    pub struct ResourcesCapability {
        optional {
            /// Whether a client can subscribe to one.
            subscribe: bool = "subscribe",
            /// Whether it tells when the list changes.
            list_changed: bool = "listChanged",
        }
    }
}

record! {
    /// InputFuture a language model.
    pub struct SamplingCapability {
        optional {
            /// Whether `includeContext` is understood.
            context: Extra = "context",
            /// Whether the model may be given tools.
            tools: Extra = "tools",
        }
    }
}

record! {
    /// InputFuture the user. Neither mode named means a form.
    pub struct ElicitationCapability {
        optional {
            /// By a form.
            form: Extra = "form",
            /// By sending the user to a URL.
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
