//! `belay serve` shows what the library warns of, a line for each, and not more than can be read.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Stdio;
use std::time::Duration;

use rustix::fs::OFlags;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStderr, Command};

use crate::support::{BELAY, signal};

/// `belay serve --http` with at most so many open files, and what it says.
fn serve(options: &str, files: u32) -> (Child, Lines<BufReader<ChildStderr>>) {
    let script = format!("ulimit -n {files}; exec {BELAY} serve --http {options}");
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let stderr = child.stderr.take().unwrap();
    (child, BufReader::new(stderr).lines())
}

async fn next(lines: &mut Lines<BufReader<ChildStderr>>) -> String {
    let line = tokio::time::timeout(Duration::from_secs(20), lines.next_line()).await;
    line.expect("a line").unwrap().unwrap()
}

#[tokio::test]
async fn a_random_key_on_a_public_address_is_warned_of() {
    let (_child, mut lines) = serve("0.0.0.0:0 --allow-host example.com", 256);
    let line = next(&mut lines).await;
    assert!(
        line.starts_with("belay: warning: the key for the state of rounds is random"),
        "{line}"
    );
    let line = next(&mut lines).await;
    assert!(line.starts_with("serving at http://0.0.0.0:"), "{line}");
    // On loopback there is nothing to say.
    let (_child, mut lines) = serve("127.0.0.1:0", 256);
    let line = next(&mut lines).await;
    assert!(line.starts_with("serving at http://127.0.0.1:"), "{line}");
}

#[tokio::test]
async fn bounded_connections_that_cannot_be_accepted_are_warned_of_once_in_a_while() {
    let (_child, mut lines) = serve("127.0.0.1:0", 32);
    let line = next(&mut lines).await;
    let address = line.split("://").nth(1).unwrap().split('/').next().unwrap();
    let mut connections = Vec::new();
    for _ in 0..48 {
        connections.push(TcpStream::connect(address).await.unwrap());
    }
    let line = next(&mut lines).await;
    let expected = "belay: warning: a connection could not be accepted (error: Too many open files";
    assert!(line.starts_with(expected), "{line}");
    // It is tried again many times a second, and told once.
    let line = next(&mut lines).await;
    assert!(line.contains("warnings that were not shown: "), "{line}");
    drop(connections);
}

/// Nobody reads stderr: that stops no server.
#[tokio::test]
async fn orderly_close_warnings_that_nobody_reads_hold_nothing_up() {
    let (mut child, mut lines) = serve("127.0.0.1:0", 32);
    let line = next(&mut lines).await;
    let address = line.split("://").nth(1).unwrap().split('/').next().unwrap();
    // From here on it is full, and nobody reads it.
    let pid = child.id().unwrap();
    let mut pipe = std::fs::OpenOptions::new()
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(format!("/proc/{pid}/fd/2"))
        .unwrap();
    // What its stderr takes is dropped when nobody reads, so it never says that it is full.
    for _ in 0..1024 {
        let _ = pipe.write(&[b'x'; 4096]);
    }
    let mut connections = Vec::new();
    for _ in 0..48 {
        connections.push(TcpStream::connect(address).await.unwrap());
    }
    // With no descriptor left there are warnings, many times a second. It ends all the same.
    let open = || {
        std::fs::read_dir(format!("/proc/{pid}/fd"))
            .unwrap()
            .count()
    };
    belay_testkit::until("all are open", || open() >= 32).await;
    signal(pid, Signal::TERM);
    let ended = tokio::time::timeout(Duration::from_secs(20), child.wait()).await;
    assert!(ended.expect("it ends").unwrap().success());
}
