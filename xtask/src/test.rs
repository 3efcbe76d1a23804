//! Everything CI runs.

use std::collections::BTreeSet;

use crate::step::{self, cargo, output, target};
use crate::{conformance, cost, interop, rules, soak};

pub(crate) fn run() -> Result<(), String> {
    step::run("format", &mut cargo(&["fmt", "--all", "--check"]))?;
    step::run(
        "clippy",
        &mut cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ]),
    )?;
    rules::run()?;
    tests()?;
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
    // What seals the state of rounds would be 18 more.
    let minimal = ["--no-default-features", "--features", "server,stdio"];
    dependencies("belay-mcp", &minimal, 50)?;
    println!("\nxtask: everything passed");
    Ok(())
}

/// With nextest if it is there, else without.
fn tests() -> Result<(), String> {
    let nextest = cargo(&["nextest", "--version"]).output();
    match nextest.is_ok_and(|output| output.status.success()) {
        true => step::run("tests", &mut cargo(&["nextest", "run", "--workspace"])),
        false => step::run(
            "tests",
            &mut cargo(&["test", "--workspace", "--lib", "--bins", "--tests"]),
        ),
    }
}

/// Every feature on every wire once more, for people who build without what is on by default.
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

/// Each feature compiles alone.
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

/// The suites that look for broken rules must find the bugs that are planted for them: in the engine,
/// and in a real server. They are behind a `--cfg`, so this is a build of its own, in a folder of its
/// own.
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

/// A library that people build on pulls in little.
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
