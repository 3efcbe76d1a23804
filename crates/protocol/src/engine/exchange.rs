//! What carries one answer: a connection, a POST, a stream.

use std::ops::{AddAssign, SubAssign};

use super::queue::{Frame, Queue};
use super::{CallId, Engine, Time};

/// One exchange.
#[derive(Clone, Debug)]
pub(super) struct Exchange<X = ()> {
    /// What the application keeps for it.
    pub(super) kept: X,
    pub(super) purpose: Purpose,
    pub(super) queue: Queue,
    /// Requests of the peer's that came on it and are not over.
    pub(super) unanswered: usize,
    /// Those of them that wait for a handler, and not for the wire.
    pub(super) working: usize,
    /// The stream broke and may come back; or, of a GET stream, is not open yet. What is to be
    /// written on it waits.
    pub(super) broken: bool,
    /// The transport was told that there is something to write, and has not looked yet.
    pub(super) noticed: bool,
    /// When its time is over: a resume window, or the time of a POST that nobody waits for.
    pub(super) timer: Option<Time>,
    /// The exchange of the call whose cancel is told on this one.
    pub(super) cancels: Option<super::ExchangeId>,
    /// Something was done to it since it was settled.
    pub(super) touched: bool,
    /// What waited on it when it was settled.
    pub(super) settled: Sums,
}

/// What waits to be written, and has not begun.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Sums {
    /// All frames.
    pub(super) frames: usize,
    /// Bytes of calls and notifications.
    pub(super) ordinary_bytes: usize,
    /// Answers, refusals included, and their bytes.
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

    /// What it takes to keep all that.
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
        /// How it will have ended.
        closing: super::Closing,
    },
    /// We opened it for a call.
    Call(CallId),
    /// We opened it to tell something: one POST after the other, so that what is said on it
    /// arrives in order. It is over when all was said.
    Lane,
    /// We opened it for a call that was given up: it stays open until the peer knows.
    Abandoned(Abandoned),
}

/// A call that was given up, and whose request and cancel are two POSTs, which can overtake each
/// other. Many servers ignore a cancel that comes first: so it waits until the response head of the
/// request has come, or a while after the request was fully written; and the request's stream stays
/// open until the cancel is answered (**announce-once**).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Abandoned {
    /// The cancel has not been posted.
    Unannounced {
        /// In a box: it is rare, and every exchange has room for it.
        cancel: Box<Frame>,
        /// The end of the time that both POSTs have.
        until: Time,
    },
    /// The exchange that carries the cancel.
    Announced(super::ExchangeId),
    /// There is no cancel for it; it is only given time to end by itself.
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
