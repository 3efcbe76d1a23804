//! Another SDK's client against Belay's server.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use belay::Client;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::Checked;
use crate::peers::Peer;
use crate::processes::{Listener, Scratch, exists, kill, until};
use crate::table::Row;

pub(crate) async fn check(row: &mut Row, peer: &Peer, era: &'static str, belay: &Path) {
    let told = talk(peer, era, belay).await;
    judge(row, peer, &told);
    row.set("killed", killed(peer, era, belay).await);
}

/// The same on HTTP: at `/mcp`, or at `/sse`.
pub(crate) async fn check_http(
    row: &mut Row,
    peer: &Peer,
    path: &str,
    era: &'static str,
    belay: &Path,
) {
    let told = match listen(belay).await {
        Ok(server) => {
            let url = format!("http://{}/{path}", server.address);
            match run(peer, "talk", era, &url) {
                Ok(client) => speak(client, era).await,
                Err(error) => Err(error),
            }
        }
        Err(error) => Err(error),
    };
    judge(row, peer, &told);
    row.set("killed", killed_on_http(peer, path, era, belay).await);
}

/// Runs the MCP Inspector against Belay's server.
pub(crate) async fn inspect(row: &mut Row, inspector: &Path, path: &str, belay: &Path) {
    let wire = if path == "mcp" { "http" } else { path };
    let ask = async |method: &[&str], shows: &str| {
        let server = listen(belay).await?;
        let asked = Command::new(inspector)
            .arg("--cli")
            .arg(format!("http://{}/{path}", server.address))
            .args(["--transport", wire, "--method"])
            .args(method)
            .kill_on_drop(true)
            .output();
        let asked = tokio::time::timeout(Duration::from_secs(60), asked).await;
        let output = asked
            .map_err(|_| "it hung")?
            .map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&output.stdout);
        match output.status.success() && said.contains(shows) {
            true => Ok(()),
            false => Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr))),
        }
    };
    row.set("list", ask(&["tools/list"], "\"rollback\"").await);
    let call = [
        "tools/call",
        "--tool-name",
        "echo",
        "--tool-arg",
        "text=hello",
    ];
    row.set("call", ask(&call, "\"hello\"").await);
}

/// Starts Belay's server on HTTP. The resume window is one second, since a killed client never
/// comes back.
async fn listen(belay: &Path) -> Result<Listener, String> {
    let mut command = Command::new(belay);
    command.args([
        "serve",
        "--http",
        "127.0.0.1:0",
        "--sse",
        "--resume-window",
        "1",
    ]);
    Listener::start(&mut command, None).await
}

/// Fills in the row from the results of the steps.
fn judge(row: &mut Row, peer: &Peer, told: &Result<HashMap<String, Value>, String>) {
    let step = |name: &str, right: &dyn Fn(&Value) -> bool| match told {
        Err(error) => Err(error.clone()),
        Ok(told) => match told.get(name) {
            Some(value) if right(value) => Ok(()),
            Some(value) => Err(value.to_string()),
            None => Err("it did not get so far".into()),
        },
    };
    row.set(
        "list",
        step("list", &|names| names.to_string().contains("\"echo\"")),
    );
    row.set("call", step("echo", &|text| *text == "hello"));
    let (all, but_the_last) = (json!([1, 2, 3]), json!([1, 2]));
    let heard = match peer.hears_the_last {
        true => step("progress", &|steps| *steps == all),
        false => step("progress", &|steps| *steps == all || *steps == but_the_last),
    };
    row.set("progress", heard);
    match peer.announces {
        true => row.set("cancel", step("cancel", &|left| *left == "0")),
        // Fails as soon as this client begins to send cancels, so that the note can be removed.
        false => {
            row.set("cancel", step("cancel", &|left| *left == "1"));
            row.note("cancel", "untold");
        }
    }
    row.set("closed", step("done", &|_| true));
}

/// Starts the peer's client, which starts Belay's server. The server's process id goes to a file.
fn start(peer: &Peer, mode: &str, era: &str, belay: &Path, pid: &Scratch) -> Result<Child, String> {
    let server = format!(
        "echo $$ > {}; exec {} serve",
        pid.0.display(),
        belay.display()
    );
    run_with(peer, mode, era, &["sh", "-c", &server])
}

