//! The peers, and how they are started.

use std::path::Path;

use serde_json::{Value, json};

/// A server and a client that use another SDK.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) server: Vec<String>,
    pub(crate) client: Vec<String>,
    /// The eras that its server supports.
    pub(crate) server_eras: &'static [&'static str],
    /// The eras that its client can be started in.
    pub(crate) client_eras: &'static [&'static str],
    /// Whether its server, and its client, have the transport of 2024-11-05.
    pub(crate) sse: (bool, bool),
    /// Whether its client sends a cancel to the server. Some never do.
    pub(crate) announces: bool,
    /// Whether its client reports progress that arrives together with the answer. TypeScript's
    /// client handles the answer first, and then drops the progress callback.
    pub(crate) hears_the_last: bool,
}

const LEGACY: &[&str] = &["legacy"];
const BOTH: &[&str] = &["legacy", "modern"];

pub(crate) fn sdks(folder: &Path) -> Vec<Peer> {
    let python = |name, version: &str, eras| {
        let place = folder.join(version);
        let interpreter = text(&place.join("bin/python"));
        Peer {
            name,
            server: vec![interpreter.clone(), text(&place.join("server.py"))],
            client: vec![interpreter, text(&place.join("client.py"))],
            server_eras: eras,
            client_eras: eras,
            sse: (true, true),
            announces: version != "python1",
            hears_the_last: true,
        }
    };
    let typescript = |name, version: &str, eras| {
        let place = folder.join(version);
        Peer {
            name,
            server: vec!["node".into(), text(&place.join("server.mjs"))],
            client: vec!["node".into(), text(&place.join("client.mjs"))],
            server_eras: eras,
            client_eras: eras,
            sse: (false, true),
            announces: true,
            hears_the_last: false,
        }
    };
    let rmcp = folder.join("rmcp/debug");
    vec![
        python("python mcp 1.30.0", "python1", LEGACY),
        python("python mcp 2.3.0", "python2", BOTH),
        typescript("typescript sdk 1.32.2", "typescript1", LEGACY),
        typescript("typescript client, server 2.4.0", "typescript2", BOTH),
        Peer {
            name: "rust rmcp 3.8.0",
            server: vec![text(&rmcp.join("rmcp-server"))],
            client: vec![text(&rmcp.join("rmcp-client"))],
            server_eras: BOTH,
            client_eras: BOTH,
            sse: (false, false),
            announces: true,
            hears_the_last: true,
        },
    ]
}

/// A public server.
pub(crate) struct PublicServer {
    pub(crate) name: &'static str,
    pub(crate) command: Vec<String>,
}

/// The public servers, each with one of its tools and arguments for it.
pub(crate) fn public_servers(folder: &Path) -> Vec<(PublicServer, &'static str, Value)> {
    let time = PublicServer {
        name: "mcp-server-time",
        command: vec![text(&folder.join("time/bin/mcp-server-time"))],
    };
    let everything = PublicServer {
        name: "server-everything",
        command: vec![
            text(&folder.join("everything/node_modules/.bin/mcp-server-everything")),
            "stdio".into(),
        ],
    };
    vec![
        (time, "get_current_time", json!({ "timezone": "UTC" })),
        (everything, "echo", json!({ "message": "hello" })),
    ]
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}
