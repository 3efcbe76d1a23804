//! `belay call`

use belay::outcome::Clock;
use belay::types::{CallToolResult, ContentBlock, ToolDefinition};
use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::completions;
use crate::arguments;
use crate::exit::{self, Code};
use crate::interrupt::{Interrupt, interrupted};
use crate::output;
use crate::target::{Connected, Target, which_server};

/// Call a tool and print its result.
///
/// Ctrl-C, SIGTERM and SIGHUP cancel the call on the server. A second signal exits without waiting
/// and kills a server that belay started.
#[derive(Args)]
#[command(
    override_usage = "belay call [OPTIONS] <SERVER> <TOOL> [ARGUMENT]...\n       belay call [OPTIONS] <TOOL> [ARGUMENT]... -- <COMMAND>...",
    after_help = "Tool arguments:
  key=value    a value, converted to the type in the tool's schema
  key:=json    a JSON value
  key=@file    a value read from a file
  -            arguments read from stdin, as a JSON object

Examples:
  belay call echo text=hello -- belay serve
  belay call time get_current_time timezone=UTC     # a server from `belay servers`
  belay call hang --max-time 1 -- belay serve       # exits with 6; cancels on the server
  echo '{\"text\":\"hi\"}' | belay call echo - -- belay serve"
)]
pub(crate) struct Call {
    /// Server (unless its command follows `--`), tool and tool arguments
    #[arg(value_name = "WORD", add = ArgValueCompleter::new(completions::call_words))]
    pub(super) words: Vec<String>,
    #[command(flatten)]
    pub(super) target: Target,
}

impl Call {
    pub(crate) async fn run(self) -> Code {
        let (name, tool, arguments) = match self.split() {
            Ok(split) => split,
            Err(problem) => return output::usage(&problem, self.target.json),
        };
        let interrupt = Interrupt::new();
        let server = match self.target.connect(name, &interrupt).await {
            Ok(server) => server,
            Err(code) => return code,
        };
        let called = self.call(&server, tool, arguments, &interrupt);
        interrupt.ends(&server.client, called).await
    }

    /// Splits the words into the server (if there is no command), the tool and its arguments.
    fn split(&self) -> Result<(Option<&str>, &str, &[String]), String> {
        match (self.target.has_command(), self.words.as_slice()) {
            (true, [tool, arguments @ ..]) => Ok((None, tool, arguments)),
            (true, []) => Err("no tool given; `belay list` lists the tools".into()),
            (false, [server, tool, arguments @ ..]) => Ok((Some(server), tool, arguments)),
            (false, _) => Err(which_server().into()),
        }
    }

    async fn call(
        &self,
        server: &Connected<'_>,
        name: &str,
        words: &[String],
        interrupt: &Interrupt,
    ) -> Code {
        let json = self.target.json;
        let tools = tokio::select! {
            tools = server.tools() => tools,
            () = interrupt.once() => return interrupted(json),
        };
        let tools = match tools {
            Ok(tools) => tools,
            Err(code) => return code,
        };
        let Some(tool) = tools.iter().find(|tool| tool.name == name) else {
            let names = tools.iter().map(|tool| tool.name.as_str());
            let problem = match arguments::nearest(name, names) {
                Some(nearest) => format!("there is no tool {name:?}; did you mean {nearest:?}?"),
                None => format!("there is no tool {name:?}; `belay list` lists the tools"),
            };
            return output::usage(&problem, json);
        };
        let parsing = tokio::select! {
            parsed = parse(tool, words) => Some(parsed),
            () = tokio::time::sleep(server.time_left()) => None,
            () = interrupt.once() => return interrupted(json),
        };
        let arguments = match parsing {
            Some(Ok(arguments)) => arguments,
            Some(Err(problem)) => return output::usage(&problem, json),
            None => {
                let what = "the arguments could not be read";
                return output::out_of_time(self.target.max_time(), what, json);
            }
        };
        let call = server.client.call_tool(name, arguments);
        let bar = &server.bar;
        let told = bar.clone();
        let call = server.timed(call).on_progress(move |step| told.tell(&step));
        let mut call = call.start();
        let canceller = call.canceller();
        let ended = tokio::select! {
            ended = &mut call => ended,
            () = interrupt.once() => {
                // Cancels on the wire. Closing the client waits until the cancellation is written.
                canceller.cancel_because("interrupted");
                bar.clear();
                return interrupted(json);
            }
        };
        bar.clear();
        if json && server.nobody_to_ask() {
            output::end(
                "input_required",
                "the server asks for input; run without --json in a terminal to answer",
                true,
            );
            return exit::INPUT_REQUIRED;
        }
        let code = match ended {
            // The error has the time that was left for the call. Report the total timeout instead.
            Err(error) if error.clock() == Some(Clock::Total) && !json => {
                let what = match error.safe_to_retry() {
                    true => "the request was never sent",
                    false => "the server was told to cancel",
                };
                output::out_of_time(self.target.max_time(), what, json)
            }
            Err(error) => output::fail(&error, json),
            Ok(result) => tokio::select! {
                code = show(&result, json) => code,
                () = interrupt.once() => return interrupted(json),
            },
        };
        match server.nobody_to_ask() {
            true => exit::INPUT_REQUIRED,
            false => code,
        }
    }
}

/// Reads the arguments on a thread, because reading a file or stdin may block forever.
async fn parse(tool: &ToolDefinition, words: &[String]) -> Result<Map<String, Value>, String> {
    let (done, parsed) = oneshot::channel();
    let (tool, words) = (tool.clone(), words.to_vec());
    std::thread::spawn(move || {
        let _ = done.send(arguments::parse(&tool, &words));
    });
    let gone = |_| Err("the arguments could not be read".into());
    parsed.await.unwrap_or_else(gone)
}

async fn show(result: &CallToolResult, json: bool) -> Code {
    let text = match json {
        true => json!(result).to_string(),
        false => text(result),
    };
    let printed = output::put(text).await;
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
    match (&result.structured_content, blocks.is_empty()) {
        (Some(value), true) => value.to_string(),
        _ => blocks.join("\n"),
    }
}
