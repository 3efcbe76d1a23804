//! Listening for news of a legacy server: what it is told, and when.

use belay::client::Change;
use belay::client::Mode;
use belay::jsonrpc::RawJson;
use belay::layers::{CallRequest, ClientLayer, LayerFuture, NextCall};
use belay::types::modern::SubscriptionFilter;
use belay::{Client, Error};
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

/// 2025-11-25, basic/lifecycle: only what was negotiated is used.
#[tokio::test]
async fn a_server_that_cannot_be_subscribed_to_is_not_asked_to() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let connecting = tokio::spawn(
        Client::builder("test", "1")
            .mode(Mode::Legacy)
            .connect(reader, writer),
    );
    let asked = peer.expect("initialize").await;
    let introduction = json!({
        "protocolVersion": "2025-11-25", "capabilities": { "tools": { "listChanged": true }, "resources": {} },
        "serverInfo": { "name": "scripted", "version": "1" }
    });
    peer.answer(&asked, introduction).await;
    peer.expect("notifications/initialized").await;
    let client = connecting.await.unwrap().unwrap();
    let filter = SubscriptionFilter::new().tools().resource("memo://1");
    let mut changes = client.listen(filter).await.unwrap();
    let agreed = changes.agreed();
    assert_eq!(
        (agreed.tools_list_changed, agreed.uris().len()),
        (Some(true), 0)
    );
    peer.tell("notifications/tools/list_changed", json!({}))
        .await;
    assert_eq!(changes.next().await, Some(Change::Tools));
    // It declared no roots, so it tells of none.
    client.roots_changed();
    let ping = tokio::spawn(client.ping().start());
    let asked = peer.expect("ping").await;
    peer.answer(&asked, json!({})).await;
    ping.await.unwrap().unwrap();
}

/// Says who asks.
struct Stamp;

impl ClientLayer for Stamp {
    fn call<'a>(
        &'a self,
        mut request: CallRequest,
        next: NextCall<'a>,
    ) -> LayerFuture<'a, Result<RawJson, Error>> {
        let _ = request.meta.set("example.com/user", "ada");
        next.run(request)
    }
}

/// Layers are around every call, those of a subscription among them.
#[tokio::test]
async fn subscriptions_go_by_way_of_the_layers() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let builder = Client::builder("test", "1").layer(Stamp);
    let connecting = tokio::spawn(builder.connect(reader, writer));
    peer.open_legacy().await;
    let client = connecting.await.unwrap().unwrap();
    let listener = client.clone();
    let filter = SubscriptionFilter::new().resource("memo://1");
    let listening = tokio::spawn(async move { listener.listen(filter).await });
    let asked = peer.expect("resources/subscribe").await;
    assert_eq!(asked["params"]["_meta"]["example.com/user"], "ada");
    peer.answer(&asked, json!({})).await;
    drop(listening.await.unwrap().unwrap());
    let told = peer.expect("resources/unsubscribe").await;
    assert_eq!(told["params"]["_meta"]["example.com/user"], "ada");
}
