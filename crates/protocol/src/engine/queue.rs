//! The frames that wait to be written on one exchange.

use std::collections::VecDeque;

use bytes::Bytes;

use super::exchange::Sums;
use super::{CallId, RequestKey, Waiting};
use crate::types::error_code;

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
