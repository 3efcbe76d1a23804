//! `belay completions`, and the names of tools that a shell can complete.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, ValueEnum};
use clap_complete::CompletionCandidate;

use crate::arguments::signature;
use crate::exit::Code;
use crate::{Cli, Command, config, output};

/// Print what makes a shell complete the commands of this tool, the names of servers and, by asking
/// the server, those of its tools.
#[derive(Args)]
#[command(after_help = "Examples:
  source <(belay completions bash)
  belay completions fish > ~/.config/fish/completions/belay.fish")]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

#[derive(Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

impl Completions {
    pub(crate) fn run(self) -> Code {
        let name = match self.shell {
            Shell::Bash => "bash",
            Shell::Elvish => "elvish",
            Shell::Fish => "fish",
            Shell::Powershell => "powershell",
            Shell::Zsh => "zsh",
        };
        let shells = clap_complete::env::Shells::builtins();
        let mut script = Vec::new();
        let completer = std::env::current_exe().unwrap_or_else(|_| "belay".into());
        let completer = completer.to_string_lossy();
        let written = shells.completer(name).map(|shell| {
            shell.write_registration("COMPLETE", "belay", "belay", &completer, &mut script)
        });
        match written {
            Some(Ok(())) => output::print(String::from_utf8_lossy(&script).trim_end()),
            _ => output::usage(&format!("there are no completions for {name}"), false),
        }
    }
}

/// Completes, if a shell asked for that. Then nothing else is done.
pub(crate) fn complete() {
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
}

/// Names of servers.
pub(crate) fn servers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let found = config::find(None);
    let names = found.servers.iter().map(|server| server.name.as_str());
    // A name may stand in more than one file.
    let names: BTreeSet<&str> = names.filter(|name| name.starts_with(&*typed)).collect();
    names.into_iter().map(CompletionCandidate::new).collect()
}

/// The words of `belay call`: a server and then a tool, or a tool if the command is there already.
pub(crate) fn call_words(typed: &OsStr) -> Vec<CompletionCandidate> {
    let text = typed.to_string_lossy();
    let Some(call) = half_typed() else {
        return servers(typed);
    };
    let (server, words) = match call.target.has_command() {
        true => (None, call.words.as_slice()),
        false => match call.words.split_first() {
            Some((server, words)) if !words.is_empty() || *server != text => {
                (Some(server.as_str()), words)
            }
            _ => return servers(typed),
        },
    };
    // The word that is being typed may be among them.
    match words {
        [] => {}
        [word] if *word == text => {}
        _ => return Vec::new(),
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let Ok(runtime) = runtime else {
        return Vec::new();
    };
    let listing = async {
        let connected = call.target.connect(server).await.ok()?;
        let tools = connected.tools().await.ok();
        connected.client.close().await;
        tools
    };
    // Nobody waits longer than that for a key to do something.
    let listed =
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(3), listing).await });
    let tools = listed.ok().flatten().unwrap_or_default();
    tools
        .iter()
        .filter(|tool| tool.name.starts_with(&*text))
        .map(|tool| CompletionCandidate::new(&tool.name).help(Some(signature(tool).into())))
        .collect()
}

/// The command line so far, as the shell hands it over after `--`.
fn half_typed() -> Option<super::call::Call> {
    let words: Vec<_> = std::env::args_os()
        .skip_while(|word| word != "--")
        .skip(1)
        .collect();
    match Cli::try_parse_from(words).ok()?.command {
        Command::Call(call) => Some(call),
        _ => None,
    }
}
