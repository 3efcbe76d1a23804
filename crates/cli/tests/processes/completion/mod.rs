//! TAB: what it offers, and that it starts nothing, connects to nothing and runs nothing by itself.

mod known;
mod names;
mod permissions;
mod state;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::json;
use tokio::process::Command;

use crate::support::{BELAY, Scratch};

/// Somebody with a home, a project and a shell.
struct User {
    folder: Scratch,
}

impl Drop for User {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder.0);
    }
}

impl User {
    fn new() -> Self {
        let folder = Scratch::new("user");
        for name in ["home", "project"] {
            std::fs::create_dir_all(folder.0.join(name)).unwrap();
            let ours = Permissions::from_mode(0o700);
            std::fs::set_permissions(folder.0.join(name), ours).unwrap();
        }
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.0.join(name)
    }

    fn state(&self) -> PathBuf {
        self.path("home/.local/state/belay/known_servers")
    }

    /// Every start of this server leaves a line in a file.
    fn starts(&self) -> usize {
        let text = std::fs::read_to_string(self.path("starts")).unwrap_or_default();
        text.lines().count()
    }

    fn script(&self, then: &str) -> String {
        format!("echo started >> {}; {then}", self.path("starts").display())
    }

    /// Writes a file with a server of this name.
    fn configure(&self, file: &str, name: &str, script: &str) {
        let servers =
            json!({ "mcpServers": { name: { "command": "sh", "args": ["-c", script] } } });
        self.write(file, &servers.to_string());
    }

    fn write(&self, file: &str, text: &str) {
        let file = self.path(file);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    }

    fn command(&self, program: &str, folder: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.path(folder))
            .env("HOME", self.path("home"))
            .env("BELAY", BELAY)
            .env_remove("XDG_STATE_HOME");
        command
    }

    /// Runs the tool in the project: its exit code, and all it printed.
    async fn belay(&self, words: &[&str]) -> (i32, String) {
        let output = self.command(BELAY, "project").args(words).output().await;
        let output = output.unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(printed).unwrap(),
        )
    }

    /// What is offered for the last of these words.
    async fn complete(&self, words: &[&str]) -> Vec<String> {
        self.complete_at("bash", words, words.len() - 1).await
    }

    async fn complete_at(&self, shell: &str, words: &[&str], at: usize) -> Vec<String> {
        let mut command = self.command(BELAY, "project");
        command.env("COMPLETE", shell).arg("--");
        match shell {
            // These hand over what stands before the cursor, and no more.
            "fish" | "powershell" => command.args(&words[..=at]),
            _ => command
                .env("_CLAP_COMPLETE_INDEX", at.to_string())
                .env("_CLAP_IFS", "\x0b")
                .args(words),
        };
        let output = command.output().await.unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        let text = String::from_utf8(output.stdout).unwrap();
        let offered = text.split('\x0b').filter(|word| !word.is_empty());
        // Options are not what is asked for.
        let offered = offered.filter(|word| !word.starts_with('-'));
        offered.map(str::to_owned).collect()
    }
}

fn serve() -> String {
    format!("exec {BELAY} serve")
}
