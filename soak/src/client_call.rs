//! One call of Belay's own client, and the ends it may have.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use belay::outcome::By;
use belay::types::CallToolResult;
use belay::{Call, Client, Error};
use serde_json::json;
use tokio::time::sleep;

use crate::ask::INTERNAL_ERROR;
use crate::observer::Counts;
use crate::random::Random;

/// What to call, and how the call is given up.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plan {
    Echo(usize),
    Count {
        to: u32,
        delay_ms: u64,
    },
    Panic,
    UnknownTool,
    /// Cancelled before it is started.
    Never,
    /// A call that does not end in time, and how and when it is given up.
    GivenUp(Endless, Way, Duration),
    /// An echo that is cancelled at the same time.
    Race(Duration),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Endless {
    Hang,
    Rollback(u64),
    Block(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    Total,
    Idle,
    Drop,
    Abort,
    Handle,
}

const WAYS: [Way; 5] = [Way::Total, Way::Idle, Way::Drop, Way::Abort, Way::Handle];

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Answered,
    Refused,
    Cancelled,
}

const OVERLOADED: i64 = -31001;
const INVALID_PARAMS: i64 = -32602;

impl Plan {
    pub(crate) fn draw(random: &mut Random) -> Self {
        match random.below(12) {
            0 => Self::Panic,
            1 => Self::UnknownTool,
            2 => Self::Never,
            3 => Self::Race(Duration::from_micros(random.between(0, 3000))),
            4 | 5 => Self::Count {
                to: random.between(1, 30) as u32,
                delay_ms: random.between(0, 10),
            },
            6..=8 => {
                let endless = match random.below(4) {
                    0 => Endless::Rollback(random.between(0, 150)),
                    1 => Endless::Block(random.between(500, 700)),
                    _ => Endless::Hang,
                };
                Self::GivenUp(endless, random.one_of(&WAYS), random.millis(0, 350))
            }
            9 => Self::Echo(random.between(1, 300_000) as usize),
            _ => Self::Echo(random.between(1, 100) as usize),
        }
    }

    /// Makes the call and returns how it ended, or what was wrong with its end.
    pub(crate) async fn call(self, client: Client, tag: String) -> Result<Ended, String> {
        let ended = match self {
            Self::Echo(length) => echo(&client, &tag, length).await,
            Self::Count { to, delay_ms } => count(&client, to, delay_ms).await,
            Self::Panic => {
                let called = client.call_tool("panic", json!({})).await;
                refused(called, INTERNAL_ERROR)
            }
            Self::UnknownTool => {
                let called = client.call_tool("no such tool", json!({})).await;
                refused(called, INVALID_PARAMS)
            }
            Self::Never => {
                let call = client.call_tool("hang", json!({}));
                call.canceller().cancel();
                match call.await {
                    Err(error) if error.is_cancelled() && error.safe_to_retry() => {
                        Ok(Ended::Cancelled)
                    }
                    ended => Err(format!("{ended:?}")),
                }
            }
            Self::GivenUp(endless, way, after) => endless.give_up(&client, way, after).await,
            Self::Race(after) => race(&client, &tag, after).await,
        };
        ended.map_err(|problem| format!("typed-end: {self:?}: {problem}"))
    }
}

async fn echo(client: &Client, tag: &str, length: usize) -> Result<Ended, String> {
    let text = format!("{tag} {}", "x".repeat(length));
    match client.call_tool("echo", json!({ "text": text })).await {
        Ok(result) if said(&result) == text => Ok(Ended::Answered),
        Ok(result) => Err(format!("somebody else's answer: {result:.300?}")),
        Err(error) => overloaded(&error),
    }
}

async fn race(client: &Client, tag: &str, after: Duration) -> Result<Ended, String> {
    let call = client.call_tool("echo", json!({ "text": tag })).start();
    let canceller = call.canceller();
    let cancelling = tokio::spawn(async move {
        sleep(after).await;
        canceller.cancel();
    });
    let ended = call.await;
    let _ = cancelling.await;
    match ended {
        Ok(result) if said(&result) == tag => Ok(Ended::Answered),
        Ok(result) => Err(format!("somebody else's answer: {result:?}")),
        Err(error) if error.cancelled_by() == Some(By::Caller) => Ok(Ended::Cancelled),
        Err(error) => overloaded(&error),
    }
}

