//! The servers that are measured.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use belay::http::Endpoint;
use belay::{Context, Server, Tool};
use belay_cost::floor;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::ProgressNotificationParam;
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServiceExt, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;

use crate::Who;

/// A limit that no measurement reaches.
const MOST: usize = 1 << 20;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

fn belay() -> Server {
    let echo = |_: Context, echo: Echo| async move { echo.text };
    let count = |cx: Context, echo: Echo| async move {
        cx.progress(1.0, None, "").await;
        echo.text
    };
    let hang = |_: Context, _: Echo| async move { pending::<String>().await };
    Server::new("bench", "1")
        .tool(Tool::new("echo", echo))
        .tool(Tool::new("count", count))
        .tool(Tool::new("hang", hang))
        .limits(|limits| {
            limits.handlers = MOST;
            limits.kept_bytes = MOST << 10;
        })
}

#[derive(Clone)]
struct Rmcp;

#[tool_router(server_handler)]
impl Rmcp {
    #[tool(description = "Says what it is told.")]
    async fn echo(&self, Parameters(echo): Parameters<Echo>) -> String {
        echo.text
    }

    #[tool(description = "Says so first, then what it is told.")]
    async fn count(
        &self,
        Parameters(echo): Parameters<Echo>,
        context: RequestContext<RoleServer>,
    ) -> String {
        if let Some(token) = context.meta.get_progress_token() {
            let progress = ProgressNotificationParam::new(token, 1.0);
            let _ = context.peer.notify_progress(progress).await;
        }
        echo.text
    }
}

/// A runtime with one thread, or with a scheduler that moves tasks between several.
pub(crate) fn runtime(threads: usize) -> tokio::runtime::Runtime {
    let mut runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    runtime.enable_all().worker_threads(threads);
    runtime.build().expect("a runtime")
}

pub(crate) fn run(wire: &str, who: Who) {
    if wire == "stdio" && who == Who::Floor {
        return floor::serve_stdio();
    }
    runtime(2).block_on(async {
        match wire {
            "stdio" => serve_stdio(who).await,
            _ => serve_http(who).await,
        }
    });
}

async fn serve_stdio(who: Who) {
    match who {
        Who::Belay => {
            belay::serve_stdio(belay()).await.expect("a pipe");
        }
        _ => {
            let served = Rmcp.serve(rmcp::transport::stdio()).await.expect("a pipe");
            served.waiting().await.expect("an end");
        }
    }
}

async fn serve_http(who: Who) {
    // The end of stdin shows that the parent process is gone, however it ended.
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    println!("{}", listener.local_addr().expect("an address"));
    match who {
        Who::Floor => floor::serve_http(listener).await,
        Who::Belay => {
            // One client may use half of what is left, so the limit is far above what it needs.
            let endpoint = Endpoint::new(belay())
                .sessions(MOST)
                .session_idle(Duration::from_secs(3600))
                .kept_bytes(4 << 30);
            endpoint.listen(listener).expect("a socket").await;
        }
        Who::Rmcp | Who::RmcpJson => {
            use axum::serve::ListenerExt;
            let mut config = StreamableHttpServerConfig::default();
            config.json_response = who == Who::RmcpJson;
            config.legacy_session_mode = who == Who::Rmcp;
            let service: StreamableHttpService<Rmcp, LocalSessionManager> =
                StreamableHttpService::new(|| Ok(Rmcp), Arc::default(), config);
            let router = axum::Router::new().route_service("/mcp", service);
            let listener = listener.tap_io(|stream| {
                let _ = stream.set_nodelay(true);
            });
            axum::serve(listener, router).await.expect("a socket");
        }
    }
}
