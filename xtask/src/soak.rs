//! Runs the soak, and checks that it finds planted bugs.

use std::process::Command;

use crate::step::{self, cargo, target};

/// Builds the tool and the soak with the profile of the tests, and runs the soak. Its options:
/// `--seconds N`, `--seed S`.
pub(crate) fn run(options: &[&str]) -> Result<(), String> {
    step::run("belay and the soak", &mut build())?;
    let mut soak = Command::new(target("debug/belay-soak"));
    soak.arg(target("debug/belay")).args(options);
    step::run("soak", &mut soak)
}

/// Planted bugs that a short soak must find, in different places: missing and doubled answers, what
/// a server leaves running, and wrong cancels of a client.
const PLANTED: [&str; 7] = [
    "RefusalDropped",
    "RefusedTwice",
    "PanicAnswersNobody",
    "BrokenStreamNeverExpires",
    "ResponseOvertakesItsProgress",
    "CancelSentTwice",
    "TimeoutTellsNobody",
];

/// A soak that finds nothing only means something if it can find planted bugs.
pub(crate) fn planted_bugs() -> Result<(), String> {
    let folder = target("planted");
    let mut build = build();
    build
        .env("RUSTFLAGS", step::PLANTED)
        .env("CARGO_TARGET_DIR", &folder);
    step::run("belay and the soak, with planted bugs", &mut build)?;
    for bug in PLANTED {
        println!("\n── soak with {bug}");
        let mut soak = Command::new(folder.join("debug/belay-soak"));
        soak.arg(folder.join("debug/belay"))
            .args(["--seconds", "8", "--seed", "1"])
            .env("BELAY_PLANTED", bug);
        let found = soak.output().map_err(|error| error.to_string())?;
        let log = String::from_utf8_lossy(&found.stdout);
        // A soak that could not begin exits with another code.
        let problems = log.split_once("problems:\n").map(|(_, problems)| problems);
        match (found.status.code(), problems) {
            (Some(1), Some(problems)) => print!("{problems}"),
            _ => return Err(format!("the soak did not find {bug} in 8 s:\n{log}")),
        }
    }
    Ok(())
}

fn build() -> Command {
    let packages = ["--package", "belay-cli", "--package", "belay-soak"];
    let mut build = cargo(&["build", "--quiet"]);
    build.args(packages);
    build
}
