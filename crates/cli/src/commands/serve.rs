//! `belay serve`

use clap::Args;

use crate::demo_server;
use crate::exit::{self, Code};
use crate::output;

/// Serve the demo server on stdin and stdout, until the input ends or SIGTERM comes.
///
/// Its tools show the contract: echo, count, hang, active, rollback, block, panic, ask, ledger.
#[derive(Args)]
pub(crate) struct Serve {}

impl Serve {
    pub(crate) async fn run(self) -> Code {
        match belay::serve_stdio(demo_server::server()).await {
            Ok(_) => exit::OK,
            Err(error) => {
                output::tell(&format!(
                    "belay serve: stdin and stdout cannot be taken: {error}"
                ));
                exit::LOST
            }
        }
    }
}
