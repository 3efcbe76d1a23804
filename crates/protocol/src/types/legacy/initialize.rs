//! The `initialize` handshake.

use crate::types::{ClientCapabilities, Implementation, Notification, Request, ServerCapabilities};

record! {
    /// The parameters of `initialize`: how a client introduces itself.
    pub struct InitializeParams {
        required {
            /// The newest revision that the client supports.
            protocol_version: String = "protocolVersion",
            /// The capabilities of the client.
            capabilities: ClientCapabilities = "capabilities",
            /// The name and version of the client.
            client_info: Implementation = "clientInfo",
        }
    }
}

record! {
    /// The result of `initialize`: how a server introduces itself.
    pub struct InitializeResult {
        required {
            /// The negotiated revision.
            protocol_version: String = "protocolVersion",
            /// The capabilities of the server.
            capabilities: ServerCapabilities = "capabilities",
            /// The name and version of the server.
            server_info: Implementation = "serverInfo",
        }
        optional {
            /// Instructions for the model on how to use the server.
            instructions: String = "instructions",
        }
    }
}

/// `initialize`. It is never cancelled.
#[derive(Clone, Copy, Debug)]
pub enum Initialize {}

impl Request for Initialize {
    const METHOD: &'static str = "initialize";
    type Params = InitializeParams;
    type Result = InitializeResult;
}

record! {
    /// The client has received the server's introduction and is ready.
    pub struct InitializedParams {
    }
}

impl Notification for InitializedParams {
    const METHOD: &'static str = "notifications/initialized";
}
