//! Checks Belay against other SDKs, over stdio and HTTP, in both directions.
//!
//! `cargo xtask interop` installs the peers and runs this:
//! `belay-interop <folder of the installed peers> <the belay program>`.

mod ours;
mod peers;
mod processes;
mod table;
mod theirs;

use std::path::PathBuf;
use std::process::ExitCode;

use table::Table;

const OURS: &str = "our client, their server";
const THEIRS: &str = "their client, our server";

/// The result of a check; the error says what went wrong.
type Checked = Result<(), String>;

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(folder), Some(belay)) = (arguments.next(), arguments.next()) else {
        eprintln!("belay-interop <folder of the installed peers> <the belay program>");
        return ExitCode::FAILURE;
    };
    let mut table = Table::default();
    for peer in peers::sdks(&folder) {
        for &era in peer.server_eras {
            let row = table.row(peer.name, "stdio", era, OURS);
            ours::check(row, &peer, era).await;
            let row = table.row(peer.name, "http", era, OURS);
            ours::check_listener(row, &peer, "http", era).await;
        }
        if peer.sse.0 {
            let row = table.row(peer.name, "sse", "legacy", OURS);
            ours::check_listener(row, &peer, "sse", "legacy").await;
        }
        for &era in peer.client_eras {
            let row = table.row(peer.name, "stdio", era, THEIRS);
            theirs::check(row, &peer, era, &belay).await;
            let row = table.row(peer.name, "http", era, THEIRS);
            theirs::check_http(row, &peer, "mcp", era, &belay).await;
        }
        if peer.sse.1 {
            let row = table.row(peer.name, "sse", "legacy", THEIRS);
            theirs::check_http(row, &peer, "sse", "legacy", &belay).await;
        }
    }
    for (server, tool, arguments) in peers::public_servers(&folder) {
        let row = table.row(server.name, "stdio", "auto", "our client, a public server");
        ours::check_public(row, &server.command, tool, arguments).await;
    }
    for path in ["mcp", "sse"] {
        let wire = if path == "mcp" { "http" } else { path };
        let row = table.row("inspector 0.15.0", wire, "legacy", THEIRS);
        let inspector = folder.join("inspector/node_modules/.bin/mcp-inspector");
        theirs::inspect(row, &inspector, path, &belay).await;
    }
    print!("\n{table}");
    match table.problems() {
        problems if problems.is_empty() => ExitCode::SUCCESS,
        problems => {
            println!("\n{}", problems.join("\n"));
            ExitCode::FAILURE
        }
    }
}
