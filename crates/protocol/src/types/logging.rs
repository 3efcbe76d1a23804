//! `notifications/message`: log lines for the other side.

use serde::{Deserialize, Serialize};

use super::Notification;

/// How much a log message matters; ordered, so `>=` reads as "at least".
///
/// ```
/// use belay_protocol::types::LoggingLevel;
/// assert!(LoggingLevel::Error > LoggingLevel::Info);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggingLevel {
    /// For whoever debugs.
    Debug,
    /// The usual course of things.
    Info,
    /// Usual, but worth noting.
    Notice,
    /// Something may go wrong.
    Warning,
    /// Something went wrong.
    Error,
    /// A part of the system is gone.
    Critical,
    /// Somebody has to act at once.
    Alert,
    /// Nothing works.
    Emergency,
}

record! {
    /// One log message.
    ///
    /// ```
    /// use belay_protocol::types::{LoggingLevel, LoggingMessageParams};
    /// let message = LoggingMessageParams::new(LoggingLevel::Info, "connected");
    /// let json = serde_json::to_string(&message).unwrap();
    /// assert_eq!(json, r#"{"level":"info","data":"connected"}"#);
    /// ```
    pub struct LoggingMessageParams {
        required {
            /// How much it matters.
            level: LoggingLevel = "level",
            /// What there is to say: a text, or anything else.
            data: serde_json::Value = "data",
        }
        optional {
            /// Who says it.
            logger: String = "logger",
        }
    }
}

impl Notification for LoggingMessageParams {
    const METHOD: &'static str = "notifications/message";
}
