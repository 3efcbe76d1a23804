//! `belay call`

use belay::types::{CallToolResult, ContentBlock, ProgressParams};
use clap::Args;
use serde_json::json;
use tokio::sync::watch;

use crate::arguments;
use crate::exit::{self, Code};
use crate::output;
use crate::target::{Connected, Target};

/// Call a tool and print its result.
///
/// Arguments are typed by the tool's schema: key=value, or key:=json. Ctrl-C cancels the call on the
/// server, a second one kills.
#[derive(Args)]
#[command(after_help = "Examples:
  belay call echo text=hello -- belay serve
  belay call count to=3 delay_ms=100 -- belay serve
  belay call hang --max-time 1 -- belay serve       # exits with 6, and the server was told")]
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
        let server = match self.target.connect().await {
            Ok(server) => server,
            Err(code) => return code,
        };
        let interrupt = Interrupt::new();
        let called = tokio::select! {
            called = self.call(&server, &interrupt) => called,
            () = interrupt.twice() => return exit::INTERRUPTED,
        };
        tokio::select! {
            _ = server.client.close() => called,
            () = interrupt.twice() => exit::INTERRUPTED,
        }
    }

    async fn call(&self, server: &Connected<'_>, interrupt: &Interrupt) -> Code {
        let json = self.target.json;
        let tools = tokio::select! {
            tools = server.tools() => tools,
            () = interrupt.once() => return exit::INTERRUPTED,
        };
        let tools = match tools {
            Ok(tools) => tools,
            Err(code) => return code,
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
        let call = server.client.call_tool(&self.tool, arguments);
        let mut call = server.timed(call).on_progress(tell_progress).start();
        let canceller = call.canceller();
        tokio::select! {
            ended = &mut call => match ended {
                Err(error) => output::fail(&error, json),
                Ok(result) => show(&result, json),
            },
            () = interrupt.once() => {
                // On the wire; closing the client waits until that is out.
                canceller.cancel_because("interrupted");
                exit::INTERRUPTED
            }
        }
    }
}

fn tell_progress(progress: ProgressParams) {
    let message = progress.message.unwrap_or_default();
    let line = match progress.total {
        Some(total) => format!("{} of {total} {message}", progress.progress),
        None => format!("{} {message}", progress.progress),
    };
    output::tell(line.trim_end());
}

/// Counts how often Ctrl-C was pressed: the first cancels on the wire and waits, the second kills.
struct Interrupt(watch::Receiver<usize>);

impl Interrupt {
    fn new() -> Self {
        let (pressed, count) = watch::channel(0);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                pressed.send_modify(|count| *count += 1);
            }
        });
        Self(count)
    }

    async fn once(&self) {
        self.pressed(1).await;
    }

    async fn twice(&self) {
        self.pressed(2).await;
    }

    async fn pressed(&self, times: usize) {
        if self
            .0
            .clone()
            .wait_for(|count| *count >= times)
            .await
            .is_err()
        {
            // No signals can be had; then nobody presses.
            std::future::pending().await
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
