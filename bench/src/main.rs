//! `echo` over stdio and HTTP: Belay beside rmcp and the floor, alternating in one run.
//!
//! ```text
//! cargo run --release --manifest-path bench/Cargo.toml [-- --seconds 1 --rounds 5]
//! ```
//!
//! The floor answers with a line, or a response, that was made before: what is left is the cost of
//! the pipe, with a write for each line, or of hyper. What is measured is the number of answers per second, and the time that the
//! server's process spends on each. Machines differ, and are shared: so all is shown as a ratio to
//! the floor of the same run.

mod http;
mod load;
mod servers;
mod stdio;

use std::time::Duration;

/// What a request looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

/// Who answers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    Floor,
    Belay,
    Rmcp,
    /// The same, answering with JSON where it can.
    RmcpJson,
}

impl Who {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Floor => "floor",
            Self::Belay => "belay",
            Self::Rmcp => "rmcp",
            Self::RmcpJson => "rmcp-json",
        }
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    if let ["serve", wire, who] = words[..] {
        return servers::run(wire, who);
    }
    let number = |name: &str, default: u64| {
        let at = words.iter().position(|word| *word == name);
        let value = at.and_then(|at| words.get(at + 1)?.parse().ok());
        value.unwrap_or(default)
    };
    let span = Duration::from_millis(number("--millis", 1000));
    let rounds = number("--rounds", 5) as usize;
    println!("echo: answers per second, server time per answer, and both beside the floor");
    println!("({rounds} rounds of {span:?} each, alternating; medians)\n");
    for era in [Era::Legacy, Era::Modern] {
        let whos = [Who::Floor, Who::Belay, Who::Rmcp];
        load::compare("stdio", era, &whos, rounds, |who| stdio::Server::start(who, era), |server| {
            server.load(span)
        });
    }
    for era in [Era::Legacy, Era::Modern] {
        let whos = match era {
            Era::Legacy => vec![Who::Floor, Who::Belay, Who::Rmcp],
            Era::Modern => vec![Who::Floor, Who::Belay, Who::Rmcp, Who::RmcpJson],
        };
        load::compare("http", era, &whos, rounds, |who| http::Server::start(who, era), |server| {
            server.load(span)
        });
    }
}
