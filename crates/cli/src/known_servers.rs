//! Which servers were started or connected to before.
//!
//! Completion asks a server for its tools, and to ask it has to start a command or to connect
//! somewhere. A file of the current folder may have chosen both, so it asks only what the user has
//! already asked by pressing Enter. What that was is kept as digests: commands and their environment
//! hold secrets.

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::permissions::{Doubt, is_ours};

/// How many servers are remembered. The one that was not used for longest goes first.
const SERVERS: usize = 256;
/// A digest in hexadecimal digits, and the end of its line.
const LINE: usize = 65;

/// What identifies a server: all that decides which program is run, or where to connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Digest(String);

impl Digest {
    /// The digest of some fields, in order. None of them can pass for a part of another.
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

/// The file of the user.
pub(crate) struct KnownServers(PathBuf);

impl KnownServers {
    /// `None` if there is no place for it.
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
    /// Of two processes that do so at the same time one may be forgotten. Nothing but a completion is
    /// lost with it.
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

    /// The oldest first. A file that is broken, or that others could have written, says nothing.
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

    /// Whoever reads it meanwhile sees the old file or the new one, never a part.
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
    // One that is there already was left behind by a process that had our id.
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
