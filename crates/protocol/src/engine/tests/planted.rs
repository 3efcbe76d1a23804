//! A green run only means something if the suite can find bugs: each planted bug must be caught,
//! and the engine without one must pass the same runs.

use super::super::planted::{Bug, PLANTED};
use super::conversations::converse;
use super::explore::{PLANS, Plan, explore};

/// The plans to explore: all except the large ones, or those that can show a bug of one wire only.
fn plans(bug: Bug) -> impl Iterator<Item = &'static Plan> {
    PLANS.iter().filter(move |plan| match bug {
        Bug::BrokenStreamNeverExpires => plan.name == "server legacy http",
        _ => !LARGE.contains(&plan.name),
    })
}

/// Few enough that all bugs are tried in seconds. The large plans are left to the full run: they
/// add breadth, and would catch a bug that only they can show.
const SEEDS: u64 = 4_000;
const LARGE: [&str; 3] = [
    "server legacy pipe",
    "server modern pipe",
    "server legacy http",
];

#[test]
fn every_planted_bug_is_caught() {
    let mut missed = Vec::new();
    println!(
        "{:<34} {:<28} by random conversations",
        "planted bug", "by exploration"
    );
    for bug in Bug::ALL {
        PLANTED.set(Some(bug));
        let explored = plans(bug).find_map(|plan| explore(*plan).err());
        let conversed = (0..SEEDS).find_map(|seed| Some((seed, converse(seed).err()?)));
        PLANTED.set(None);
        let by_exploration = explored.as_ref().map_or("–", |(broken, _)| broken.rule);
        let by_conversation = conversed.as_ref().map_or("–".to_owned(), |(seed, broken)| {
            format!("{} (seed {seed})", broken.rule)
        });
        let name = format!("{bug:?}");
        println!("{name:<34} {by_exploration:<28} {by_conversation}");
        if explored.is_none() && conversed.is_none() {
            missed.push(bug);
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

#[test]
fn without_a_planted_bug_the_same_runs_pass() {
    let plans = PLANS.iter().filter(|plan| !LARGE.contains(&plan.name));
    for plan in plans {
        explore(*plan).unwrap_or_else(|(broken, trace)| panic!("{broken}\nafter {trace}"));
    }
    for seed in 0..SEEDS {
        converse(seed).unwrap_or_else(|broken| panic!("{broken} (seed {seed})"));
    }
}
