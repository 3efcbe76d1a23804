//! `belay prompt`

use belay::types::{ContentBlock, GetPromptResult, PromptDefinition, Role};
use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use super::completions;
use crate::arguments::nearest;
use crate::exit::{self, Code};
use crate::interrupt::Interrupt;
use crate::output;
use crate::target::{Connected, Target, which_server};

/// Get a prompt with its arguments filled in, or list the prompts.
#[derive(Args)]
#[command(
    override_usage = "belay prompt [OPTIONS] <SERVER> [PROMPT] [KEY=VALUE]...\n       belay prompt [OPTIONS] [PROMPT] [KEY=VALUE]... -- <COMMAND>...",
    after_help = "Examples:
  belay prompt -- belay serve                        # list the prompts
  belay prompt greet name=Ada -- belay serve"
)]
pub(crate) struct Prompt {
    /// Server (unless its command follows `--`), prompt and prompt arguments
    #[arg(value_name = "WORD", add = ArgValueCompleter::new(completions::servers))]
    words: Vec<String>,
    #[command(flatten)]
    target: Target,
}

impl Prompt {
    pub(crate) async fn run(self) -> Code {
        let (name, words) = match (self.target.has_command(), self.words.as_slice()) {
            (true, words) => (None, words),
            (false, [server, words @ ..]) => (Some(server.as_str()), words),
            (false, []) => return output::usage(which_server(), self.target.json),
        };
        let interrupt = Interrupt::new();
        let server = match self.target.connect(name, &interrupt).await {
            Ok(server) => server,
            Err(code) => return code,
        };
        interrupt.stops(&server, self.get(&server, words)).await
    }

    async fn get(&self, server: &Connected<'_>, words: &[String]) -> Code {
        let json = self.target.json;
        let prompts = match server
            .listed("prompts", server.client.list_all_prompts())
            .await
        {
            Ok(prompts) => prompts,
            Err(code) => return code,
        };
        let Some((name, words)) = words.split_first() else {
            return match json {
                true => output::put(json!({ "prompts": prompts }).to_string()).await,
                false => output::put(listed(&prompts)).await,
            };
        };
        let Some(prompt) = prompts.iter().find(|prompt| prompt.name == *name) else {
            let names = prompts.iter().map(|prompt| prompt.name.as_str());
            let problem = match nearest(name, names) {
                Some(nearest) => format!("there is no prompt {name:?}; did you mean {nearest:?}?"),
                None => {
                    format!("there is no prompt {name:?}; leave out the name to list the prompts")
                }
            };
            return output::usage(&problem, json);
        };
        let arguments = match filled_in(prompt, words) {
            Ok(arguments) => arguments,
            Err(problem) => return output::usage(&problem, json),
        };
        let got = server
            .timed(server.client.get_prompt(name, arguments))
            .await;
        let code = match got {
            Ok(result) if json => output::put(json!(result).to_string()).await,
            Ok(result) => output::put(text(&result)).await,
            Err(error) => output::fail(&error, json),
        };
        match server.nobody_to_ask() {
            true => exit::INPUT_REQUIRED,
            false => code,
        }
    }
}

fn signature(prompt: &PromptDefinition) -> String {
    let arguments = prompt.arguments.iter().flatten();
    let arguments = arguments.map(|argument| {
        let name = output::escaped(&argument.name);
        match argument.required {
            Some(true) => name.into_owned(),
            _ => format!("[{name}]"),
        }
    });
    let arguments = arguments.collect::<Vec<_>>().join(", ");
    format!("{}({arguments})", output::escaped(&prompt.name))
}

fn listed(prompts: &[PromptDefinition]) -> String {
    let rows = prompts.iter().map(|prompt| {
        let description = prompt.description.as_deref().unwrap_or_default();
        (signature(prompt).into(), output::first_line(description))
    });
    output::columns(rows)
}

/// Parses `key=value` words into prompt arguments, which are all strings.
fn filled_in(prompt: &PromptDefinition, words: &[String]) -> Result<Vec<(String, String)>, String> {
    let known = || prompt.arguments.iter().flatten();
    let mut filled: Vec<(String, String)> = Vec::new();
    for word in words {
        let Some((name, value)) = word.split_once('=') else {
            return Err(format!("{word:?} is not an argument; write `key=value`"));
        };
        if !known().any(|argument| argument.name == name) {
            let signature = signature(prompt);
            return Err(format!("there is no argument {name:?}: {signature}"));
        }
        if filled.iter().any(|(known, _)| known == name) {
            return Err(format!("the argument {name:?} is given twice"));
        }
        filled.push((name.to_owned(), value.to_owned()));
    }
    let missing = known().find(|argument| {
        argument.required == Some(true) && !filled.iter().any(|(name, _)| *name == argument.name)
    });
    match missing {
        Some(argument) => {
            let (name, signature) = (&argument.name, signature(prompt));
            Err(format!("the argument {name:?} is missing: {signature}"))
        }
        None => Ok(filled),
    }
}

fn text(result: &GetPromptResult) -> String {
    let messages = result.messages.iter().map(|message| {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        match &message.content {
            ContentBlock::Text(text) => format!("{role}: {}", text.text),
            other => format!("{role}: {}", json!(other)),
        }
    });
    messages.collect::<Vec<_>>().join("\n")
}
