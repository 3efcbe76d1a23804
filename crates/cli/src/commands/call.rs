//! `belay call`

use belay::Client;
use belay::types::{CallToolResult, ContentBlock};
use clap::Args;
use serde_json::json;

use crate::arguments;
use crate::exit::{self, Code};
use crate::output;
use crate::target::Target;

/// Call a tool and print its result.
///
/// Arguments are typed by the tool's schema: key=value, or key:=json. Ctrl-C cancels the call on the
/// server, a second one kills.
///
/// Example: belay call echo text=hello -- belay serve
#[derive(Args)]
pub(crate) struct Call {
    /// The tool
    tool: String,
    /// Its arguments
    #[arg(value_name = "KEY=VALUE")]
    arguments: Vec<String>,
    #[command(flatten)]
    target: Target,
}

impl Call {
    pub(crate) async fn run(self) -> Code {
        let client = match self.target.connect().await {
            Ok(client) => client,
            Err(error) => return output::fail(&error, self.target.json),
        };
        let code = self.call(&client).await;
        client.close().await;
        code
    }

    async fn call(&self, client: &Client) -> Code {
        let json = self.target.json;
        let tools = match client.list_tools().timeout(self.target.total()).await {
            Ok(result) => result.tools,
            Err(error) => return output::fail(&error, json),
        };
        let Some(tool) = tools.iter().find(|tool| tool.name == self.tool) else {
            let names = tools.iter().map(|tool| tool.name.as_str());
            let problem = match arguments::nearest(&self.tool, names) {
                Some(name) => format!("there is no tool {:?}; did you mean {name:?}?", self.tool),
                None => format!("there is no tool {:?}; `belay list` shows them", self.tool),
            };
            return output::usage(&problem, json);
        };
        let arguments = match arguments::parse(tool, &self.arguments) {
            Ok(arguments) => arguments,
            Err(problem) => return output::usage(&problem, json),
        };
        let call = client
            .call_tool(&self.tool, arguments)
            .idle_timeout(self.target.idle())
            .timeout(self.target.total())
            .on_progress(|progress| {
                let message = progress.message.as_deref().unwrap_or("");
                match progress.total {
                    Some(total) => eprintln!("{} of {} {message}", progress.progress.0, total.0),
                    None => eprintln!("{} {message}", progress.progress.0),
                }
            });
        let canceller = call.canceller();
        let ended = tokio::select! {
            ended = call.into_future() => ended,
            _ = tokio::signal::ctrl_c() => {
                // The first one cancels on the wire; closing the client waits until that is out.
                canceller.cancel("interrupted".to_owned());
                let second = tokio::signal::ctrl_c();
                tokio::select! {
                    _ = client.close() => {}
                    _ = second => {}
                }
                return exit::INTERRUPTED;
            }
        };
        match ended {
            Err(error) => output::fail(&error, json),
            Ok(result) => show(&result, json),
        }
    }
}

fn show(result: &CallToolResult, json: bool) -> Code {
    let text = match json {
        true => json!(result).to_string(),
        false => text(result),
    };
    let printed = output::print(&text);
    match result.is_error {
        Some(true) => exit::TOOL_ERROR,
        _ => printed,
    }
}

fn text(result: &CallToolResult) -> String {
    let blocks: Vec<String> = result
        .content
        .iter()
        .map(|block| match block {
            ContentBlock::Text(text) => text.text.clone(),
            other => json!(other).to_string(),
        })
        .collect();
    blocks.join("\n")
}
