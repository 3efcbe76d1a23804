//! Runs everything that CI runs.

use std::collections::BTreeSet;

use crate::step::{self, cargo, output, target};
use crate::{conformance, cost, interop, rules, soak};

pub(crate) fn run() -> Result<(), String> {
    lints()?;
    tests(&["--workspace", "--lib", "--bins", "--tests"])?;
    without_the_validator()?;
    step::run(
        "doc tests",
        &mut cargo(&["test", "--workspace", "--doc", "--quiet"]),
    )?;
    step::run(
        "docs",
        cargo(&["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"),
    )?;
    interop::run()?;
    conformance::run()?;
    features()?;
    planted_bugs()?;
    soak::run(&["--seconds", "60"])?;
    soak::planted_bugs()?;
    cost::check()?;
    dependencies("belay-protocol", &[], 20)?;
    // Encrypting the state of round trips would add 18 more dependencies.
    let minimal = ["--no-default-features", "--features", "server,stdio"];
    dependencies("belay-mcp", &minimal, 50)?;
    println!("\nxtask: everything passed");
    Ok(())
}

/// Runs what a contributor wants after each change: lints, and the tests that start no processes.
pub(crate) fn check() -> Result<(), String> {
    lints()?;
    tests(&["--package=belay-protocol", "--package=belay-schema"])?;
    tests(&["--package=belay-mcp", "--lib", "--all-features"])?;
    println!("\nxtask: everything passed; `cargo xtask test` runs the rest");
    Ok(())
}

fn lints() -> Result<(), String> {
    step::run("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    let clippy = [
        "clippy",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ];
    step::run("clippy", &mut cargo(&clippy))?;
    rules::run()
}

/// Runs the tests that are selected, with nextest if it is installed.
fn tests(selected: &[&str]) -> Result<(), String> {
    let nextest = cargo(&["nextest", "--version"]).output();
    let mut tests = match nextest.is_ok_and(|output| output.status.success()) {
        true => cargo(&["nextest", "run"]),
        false => cargo(&["test"]),
    };
    step::run("tests", tests.args(selected))
}

/// Runs the feature tests on every wire once more without the schema validator, which is on by
/// default.
fn without_the_validator() -> Result<(), String> {
    step::run(
        "features without the validator",
        &mut cargo(&[
            "test",
            "--quiet",
            "--package",
            "belay-mcp",
            "--no-default-features",
            "--features",
            "client,http,macros,sealed,server,stdio",
            "--test",
            "links",
            "features::",
        ]),
    )
}

/// Checks that each feature compiles alone.
fn features() -> Result<(), String> {
    for features in [
        "",
        "client",
        "sealed",
        "server",
        "macros",
        "validate",
        "http",
        "stdio",
        "tls",
        "client,stdio",
        "server,stdio",
        "client,http",
        "server,http",
        "client,tls",
        "client,validate",
        "server,validate",
    ] {
        let check = ["check", "--quiet", "--package", "belay-mcp"];
        let mut check = cargo(&check);
        check
            .args(["--no-default-features", "--features", features])
            .env("RUSTFLAGS", "-D warnings")
            .env("CARGO_TARGET_DIR", target("features"));
        step::run(&format!("features: {features}"), &mut check)?;
    }
    Ok(())
}

/// Checks that the suites find the bugs planted for them, in the engine and in a real server. The
/// bugs are behind a `--cfg`, so this is a separate build in its own folder.
fn planted_bugs() -> Result<(), String> {
    for (step, target_of_test) in [
        ("planted bugs", ["--package=belay-protocol", "--lib"]),
        (
            "planted bugs at the wire",
            ["--package=belay-cli", "--test=processes"],
        ),
    ] {
        let mut test = cargo(&["test"]);
        test.args(target_of_test)
            .args(["--", "--nocapture", "every_planted_bug_is_caught"])
            .env("RUSTFLAGS", step::PLANTED)
            .env("CARGO_TARGET_DIR", target("planted"));
        step::run(step, &mut test)?;
    }
    Ok(())
}

/// Checks that a library has few dependencies.
fn dependencies(package: &str, features: &[&str], limit: usize) -> Result<(), String> {
    let mut tree = cargo(&["tree", "--package", package, "--edges", "normal"]);
    let tree = output("cargo tree", tree.args(["--prefix", "none"]).args(features))?;
    let crates: BTreeSet<&str> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    let with = features.join(" ");
    println!(
        "\n── {package} {with} is built from {} crates",
        crates.len()
    );
    match crates.len() <= limit {
        true => Ok(()),
        false => Err(format!(
            "{package} is built from {} crates, where {limit} are allowed: {crates:?}",
            crates.len()
        )),
    }
}
