//! Files that others can change, or have put there.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use tokio::process::Command;

use super::{User, serve};

#[tokio::test]
async fn a_file_that_others_can_change_starts_nothing_and_says_what_to_do() {
    let user = User::new();
    let file = user.path("project/.mcp.json");
    let folder = user.path("project");
    user.configure("project/.mcp.json", "time", &user.script(&serve()));
    assert_eq!(user.belay(&["list", "time"]).await.0, 0);
    let explicit = file.display().to_string();
    for (path, mode, ours) in [
        (&file, 0o664, 0o644),
        (&file, 0o646, 0o644),
        (&file, 0o666, 0o600),
        (&folder, 0o770, 0o700),
        (&folder, 0o707, 0o755),
    ] {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        assert_eq!(user.complete(&["belay", "call", "ti"]).await, [""; 0]);
        assert_eq!(
            user.complete(&["belay", "call", "time", "ec"]).await,
            [""; 0]
        );
        let advice = format!("chmod go-w {}", path.display());
        for words in [
            &["list", "time"][..],
            &["call", "time", "echo", "text=hi"],
            &["read", "--config", &explicit, "time"],
        ] {
            let (code, told) = user.belay(words).await;
            assert_eq!(code, 1, "{told}");
            assert!(
                told.contains("others can") && told.contains(&advice),
                "{told}"
            );
        }
        let (code, listed) = user.belay(&["servers"]).await;
        assert_eq!(code, 0, "they can be looked at: {listed}");
        assert!(
            listed.contains("time") && listed.contains(&advice),
            "{listed}"
        );
        let (_, listed) = user.belay(&["servers", "--json"]).await;
        assert!(listed.contains("\"doubt\":\"others can"), "{listed}");
        assert_eq!(user.starts(), 1);
        // What it says is what helps.
        let status = Command::new("sh").args(["-c", &advice]).status().await;
        assert!(status.unwrap().success());
        let mode = std::fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode & 0o022, 0);
        std::fs::set_permissions(path, Permissions::from_mode(ours)).unwrap();
        assert_eq!(user.complete(&["belay", "call", "ti"]).await, ["time"]);
    }
    // In a folder such as /tmp everybody has their own files.
    std::fs::set_permissions(&folder, Permissions::from_mode(0o1777)).unwrap();
    assert_eq!(user.belay(&["list", "time"]).await.0, 0);
}

#[tokio::test]
async fn a_file_that_somebody_else_has_put_there_is_not_looked_at() {
    if !rustix::process::getuid().is_root() {
        return;
    }
    let user = User::new();
    user.configure("home/.claude.json", "time", &user.script(&serve()));
    user.configure("project/.mcp.json", "time", "exit 9");
    let file = user.path("project/.mcp.json");
    std::os::unix::fs::chown(&file, Some(12345), None).unwrap();
    assert_eq!(user.belay(&["list", "time"]).await.0, 0);
    // Nor is a link of somebody else to a file of ours.
    user.configure("project/other.json", "time", "exit 9");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("other.json", &file).unwrap();
    assert_eq!(user.belay(&["list", "time"]).await.0, 4);
    std::os::unix::fs::lchown(&file, Some(12345), None).unwrap();
    assert_eq!(user.belay(&["list", "time"]).await.0, 0);
    // Whoever has the folder can do with its files what they like.
    std::fs::remove_file(&file).unwrap();
    user.configure("project/.mcp.json", "time", "exit 9");
    std::os::unix::fs::chown(user.path("project"), Some(12345), None).unwrap();
    assert_eq!(user.belay(&["list", "time"]).await.0, 0);
}
