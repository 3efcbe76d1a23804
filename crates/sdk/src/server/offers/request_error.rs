//! `RequestError`: why a resource or a prompt could not be given.

use std::fmt;

use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::{Era, ResourceNotFoundData, error_code};

use crate::context::rules;

/// Why a resource could not be read, or a prompt not be given. The caller gets an error.
///
/// Any error becomes one, so `?` works. Its message is shown to the caller, so it should not hold
/// secrets.
///
/// ```
/// use belay::RequestError;
///
/// fn read(id: &str) -> Result<String, RequestError> {
///     let number: u32 = id.parse().map_err(|_| RequestError::not_found())?;
///     Ok(std::fs::read_to_string(format!("/data/{number}"))?)
/// }
/// assert!(read("x").unwrap_err().is_not_found());
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct RequestError(Kind);

#[derive(Clone, PartialEq, Debug)]
enum Kind {
    NotFound,
    Invalid(String),
    Failed(String),
    Refused(ErrorObject),
}

impl RequestError {
    /// An internal error, with a message of your own.
    pub fn new(message: impl Into<String>) -> Self {
        Self(Kind::Failed(message.into()))
    }

    /// The resource does not exist.
    pub fn not_found() -> Self {
        Self(Kind::NotFound)
    }

    /// The request is invalid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self(Kind::Invalid(message.into()))
    }

    /// A protocol error with a code of your own.
    pub fn refused(error: ErrorObject) -> Self {
        Self(Kind::Refused(error))
    }

    /// Whether the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.0 == Kind::NotFound
    }

    /// The error that is sent to the caller.
    pub(in crate::server) fn into_error(self, era: Era, uri: Option<&str>) -> ErrorObject {
        match self.0 {
            Kind::NotFound => not_found(era, uri),
            Kind::Invalid(problem) => ErrorObject::new(error_code::INVALID_PARAMS, problem),
            Kind::Failed(problem) => ErrorObject::new(error_code::INTERNAL_ERROR, problem),
            Kind::Refused(error) => error,
        }
    }
}

/// The message, followed by those of its sources.
impl<E: std::error::Error> From<E> for RequestError {
    fn from(error: E) -> Self {
        Self::new(super::tool_error::chain(&error))
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::NotFound => f.write_str("not found"),
            Kind::Invalid(problem) | Kind::Failed(problem) => f.write_str(problem),
            Kind::Refused(error) => error.fmt(f),
        }
    }
}

/// The error for a missing resource. The eras use different codes.
pub(in crate::server) fn not_found(era: Era, uri: Option<&str>) -> ErrorObject {
    let code = rules(era).resource_not_found();
    let error = ErrorObject::new(code, "resource not found");
    match uri.map(|uri| RawJson::encode(&ResourceNotFoundData::new(uri))) {
        Some(Ok(data)) => error.with_data(data),
        _ => error,
    }
}
