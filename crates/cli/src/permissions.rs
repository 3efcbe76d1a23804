//! Checks whether other users can change a file.
//!
//! belay runs commands that a configuration file names. A user who can write to that file, or to
//! the file of known servers, could run commands as the user of belay.

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::output::escaped;

/// Write permission for group or others.
const WRITABLE: u32 = 0o022;
/// In a sticky folder such as `/tmp`, users cannot rename or remove files of other users.
const STICKY: u32 = 0o1000;

/// The reason why a file is not trusted: another user could have changed it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    /// Group or others can write to this file.
    File(PathBuf),
    /// Group or others can write to this folder, and so replace the file.
    Folder(PathBuf),
}

impl Doubt {
    /// Checks whether group or others can write to a file with this metadata, or replace it.
    ///
    /// Folders further up are not checked: a user who can write there could replace our folder with
    /// one of their own, and [`is_ours`] checks the owner.
    pub(crate) fn about(file: &Path, metadata: &Metadata) -> Option<Self> {
        if metadata.mode() & WRITABLE != 0 {
            return Some(Self::File(file.to_owned()));
        }
        folders(file).into_iter().find_map(|folder| {
            let mode = fs::metadata(&folder).map_or(0, |it| it.mode());
            (mode & WRITABLE != 0 && mode & STICKY == 0).then_some(Self::Folder(folder))
        })
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, path) = match self {
            Self::File(file) => ("others can change it", file),
            Self::Folder(folder) => ("others can replace it", folder),
        };
        write!(
            f,
            "{what}; remove their write permission: chmod go-w {}",
            quoted(path)
        )
    }
}

/// Whether a path is a file that belongs to the current user or to root. Checks the file, the link
/// if it is one, and the folder.
pub(crate) fn is_ours(file: &Path) -> bool {
    let us = rustix::process::getuid().as_raw();
    let ours = |metadata: &Metadata| metadata.uid() == us || metadata.uid() == 0;
    fs::metadata(file).is_ok_and(|it| it.is_file() && ours(&it))
        && fs::symlink_metadata(file).is_ok_and(|it| ours(&it))
        && folders(file)
            .iter()
            .all(|folder| fs::metadata(folder).is_ok_and(|it| ours(&it)))
}

/// The folder of a file; for a symbolic link, the folders of the link and of its target.
fn folders(file: &Path) -> Vec<PathBuf> {
    let paths = [Some(file.to_owned()), fs::canonicalize(file).ok()];
    let folders = paths.iter().flatten().filter_map(|path| path.parent());
    let mut folders: Vec<PathBuf> = folders
        .map(|folder| match folder.as_os_str().is_empty() {
            true => ".".into(),
            false => folder.to_owned(),
        })
        .collect();
    folders.dedup();
    folders
}

/// A path quoted for a shell, so that the advice can be copied safely.
fn quoted(path: &Path) -> String {
    let path = path.display().to_string();
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+,@%:".contains(letter);
    match path.chars().all(is_plain) {
        true => path,
        false => format!("'{}'", escaped(&path).replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_in_advice_is_one_word_and_nothing_else() {
        for (path, shown) in [
            ("/home/ann/.mcp.json", "/home/ann/.mcp.json"),
            ("/a b", "'/a b'"),
            ("/$(touch x)", "'/$(touch x)'"),
            ("/it's", r"'/it'\''s'"),
            ("/a\nb", r"'/a\nb'"),
        ] {
            let advice = Doubt::File(path.into()).to_string();
            assert!(advice.ends_with(&format!("chmod go-w {shown}")), "{advice}");
        }
    }
}
