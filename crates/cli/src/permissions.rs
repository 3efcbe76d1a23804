//! Who else can change a file.
//!
//! A file that names commands, or says which commands were run before, is as good as those commands:
//! whoever can write to it can run something as us.

use std::fmt;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::output::escaped;

/// Others than the owner can write.
const WRITABLE: u32 = 0o022;
/// In such a folder nobody can rename or remove what belongs to others, as in `/tmp`.
const STICKY: u32 = 0o1000;

/// Why a file might not say what its owner wanted it to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Doubt {
    /// Group or others can write to this file.
    File(PathBuf),
    /// Group or others can write to this folder, and so put another file in the place of ours.
    Folder(PathBuf),
}

impl Doubt {
    /// Whether others can write to a file, of which this is known, or replace it.
    ///
    /// Folders further up are not looked at: whoever can write there can put a folder of their own in
    /// the place of ours, and [`is_ours`] sees whose it is.
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

/// Whether a path is a file, and belongs to us or to root: itself, the link if it is one, and the
/// folder it stands in.
pub(crate) fn is_ours(file: &Path) -> bool {
    let us = rustix::process::getuid().as_raw();
    let ours = |metadata: &Metadata| metadata.uid() == us || metadata.uid() == 0;
    fs::metadata(file).is_ok_and(|it| it.is_file() && ours(&it))
        && fs::symlink_metadata(file).is_ok_and(|it| ours(&it))
        && folders(file)
            .iter()
            .all(|folder| fs::metadata(folder).is_ok_and(|it| ours(&it)))
}

/// The folder a file stands in; if it is a link, that of the link and that of the file.
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

/// A path to be copied into a shell, which must not find anything else in it.
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
