//! Alternates between the compared programs, and prints the results.

use std::time::{Duration, Instant};

use crate::Who;
use crate::process::Process;

/// How long each round takes, and how many rounds there are.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) span: Duration,
    pub(crate) rounds: usize,
}

/// The result of one round.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) answers: u64,
    pub(crate) span: Duration,
    /// CPU time of the measured process.
    pub(crate) spent: Duration,
}

impl Round {
    fn per_second(&self) -> f64 {
        self.answers as f64 / self.span.as_secs_f64()
    }

    pub(crate) fn micros_each(&self) -> f64 {
        self.spent.as_secs_f64() * 1e6 / self.answers as f64
    }
}

/// A program that is measured.
pub(crate) trait Subject {
    /// The measured process.
    fn process(&self) -> &Process;

    /// Runs the load for this long, and returns the number of answers.
    fn answers(&mut self, span: Duration) -> u64;

    fn load(&mut self, span: Duration) -> Round {
        let (begun, before) = (Instant::now(), self.process().spent());
        Round {
            answers: self.answers(span),
            span: begun.elapsed(),
            spent: self.process().spent() - before,
        }
    }
}

/// Loads all of them in turn, so that other load on the machine affects all alike.
pub(crate) fn alternate<S: Subject>(subjects: &mut [S], plan: Plan) -> Vec<Vec<Round>> {
    let mut seen: Vec<Vec<Round>> = vec![Vec::new(); subjects.len()];
    // The first round is a warm-up.
    for round in 0..=plan.rounds {
        for (subject, seen) in subjects.iter_mut().zip(&mut seen) {
            let came = subject.load(plan.span);
            if round > 0 {
                seen.push(came);
            }
        }
    }
    seen
}

pub(crate) fn head(what: &str) {
    println!(
        "{what:<36} {:>10} {:>9} {:>8} {:>8} {:>10}",
        "calls/s", "CPU µs", "rate", "CPU", "peak KiB"
    );
}

/// Prints a line for each implementation: its rate and CPU time as ratios to the first.
pub(crate) fn compare<S: Subject>(title: &str, whos: &[Who], plan: Plan, start: impl Fn(Who) -> S) {
    let mut subjects: Vec<S> = whos.iter().map(|who| start(*who)).collect();
    let seen = alternate(&mut subjects, plan);
    let rate = |rounds: &[Round]| median(rounds, Round::per_second);
    let each = |rounds: &[Round]| median(rounds, Round::micros_each);
    let floor = (rate(&seen[0]), each(&seen[0]));
    for ((who, rounds), subject) in whos.iter().zip(&seen).zip(&subjects) {
        let (rate, each) = (rate(rounds), each(rounds));
        println!(
            "{:<36} {rate:>10.0} {each:>9.2} {:>8.2} {:>8.2} {:>10}",
            format!("{title}: {}", who.name()),
            rate / floor.0,
            each / floor.1,
            subject.process().peak(),
        );
    }
}

pub(crate) fn median(rounds: &[Round], value: impl Fn(&Round) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(value).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
