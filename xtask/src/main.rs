//! The project's own commands: `cargo xtask <command>`.

mod conformance;
mod cost;
mod fuzz;
mod interop;
mod rules;
mod soak;
mod step;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <command>

  check                format, clippy, and the tests that start no processes: a few minutes
  test                 everything CI runs: format, clippy, tests, docs, interop, conformance,
                       features, planted bugs, soak, costs, limits
  fuzz [--seconds N]   libFuzzer on every target in fuzz/, N seconds each (default 30)
  conformance          the official conformance suite, against conformance/baseline.txt
  cost                 allocations, locks, tasks and instructions for one call, beside the floor
  interop              Belay against the Python, TypeScript and Rust SDKs, from their registries
  soak [--seconds N] [--seed S]
                       random traffic on every wire at once, and whether everything is accounted
                       for (default 60 s); the seed that a failure names replays its schedule
  soak --planted       whether a short soak finds each of some planted bugs
  rules                whether each rule in docs/lifecycle.md leads to a test of its name
  help                 this
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["check"] => test::check(),
        ["test"] => test::run(),
        ["fuzz"] => fuzz::run(30),
        ["fuzz", "--seconds", seconds] => match seconds.parse() {
            Ok(seconds) => fuzz::run(seconds),
            Err(_) => Err(format!("--seconds wants a whole number, not {seconds:?}")),
        },
        ["conformance"] => conformance::run(),
        ["cost"] => cost::run(),
        ["interop"] => interop::run(),
        ["soak", "--planted"] => soak::planted_bugs(),
        ["soak", options @ ..] => soak::run(options),
        ["rules"] => rules::run(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("unknown command: {}\n\n{HELP}", other.join(" "))),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
