//! libFuzzer on stable Rust.

use std::path::Path;

use crate::step::{self, cargo, root};

/// What `cargo fuzz` would pass, less the sanitizers, which need a nightly compiler. There is no
/// unsafe code for them to look at.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Runs each target for so many seconds. New finds go into the build directory; what is worth
/// keeping is moved to `fuzz/corpus/` by hand, and stays small.
pub(crate) fn run(seconds: u64) -> Result<(), String> {
    let folder = root().join("fuzz");
    let manifest = folder.join("Cargo.toml");
    let manifest = manifest.to_str().ok_or("the path must be text")?;
    let target = host()?;
    let mut build = cargo(&["build", "--release", "--manifest-path", manifest]);
    // With `--target`, the flags are not applied to build scripts.
    build.args(["--target", &target]).env("RUSTFLAGS", COVERAGE);
    step::run("build the targets", &mut build)?;
    for name in targets(&folder)? {
        let binary = folder
            .join("target")
            .join(&target)
            .join("release")
            .join(&name);
        let found = folder.join("target/corpus").join(&name);
        std::fs::create_dir_all(&found).map_err(|error| error.to_string())?;
        let mut fuzz = std::process::Command::new(binary);
        fuzz.current_dir(&folder)
            .arg(found)
            .arg(folder.join("corpus").join(&name))
            .arg(format!("-dict={}", folder.join("mcp.dict").display()))
            .arg(format!("-max_total_time={seconds}"))
            .args(["-max_len=4096", "-print_final_stats=1", "-verbosity=0"])
            .arg(format!(
                "-artifact_prefix={}/",
                folder.join("target").display()
            ));
        step::run(&name, &mut fuzz)?;
    }
    Ok(())
}

fn targets(folder: &Path) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(folder.join("targets")).map_err(|error| error.to_string())?;
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path().file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn host() -> Result<String, String> {
    let mut rustc = std::process::Command::new("rustc");
    let version = step::output("rustc", rustc.args(["--version", "--verbose"]))?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .ok_or_else(|| "rustc does not say what its host is".into())
}
