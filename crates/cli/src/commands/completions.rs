//! `belay completions`, and the names of tools that a shell can complete.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;

use belay::types::Tool;
use clap::{Args, CommandFactory, Parser, ValueEnum};
use clap_complete::CompletionCandidate;

use crate::arguments::signature;
use crate::children::Children;
use crate::exit::Code;
use crate::target::Target;
use crate::{Cli, Command, config, output};

/// Nobody waits longer than that for a key to do something.
const PATIENCE: Duration = Duration::from_secs(3);

/// Print what makes a shell complete the commands of this tool, the names of servers and, by asking
/// the server, those of its tools.
///
/// Only servers that you have called or listed before are asked: no key starts a command that a file
/// of the current folder has chosen.
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

/// Names of servers. Those of files that others can change are not offered: they would not be started.
pub(crate) fn servers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let found = config::find(None);
    let names = found.servers.iter().map(|server| server.name.as_str());
    // A name may stand in more than one file, and the nearest counts.
    let names: BTreeSet<&str> = names.filter(|name| name.starts_with(&*typed)).collect();
    let trusted = |name: &&str| found.named(name).is_some_and(|it| it.doubt.is_none());
    let names = names.into_iter().filter(trusted);
    names.map(CompletionCandidate::new).collect()
}

/// The words of `belay call`: a server and then a tool, or a tool if the command is there already.
///
/// The server is started to be asked, so only when a tool is really what is being typed, and only if
/// it was started before: a key that is pressed by the way runs nothing new.
pub(crate) fn call_words(typed: &OsStr) -> Vec<CompletionCandidate> {
    let text = typed.to_string_lossy();
    if text.starts_with('-') {
        return Vec::new();
    }
    let Some(call) = half_typed() else {
        return Vec::new();
    };
    let words: Vec<&str> = call.words.iter().map(String::as_str).collect();
    let words = words.strip_suffix(&[&*text]).unwrap_or(&words);
    let server = match (call.target.has_command(), words) {
        (true, []) => None,
        (false, []) => return servers(typed),
        (false, [server]) => Some(*server),
        _ => return Vec::new(),
    };
    let tools = tools_in_time(&call.target, server).unwrap_or_default();
    tools
        .iter()
        .filter(|tool| tool.name.starts_with(&*text))
        .map(|tool| CompletionCandidate::new(&tool.name).help(Some(signature(tool).into())))
        .collect()
}

fn tools_in_time(target: &Target, server: Option<&str>) -> Option<Vec<Tool>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    runtime.block_on(async {
        let children = Children::now();
        let listing = tokio::time::timeout(PATIENCE, target.tools_if_known(server)).await;
        // Nobody waits for a server to go, either.
        children.since().kill().await;
        listing.ok().flatten()
    })
}

/// The command line so far, as the shell hands it over after `--`, if a word of `belay call` is what
/// is being typed. A command after its own `--` is not: what is half typed must not be run.
fn half_typed() -> Option<super::call::Call> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let words: Vec<_> = words.collect();
    // Some shells say which word is meant; others end with it.
    let at = std::env::var("_CLAP_COMPLETE_INDEX").ok();
    let at = at.and_then(|at| at.parse().ok());
    let at: usize = at.unwrap_or(words.len().saturating_sub(1));
    let command = words.iter().position(|word| word == "--");
    if command.is_some_and(|command| at > command) {
        return None;
    }
    match Cli::try_parse_from(words).ok()?.command {
        Command::Call(call) => Some(call),
        _ => None,
    }
}
