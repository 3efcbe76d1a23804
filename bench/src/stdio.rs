//! Lines down a pipe, so many at once.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use crate::load::{Round, spent};
use crate::{Era, Who};

/// So many requests are in flight.
fn window() -> usize {
    std::env::var("BENCH_WINDOW").ok().and_then(|count| count.parse().ok()).unwrap_or(64)
}

pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    requests: Vec<u8>,
}

impl Server {
    pub(crate) fn start(who: Who, era: Era) -> Self {
        let itself = std::env::current_exe().expect("ourselves");
        let mut child = Command::new(itself)
            .args(["serve", "stdio", who.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a server");
        let mut input = child.stdin.take().expect("a pipe");
        let mut output = BufReader::with_capacity(1 << 16, child.stdout.take().expect("a pipe"));
        if era == Era::Legacy {
            writeln!(input, "{}", crate::servers::INITIALIZE).expect("a reader");
            output.read_line(&mut String::new()).expect("an answer");
            writeln!(input, "{}", crate::servers::INITIALIZED).expect("a reader");
        }
        let line = format!("{}\n", crate::servers::echo(era));
        // Ids must differ while they are in flight.
        let requests = (0..window()).map(|id| line.replace("\"id\":1,", &format!("\"id\":{},", id + 1)));
        Self {
            child,
            input,
            output,
            requests: requests.collect::<String>().into_bytes(),
        }
    }

    pub(crate) fn load(&mut self, span: Duration) -> Round {
        let (begun, before) = (Instant::now(), spent(self.child.id()));
        let (window, mut answers) = (window(), 0);
        let mut line = Vec::new();
        while begun.elapsed() < span {
            self.input.write_all(&self.requests).expect("a reader");
            for _ in 0..window {
                line.clear();
                self.output.read_until(b'\n', &mut line).expect("an answer");
                assert!(!line.is_empty(), "it has ended");
                answers += 1;
            }
        }
        Round {
            answers,
            span: begun.elapsed(),
            spent: spent(self.child.id()) - before,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
