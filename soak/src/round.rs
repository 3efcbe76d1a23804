//! A round is what a raw worker does on a pipe until everything is answered. It is a plan that is
//! drawn before any of it is done.

use std::time::Duration;

use crate::ask::{Ask, MALFORMED};
use crate::observer::{Observer, Request, cancel};
use crate::random::Random;

/// Some steps, and a time without reading.
pub(crate) struct Round {
    pub(crate) steps: Vec<Step>,
    /// For this long nothing is read.
    pub(crate) unread: Duration,
}

pub(crate) enum Step {
    /// Writes several frames together.
    Write {
        frames: Vec<Vec<u8>>,
        /// Whether they are written in pieces that end anywhere.
        torn: bool,
    },
    Wait(Duration),
}

impl Round {
    /// Draws a round of any kind. Its last frame is an echo, whose answer shows that all cancels
    /// before it were read.
    pub(crate) fn draw(random: &mut Random, observer: &mut Observer) -> Self {
        let mut round = match random.below(8) {
            0 => Self::one_by_one(random, observer),
            1 => Self::burst(random, observer),
            2 => Self::hangs_cancelled(random, observer),
            3 => Self::everything_at_once(random, observer),
            4 => Self::unread_answers(random, observer),
            5 => Self::counts_cancelled_on_the_way(random, observer),
            6 => Self::slow_to_stop(random, observer),
            _ => Self::ids_in_use(random, observer),
        };
        let last = observer.ask(Ask::Echo(1));
        round.write(vec![last.bytes()], false);
        round
    }

    fn new() -> Self {
        Self {
            steps: Vec::new(),
            unread: Duration::ZERO,
        }
    }

    fn write(&mut self, frames: Vec<Vec<u8>>, torn: bool) {
        self.steps.push(Step::Write { frames, torn });
    }

    fn wait(&mut self, span: Duration) {
        self.steps.push(Step::Wait(span));
    }

    /// Requests that stay in flight at the end of a life: hangs, and echoes after them.
    pub(crate) fn left_in_flight(random: &mut Random, observer: &mut Observer) -> Vec<Vec<u8>> {
        let hangs = random.between(0, 10);
        let echoes = random.between(0, 40);
        let hangs = (0..hangs).map(|_| Ask::Hang);
        let all = hangs.chain((0..echoes).map(|_| Ask::Echo(10)));
        all.map(|ask| observer.ask(ask).bytes()).collect()
    }

    fn one_by_one(random: &mut Random, observer: &mut Observer) -> Self {
        let mut round = Self::new();
        for _ in 0..random.between(1, 8) {
            let ask = Ask::any_that_ends(random);
            round.write(vec![observer.ask(ask).bytes()], random.one_in(4));
            if random.one_in(3) {
                round.wait(random.millis(0, 5));
            }
        }
        round
    }

    /// Hundreds of requests in one write: more than the limit of handlers.
    fn burst(random: &mut Random, observer: &mut Observer) -> Self {
        let mut round = Self::new();
        let frames = (0..random.between(100, 800)).map(|_| {
            let ask = match random.one_in(50) {
                true => Ask::any_that_ends(random),
                false => Ask::Echo(random.between(1, 200) as usize),
            };
            observer.ask(ask).bytes()
        });
        let frames = frames.collect();
        round.write(frames, random.one_in(4));
        round
    }

    fn hangs_cancelled(random: &mut Random, observer: &mut Observer) -> Self {
        let mut round = Self::new();
        let hangs: Vec<Request> = (0..random.between(1, 60))
            .map(|_| observer.ask(Ask::Hang))
            .collect();
        round.write(hangs.iter().map(Request::bytes).collect(), false);
        round.wait(random.millis(0, 60));
        let mut cancels: Vec<_> = hangs.iter().map(Request::cancel).collect();
        if random.one_in(2) {
            // Some duplicates, and a cancel for an unknown id.
            cancels.extend(hangs.iter().take(3).map(Request::cancel));
            cancels.push(cancel(&"nobody".into()));
        }
        round.write(cancels, random.one_in(4));
        round
    }

    /// Hangs that are cancelled at once, malformed frames, and requests that end without a cancel.
    fn everything_at_once(random: &mut Random, observer: &mut Observer) -> Self {
        let mut round = Self::new();
        let mut frames = Vec::new();
        for _ in 0..random.between(10, 80) {
            match random.below(5) {
                0 => {
                    let hang = observer.ask(Ask::Hang);
                    frames.extend([hang.bytes(), hang.cancel()]);
                }
                1 => frames.push(random.one_of(&MALFORMED).to_vec()),
                _ => frames.push(observer.ask(Ask::any_that_ends(random)).bytes()),
            }
        }
        round.write(frames, random.one_in(4));
        round
    }

    /// Large answers that are read only after a while.
    fn unread_answers(random: &mut Random, observer: &mut Observer) -> Self {
        let mut round = Self::new();
        let frames = (0..random.between(20, 60)).map(|_| {
            let length = random.between(1, 40_000) as usize;
            observer.ask(Ask::Echo(length)).bytes()
        });
        let frames = frames.collect();
        round.write(frames, false);
        round.unread = random.millis(50, 600);
        round
    }

    fn counts_cancelled_on_the_way(random: &mut Random, observer: &mut Observer) -> Self {
        let mut round = Self::new();
        let counts: Vec<Request> = (0..random.between(1, 20))
            .map(|_| {
                let to = random.between(5, 60);
                let delay_ms = random.between(0, 4);
                observer.ask(Ask::Count { to, delay_ms })
            })
            .collect();
        round.write(counts.iter().map(Request::bytes).collect(), false);
        round.wait(random.millis(0, 80));
        let some = counts.iter().filter(|_| random.one_in(2));
        let cancels = some.map(Request::cancel).collect();
        round.write(cancels, false);
        round
    }

    /// Handlers that take a while to clean up, and handlers that cannot be stopped.
    fn slow_to_stop(random: &mut Random, observer: &mut Observer) -> Self {
        let mut round = Self::new();
        let stopped: Vec<Request> = (0..random.between(1, 6))
            .map(|_| match random.one_in(3) {
                true => observer.ask(Ask::Block(random.between(1, 150))),
                false => observer.ask(Ask::Rollback(random.between(0, 150))),
            })
            .collect();
        round.write(stopped.iter().map(Request::bytes).collect(), false);
        round.wait(random.millis(0, 40));
        round.write(stopped.iter().map(Request::cancel).collect(), false);
        round
    }

    /// A second request with the same id is refused, and the first is not affected
    /// (**id-is-scoped**).
    fn ids_in_use(random: &mut Random, observer: &mut Observer) -> Self {
        let mut round = Self::new();
        let hang = observer.ask(Ask::Hang);
        let mut frames = vec![hang.bytes()];
        for _ in 0..random.between(1, 5) {
            frames.push(observer.ask_as(hang.id.clone(), Ask::Duplicate).bytes());
        }
        round.write(frames, false);
        round.wait(random.millis(0, 20));
        round.write(vec![hang.cancel()], false);
        round
    }
}
