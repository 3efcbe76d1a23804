//! The servers that the user has started or connected to before.
//!
//! To complete tool names, belay starts a command or connects to a URL. A configuration file of the
//! current folder may have chosen both, so completion uses only servers that the user has already
//! used in a command. They are stored as digests, because commands and their environment can hold
//! secrets.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::permissions::{Doubt, is_ours};

/// Maximum number of remembered servers. The least recently used one is dropped first.
const SERVERS: usize = 256;
/// Length of a line: a SHA-256 digest in hexadecimal digits and a newline.
const LINE: usize = 65;

/// A digest of everything that decides which program runs or which URL is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Digest(String);

impl Digest {
    /// The digest of some fields, in order. Each is hashed with its length, so that no field can
    /// pass for a part of another.
    pub(crate) fn of<'a>(fields: impl IntoIterator<Item = &'a OsStr>) -> Self {
        let mut sha = Sha256::new();
        for field in fields {
            sha.update((field.len() as u64).to_le_bytes());
            sha.update(field.as_bytes());
        }
        let digits = sha
            .finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Self(digits)
    }

    fn read(line: &str) -> Option<Self> {
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let is_digest = line.len() + 1 == LINE && line.bytes().all(is_digit);
        is_digest.then(|| Self(line.to_owned()))
    }
}

/// The user's `known_servers` file.
pub(crate) struct KnownServers(PathBuf);

impl KnownServers {
    /// `None` if neither `XDG_STATE_HOME` nor `HOME` is an absolute path.
    pub(crate) fn of_user() -> Option<Self> {
        let absolute = |name| {
            let path = std::env::var_os(name).map(PathBuf::from);
            path.filter(|path| path.is_absolute())
        };
        let state = absolute("XDG_STATE_HOME");
        let state = state.or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
        Some(Self(state.join("belay/known_servers")))
    }

    pub(crate) fn contains(&self, digest: &Digest) -> bool {
        self.read().contains(digest)
    }

    /// Adds a server, or makes it the newest.
    ///
    /// If two processes do this at the same time, one entry may be lost. Only a completion is then
    /// missing.
    pub(crate) fn remember(&self, digest: &Digest) -> io::Result<()> {
        let mut known = self.read();
        if known.last() == Some(digest) {
            return Ok(());
        }
        if fs::symlink_metadata(&self.0).is_ok() && !is_ours(&self.0) {
            return Err(io::Error::other("the file belongs to another user"));
        }
        known.retain(|other| other != digest);
        known.push(digest.clone());
        let newest = &known[known.len().saturating_sub(SERVERS)..];
        let text: String = newest
            .iter()
            .map(|Digest(line)| format!("{line}\n"))
            .collect();
        if let Some(folder) = self.0.parent() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
        }
        self.replace(text.as_bytes())
    }

    /// The oldest first. Empty if the file is malformed or other users could have written it.
    fn read(&self) -> Vec<Digest> {
        self.lines().unwrap_or_default()
    }

    fn lines(&self) -> Option<Vec<Digest>> {
        if !is_ours(&self.0) {
            return None;
        }
        let file = File::open(&self.0).ok()?;
        if Doubt::about(&self.0, &file.metadata().ok()?).is_some() {
            return None;
        }
        let mut text = String::new();
        let most = (4 * SERVERS * LINE) as u64;
        file.take(most + 1).read_to_string(&mut text).ok()?;
        if text.len() as u64 > most {
            return None;
        }
        text.lines().map(Digest::read).collect()
    }

    /// Replaces the file atomically: readers see the old file or the new one.
    fn replace(&self, text: &[u8]) -> io::Result<()> {
        let new = self.0.with_extension(format!("{}.new", std::process::id()));
        let written = write_private(&new, text).and_then(|()| fs::rename(&new, &self.0));
        if written.is_err() {
            let _ = fs::remove_file(&new);
        }
        written
    }
}

fn write_private(path: &Path, text: &[u8]) -> io::Result<()> {
    // An existing file was left behind by an earlier process with the same process id.
    let _ = fs::remove_file(path);
    let mut options = File::options();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(fields: &[&str]) -> Digest {
        Digest::of(fields.iter().map(OsStr::new))
    }

    #[test]
    fn no_field_passes_for_a_part_of_another() {
        let same = digest(&["sh", "-c", "a"]);
        assert_eq!(same, digest(&["sh", "-c", "a"]));
        for other in [
            &["sh", "-ca"][..],
            &["sh", "-c", "a", ""],
            &["", "sh", "-c", "a"],
            &["sh", "a", "-c"],
        ] {
            assert_ne!(same, digest(other), "{other:?}");
        }
        assert_eq!(Digest::read(&same.0), Some(same));
    }
}
