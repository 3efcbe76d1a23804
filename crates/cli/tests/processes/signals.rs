//! SIGTERM and SIGHUP take the way of Ctrl-C: **drop-announces**, **no-orphan-processes**.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Child;

use crate::http::{HttpServer, Way};
use crate::support::{
    BELAY, Scratch, belay_command, exists, processes_with, signal, until_gone, until_nothing_has,
};

const SIGNALS: [Signal; 2] = [Signal::TERM, Signal::HUP];

/// The tool with these arguments.
fn belay(arguments: &[&str]) -> Child {
    belay_command()
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

async fn exit_code(child: &mut Child) -> Option<i32> {
    let ended = tokio::time::timeout(Duration::from_secs(30), child.wait()).await;
    ended.expect("it ends").unwrap().code()
}

/// The ids of the requests of a method, and those that were cancelled.
fn asked_and_cancelled(heard: &str, method: &str) -> (Vec<Value>, Vec<Value>) {
    // The last line may not be whole yet.
    let messages: Vec<Value> = heard
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let asked = messages.iter().filter(|it| it["method"] == method);
    let cancelled = messages
        .iter()
        .filter(|it| it["method"] == "notifications/cancelled");
    (
        asked.map(|it| it["id"].clone()).collect(),
        cancelled
            .map(|it| it["params"]["requestId"].clone())
            .collect(),
    )
}

#[tokio::test]
async fn drop_announces_a_call_that_is_ended_by_sigterm_or_sighup() {
    for number in SIGNALS {
        for era in ["legacy", "modern"] {
            let (heard, pid) = (Scratch::new("heard"), Scratch::new("pid"));
            let script = format!(
                "echo $$ > {}; tee {} | {BELAY} serve",
                pid.0.display(),
                heard.0.display()
            );
            let call = ["call", "--era", era, "hang", "--", "sh", "-c", &script];
            let mut client = belay(&call);
            belay_testkit::until("it hangs", || heard.text().contains("\"hang\"")).await;
            signal(client.id().unwrap(), number);
            assert_eq!(exit_code(&mut client).await, Some(130), "{number:?} {era}");
            assert!(!exists(pid.number().await), "the child is gone before us");
            let (asked, cancelled) = asked_and_cancelled(&heard.text(), "tools/call");
            assert_eq!((asked.len(), &cancelled), (1, &asked), "{number:?} {era}");
        }
    }
}

/// A server that says hello and answers nothing else.
fn mute(heard: &Scratch, pid: &Scratch) -> String {
    let hello = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{},"resources":{"subscribe":true}},"serverInfo":{"name":"mute","version":"1"}}}"#;
    format!(
        "echo $$ > {}; tee {} | (read hello; echo '{hello}'; cat > /dev/null)",
        pid.0.display(),
        heard.0.display()
    )
}

#[tokio::test]
async fn drop_announces_whatever_a_command_waits_for() {
    for (words, method) in [
        (&["list"][..], "tools/list"),
        (&["call", "echo"], "tools/list"),
        (&["read"], "resources/list"),
        (&["read", "a:b"], "resources/read"),
        (&["prompt"], "prompts/list"),
        (&["listen", "a:b"], "resources/subscribe"),
    ] {
        for number in SIGNALS {
            let (heard, pid) = (Scratch::new("heard"), Scratch::new("pid"));
            let script = mute(&heard, &pid);
            let server = ["--era", "legacy", "--", "sh", "-c", &script];
            let mut client = belay(&[words, &server].concat());
            belay_testkit::until(method, || heard.text().contains(method)).await;
            signal(client.id().unwrap(), number);
            assert_eq!(exit_code(&mut client).await, Some(130), "{words:?}");
            assert!(!exists(pid.number().await), "{words:?}");
            let (asked, cancelled) = asked_and_cancelled(&heard.text(), method);
            let [asked] = asked.as_slice() else {
                panic!("{words:?}: {asked:?}");
            };
            // What listens unsubscribes as well, and gives that up if nobody answers.
            let told = cancelled.iter().filter(|id| *id == asked).count();
            assert_eq!(told, 1, "{words:?}: {}", heard.text());
        }
    }
}

