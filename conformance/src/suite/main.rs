//! Runs the official conformance suite, all four legs, and prints one table: `conformance-suite
//! NODE SUITE SERVER CLIENT BASELINE FOLDER`. `cargo xtask conformance` passes these paths.
//!
//! A scenario passes if none of its checks failed or warned, and at least one succeeded. The
//! baseline lists the scenarios that are known not to pass. It may only shrink: a scenario in it
//! that passes must be removed, and one that is not in it must pass.

mod legs;
mod scenarios;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use legs::{Leg, Side, Suite};
use scenarios::{Scenario, Scored, Verdict};

const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let Ok([node, suite, server, client, baseline, folder]) = <[PathBuf; 6]>::try_from(arguments)
    else {
        eprintln!("conformance-suite NODE SUITE SERVER CLIENT BASELINE FOLDER");
        return ExitCode::from(1);
    };
    let suite = Suite {
        node,
        script: suite,
        server,
        client,
        folder,
    };
    match run(&suite, &baseline) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(problem) => {
            eprintln!("conformance-suite: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(suite: &Suite, baseline: &Path) -> Result<bool, String> {
    let known = read_baseline(baseline)?;
    let mut results = Vec::new();
    for revision in REVISIONS {
        let scenarios = scenarios::listed(&suite.list(revision)?);
        for side in [Side::Server, Side::Client] {
            let mine: Vec<Scenario> = scenarios
                .iter()
                .filter(|scenario| scenario.side == side)
                .cloned()
                .collect();
            if mine.is_empty() {
                return Err(format!("{revision} has no scenarios for a {}", side.name()));
            }
            let leg = Leg { revision, side };
            let unexpected = |scenario: &Scenario, verdict: &Verdict| {
                !verdict.passed() && !known.contains(&leg.entry(&scenario.name))
            };
            results.push((leg, suite.run(leg, &mine, unexpected)?));
        }
    }
    print_table(&results);
    Ok(judge(&results, &known))
}

/// The baseline has one scenario per line. Text after a `#` is a comment.
fn read_baseline(path: &Path) -> Result<BTreeSet<String>, String> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let lines = text.lines().map(|line| match line.split_once('#') {
        Some((entry, _)) => entry.trim(),
        None => line.trim(),
    });
    let entries = lines.filter(|entry| !entry.is_empty());
    Ok(entries.map(str::to_owned).collect())
}

type Results = [(Leg, Vec<(Scenario, Verdict)>)];

fn print_table(results: &Results) {
    println!();
    println!(
        "{:<24}{:>12}{:>12}{:>10}",
        "leg", "required", "not scored", "checks"
    );
    for (leg, verdicts) in results {
        let count = |scored: Scored| {
            let all = verdicts.iter().filter(|(it, _)| it.scored == scored);
            let passed = all.clone().filter(|(_, verdict)| verdict.passed());
            format!("{}/{}", passed.count(), all.count())
        };
        let checks: usize = verdicts.iter().map(|(_, verdict)| verdict.succeeded).sum();
        println!(
            "{:<24}{:>12}{:>12}{checks:>10}",
            leg.to_string(),
            count(Scored::Required),
            count(Scored::NotScored),
        );
    }
    println!();
}

/// Prints the differences from the baseline.
fn judge(results: &Results, known: &BTreeSet<String>) -> bool {
    let mut good = true;
    let mut seen = BTreeSet::new();
    for (leg, verdicts) in results {
        for (scenario, verdict) in verdicts {
            let entry = leg.entry(&scenario.name);
            match (verdict.passed(), known.contains(&entry)) {
                (true, true) => {
                    good = false;
                    println!("passes, and is in the baseline: take out `{entry}`");
                }
                (false, false) => {
                    good = false;
                    println!("does not pass: {entry}: {verdict}");
                }
                _ => {}
            }
            seen.insert(entry);
        }
    }
    for gone in known.difference(&seen) {
        good = false;
        println!("is in the baseline, and there is no such scenario: {gone}");
    }
    if good && !known.is_empty() {
        println!("{} scenarios are known not to pass", known.len());
    }
    good
}
