//! On pipes.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use belay::client::Mode;
use belay_testkit::Transcript;
use serde_json::{Value, json};

use super::Reads;
use crate::support::{BELAY, MODES, memory, request};

/// How a burst is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Writes {
    /// In one go.
    Once,
    /// One request after the other.
    EachByItself,
    /// In pieces that end anywhere.
    InPieces,
}

#[test]
fn answered_or_gone_bursts_of_every_size() {
    for mode in MODES {
        for count in [1, 1000, 10_000, 100_000] {
            let transcript = burst(mode, count, "echo", Writes::Once, Reads::AtOnce);
            assert_eq!(transcript.check(), Ok(()), "{mode:?}, {count}");
            assert!(
                transcript.answers() > transcript.refusals(),
                "{mode:?}, {count}"
            );
        }
    }
}

#[test]
fn answered_or_gone_bursts_written_and_read_in_every_way() {
    for mode in MODES {
        for writes in [Writes::Once, Writes::EachByItself, Writes::InPieces] {
            for reads in [Reads::AtOnce, Reads::Slowly, Reads::AfterAStop] {
                let transcript = burst(mode, 3000, "echo", writes, reads);
                let checked = transcript.check();
                assert_eq!(checked, Ok(()), "{mode:?}, {writes:?}, {reads:?}");
            }
        }
    }
}

/// Requests that the engine answers by itself, that nobody knows, and that are none.
#[test]
fn answered_or_gone_bursts_of_other_methods() {
    let methods = ["tools/list", "ping", "no/such/method"];
    for mode in MODES {
        for method in methods
            .into_iter()
            .filter(|method| mode == Mode::Legacy || *method != "ping")
        {
            let transcript = burst(mode, 5000, method, Writes::Once, Reads::AtOnce);
            assert_eq!(transcript.check(), Ok(()), "{mode:?}, {method}");
        }
    }
}

#[test]
fn answered_or_gone_every_line_that_is_no_message_is_answered() {
    const LINES: usize = 5000;
    let mut server = Server::start();
    let mut stdin = server.stdin();
    let writing = std::thread::spawn(move || {
        for line in 0..LINES {
            writeln!(stdin, "{{ {line}").unwrap();
        }
    });
    let answers = server.answers().map(|line| {
        let answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["error"]["code"], -32700, "{answer}");
    });
    assert_eq!(answers.count(), LINES);
    writing.join().unwrap();
    assert!(server.child.wait().unwrap().success());
}

/// Finished answers are written as long as somebody reads them, however long that takes.
#[test]
fn orderly_close_a_slow_reader_gets_every_answer_after_the_end_of_input() {
    for mode in MODES {
        let mut server = Server::start();
        let mut transcript = Transcript::default();
        let mut stdin = server.stdin();
        let text = "x".repeat(1 << 20);
        let mut lines = opening(mode);
        for id in 1..=8 {
            lines.push(request(mode, id, "tools/call", echo(&text)).to_string());
        }
        for line in &lines {
            transcript.sent(line.as_bytes());
            writeln!(stdin, "{line}").unwrap();
        }
        drop(stdin);
        // Longer than the drain and the flush of a shutdown take together.
        std::thread::sleep(Duration::from_secs(2));
        let mut stdout = server.child.stdout.take().unwrap();
        let mut read = Vec::new();
        let mut piece = vec![0; 256 << 10];
        loop {
            let count = stdout.read(&mut piece).unwrap();
            if count == 0 {
                break;
            }
            read.extend_from_slice(&piece[..count]);
            std::thread::sleep(Duration::from_millis(20));
        }
        for line in read.split(|byte| *byte == b'\n') {
            transcript.received(line);
        }
        assert_eq!(transcript.check(), Ok(()), "{mode:?}");
        assert!(read.ends_with(b"\n"), "no line is torn");
        assert!(server.child.wait().unwrap().success());
    }
}

