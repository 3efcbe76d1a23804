//! Belay's client against another SDK's server.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use belay::Client;
use belay::client::Mode;
use serde_json::{Value, json};

use crate::Checked;
use crate::peers::Peer;
use crate::processes::{Listener, Scratch, exists, free_port, kill, until};
use crate::table::Row;

pub(crate) async fn check(row: &mut Row, peer: &Peer, era: &'static str) {
    let log = Scratch::new("handlers");
    let open = || open(&peer.server, era, &log);
    row.set("list", with(open().await, list).await);
    row.set("call", with(open().await, call).await);
    row.set("progress", with(open().await, progress).await);
    row.set(
        "cancel",
        with(open().await, |client| cancel(client, &log)).await,
    );
    row.set(
        "killed",
        with(open().await, |client| killed(client, &log)).await,
    );
    row.set(
        "closed",
        with(open().await, |client| closed(client, &log)).await,
    );
}

/// The same for a server on HTTP. `wire` is the transport it is started with: `http` or `sse`.
pub(crate) async fn check_listener(row: &mut Row, peer: &Peer, wire: &str, era: &'static str) {
    let log = Scratch::new("handlers");
    let started = listen(peer, wire, &log).await;
    let open = || async {
        let server = started.as_ref().map_err(Clone::clone)?;
        let _ = std::fs::remove_file(&log.0);
        let path = if wire == "sse" { "sse" } else { "mcp" };
        let builder = Client::builder("interop", "1").mode(mode(era));
        let url = format!("http://{}/{path}", server.address);
        builder.http(&url).await.map_err(told)
    };
    row.set("list", with(open().await, list).await);
    row.set("call", with(open().await, call).await);
    row.set("progress", with(open().await, progress).await);
    row.set(
        "cancel",
        with(open().await, |client| cancel(client, &log)).await,
    );
    if era == "legacy" {
        row.set(
            "early",
            with(open().await, |client| early(client, &log)).await,
        );
    }
    let closed = |client: Client| {
        let log = &log;
        async move {
            let _call = hang(&client, log).await?;
            client.close().await;
            until("the handler was told", || log.text().contains("cancelled")).await
        }
    };
    row.set("closed", with(open().await, closed).await);
    let killed = |client: Client| {
        let (log, server) = (&log, &started);
        async move {
            let call = hang(&client, log).await?;
            let server = server.as_ref().map_err(Clone::clone)?;
            kill(server.pid().ok_or("it has ended")?)?;
            let error = call.await.err().ok_or("it was answered")?;
            expect(error.is_lost(), || format!("{error:?}"))
        }
    };
    row.set("killed", with(open().await, killed).await);
}

async fn listen(peer: &Peer, wire: &str, log: &Scratch) -> Result<Listener, String> {
    let port = free_port()?;
    let mut command = tokio::process::Command::new(&peer.server[0]);
    command
        .args(&peer.server[1..])
        .args([wire, &port.to_string()])
        .env("INTEROP_LOG", &log.0);
    Listener::start(&mut command, Some(format!("127.0.0.1:{port}"))).await
}

/// A public server of which only one tool is known.
pub(crate) async fn check_public(row: &mut Row, command: &[String], tool: &str, arguments: Value) {
    let log = Scratch::new("handlers");
    let listed = with(open(command, "auto", &log).await, |client| async move {
        let tools = client.list_all_tools().await.map_err(told)?;
        let is_there = tools.iter().any(|it| it.name == tool);
        expect(is_there, || {
            format!("{tool:?} is not among {} tools", tools.len())
        })
    });
    row.set("list", listed.await);
    let called = with(open(command, "auto", &log).await, |client| async move {
        let result = client.call_tool(tool, arguments).await.map_err(told)?;
        let failed = result.is_error == Some(true) || result.content.is_empty();
        expect(!failed, || format!("{result:?}"))
    });
    row.set("call", called.await);
    let closed = with(open(command, "auto", &log).await, |client| async move {
        let pid = client.pid().ok_or("it is a child")?;
        client.close().await;
        expect(!exists(pid), || "it is still there".into())
    });
    row.set("closed", closed.await);
}

async fn open(command: &[String], era: &str, log: &Scratch) -> Result<Client, String> {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]).env("INTEROP_LOG", &log.0);
    let _ = std::fs::remove_file(&log.0);
    let builder = Client::builder("interop", "1").mode(mode(era));
    builder.spawn(child).await.map_err(told)
}

