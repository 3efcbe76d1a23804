//! Compares Belay with rmcp and with the floor, alternating in one run.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml [-- WHAT… --millis 1000 --rounds 5]
//! ```
//!
//! | what | which ratios |
//! |---|---|
//! | `servers` | answers per second and CPU time of a server, for one `echo` of 64 bytes |
//! | `clients` | the same for a client, against the floor's server, on one thread and on two |
//! | `in-flight` | CPU time of a call beside 0 to 10,000 others, relative to a call alone |
//! | `sessions` | memory of idle legacy sessions, 1,000 to 100,000 of them |
//!
//! The floor is the least that any implementation does: messages are parsed with `serde_json` and
//! go through a pipe or hyper. Machines differ and are shared, so all results are ratios within one
//! run.

mod clients;
mod growth;
mod measure;
mod process;
mod raw;
mod servers;

use std::time::Duration;

use belay_cost::messages::Era;
use measure::{Plan, compare};

/// Which implementation is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Floor,
    Belay,
    Rmcp,
    /// rmcp, answering with JSON where it can.
    RmcpJson,
}

impl Who {
    const ALL: [Self; 4] = [Self::Floor, Self::Belay, Self::Rmcp, Self::RmcpJson];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Belay => "belay",
            Self::Rmcp => "rmcp",
            Self::RmcpJson => "rmcp-json",
        }
    }

    fn named(name: &str) -> Self {
        let known = Self::ALL.into_iter().find(|who| who.name() == name);
        known.expect("floor, belay, rmcp or rmcp-json")
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", wire, who] => return servers::run(wire, Who::named(who)),
        ["call", wire, era, who, beside, threads] => {
            let era = era.parse().expect("an era");
            let [beside, threads] = [beside, threads].map(|text| text.parse().expect("a number"));
            return clients::run(wire, era, Who::named(who), beside, threads);
        }
        _ => {}
    }
    let number = |name: &str, default: u64| {
        let at = words.iter().position(|word| *word == name);
        let value = at.and_then(|at| words.get(at + 1)?.parse().ok());
        value.unwrap_or(default)
    };
    let plan = Plan {
        span: Duration::from_millis(number("--millis", 1000)),
        rounds: number("--rounds", 5) as usize,
    };
    let all = ["servers", "clients", "in-flight", "sessions"];
    let chosen: Vec<&str> = all.into_iter().filter(|what| words.contains(what)).collect();
    let does = |what: &str| chosen.is_empty() || chosen.contains(&what);
    println!("{} rounds of {:?} each, alternating; medians\n", plan.rounds, plan.span);
    if does("servers") {
        servers(plan);
    }
    if does("clients") {
        clients(plan);
    }
    if does("in-flight") {
        growth::in_flight(plan);
    }
    if does("sessions") {
        growth::sessions();
    }
}

fn servers(plan: Plan) {
    measure::head("servers");
    let some = [Who::Floor, Who::Belay, Who::Rmcp];
    for era in [Era::Legacy, Era::Modern] {
        let title = format!("stdio, {}", era.name());
        compare(&title, &some, plan, |who| raw::Pipe::start(who, era, 64));
    }
    for (title, era, tool) in [
        ("HTTP, modern, JSON", Era::Modern, "echo"),
        ("HTTP, modern, events", Era::Modern, "count"),
        ("HTTP, legacy", Era::Legacy, "echo"),
    ] {
        let whos: &[Who] = match tool == "echo" && era == Era::Modern {
            true => &Who::ALL,
            false => &some,
        };
        compare(title, whos, plan, |who| raw::Http::start(who, era, tool));
    }
    println!();
}

fn clients(plan: Plan) {
    let whos = [Who::Floor, Who::Belay, Who::Rmcp];
    // The floor on a pipe always has one thread: it writes 32 calls, then reads 32 answers. On two
    // threads a client also pays for the scheduler that moves its callers.
    for threads in [1, 2] {
        measure::head(&format!("clients on {threads} thread(s), floor's server"));
        for wire in ["stdio", "http"] {
            for era in [Era::Legacy, Era::Modern] {
                let title = format!("{wire}, {}", era.name());
                let start = |who| clients::Client::start(wire, era, who, 0, threads);
                compare(&title, &whos, plan, start);
            }
        }
        println!();
    }
}
