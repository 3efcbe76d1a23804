//! What the engine says, and what it is asked to do.

use std::fmt;
use std::sync::Arc;

use crate::jsonrpc::{Notification, Params, RawJson, RequestId, Text};
use crate::types::{Era, Meta, ProgressParams, ProtocolVersion};

use super::table::Number;
use super::{Loss, Outcome, Wait};

/// A call of ours. It is the id on the wire, too, and is never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub(super) i64);

impl CallId {
    /// The id on the wire.
    pub fn request_id(self) -> RequestId {
        RequestId::Number(self.0)
    }
}

/// A request of the peer's, while it runs. The peer's own id may be used by others at the same
/// time; this is not (**id-is-scoped**).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RequestKey(pub(super) u64);

/// What carries one answer. A pipe has a single one, [`ExchangeId::LINK`]; on HTTP each POST is
/// one, and `LINK` is the GET stream.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ExchangeId(pub(super) u64);

impl ExchangeId {
    /// The exchange that is always there.
    pub const LINK: Self = Self(0);

    /// The exchange of this number.
    pub fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Its number, which no other exchange of the same engine has.
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
    /// What is asked.
    pub method: Text,
    /// With what: an object without `_meta`, which goes into `meta`.
    pub params: RawJson,
    /// What travels beside it. The engine adds the progress token, and the modern fields.
    pub meta: Meta,
    /// The peer's request on whose behalf this one is made, if there is one. It goes with it.
    pub serves: Option<RequestKey>,
    /// How long to wait without progress.
    pub idle: Wait,
    /// How long to wait in all.
    pub total: Wait,
}

impl Ask {
    /// One with nothing beside its parameters.
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

/// What the application should know.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<C = ()> {
    /// The conversation is open. Clients only.
    Connected(Connected),
    /// The conversation could not be opened. Clients only.
    ConnectFailed(Outcome),
    /// A call of ours is over.
    Ended {
        /// Which.
        call: CallId,
        /// How.
        outcome: Outcome,
        /// What was kept for it.
        caller: C,
    },
    /// A call of ours has come further.
    Progress {
        /// Which.
        call: CallId,
        /// How far.
        params: ProgressParams,
        /// What is kept for it.
        caller: C,
    },
    /// The peer has told something.
    Notification {
        /// The call of ours that it belongs to: where each call has an exchange of its own, the one
        /// it came on; else the listen that it names.
        about: Option<CallId>,
        /// What is kept for that call.
        caller: Option<C>,
        /// What.
        notification: Notification,
    },
    /// The peer wants something: a handler should start.
    Request(Incoming),
    /// A handler should stop: its token fires now.
    Stop {
        /// Whose.
        request: RequestKey,
        /// Why.
        cause: StopCause,
    },
    /// A handler's time is over: it is dropped now.
    Abort {
        /// Whose.
        request: RequestKey,
    },
    /// Nothing more will happen, but that handlers which are still running come to their end.
    Closed {
        /// Why.
        cause: Loss,
        /// Handlers that were told to stop and dropped, and have not been reported gone. Plain ones
        /// will be, right after this; what is left then has over-run.
        overrun: usize,
    },
}

/// What was agreed upon.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Connected {
    /// The revision that is spoken.
    pub version: ProtocolVersion,
    /// How the server introduced itself: its answer to `initialize` or `server/discover`.
    pub introduction: RawJson,
}

/// A request of the peer's.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Incoming {
    /// What to call it when speaking of it to the engine.
    pub key: RequestKey,
    /// What the peer calls it.
    pub id: RequestId,
    /// Where it came from.
    pub exchange: ExchangeId,
    /// The revision it is made in.
    pub version: ProtocolVersion,
    /// What is asked.
    pub method: Text,
    /// With what, `_meta` included.
    pub params: Option<Params>,
}

impl Incoming {
    /// The era it is made in.
    pub fn era(&self) -> Era {
        self.version.era()
    }

    /// Whether its answer is a stream of news, which does not count as a request that runs.
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
        /// Why, if it said.
        reason: Option<Arc<str>>,
    },
    /// The stream that waited for the answer is gone, and in this era that is a cancellation.
    Disconnected,
    /// The stream that waited for the answer broke and did not come back in time.
    ResumeWindowPassed,
    /// The connection is gone.
    Lost,
    /// The time that the handler was given is over; its request was answered in its stead.
    Deadline,
    /// We are shutting down.
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

/// What the transport should do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transmit<X = ()> {
    /// There is something to write on this exchange: see
    /// [`Engine::queued`](super::Engine::queued). If it is not open yet, it is ours to open.
    Write(ExchangeId),
    /// This exchange is over. Nothing more is said about it.
    Close {
        /// Which.
        exchange: ExchangeId,
        /// In which way.
        how: Closing,
        /// What was kept for it.
        kept: X,
    },
}

/// What a frame is that waits to be written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// A call of ours.
    Call(CallId),
    /// An error for something that never became a request.
    Refusal {
        /// The code of the error.
        code: i64,
    },
    /// The last word on a request.
    Answer {
        /// The code of the error, if it is one.
        error: Option<i64>,
    },
    /// Anything that wants no answer.
    Notice,
}

/// In which way an exchange is over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Closing {
    /// All that was to be said on it was said.
    Finished,
    /// It carried nothing that wants an answer: 202.
    Accepted,
    /// Its request was cancelled: end it with nothing more on it, but in good order.
    Silent,
    /// Nobody here waits for it any more: close the stream. On modern HTTP that is the
    /// cancellation.
    Abandoned,
}
