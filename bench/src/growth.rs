//! Measures how the cost grows with the number of calls and sessions.

use std::time::Duration;

use belay_cost::messages::Era;

use crate::Who;
use crate::clients::Client;
use crate::measure::{Plan, Round, Subject, alternate, median};
use crate::raw::{Connection, Pipe, listening};

/// After this time a session counts as idle.
const IDLE: Duration = Duration::from_secs(17);

const BESIDE: [usize; 5] = [0, 10, 100, 1_000, 10_000];

/// The CPU time of a call while `BESIDE` other calls are in flight that are never answered.
pub(crate) fn in_flight(plan: Plan) {
    print!("{:<36}", "CPU of a call beside others");
    BESIDE.iter().for_each(|beside| print!(" {beside:>8}"));
    println!();
    for era in [Era::Legacy, Era::Modern] {
        row(&format!("server, stdio, {}", era.name()), plan, |beside| {
            let mut server = Pipe::start(Who::Belay, era, 64);
            server.hang(era, beside);
            server
        });
    }
    for (wire, era) in [
        ("stdio", Era::Legacy),
        ("stdio", Era::Modern),
        ("http", Era::Modern),
    ] {
        let title = format!("client, {wire}, {}", era.name());
        row(&title, plan, |beside| Client::start(wire, era, Who::Belay, beside, 2));
    }
    println!();
}

fn row<S: Subject>(title: &str, plan: Plan, start: impl Fn(usize) -> S) {
    let mut subjects: Vec<S> = BESIDE.into_iter().map(start).collect();
    let seen = alternate(&mut subjects, plan);
    let each: Vec<f64> = seen.iter().map(|rounds| median(rounds, Round::micros_each)).collect();
    print!("{title:<36}");
    each.iter().for_each(|one| print!(" {:>8.2}", one / each[0]));
    println!();
}

/// The memory of idle legacy sessions.
pub(crate) fn sessions() {
    let (server, address) = listening(Who::Belay);
    let mut connection = Connection::open(&address);
    connection.begin_session();
    println!(
        "{:<36} {:>10} {:>14} {:>14}",
        "legacy sessions", "KiB", "each, new", "each, idle"
    );
    let (mut open, before) = (1_u32, server.memory());
    for wanted in [1_000, 10_000, 100_000] {
        while open < wanted {
            connection.begin_session();
            open += 1;
        }
        let each = |memory: u64| memory.saturating_sub(before) as f64 / f64::from(open);
        let new = server.memory();
        // A server frees memory that an idle session does not need.
        std::thread::sleep(IDLE);
        let idle = server.memory();
        // The server has closed the idle connection meanwhile.
        connection = Connection::open(&address);
        println!("{open:<36} {new:>10} {:>14.2} {:>14.2}", each(new), each(idle));
    }
    println!();
}
