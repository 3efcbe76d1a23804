//! HTTP, on real sockets.

mod access;
mod client;
mod cors;
mod disconnects;
mod frames;
mod giving_up;
mod idle;
mod limits;
mod listens;
mod malformed;
mod played;
mod progress;
mod sessions;
mod shares;
mod stored;
mod streams;
mod tls;
mod unread;
mod weighed;

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::http::{Endpoint, ServerHandle};
use belay::{Context, Server, Tool};
use belay_testkit::{RawHttp, until};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    to: u32,
    delay_ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Counts the `hang`s that exist.
#[derive(Clone, Default)]
struct Hanging(Arc<AtomicUsize>);

impl Hanging {
    fn enter(&self) -> Inside {
        self.0.fetch_add(1, Ordering::SeqCst);
        Inside(self.clone())
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    async fn comes_to(&self, count: usize) {
        until(&format!("{count} hang"), || self.count() == count).await;
    }
}

struct Inside(Hanging);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

fn server(hanging: &Hanging) -> Server {
    let hanging = hanging.clone();
    Server::new("test", "1")
        .tool(Tool::new(
            "echo",
            |_: Context, it: Text| async move { it.text },
        ))
        .tool(Tool::new("count", |cx: Context, it: Count| async move {
            for step in 1..=it.to {
                tokio::time::sleep(Duration::from_millis(it.delay_ms)).await;
                cx.progress(step.into(), f64::from(it.to), "").await;
            }
            it.to.to_string()
        }))
        .tool(Tool::new("nap", |_: Context, it: Count| async move {
            tokio::time::sleep(Duration::from_millis(it.delay_ms)).await;
            "awake"
        }))
        .tool(Tool::new("flood", |cx: Context, _: Nothing| async move {
            let message = "x".repeat(10_000);
            for step in 1.. {
                cx.progress(step.into(), None, &message).await;
            }
        }))
        // It says something, and answers when it is first polled.
        .tool(Tool::new("brief", |cx: Context, _: Nothing| async move {
            cx.progress(1.0, None, "so far").await;
            "done"
        }))
        // More than fits into the buffers on the way.
        .tool(Tool::new("large", |cx: Context, _: Nothing| async move {
            tokio::time::sleep(Duration::from_millis(10)).await;
            cx.progress(1.0, None, "here it comes").await;
            "x".repeat(32 << 20)
        }))
        .tool(Tool::new("shout", {
            let hanging = hanging.clone();
            move |cx: Context, _: Nothing| {
                let inside = hanging.enter();
                async move {
                    let _inside = inside;
                    cx.progress(1.0, None, "here I am").await;
                    pending::<()>().await;
                }
            }
        }))
        .tool(Tool::new("hang", move |_: Context, _: Nothing| {
            let inside = hanging.enter();
            async move {
                let _inside = inside;
                pending::<()>().await;
            }
        }))
}

/// A server on a socket.
struct Running {
    listening: ServerHandle,
    hanging: Hanging,
}

impl Running {
    async fn start() -> Self {
        Self::with(|endpoint| endpoint).await
    }

    async fn with(change: impl FnOnce(Endpoint) -> Endpoint) -> Self {
        Self::of(|server| server, change).await
    }

    async fn of(
        change_server: impl FnOnce(Server) -> Server,
        change: impl FnOnce(Endpoint) -> Endpoint,
    ) -> Self {
        let hanging = Hanging::default();
        let endpoint = Endpoint::new(change_server(server(&hanging))).sse(true);
        let listening = change(endpoint).bind("127.0.0.1:0").await.unwrap();
        Self { listening, hanging }
    }

    fn address(&self) -> SocketAddr {
        self.listening.address()
    }

    fn url(&self) -> String {
        format!("http://{}/mcp", self.address())
    }

    async fn raw(&self) -> RawHttp {
        RawHttp::connect(self.address()).await
    }

    async fn session(&self, version: &str) -> RawHttp {
        let mut http = self.raw().await;
        http.initialize(version).await;
        http
    }

    /// Another connection for the same session.
    async fn beside(&self, http: &RawHttp) -> RawHttp {
        let mut beside = self.raw().await;
        beside.headers.clone_from(&http.headers);
        beside
    }
}
