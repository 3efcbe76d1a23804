//! **orderly-close**, while nobody reads what a server says. It then stops reading, too, so the end
//! of its input is behind requests that it does not take.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use belay::client::Mode;
use belay_testkit::Transcript;
use rustix::process::Signal;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::support::{BELAY, MODES, Scratch, request, signal};

/// Without a byte taken a server waits for 5 s; a busy machine gets twice that.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// A server to which was written until nothing moved any more, and what was.
struct Stuffed {
    child: Child,
    written: Vec<u8>,
}

impl Stuffed {
    async fn new(mode: Mode) -> Self {
        let mut child = Command::new(BELAY)
            .arg("serve")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut all = match mode {
            Mode::Legacy => {
                let params = json!({
                    "protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": { "name": "test", "version": "1" }
                });
                format!("{}\n", request(mode, "first", "initialize", params))
            }
            _ => String::new(),
        };
        for id in 0..100_000 {
            let echo = json!({ "name": "echo", "arguments": { "text": "hi" } });
            all += &format!("{}\n", request(mode, id, "tools/call", echo));
        }
        let stdin = child.stdin.as_mut().unwrap();
        let mut written = 0;
        let patience = Duration::from_millis(500);
        while let Ok(count) = timeout(patience, stdin.write(&all.as_bytes()[written..])).await {
            written += count.unwrap();
        }
        assert!(written < all.len(), "it takes everything");
        let written = all[..written].into();
        Self { child, written }
    }

    async fn ended(&mut self) -> Duration {
        let since = Instant::now();
        let ended = timeout(2 * LAST_ANSWERS, self.child.wait()).await;
        assert_eq!(ended.expect("it ends").unwrap().code(), Some(0));
        since.elapsed()
    }
}

#[tokio::test]
async fn orderly_close_without_writer_and_reader_a_server_ends() {
    let ends = MODES.map(|mode| async move {
        let mut server = Stuffed::new(mode).await;
        drop(server.child.stdin.take());
        let after = server.ended().await;
        assert!(after > LAST_ANSWERS / 2, "{mode:?}: only {after:?}");
    });
    let [legacy, modern] = ends;
    tokio::join!(legacy, modern);
}

#[tokio::test]
async fn orderly_close_a_signal_ends_a_server_that_nobody_reads() {
    for hangs_up in [false, true] {
        let mut server = Stuffed::new(Mode::Modern).await;
        if hangs_up {
            drop(server.child.stdin.take());
        }
        signal(server.child.id().unwrap(), Signal::TERM);
        let after = server.ended().await;
        assert!(after < Duration::from_secs(4), "{after:?}");
    }
}

#[tokio::test]
async fn orderly_close_whoever_reads_in_time_gets_every_answer_after_a_hang_up() {
    let readers = MODES.map(|mode| async move {
        let mut server = Stuffed::new(mode).await;
        drop(server.child.stdin.take());
        let mut stdout = server.child.stdout.take().unwrap();
        let (mut read, mut piece) = (Vec::new(), vec![0; 64 << 10]);
        // Longer than that in all, but never at once: each byte that is taken counts.
        for _ in 0..2 {
            tokio::time::sleep(LAST_ANSWERS * 3 / 5).await;
            let count = stdout.read(&mut piece).await.unwrap();
            read.extend_from_slice(&piece[..count]);
        }
        stdout.read_to_end(&mut read).await.unwrap();
        let mut transcript = Transcript::default();
        for line in server.written.split(|byte| *byte == b'\n') {
            transcript.sent(line);
        }
        for line in read.split(|byte| *byte == b'\n') {
            transcript.received(line);
        }
        assert_eq!(transcript.check(), Ok(()), "{mode:?}");
        server.ended().await;
    });
    let [legacy, modern] = readers;
    tokio::join!(legacy, modern);
}

/// Nobody writes, nobody reads any more, and no handler says anything that would show it.
#[tokio::test]
async fn stops_with_its_caller_when_the_reader_of_stdout_is_gone() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let sockets: (OwnedFd, OwnedFd) = (ours.into(), theirs.into());
    let (read, write) = std::io::pipe().unwrap();
    let pipe: (OwnedFd, OwnedFd) = (read.into(), write.into());
    for (ours, theirs) in [pipe, sockets] {
        let log = Scratch::new("cleaned");
        let mut child = Command::new(BELAY)
            .arg("serve")
            .env("BELAY_DEMO_CLEANUP_LOG", &log.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::from(theirs))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let count = json!({ "name": "count", "arguments": { "to": 1, "delay_ms": 0 } });
        let hang = json!({ "name": "hang", "arguments": {} });
        for call in [
            request(Mode::Modern, 1, "tools/call", hang),
            request(Mode::Modern, 2, "tools/call", count),
        ] {
            stdin
                .write_all(format!("{call}\n").as_bytes())
                .await
                .unwrap();
        }
        // Its answers show that it has taken both.
        let ours = tokio::task::spawn_blocking(move || {
            let mut ours = std::fs::File::from(ours);
            let mut read = Vec::new();
            while !String::from_utf8_lossy(&read).contains("result") {
                let mut piece = [0; 1024];
                let count = std::io::Read::read(&mut ours, &mut piece).unwrap();
                read.extend_from_slice(&piece[..count]);
            }
            ours
        });
        drop(ours.await.unwrap());
        let ended = timeout(Duration::from_secs(4), child.wait()).await;
        assert_eq!(ended.expect("it ends").unwrap().code(), Some(0));
        assert_eq!(log.text().lines().count(), 1, "its clean-up has run");
        drop(stdin);
    }
}
