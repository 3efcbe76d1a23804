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

/// A server, as a file says it is reached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Server {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) how: How,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum How {
    Command {
        program: String,
        arguments: Vec<String>,
        environment: BTreeMap<String, String>,
        folder: Option<PathBuf>,
    },
    Url(String),
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
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file.display(), self.what),
            None => write!(f, "{}: {}", self.file.display(), self.what),
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
pub(crate) fn find(file: Option<&Path>) -> Found {
    let variable = |name: &str| std::env::var(name).ok();
    let mut found = Found::default();
    match file {
        Some(file) => found.add(read::read(file, &variable)),
        None => {
            for file in known_files().into_iter().filter(|file| file.is_file()) {
                found.add(read::read(&file, &variable));
            }
        }
    }
    found
}

impl Found {
    fn add(&mut self, read: Result<Vec<Server>, Problem>) {
        match read {
            Ok(servers) => self.servers.extend(servers),
            Err(problem) => self.problems.push(problem),
        }
    }

    /// The server of this name in the nearest file.
    pub(crate) fn named(&self, name: &str) -> Option<&Server> {
        self.servers.iter().find(|server| server.name == name)
    }
}