fn mode(era: &str) -> Mode {
    match era {
        "legacy" => Mode::Legacy,
        "modern" => Mode::Modern,
        _ => Mode::Auto,
    }
}

async fn with<F>(client: Result<Client, String>, check: impl FnOnce(Client) -> F) -> Checked
where
    F: Future<Output = Checked>,
{
    let client = client?;
    let checked = tokio::time::timeout(Duration::from_secs(60), check(client.clone())).await;
    client.close().await;
    checked.unwrap_or_else(|_| Err("it hung".into()))
}

async fn list(client: Client) -> Checked {
    let tools = client.list_all_tools().await.map_err(told)?;
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    expect(names == ["count", "echo", "hang"], || format!("{names:?}"))
}

async fn call(client: Client) -> Checked {
    let arguments = json!({ "text": "hello" });
    let result = client.call_tool("echo", arguments).await.map_err(told)?;
    let text = result.content.first().and_then(|block| block.as_text());
    expect(text == Some("hello"), || format!("{result:?}"))
}

async fn progress(client: Client) -> Checked {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let steps = seen.clone();
    let arguments = json!({ "to": 3, "delay_ms": 20 });
    let call = client
        .call_tool("count", arguments)
        .on_progress(move |step| {
            if let Ok(mut steps) = steps.lock() {
                steps.push(step.progress.0);
            }
        });
    call.await.map_err(told)?;
    let seen = seen.lock().map_err(|error| error.to_string())?;
    // Progress that does not grow is dropped (order), and a peer may reorder its own progress.
    let complete = *seen == [1.0, 2.0, 3.0];
    expect(complete, || format!("{seen:?}"))
}

async fn hang(
    client: &Client,
    log: &Scratch,
) -> Result<belay::InFlight<belay::types::CallToolResult>, String> {
    let call = client.call_tool("hang", json!({})).start();
    until("the handler runs", || log.text().contains("started")).await?;
    Ok(call)
}

/// Drops a call, and checks that the peer's handler is cancelled.
async fn cancel(client: Client, log: &Scratch) -> Checked {
    drop(hang(&client, log).await?);
    until("the handler was told", || log.text().contains("cancelled")).await
}

/// Drops calls at once or a little later, where call and cancel are two POSTs that could overtake
/// each other, and checks that no handler is left running.
async fn early(client: Client, log: &Scratch) -> Checked {
    let lines = |what: &str| log.text().lines().filter(|line| *line == what).count();
    for millis in [0, 1, 2, 5, 20] {
        for _ in 0..40 {
            let call = client.call_tool("hang", json!({})).start();
            tokio::time::sleep(Duration::from_millis(millis)).await;
            drop(call);
        }
        // When this call is answered, everything that was posted before it has begun, or is about
        // to.
        call_once(&client).await?;
        tokio::time::sleep(Duration::from_millis(500)).await;
        let left = || lines("started") - lines("cancelled");
        let told = until("every handler was told", || left() == 0).await;
        told.map_err(|_| format!("{} left of 40 cancelled after {millis} ms", left()))?;
    }
    expect(lines("started") > 40, || "hardly any call got out".into())
}

async fn call_once(client: &Client) -> Checked {
    let echo = client.call_tool("echo", json!({ "text": "still there" }));
    echo.await.map(drop).map_err(told)
}

/// Kills the server in mid-call, and checks that the caller gets the right error.
async fn killed(client: Client, log: &Scratch) -> Checked {
    let call = hang(&client, log).await?;
    let pid = client.pid().ok_or("it is a child")?;
    kill(pid)?;
    let error = call.await.err().ok_or("it was answered")?;
    let signal = error.exited().and_then(|exited| exited.signal());
    expect(error.is_lost() && signal == Some(9), || {
        format!("{error:?}")
    })?;
    until("it is reaped", || !exists(pid)).await
}

/// Closes with a call in flight, and checks that the server process is gone, whatever the peer does
/// with the call.
async fn closed(client: Client, log: &Scratch) -> Checked {
    let _call = hang(&client, log).await?;
    let pid = client.pid().ok_or("it is a child")?;
    client.close().await;
    expect(!exists(pid), || format!("process {pid} is still there"))
}

fn expect(is_so: bool, otherwise: impl FnOnce() -> String) -> Checked {
    match is_so {
        true => Ok(()),
        false => Err(otherwise()),
    }
}

fn told(error: belay::Error) -> String {
    format!("{error:?}")
}
