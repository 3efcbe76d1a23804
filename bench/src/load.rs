//! Alternates between servers, and shows what came of it.

use std::time::Duration;

use crate::{Era, Who};

/// What one round has come to.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    pub(crate) answers: u64,
    pub(crate) span: Duration,
    /// Time that the server's process spent.
    pub(crate) spent: Duration,
}

impl Round {
    fn per_second(&self) -> f64 {
        self.answers as f64 / self.span.as_secs_f64()
    }

    fn micros_each(&self) -> f64 {
        self.spent.as_secs_f64() * 1e6 / self.answers as f64
    }
}

pub(crate) fn compare<S>(
    wire: &str,
    era: Era,
    whos: &[Who],
    rounds: usize,
    start: impl Fn(Who) -> S,
    load: impl Fn(&mut S) -> Round,
) {
    let mut servers: Vec<S> = whos.iter().map(|who| start(*who)).collect();
    let mut seen: Vec<Vec<Round>> = vec![Vec::new(); whos.len()];
    // The first round is for warming up.
    for round in 0..=rounds {
        for (server, seen) in servers.iter_mut().zip(&mut seen) {
            let came = load(server);
            if round > 0 {
                seen.push(came);
            }
        }
    }
    let median = |rounds: &[Round], value: fn(&Round) -> f64| {
        let mut values: Vec<f64> = rounds.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let era = match era {
        Era::Legacy => "legacy",
        Era::Modern => "modern",
    };
    println!("{wire}, {era}");
    let floor = (
        median(&seen[0], Round::per_second),
        median(&seen[0], Round::micros_each),
    );
    for (who, rounds) in whos.iter().zip(&seen) {
        let rate = median(rounds, Round::per_second);
        let each = median(rounds, Round::micros_each);
        println!(
            "  {:<10} {rate:>9.0}/s  {each:>7.2} µs    {:>5.2} of the floor's rate, {:>6.2} times its time",
            who.name(),
            rate / floor.0,
            each / floor.1,
        );
    }
    println!();
}

/// The time that a process has spent so far.
pub(crate) fn spent(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let rest = stat.rsplit(") ").next().unwrap_or_default();
    let ticks = rest.split(' ').skip(11).take(2);
    let ticks: u64 = ticks.filter_map(|tick| tick.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
