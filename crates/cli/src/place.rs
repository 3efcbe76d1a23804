//! The location of a server: a command to start or a URL to connect to.

use std::ffi::{OsStr, OsString};
use std::fs::canonicalize;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::arguments::nearest;
use crate::config::{self, How};
use crate::known_servers::Digest;
use crate::output::escaped;

pub(crate) enum Place {
    Command {
        command: Box<Command>,
        /// The configuration file that names the command, if one does.
        file: Option<PathBuf>,
    },
    Address {
        url: String,
        headers: Vec<(String, String)>,
        file: Option<PathBuf>,
    },
}

impl Place {
    /// A command given on the command line.
    pub(crate) fn command(program: &str, arguments: &[String]) -> Self {
        let mut command = Command::new(program);
        command.args(arguments);
        Self::Command {
            command: Box::new(command),
            file: None,
        }
    }

    /// A URL, or a server from a configuration file: the given file, or all known ones.
    pub(crate) fn named(name: &str, file: Option<&Path>) -> Result<Self, String> {
        // Checked first, so that a configuration file cannot take over a URL.
        if name.contains("://") {
            return Ok(Self::url(name));
        }
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
        Self::configured(how, server.file.clone())
    }

    fn url(url: &str) -> Self {
        Self::Address {
            url: url.to_owned(),
            headers: Vec::new(),
            file: None,
        }
    }

    fn configured(how: How, file: PathBuf) -> Result<Self, String> {
        let file = Some(file);
        match how {
            How::Url { url, headers } => Ok(Self::Address {
                url,
                headers: check_headers(headers)?,
                file,
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
                Ok(Self::Command {
                    command: Box::new(command),
                    file,
                })
            }
        }
    }

    /// The digest that identifies this server: the configuration file, and either the command with
    /// its arguments, folder and added environment, or the URL with the headers from the file.
    /// `None` if the file or the folder does not exist.
    ///
    /// The contents of the program are not included: it may be replaced later, as with a shell that
    /// repeats the last command.
    pub(crate) fn digest(&self) -> Option<Digest> {
        let (Self::Command { file, .. } | Self::Address { file, .. }) = self;
        let file = match file {
            Some(file) => canonicalize(file).ok()?.into_os_string(),
            None => OsString::new(),
        };
        let mut fields = vec![file];
        match self {
            Self::Address { url, headers, .. } => {
                fields.extend(["url", url].map(OsString::from));
                let headers = headers.iter().flat_map(|(name, value)| [name, value]);
                fields.extend(headers.map(OsString::from));
            }
            Self::Command { command, .. } => {
                let folder = command.get_current_dir().unwrap_or(Path::new("."));
                fields.extend(["command".into(), canonicalize(folder).ok()?.into()]);
                fields.push(command.get_args().len().to_string().into());
                fields.push(command.get_program().to_owned());
                fields.extend(command.get_args().map(OsStr::to_owned));
                for (name, value) in command.get_envs() {
                    // A removed variable has one field less than an empty one.
                    fields.push(value.map_or("unset", |_| "set").into());
                    fields.extend(
                        [Some(name), value]
                            .into_iter()
                            .flatten()
                            .map(OsStr::to_owned),
                    );
                }
            }
        }
        Some(Digest::of(fields.iter().map(OsString::as_os_str)))
    }
}

fn unknown(name: &str, found: &config::Found) -> String {
    let mut told = format!("there is no server {name:?}");
    let names = found.servers.iter().map(|server| server.name.as_str());
    match nearest(name, names) {
        Some(nearest) => told.push_str(&format!("; did you mean {nearest:?}?")),
        None => told.push_str("; `belay servers` lists the servers, and a command goes after `--`"),
    }
    for problem in &found.problems {
        told.push_str(&format!("\n  {problem}"));
    }
    told
}

/// A server name has neither a slash nor a colon.
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
                "the name or the value of the header {name:?} is not valid in HTTP"
            )),
        });
    headers.collect()
}

/// Whether the name and the value are valid in an HTTP header.
pub(crate) fn is_header(name: &str, value: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let visible = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    !name.is_empty() && name.bytes().all(token) && value.bytes().all(visible)
}
