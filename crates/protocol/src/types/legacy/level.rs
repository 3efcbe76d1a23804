//! `logging/setLevel`: from which level on a session wants log messages. A modern request says so
//! itself.

use crate::types::{EmptyResult, LoggingLevel, Request};

record! {
    /// From which level on.
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
