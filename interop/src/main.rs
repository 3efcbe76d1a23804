//! Belay against everybody else's SDK, over stdio, both ways.
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

/// What went wrong with a check.
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
            let row = table.row(peer.name, era, "our client, their server");
            ours::check(row, &peer, era).await;
        }
        for &era in peer.client_eras {
            let row = table.row(peer.name, era, "their client, our server");
            theirs::check(row, &peer, era, &belay).await;
        }
    }
    for (server, tool, arguments) in peers::public_servers(&folder) {
        let row = table.row(server.name, "auto", "our client, a public server");
        ours::check_public(row, &server.command, tool, arguments).await;
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
