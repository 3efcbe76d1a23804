//! The handshake.

use crate::types::{ClientCapabilities, Implementation, Notification, Request, ServerCapabilities};

record! {
    /// How a client introduces itself.
    pub struct InitializeParams {
        required {
            /// The newest revision it speaks.
            protocol_version: String = "protocolVersion",
            /// What it can do.
            capabilities: ClientCapabilities = "capabilities",
            /// Who it is.
            client_info: Implementation = "clientInfo",
        }
    }
}

record! {
    /// How a server introduces itself.
    pub struct InitializeResult {
        required {
            /// The revision that both will speak.
            protocol_version: String = "protocolVersion",
            /// What it can do.
            capabilities: ServerCapabilities = "capabilities",
            /// Who it is.
            server_info: Implementation = "serverInfo",
        }
        optional {
            /// How to make good use of it, for the model.
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
    /// The client has read the server's introduction and is ready.
    pub struct InitializedParams {
    }
}

impl Notification for InitializedParams {
    const METHOD: &'static str = "notifications/initialized";
}
