//! How a call can end. This list is complete.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::jsonrpc::{DecodeFault, ErrorObject, RawJson};

/// How a call ended. Each call has exactly one outcome (**one-end**). What went wrong decides which
/// one, never the moment at which it went wrong (**typed-end**).
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The peer's result.
    Answered(RawJson),
    /// The peer needs input first. This call is over, and a retry is a new call. Modern only.
    InputRequired(RawJson),
    /// The peer's error.
    Refused(ErrorObject),
    /// The call was stopped: by its caller, by the peer, or by a shutdown.
    Cancelled {
        /// Who stopped it.
        by: By,
        /// The reason, if one was given.
        reason: Option<Arc<str>>,
        /// Whether the request had been sent.
        sent: Sent,
    },
    /// One of the call's timeouts passed.
    TimedOut {
        /// Which timeout.
        clock: Clock,
        /// The length of that timeout.
        after: Duration,
        /// Whether the request had been sent.
        sent: Sent,
    },
    /// The connection, the process or the stream was lost.
    Lost {
        /// Why.
        cause: Loss,
        /// Whether the request had been sent.
        sent: Sent,
    },
    /// The peer violated the protocol in its answer.
    Violated(Violation),
    /// A limit or a rule on this side stopped the call before it began.
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

    /// Whether the request had been sent, for the ends where that is in doubt.
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

/// The eight ends, without their data.
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
    /// All eight.
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

    /// The name used in logs, metrics and `--json` output.
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
    /// The caller: it dropped the call, or used its cancel handle.
    Caller,
    /// The peer.
    Peer,
    /// A shutdown on our side.
    Shutdown,
}

/// Whether a request had been sent when it ended. This decides whether a retry is safe.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Sent {
    /// No byte of the request was handed to the operating system.
    Never,
    /// The request was handed over, and nothing has been heard of it since.
    Maybe,
    /// The peer has referred to the request, so it was received.
    Yes,
}

/// Which of a call's two timeouts passed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Clock {
    /// The idle timeout. Progress resets it; it is paused while we owe the peer an answer.
    Idle,
    /// The total timeout. Nothing resets it.
    Total,
}

/// Why a connection, a process or a stream was lost.
#[derive(Clone, Debug)]
pub struct Loss {
    /// What happened.
    pub kind: LossKind,
    /// The underlying error, if there is one: the transport's own type.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

/// The kinds of loss.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum LossKind {
    /// The peer closed its end.
    EndOfStream,
    /// Reading or writing failed.
    Io,
    /// The process on the other side ended.
    ProcessExit,
    /// The exchange ended without an answer.
    NoAnswer,
    /// The server answered with this HTTP status.
    HttpStatus(u16),
    /// The server does not know the session any more.
    SessionGone,
    /// The peer kept sending requests and did not read the answers.
    Flooded,
    /// This side closed the connection.
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

/// How a peer violated the protocol in its answer.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// The answer could not be decoded.
    #[error("its answer was malformed: {fault}{}", Excerpt(.excerpt.as_deref()))]
    MalformedAnswer {
        /// What is wrong with it.
        fault: DecodeFault,
        /// The beginning of the answer and its context, where that helps.
        excerpt: Option<String>,
    },
    /// The result is not an object.
    #[error("its result was not an object")]
    ResultNotObject,
    /// The result is of a type that this side did not announce.
    #[error("its result was of the unknown type {0:?}")]
    UnknownResultType(String),
    /// The peer asked for input, which it must not do for this request.
    #[error("it needs something first, which it must not for this request")]
    UnexpectedQuestions,
    /// The handshake's answer lacks a field, or has an invalid one.
    #[error("its introduction was malformed: {0}")]
    MalformedIntroduction(String),
    /// The handshake's answer names a version that this side did not offer.
    #[error("it chose protocol version {0:?}, which was not offered")]
    VersionNotOffered(String),
}

/// Displays the excerpt in parentheses, if there is one.
struct Excerpt<'a>(Option<&'a str>);

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(excerpt) => write!(f, " ({excerpt})"),
            None => Ok(()),
        }
    }
}

/// Why this side stopped a request before it began.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// The limit of calls in flight is reached.
    #[error("{limit} calls are in flight already")]
    TooManyCalls {
        /// The limit.
        limit: usize,
    },
    /// The limit of queued bytes is reached.
    #[error("more than {limit} bytes wait to be written")]
    QueueFull {
        /// The limit.
        limit: usize,
    },
    /// The message is too large to send.
    #[error("the message is larger than {limit} bytes")]
    MessageTooLarge {
        /// The limit.
        limit: usize,
    },
    /// The handshake is not complete.
    #[error("the connection is not open yet")]
    NotConnected,
    /// The parameters are not an object.
    #[error("the parameters are not an object")]
    ParamsNotObject,
    /// The connection is closed.
    #[error("the connection is closed")]
    Closed,
    /// The negotiated revision does not allow this message from this side. A modern server asks in
    /// its results, not in requests of its own. A handshake is begun by
    /// [`Engine::connect`](super::Engine::connect), not by a call.
    #[error("the negotiated revision does not let this side send this")]
    NotAllowed,
}
