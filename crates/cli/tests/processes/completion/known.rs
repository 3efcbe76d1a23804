//! What is offered, and that nothing is started or connected to that was not before.

use serde_json::json;

use super::{User, serve};
use crate::http::{HttpServer, Way};

#[tokio::test]
async fn commands_options_and_servers_are_completed_by_name() {
    let user = User::new();
    user.configure("project/.mcp.json", "demo", &user.script(&serve()));
    let candidates = user.complete(&["belay", "c"]).await;
    assert_eq!(candidates, ["call", "completions"]);
    for command in ["call", "list", "read", "prompt", "listen"] {
        assert_eq!(user.complete(&["belay", command, "de"]).await, ["demo"]);
    }
    // Options are completed without a server, and what is half typed is never run.
    let typed = user.path("typed").display().to_string();
    for words in [
        &["belay", "call", "demo", "--"][..],
        &["belay", "call", "--", "touch", &typed],
        &["belay", "call", "echo", "--", "touch", &typed],
    ] {
        user.complete(words).await;
        assert!(!user.path("typed").exists(), "{words:?}");
    }
    assert_eq!(user.starts(), 0);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let (code, out) = user.belay(&["completions", shell]).await;
        assert_eq!(code, 0);
        assert!(out.contains("belay"), "{out}");
    }
}

#[tokio::test]
async fn a_server_that_was_never_started_is_not_started_by_completion() {
    let user = User::new();
    user.configure("project/.mcp.json", "time", &user.script(&serve()));
    let tools = ["belay", "call", "time", "ro"];
    assert_eq!(user.complete(&tools).await, [""; 0]);
    assert_eq!(user.starts(), 0, "a file of this folder chose the command");

    let (code, out) = user.belay(&["call", "time", "echo", "text=hi"]).await;
    assert_eq!((code, out.as_str()), (0, "hi\n"));
    assert_eq!(user.complete(&tools).await, ["rollback"]);
    assert_eq!(user.starts(), 2, "asked of the server");

    // Another command under the same name.
    user.configure(
        "project/.mcp.json",
        "time",
        &user.script(&format!("true; {}", serve())),
    );
    assert_eq!(user.complete(&tools).await, [""; 0]);
    assert_eq!(user.starts(), 2);
    // Another environment.
    let servers = json!({ "mcpServers": { "time": {
        "command": "sh", "args": ["-c", user.script(&serve())], "env": { "LD_PRELOAD": "x.so" }
    } } });
    user.write("project/.mcp.json", &servers.to_string());
    assert_eq!(user.complete(&tools).await, [""; 0]);
    assert_eq!(user.starts(), 2);
    // What was started before is known again, and the words of the command line count.
    user.configure("project/.mcp.json", "time", &user.script(&serve()));
    for (added, expected) in [(&["-e", "A=b"][..], 0), (&["--cwd", "/"], 0), (&[], 1)] {
        let words = [&["belay", "call"], added, &["time", "ro"]].concat();
        assert_eq!(user.complete(&words).await.len(), expected, "{added:?}");
    }
    assert_eq!(user.starts(), 3);
}

#[tokio::test]
async fn a_nearer_file_cannot_take_the_place_of_a_server_that_is_known() {
    let user = User::new();
    let script = user.script(&serve());
    user.configure("home/.claude.json", "time", &script);
    let (code, _) = user.belay(&["list", "time"]).await;
    assert_eq!(code, 0);
    let tools = ["belay", "call", "time", "ec"];
    assert_eq!(user.complete(&tools).await, ["echo"]);
    assert_eq!(user.starts(), 2);
    // Even with the very same command: it would start in the same folder, but another file says so.
    user.configure("project/.mcp.json", "time", &script);
    assert_eq!(user.complete(&tools).await, [""; 0]);
    assert_eq!(user.starts(), 2);
}

#[tokio::test]
async fn a_command_and_a_url_are_asked_only_if_they_were_before() {
    let user = User::new();
    let script = user.script(&serve());
    let words = ["belay", "call", "ec", "--", "sh", "-c", &script];
    assert_eq!(user.complete_at("bash", &words, 2).await, [""; 0]);
    assert_eq!(user.starts(), 0);
    let (code, _) = user.belay(&["list", "--", "sh", "-c", &script]).await;
    assert_eq!(code, 0);
    assert_eq!(user.complete_at("bash", &words, 2).await, ["echo"]);
    assert_eq!(user.starts(), 2);
    let other = format!("{script} --http 127.0.0.1:0");
    let words = ["belay", "call", "ec", "--", "sh", "-c", &other];
    assert_eq!(user.complete_at("bash", &words, 2).await, [""; 0]);
    assert_eq!(user.starts(), 2);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    assert_eq!(user.complete(&["belay", "call", &url, ""]).await, [""; 0]);
    let connected = listener.accept();
    assert!(connected.is_err(), "somebody connected: {connected:?}");
    let server = HttpServer::start().await;
    let url = server.url(Way::Modern);
    let tools = ["belay", "call", &url, "ec"];
    assert_eq!(user.complete(&tools).await, [""; 0]);
    assert_eq!(user.belay(&["list", &url]).await.0, 0);
    assert_eq!(user.complete(&tools).await, ["echo"]);
    // A file can send what it likes along, so it is another server.
    let configure = |value: &str| {
        let web = json!({ "url": url, "headers": { "X": value } });
        user.write(
            "project/.mcp.json",
            &json!({ "mcpServers": { "web": web } }).to_string(),
        );
    };
    let tools = ["belay", "call", "web", "ec"];
    configure("a");
    assert_eq!(user.complete(&tools).await, [""; 0]);
    assert_eq!(user.belay(&["list", "web"]).await.0, 0);
    assert_eq!(user.complete(&tools).await, ["echo"]);
    configure("${HOME}");
    assert_eq!(user.complete(&tools).await, [""; 0]);
    // And it cannot call itself as a URL is called.
    user.configure("project/.mcp.json", &url, &script);
    assert_eq!(user.belay(&["list", &url]).await.0, 0);
    assert_eq!(user.starts(), 2);
}

#[tokio::test]
async fn no_orphan_processes_a_server_that_does_not_answer_to_completion_is_killed() {
    let user = User::new();
    // It answers once, and then never again, and cannot be ended but by SIGKILL.
    let stubborn = format!(
        "trap '' TERM; if [ $(wc -l < {}) = 1 ]; then {}; fi; echo $$ > {}; while :; do sleep 1; done",
        user.path("starts").display(),
        serve(),
        user.path("pid").display(),
    );
    user.configure("project/.mcp.json", "time", &user.script(&stubborn));
    assert_eq!(user.belay(&["list", "time"]).await.0, 0);
    assert_eq!(user.complete(&["belay", "call", "time", ""]).await, [""; 0]);
    let pid = std::fs::read_to_string(user.path("pid")).unwrap();
    assert!(!crate::support::exists(pid.trim().parse().unwrap()));
}