/// The oracle is worth something: it finds what was planted in a real server.
#[cfg(belay_planted)]
#[test]
fn every_planted_bug_is_caught_at_the_wire() {
    for (bug, what) in [
        ("RefusalDropped", "echo"),
        ("RefusedTwice", "echo"),
        ("PanicAnswersNobody", "panic"),
    ] {
        for mode in MODES {
            let server = Server::with_env("BELAY_PLANTED", bug);
            let found = burst_to(server, mode, 3000, what, Writes::Once, Reads::AtOnce).check();
            println!("{bug}, {mode:?}: {found:?}");
            assert!(found.is_err(), "{bug} was not caught");
        }
    }
}

/// Sends a burst to a server, closes its input, and reads to the end.
fn burst(mode: Mode, count: usize, what: &str, writes: Writes, reads: Reads) -> Transcript {
    burst_to(Server::start(), mode, count, what, writes, reads)
}

fn burst_to(
    mut server: Server,
    mode: Mode,
    count: usize,
    what: &str,
    writes: Writes,
    reads: Reads,
) -> Transcript {
    let mut transcript = Transcript::default();
    let mut lines = opening(mode);
    lines.extend((1..=count).map(|id| {
        let request = match what {
            "echo" => request(mode, id, "tools/call", echo("hi")),
            "panic" => request(mode, id, "tools/call", json!({ "name": "panic" })),
            method => request(mode, id, method, json!({})),
        };
        request.to_string()
    }));
    for line in &lines {
        transcript.sent(line.as_bytes());
    }
    let mut stdin = server.stdin();
    let (wrote, written) = mpsc::channel();
    let writing = std::thread::spawn(move || {
        write(&mut stdin, &lines, writes);
        let _ = wrote.send(());
    });
    if reads == Reads::AfterAStop {
        // Until all is written, or nothing moves any more because nobody reads.
        let _ = written.recv_timeout(Duration::from_millis(500));
        let resident = memory(server.child.id());
        assert!(resident < 64 << 20, "the server takes {resident} bytes");
    }
    for (at, answer) in server.answers().enumerate() {
        transcript.received(answer.as_bytes());
        if reads == Reads::Slowly && at % 100 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    writing.join().unwrap();
    assert!(server.child.wait().unwrap().success());
    transcript
}

fn write(stdin: &mut ChildStdin, lines: &[String], writes: Writes) {
    match writes {
        Writes::Once => stdin
            .write_all((lines.join("\n") + "\n").as_bytes())
            .unwrap(),
        Writes::EachByItself => {
            for line in lines {
                stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
            }
        }
        Writes::InPieces => {
            let all = lines.join("\n") + "\n";
            for piece in all.as_bytes().chunks(4099) {
                stdin.write_all(piece).unwrap();
            }
        }
    }
}

fn echo(text: &str) -> Value {
    json!({ "name": "echo", "arguments": { "text": text } })
}

/// What has to be said before anything can be asked.
fn opening(mode: Mode) -> Vec<String> {
    match mode {
        Mode::Legacy => vec![
            json!({ "jsonrpc": "2.0", "id": "initialize", "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" }
            }})
            .to_string(),
        ],
        _ => Vec::new(),
    }
}

struct Server {
    child: Child,
}

impl Server {
    fn start() -> Self {
        Self::of(&mut Command::new(BELAY))
    }

    #[cfg(belay_planted)]
    fn with_env(name: &str, value: &str) -> Self {
        let mut command = Command::new(BELAY);
        Self::of(command.env(name, value).stderr(Stdio::null()))
    }

    fn of(command: &mut Command) -> Self {
        let command = command.arg("serve").stdin(Stdio::piped());
        let child = command.stdout(Stdio::piped()).spawn().unwrap();
        Self { child }
    }

    fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    fn answers(&mut self) -> impl Iterator<Item = String> + use<> {
        let stdout = self.child.stdout.take().unwrap();
        BufReader::new(stdout).lines().map(Result::unwrap)
    }
}
