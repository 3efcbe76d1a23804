//! `InputError`: why a question to the client gave no answer.

use std::fmt;

use belay_protocol::jsonrpc::ErrorObject;

use crate::Error;

/// Why a question was not answered.
///
/// ```
/// # fn handle(error: belay::input::InputError) {
/// if error.is_declined() {
///     // the person said no
/// } else if error.is_dismissed() {
///     // the person went away; perhaps ask again later
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct InputError(pub(super) Kind);

#[derive(Debug)]
pub(crate) enum Kind {
    Declined,
    Dismissed,
    Failed(Error),
    Invalid(String),
    Form(String),
    BadQuestion(String),
    Unwritten(serde_json::Error),
    Refused(ErrorObject),
    Over,
    InsideOnce,
    NotHere,
}

impl InputError {
    /// Whether the user declined.
    pub fn is_declined(&self) -> bool {
        matches!(self.0, Kind::Declined)
    }

    /// Whether the user dismissed the question without an answer.
    pub fn is_dismissed(&self) -> bool {
        matches!(self.0, Kind::Dismissed)
    }

    /// How the request for the input failed. Legacy only: in the modern era it is not a request.
    pub fn error(&self) -> Option<&Error> {
        match &self.0 {
            Kind::Failed(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn unwritten(error: serde_json::Error) -> Self {
        Self(Kind::Unwritten(error))
    }

    pub(crate) fn unfit(problem: String) -> Self {
        Self(Kind::Invalid(problem))
    }

    pub(crate) fn form(problem: String) -> Self {
        Self(Kind::Form(problem))
    }

    pub(crate) fn bad_question(problem: String) -> Self {
        Self(Kind::BadQuestion(problem))
    }

    pub(crate) fn failed(error: Error) -> Self {
        Self(Kind::Failed(error))
    }
}

/// This level only; the cause is in `source()`.
impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Declined => f.write_str("the user said no"),
            Kind::Dismissed => f.write_str("the user did not answer"),
            Kind::Failed(error) => write!(f, "the client could not be asked: {error}"),
            Kind::Invalid(problem) => {
                write!(f, "the client's answer does not fit: {problem}")
            }
            Kind::Form(problem) => write!(f, "this type cannot be a form: {problem}"),
            Kind::BadQuestion(problem) => write!(f, "this cannot be asked: {problem}"),
            Kind::Unwritten(error) => write!(f, "this cannot be written as JSON: {error}"),
            Kind::Refused(error) => write!(f, "refused: {error}"),
            Kind::Over => f.write_str("the request, or this round of it, is over"),
            Kind::InsideOnce => f.write_str("what is computed once cannot ask: ask first"),
            Kind::NotHere => f.write_str("only tools, prompts and resources can ask"),
        }
    }
}

/// `Display` includes the causes.
impl std::error::Error for InputError {}
