//! The command line: mistakes get a clear message, and each end its exit code.

use std::process::Stdio;
use std::time::Duration;

use rustix::process::Signal;
use tokio::io::AsyncReadExt;
use tokio::process::Command;

use crate::support::{BELAY, STATE, Scratch, belay_command, signal};

async fn belay(arguments: &[&str]) -> (i32, String, String) {
    let output = belay_command()
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

const SERVE: [&str; 3] = ["--", BELAY, "serve"];

async fn on_demo(arguments: &[&str]) -> (i32, String, String) {
    let arguments: Vec<&str> = arguments.iter().copied().chain(SERVE).collect();
    belay(&arguments).await
}

#[tokio::test]
async fn results_go_to_stdout_and_nothing_else_does() {
    let (code, out, err) = on_demo(&["call", "echo", "text=hi"]).await;
    assert_eq!((code, out.as_str(), err.as_str()), (0, "hi\n", ""));
    let (code, out, err) = on_demo(&["call", "count", "to=2", "delay_ms=0"]).await;
    assert_eq!((code, out.as_str()), (0, "2\n"));
    assert_eq!(err, "1 of 2\n2 of 2\n");
    let (code, out, _) = on_demo(&["list"]).await;
    assert_eq!(code, 0);
    assert!(out.contains("echo(text: string)"), "{out}");
}

#[tokio::test]
async fn json_is_of_the_protocols_shape() {
    let (code, out, _) = on_demo(&["call", "echo", "text=hi", "--json"]).await;
    assert_eq!(code, 0);
    let value: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(value["content"][0]["text"], "hi");
    let (code, out, err) = on_demo(&["call", "hang", "--json", "--max-time", "0.1"]).await;
    assert_eq!((code, out.as_str()), (6, ""));
    let value: serde_json::Value = serde_json::from_str(&err).unwrap();
    assert_eq!(value["error"]["end"], "timed_out");
    assert_eq!(value["error"]["sent"], "maybe");
}

#[tokio::test]
async fn each_end_has_its_exit_code() {
    assert_eq!(on_demo(&["call", "panic"]).await.0, 2);
    assert_eq!(on_demo(&["call", "hang", "--max-time", "0.1"]).await.0, 6);
    assert_eq!(on_demo(&["call", "ask", "question=why"]).await.0, 9);
    let (code, out, _) = on_demo(&["call", "block", "ms=x"]).await;
    assert_eq!((code, out.as_str()), (1, ""));
    assert_eq!(
        belay(&["call", "echo", "text=hi", "--", "false"]).await.0,
        4
    );
    assert_eq!(belay(&["list", "--", "no-such-program"]).await.0, 4);
    assert_eq!(belay(&["no-such-command"]).await.0, 1);
    // Larger than any message of ours may be.
    let file = Scratch::new("large");
    std::fs::write(&file.0, "x".repeat(17 << 20)).unwrap();
    let large = format!("text=@{}", file.0.display());
    let (code, _, err) = on_demo(&["call", "echo", &large]).await;
    assert_eq!(code, 8);
    assert!(err.contains("rejected: "), "{err}");
}

#[tokio::test]
async fn mistakes_are_told_with_what_to_do() {
    let (code, _, err) = on_demo(&["call", "ecko", "text=hi"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("did you mean \"echo\"?"), "{err}");
    let (code, _, err) = on_demo(&["call", "echo"]).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("the argument \"text\" is missing: echo(text: string)"),
        "{err}"
    );
    let (_, _, err) = on_demo(&["call", "count", "to=many", "delay_ms=0"]).await;
    assert!(
        err.contains("argument \"to\": expected integer, not \"many\""),
        "{err}"
    );
    let (_, _, err) = belay(&["list", "--", "no-such-program"]).await;
    assert!(err.contains("cannot start \"no-such-program\""), "{err}");
    assert!(err.contains("No such file"), "{err}");
    let (_, _, err) = belay(&["list", "--", "sh", "-c", "echo 'no database' >&2; exit 3"]).await;
    assert!(
        err.contains("exit status: 3") && err.contains("no database"),
        "{err}"
    );
    let (code, _, err) = belay(&["list"]).await;
    assert_eq!(code, 1);
    assert!(
        err.contains("no server given: write its URL or a name"),
        "{err}"
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    // Five seconds for the probe, then `initialize`, which has a minute: killed before that.
    let pid = Scratch::new("pid");
    let script = format!("echo $$ > {}; exec sleep 1000", pid.0.display());
    let mut client = belay_command()
        .args(["list", "--era", "modern", "--", "sh", "-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let status = tokio::time::timeout(Duration::from_secs(30), client.wait()).await;
    assert_eq!(status.unwrap().unwrap().code(), Some(6));
    crate::support::until_gone(pid.number().await, Duration::from_secs(10)).await;
}

/// Whoever reads what is printed may have stopped to.
#[tokio::test]
async fn ctrl_c_ends_it_while_nobody_reads() {
    let text = "x".repeat(100_000);
    for words in [
        vec!["call".to_owned(), "echo".to_owned(), format!("text={text}")],
        vec![
            "prompt".to_owned(),
            "greet".to_owned(),
            format!("name={text}"),
        ],
    ] {
        let mut client = belay_command()
            .args(&words)
            .args(["--", BELAY, "serve"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // It has begun, and a pipe does not hold all of it.
        let mut first = [0];
        let stdout = client.stdout.as_mut().unwrap();
        stdout.read_exact(&mut first).await.unwrap();
        signal(client.id().unwrap(), Signal::INT);
        let status = tokio::time::timeout(Duration::from_secs(20), client.wait()).await;
        assert_eq!(status.unwrap().unwrap().code(), Some(130), "{}", words[0]);
    }
}

#[tokio::test]
async fn ctrl_c_cancels_on_the_wire() {
    let heard = Scratch::new("heard");
    let script = format!("tee {} | {BELAY} serve", heard.0.display());
    let mut client = belay_command()
        .args(["call", "hang", "--", "sh", "-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    for _ in 0..5000 {
        if heard.text().contains("\"hang\"") {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    signal(client.id().unwrap(), Signal::INT);
    let status = client.wait().await.unwrap();
    assert_eq!(status.code(), Some(130));
    for _ in 0..1000 {
        if heard.text().contains("notifications/cancelled") {
            assert!(heard.text().contains("interrupted"), "{}", heard.text());
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("the server was not told: {}", heard.text());
}

#[tokio::test]
async fn a_second_ctrl_c_kills() {
    let (heard, pid) = (Scratch::new("heard"), Scratch::new("pid"));
    // It outlives the end of its input, and SIGTERM.
    let script = format!(
        "echo $$ > {}; trap '' TERM; tee {} | {BELAY} serve; while :; do sleep 1; done",
        pid.0.display(),
        heard.0.display()
    );
    let mut client = belay_command()
        .args(["call", "hang", "--", "sh", "-c", &script])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    belay_testkit::until("it hangs", || heard.text().contains("\"hang\"")).await;
    signal(client.id().unwrap(), Signal::INT);
    let told = || heard.text().contains("notifications/cancelled");
    belay_testkit::until("the first is told", told).await;
    signal(client.id().unwrap(), Signal::INT);
    let pressed = std::time::Instant::now();
    assert_eq!(client.wait().await.unwrap().code(), Some(130));
    assert!(pressed.elapsed() < Duration::from_secs(1));
    // The server is killed, too, and reaped by whoever does that here.
    crate::support::until_gone(pid.number().await, Duration::from_secs(10)).await;
}

#[tokio::test]
async fn json_stays_json_whatever_happens() {
    let script = "exit 3";
    for arguments in [
        &[
            "call",
            "--json",
            "hang",
            "--max-time",
            "0.2",
            "--",
            BELAY,
            "serve",
        ][..],
        &[
            "call",
            "--json",
            "count",
            "to=3",
            "delay_ms=1",
            "--max-time",
            "0.0001",
            "--",
            BELAY,
            "serve",
        ],
        &["call", "--json", "nonsense", "--", BELAY, "serve"],
        &[
            "call",
            "--json",
            "--era",
            "legacy",
            "ask",
            "question=why",
            "--",
            BELAY,
            "serve",
        ],
        &["list", "--json", "--", "sh", "-c", script],
        &["list", "--json", "--no-such-option"],
        &["list", "--json", "no-such-server"],
        &["servers", "--json", "--config", "/no/such/file"],
    ] {
        let (code, out, err) = belay(arguments).await;
        assert_ne!(code, 0);
        for line in err.lines() {
            let line: serde_json::Value =
                serde_json::from_str(line).unwrap_or_else(|_| panic!("{arguments:?}: {err}"));
            assert!(line["error"]["end"].is_string(), "{line}");
        }
        assert!(err.lines().count() == 1, "{arguments:?}: {err}");
        assert!(
            out.is_empty() || serde_json::from_str::<serde_json::Value>(&out).is_ok(),
            "{out}"
        );
    }
    let count = ["call", "--json", "count", "to=3", "delay_ms=1"];
    let (code, _, err) = on_demo(&count).await;
    assert_eq!(
        (code, err.as_str()),
        (0, ""),
        "no progress between the lines"
    );
}

#[tokio::test]
async fn arguments_that_never_come_can_be_interrupted() {
    let mut client = belay_command()
        .args(["call", "echo", "-", "--", BELAY, "serve"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Waiting for a child closes its stdin. This one stays open.
    let _stdin = client.stdin.take();
    tokio::time::sleep(Duration::from_millis(300)).await;
    signal(client.id().unwrap(), Signal::INT);
    let status = tokio::time::timeout(Duration::from_secs(10), client.wait()).await;
    assert_eq!(status.expect("it ends").unwrap().code(), Some(130));
    let waits = [
        "call",
        "echo",
        "-",
        "--max-time",
        "0.5",
        "--",
        BELAY,
        "serve",
    ];
    let mut client = belay_command()
        .args(waits)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let _stdin = client.stdin.take();
    let status = tokio::time::timeout(Duration::from_secs(10), client.wait()).await;
    assert_eq!(status.expect("it ends").unwrap().code(), Some(6));
}

#[tokio::test]
async fn max_time_covers_everything() {
    let started = std::time::Instant::now();
    let (code, _, err) = belay(&["list", "--max-time", "0.3", "--", "sleep", "1000"]).await;
    assert_eq!(code, 6, "{err}");
    assert!(err.contains("no answer to the handshake"), "{err}");
    assert!(started.elapsed() < Duration::from_secs(3));
    let (code, _, err) = belay(&["list", "--max-time", "soon", "--", "true"]).await;
    assert_eq!(code, 1);
    assert!(err.contains("a number of seconds"), "{err}");
}

#[tokio::test]
async fn a_server_that_needs_input_and_nobody_to_ask() {
    let script = r#"
        read probe
        echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}'
        read list
        echo '{"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[{"name":"a","inputSchema":{"type":"object"}}]}}'
        read call
        echo '{"jsonrpc":"2.0","id":3,"result":{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage"}}}}'
        cat > /dev/null
    "#;
    let (code, _, err) = belay(&["call", "a", "--", "sh", "-c", script]).await;
    assert_eq!(code, 9, "{err}");
    assert!(
        err.contains("nobody here answers `sampling/createMessage`"),
        "{err}"
    );
}

const ERAS: [&str; 2] = ["legacy", "modern"];

#[tokio::test]
async fn resources_are_listed_and_read() {
    for era in ERAS {
        let (code, out, _) = on_demo(&["read", "--era", era]).await;
        assert_eq!(code, 0);
        assert!(
            out.contains("demo://hello        A text to read.\n"),
            "{out}"
        );
        assert!(out.contains("demo://echo/{text}  Returns"), "{out}");
        let (code, out, err) = on_demo(&["read", "--era", era, "demo://hello"]).await;
        assert_eq!(
            (code, out.as_str(), err.as_str()),
            (0, "Hello from Belay.", "")
        );
        let (code, out, _) = on_demo(&["read", "--era", era, "demo://hello", "--json"]).await;
        let value: serde_json::Value = serde_json::from_str(&out).unwrap();
        assert_eq!(
            (code, &value["contents"][0]["uri"]),
            (0, &"demo://hello".into())
        );
        let (code, _, err) = on_demo(&["read", "--era", era, "demo://nothing"]).await;
        assert_eq!(code, 2);
        assert!(err.contains("resource not found"), "{err}");
    }
    let mute = r#"read asked; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"mute","version":"1"}}}'; read it; read asked; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"?"}}'; cat > /dev/null"#;
    let words = ["read", "--era", "legacy", "--", "sh", "-c", mute];
    let (code, _, err) = belay(&words).await;
    assert_eq!(
        (code, err.trim()),
        (2, "belay: this server has no resources")
    );
    let (code, _, err) = on_demo(&["read", "a:", "b:"]).await;
    assert_eq!(
        (code, err.trim()),
        (1, "belay: only one URI can be read at a time")
    );
}

#[tokio::test]
async fn prompts_are_listed_and_filled_in() {
    for era in ERAS {
        let (code, out, _) = on_demo(&["prompt", "--era", era]).await;
        assert_eq!(
            (code, out.as_str()),
            (0, "greet(name)  Asks for a greeting.\n")
        );
        let (code, out, _) = on_demo(&["prompt", "--era", era, "greet", "name=Ada"]).await;
        assert_eq!((code, out.as_str()), (0, "user: Greet Ada warmly.\n"));
    }
    for (words, problem) in [
        (
            &["prompt", "greet"][..],
            "the argument \"name\" is missing: greet(name)",
        ),
        (
            &["prompt", "greet", "nam=x"],
            "there is no argument \"nam\": greet(name)",
        ),
        (
            &["prompt", "greet", "Ada"],
            "\"Ada\" is not an argument; write `key=value`",
        ),
        (&["prompt", "gret"], "did you mean \"greet\"?"),
    ] {
        let (code, _, err) = on_demo(words).await;
        assert_eq!(code, 1);
        assert!(err.contains(problem), "{err}");
    }
}

#[tokio::test]
async fn a_closed_pipe_is_no_error() {
    for script in [
        "$BELAY demo | head -1",
        "$BELAY list -- $BELAY serve | true",
        "$BELAY call count to=50 delay_ms=1 -- $BELAY serve 2>&1 >/dev/null | head -1",
    ] {
        let output = Command::new("bash")
            .args(["-c", &format!("set -o pipefail; {script}")])
            .env("BELAY", BELAY)
            .env(STATE.0, STATE.1)
            .output()
            .await
            .unwrap();
        let noise = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*noise), (Some(0), ""), "{script}");
    }
}

#[tokio::test]
async fn the_demo_keeps_its_promises() {
    let (code, out, _) = belay(&["demo"]).await;
    assert_eq!(code, 0, "{out}");
    assert!(out.contains("All checks passed."), "{out}");
}
