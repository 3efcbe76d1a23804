//! The messages that are sent to servers.

use std::str::FromStr;

/// The form of a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Era {
    /// Requests belong to a session.
    Legacy,
    /// Each request carries its own metadata.
    Modern,
}

impl Era {
    /// The name in arguments and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

impl FromStr for Era {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let all = [Self::Legacy, Self::Modern];
        all.into_iter().find(|era| era.name() == name).ok_or(())
    }
}

/// The text that is echoed: 64 bytes.
pub const TEXT: &str = "sixty-four bytes of text, which is what a short answer comes to..";

/// The first message of a legacy session.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"cost","version":"1"}}}"#;
/// The second message of a legacy session.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A call of `echo`, or of `count`, which sends progress before it answers.
pub fn call(id: usize, era: Era, tool: &str) -> String {
    let meta = match era {
        Era::Legacy => format!(r#""progressToken":{id}"#),
        Era::Modern => format!(
            r#""progressToken":{id},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{{"name":"cost","version":"1"}},"io.modelcontextprotocol/clientCapabilities":{{}}"#
        ),
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"_meta":{{{meta}}},"name":"{tool}","arguments":{{"text":"{TEXT}"}}}}}}"#
    )
}
