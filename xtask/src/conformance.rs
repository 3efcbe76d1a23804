//! Installs the official conformance suite in the build directory, and runs it against Belay.

use std::process::Command;

use crate::interop::typescript;
use crate::step::{self, cargo, root, target};

/// The suite needs a newer Node than many machines have, so Node is installed as well.
const PACKAGES: [&str; 2] = [
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
    "node@22",
];

pub(crate) fn run() -> Result<(), String> {
    let folder = target("conformance");
    let suite = folder.join("suite");
    typescript(&suite, &PACKAGES)?;
    let build = ["build", "--quiet", "--package", "belay-conformance"];
    step::run("belay-conformance", &mut cargo(&build))?;
    let modules = suite.join("node_modules");
    let mut conformance = Command::new(target("debug/conformance-suite"));
    conformance
        .arg(modules.join("node/bin/node"))
        .arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"))
        .arg(target("debug/conformance-server"))
        .arg(target("debug/conformance-client"))
        .arg(root().join("conformance/baseline.txt"))
        .arg(folder.join("results"));
    step::run("conformance", &mut conformance)
}
