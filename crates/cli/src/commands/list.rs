//! `belay list`

use belay::types::ToolDefinition;
use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Map, Value, json};

use super::completions;
use crate::arguments::signature;
use crate::exit::Code;
use crate::interrupt::Interrupt;
use crate::output;
use crate::target::{Connected, Target};

/// List the tools of a server and their arguments.
#[derive(Args)]
#[command(
    override_usage = "belay list [OPTIONS] <SERVER>\n       belay list [OPTIONS] -- <COMMAND>...",
    after_help = "Examples:
  belay list -- belay serve
  belay list --schema time             # a server from `belay servers`"
)]
pub(crate) struct List {
    /// URL of the server, or its name as listed by `belay servers`
    #[arg(add = ArgValueCompleter::new(completions::servers))]
    server: Option<String>,
    /// Show the input and output schema of each tool
    #[arg(long)]
    schema: bool,
    #[command(flatten)]
    target: Target,
}

impl List {
    pub(crate) async fn run(self) -> Code {
        let json = self.target.json;
        let name = match (&self.server, self.target.has_command()) {
            (Some(name), true) => {
                let problem = format!("two servers given: {name:?} and the command after `--`");
                return output::usage(&problem, json);
            }
            (name, _) => name.as_deref(),
        };
        let interrupt = Interrupt::new();
        let server = match self.target.connect(name, &interrupt).await {
            Ok(server) => server,
            Err(code) => return code,
        };
        interrupt.stops(&server, self.list(&server)).await
    }

    async fn list(&self, server: &Connected<'_>) -> Code {
        let tools = match server.tools().await {
            Ok(tools) => tools,
            Err(code) => return code,
        };
        if self.target.json {
            return output::put(json!({ "tools": tools }).to_string()).await;
        }
        let signatures = tools.iter().map(|tool| signature(tool).chars().count());
        let width = signatures.max().unwrap_or(0).min(48);
        let lines = tools.iter().map(|tool| self.describe(tool, width));
        output::put(lines.collect::<Vec<_>>().join("\n")).await
    }

    fn describe(&self, tool: &ToolDefinition, width: usize) -> String {
        let signature = signature(tool);
        let description = tool.description.as_deref().unwrap_or_default();
        if !self.schema {
            // Only the first line of the description; `--schema` prints all of it.
            let first = output::first_line(description);
            return format!("{signature:<width$}  {first}")
                .trim_end()
                .to_owned();
        }
        let mut lines = vec![signature];
        lines.extend(
            description
                .lines()
                .map(|line| format!("    {}", output::escaped(line))),
        );
        lines.push(indented("arguments", &tool.input_schema));
        lines.extend(
            tool.output_schema
                .iter()
                .map(|schema| indented("result", schema)),
        );
        lines.join("\n")
    }
}

fn indented(what: &str, schema: &Map<String, Value>) -> String {
    // JSON leaves some line separators and hidden characters unescaped.
    let schema = serde_json::to_string_pretty(schema).unwrap_or_default();
    let lines: Vec<_> = schema.split('\n').map(output::escaped).collect();
    format!("    {what}: {}", lines.join("\n    "))
}
