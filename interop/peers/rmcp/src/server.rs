//! A server on rmcp for Belay's client to speak to: echo, count with progress, hang.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpService, stdio};
use rmcp::{RoleServer, ServiceExt, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    to: u32,
    delay_ms: u64,
}

#[derive(Clone)]
struct Peer;

#[tool_router(server_handler)]
impl Peer {
    #[tool(description = "Says what it is told.")]
    async fn echo(&self, Parameters(echo): Parameters<Echo>) -> String {
        echo.text
    }

    #[tool(description = "Counts, with progress.")]
    async fn count(
        &self,
        Parameters(count): Parameters<Count>,
        context: RequestContext<RoleServer>,
    ) -> String {
        for step in 1..=count.to {
            tokio::time::sleep(Duration::from_millis(count.delay_ms)).await;
            if let Some(token) = context.meta.get_progress_token() {
                let progress = ProgressNotificationParam::new(token, f64::from(step))
                    .with_total(f64::from(count.to));
                let _ = context.peer.notify_progress(progress).await;
            }
        }
        count.to.to_string()
    }

    #[tool(description = "Runs until it is cancelled.")]
    async fn hang(&self, context: RequestContext<RoleServer>) -> String {
        note("started");
        context.ct.cancelled().await;
        note("cancelled");
        String::new()
    }
}

/// Leaves a line where the test can find it.
fn note(line: &str) {
    let Some(path) = std::env::var_os("INTEROP_LOG") else {
        return;
    };
    let log = std::fs::OpenOptions::new().create(true).append(true).open(path);
    if let Ok(mut log) = log {
        let _ = log.write_all(format!("{line}\n").as_bytes());
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match &arguments[..] {
        [] => _ = Peer.serve(stdio()).await?.waiting().await?,
        [wire, port] if wire == "http" => serve_http(port.parse()?).await?,
        _ => return Err("rmcp-server [http PORT]".into()),
    }
    Ok(())
}

async fn serve_http(port: u16) -> std::io::Result<()> {
    let service: StreamableHttpService<Peer, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Peer), Arc::default(), Default::default());
    let router = axum::Router::new().route_service("/mcp", service);
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await?;
    println!("listening");
    axum::serve(listener, router).await
}
