//! Cancellation inside of each feature: whoever is gone leaves nothing running, on either side.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use belay::outcome::{Clock, End};
use belay::types::modern::SubscriptionFilter;
use belay::types::{Era, ListTools};
use serde_json::json;

use super::Connected;

/// A call that waits for something that never comes.
async fn drop_while_asked(it: &Connected, tool: &str) {
    let arguments = json!({ "text": "please wait" });
    let mut call = it.client.call_tool(tool, arguments).start();
    tokio::select! {
        ended = &mut call => panic!("nobody answers: {ended:?}"),
        () = it.guests.open(1) => {}
    }
    drop(call);
    it.guests.open(0).await;
    it.until_idle().await;
    let calls = it.client.ledger().calls;
    assert_eq!(calls.in_flight(), 0);
}

pub(super) async fn during_a_form(it: Connected) {
    drop_while_asked(&it, "meet").await;
}

pub(super) async fn during_sampling(it: Connected) {
    drop_while_asked(&it, "ask").await;
}

pub(super) async fn during_a_read(it: Connected) {
    let read = it.client.read_resource("memo://slow").start();
    let started = async { while it.say("running", json!({})).await.unwrap() == "0" {} };
    tokio::time::timeout(Duration::from_secs(10), started)
        .await
        .unwrap();
    drop(read);
    it.until_idle().await;
}

pub(super) async fn during_a_prompt(it: Connected) {
    let prompt = it.client.get_prompt("slow", ()).start();
    let canceller = prompt.canceller();
    let started = async { while it.say("running", json!({})).await.unwrap() == "0" {} };
    tokio::time::timeout(Duration::from_secs(10), started)
        .await
        .unwrap();
    canceller.cancel_because("enough");
    assert!(prompt.await.unwrap_err().is_cancelled());
    it.until_idle().await;
}

/// On the modern wire nothing runs on the server between two rounds; on the legacy one the handler
/// waits. Either way it is over when the caller is gone, and what the caller is told is the same.
pub(super) async fn between_two_rounds(it: Connected) {
    let arguments = json!({ "text": "please wait" });
    let mut call = it.client.call_tool("meet", arguments).start();
    let canceller = call.canceller();
    tokio::select! {
        ended = &mut call => panic!("nobody answers: {ended:?}"),
        () = it.guests.open(1) => {}
    }
    if it.wire.era() == Era::Modern {
        it.until_idle().await;
    }
    canceller.cancel();
    let error = call.await.unwrap_err();
    assert!(error.is_cancelled(), "{error:?}");
    assert!(!error.safe_to_retry(), "the first round was sent");
    it.guests.open(0).await;
    it.until_idle().await;
}

pub(super) async fn while_listing_pages(it: Connected) {
    let cancelled = || it.client.ledger().calls.ended_as(End::Cancelled);
    let before = cancelled();
    // On a busy machine whoever is woken by a request may answer it before we go on: then there is
    // nothing left to cancel, and it is tried again.
    for round in 0.. {
        if round >= 20 && cancelled() > before {
            break;
        }
        assert!(round < 2000, "nobody always answers that soon");
        let mut pages = it.client.pages::<ListTools>().fresh();
        pages.next().await.unwrap();
        // Polled once, it is sent; then it is dropped, unless the answer was there already.
        let second = poll_fn(|task| Poll::Ready(pin!(pages.next()).poll(task))).await;
        if second.is_pending() {
            // It can be asked for again.
            assert_eq!(pages.next().await.unwrap().unwrap().len(), 4);
        }
    }
    it.until_idle().await;
    assert_eq!(it.client.ledger().calls.in_flight(), 0);
}

pub(super) async fn while_listening(it: Connected) {
    for _ in 0..10 {
        let filter = SubscriptionFilter::new().tools().resource("memo://1");
        let mut changes = it.client.listen(filter).await.unwrap();
        let waiting = tokio::time::timeout(Duration::from_millis(1), changes.next()).await;
        assert!(waiting.is_err(), "{waiting:?}");
        drop(changes);
    }
    it.until_idle().await;
    let calls = || it.client.ledger().calls.in_flight();
    belay_testkit::until("nothing is in flight", || calls() == 0).await;
}

/// A person who takes their time does not stop the clock of the whole conversation.
pub(super) async fn a_deadline_covers_all_rounds(it: Connected) {
    let arguments = json!({ "text": "please wait" });
    let call = it.client.call_tool("meet", arguments);
    let error = call.timeout(Duration::from_millis(300)).await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(error.clock(), Some(Clock::Total));
    it.guests.open(0).await;
    it.until_idle().await;
}
