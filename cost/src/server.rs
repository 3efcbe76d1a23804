//! The servers that are measured.

use belay::http::Endpoint;
use belay::{Context, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

use crate::counts::Counts;
use crate::scenario::{Who, Wire};
use belay_cost::floor;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

fn server() -> Server {
    let echo = |_: Context, echo: Echo| async move { echo.text };
    let count = |cx: Context, echo: Echo| async move {
        cx.progress(1.0, None, "").await;
        echo.text
    };
    Server::new("cost", "1")
        .tool(Tool::new("echo", echo))
        .tool(Tool::new("count", count))
}

/// Serves until the end of its input, and reports the cost.
pub(crate) fn serve(wire: Wire, who: Who) {
    match (wire, who) {
        (Wire::Stdio, Who::Floor) => floor::serve_stdio(),
        _ => runtime().block_on(async {
            match (wire, who) {
                (Wire::Stdio, _) => drop(belay::serve_stdio(server()).await),
                (_, who) => serve_http(who).await,
            }
        }),
    }
    Counts::report();
}

pub(crate) fn runtime() -> tokio::runtime::Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.enable_all().worker_threads(2);
    runtime.build().expect("a runtime")
}

async fn serve_http(who: Who) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a socket");
    println!("{}", listener.local_addr().expect("an address"));
    let ended = async {
        let _ = tokio::io::stdin().read(&mut [0]).await;
    };
    match who {
        Who::Floor => tokio::select! {
            () = floor::serve_http(listener) => {}
            () = ended => {}
        },
        Who::Belay => {
            let serving = Endpoint::new(server()).listen(listener).expect("a socket");
            ended.await;
            drop(serving);
        }
    }
}
