//! **no-orphan-processes**.

use std::process::Stdio;
use std::time::Duration;

use belay::Client;
use belay::client::Mode;
use rustix::process::Signal;
use serde_json::json;
use tokio::process::Command;

use crate::support::{
    BELAY, Scratch, belay_command, client, client_of_script, exists, signal, until_gone,
};

#[tokio::test]
async fn no_orphan_processes_a_stubborn_grandchild_goes_with_its_launcher() {
    let pids = Scratch::new("pids");
    let script = format!(
        "sh -c 'trap \"\" TERM; while :; do sleep 1; done' & echo $! > {}; $BELAY serve",
        pids.0.display()
    );
    let client = client_of_script(Mode::Auto, &script).await;
    let grandchild = pids.number().await;
    let launcher = client.pid().unwrap();
    assert!(exists(grandchild) && exists(launcher));
    client.close().await;
    assert!(!exists(launcher), "closed is gone");
    // Killed, and reaped by whoever does that here.
    until_gone(grandchild, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn no_orphan_processes_a_server_that_ignores_the_end_of_its_input_is_made_to_go() {
    let script = r#"
        trap '' TERM
        read probe
        echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
        while :; do sleep 1; done
    "#;
    let client = client_of_script(Mode::Auto, script).await;
    let pid = client.pid().unwrap();
    // Two seconds, SIGTERM, two seconds, SIGKILL.
    client.close().await;
    assert!(!exists(pid), "closed is gone");
}

#[tokio::test]
async fn no_orphan_processes_dropping_a_client_ends_its_server() {
    let client = client(Mode::Auto).await;
    let pid = client.pid().unwrap();
    let call = client.call_tool("hang", json!({})).start();
    drop(client);
    drop(call);
    until_gone(pid, Duration::from_secs(10)).await;
}

/// The tool as a client, of a server that leaves its process id in a file.
fn tool(pid: &Scratch, arguments: &[&str]) -> Command {
    let script = format!("echo $$ > {}; exec {BELAY} serve", pid.0.display());
    let mut command = belay_command();
    command
        .args(arguments)
        .args(["--", "sh", "-c", &script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

#[tokio::test]
async fn no_orphan_processes_a_client_that_is_killed_leaves_no_server() {
    let pid = Scratch::new("pid");
    let mut client = tool(&pid, &["call", "hang"]).spawn().unwrap();
    let server = pid.number().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(exists(server));
    signal(client.id().unwrap(), Signal::KILL);
    client.wait().await.unwrap();
    until_gone(server, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn no_orphan_processes_a_client_that_simply_ends_leaves_no_server() {
    let pid = Scratch::new("pid");
    let output = tool(&pid, &["call", "echo", "text=hi"])
        .output()
        .await
        .unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, b"hi\n");
    until_gone(pid.number().await, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn no_orphan_processes_a_server_that_never_says_hello_is_gone_when_its_time_is_over() {
    let pid = Scratch::new("pid");
    let script = format!(
        "echo $$ > {}; trap '' TERM; while :; do sleep 1; done",
        pid.0.display()
    );
    let list = ["list", "--max-time", "0.3", "--", "sh", "-c", &script];
    let output = belay_command().args(list).output().await.unwrap();
    assert_eq!(output.status.code(), Some(6));
    assert!(!exists(pid.number().await));
}

#[tokio::test]
async fn a_child_does_not_die_because_a_thread_of_ours_ended() {
    // The parent-death signal fires when the thread that spawned the child ends.
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let mut command = std::process::Command::new("sleep");
        command.arg("1000");
        let child = runtime.block_on(async { belay_spawn(command) });
        sender.send(child).unwrap();
    })
    .join()
    .unwrap();
    let mut child = receiver.recv().unwrap();
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(child.try_wait().unwrap(), None, "it is still running");
    child.kill().unwrap();
    child.wait().unwrap();
}

fn belay_spawn(command: std::process::Command) -> std::process::Child {
    belay_process::spawn(command).unwrap()
}

#[tokio::test]
async fn a_runtime_that_dies_ends_its_children() {
    let pid = std::thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let client: Client = client(Mode::Auto).await;
            let pid = client.pid().unwrap();
            // It is never dropped: the runtime goes first.
            std::mem::forget(client);
            pid
        })
    })
    .join()
    .unwrap();
    until_gone(pid, Duration::from_secs(10)).await;
}
