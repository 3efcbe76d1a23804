//! Installs other SDKs in the build directory, and runs the interoperability checks against them.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::step::{self, cargo, root, target};

/// The folder, and the packages for it.
const PYTHON: [(&str, &str); 3] = [
    ("python1", "mcp==1.30.0"),
    ("python2", "mcp==2.3.0"),
    ("time", "mcp-server-time==2026.10.19"),
];
const TYPESCRIPT: [(&str, &[&str]); 4] = [
    ("inspector", &["@modelcontextprotocol/inspector@0.15.0"]),
    ("typescript1", &["@modelcontextprotocol/sdk@1.32.2"]),
    (
        "typescript2",
        &[
            "@modelcontextprotocol/client@2.4.0",
            "@modelcontextprotocol/server@2.4.0",
        ],
    ),
    (
        "everything",
        &["@modelcontextprotocol/server-everything@2026.8.31"],
    ),
];

pub(crate) fn run() -> Result<(), String> {
    let folder = target("interop");
    for (name, package) in PYTHON {
        python(&folder.join(name), package)?;
        copy_scripts(name, &folder.join(name))?;
    }
    for (name, packages) in TYPESCRIPT {
        typescript(&folder.join(name), packages)?;
        copy_scripts(name, &folder.join(name))?;
    }
    let manifest = root().join("interop/peers/rmcp/Cargo.toml");
    let mut rmcp = cargo(&["build", "--quiet", "--locked", "--manifest-path"]);
    rmcp.arg(manifest)
        .env("CARGO_TARGET_DIR", folder.join("rmcp"));
    step::run("rmcp", &mut rmcp)?;
    let build = [
        "build",
        "--quiet",
        "--package",
        "belay-cli",
        "--package",
        "belay-interop",
    ];
    step::run("belay", &mut cargo(&build))?;
    let mut interop = Command::new(target("debug/belay-interop"));
    interop.arg(&folder).arg(target("debug/belay"));
    step::run("interop", &mut interop)
}

/// Creates a virtual environment, unless it exists.
fn python(place: &Path, package: &str) -> Result<(), String> {
    once(place, package, || {
        let mut venv = Command::new("python3");
        step::run("python3 -m venv", venv.args(["-m", "venv"]).arg(place))?;
        let mut pip = Command::new(place.join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", package]);
        step::run(package, &mut pip)
    })
}

pub(crate) fn typescript(place: &Path, packages: &[&str]) -> Result<(), String> {
    let all = packages.join(" ");
    once(place, &all, || {
        // A package manifest of its own, because otherwise npm looks for one in the parent folders.
        let manifest = r#"{ "private": true, "type": "module" }"#;
        write(&place.join("package.json"), manifest)?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
        step::run(&all, npm.args(packages).current_dir(place))
    })
}

/// Runs an installation, unless it was completed before.
fn once(
    place: &Path,
    what: &str,
    install: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let stamp = place.join("installed");
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == what) {
        return Ok(());
    }
    // An incomplete installation is removed.
    let _ = fs::remove_dir_all(place);
    fs::create_dir_all(place).map_err(|error| format!("{}: {error}", place.display()))?;
    install()?;
    write(&stamp, what)
}

/// Copies the scripts of this version and those that both versions share beside the installed
/// modules, because modules are looked up from the script's folder.
fn copy_scripts(name: &str, place: &Path) -> Result<(), String> {
    let peers = root().join("interop/peers");
    let shared = name.trim_end_matches(char::is_numeric);
    let folders = [peers.join(shared), peers.join(name)];
    let entries = folders
        .iter()
        .filter_map(|folder| fs::read_dir(folder).ok());
    for entry in entries.flatten().flatten() {
        let to = place.join(entry.file_name());
        fs::copy(entry.path(), &to).map_err(|error| format!("{}: {error}", to.display()))?;
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}
