//! `logging/setLevel`: sets the lowest level of log messages for a session. A modern request names
//! its level itself.

use crate::types::{EmptyResult, LoggingLevel, Request};

record! {
    /// The parameters of `logging/setLevel`.
    pub struct SetLevelParams {
        required {
            /// The lowest level that is sent.
            level: LoggingLevel = "level",
        }
    }
}

/// `logging/setLevel`.
#[derive(Clone, Copy, Debug)]
pub enum SetLevel {}

impl Request for SetLevel {
    const METHOD: &'static str = "logging/setLevel";
    type Params = SetLevelParams;
    type Result = EmptyResult;
}
