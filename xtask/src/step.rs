//! One step of a longer run: a command, its name and how long it took.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// The flags for planted bugs and for counting the cost of a call: one build for both.
pub(crate) const PLANTED: &str = "--cfg belay_planted --cfg belay_counted";

/// The root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .expect("xtask/ lies in the root")
}

/// A folder in the build directory.
pub(crate) fn target(name: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    let target = target.map_or_else(|| root().join("target"), PathBuf::from);
    target.join(name)
}

/// The cargo that runs this program.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(root());
    command
}

/// Runs a command, and passes its output through.
pub(crate) fn run(name: &str, command: &mut Command) -> Result<(), String> {
    println!("\n── {name}");
    let start = Instant::now();
    let status = command
        .status()
        .map_err(|error| format!("{name}: cannot run {:?}: {error}", command.get_program()))?;
    println!("── {name}: {:.1} s", start.elapsed().as_secs_f32());
    match status.success() {
        true => Ok(()),
        false => Err(format!("{name} failed ({status})")),
    }
}

/// Runs a command and returns its output.
pub(crate) fn output(name: &str, command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|error| format!("{name}: cannot run {:?}: {error}", command.get_program()))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!(
            "{name} failed: {}",
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}
