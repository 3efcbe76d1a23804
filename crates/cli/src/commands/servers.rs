//! `belay servers`

use std::path::PathBuf;

use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use super::completions::paths;
use crate::config::{self, How, Server};
use crate::exit::{self, Code};
use crate::output;

/// List servers configured in Claude, VS Code, Cursor, …
///
/// Reads the configuration files of Claude Desktop, Claude Code, VS Code, Cursor, Gemini and Codex
/// in this folder, its parent folders and your home folder, nearest file first. It changes none of
/// them.
#[derive(Args)]
#[command(after_help = "Examples:
  belay servers
  belay servers --config .vscode/mcp.json")]
pub(crate) struct Servers {
    /// Read this configuration file only
    #[arg(long, value_name = "FILE", add = ArgValueCompleter::new(paths))]
    config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Servers {
    pub(crate) fn run(self) -> Code {
        let found = config::find(self.config.as_deref());
        for problem in &found.problems {
            output::end("usage", &problem.to_string(), self.json);
        }
        if found.servers.is_empty() && found.problems.is_empty() && !self.json {
            output::tell("belay: no configured servers found; see `belay servers --help`");
        }
        let printed = match self.json {
            true => {
                let servers: Vec<_> = found.servers.iter().map(as_json).collect();
                output::print(&json!({ "servers": servers }).to_string())
            }
            false => found.servers.iter().fold(exit::OK, |printed, server| {
                let line = line(server, found.named(&server.name) != Some(server));
                match printed {
                    exit::OK => output::print(&line),
                    other => other,
                }
            }),
        };
        match found.problems.is_empty() {
            true => printed,
            false => exit::USAGE,
        }
    }
}

fn line(server: &Server, hidden: bool) -> String {
    let note = match (&server.doubt, hidden) {
        (_, true) => "  (hidden by the same name in a nearer file)".to_owned(),
        (Some(doubt), false) => format!("  ({doubt})"),
        (None, false) => String::new(),
    };
    let (name, how) = (output::escaped(&server.name), how(server));
    let file = server.file.display().to_string();
    format!(
        "{name:<20} {:<50} {}{note}",
        output::escaped(&how),
        output::escaped(&file)
    )
}

fn how(server: &Server) -> String {
    match &server.how {
        How::Url { url, .. } => url.clone(),
        How::Command {
            program, arguments, ..
        } => {
            let words = std::iter::once(program).chain(arguments);
            words.map(String::as_str).collect::<Vec<_>>().join(" ")
        }
    }
}

/// A server as JSON. The environment is left out and variables are not expanded: both may hold
/// secrets.
fn as_json(server: &Server) -> serde_json::Value {
    let (name, file) = (&server.name, server.file.display().to_string());
    let mut json = match &server.how {
        How::Url { url, .. } => json!({ "name": name, "file": file, "url": url }),
        How::Command {
            program, arguments, ..
        } => json!({ "name": name, "file": file, "command": program, "args": arguments }),
    };
    if let Some(doubt) = &server.doubt {
        json["doubt"] = doubt.to_string().into();
    }
    json
}
