//! How a call can end. This is the whole list.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::jsonrpc::{DecodeFault, ErrorObject, RawJson};

/// How a call ended. Each call has exactly one of these (**one-end**), and what went wrong decides
/// which (**typed-end**), never the moment at which it went wrong.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The peer's result.
    Answered(RawJson),
    /// The peer needs something first: this call is over, and a retry is a new one. Modern only.
    InputRequired(RawJson),
    /// The peer's error.
    Refused(ErrorObject),
    /// Somebody stopped it.
    Cancelled {
        /// Who.
        by: By,
        /// Why, if they said.
        reason: Option<Arc<str>>,
        /// Whether it had left.
        sent: Sent,
    },
    /// A deadline of ours passed.
    TimedOut {
        /// Which one.
        clock: Clock,
        /// How long that was.
        after: Duration,
        /// Whether it had left.
        sent: Sent,
    },
    /// The connection, the process or the stream went away.
    Lost {
        /// Why.
        cause: Loss,
        /// Whether it had left.
        sent: Sent,
    },
    /// The peer broke the protocol in its answer.
    Violated(Violation),
    /// A limit or rule of our own stopped it before it began.
    Rejected(Rejection),
}

impl Outcome {
    /// Which of the eight ends it is.
    pub fn end(&self) -> End {
        match self {
            Self::Answered(_) => End::Answered,
            Self::InputRequired(_) => End::InputRequired,
            Self::Refused(_) => End::Refused,
            Self::Cancelled { .. } => End::Cancelled,
            Self::TimedOut { .. } => End::TimedOut,
            Self::Lost { .. } => End::Lost,
            Self::Violated(_) => End::Violated,
            Self::Rejected(_) => End::Rejected,
        }
    }

    /// Whether the request had left, for the ends where that is in doubt.
    pub fn sent(&self) -> Option<Sent> {
        match self {
            Self::Cancelled { sent, .. }
            | Self::TimedOut { sent, .. }
            | Self::Lost { sent, .. } => Some(*sent),
            Self::Rejected(_) => Some(Sent::Never),
            _ => None,
        }
    }
}

/// The eight ends, without what they carry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(
    missing_docs,
    reason = "each is explained at the Outcome of the same name"
)]
pub enum End {
    Answered,
    InputRequired,
    Refused,
    Cancelled,
    TimedOut,
    Lost,
    Violated,
    Rejected,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Answered,
        Self::InputRequired,
        Self::Refused,
        Self::Cancelled,
        Self::TimedOut,
        Self::Lost,
        Self::Violated,
        Self::Rejected,
    ];

    /// Its name in logs, metrics and `--json` output.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::InputRequired => "input_required",
            Self::Refused => "refused",
            Self::Cancelled => "cancelled",
            Self::TimedOut => "timed_out",
            Self::Lost => "lost",
            Self::Violated => "violated",
            Self::Rejected => "rejected",
        }
    }
}

/// Who stopped a request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum By {
    /// Whoever made the call: dropped it, or used its cancel handle.
    Caller,
    /// The peer.
    Peer,
    /// A shutdown on our side.
    Shutdown,
}

/// Whether a request had left when it ended. This decides whether a retry is safe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Sent {
    /// No byte of it was handed to the operating system.
    Never,
    /// It was handed over, and nothing was heard of it since.
    Maybe,
    /// The peer spoke of it.
    Yes,
}

/// Which deadline.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Clock {
    /// Reset by progress; stands still while we owe the peer an answer.
    Idle,
    /// Reset by nothing.
    Total,
}

/// Why a connection, a process or a stream went away.
#[derive(Clone, Debug)]
pub struct Loss {
    /// What happened.
    pub kind: LossKind,
    /// The error behind it, if there is one; the transport's own type.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

/// What made a connection, a process or a stream go away.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LossKind {
    /// The peer closed its end.
    EndOfStream,
    /// Reading or writing failed.
    Io,
    /// The process on the other side ended.
    ProcessExit,
    /// The exchange was over, and no answer had come.
    NoAnswer,
    /// HTTP said no.
    HttpStatus(u16),
    /// The session is not known to the server any more.
    SessionGone,
    /// The peer made more requests than it reads answers to.
    Flooded,
    /// We closed it ourselves.
    ClosedByUs,
}

impl From<LossKind> for Loss {
    fn from(kind: LossKind) -> Self {
        Self { kind, source: None }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LossKind::EndOfStream => f.write_str("the peer closed its end"),
            LossKind::Io => f.write_str("reading or writing failed"),
            LossKind::ProcessExit => f.write_str("the process on the other side ended"),
            LossKind::NoAnswer => f.write_str("the exchange ended without an answer"),
            LossKind::HttpStatus(status) => write!(f, "the server answered with HTTP {status}"),
            LossKind::SessionGone => f.write_str("the session is gone"),
            LossKind::Flooded => {
                f.write_str("the peer made more requests than it reads answers to")
            }
            LossKind::ClosedByUs => f.write_str("the connection was closed on this side"),
        }
    }
}

impl Error for Loss {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let source = self.source.as_deref()?;
        Some(source)
    }
}

/// What a peer broke in its answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The answer could not be decoded.
    #[error("its answer was malformed: {fault}{}", Excerpt(.excerpt.as_deref()))]
    MalformedAnswer {
        /// What is wrong with it.
        fault: DecodeFault,
        /// How it begins, and what it came with, where that says more.
        excerpt: Option<String>,
    },
    /// A result must be an object.
    #[error("its result was not an object")]
    ResultNotObject,
    /// A result of a kind that nobody here announced to understand.
    #[error("its result was of the unknown type {0:?}")]
    UnknownResultType(String),
    /// Only some requests can be answered with questions.
    #[error("it needs something first, which it must not for this request")]
    UnexpectedQuestions,
    /// The handshake's answer lacks something, or has it wrong.
    #[error("its introduction was malformed: {0}")]
    MalformedIntroduction(String),
    /// The handshake's answer names a version that we did not offer.
    #[error("it chose protocol version {0:?}, which was not offered")]
    VersionNotOffered(String),
}

/// In brackets, if there is one.
struct Excerpt<'a>(Option<&'a str>);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(excerpt) => write!(f, " ({excerpt})"),
            None => Ok(()),
        }
    }
}

/// What of our own stopped a request before it began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// So many calls are in flight.
    #[error("{limit} calls are in flight already")]
    TooManyCalls {
        /// The limit.
        limit: usize,
    },
    /// So much waits to be written.
    #[error("more than {limit} bytes wait to be written")]
    QueueFull {
        /// The limit.
        limit: usize,
    },
    /// It is too large to send.
    #[error("the message is larger than {limit} bytes")]
    MessageTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The handshake is not over.
    #[error("the connection is not open yet")]
    NotConnected,
    /// Parameters must be an object.
    #[error("the parameters are not an object")]
    ParamsNotObject,
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
    /// A modern server asks by its results, not by requests of its own; and a conversation is
    /// opened by [`Engine::connect`](super::Engine::connect), not by a call.
    #[error("the negotiated revision does not let this side send this")]
    NotAllowed,
}