/// Passes on what comes, and keeps what the client said.
async fn recorder(to: String) -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let said = Arc::new(Mutex::new(Vec::new()));
    let record = said.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let (to, record) = (to.clone(), record.clone());
            tokio::spawn(async move {
                let server = TcpStream::connect(to).await.unwrap();
                let (mut from_client, mut to_client) = client.into_split();
                let (mut from_server, mut to_server) = server.into_split();
                tokio::spawn(async move {
                    let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
                });
                let mut buffer = vec![0; 64 << 10];
                while let Ok(count @ 1..) = from_client.read(&mut buffer).await {
                    record.lock().unwrap().extend(&buffer[..count]);
                    if to_server.write_all(&buffer[..count]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (address, said)
}

#[tokio::test]
async fn drop_announces_on_http_as_well() {
    for number in SIGNALS {
        for (way, era) in [
            (Way::Legacy, "legacy"),
            (Way::EventStream, "legacy"),
            (Way::Modern, "modern"),
        ] {
            let server = HttpServer::start().await;
            let (address, said) = recorder(server.address.clone()).await;
            let url = server.url(way).replace(&server.address, &address);
            let mut client = belay(&["call", &url, "hang", "--era", era]);
            let watching = server.client(way).await;
            crate::support::until_active(&watching, 1).await;
            signal(client.id().unwrap(), number);
            assert_eq!(exit_code(&mut client).await, Some(130), "{way:?}");
            // A broken legacy stream alone would leave it running for a minute.
            crate::support::until_active(&watching, 0).await;
            let said = String::from_utf8_lossy(&said.lock().unwrap()).into_owned();
            let told = said.matches("notifications/cancelled").count();
            // On modern HTTP the stream is closed, and nothing is posted.
            let expected = usize::from(way != Way::Modern);
            assert_eq!(told, expected, "{number:?} {way:?}: {said}");
        }
    }
}

/// A server that outlives the end of its input and all that can be caught.
fn stubborn(pid: &Scratch, first: &str) -> String {
    format!(
        "echo $$ > {}; trap '' TERM HUP INT; {first} while :; do sleep 1; done",
        pid.0.display()
    )
}

#[tokio::test]
async fn no_orphan_processes_the_first_signal_gives_time_and_the_second_kills() {
    for number in SIGNALS {
        let (heard, pid) = (Scratch::new("heard"), Scratch::new("pid"));
        let serve = format!("tee {} | {BELAY} serve;", heard.0.display());
        let script = stubborn(&pid, &serve);
        let call = ["call", "hang", "--", "sh", "-c", &script];
        let hangs = || heard.text().contains("\"hang\"");
        let told = || heard.text().contains("notifications/cancelled");

        let mut client = belay(&call);
        belay_testkit::until("it hangs", hangs).await;
        signal(client.id().unwrap(), number);
        assert_eq!(exit_code(&mut client).await, Some(130));
        assert!(told() && !exists(pid.number().await), "{number:?}");

        std::fs::write(&heard.0, "").unwrap();
        std::fs::write(&pid.0, "").unwrap();
        let mut client = belay(&call);
        belay_testkit::until("it hangs", hangs).await;
        signal(client.id().unwrap(), number);
        belay_testkit::until("the first is told", told).await;
        let first = Instant::now();
        // Another kind counts as well. A hang-up is often told twice, so that one would not.
        signal(client.id().unwrap(), Signal::TERM);
        assert_eq!(exit_code(&mut client).await, Some(130));
        assert!(first.elapsed() < Duration::from_secs(1), "{number:?}");
        until_gone(pid.number().await, Duration::from_secs(10)).await;
    }
}

#[tokio::test]
async fn no_orphan_processes_a_server_that_has_not_said_hello_goes_with_us() {
    for number in [Signal::INT, Signal::TERM, Signal::HUP] {
        for twice in [false, true] {
            let pid = Scratch::new("pid");
            let script = stubborn(&pid, "");
            let mut client = belay(&["list", "--", "sh", "-c", &script]);
            let server = pid.number().await;
            signal(client.id().unwrap(), number);
            let first = Instant::now();
            if twice {
                // When the first has been noticed cannot be seen from here.
                while client.try_wait().unwrap().is_none() {
                    signal(client.id().unwrap(), Signal::TERM);
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                assert!(first.elapsed() < Duration::from_secs(1), "{number:?}");
            }
            assert_eq!(exit_code(&mut client).await, Some(130), "{number:?}");
            assert!(!exists(server), "{number:?}");
        }
    }
}

#[tokio::test]
async fn no_orphan_processes_a_demo_that_is_ended_leaves_no_server() {
    for number in SIGNALS {
        let mark = format!("BELAY_TEST_MARK={number:?}-{}", std::process::id());
        let (name, value) = mark.split_once('=').unwrap();
        let mut demo = belay_command()
            .arg("demo")
            .env(name, value)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // A server that listens is not told by the end of its input.
        let mut shown = Vec::new();
        let mut stdout = demo.stdout.take().unwrap();
        let mut buffer = [0; 1024];
        while !String::from_utf8_lossy(&shown).contains(" HTTP, legacy\n") {
            let count = stdout.read(&mut buffer).await.unwrap();
            assert_ne!(count, 0, "it ended early");
            shown.extend(&buffer[..count]);
        }
        let servers = || processes_with(&mark).len() > 1;
        belay_testkit::until("a server runs", servers).await;
        signal(demo.id().unwrap(), number);
        assert_eq!(exit_code(&mut demo).await, Some(130));
        until_nothing_has(&mark, Duration::from_secs(5)).await;
    }
}

#[tokio::test]
async fn a_command_that_outlives_its_terminal_stays() {
    // As `nohup` does it.
    let heard = Scratch::new("heard");
    let script = format!(
        "trap '' HUP; exec $BELAY call hang -- sh -c 'tee {} | $BELAY serve'",
        heard.0.display()
    );
    let mut client = tokio::process::Command::new("sh")
        .args(["-c", &script])
        .env("BELAY", BELAY)
        .env(crate::support::STATE.0, crate::support::STATE.1)
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    belay_testkit::until("it hangs", || heard.text().contains("\"hang\"")).await;
    let pid = client.id().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:\t"));
    let ignored = u64::from_str_radix(ignored.unwrap(), 16).unwrap();
    assert_eq!(ignored & 1, 1, "SIGHUP is the first, and is ignored still");
    signal(pid, Signal::TERM);
    assert_eq!(exit_code(&mut client).await, Some(130));
    assert!(heard.text().contains("notifications/cancelled"));
}
