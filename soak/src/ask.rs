//! The requests that raw workers send to the demo server, and the valid answers.

use serde_json::{Value, json};

use crate::random::Random;

/// One request to the demo server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ask {
    /// Returns a text of about this many bytes.
    Echo(usize),
    Count {
        to: u64,
        delay_ms: u64,
    },
    /// Runs until it is stopped.
    Hang,
    /// Runs until it is stopped, and then for this many milliseconds.
    Rollback(u64),
    Block(u64),
    Panic,
    UnknownTool,
    UnknownMethod,
    BadArguments,
    /// An echo with an id that is already in use.
    Duplicate,
    /// Returns how many hangs are running.
    Active,
    /// Returns how many requests have started, ended and run.
    Ledger,
    /// The handshake of a legacy session.
    Initialize,
}

pub(crate) const INTERNAL_ERROR: i64 = -32603;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;
const OVERLOADED: i64 = -31001;
const SHUTTING_DOWN: i64 = -31002;

impl Ask {
    /// A request that ends soon without a cancel.
    pub(crate) fn any_that_ends(random: &mut Random) -> Self {
        match random.below(20) {
            0 => Self::Panic,
            1 => Self::UnknownTool,
            2 => Self::UnknownMethod,
            3 => Self::BadArguments,
            4 | 5 => Self::Count {
                to: random.between(1, 12),
                delay_ms: random.between(0, 10),
            },
            6 => Self::Block(random.between(0, 20)),
            7 => Self::Echo(random.between(1, 20_000) as usize),
            _ => Self::Echo(random.between(1, 100) as usize),
        }
    }

    /// The method and the parameters. An echo returns the tag.
    pub(crate) fn request(self, tag: &str) -> (&'static str, Value) {
        let tool = |name: &str, arguments: Value| {
            let params = json!({ "name": name, "arguments": arguments });
            ("tools/call", params)
        };
        match self {
            Self::Echo(length) => tool("echo", json!({ "text": text(tag, length) })),
            Self::Duplicate => tool("echo", json!({ "text": tag })),
            Self::Count { to, delay_ms } => {
                tool("count", json!({ "to": to, "delay_ms": delay_ms }))
            }
            Self::Hang => tool("hang", json!({})),
            Self::Rollback(ms) => tool("rollback", json!({ "ms": ms })),
            Self::Block(ms) => tool("block", json!({ "ms": ms })),
            Self::Panic => tool("panic", json!({})),
            Self::Active => tool("active", json!({})),
            Self::Ledger => tool("ledger", json!({})),
            Self::UnknownTool => tool("no such tool", json!({})),
            Self::UnknownMethod => ("no/such/method", json!({})),
            Self::BadArguments => tool("echo", json!({ "text": 5 })),
            Self::Initialize => ("initialize", json!({})),
        }
    }

    /// Whether `answer` is valid for this request. Any request may be refused because of overload.
    pub(crate) fn is_answered_by(self, tag: &str, answer: &Value) -> bool {
        let result = &answer["result"];
        let said = &result["content"][0]["text"];
        match answer["error"]["code"].as_i64() {
            Some(OVERLOADED | SHUTTING_DOWN) => true,
            Some(code) => match self {
                Self::Panic => code == INTERNAL_ERROR,
                Self::Duplicate => code == INVALID_REQUEST,
                Self::UnknownTool => code == INVALID_PARAMS,
                Self::UnknownMethod => code == METHOD_NOT_FOUND,
                _ => false,
            },
            None => match self {
                Self::Echo(length) => *said == text(tag, length),
                Self::Count { to, .. } => said.as_str() == Some(&to.to_string()),
                Self::Active => said.is_string(),
                Self::Ledger => result["structuredContent"].is_object(),
                Self::BadArguments => result["isError"] == true,
                Self::Block(_) | Self::Rollback(_) => result["content"] == json!([]),
                Self::Initialize => result["protocolVersion"].is_string(),
                _ => false,
            },
        }
    }
}

/// A text that is unique to one request of one worker.
fn text(tag: &str, length: usize) -> String {
    format!("{tag} {}", "x".repeat(length))
}

/// Malformed lines and bodies. Each is answered with one error without an id.
pub(crate) const MALFORMED: [&[u8]; 8] = [
    b"{ 17",
    b"not json",
    b"{}",
    b"null",
    b"\"text\"",
    b"{\"jsonrpc\":\"2.0\"}",
    b"{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}",
    b"\xff\xfe",
];
