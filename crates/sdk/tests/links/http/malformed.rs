//! Answers that are none, and answers that are too long: each ends its call at once, as *violated*,
//! and says what it was.

use std::time::Duration;

use belay::client::Mode;
use belay::jsonrpc::DecodeFault;
use belay::outcome::{Outcome, Violation};
use belay::{Client, Error};
use belay_testkit::Peer;
use serde_json::json;

use super::played::{EVENTS, MODES, Reply, lost, response};

fn fault(error: &Error) -> (&DecodeFault, &str) {
    match error.outcome() {
        Some(Outcome::Violated(Violation::MalformedAnswer { fault, excerpt })) => {
            (fault, excerpt.as_deref().unwrap_or_default())
        }
        _ => panic!("{error:?}"),
    }
}

#[tokio::test]
async fn typed_end_a_body_or_event_that_is_no_json_is_violated_and_shown() {
    type Case = (fn() -> Reply, &'static str);
    let cases: [Case; 3] = [
        (
            || Reply::Bytes(response("200 OK", "application/json", "oops")),
            "HTTP 200 with application/json: oops",
        ),
        (
            || Reply::Bytes(response("200 OK", "application/json", "{\"jsonrpc\":")),
            "HTTP 200 with application/json: {\"jsonrpc\":",
        ),
        (
            || Reply::Bytes(format!("{EVENTS}data: <h1>busy</h1>\n\n")),
            "<h1>busy</h1>",
        ),
    ];
    for (reply, shown) in cases {
        for mode in MODES {
            let (error, after) = lost(mode, reply).await;
            let (fault, excerpt) = fault(&error);
            assert!(matches!(fault, DecodeFault::Syntax { .. }), "{error:?}");
            assert_eq!(excerpt, shown);
            assert!(error.to_string().contains(shown), "{error}");
            assert!(after < Duration::from_secs(5), "{after:?}");
        }
    }
}

/// Longer than a client reads, 16 MiB.
fn giant() -> String {
    format!(
        r#""result":{{"content":[],"text":"{}"}}"#,
        "x".repeat(17 << 20)
    )
}

#[tokio::test]
async fn typed_end_an_answer_over_the_limit_is_violated_at_once_on_http() {
    let cases: [fn() -> Reply; 3] = [
        || {
            let body = format!(r#"{{"jsonrpc":"2.0","id":2,{}}}"#, giant());
            Reply::Bytes(response("200 OK", "application/json", &body))
        },
        || {
            let event = format!(r#"{{"jsonrpc":"2.0","id":2,{}}}"#, giant());
            Reply::Bytes(format!("{EVENTS}data: {event}\n\n"))
        },
        // One that does not end.
        || Reply::Bytes(format!("{EVENTS}data: {{{}", giant())),
    ];
    for (at, reply) in cases.into_iter().enumerate() {
        for mode in MODES {
            let (error, after) = lost(mode, reply).await;
            let (fault, _) = fault(&error);
            let expected = DecodeFault::TooLong { limit: 16 << 20 };
            assert_eq!(*fault, expected, "{at}, {mode:?}: {error:?}");
            assert!(after < Duration::from_secs(20), "{at}: {after:?}");
        }
    }
}

#[tokio::test]
async fn typed_end_an_answer_over_the_limit_is_violated_at_once_on_a_pipe() {
    for id_first in [true, false] {
        let (mut peer, (reader, writer)) = Peer::pipe();
        let builder = Client::builder("test", "1").mode(Mode::Modern);
        let client = tokio::spawn(builder.connect(reader, writer));
        peer.open_modern().await;
        let client = client.await.unwrap().unwrap();
        let call = client.call_tool("giant", json!({})).start();
        let other = client.call_tool("other", json!({})).start();
        let asked = peer.expect("tools/call").await;
        let second = peer.expect("tools/call").await;
        // As servers on the TypeScript SDK write it, the id is last.
        let text = match id_first {
            true => format!(r#"{{"jsonrpc":"2.0","id":{},{}"#, asked["id"], giant()),
            false => format!(r#"{{{},"jsonrpc":"2.0","id":{}}}"#, giant(), asked["id"]),
        };
        let saying = tokio::spawn(async move {
            peer.say_raw(text).await;
            // With the id first it is known before its end has come.
            if !id_first {
                peer.say_raw("\n").await;
            }
            peer
        });
        let error = call.await.unwrap_err();
        let (fault, _) = fault(&error);
        assert_eq!(*fault, DecodeFault::TooLong { limit: 16 << 20 });
        let mut peer = saying.await.unwrap();
        if id_first {
            peer.say_raw("}\n").await;
        }
        peer.answer(&second, json!({ "content": [], "resultType": "complete" }))
            .await;
        assert!(other.await.is_ok(), "smallest-scope");
    }
}
