//! The scenarios of the suite, and their verdicts.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use serde_json::Value;

use super::legs::Side;

#[derive(Clone, Debug)]
pub(super) struct Scenario {
    pub(super) name: String,
    pub(super) side: Side,
    pub(super) scored: Scored,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scored {
    Required,
    NotScored,
}

/// Parses the list of scenarios that the suite prints.
pub(super) fn listed(text: &str) -> Vec<Scenario> {
    let mut section = None;
    let mut scenarios = Vec::new();
    for line in text.lines() {
        section = match line {
            _ if line.starts_with("Server scenarios") => Some((Scored::Required, Side::Server)),
            _ if line.starts_with("Client scenarios") => Some((Scored::Required, Side::Client)),
            _ if line.starts_with("Run and reported") => Some((Scored::NotScored, Side::Server)),
            _ => section,
        };
        let Some((scored, side)) = section else {
            continue;
        };
        let Some(entry) = line.trim().strip_prefix("- ") else {
            continue;
        };
        let (name, side) = match entry.split_once(' ') {
            Some((name, "[server]")) => (name, Side::Server),
            Some((name, "[client]")) => (name, Side::Client),
            _ => (entry, side),
        };
        let name = name.to_owned();
        scenarios.push(Scenario { name, side, scored });
    }
    scenarios
}

/// The verdict on a scenario.
#[derive(Clone, Default, Debug)]
pub(super) struct Verdict {
    pub(super) succeeded: usize,
    /// The names of the checks that failed or warned.
    wrong: Vec<String>,
}

impl Verdict {
    pub(super) fn passed(&self) -> bool {
        self.wrong.is_empty() && self.succeeded > 0
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.wrong.is_empty(), self.succeeded) {
            (true, 0) => f.write_str("no check ran"),
            _ => write!(
                f,
                "{} checks succeeded, not {}",
                self.succeeded,
                self.wrong.join(", ")
            ),
        }
    }
}

/// Reads the verdicts below a folder, by scenario. A scenario's folder name ends with a date.
pub(super) fn verdicts(folder: &Path, side: Side) -> BTreeMap<String, Verdict> {
    let mut verdicts = BTreeMap::new();
    look(folder, folder, side, &mut verdicts);
    verdicts
}

fn look(root: &Path, folder: &Path, side: Side, verdicts: &mut BTreeMap<String, Verdict>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            look(root, &path, side, verdicts);
        } else if path.file_name().is_some_and(|name| name == "checks.json")
            && let Some(name) = name_of(root, folder, side)
            && let Some(verdict) = read(&path)
        {
            verdicts.insert(name, verdict);
        }
    }
}

fn name_of(root: &Path, folder: &Path, side: Side) -> Option<String> {
    let name = folder.strip_prefix(root).ok()?.to_str()?.replace('\\', "/");
    // …-2026-11-16T08-27-23-716Z
    let dated = name.len().checked_sub("-2026-11-16T08-27-23-716Z".len())?;
    let name = name.get(..dated)?;
    Some(match side {
        Side::Server => name.strip_prefix("server-").unwrap_or(name).to_owned(),
        Side::Client => name.to_owned(),
    })
}

fn read(path: &Path) -> Option<Verdict> {
    let text = std::fs::read_to_string(path).ok()?;
    let checks: Vec<Value> = serde_json::from_str(&text).ok()?;
    let mut verdict = Verdict::default();
    for check in checks {
        match check["status"].as_str() {
            Some("SUCCESS") => verdict.succeeded += 1,
            Some(wrong @ ("FAILURE" | "WARNING")) => {
                let id = check["id"].as_str().unwrap_or_default();
                verdict
                    .wrong
                    .push(format!("{id} ({})", wrong.to_lowercase()));
            }
            _ => {}
        }
    }
    Some(verdict)
}
