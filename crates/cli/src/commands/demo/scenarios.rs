//! The four bug reports, as scenarios.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use belay::Error;
use belay::client::Mode;
use rustix::process::Signal;
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::stage::{Ended, Failure, Stage, Wire};
use super::{Played, Shown, Timeline};

/// One bug report and the scenario that replays it.
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) report: &'static str,
    pub(super) question: &'static str,
    pub(super) play: fn(Wire) -> Pin<Box<dyn Future<Output = Played>>>,
}

pub(super) const SCENARIOS: [Scenario; 4] = [
    Scenario {
        name: "server dies",
        report: "python-sdk #1830",
        question: "can a caller tell the death of its server from a cancellation?",
        play: |wire| Box::pin(server_dies(wire)),
    },
    Scenario {
        name: "fifty cancels",
        report: "python-sdk #2507",
        question: "does a server stop the handlers of calls that were dropped?",
        play: |wire| Box::pin(fifty_cancels(wire)),
    },
    Scenario {
        name: "transport closes",
        report: "python-sdk #2306",
        question: "what do running handlers do when their transport closes?",
        play: |wire| Box::pin(transport_closes(wire)),
    },
    Scenario {
        name: "server stopped",
        report: "python-sdk #2479",
        question: "does a call time out while the server reads nothing, and is it cancelled later?",
        play: |wire| Box::pin(server_stopped(wire)),
    },
];

async fn server_dies(wire: Wire) -> Played {
    let time = Timeline::new();
    let stage = Stage::set(wire, None).await?;
    let client = &stage.client;
    time.say("the server has started; two calls are made that never end");
    let cancelled = client.call_tool("hang", json!({}));
    let canceller = cancelled.canceller();
    let (cancelled, lost) = (
        cancelled.start(),
        client.call_tool("hang", json!({})).start(),
    );
    stage.until_active(2).await?;
    canceller.cancel_because("the user pressed Ctrl-C");
    let cancelled = told(cancelled.await)?;
    time.say(&format!("the caller cancelled the first call: {cancelled}"));
    stage.signal(Signal::KILL)?;
    let killed = Instant::now();
    let lost = told(lost.await)?;
    let after = killed.elapsed();
    time.say(&format!(
        "the server was killed; {after:.0?} later the second call ended: {}",
        lost
    ));
    let kept = cancelled.is_cancelled() && lost.is_lost() && after < Duration::from_secs(1);
    Ok(Shown {
        caller: format!("1st {}, 2nd {}", word(&cancelled), word(&lost)),
        server: "killed by signal 9".into(),
        leaked: 0,
        kept,
    })
}

async fn fifty_cancels(wire: Wire) -> Played {
    let time = Timeline::new();
    let stage = Stage::set(wire, None).await?;
    let client = &stage.client;
    let calls: Vec<_> = (0..50)
        .map(|_| client.call_tool("hang", json!({})).start())
        .collect();
    stage.until_active(50).await?;
    time.say("50 calls are running in the server");
    drop(calls);
    time.say("the caller dropped all 50 calls");
    stage.until_active(0).await?;
    let leaked = stage.active().await?;
    time.say(&format!(
        "after 50 cancellations: {leaked} handlers running"
    ));
    client.close().await;
    Ok(Shown {
        caller: "none (calls dropped)".into(),
        server: "stopped 50 handlers".into(),
        leaked,
        kept: leaked == 0,
    })
}

async fn transport_closes(wire: Wire) -> Played {
    let log = std::env::temp_dir().join(format!("belay-demo-{}", std::process::id()));
    let _ = std::fs::remove_file(&log);
    let played = match wire {
        Wire::Stdio(mode) => input_ends(mode, &log).await,
        Wire::Http(_) | Wire::EventStream => listener_ends(wire, &log).await,
    };
    let cleaned = std::fs::read_to_string(&log).unwrap_or_default();
    let cleaned = cleaned.lines().count();
    let _ = std::fs::remove_file(&log);
    let (caller, ended, after) = played?;
    Ok(Shown {
        caller,
        server: format!(
            "{} after {:.1} s, {cleaned} clean-ups",
            ended.status,
            after.as_secs_f32()
        ),
        leaked: 5_usize.saturating_sub(cleaned),
        kept: ended.status.success()
            && cleaned == 5
            && ended.noise == 0
            && after < Duration::from_secs(4),
    })
}

