//! What is completed is what is run, whatever tools, servers and files are called.

use std::path::Path;

use serde_json::json;

use super::{User, serve};
use crate::support::BELAY;
use crate::terminal::Terminal;

/// A server with these tools, each with an argument of this name, that leaves a line at its start.
fn server_of(user: &User, tools: &[&str], argument: &str) -> String {
    let schema = json!({ "type": "object", "properties": { argument: { "type": argument } } });
    let tools = tools
        .iter()
        .map(|name| json!({ "name": name, "inputSchema": schema }));
    let tools: Vec<_> = tools.collect();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "result": {
        "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} } } });
    let list = json!({ "jsonrpc": "2.0", "id": 2, "result": {
        "resultType": "complete", "tools": tools } });
    user.write("hello", &format!("{hello}\n"));
    user.write("list", &format!("{list}\n"));
    let (hello, list) = (user.path("hello"), user.path("list"));
    let answers = format!(
        "read a; cat {}; read b; cat {}; cat > /dev/null",
        hello.display(),
        list.display()
    );
    user.script(&answers)
}

/// Names that do something where they are not quoted.
const HOSTILE: [&str; 18] = [
    "run$(touch ran)",
    "run`touch ran`",
    "run;touch ran",
    "run|touch${IFS}ran",
    "run&touch ran",
    "run\ntouch ran",
    "run\rtouch ran",
    "run\u{b}touch",
    "run\u{1b}[2J",
    "run>ran",
    "run*",
    "run?",
    "run[a]",
    "run{a,b}",
    "run'",
    "run\"",
    "run\\",
    "run tool",
];

#[tokio::test]
async fn only_names_that_no_shell_reads_otherwise_are_offered() {
    let user = User::new();
    let fine = [
        "run_A-1.b/c",
        "-run",
        "--config",
        "~run",
        "=run",
        "#run",
        "rün",
        "",
    ];
    let tools = [&HOSTILE[..], &fine].concat();
    let long = "r".repeat(129);
    let tools = [&tools[..], &[&long]].concat();
    user.configure("project/.mcp.json", "time", &server_of(&user, &tools, "a"));
    assert_eq!(user.belay(&["list", "time"]).await.0, 0);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let words = ["belay", "call", "time", ""];
        let offered = user.complete_at(shell, &words, 3).await;
        let offered: Vec<&str> = offered
            .iter()
            .flat_map(|text| text.lines())
            .filter_map(|line| line.split(['\t', ':']).next())
            .filter(|name| !name.starts_with('-'))
            .collect();
        assert_eq!(offered, ["run_A-1.b/c"], "{shell}");
    }
    // The same for servers.
    for name in HOSTILE {
        user.configure("project/.mcp.json", name, &serve());
        assert_eq!(
            user.complete(&["belay", "call", "ru"]).await,
            [""; 0],
            "{name:?}"
        );
    }
    // And for files.
    std::fs::remove_file(user.path("project/.mcp.json")).unwrap();
    for name in HOSTILE.into_iter().chain(["run.json"]) {
        std::fs::write(user.path("project").join(name), "").unwrap();
    }
    for option in ["--config", "--cacert", "--cwd", "--trace-file"] {
        let offered = user.complete(&["belay", "call", option, "ru"]).await;
        assert_eq!(offered, ["run.json"], "{option}");
    }
    for option in ["--tls-cert", "--tls-key"] {
        let offered = user.complete(&["belay", "serve", option, "ru"]).await;
        assert_eq!(offered, ["run.json"], "{option}");
    }
}

#[tokio::test]
async fn what_stands_beside_a_candidate_does_nothing() {
    let user = User::new();
    for name in HOSTILE {
        user.configure(
            "project/.mcp.json",
            "time",
            &server_of(&user, &["run"], name),
        );
        assert_eq!(user.belay(&["list", "time"]).await.0, 0);
        let words = ["belay", "call", "time", "run"];
        let offered = user.complete_at("zsh", &words, 3).await;
        let [offered] = offered.as_slice() else {
            panic!("{offered:?}");
        };
        let help = offered.strip_prefix("run:").unwrap();
        let plain = |c: char| c.is_ascii_alphanumeric() || " _-.,:/".contains(c);
        assert!(help.chars().all(plain), "{name:?}: {help:?}");
        assert!(help.contains("run"), "{help}");
    }
}

/// A bash on a terminal that completes the tool.
async fn bash(user: &User) -> Terminal {
    let mut terminal = Terminal::start_in(
        user.path("project"),
        &format!(
            "HOME={} exec bash --norc --noprofile",
            user.path("home").display()
        ),
    );
    let folder = Path::new(BELAY).parent().unwrap().display().to_string();
    terminal
        .type_in("bind 'set bell-style none'; unset XDG_STATE_HOME\n")
        .await;
    terminal
        .type_in(&format!(
            "PATH=$PATH:{folder}; source <(belay completions bash)\n"
        ))
        .await;
    terminal.type_in("echo rea\"\"dy\n").await;
    terminal.until("ready\r\n").await;
    terminal
}

#[tokio::test]
async fn tab_and_enter_in_a_real_bash_run_nothing_of_the_folder_or_the_server() {
    let user = User::new();
    user.configure(
        "project/.mcp.json",
        "time",
        &server_of(&user, &["run$(touch ran)"], "a"),
    );
    let mut terminal = bash(&user).await;
    // A server that nobody has started.
    terminal
        .type_in("belay call time \t\t\nbelay call ti\t\necho do\"\"ne\n")
        .await;
    terminal.until("done\r\n").await;
    assert_eq!(user.starts(), 0);
    // One that somebody has, and that has a tool of that name.
    terminal.type_in("belay list time\necho lis\"\"ted\n").await;
    terminal.until("listed\r\n").await;
    assert_eq!(user.starts(), 1);
    terminal
        .type_in("belay call time r\t\necho do\"\"ne\n")
        .await;
    terminal.until("done\r\n").await;
    assert!(user.starts() >= 2, "it was asked");
    assert!(!user.path("project/ran").exists());
    // It is a shell that completes, all the same.
    user.configure("project/.mcp.json", "time", &serve());
    terminal
        .type_in("belay call time echo text=o\"\"ne\n")
        .await;
    terminal.until("one\r\n").await;
    terminal.type_in("belay call ti\tec\ttext=t\"\"wo\n").await;
    terminal.until("two\r\n").await;
    terminal.type_in("exit\n").await;
    terminal.ended().await;
}
