//! What can be wrong with a message.

use super::{ErrorObject, RequestId, scan};
use crate::types::error_code;

/// A message that could not be decoded, and what of it could.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{fault}")]
pub struct DecodeError {
    /// What is wrong with it.
    pub fault: DecodeFault,
    /// The id, where it could be read.
    pub id: Option<RequestId>,
    /// What it was meant to be, as far as that could be told.
    pub looks_like: Kind,
    /// What a person should see of it: how it begins, and what it came with.
    pub excerpt: Option<String>,
}

/// What a message that could not be decoded was meant to be.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// It had a `method` and an `id`.
    Request,
    /// It had a `method` and no `id`.
    Notification,
    /// It had a `result` or an `error`, and no `method`.
    Response,
    /// There is no telling.
    Unknown,
}

/// What is wrong with a message. Each fault has one variant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeFault {
    /// The frame was longer than its limit; what came after was skipped.
    #[error("longer than {limit} bytes")]
    TooLong {
        /// The limit.
        limit: usize,
    },
    /// Not text.
    #[error("not UTF-8 at byte {at}")]
    NotUtf8 {
        /// Where it stops being text.
        at: usize,
    },
    /// Not JSON.
    #[error("not JSON: expected {expected} at byte {at}")]
    Syntax {
        /// Where it stops being JSON.
        at: usize,
        /// What should have stood there.
        expected: &'static str,
    },
    /// Brackets within brackets within brackets.
    #[error("nested deeper than {limit}")]
    TooDeep {
        /// The limit.
        limit: usize,
    },
    /// JSON, but a number, a string, `null` or the like.
    #[error("a message must be an object")]
    NotAnObject,
    /// An array, where the revision in use has no batches.
    #[error("a batch is allowed in revision 2025-03-26 only")]
    BatchNotAllowed,
    /// `[]`.
    #[error("a batch must not be empty")]
    EmptyBatch,
    /// More messages than one batch may have.
    #[error("a batch may have {limit} messages at most")]
    BatchTooLong {
        /// The limit.
        limit: usize,
    },
    /// The same key twice: readers would disagree on which one counts.
    #[error("`{0}` stands in it twice")]
    DuplicateKey(String),
    /// Fields that JSON-RPC does not know, and so many of them.
    #[error("more than {limit} unknown fields")]
    TooManyFields {
        /// The limit.
        limit: usize,
    },
    /// No `jsonrpc`.
    #[error("`jsonrpc` is missing; it must be \"2.0\"")]
    VersionMissing,
    /// Another `jsonrpc`.
    #[error("`jsonrpc` must be \"2.0\"")]
    VersionWrong,
    /// `"id": null`.
    #[error("`id` must not be null")]
    IdNull,
    /// `"id": 1.5`, `"id": 1e3`.
    #[error("`id` must not be a fraction")]
    IdFraction,
    /// `"id": 9223372036854775808`.
    #[error("`id` must fit into 64 bits with a sign")]
    IdOutOfRange,
    /// `"id": {}`, `"id": true`.
    #[error("`id` must be a string or an integer")]
    IdWrongType,
    /// A result that answers nothing.
    #[error("a result needs an `id`")]
    IdMissing,
    /// None of `method`, `result` and `error`.
    #[error("one of `method`, `result` and `error` must be there")]
    NoKind,
    /// More than one of `method`, `result` and `error`.
    #[error("only one of `method`, `result` and `error` may be there")]
    SeveralKinds,
    /// `"method": 7`.
    #[error("`method` must be a string")]
    MethodNotString,
    /// `"params": [1]`.
    #[error("`params` must be an object")]
    ParamsNotObject,
    /// `"error": "no"`.
    #[error("`error` must be an object")]
    ErrorNotObject,
    /// `"error": {}`.
    #[error("`error.code` is missing")]
    ErrorCodeMissing,
    /// `"error": {"code": "E1"}`.
    #[error("`error.code` must be an integer")]
    ErrorCodeNotInteger,
    /// `"error": {"code": 1}`.
    #[error("`error.message` is missing")]
    ErrorMessageMissing,
    /// `"error": {"code": 1, "message": 2}`.
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
