//! Measures the cost of one call: allocations, locks, tasks and instructions, compared with the
//! floor.
//!
//! ```text
//! cargo xtask cost
//! ```
//!
//! Each figure is the difference between a long and a short run of a process, divided by the
//! difference in calls, so that one-time costs do not count. The floor does the least that any
//! implementation does: it parses the message with `serde_json`, uses hyper on HTTP, and writes an
//! answer.
//!
//! | command | what it does |
//! |---|---|
//! | `counts` | allocations, locks and tasks; needs a build with `--cfg belay_counted` |
//! | `check` | compares these with the budgets in `scenario.rs` |
//! | `instructions` | counts instructions in user space with callgrind |
//! | `serve WIRE WHO`, `call WIRE ERA WHO N` | runs one of the measured processes |

mod client;
mod counts;
mod load;
mod scenario;
mod server;

use std::process::ExitCode;

use scenario::{Scenario, Who};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["serve", wire, who] => {
            server::serve(wire.parse().expect("a wire"), who.parse().expect("who"))
        }
        ["call", wire, era, who, calls] => client::call(
            wire.parse().expect("a wire"),
            era.parse().expect("an era"),
            who.parse().expect("who"),
            calls.parse().expect("a number"),
        ),
        ["counts"] => counts(),
        ["check"] => return check(),
        ["instructions"] => instructions(),
        _ => {
            eprintln!("usage: belay-cost counts | check | instructions");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

fn counts() {
    println!(
        "{:<24} {:>12} {:>8} {:>8}",
        "one call", "allocations", "locks", "tasks"
    );
    for scenario in scenario::ALL {
        for who in [Who::Belay, Who::Floor] {
            let each = scenario.counts(who);
            println!(
                "{:<24} {:>12.1} {:>8.1} {:>8.1}",
                scenario.title(who),
                each.allocations,
                each.locks,
                each.tasks
            );
        }
    }
}

/// Checks that every count is within its budget.
fn check() -> ExitCode {
    let mut over = 0;
    for scenario in scenario::ALL {
        let (each, budget) = (scenario.counts(Who::Belay), scenario.budget);
        for (what, each, budget) in [
            ("allocations", each.allocations, budget.0),
            ("locks", each.locks, budget.1),
            ("tasks", each.tasks, budget.2),
        ] {
            // The tolerance covers a table that grows and one turn of the driver, in a thousand
            // calls.
            let within = each <= f64::from(budget) + 0.5;
            let verdict = if within { "" } else { "   OVER ITS BUDGET" };
            println!(
                "{:<24} {what:<12} {each:>6.1} of {budget}{verdict}",
                scenario.title(Who::Belay)
            );
            over += u32::from(!within);
        }
    }
    if over > 0 {
        eprintln!("{over} of the costs are over their budgets (cost/src/scenario.rs)");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn instructions() {
    println!("{:<24} {:>12} {:>8}", "one call", "instructions", "ratio");
    for scenario in scenario::ALL {
        let floor = scenario.instructions(Who::Floor);
        println!("{:<24} {floor:>12.0}", scenario.title(Who::Floor));
        let belay = scenario.instructions(Who::Belay);
        println!(
            "{:<24} {belay:>12.0} {:>8.2}",
            scenario.title(Who::Belay),
            belay / floor
        );
    }
}

impl Scenario {
    fn counts(&self, who: Who) -> counts::Counts {
        let (short, long) = (self.run(who, 200, None), self.run(who, 1200, None));
        (long.counts - short.counts) / 1000.0
    }

    fn instructions(&self, who: Who) -> f64 {
        let measured = |calls| self.run(who, calls, Some("callgrind")).instructions;
        (measured(1200) - measured(200)) as f64 / 1000.0
    }
}
