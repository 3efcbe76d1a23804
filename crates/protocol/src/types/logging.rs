//! `notifications/message`: log messages from the server.

use serde::{Deserialize, Serialize};

use super::Notification;

/// The severity of a log message. Levels are ordered, so `>=` means "at least".
///
/// ```
/// use belay_protocol::types::LoggingLevel;
/// assert!(LoggingLevel::Error > LoggingLevel::Info);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LoggingLevel {
    /// Details for debugging.
    Debug,
    /// Normal events.
    Info,
    /// Normal but significant events.
    Notice,
    /// A possible problem.
    Warning,
    /// An error.
    Error,
    /// A component has failed.
    Critical,
    /// Action is needed at once.
    Alert,
    /// The system is unusable.
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
            /// The severity.
            level: LoggingLevel = "level",
            /// The message: a text, or any other JSON value.
            data: serde_json::Value = "data",
        }
        optional {
            /// The name of the logger.
            logger: String = "logger",
        }
    }
}

impl Notification for LoggingMessageParams {
    const METHOD: &'static str = "notifications/message";
}
