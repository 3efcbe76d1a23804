//! `belay list`

use clap::Args;
use serde_json::json;

use crate::arguments::signature;
use crate::exit::Code;
use crate::output;
use crate::target::Target;

/// List the tools of a server, each with its arguments.
///
/// Example: belay list -- belay serve
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    target: Target,
}

impl List {
    pub(crate) async fn run(self) -> Code {
        let json = self.target.json;
        let client = match self.target.connect().await {
            Ok(client) => client,
            Err(error) => return output::fail(&error, json),
        };
        let listed = client
            .list_tools()
            .idle_timeout(self.target.idle())
            .timeout(self.target.total())
            .await;
        let code = match listed {
            Err(error) => output::fail(&error, json),
            Ok(result) if json => output::print(&json!(result).to_string()),
            Ok(result) => {
                let lines: Vec<String> = result.tools.iter().map(line).collect();
                output::print(&lines.join("\n"))
            }
        };
        client.close().await;
        code
    }
}

fn line(tool: &belay::types::Tool) -> String {
    match &tool.description {
        Some(description) => format!("{:<36} {description}", signature(tool)),
        None => signature(tool),
    }
}
