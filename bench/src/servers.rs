//! Those who answer.

use std::convert::Infallible;
use std::io::{BufRead, Write};
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ServiceExt, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::net::TcpListener;

use crate::{Era, Who};

pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
pub(crate) const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub(crate) fn echo(era: Era) -> String {
    let meta = match era {
        Era::Legacy => r#""progressToken":1"#,
        Era::Modern => {
            r#""progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}"#
        }
    };
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"_meta":{{{meta}}},"name":"echo","arguments":{{"text":"hello, world"}}}}}}"#
    )
}

/// What the floor answers, whatever it is asked.
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello, world"}]}}"#;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

fn belay() -> belay::Server {
    let echo = |_: belay::Context, echo: Echo| async move { echo.text };
    belay::Server::new("bench", "1").tool(belay::Tool::new("echo", echo))
}

#[derive(Clone)]
struct Rmcp;

#[tool_router(server_handler)]
impl Rmcp {
    #[tool(description = "Says what it is told.")]
    async fn echo(&self, Parameters(echo): Parameters<Echo>) -> String {
        echo.text
    }
}

pub(crate) fn run(wire: &str, who: &str) {
    let whos = [Who::Floor, Who::Belay, Who::Rmcp, Who::RmcpJson];
    let who = whos.into_iter().find(|known| known.name() == who).expect("a name");
    if wire == "stdio" && who == Who::Floor {
        return floor_stdio();
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .worker_threads(2)
        .build()
        .expect("a runtime");
    runtime.block_on(async {
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

/// A line for each line, each with a write of its own.
fn floor_stdio() {
    let mut input = std::io::BufReader::with_capacity(1 << 16, std::io::stdin());
    let mut output = std::io::stdout().lock();
    let answer = format!("{ANSWER}\n");
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line).expect("a pipe") == 0 {
            return;
        }
        output.write_all(answer.as_bytes()).expect("a reader");
        output.flush().expect("a reader");
    }
}

async fn serve_http(who: Who) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    println!("{}", listener.local_addr().expect("an address"));
    match who {
        Who::Floor => floor_http(listener).await,
        Who::Belay => {
            let endpoint = belay::http::Endpoint::new(belay());
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

async fn floor_http(listener: TcpListener) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        tokio::spawn(async move {
            let service = service_fn(|request: Request<hyper::body::Incoming>| async {
                let body = request.into_body().collect().await;
                drop(body);
                let mut response = Response::new(Full::new(Bytes::from_static(ANSWER.as_bytes())));
                let kind = hyper::header::HeaderValue::from_static("application/json");
                response.headers_mut().insert("content-type", kind);
                Ok::<_, Infallible>(response)
            });
            let http = hyper::server::conn::http1::Builder::new();
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}
