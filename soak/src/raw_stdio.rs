//! Raw bytes to and from `belay serve` on stdio. A life is a process: rounds, then its end.

use std::process::Stdio;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

use crate::observer::{Era, Observer, initialized};
use crate::pipe::{Input, Observed, Output, drain, play};
use crate::processes::{self, Stderr};
use crate::quiet;
use crate::round::{Round, Step};
use crate::soak::{self, Life};
use crate::{Done, PATIENCE, both};

/// How a process ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// The end of its input, with no request in flight.
    Quiet,
    /// The end of its input, with requests in flight.
    EndOfInput,
    /// Both of its pipes are closed, with requests in flight.
    Closed,
    Terminated,
    Killed,
}

const ENDINGS: [Ending; 5] = [
    Ending::Quiet,
    Ending::EndOfInput,
    Ending::Closed,
    Ending::Terminated,
    Ending::Killed,
];

pub(crate) async fn live(life: &mut Life, era: Era) -> Done {
    let observed = Observed::new(Observer::new(life.name(), era));
    let lived = Process::start(life)?.live(life, era, &observed).await;
    let observer = observed.into_inner();
    life.count(observer.counts());
    both(lived, observer.check())
}

struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: Lines<BufReader<ChildStdout>>,
    stderr: Stderr,
}

impl Process {
    fn start(life: &Life) -> Result<Self, String> {
        let (name, value) = soak::mark();
        let mut child = Command::new(&life.soak.belay)
            .arg("serve")
            .env(name, value)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("no server could be started: {error}"))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err("a server has no pipes".into());
        };
        Ok(Self {
            child,
            stdin,
            stdout: BufReader::new(stdout).lines(),
            stderr: Stderr::read(stderr),
        })
    }

    async fn live(mut self, life: &mut Life, era: Era, observed: &Observed) -> Done {
        if era == Era::Legacy {
            let hello = observed.lock().initialize("2025-11-25");
            let round = Round {
                steps: vec![Step::Write {
                    frames: vec![hello.bytes(), initialized()],
                    torn: false,
                }],
                unread: std::time::Duration::ZERO,
            };
            self.play(&round, observed).await?;
        }
        for _ in 0..life.random.between(1, 5) {
            let round = Round::draw(&mut life.random, &mut observed.lock());
            self.play(&round, observed).await?;
        }
        let ending = life.random.one_of(&ENDINGS);
        self.end(ending, life, observed)
            .await
            .map_err(|problem| format!("{ending:?}: {problem}"))
    }

    async fn play(&mut self, round: &Round, observed: &Observed) -> Done {
        play(round, &mut self.stdin, &mut self.stdout, observed).await
    }

    async fn end(mut self, ending: Ending, life: &mut Life, observed: &Observed) -> Done {
        let left = match ending {
            Ending::Quiet => {
                quiet::on_pipe(&mut self.stdin, &mut self.stdout, observed).await?;
                Vec::new()
            }
            _ => Round::left_in_flight(&mut life.random, &mut observed.lock()),
        };
        // A process that is ending may not read all of it.
        let wait = life.random.millis(0, 20);
        self.stdin.write_frames(&left, false, observed).await?;
        tokio::time::sleep(wait).await;
        let pid = self.child.id().ok_or("it has ended before its end")?;
        match ending {
            Ending::Quiet => {
                drop(self.stdin);
                drain(&mut self.stdout, observed).await?;
            }
            Ending::EndOfInput => {
                drop(self.stdin);
                // Requests that end without a cancel are answered; a hang is not.
                drain(&mut self.stdout, observed).await?;
                observed.lock().cut_hangs();
            }
            Ending::Closed => {
                observed.lock().cut();
                drop((self.stdin, self.stdout));
            }
            Ending::Terminated => {
                observed.lock().cut();
                processes::signal(pid, Signal::TERM)?;
                drain(&mut self.stdout, observed).await?;
            }
            Ending::Killed => {
                observed.lock().cut();
                processes::signal(pid, Signal::KILL)?;
            }
        }
        let ended = timeout(PATIENCE, self.child.wait()).await;
        let ended = ended.map_err(|_| format!("it runs on for {PATIENCE:?}"))?;
        let status = ended.map_err(|error| error.to_string())?;
        match ending {
            Ending::Killed => {}
            _ if status.success() => {}
            _ => return Err(format!("orderly-close: it ended with {status}")),
        }
        self.stderr.check().await
    }
}

impl Input for ChildStdin {
    async fn write_frames(&mut self, frames: &[Vec<u8>], torn: bool, observed: &Observed) -> Done {
        let mut bytes = Vec::new();
        for frame in frames {
            observed.lock().sent(frame);
            bytes.extend_from_slice(frame);
            bytes.push(b'\n');
        }
        let piece = if torn { 4099 } else { usize::MAX };
        for piece in bytes.chunks(piece) {
            let wrote = self.write_all(piece).await;
            wrote.map_err(|error| format!("stdin cannot be written: {error}"))?;
        }
        Ok(())
    }
}

impl Output for Lines<BufReader<ChildStdout>> {
    async fn read_frame(&mut self) -> Result<Option<Vec<u8>>, String> {
        let line = self.next_line().await;
        let line = line.map_err(|error| format!("stdout cannot be read: {error}"))?;
        Ok(line.map(String::into_bytes))
    }
}
