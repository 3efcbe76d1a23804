//! Servers by name, from the configuration files of MCP hosts.
//!
//! Files are never changed. An error in one file is reported with its line, and the other files are
//! still used.

mod expand;
mod files;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use files::known_files;

use crate::output::escaped;
use crate::permissions::{Doubt, is_ours};

/// A server as configured in a file. Variables are not expanded, because they may hold secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) how: How,
    /// Why another user could have written this entry. Such a server is listed but never started.
    pub(crate) doubt: Option<Doubt>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum How {
    Command {
        program: String,
        arguments: Vec<String>,
        environment: BTreeMap<String, String>,
        folder: Option<String>,
    },
    Url {
        url: String,
        headers: BTreeMap<String, String>,
    },
}

impl How {
    /// Expands the variables.
    pub(crate) fn expanded(&self) -> Result<Self, String> {
        let variable = |name: &str| std::env::var(name).ok();
        let expand = |text: &String| expand::expand(text, &variable);
        match self {
            Self::Url { url, headers } => Ok(Self::Url {
                url: expand(url)?,
                headers: expand_all(headers, expand)?,
            }),
            Self::Command {
                program,
                arguments,
                environment,
                folder,
            } => Ok(Self::Command {
                program: expand(program)?,
                arguments: arguments.iter().map(expand).collect::<Result<_, _>>()?,
                environment: expand_all(environment, expand)?,
                folder: folder.as_ref().map(expand).transpose()?,
            }),
        }
    }
}

fn expand_all(
    values: &BTreeMap<String, String>,
    expand: impl Fn(&String) -> Result<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let expanded = values
        .iter()
        .map(|(name, value)| Ok((name.clone(), expand(value)?)));
    expanded.collect()
}

/// An error in a configuration file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    pub(crate) file: PathBuf,
    /// Line number, counted from 1, if known.
    pub(crate) line: Option<usize>,
    pub(crate) what: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display().to_string();
        let (file, what) = (escaped(&file), escaped(&self.what));
        match self.line {
            Some(line) => write!(f, "{file}:{line}: {what}"),
            None => write!(f, "{file}: {what}"),
        }
    }
}

/// All servers that were found, nearest file first, and all errors.
#[derive(Default, Debug)]
pub(crate) struct Found {
    pub(crate) servers: Vec<Server>,
    pub(crate) problems: Vec<Problem>,
}

/// Reads the given file, or all known configuration files.
///
/// Of the known files, those that belong to another user are skipped, because every user can put a
/// file into a parent folder such as `/tmp`. A file that was given explicitly is always read.
pub(crate) fn find(file: Option<&Path>) -> Found {
    let mut found = Found::default();
    match file {
        Some(file) => read::read(file, &mut found),
        None => {
            for file in known_files().iter().filter(|file| is_ours(file)) {
                read::read(file, &mut found);
            }
        }
    }
    found
}

impl Found {
    /// The server of this name in the nearest file.
    pub(crate) fn named(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }
}
