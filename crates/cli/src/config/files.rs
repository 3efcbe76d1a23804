//! Paths of the configuration files of MCP hosts.

use std::path::{Path, PathBuf};

/// Relative to a project folder.
const OF_A_PROJECT: [&str; 5] = [
    ".mcp.json",
    ".vscode/mcp.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
];

/// Relative to the home folder.
const OF_A_USER: [&str; 6] = [
    ".claude.json",
    ".config/Claude/claude_desktop_config.json",
    "Library/Application Support/Claude/claude_desktop_config.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".codex/config.toml",
];

/// All candidate paths, nearest first: the current folder, its parents, the home folder.
pub(crate) fn known_files() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let here = std::env::current_dir().unwrap_or_default();
    files(&here, home.as_deref())
}

fn files(here: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let outside_home = |folder: &&Path| Some(*folder) != home;
    for folder in here.ancestors().take_while(outside_home) {
        files.extend(OF_A_PROJECT.iter().map(|file| folder.join(file)));
    }
    if let Some(home) = home {
        files.extend(OF_A_USER.iter().map(|file| home.join(file)));
    }
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_file_comes_first_and_home_last() {
        let files = files(
            Path::new("/home/ann/work/app"),
            Some(Path::new("/home/ann")),
        );
        assert_eq!(files[0], Path::new("/home/ann/work/app/.mcp.json"));
        assert_eq!(files[5], Path::new("/home/ann/work/.mcp.json"));
        assert_eq!(files[10], Path::new("/home/ann/.claude.json"));
    }
}