async fn count(client: &Client, to: u32, delay_ms: u64) -> Result<Ended, String> {
    let steps: Arc<Mutex<Vec<f64>>> = Arc::default();
    let told = steps.clone();
    let arguments = json!({ "to": to, "delay_ms": delay_ms });
    let call = client
        .call_tool("count", arguments)
        .on_progress(move |step| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.push(step.progress.0);
        });
    let ended = call.await;
    let steps = steps.lock().unwrap_or_else(PoisonError::into_inner);
    match ended {
        Ok(result) if said(&result) != to.to_string() => Err(format!("{result:?}")),
        Ok(_) if steps.iter().copied().eq((1..=to).map(f64::from)) => Ok(Ended::Answered),
        Ok(_) => Err(format!("order: {steps:?}")),
        Err(error) => overloaded(&error),
    }
}

impl Endless {
    fn call(self, client: &Client) -> Call<CallToolResult> {
        match self {
            Self::Hang => client.call_tool("hang", json!({})),
            Self::Rollback(ms) => client.call_tool("rollback", json!({ "ms": ms })),
            Self::Block(ms) => client.call_tool("block", json!({ "ms": ms })),
        }
    }

    async fn give_up(self, client: &Client, way: Way, after: Duration) -> Result<Ended, String> {
        let call = self.call(client);
        let ended = match way {
            Way::Total => call.timeout(after).await,
            Way::Idle => call.idle_timeout(after).await,
            Way::Drop => match tokio::time::timeout(after, call.start()).await {
                Ok(ended) => ended,
                Err(_) => return Ok(Ended::Cancelled),
            },
            Way::Abort => {
                let call = tokio::spawn(call.start());
                sleep(after).await;
                call.abort();
                match call.await {
                    Ok(ended) => ended,
                    Err(error) if error.is_cancelled() => return Ok(Ended::Cancelled),
                    Err(error) => return Err(error.to_string()),
                }
            }
            Way::Handle => {
                let canceller = call.canceller();
                let cancelling = tokio::spawn(async move {
                    sleep(after).await;
                    canceller.cancel();
                });
                let ended = call.await;
                let _ = cancelling.await;
                ended
            }
        };
        match ended {
            // On a busy machine the timeout can be later than the end of the blocking thread.
            Ok(_) if matches!(self, Self::Block(_)) => Ok(Ended::Answered),
            Ok(result) => Err(format!("it was answered: {result:?}")),
            Err(error) => match way {
                Way::Total | Way::Idle if error.is_timeout() => Ok(Ended::Cancelled),
                Way::Handle if error.cancelled_by() == Some(By::Caller) => Ok(Ended::Cancelled),
                _ => overloaded(&error),
            },
        }
    }
}

fn said(result: &CallToolResult) -> &str {
    let first = result.content.first();
    first.and_then(|content| content.as_text()).unwrap_or("")
}

fn refused(called: Result<CallToolResult, Error>, code: i64) -> Result<Ended, String> {
    match called {
        Ok(result) => Err(format!("it was answered: {result:?}")),
        Err(error) if error.refusal().is_some_and(|it| it.code == code) => Ok(Ended::Refused),
        Err(error) => overloaded(&error),
    }
}

/// Any call may be refused because of overload.
fn overloaded(error: &Error) -> Result<Ended, String> {
    match error.refusal().map(|refusal| refusal.code) {
        Some(OVERLOADED) => Ok(Ended::Refused),
        _ => Err(format!("{error:?}")),
    }
}

/// Counts how the calls of one life ended.
#[derive(Default)]
pub(crate) struct Tally(Counts);

impl Tally {
    pub(crate) fn add(&mut self, ended: Ended) {
        self.0.requests += 1;
        match ended {
            Ended::Answered => self.0.answered += 1,
            Ended::Refused => self.0.refused += 1,
            Ended::Cancelled => self.0.cancelled += 1,
        }
    }

    pub(crate) fn cancelled(&mut self, count: usize) {
        self.0.requests += count;
        self.0.cancelled += count;
    }

    pub(crate) fn cut(&mut self, count: usize) {
        self.0.requests += count;
        self.0.cut += count;
    }

    pub(crate) fn counts(&self) -> Counts {
        self.0
    }
}
