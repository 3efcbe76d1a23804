//! Listening for news of a legacy server: what it is told, and when.

use belay::types::modern::SubscriptionFilter;
use belay::{Change, Client};
use belay_testkit::Peer;
use serde_json::json;

/// Whoever gives up says so, wherever they do: here on a thread that knows no runtime. What somebody
/// else still wants to know of stays.
#[tokio::test]
async fn a_resource_that_nobody_wants_to_know_of_is_unsubscribed() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let connecting = tokio::spawn(Client::connect(reader, writer));
    peer.open_legacy().await;
    let client = connecting.await.unwrap().unwrap();
    let listen = |uris: &'static [&'static str]| {
        let client = client.clone();
        let filter = SubscriptionFilter::new();
        let filter = uris
            .iter()
            .fold(filter, |filter, uri| filter.resource(*uri));
        tokio::spawn(async move { client.listen(filter).await })
    };
    let first = listen(&["memo://1", "memo://2"]);
    for _ in 0..2 {
        let asked = peer.expect("resources/subscribe").await;
        peer.answer(&asked, json!({})).await;
    }
    let first = first.await.unwrap().unwrap();
    let second = listen(&["memo://1"]);
    let asked = peer.expect("resources/subscribe").await;
    peer.answer(&asked, json!({})).await;
    let mut second = second.await.unwrap().unwrap();

    std::thread::spawn(move || drop(first)).join().unwrap();
    let told = peer.expect("resources/unsubscribe").await;
    assert_eq!(told["params"]["uri"], "memo://2");
    peer.answer(&told, json!({})).await;
    let uri = "memo://1".to_owned();
    peer.tell("notifications/resources/updated", json!({ "uri": uri }))
        .await;
    assert_eq!(second.next().await, Some(Change::Updated { uri }));
    drop(second);
    let told = peer.expect("resources/unsubscribe").await;
    assert_eq!(told["params"]["uri"], "memo://1");
}
