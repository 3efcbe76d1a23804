//! The faults that a malformed message can have.

use super::{ErrorObject, RequestId, scan};
use crate::types::error_code;

/// A message that could not be decoded, with the parts that could be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{fault}")]
pub struct DecodeError {
    /// The fault.
    pub fault: DecodeFault,
    /// The id, if it could be read.
    pub id: Option<RequestId>,
    /// The kind of message, as far as known.
    pub looks_like: Kind,
    /// An excerpt for the user: the beginning of the message and its context.
    pub excerpt: Option<String>,
}

/// The kind of a message that could not be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// It had a `method` and an `id`.
    Request,
    /// It had a `method` and no `id`.
    Notification,
    /// It had a `result` or an `error`, and no `method`.
    Response,
    /// The kind is unknown.
    Unknown,
}

/// The fault of a malformed message.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeFault {
    /// The frame was longer than the limit; the rest was skipped.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// The frame is not UTF-8.
    #[error("not UTF-8 at byte {at}")]
    NotUtf8 {
        /// The position of the first invalid byte.
        at: usize,
    },
    /// The frame is not JSON.
    #[error("not JSON: expected {expected} at byte {at}")]
    Syntax {
        /// The position of the first invalid byte.
        at: usize,
        /// What was expected there.
        expected: &'static str,
    },
    /// The brackets are nested too deeply.
    #[error("nested deeper than {limit}")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// The JSON value is not an object but, for example, a number, a string or `null`.
    #[error("a message must be an object")]
    NotAnObject,
    /// An array, where the revision in use has no batches.
    #[error("a batch is allowed in revision 2025-03-26 only")]
    BatchNotAllowed,
    /// The batch is empty: `[]`.
    #[error("a batch must not be empty")]
    EmptyBatch,
    /// More messages than one batch may have.
    #[error("a batch may have {limit} messages at most")]
    BatchTooLong {
        /// The limit.
        limit: usize,
    },
    /// A key appears twice. Parsers disagree on which one counts.
    #[error("`{0}` stands in it twice")]
    DuplicateKey(String),
    /// There are too many unknown fields.
    #[error("more than {limit} unknown fields")]
    TooManyFields {
        /// The limit.
        limit: usize,
    },
    /// `jsonrpc` is missing.
    #[error("`jsonrpc` is missing; it must be \"2.0\"")]
    VersionMissing,
    /// `jsonrpc` is not `"2.0"`.
    #[error("`jsonrpc` must be \"2.0\"")]
    VersionWrong,
    /// The id is null: `"id": null`.
    #[error("`id` must not be null")]
    IdNull,
    /// The id is a fraction or a float: `"id": 1.5`, `"id": 1e3`.
    #[error("`id` must not be a fraction")]
    IdFraction,
    /// The id does not fit into an `i64`: `"id": 9223372036854775808`.
    #[error("`id` must fit into 64 bits with a sign")]
    IdOutOfRange,
    /// The id is of another type: `"id": {}`, `"id": true`.
    #[error("`id` must be a string or an integer")]
    IdWrongType,
    /// A result has no id.
    #[error("a result needs an `id`")]
    IdMissing,
    /// None of `method`, `result` and `error`.
    #[error("one of `method`, `result` and `error` must be there")]
    NoKind,
    /// More than one of `method`, `result` and `error`.
    #[error("only one of `method`, `result` and `error` may be there")]
    SeveralKinds,
    /// The method is not a string: `"method": 7`.
    #[error("`method` must be a string")]
    MethodNotString,
    /// The parameters are not an object: `"params": [1]`.
    #[error("`params` must be an object")]
    ParamsNotObject,
    /// The error is not an object: `"error": "no"`.
    #[error("`error` must be an object")]
    ErrorNotObject,
    /// The error has no code: `"error": {}`.
    #[error("`error.code` is missing")]
    ErrorCodeMissing,
    /// The error code is not an integer: `"error": {"code": "E1"}`.
    #[error("`error.code` must be an integer")]
    ErrorCodeNotInteger,
    /// The error has no message: `"error": {"code": 1}`.
    #[error("`error.message` is missing")]
    ErrorMessageMissing,
    /// The error message is not a string: `"error": {"code": 1, "message": 2}`.
    #[error("`error.message` must be a string")]
    ErrorMessageNotString,
}

impl DecodeFault {
    /// The JSON-RPC code for an answer to a message with this fault.
    pub fn code(&self) -> i64 {
        match self {
            Self::NotUtf8 { .. } | Self::Syntax { .. } | Self::TooDeep { .. } => {
                error_code::PARSE_ERROR
            }
            _ => error_code::INVALID_REQUEST,
        }
    }
}

impl DecodeError {
    /// The error object for an answer to this message.
    pub fn to_error_object(&self) -> ErrorObject {
        ErrorObject::new(self.fault.code(), format!("malformed message: {self}"))
    }
}

impl From<DecodeFault> for DecodeError {
    fn from(fault: DecodeFault) -> Self {
        Self {
            fault,
            id: None,
            looks_like: Kind::Unknown,
            excerpt: None,
        }
    }
}

impl From<Box<scan::Fault>> for DecodeError {
    fn from(fault: Box<scan::Fault>) -> Self {
        DecodeFault::from(fault).into()
    }
}

impl From<Box<scan::Fault>> for Box<DecodeFault> {
    fn from(fault: Box<scan::Fault>) -> Self {
        Self::new(fault.into())
    }
}

impl From<Box<scan::Fault>> for DecodeFault {
    fn from(fault: Box<scan::Fault>) -> Self {
        match *fault {
            scan::Fault::Syntax { at, expected } => Self::Syntax { at, expected },
            scan::Fault::TooDeep { limit } => Self::TooDeep { limit },
        }
    }
}
