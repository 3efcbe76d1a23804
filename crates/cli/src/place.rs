//! Where a server is: a command to start, or a URL to connect to.

use std::path::Path;
use std::process::Command;

use crate::arguments::nearest;
use crate::config::{self, How};
use crate::output::escaped;

pub(crate) enum Place {
    Command(Box<Command>),
    Address {
        url: String,
        headers: Vec<(String, String)>,
    },
}

impl Place {
    /// A command of the command line.
    pub(crate) fn command(program: &str, arguments: &[String]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments);
        Self::Command(Box::new(command))
    }

    /// A URL, or a server from a host's file: this one, or all that are known.
    pub(crate) fn named(name: &str, file: Option<&Path>) -> Result<Self, String> {
        let found = config::find(file);
        let Some(server) = found.named(name) else {
            return match is_url(name) {
                true => Ok(Self::url(name)),
                false => Err(unknown(name, &found)),
            };
        };
        let file = server.file.display().to_string();
        let said = format!("server {name:?} in {}", escaped(&file));
        if let Some(doubt) = &server.doubt {
            return Err(format!("{said} is not started: {doubt}"));
        }
        let how = server.how.expanded();
        let how = how.map_err(|problem| format!("{said}: {}", escaped(&problem)))?;
        Self::configured(how)
    }

    fn url(url: &str) -> Self {
        Self::Address {
            url: url.to_owned(),
            headers: Vec::new(),
        }
    }

    fn configured(how: How) -> Result<Self, String> {
        match how {
            How::Url { url, headers } => Ok(Self::Address {
                url,
                headers: check_headers(headers)?,
            }),
            How::Command {
                program,
                arguments,
                environment,
                folder,
            } => {
                let mut command = Command::new(program);
                command.args(arguments).envs(environment);
                if let Some(folder) = folder {
                    command.current_dir(folder);
                }
                Ok(Self::Command(Box::new(command)))
            }
        }
    }
}

fn unknown(name: &str, found: &config::Found) -> String {
    let mut told = format!("there is no server {name:?}");
    let names = found.servers.iter().map(|server| server.name.as_str());
    match nearest(name, names) {
        Some(nearest) => told.push_str(&format!("; did you mean {nearest:?}?")),
        None => told.push_str("; `belay servers` lists them, and a command goes after `--`"),
    }
    for problem in &found.problems {
        told.push_str(&format!("\n  {problem}"));
    }
    told
}

/// A name has neither.
fn is_url(name: &str) -> bool {
    name.contains('/') || name.contains(':')
}

fn check_headers(
    headers: impl IntoIterator<Item = (String, String)>,
) -> Result<Vec<(String, String)>, String> {
    let headers = headers
        .into_iter()
        .map(|(name, value)| match is_header(&name, &value) {
            true => Ok((name, value)),
            false => Err(format!(
                "the header {name:?} has a name or value that cannot be sent"
            )),
        });
    headers.collect()
}

/// Whether this can stand in a header.
pub(crate) fn is_header(name: &str, value: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let visible = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    !name.is_empty() && name.bytes().all(token) && value.bytes().all(visible)
}
