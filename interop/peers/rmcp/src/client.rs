//! A client on rmcp that speaks to Belay's server and tells what it saw, a line of JSON a step.

use std::error::Error;
use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, ProgressNotificationParam, ProtocolVersion};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt, NotificationContext, RoleClient, RunningService,
};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::ClientHandler;
use serde_json::{Value, json};
use tokio::process::Command;

/// Remembers the progress it hears of.
#[derive(Clone, Default)]
struct Listener(Arc<Mutex<Vec<f64>>>);

impl ClientHandler for Listener {
    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.0.lock().unwrap().push(progress.progress);
    }
}

type Client = RunningService<RoleClient, Listener>;

#[tokio::main]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let mode = arguments.next().unwrap_or_default();
    let command: Vec<String> = arguments.skip_while(|word| word == "--").collect();
    let mut step = "connect";
    if let Err(error) = run(&mode, &command, &mut step).await {
        println!("{}", json!({ "step": step, "error": error.to_string() }));
        std::process::exit(1);
    }
}

async fn run(mode: &str, command: &[String], step: &mut &str) -> Result<(), Box<dyn Error>> {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match std::env::var("INTEROP_ERA").as_deref() {
        Ok("legacy") => ClientLifecycleMode::Initialize,
        Ok("modern") => ClientLifecycleMode::Discover { preferred_versions },
        _ => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: None,
        },
    };
    let listener = Listener::default();
    let client = match &command[0] {
        url if url.starts_with("http://") => {
            let transport = StreamableHttpClientTransport::from_uri(url.as_str());
            listener.clone().serve_with_lifecycle(transport, lifecycle).await?
        }
        program => {
            let mut child = Command::new(program);
            child.args(&command[1..]);
            let transport = TokioChildProcess::new(child)?;
            listener.clone().serve_with_lifecycle(transport, lifecycle).await?
        }
    };
    if mode == "hang" {
        let _hang = tokio::spawn(call(client.peer().clone(), "hang", json!({})));
        until_active(&client, "1", Duration::from_secs(10)).await?;
        tell("hanging", Value::Null);
        return pending().await;
    }
    let version = client.peer_info().map(|info| info.protocol_version.to_string());
    tell("era", json!(version));

    *step = "list";
    let tools = client.list_all_tools().await?;
    tell("list", tools.iter().map(|tool| tool.name.as_ref()).collect());

    *step = "echo";
    let echo = call(client.peer().clone(), "echo", json!({ "text": "hello" })).await?;
    tell("echo", json!(echo));

    *step = "progress";
    call(client.peer().clone(), "count", json!({ "to": 3, "delay_ms": 20 })).await?;
    // It hands notifications to tasks of their own, so they come in any order, and late.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut seen = listener.0.lock().unwrap().clone();
    seen.sort_by(f64::total_cmp);
    tell("progress", seen.iter().map(|step| *step as u64).collect());

    *step = "cancel";
    let hang = tokio::spawn(call(client.peer().clone(), "hang", json!({})));
    until_active(&client, "1", Duration::from_secs(10)).await?;
    // Aborting the task drops the future of the call.
    hang.abort();
    let left = until_active(&client, "0", Duration::from_secs(5)).await?;
    tell("cancel", json!(left));

    *step = "close";
    client.cancel().await?;
    tell("done", Value::Null);
    Ok(())
}

type Peer = rmcp::Peer<RoleClient>;

async fn call(peer: Peer, tool: &'static str, arguments: Value) -> Result<String, String> {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let params = CallToolRequestParams::new(tool).with_arguments(arguments);
    let result = peer.call_tool(params).await;
    let result = serde_json::to_value(result.map_err(|error| error.to_string())?);
    let result = result.map_err(|error| error.to_string())?;
    Ok(result["content"][0]["text"].as_str().unwrap_or_default().to_owned())
}

/// Asks how many hang until that is so, or time is over. Gives the last answer.
async fn until_active(client: &Client, wanted: &str, span: Duration) -> Result<String, String> {
    let until = Instant::now() + span;
    loop {
        let active = call(client.peer().clone(), "active", json!({})).await?;
        if active == wanted || Instant::now() > until {
            return Ok(active);
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn tell(step: &str, value: Value) {
    println!("{}", json!({ "step": step, "value": value }));
}
