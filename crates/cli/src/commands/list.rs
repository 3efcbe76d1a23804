//! `belay list`

use clap::Args;
use serde_json::json;

use crate::arguments::signature;
use crate::exit::Code;
use crate::output;
use crate::target::Target;

/// List the tools of a server, each with its arguments.
#[derive(Args)]
#[command(after_help = "Example:
  belay list -- belay serve")]
pub(crate) struct List {
    #[command(flatten)]
    target: Target,
}

impl List {
    pub(crate) async fn run(self) -> Code {
        let server = match self.target.connect().await {
            Ok(server) => server,
            Err(code) => return code,
        };
        let code = match server.tools().await {
            Err(code) => code,
            Ok(tools) if self.target.json => output::print(&json!({ "tools": tools }).to_string()),
            Ok(tools) => {
                let lines: Vec<String> = tools.iter().map(line).collect();
                output::print(&lines.join("\n"))
            }
        };
        server.client.close().await;
        code
    }
}

fn line(tool: &belay::types::Tool) -> String {
    match &tool.description {
        Some(description) => format!("{:<36} {description}", signature(tool)),
        None => signature(tool),
    }
}
