//! The engine's outputs: events for the application, instructions for the transport.

use std::fmt;
use std::sync::Arc;

use crate::jsonrpc::{Notification, Params, RawJson, RequestId, Text};
use crate::types::{Era, Meta, ProgressParams, ProtocolVersion};

use super::table::Number;
use super::{Loss, Outcome, Wait};

/// An outgoing call. Its number is also the request id on the wire, and is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub(super) i64);

impl CallId {
    /// The request id on the wire.
    pub fn request_id(self) -> RequestId {
        RequestId::Number(self.0)
    }
}

/// An incoming request, while it runs. Requests on different exchanges can share the peer's id at
/// the same time; this key is unique (**id-is-scoped**).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestKey(pub(super) u64);

/// What carries one answer. A pipe has a single exchange, [`ExchangeId::LINK`]; on HTTP each POST
/// is one, and `LINK` is the GET stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExchangeId(pub(super) u64);

impl ExchangeId {
    /// The exchange that always exists: the pipe, or the GET stream on HTTP.
    pub const LINK: Self = Self(0);

    /// The exchange with this number.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// The number of this exchange, unique within one engine.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl Number for CallId {
    fn number(self) -> u64 {
        self.0.cast_unsigned()
    }
}

impl Number for RequestKey {
    fn number(self) -> u64 {
        self.0
    }
}

impl Number for ExchangeId {
    fn number(self) -> u64 {
        self.0
    }
}

/// A request that the application wants to make.
///
/// ```
/// use belay_protocol::engine::Ask;
/// use belay_protocol::jsonrpc::RawJson;
///
/// let ask = Ask::new("tools/call", RawJson::parse(r#"{"name":"echo"}"#).unwrap());
/// assert!(ask.serves.is_none());
/// ```
#[derive(Clone, Debug)]
pub struct Ask {
    /// The method to call.
    pub method: Text,
    /// The parameters: an object without `_meta`, which goes into `meta`.
    pub params: RawJson,
    /// The request's `_meta`. The engine adds the progress token, and the fields of the modern era.
    pub meta: Meta,
    /// The incoming request on whose behalf this call is made, if any. When that request ends, this
    /// call is given up (**tree**).
    pub serves: Option<RequestKey>,
    /// The idle timeout: how long to wait without progress.
    pub idle: Wait,
    /// The total timeout.
    pub total: Wait,
}

impl Ask {
    /// Creates an `Ask` with the given parameters, no `_meta` and the configured timeouts.
    pub fn new(method: impl Into<Text>, params: RawJson) -> Self {
        Self {
            method: method.into(),
            params,
            meta: Meta::default(),
            serves: None,
            idle: Wait::AsConfigured,
            total: Wait::AsConfigured,
        }
    }
}

/// Something the application should know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<C = ()> {
    /// The handshake has succeeded. Clients only.
    Connected(Connected),
    /// The handshake has failed. Clients only.
    ConnectFailed(Outcome),
    /// An outgoing call has ended.
    Ended {
        /// The call.
        call: CallId,
        /// How it ended.
        outcome: Outcome,
        /// The application's data for the call.
        caller: C,
    },
    /// The peer has reported progress on an outgoing call.
    Progress {
        /// The call.
        call: CallId,
        /// The progress.
        params: ProgressParams,
        /// The application's data for the call.
        caller: C,
    },
    /// The peer has sent a notification that the engine does not handle itself.
    Notification {
        /// The outgoing call that it belongs to: the call whose own exchange it arrived on, or the
        /// listen that it names.
        about: Option<CallId>,
        /// The application's data for that call.
        caller: Option<C>,
        /// The notification.
        notification: Notification,
    },
    /// The peer has sent a request: its handler should start.
    Request(Incoming),
    /// A handler should stop: its cancellation token fires now.
    Stop {
        /// The handler's request.
        request: RequestKey,
        /// Why it should stop.
        cause: StopCause,
    },
    /// A handler should be dropped now: it has no grace, its grace is over, or the link is closing.
    Abort {
        /// The handler's request.
        request: RequestKey,
    },
    /// The link is closed. Nothing more happens, except that handlers which still run come to their
    /// end.
    Closed {
        /// Why the link closed.
        cause: Loss,
        /// Handlers that were stopped and dropped, but not yet reported gone. Plain handlers are
        /// reported gone right after this event; the rest have over-run.
        overrun: usize,
    },
}

/// What the handshake agreed on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Connected {
    /// The negotiated protocol revision.
    pub version: ProtocolVersion,
    /// How the server introduced itself: its answer to `initialize` or `server/discover`.
    pub introduction: RawJson,
}

/// A request from the peer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Incoming {
    /// The key that names this request to the engine.
    pub key: RequestKey,
    /// The peer's request id.
    pub id: RequestId,
    /// The exchange that it arrived on.
    pub exchange: ExchangeId,
    /// The protocol revision that it is made in.
    pub version: ProtocolVersion,
    /// The method.
    pub method: Text,
    /// The parameters, `_meta` included.
    pub params: Option<Params>,
}

impl Incoming {
    /// The era that it is made in.
    pub fn era(&self) -> Era {
        self.version.era()
    }

    /// Whether this is a listen. Its answer is a stream of notifications, and it does not count as
    /// a running request.
    pub fn is_listen(&self) -> bool {
        super::rules::kind(&self.method) == super::requests::Kind::Listen
    }
}

/// Why a handler is stopped (**stops-with-its-caller**).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StopCause {
    /// The peer cancelled the request.
    Cancelled {
        /// The reason, if the peer gave one.
        reason: Option<Arc<str>>,
    },
    /// The stream that was to carry the answer is closed, which cancels a modern request.
    Disconnected,
    /// The stream that was to carry the answer broke and was not resumed in time.
    ResumeWindowPassed,
    /// The connection is lost.
    Lost,
    /// The handler's own deadline has passed, and its request was answered in its stead.
    Deadline,
    /// This side is shutting down.
    Shutdown,
}

impl fmt::Display for StopCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cancelled { reason: None } => "its caller cancelled",
            Self::Cancelled {
                reason: Some(reason),
            } => return write!(f, "its caller cancelled: {reason}"),
            Self::Disconnected => "its caller hung up",
            Self::ResumeWindowPassed => "its caller did not come back",
            Self::Lost => "the connection is gone",
            Self::Deadline => "its time is over",
            Self::Shutdown => "the server shuts down",
        })
    }
}

/// An instruction for the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transmit<X = ()> {
    /// There is something to write on this exchange: see [`Engine::queued`](super::Engine::queued).
    /// If the exchange is not open yet, the transport opens it.
    Write(ExchangeId),
    /// This exchange is over. No further instruction names it.
    Close {
        /// The exchange.
        exchange: ExchangeId,
        /// How it is over.
        how: Closing,
        /// The application's data for the exchange.
        kept: X,
    },
}

/// What kind of frame waits to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// An outgoing call.
    Call(CallId),
    /// An error for a message that never became a request.
    Refusal {
        /// The error code.
        code: i64,
    },
    /// The answer to a request.
    Answer {
        /// The error code, if the answer is an error.
        error: Option<i64>,
    },
    /// A notification, which gets no answer.
    Notice,
}

/// How an exchange is over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Closing {
    /// It carried its last message.
    Finished,
    /// It carried nothing that needs an answer: respond with 202.
    Accepted,
    /// Its request was cancelled: end the stream in good order, and write nothing more on it.
    Silent,
    /// No caller on this side waits for it any more: close the stream. On modern HTTP that is the
    /// cancellation.
    Abandoned,
}
