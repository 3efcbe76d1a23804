//! What was started is remembered: where, how much of it, and what is made of a file that is not ours.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use super::{User, serve};
use crate::support::BELAY;

#[tokio::test]
async fn what_was_started_is_remembered_in_a_private_file() {
    let user = User::new();
    user.configure("project/.mcp.json", "time", &user.script(&serve()));
    let start = async || assert_eq!(user.belay(&["list", "time"]).await.0, 0);
    let known = async || {
        !user
            .complete(&["belay", "call", "time", "ec"])
            .await
            .is_empty()
    };
    start().await;
    assert!(known().await);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&user.state()), 0o600);
    assert_eq!(mode(user.state().parent().unwrap()), 0o700);
    let digest = std::fs::read_to_string(user.state()).unwrap();
    assert!(
        !digest.contains("time") && digest.lines().count() == 1,
        "{digest}"
    );

    // What is broken is ignored, and replaced.
    for broken in [
        "nonsense\n",
        &digest.repeat(10_000),
        "\u{0}",
        "é",
        &digest[..20],
    ] {
        user.write("home/.local/state/belay/known_servers", broken);
        assert!(!known().await, "{}", &broken[..2.min(broken.len())]);
        start().await;
        assert_eq!(std::fs::read_to_string(user.state()).unwrap(), digest);
    }
    // What others can write is theirs.
    for permissions in [0o606, 0o660] {
        let permissions = Permissions::from_mode(permissions);
        std::fs::set_permissions(user.state(), permissions).unwrap();
        assert!(!known().await);
    }
    start().await;
    assert_eq!(mode(&user.state()), 0o600);
    assert!(known().await);
    // It does not grow without end, and the oldest goes first.
    let others = (0..300).map(|n| format!("{n:064x}\n"));
    user.write(
        "home/.local/state/belay/known_servers",
        &others.collect::<String>(),
    );
    start().await;
    let text = std::fs::read_to_string(user.state()).unwrap();
    assert_eq!(text.lines().count(), 256);
    assert!(text.contains(&digest) && text.contains(&format!("{:064x}", 299)));
    // What belongs to somebody else is neither believed nor touched. Only root can give it away.
    if rustix::process::getuid().is_root() {
        std::os::unix::fs::chown(user.state(), Some(12345), None).unwrap();
        assert!(!known().await);
        start().await;
        assert_eq!(std::fs::metadata(user.state()).unwrap().uid(), 12345);
    }
    // Nowhere to keep it is no reason to fail.
    std::fs::remove_dir_all(user.path("home/.local")).unwrap();
    std::fs::write(user.path("home/.local"), "").unwrap();
    start().await;
}

#[tokio::test]
async fn the_folder_for_state_can_be_chosen() {
    let user = User::new();
    let state = user.path("state");
    let script = user.script(&serve());
    for (chosen, kept) in [
        (
            state.display().to_string(),
            state.join("belay/known_servers"),
        ),
        // Only what is absolute counts.
        ("somewhere".to_owned(), user.state()),
    ] {
        let mut list = user.command(BELAY, "project");
        list.args(["list", "--", "sh", "-c", &script]);
        let output = list.env("XDG_STATE_HOME", &chosen).output().await.unwrap();
        assert!(output.status.success());
        assert!(kept.exists(), "{chosen}");
    }
    assert!(!user.path("project/somewhere").exists());
}
