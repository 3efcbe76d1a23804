//! The shutdown of the server: SIGTERM with calls in flight on every wire. Each call ends as
//! *lost*, and the server exits in good order (**orderly-close**, **typed-end**).

use belay::Client;
use belay::client::Mode;
use serde_json::json;
use tokio::time::timeout;

use crate::server::Server;
use crate::{Done, PATIENCE};

const WIRES: [(&str, Mode); 3] = [
    ("mcp", Mode::Modern),
    ("mcp", Mode::Legacy),
    ("sse", Mode::Legacy),
];

pub(crate) async fn end(server: Server) -> Done {
    let mut calls = Vec::new();
    for (path, mode) in WIRES {
        let url = format!("http://{}/{path}", server.address);
        let client = Client::builder("soak", "1").mode(mode).http(&url).await;
        let client = client.map_err(|error| format!("{path}, {mode:?}: {error:?}"))?;
        let hang = client.call_tool("hang", json!({})).start();
        let echo = client.call_tool("echo", json!({ "text": "hi" })).await;
        echo.map_err(|error| format!("{path}, {mode:?}: {error:?}"))?;
        calls.push((path, mode, client, hang));
    }
    server.terminate().await?;
    for (path, mode, client, hang) in calls {
        let ended = timeout(PATIENCE, hang).await;
        let ended = ended.map_err(|_| "no-hang: a call outlives its server")?;
        match ended {
            Err(error) if error.is_lost() => {}
            ended => return Err(format!("typed-end: {path}, {mode:?}: {ended:?}")),
        }
        drop(client);
    }
    Ok(())
}
