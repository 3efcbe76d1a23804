//! Requests from a legacy server to its client: **tree**, in both directions.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::Client;
use belay::client::Mode;
use belay::types::ElicitResult;
use belay_testkit::{Peer, until};
use serde_json::json;

use crate::support::{BELAY, RawServer, text};

/// Counts what is running.
struct Inside(Arc<AtomicUsize>);

impl Inside {
    fn enter(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(count.clone())
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_legacy_server_asks_and_is_answered() {
    let mut command = std::process::Command::new(BELAY);
    command.arg("serve");
    let client = Client::builder("test", "1")
        .mode(Mode::Legacy)
        .on_elicit(|form| async move {
            let answer = json!({ "answer": form.message });
            Ok(ElicitResult::accept(answer.as_object().unwrap().clone()))
        })
        .spawn(command)
        .await
        .unwrap();
    let result = client
        .call_tool("ask", json!({ "question": "why?" }))
        .await
        .unwrap();
    assert!(text(&result).contains("why?"), "{result:?}");
}

#[tokio::test]
async fn deadline_covers_all_but_the_time_a_person_takes_to_answer() {
    let mut command = std::process::Command::new(BELAY);
    command.arg("serve");
    let client = Client::builder("test", "1")
        .mode(Mode::Legacy)
        .on_elicit(|_| async {
            tokio::time::sleep(Duration::from_millis(800)).await;
            Ok(ElicitResult::decline())
        })
        .spawn(command)
        .await
        .unwrap();
    // The idle clock stands still while we owe the server an answer.
    let call = client.call_tool("ask", json!({ "question": "why?" }));
    let answer = call.idle_timeout(Duration::from_millis(400)).await.unwrap();
    assert!(text(&answer).contains("decline"));
}

#[tokio::test]
async fn tree_a_server_that_cancels_its_form_stops_the_clients_handler_which_stays_silent() {
    let forms = Arc::new(AtomicUsize::new(0));
    let counted = forms.clone();
    let (mut peer, (reader, writer)) = Peer::pipe();
    let connecting = tokio::spawn(
        Client::builder("test", "1")
            .mode(Mode::Legacy)
            .on_request("elicitation/create", move |_, _| {
                let inside = Inside::enter(&counted);
                async move {
                    let _inside = inside;
                    pending().await
                }
            })
            .connect(reader, writer),
    );
    peer.open_legacy().await;
    let client = connecting.await.unwrap().unwrap();
    // The id is the same as that of a call of the client's own.
    let call = client.call_tool("any", json!({})).start();
    let asked = peer.expect("tools/call").await;
    peer.ask(asked["id"].clone(), "elicitation/create", json!({}))
        .await;
    until("the form is open", || forms.load(Ordering::SeqCst) == 1).await;
    peer.tell(
        "notifications/cancelled",
        json!({ "requestId": asked["id"] }),
    )
    .await;
    until("the form is closed", || forms.load(Ordering::SeqCst) == 0).await;
    peer.answer(&asked, json!({ "content": [] })).await;
    assert!(call.await.is_ok(), "the client's own call was not touched");
    peer.expect_silence(Duration::from_millis(50)).await;
}

#[tokio::test]
async fn tree_a_call_that_waits_for_a_form_is_cancelled_and_so_is_the_form() {
    let mut server = RawServer::start(Mode::Legacy).await;
    server.call(1, "ask", json!({ "question": "why?" })).await;
    let form = server.peer.expect("elicitation/create").await;
    server.cancel(1).await;
    let cancelled = server.peer.expect("notifications/cancelled").await;
    assert_eq!(cancelled["params"]["requestId"], form["id"]);
    // An answer that comes all the same is late.
    server
        .peer
        .answer(&form, json!({ "action": "cancel" }))
        .await;
    server
        .call(2, "echo", json!({ "text": "still here" }))
        .await;
    server.peer.expect_answer(2).await;
}

#[tokio::test]
async fn two_handlers_that_wait_for_the_client_when_the_pipe_closes_crash_nothing() {
    for _ in 0..5 {
        let mut server = RawServer::start(Mode::Legacy).await;
        server.call(1, "ask", json!({ "question": "a" })).await;
        server.call(2, "ask", json!({ "question": "b" })).await;
        server.peer.expect("elicitation/create").await;
        server.peer.expect("elicitation/create").await;
        server.peer.hang_up().await;
        let (status, after, noise) = server.ended().await;
        assert_eq!(status.code(), Some(0));
        assert_eq!(noise, "");
        assert!(after < Duration::from_secs(4), "{after:?}");
    }
}
