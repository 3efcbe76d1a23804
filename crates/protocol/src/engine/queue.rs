//! The frames that wait to be written on one exchange.

use std::collections::VecDeque;

use bytes::Bytes;

use super::exchange::Sums;
use super::{CallId, RequestKey, Waiting};
use crate::types::error_code;

/// One encoded message and its owner.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Frame {
    pub(super) bytes: Bytes,
    pub(super) owner: Owner,
    /// The error code, if the message is an error.
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

    /// What kind of frame the transport has to write.
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

/// What a frame belongs to. This decides what happens when it is written, and which event withdraws
/// it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) enum Owner {
    /// An outgoing call.
    Call(CallId),
    /// The cancel that announces that an outgoing call was given up.
    Cancel(CallId),
    /// A notification or progress sent on behalf of an incoming request.
    Word(RequestKey),
    /// The answer to an incoming request.
    Answer(RequestKey),
    /// An error for a message that never became a request.
    Refusal,
    /// A notification that belongs to no request.
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
/// 1. A frame whose write has begun is finished: it is neither moved nor withdrawn.
/// 2. Only cancels overtake, and only frames that have not begun. A cancel exists only for a call
///    whose write has begun, so it cannot overtake its own request.
/// 3. Everything else leaves in the order in which it was pushed (**order**).
#[derive(Clone, Default, Debug)]
pub(super) struct Queue {
    frames: VecDeque<Frame>,
    begun: usize,
    /// Sums of the frames that have not begun, without their number, which follows from the deque.
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

    /// Begins the write of the first waiting frame. Its bytes go to the writer, and only its place
    /// stays.
    pub(super) fn begin(&mut self) -> Option<Frame> {
        let place = self.frames.get_mut(self.begun)?;
        let bytes = std::mem::take(&mut place.bytes);
        let frame = Frame { bytes, ..*place };
        self.begun += 1;
        self.count(&frame, usize::wrapping_sub);
        Some(frame)
    }

    /// The first frame that has begun is fully written.
    pub(super) fn finish(&mut self) -> Option<Owner> {
        if self.begun == 0 {
            return None;
        }
        self.begun -= 1;
        self.frames.pop_front().map(|place| place.owner)
    }

    /// Removes the matching frames that have not begun, and returns how many there were.
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

    /// Forgets the frames that have begun, since the stream they were written on is gone.
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

    /// Frees spare memory.
    pub(super) fn shrink(&mut self) {
        self.frames.shrink_to_fit();
    }

    /// The sums of the frames that have not begun.
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
            // Not counted: there is at most one cancel for each call that was in flight, so they
            // are bounded.
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
