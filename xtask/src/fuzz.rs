//! libFuzzer on stable Rust.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::step::{self, cargo, root};

/// The flags that `cargo fuzz` passes, without the sanitizers, which need a nightly compiler. There
/// is no unsafe code for them to check.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Runs each target for this many seconds, after checking that a planted bug is found. New inputs
/// go to the build directory; those worth keeping are moved to `fuzz/corpus/` by hand.
pub(crate) fn run(seconds: u64) -> Result<(), String> {
    control()?;
    let binaries = build("", "target")?;
    for name in targets()? {
        let mut fuzz = fuzzer(&binaries, &name, seconds)?;
        step::run(&name, &mut fuzz)?;
    }
    Ok(())
}

/// A fuzzer that finds nothing only means something if it can find a planted bug.
fn control() -> Result<(), String> {
    let binaries = build("--cfg belay_planted", "target/planted")?;
    println!("\n── control: a planted bug");
    let found = fuzzer(&binaries, "envelope", 60)?
        .arg("-seed=1")
        .output()
        .map_err(|error| error.to_string())?;
    let log = String::from_utf8_lossy(&found.stderr);
    match !found.status.success() && log.contains("the planted bug was found") {
        true => {
            println!("── control: found");
            Ok(())
        }
        false => Err("the fuzzer did not find the planted bug in 60 s".into()),
    }
}

/// Builds all targets, and returns their folder.
fn build(cfg: &str, folder: &str) -> Result<PathBuf, String> {
    let host = host()?;
    let folder = fuzz().join(folder);
    let mut build = cargo(&["build", "--release"]);
    build
        .current_dir(fuzz())
        // With `--target`, the flags do not apply to build scripts.
        .args(["--target", &host])
        .env("CARGO_TARGET_DIR", &folder)
        .env("RUSTFLAGS", format!("--cfg fuzzing {cfg} {COVERAGE}"));
    step::run(&format!("build the targets {cfg}"), &mut build)?;
    Ok(folder.join(host).join("release"))
}

fn fuzzer(binaries: &Path, name: &str, seconds: u64) -> Result<Command, String> {
    let found = binaries.join("corpus").join(name);
    std::fs::create_dir_all(&found).map_err(|error| error.to_string())?;
    let artifacts = fuzz().join("target");
    let mut command = Command::new(binaries.join(name));
    command
        .current_dir(fuzz())
        .arg(found)
        .arg(fuzz().join("corpus").join(name))
        .arg(format!("-dict={}", fuzz().join("mcp.dict").display()))
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .args(["-max_len=4096", "-print_final_stats=1", "-verbosity=0"]);
    Ok(command)
}

fn fuzz() -> PathBuf {
    root().join("fuzz")
}

fn targets() -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(fuzz().join("targets")).map_err(|error| error.to_string())?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn host() -> Result<String, String> {
    let version = step::output(
        "rustc",
        Command::new("rustc").args(["--version", "--verbose"]),
    )?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc does not say what its host is".into())
}
