//! Signal handling: Ctrl-C, SIGTERM and SIGHUP.

use std::future::Future;
use std::time::{Duration, Instant};

use belay::Client;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::children::Started;
use crate::exit::{self, Code};
use crate::output;
use crate::target::Connected;

/// A closed terminal sends SIGHUP twice, from the kernel and the shell. Both count as one.
const ONE_HANG_UP: Duration = Duration::from_millis(250);

/// Counts Ctrl-C, SIGTERM and SIGHUP. The first cancels on the wire and waits, the second kills.
pub(crate) struct Interrupt(watch::Receiver<usize>);

impl Interrupt {
    /// Installs the signal handlers. From now on these signals do not end the process on their own.
    pub(crate) fn new() -> Self {
        let (pressed, count) = watch::channel(0);
        let mut interrupt = signal(SignalKind::interrupt()).ok();
        let mut terminate = signal(SignalKind::terminate()).ok();
        // Under `nohup` SIGHUP stays ignored.
        let mut hang_up = match is_ignored(SignalKind::hangup()) {
            true => None,
            false => signal(SignalKind::hangup()).ok(),
        };
        tokio::spawn(async move {
            let mut hung_up: Option<Instant> = None;
            loop {
                tokio::select! {
                    Some(()) = next(&mut interrupt) => {}
                    Some(()) = next(&mut terminate) => {}
                    Some(()) = next(&mut hang_up) => {
                        let now = Instant::now();
                        let before = hung_up.replace(now);
                        if is_same_hang_up(before, now) {
                            continue;
                        }
                    }
                    else => return,
                }
                pressed.send_modify(|count| *count += 1);
            }
        });
        Self(count)
    }

    pub(crate) async fn once(&self) {
        self.pressed(1).await;
    }

    /// Runs a future with a server until it ends or a signal arrives, then closes the server.
    pub(crate) async fn stops(
        &self,
        server: &Connected<'_>,
        doing: impl Future<Output = Code>,
    ) -> Code {
        let doing = async {
            tokio::select! {
                code = doing => code,
                () = self.once() => {
                    server.bar.clear();
                    interrupted(server.json())
                }
            }
        };
        self.ends(&server.client, doing).await
    }

    /// Runs a future with a server and closes the server. A second signal kills the server.
    pub(crate) async fn ends(&self, client: &Client, doing: impl Future<Output = Code>) -> Code {
        let done = async {
            let code = doing.await;
            client.close().await;
            code
        };
        tokio::select! {
            code = done => code,
            () = self.pressed(2) => {
                client.kill().await;
                exit::INTERRUPTED
            }
        }
    }

    /// Waits for children that are being ended. A second signal kills them.
    pub(crate) async fn waits_for(&self, children: &Started) {
        tokio::select! {
            () = children.gone() => {}
            () = self.pressed(2) => children.kill().await,
        }
    }

    async fn pressed(&self, times: usize) {
        if self
            .0
            .clone()
            .wait_for(|count| *count >= times)
            .await
            .is_err()
        {
            // The signal handlers could not be installed, so no signal ever arrives here.
            std::future::pending().await
        }
    }
}

fn is_same_hang_up(before: Option<Instant>, now: Instant) -> bool {
    before.is_some_and(|before| now.saturating_duration_since(before) < ONE_HANG_UP)
}

/// `None` if the handler could not be installed.
async fn next(signal: &mut Option<Signal>) -> Option<()> {
    signal.as_mut()?.recv().await
}

/// Whether the parent process has set a signal to be ignored. Known on Linux only.
fn is_ignored(signal: SignalKind) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal.as_raw_value() - 1) & 1 == 1)
}

/// The exit code of an interruption. It is reported with `--json` only.
pub(crate) fn interrupted(json: bool) -> Code {
    if json {
        output::end("cancelled", "interrupted", true);
    }
    exit::INTERRUPTED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_that_goes_away_hangs_up_once() {
        let first = Instant::now();
        assert!(!is_same_hang_up(None, first));
        assert!(is_same_hang_up(Some(first), first));
        assert!(is_same_hang_up(
            Some(first),
            first + Duration::from_millis(249)
        ));
        assert!(!is_same_hang_up(Some(first), first + ONE_HANG_UP));
    }
}
