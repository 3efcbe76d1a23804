//! Measures the cost of one call, compared with the floor.

use std::process::Command;

use crate::step::{self, cargo, target};

/// Prints allocations, locks and tasks per call, and instructions if valgrind is installed.
pub(crate) fn run() -> Result<(), String> {
    let counted = target("counted");
    let mut build = build(&["--release"]);
    build
        .env("RUSTFLAGS", "--cfg belay_counted")
        .env("CARGO_TARGET_DIR", &counted);
    step::run("the cost program, counting", &mut build)?;
    let mut counts = Command::new(counted.join("release/belay-cost"));
    step::run("counts", counts.arg("counts"))?;
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("\nwithout valgrind, no instructions are counted");
        return Ok(());
    }
    step::run("the cost program", &mut self::build(&["--release"]))?;
    let mut instructions = Command::new(target("release/belay-cost"));
    step::run("instructions", instructions.arg("instructions"))
}

/// Checks that allocations, locks and tasks are within their budgets. It builds in the folder of
/// the planted bugs, which are not active here, to share that build.
pub(crate) fn check() -> Result<(), String> {
    let folder = target("planted");
    let mut build = build(&[]);
    build
        .env("RUSTFLAGS", step::PLANTED)
        .env("CARGO_TARGET_DIR", &folder);
    step::run("the cost program, counting", &mut build)?;
    let mut check = Command::new(folder.join("debug/belay-cost"));
    step::run("costs", check.arg("check"))
}

fn build(options: &[&str]) -> Command {
    let mut build = cargo(&["build", "--quiet", "--package", "belay-cost"]);
    build.args(options);
    build
}
