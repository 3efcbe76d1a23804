//! Servers by name, from the files of five hosts and more.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use tokio::process::Command;

use crate::support::{BELAY, STATE, Scratch, belay_command};

/// A file that only we can change, whatever the umask was when the repository was checked out.
fn fixture(name: &str) -> String {
    let original = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("fixtures");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o700)).unwrap();
    let file = folder.join(name);
    if let Ok(text) = std::fs::read(original.join(name)) {
        // Other tests may be reading it.
        let new = folder.join(format!("{name}.{}", std::process::id()));
        std::fs::write(&new, text).unwrap();
        std::fs::set_permissions(&new, Permissions::from_mode(0o600)).unwrap();
        std::fs::rename(&new, &file).unwrap();
    }
    file.display().to_string()
}

async fn belay(arguments: &[&str]) -> (i32, String, String) {
    let mut command = belay_command();
    let output = command.args(arguments).env("BELAY", BELAY).output().await;
    let output = output.unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[tokio::test]
async fn a_server_from_each_hosts_file_can_be_called_by_name() {
    for file in [
        "claude_desktop_config.json",
        "claude_code.mcp.json",
        "vscode.mcp.json",
        "cursor.mcp.json",
        "codex.config.toml",
        "gemini.settings.json",
    ] {
        let file = fixture(file);
        let (code, out, err) = belay(&["servers", "--config", &file]).await;
        assert_eq!((code, err.as_str()), (0, ""), "{file}");
        assert!(out.contains("demo") && out.contains("remote"), "{out}");
        assert!(out.contains("example.com"), "{out}");
        let call = ["call", "--config", &file, "demo", "echo", "text=hi"];
        let (code, out, err) = belay(&call).await;
        assert_eq!(
            (code, out.as_str(), err.as_str()),
            (0, "hi\n", ""),
            "{file}"
        );
        let (code, out, _) = belay(&["list", "--config", &file, "demo"]).await;
        assert_eq!(code, 0);
        assert!(
            out.contains("count(to: integer, delay_ms: integer)"),
            "{out}"
        );
    }
}

#[tokio::test]
async fn a_wrong_file_is_told_with_its_line_and_what_was_expected() {
    for (file, expected) in [
        ("wrong_comma.json", ":3: expected `,` or `}`"),
        (
            "wrong_type.json",
            ":5: invalid type: string \"serve\", expected a sequence",
        ),
        (
            "wrong_entry.json",
            ":4: server \"nothing\": expected a `command` or a `url`",
        ),
        (
            "wrong.toml",
            ":3: invalid type: integer `5`, expected a sequence",
        ),
        ("no_such_file.json", "No such file"),
    ] {
        let path = fixture(file);
        let (code, _, err) = belay(&["servers", "--config", &path]).await;
        assert_eq!(code, 1, "{file}");
        assert!(
            err.contains(&format!("{path}{expected}")) || err.contains(expected),
            "{err}"
        );
        // It is told, too, where it stands in the way. What is wrong with one server spoils only
        // that one.
        let name = if file == "wrong_entry.json" {
            "nothing"
        } else {
            "demo"
        };
        let (code, _, err) = belay(&["list", "--config", &path, name]).await;
        assert_eq!(code, 1);
        let missing = format!("there is no server {name:?}");
        assert!(err.contains(&missing) && err.contains(expected), "{err}");
    }
}

#[tokio::test]
async fn variables_options_and_names_that_are_wrong() {
    let file = Scratch::new("mcp.json");
    let text = r#"{
        "servers": { "demo": { "command": "${NO_SUCH_VARIABLE}", "args": ["${SECRET:-x}"] } },
        "mcpServers": { "io.example/this": { "command": "${BELAY}", "args": ["serve"] } }
    }"#;
    file.write_private(&format!("\u{feff}{text}"));
    let path = file.0.display().to_string();
    // Variables may hold secrets, so they are shown by their names.
    let (code, out, _) = belay(&["servers", "--config", &path]).await;
    assert_eq!(code, 0);
    assert!(out.contains("${NO_SUCH_VARIABLE} ${SECRET:-x}"), "{out}");
    let (code, _, err) = belay(&["list", "--config", &path, "demo"]).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("NO_SUCH_VARIABLE is not set; set it, or write"),
        "{err}"
    );
    // One that would take more of the stack than there is.
    let deep = Scratch::new("deep.json");
    let nested = format!("{}x{}", "${X:-".repeat(100_000), "}".repeat(100_000));
    let servers = serde_json::json!({ "mcpServers": { "deep": { "command": nested } } });
    deep.write_private(&servers.to_string());
    let deep = deep.0.display().to_string();
    let (code, _, err) = belay(&["list", "--config", &deep, "deep"]).await;
    assert_eq!(code, 1, "{err}");
    assert!(
        err.contains("variables are nested more than 32 deep"),
        "{err}"
    );
    let call = [
        "call",
        "--config",
        &path,
        "io.example/this",
        "echo",
        "text=hi",
    ];
    assert_eq!(belay(&call).await.1, "hi\n");

    let fixture = fixture("cursor.mcp.json");
    let (code, _, err) = belay(&["call", "--config", &fixture, "dmo", "echo"]).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("there is no server \"dmo\"; did you mean \"demo\"?"),
        "{err}"
    );
    let (code, _, err) = belay(&["call", "--config", &fixture, "remote", "echo"]).await;
    assert_eq!(code, 4, "{err}");
    let (code, _, err) = belay(&["list", "demo", "--", BELAY, "serve"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("two servers"), "{err}");
    let (code, _, err) = belay(&["call", "echo"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("no server given"), "{err}");
}

#[tokio::test]
async fn environment_folder_and_trace_are_as_the_command_line_says() {
    let script = "cd . && printf '%s %s' \"$COLOUR\" \"$PWD\" >&2; exit 3";
    let arguments = [
        "list",
        "-e",
        "COLOUR=red",
        "--cwd",
        "/",
        "--",
        "sh",
        "-c",
        script,
    ];
    let (code, _, err) = belay(&arguments).await;
    assert_eq!(code, 4);
    assert!(err.contains("its last words: red /"), "{err}");

    let trace = Scratch::new("trace");
    let path = trace.0.display().to_string();
    let call = [
        "call",
        "-v",
        "--trace-file",
        &path,
        "echo",
        "text=hi",
        "--",
        BELAY,
        "serve",
    ];
    let (code, out, err) = belay(&call).await;
    assert_eq!((code, out.as_str()), (0, "hi\n"));
    assert!(
        err.contains("\n> {\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\""),
        "{err}"
    );
    assert!(
        err.contains("\n< {\"jsonrpc\":\"2.0\",\"id\":3,\"result\""),
        "{err}"
    );
    let lines = trace.text();
    assert_eq!(lines.lines().count(), 6, "{lines}");
    for line in lines.lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["frame"]["jsonrpc"], "2.0");
        assert!(line["ms"].is_number() && line["way"].is_string());
    }
}

#[tokio::test]
async fn arguments_come_from_files_and_from_stdin() {
    let file = Scratch::new("text");
    std::fs::write(&file.0, "from a file").unwrap();
    let text = format!("text=@{}", file.0.display());
    let (code, out, _) = belay(&["call", "echo", &text, "--", BELAY, "serve"]).await;
    assert_eq!((code, out.as_str()), (0, "from a file\n"));
    let (code, _, err) = belay(&["call", "echo", "text=@/no/such", "--", BELAY, "serve"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("text=@/no/such: No such file"), "{err}");
    let piped = format!(
        "export {}={}; echo '{{\"text\":\"piped\"}}' | {BELAY} call echo - -- {BELAY} serve",
        STATE.0, STATE.1
    );
    let output = Command::new("sh")
        .args(["-c", &piped])
        .output()
        .await
        .unwrap();
    assert_eq!(output.stdout, b"piped\n");
}
