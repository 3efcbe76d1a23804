//! What carries one answer, and the frames waiting to be written on it.

use std::collections::VecDeque;
use std::ops::{AddAssign, SubAssign};

use bytes::Bytes;

use super::{CallId, Engine, RequestKey, Time, Waiting};
use crate::types::error_code;

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

/// One message, encoded, and whose it is.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Frame {
    pub(super) bytes: Bytes,
    pub(super) owner: Owner,
    /// The code of the error that it is, if it is one.
    pub(super) error: Option<i64>,
}

impl Frame {
    pub(super) fn new(owner: Owner, bytes: Bytes) -> Self {
        Self {
            bytes,
            owner,
            error: None,
        }
    }

    /// What it is, for the transport.
    pub(super) fn kind(&self) -> Waiting {
        match self.owner {
            Owner::Call(call) => Waiting::Call(call),
            Owner::Answer(_) => Waiting::Answer { error: self.error },
            Owner::Refusal => Waiting::Refusal {
                code: self.error.unwrap_or(error_code::INTERNAL_ERROR),
            },
            Owner::Cancel(_) | Owner::Word(_) | Owner::Nobody => Waiting::Notice,
        }
    }
}

/// Whose a frame is. It decides what its writing means, and who may withdraw it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Owner {
    /// A call of ours.
    Call(CallId),
    /// The announcement that a call was given up.
    Cancel(CallId),
    /// Something said on behalf of a request of the peer's.
    Word(RequestKey),
    /// The last word on a request of the peer's.
    Answer(RequestKey),
    /// An error for something that never became a request.
    Refusal,
    /// Something nobody in particular said.
    Nobody,
}

/// The frames of one exchange, in the order in which they leave.
///
/// ```text
///   ┌ begun ┐┌─ cancels ─┐┌──────── the rest ────────┐
///   │ f1 f2 ││ c1 c2     ││ f3 f4 f5 …               │ ◄── push
///   └───────┘└───────────┘└──────────────────────────┘
/// ```
///
/// 1. A frame whose write has begun is finished: it is never moved nor withdrawn.
/// 2. Only cancels overtake, and only what has not begun. A cancel exists only for a call whose
///    write has begun, so it cannot overtake its own request.
/// 3. Everything else leaves in the order in which it was pushed (**order**).
#[derive(Clone, Default, Debug)]
pub(super) struct Queue {
    frames: VecDeque<Frame>,
    begun: usize,
    /// Of those that have not begun; their number is known anyway.
    sums: Sums,
}

impl Queue {
    pub(super) fn push(&mut self, frame: Frame) {
        self.count(&frame, usize::wrapping_add);
        self.frames.push_back(frame);
    }

    pub(super) fn push_cancel(&mut self, frame: Frame) {
        let waiting_cancels = self
            .waiting()
            .take_while(|frame| matches!(frame.owner, Owner::Cancel(_)))
            .count();
        self.count(&frame, usize::wrapping_add);
        self.frames.insert(self.begun + waiting_cancels, frame);
    }

    /// The first frame that has not begun begins: its bytes go to whoever writes them, and only
    /// its place is kept.
    pub(super) fn begin(&mut self) -> Option<Frame> {
        let place = self.frames.get_mut(self.begun)?;
        let bytes = std::mem::take(&mut place.bytes);
        let frame = Frame { bytes, ..*place };
        self.begun += 1;
        self.count(&frame, usize::wrapping_sub);
        Some(frame)
    }

    /// The first frame that has begun is written.
    pub(super) fn finish(&mut self) -> Option<Owner> {
        if self.begun == 0 {
            return None;
        }
        self.begun -= 1;
        self.frames.pop_front().map(|place| place.owner)
    }

    /// Takes out the frames that match and have not begun; tells how many.
    pub(super) fn withdraw(&mut self, matches: impl Fn(Owner) -> bool) -> usize {
        let mut withdrawn = 0;
        for at in (self.begun..self.frames.len()).rev() {
            if !matches(self.frames[at].owner) {
                continue;
            }
            if let Some(frame) = self.frames.remove(at) {
                self.count(&frame, usize::wrapping_sub);
                withdrawn += 1;
            }
        }
        withdrawn
    }

    /// What has begun is not finished any more: whatever it was written on is gone.
    pub(super) fn forget_begun(&mut self) {
        self.frames.drain(..self.begun);
        self.begun = 0;
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The frames that have not begun.
    pub(super) fn waiting(&self) -> impl DoubleEndedIterator<Item = &Frame> {
        self.frames.range(self.begun..)
    }

    /// Gives back the memory that is not needed now.
    pub(super) fn shrink(&mut self) {
        self.frames.shrink_to_fit();
    }

    /// What has not begun.
    pub(super) fn sums(&self) -> Sums {
        Sums {
            frames: self.frames.len() - self.begun,
            ..self.sums
        }
    }

    #[cfg(any(test, belay_planted))]
    pub(super) fn has_begun(&self) -> bool {
        self.begun > 0
    }

    fn count(&mut self, frame: &Frame, apply: fn(usize, usize) -> usize) {
        let sums = &mut self.sums;
        let total = match frame.owner {
            Owner::Call(_) | Owner::Word(_) | Owner::Nobody => &mut sums.ordinary_bytes,
            Owner::Answer(_) | Owner::Refusal => {
                sums.answers = apply(sums.answers, 1);
                &mut sums.answer_bytes
            }
            // At most one for each call that was in flight: bounded by its nature.
            Owner::Cancel(_) => return,
        };
        *total = apply(*total, frame.bytes.len());
    }

    #[cfg(test)]
    pub(super) fn owners(&self) -> impl Iterator<Item = (bool, Owner)> {
        self.frames
            .iter()
            .enumerate()
            .map(|(at, frame)| (at < self.begun, frame.owner))
    }
}
