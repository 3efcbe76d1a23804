//! An exchange carries one answer: a connection, a POST, a stream.

use std::ops::{AddAssign, SubAssign};

use super::queue::{Frame, Queue};
use super::{CallId, Engine, Time};

#[derive(Clone, Debug)]
pub(super) struct Exchange<X = ()> {
    /// The application's data for it.
    pub(super) kept: X,
    pub(super) purpose: Purpose,
    pub(super) queue: Queue,
    /// Incoming requests on it that are not over.
    pub(super) unanswered: usize,
    /// Those of them whose handler has not answered yet.
    pub(super) working: usize,
    /// The stream broke and may be resumed, or it is a GET stream that is not open yet. Its frames
    /// wait.
    pub(super) broken: bool,
    /// [`Transmit::Write`](super::Transmit::Write) is queued and the transport has not taken it
    /// yet.
    pub(super) noticed: bool,
    /// When its time is over: the resume window, or the timeout of a POST.
    pub(super) timer: Option<Time>,
    /// The exchange of the call whose cancel this one carries.
    pub(super) cancels: Option<super::ExchangeId>,
    /// It may have changed since it was last settled.
    pub(super) touched: bool,
    /// The sums of its queue when it was last settled.
    pub(super) settled: Sums,
}

/// Sums of the frames whose write has not begun.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sums {
    /// All frames.
    pub(super) frames: usize,
    /// Bytes of calls and notifications.
    pub(super) ordinary_bytes: usize,
    /// Answers, including refusals, and their bytes.
    pub(super) answers: usize,
    pub(super) answer_bytes: usize,
}

impl Sums {
    fn with(self, other: Self, apply: fn(usize, usize) -> usize) -> Self {
        Self {
            frames: apply(self.frames, other.frames),
            ordinary_bytes: apply(self.ordinary_bytes, other.ordinary_bytes),
            answers: apply(self.answers, other.answers),
            answer_bytes: apply(self.answer_bytes, other.answer_bytes),
        }
    }

    /// Memory that these frames take.
    pub(super) fn output_bytes(&self) -> usize {
        self.ordinary_bytes + self.answer_bytes + self.frames * Engine::FRAME_OVERHEAD
    }
}

impl AddAssign for Sums {
    fn add_assign(&mut self, other: Self) {
        *self = self.with(other, usize::wrapping_add);
    }
}

impl SubAssign for Sums {
    fn sub_assign(&mut self, other: Self) {
        *self = self.with(other, usize::wrapping_sub);
    }
}

/// What an exchange is for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Purpose {
    /// The pipe; on HTTP, the GET stream.
    Link,
    /// The peer opened it: a POST that came in.
    Theirs {
        /// The whole body has been read.
        read: bool,
        /// How it will be closed once it is over.
        closing: super::Closing,
    },
    /// We opened it for a call.
    Call(CallId),
    /// We opened it to send notifications and answers: one POST after the other, so that they
    /// arrive in order. It is over when its queue is empty.
    Lane,
    /// We opened it for a call that was given up. It stays open until the peer has been told.
    Abandoned(Abandoned),
}

/// A call that was given up on a wire where its request and its cancel are two POSTs, which can
/// overtake each other. Many servers ignore a cancel that comes first. So the cancel waits until
/// the response head of the request has come, or for a while after the request was fully written;
/// and the request's stream stays open until the cancel is answered (**announce-once**).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Abandoned {
    /// The cancel has not been posted.
    Unannounced {
        /// Boxed: it is rare, and every exchange has room for it.
        cancel: Box<Frame>,
        /// The deadline of both POSTs.
        until: Time,
    },
    /// The exchange that carries the cancel.
    Announced(super::ExchangeId),
    /// No cancel is sent. The exchange only gets time to end normally.
    Unspoken,
}

impl<X: Default> Exchange<X> {
    pub(super) fn new(purpose: Purpose) -> Self {
        Self {
            kept: X::default(),
            purpose,
            queue: Queue::default(),
            unanswered: 0,
            working: 0,
            broken: false,
            noticed: false,
            timer: None,
            cancels: None,
            touched: false,
            settled: Sums::default(),
        }
    }
}
