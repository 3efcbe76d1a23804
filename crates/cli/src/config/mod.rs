//! Servers by name, from the files that hosts keep.
//!
//! A file is only read. What is wrong with one is told with its line; the others count all the same.

mod expand;
mod files;
mod read;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

pub(crate) use files::known_files;

use crate::output::escaped;
use crate::permissions::{Doubt, is_ours};

/// A server, as a file says it is reached: word for word, since variables may hold secrets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) how: How,
    /// Why the file may say what somebody else wants. Such a server is listed, and never started.
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
    /// With the values of its variables.
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

/// What is wrong with a file, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    pub(crate) file: PathBuf,
    /// Counted from 1, if it is known.
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

/// All servers that were found, the nearest file first, and all that was wrong.
#[derive(Default, Debug)]
pub(crate) struct Found {
    pub(crate) servers: Vec<Server>,
    pub(crate) problems: Vec<Problem>,
}

/// Looks into one file if it is given, else into all that hosts keep.
///
/// What belongs to somebody else is passed over, since anybody can put a file above a folder of ours,
/// such as into `/tmp`. A file that is given was chosen, whoever it belongs to.
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