/// Closes stdin of a server while five calls are running in it.
async fn input_ends(mode: Mode, log: &Path) -> Result<(String, Ended, Duration), Failure> {
    let time = Timeline::new();
    let mut server = tokio::process::Command::new(std::env::current_exe()?)
        .arg("serve")
        .env("BELAY_DEMO_CLEANUP_LOG", log)
        .kill_on_drop(true)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let mut stdin = server.stdin.take().ok_or("the server has no stdin")?;
    let hello = (mode == Mode::Legacy).then(initialize);
    for message in hello.into_iter().chain((1..=5).map(|id| hang(mode, id))) {
        stdin.write_all(format!("{message}\n").as_bytes()).await?;
    }
    time.say("5 calls are running in the server");
    drop(stdin);
    let closed = Instant::now();
    time.say("stdin of the server is closed");
    let output = server.wait_with_output().await?;
    let ended = Ended {
        status: output.status,
        noise: output.stderr.len(),
    };
    time.say(&format!("the server has ended: {}", ended.status));
    Ok(("none (stdin closed)".into(), ended, closed.elapsed()))
}

/// Sends SIGTERM to an HTTP server while five calls are running and their streams are open.
async fn listener_ends(wire: Wire, log: &Path) -> Result<(String, Ended, Duration), Failure> {
    let time = Timeline::new();
    let mut stage = Stage::set(wire, Some(log)).await?;
    let calls: Vec<_> = (0..5)
        .map(|_| stage.client.call_tool("hang", json!({})).start())
        .collect();
    stage.until_active(5).await?;
    time.say("5 calls are running in the server");
    let closed = Instant::now();
    time.say("the server gets SIGTERM");
    let ended = stage.terminate().await?;
    let after = closed.elapsed();
    time.say(&format!("the server has ended: {}", ended.status));
    let mut words = Vec::new();
    for call in calls {
        words.push(word(&told(call.await)?));
    }
    words.dedup();
    Ok((words.join(", "), ended, after))
}

async fn server_stopped(wire: Wire) -> Played {
    let time = Timeline::new();
    let stage = Stage::set(wire, None).await?;
    let client = &stage.client;
    let hangs: Vec<_> = (0..10)
        .map(|_| client.call_tool("hang", json!({})).start())
        .collect();
    stage.until_active(10).await?;
    stage.signal(Signal::STOP)?;
    let text = "x".repeat(100_000);
    let echoes: Vec<_> = (0..10)
        .map(|_| client.call_tool("echo", json!({ "text": text })).start())
        .collect();
    time.say("10 calls are running; the server is stopped (SIGSTOP), and its input fills up");
    let called = Instant::now();
    let timed_out = client.call_tool("echo", json!({ "text": "hi" }));
    let timed_out = told(timed_out.timeout(Duration::from_millis(200)).await)?;
    let waited = called.elapsed();
    time.say(&format!("a call with a timeout of 200 ms: {timed_out}"));
    let dropping = Instant::now();
    drop(hangs);
    let dropped = dropping.elapsed();
    time.say(&format!("the caller dropped 10 calls in {dropped:.1?}"));
    stage.signal(Signal::CONT)?;
    time.say("the server continues (SIGCONT)");
    let mut answered = 0;
    for echo in echoes {
        answered += usize::from(echo.await.is_ok());
    }
    stage.until_active(0).await?;
    let leaked = stage.active().await?;
    time.say(&format!(
        "{answered} of 10 echo calls answered, {leaked} of 10 handlers still running"
    ));
    client.close().await;
    let on_time = waited < Duration::from_millis(2000) && dropped < Duration::from_millis(100);
    Ok(Shown {
        caller: format!("{} after {waited:.0?}", word(&timed_out)),
        server: "stopped 10 handlers".into(),
        leaked,
        kept: timed_out.is_timeout() && on_time && answered == 10 && leaked == 0,
    })
}

/// The error of a call that must fail.
fn told<T>(ended: Result<T, Error>) -> Result<Error, &'static str> {
    match ended {
        Ok(_) => Err("a call was answered that should have failed"),
        Err(error) => Ok(error),
    }
}

fn word(error: &Error) -> &'static str {
    match error {
        _ if error.is_lost() => "lost",
        _ if error.is_cancelled() => "cancelled",
        _ if error.is_timeout() => "timed out",
        _ => "other error",
    }
}

fn initialize() -> serde_json::Value {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "belay-demo", "version": "1" }
    }})
}

fn hang(mode: Mode, id: u32) -> serde_json::Value {
    let meta = match mode {
        Mode::Legacy => json!({}),
        _ => json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}
        }),
    };
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "hang", "_meta": meta } })
}
