//! What the examples print, and how they end.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// The program of an example.
pub(crate) fn built(example: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", "belay-mcp"]);
    if cfg!(not(feature = "validate")) {
        cargo.args(["--no-default-features", "--features"]);
        cargo.arg("client,macros,sealed,server,stdio");
    }
    let status = cargo.args(["--example", example]).status().unwrap();
    assert!(status.success());
    let tests = std::env::current_exe().unwrap();
    let profile = tests.parent().and_then(|deps| deps.parent()).unwrap();
    profile.join("examples").join(example)
}

fn run(example: &str) -> String {
    let output = Command::new(env!("CARGO"))
        .args([
            "run",
            "--quiet",
            "--package",
            "belay-mcp",
            "--example",
            example,
        ])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn fifty_cancels_leave_nothing_running() {
    let printed = run("fifty_cancels");
    assert_eq!(
        printed,
        "baseline: 0 running\nafter 50 cancels: 0 running\n"
    );
}

#[test]
fn a_dead_server_is_lost_and_a_changed_mind_is_cancelled() {
    let printed = run("lost_or_cancelled");
    let lines: Vec<&str> = printed.lines().collect();
    assert!(
        lines[0].starts_with("the server dies:     lost"),
        "{printed}"
    );
    assert!(lines[0].contains("signal: 9"), "{printed}");
    assert!(
        lines[1].starts_with("the caller cancels:  cancelled"),
        "{printed}"
    );
}

/// The example server, in mid-call if there is one.
fn serving(call: Option<&str>) -> Child {
    let mut server = Command::new(built("server"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = server.stdin.as_mut().unwrap();
    let version = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28""#;
    let meta =
        format!(r#""_meta":{{{version},"io.modelcontextprotocol/clientCapabilities":{{}}}}"#);
    if let Some(call) = call {
        let params = format!("{{{call},{meta}}}");
        let call = r#""jsonrpc":"2.0","id":1,"method":"tools/call""#;
        writeln!(stdin, r#"{{{call},"params":{params}}}"#).unwrap();
    }
    // Its answer to this tells that it is there, and has read what came before.
    let list = r#""jsonrpc":"2.0","id":2,"method":"tools/list""#;
    writeln!(stdin, r#"{{{list},"params":{{{meta}}}}}"#).unwrap();
    let mut answer = String::new();
    let mut stdout = BufReader::new(server.stdout.as_mut().unwrap());
    stdout.read_line(&mut answer).unwrap();
    assert!(answer.contains("\"id\":2"), "{answer}");
    server
}

fn ends_with_0(mut server: Child) {
    let pid = Pid::from_child(&server);
    // Waiting for a child closes its stdin. This one stays open.
    let _stdin = server.stdin.take();
    let asked = Instant::now();
    kill_process(pid, Signal::TERM).unwrap();
    let status = server.wait().unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    // The bar is 2 s; a busy machine gets twice that.
    assert!(
        asked.elapsed() < Duration::from_secs(4),
        "{:?}",
        asked.elapsed()
    );
}

#[test]
fn orderly_close_a_plain_main_ends_on_sigterm_with_its_input_open_and_idle() {
    ends_with_0(serving(None));
}

#[test]
fn orderly_close_a_plain_main_ends_on_sigterm_while_a_handler_blocks() {
    ends_with_0(serving(Some(
        r#""name":"sleep","arguments":{"seconds":60}"#,
    )));
}

#[test]
fn orderly_close_a_plain_main_ends_on_sigterm_with_its_output_full_and_unread() {
    let mut server = serving(None);
    let list = r#"{"jsonrpc":"2.0","id":"ID","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let stdin = server.stdin.as_mut().unwrap();
    // Each answer is about a kilobyte, and a pipe holds 64: they do not fit. When half is there,
    // the rest has been read and waits.
    for id in 0..200 {
        writeln!(stdin, "{}", list.replace("ID", &id.to_string())).unwrap();
    }
    let stdout = server.stdout.as_ref().unwrap();
    while rustix::io::ioctl_fionread(stdout).unwrap() < 32 << 10 {
        std::thread::sleep(Duration::from_millis(1));
    }
    ends_with_0(server);
}

#[test]
fn no_orphan_processes_a_client_dropped_as_the_last_line_of_main_leaves_no_server() {
    let (client, server) = (built("client"), built("server"));
    let file = std::env::temp_dir().join(format!("belay-last-line-{}", std::process::id()));
    let script = format!("echo $$ > {}; exec {}", file.display(), server.display());
    let output = Command::new(client)
        .args(["sh", "-c", &script])
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{printed}");
    assert!(
        printed.ends_with("1 boiled\n2 boiled\n3 boiled\n3 eggs\n"),
        "{printed}"
    );
    let pid = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    let process = PathBuf::from("/proc").join(pid.trim());
    let until = Instant::now() + Duration::from_secs(10);
    while process.exists() {
        assert!(
            Instant::now() < until,
            "{} is still there",
            process.display()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
