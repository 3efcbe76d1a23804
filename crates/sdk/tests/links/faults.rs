//! Pipes that misbehave, and peers that break the rules.

use std::time::Duration;

use belay::client::Mode;
use belay::outcome::End;
use belay::{Client, ErrorKind};
use belay_testkit::{Faults, Faulty, Peer, check, until};
use serde_json::json;

use crate::basics::{Active, server};

/// A client and a server with faults on the way to the server, and on the way back.
async fn faulty_pair(
    mode: Mode,
) -> (
    Client,
    belay::server::ServerConnection,
    Active,
    Faults,
    Faults,
) {
    let active = Active::default();
    let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
    let (to_server, to_client) = (Faults::default(), Faults::default());
    let serving = server(&active).serve(Faulty::new(server_in, &to_server), server_out);
    let reader = Faulty::new(client_in, &to_client);
    let builder = Client::builder("test", "1").mode(mode);
    let client = builder.connect(reader, client_out).await.unwrap();
    (client, serving, active, to_server, to_client)
}

#[tokio::test]
async fn a_torn_stream_is_the_same_stream() {
    for mode in [Mode::Legacy, Mode::Auto] {
        let (client, _serving, _, to_server, to_client) = faulty_pair(mode).await;
        to_server.split(Some(1));
        to_client.split(Some(3));
        for number in 0..20 {
            let text = format!("hé {number}");
            let result = client
                .call_tool("echo", json!({ "text": text }))
                .await
                .unwrap();
            assert_eq!(result.content[0].as_text(), Some(&*text));
        }
    }
}

#[tokio::test]
async fn garbage_on_the_way_spoils_nothing() {
    let (client, _serving, _, _, to_client) = faulty_pair(Mode::Auto).await;
    to_client.garbage(b"warning: something\n\xFF\xFF\n{\"jsonrpc\":\"2.0\"}\n");
    assert!(
        client
            .call_tool("echo", json!({ "text": "hi" }))
            .await
            .is_ok()
    );
    assert_eq!(client.ledger().malformed, 3);
}

#[tokio::test]
async fn a_cut_pipe_is_lost_and_its_handlers_stop() {
    for mode in [Mode::Legacy, Mode::Auto] {
        let (client, serving, active, to_server, to_client) = faulty_pair(mode).await;
        let call = client.call_tool("hang", json!({})).start();
        until("it hangs", || active.count() == 1).await;
        to_client.cut();
        to_server.cut();
        let error = call.await.unwrap_err();
        assert!(error.is_lost(), "{error:?}");
        let mut causes = error.causes();
        assert!(
            causes.any(|cause| cause.is::<std::io::Error>()),
            "the cause is kept: {error:?}"
        );
        serving.await;
        assert_eq!(active.count(), 0);
        check(&client.ledger());
    }
}

#[tokio::test]
async fn what_stalls_goes_on_and_nothing_is_lost() {
    for mode in [Mode::Legacy, Mode::Auto] {
        let (client, serving, active, to_server, _) = faulty_pair(mode).await;
        let hangs: Vec<_> = (0..10)
            .map(|_| client.call_tool("hang", json!({})).start())
            .collect();
        until("they hang", || active.count() == 10).await;
        to_server.stall(true);
        let filler = "x".repeat(200_000);
        let echo = client.call_tool("echo", json!({ "text": filler })).start();
        let late = client.call_tool("echo", json!({ "text": "late" }));
        let error = late.timeout(Duration::from_millis(50)).await.unwrap_err();
        assert!(
            error.is_timeout() && error.safe_to_retry(),
            "deadline-covers-all: {error:?}"
        );
        drop(hangs);
        assert_eq!(active.count(), 10, "nothing has passed yet");
        to_server.stall(false);
        assert!(echo.await.is_ok());
        until("all have stopped", || active.count() == 0).await;
        until("nothing is in flight", || {
            serving.ledger().requests.in_flight() == 0
        })
        .await;
        assert_eq!(serving.ledger().requests.ended_as(End::Cancelled), 10);
    }
}

#[tokio::test]
async fn a_delay_is_only_a_delay() {
    let (client, _serving, _, _, to_client) = faulty_pair(Mode::Auto).await;
    to_client.delay(Some(Duration::from_millis(5)));
    assert!(
        client
            .call_tool("echo", json!({ "text": "hi" }))
            .await
            .is_ok()
    );
}

async fn scripted(modern: bool) -> (Client, Peer) {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let connecting = tokio::spawn(Client::connect(reader, writer));
    match modern {
        true => peer.open_modern().await,
        false => peer.open_legacy().await,
    }
    (connecting.await.unwrap().unwrap(), peer)
}

#[tokio::test]
async fn late_is_inert_late_and_unknown_answers_change_nothing() {
    for modern in [true, false] {
        let (client, mut peer) = scripted(modern).await;
        let call = client.call_tool("a", json!({})).start();
        let asked = peer.expect("tools/call").await;
        drop(call);
        peer.expect("notifications/cancelled").await;
        peer.answer(&asked, json!({ "content": [] })).await;
        peer.answer(&json!({ "id": 99 }), json!({})).await;
        peer.answer(&json!({ "id": asked["id"].to_string() }), json!({}))
            .await;
        let call = client.call_tool("b", json!({})).start();
        let asked = peer.expect("tools/call").await;
        peer.answer(
            &asked,
            json!({ "content": [{ "type": "text", "text": "b" }] }),
        )
        .await;
        assert_eq!(call.await.unwrap().content[0].as_text(), Some("b"));
        assert_eq!(client.ledger().late_answers, 3);
    }
}

#[tokio::test]
async fn a_peers_error_is_never_mistaken_for_one_of_ours() {
    let (client, mut peer) = scripted(true).await;
    for code in [-32000, -32001, 408, -32800] {
        let call = client.call_tool("a", json!({})).start();
        let asked = peer.expect("tools/call").await;
        let error = json!({ "code": code, "message": "Request timed out" });
        peer.say(json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }))
            .await;
        let error = call.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(!error.is_timeout() && !error.is_lost() && !error.is_cancelled());
        assert_eq!(error.refusal().unwrap().code, code);
    }
}

#[tokio::test]
async fn an_answer_that_breaks_the_protocol_is_violated() {
    let (client, mut peer) = scripted(true).await;
    for result in [
        json!([1]),
        json!({ "resultType": "riddle" }),
        json!({ "content": 7 }),
    ] {
        let call = client.call_tool("a", json!({})).start();
        let asked = peer.expect("tools/call").await;
        peer.answer(&asked, result).await;
        let error = call.await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Violated, "{error:?}");
    }
}

#[tokio::test]
async fn every_call_carries_a_progress_token_and_what_was_put_beside_it() {
    let (client, mut peer) = scripted(true).await;
    let call = client
        .call_tool("a", json!({ "x": 1 }))
        .meta("traceparent", "00-1-2-01")
        .start();
    let asked = peer.expect("tools/call").await;
    let meta = &asked["params"]["_meta"];
    assert_eq!(meta["progressToken"], asked["id"]);
    assert_eq!(meta["traceparent"], "00-1-2-01");
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "belay");
    assert_eq!(asked["params"]["arguments"], json!({ "x": 1 }));
    assert_eq!(json!(call.id()), asked["id"]);
}
