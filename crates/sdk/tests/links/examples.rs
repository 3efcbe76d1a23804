//! What the examples print.

use std::process::Command;

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