fn run(peer: &Peer, mode: &str, era: &str, url: &str) -> Result<Child, String> {
    run_with(peer, mode, era, &[url])
}

fn run_with(peer: &Peer, mode: &str, era: &str, server: &[&str]) -> Result<Child, String> {
    Command::new(&peer.client[0])
        .args(&peer.client[1..])
        .args([mode, "--"])
        .args(server)
        .env("INTEROP_ERA", era)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("{}: {error}", peer.client[0]))
}

/// Returns the results of the client's steps.
async fn talk(peer: &Peer, era: &str, belay: &Path) -> Result<HashMap<String, Value>, String> {
    let pid = Scratch::new("server");
    let client = start(peer, "talk", era, belay, &pid)?;
    let steps = speak(client, era).await?;
    until("our server is gone", || {
        pid.text().trim().parse().is_ok_and(|pid| !exists(pid))
    })
    .await?;
    Ok(steps)
}

async fn speak(mut client: Child, era: &str) -> Result<HashMap<String, Value>, String> {
    let stdout = client.stdout.take().ok_or("it has no stdout")?;
    let mut lines = BufReader::new(stdout).lines();
    let mut steps = HashMap::new();
    let talking = async {
        while let Ok(Some(line)) = lines.next_line().await {
            let said: Value =
                serde_json::from_str(&line).map_err(|_| format!("it says {line:?}"))?;
            if let Some(error) = said.get("error") {
                return Err(format!("{}: {error}", said["step"]));
            }
            if let Some(step) = said["step"].as_str() {
                steps.insert(step.to_owned(), said["value"].clone());
            }
        }
        let status = client.wait().await.map_err(|error| error.to_string())?;
        match status.success() {
            true => Ok(()),
            false => Err(format!("it ended with {status}")),
        }
    };
    let talked = tokio::time::timeout(Duration::from_secs(60), talking).await;
    talked.unwrap_or_else(|_| Err("it hung".into()))?;
    let version = steps.get("era").cloned().unwrap_or_default();
    let right = match era {
        "modern" => version == "2026-07-28",
        _ => version.is_string() && version != "2026-07-28",
    };
    match right {
        true => Ok(steps),
        false => Err(format!("it speaks {version}")),
    }
}

/// Kills the peer's client in mid-call, and checks that Belay's server ends.
async fn killed(peer: &Peer, era: &str, belay: &Path) -> Checked {
    let file = Scratch::new("server");
    let mut client = start(peer, "hang", era, belay, &file)?;
    hangs(&mut client).await?;
    let server: u32 = file
        .text()
        .trim()
        .parse()
        .map_err(|_| "our server left no id")?;
    kill(client.id().ok_or("it has ended")?)?;
    until("our server is gone", || !exists(server)).await
}

/// Kills the peer's client in mid-call, and checks that Belay's server goes on and its handler
/// ends.
async fn killed_on_http(peer: &Peer, path: &str, era: &str, belay: &Path) -> Checked {
    let server = listen(belay).await?;
    let url = format!("http://{}/{path}", server.address);
    let mut client = run(peer, "hang", era, &url)?;
    hangs(&mut client).await?;
    kill(client.id().ok_or("it has ended")?)?;
    let ours = Client::http(&format!("http://{}/mcp", server.address)).await;
    let ours = ours.map_err(|error| format!("{error:?}"))?;
    for _ in 0..1000 {
        let active = ours.call_tool("active", json!({})).await;
        let active = active.map_err(|error| format!("{error:?}"))?;
        if active.content.first().and_then(|block| block.as_text()) == Some("0") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err("its handler is still there".into())
}

/// Waits until a client prints that its call hangs.
async fn hangs(client: &mut Child) -> Checked {
    let stdout = client.stdout.take().ok_or("it has no stdout")?;
    let mut lines = BufReader::new(stdout).lines();
    let line = tokio::time::timeout(Duration::from_secs(60), lines.next_line()).await;
    let line = line
        .map_err(|_| "it hung")?
        .ok()
        .flatten()
        .unwrap_or_default();
    match line.contains("hanging") {
        true => Ok(()),
        false => Err(format!("it says {line:?}")),
    }
}
