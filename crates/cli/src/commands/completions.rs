//! `belay completions`, and the candidates that a shell completes: server names, tool names, paths.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::time::Duration;

use belay::types::ToolDefinition;
use clap::{Args, CommandFactory, Parser, ValueEnum};
use clap_complete::CompletionCandidate;
use clap_complete::engine::{PathCompleter, ValueCompleter};

use crate::arguments::arguments;
use crate::children::Children;
use crate::exit::Code;
use crate::target::Target;
use crate::{Cli, Command, config, output};

/// Timeout for asking a server for its tools after Tab was pressed.
const PATIENCE: Duration = Duration::from_secs(3);

/// Generate shell completions.
///
/// They complete commands, options, the names of configured servers and the tools of a server. To
/// complete tools, belay starts or connects to the server, but only if you have used that server
/// before: pressing Tab never runs a command that is merely named in a configuration file.
#[derive(Args)]
#[command(after_help = "Examples:
  source <(belay completions bash)
  belay completions fish > ~/.config/fish/completions/belay.fish")]
pub(crate) struct Completions {
    /// Shell to generate completions for
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

/// Answers a completion request of a shell, if this process was started for one, and exits.
pub(crate) fn complete() {
    clap_complete::CompleteEnv::with_factory(Cli::command).complete();
}

/// Names of servers. Files that other users can change are left out: their servers are not started.
pub(crate) fn servers(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let found = config::find(None);
    let names = found.servers.iter().map(|server| server.name.as_str());
    // A name can be in several files; the nearest file wins.
    let names: BTreeSet<&str> = names.filter(|name| name.starts_with(&*typed)).collect();
    let trusted = |name: &&str| found.named(name).is_some_and(|it| it.doubt.is_none());
    let names = names.into_iter().filter(|name| is_plain(name));
    let names = names.filter(trusted);
    names.map(CompletionCandidate::new).collect()
}

/// Paths, for options that take one. File names can come from elsewhere (an unpacked archive), so
/// only names without characters that are special in a shell are offered.
pub(crate) fn paths(typed: &OsStr) -> Vec<CompletionCandidate> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./+,@%:".contains(letter);
    let typed_text = typed.to_str().unwrap_or_default();
    let candidates = PathCompleter::any().complete(typed).into_iter();
    let plain = candidates.filter(|candidate| {
        let path = candidate.get_value().to_str().unwrap_or("?");
        let added = path.strip_prefix(typed_text).unwrap_or(path);
        !path.starts_with('-') && added.chars().all(is_plain)
    });
    plain.collect()
}

/// Completes the words of `belay call`: a server and then a tool, or a tool after a command.
///
/// Asking for the tools starts the server. So this is done only for a word that is a tool, and only
/// if the user has started that server before: pressing Tab never runs a new command.
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
        .filter(|tool| tool.name.starts_with(&*text) && is_plain(&tool.name))
        .map(|tool| CompletionCandidate::new(&tool.name).help(Some(help(tool).into())))
        .collect()
}

fn tools_in_time(target: &Target, server: Option<&str>) -> Option<Vec<ToolDefinition>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .ok()?;
    runtime.block_on(async {
        let children = Children::now();
        let listing = tokio::time::timeout(PATIENCE, target.tools_if_known(server)).await;
        // Killed, because completion does not wait for a graceful exit.
        children.since().kill().await;
        listing.ok().flatten()
    })
}

/// Parses the unfinished command line that the shell passes after `--`, if it is a `belay call`.
/// `None` if the word is part of the server's command: an unfinished command must not be run.
fn half_typed() -> Option<super::call::Call> {
    let words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    let words: Vec<_> = words.collect();
    // Some shells pass the index of the word; for the others it is the last word.
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

/// Whether a name is a valid tool name by the specification (2025-11-25 and later, server/tools),
/// or by proposal SEP-986, which allows a slash. None of these characters is special in a shell, so
/// the completed word is the one that is run. Names that look like options are refused.
fn is_plain(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    (1..=128).contains(&name.len()) && !name.starts_with('-') && name.chars().all(is_letter)
}

/// The help text beside a candidate: `text: string, optional count: integer`. Some shells interpret
/// it, so characters that are special in a shell are replaced.
fn help(tool: &ToolDefinition) -> String {
    let arguments = arguments(tool).into_iter().map(|argument| {
        let mark = if argument.required { "" } else { "optional " };
        format!("{mark}{}: {}", argument.name, argument.kind)
    });
    let help = arguments.collect::<Vec<_>>().join(", ");
    let plain = |letter: char| match letter.is_ascii_alphanumeric() || " _-.,:/".contains(letter) {
        true => letter,
        false => '_',
    };
    help.chars().map(plain).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_specification_allows_and_no_option() {
        for name in ["getUser", "DATA_EXPORT_v2", "admin.tools.list", "a/b-c"] {
            assert!(is_plain(name), "{name}");
        }
        let long = "x".repeat(129);
        for name in ["", "-v", "--json", "a b", "a$b", "~a", "é", "a\n", &long] {
            assert!(!is_plain(name), "{name:?}");
        }
    }
}
