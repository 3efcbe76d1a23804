//! Listening: one stream in both eras.

use std::time::Duration;

use belay::client::{Change, Subscription, SubscriptionEnd};
use belay::types::Era;
use belay::types::modern::SubscriptionFilter;
use serde_json::json;

use super::wires::Serving;
use super::{Connected, next_of};

async fn next(changes: &mut Subscription) -> Change {
    let next = tokio::time::timeout(Duration::from_secs(10), changes.next()).await;
    next.expect("a change within ten seconds")
        .expect("it goes on")
}

pub(super) async fn lists_that_change(it: Connected) {
    let filter = SubscriptionFilter::new().tools().prompts().resources();
    let mut changes = it.client.listen(filter).await.unwrap();
    assert_eq!(changes.agreed().tools_list_changed, Some(true));
    let before = it.client.list_all_tools().await.unwrap().len();
    it.say("grow", json!({ "text": "tools" })).await.unwrap();
    assert_eq!(next(&mut changes).await, Change::Tools);
    // What was kept is not used any more.
    let after = it.client.list_all_tools().await.unwrap().len();
    assert_eq!(after, before + 1);
    for (text, change) in [
        ("prompts", Change::Prompts),
        ("resources", Change::Resources),
    ] {
        it.say("grow", json!({ "text": text })).await.unwrap();
        assert_eq!(next(&mut changes).await, change);
    }
    let prompts = it.client.list_all_prompts().await.unwrap();
    assert!(prompts.iter().any(|prompt| prompt.name == "grown"));
    let resources = it.client.list_all_resources().await.unwrap();
    assert!(resources.iter().any(|resource| resource.name == "grown"));
}

pub(super) async fn resources_that_change(it: Connected) {
    let filter = SubscriptionFilter::new().resource("memo://1");
    let mut changes = it.client.listen(filter).await.unwrap();
    // One that begins with the same letters is another.
    let other = SubscriptionFilter::new()
        .resource("square://1")
        .resource("square://12");
    let mut others = it.client.listen(other).await.unwrap();
    let near = SubscriptionFilter::new().resource("square://1");
    let mut near = it.client.listen(near).await.unwrap();
    it.say("touch", json!({ "text": "square://12" }))
        .await
        .unwrap();
    it.say("touch", json!({ "text": "square://1" }))
        .await
        .unwrap();
    let updated = |uri: &str| Change::Updated { uri: uri.into() };
    assert_eq!(next(&mut others).await, updated("square://12"));
    assert_eq!(next(&mut others).await, updated("square://1"));
    assert_eq!(next(&mut near).await, updated("square://1"));
    for _ in 0..2 {
        it.say("touch", json!({ "text": "memo://last" }))
            .await
            .unwrap();
        it.say("touch", json!({ "text": "memo://1" }))
            .await
            .unwrap();
        let uri = "memo://1".to_owned();
        assert_eq!(next(&mut changes).await, Change::Updated { uri });
    }
    drop(changes);
    if it.wire.era() == Era::Legacy {
        let unknown = SubscriptionFilter::new().resource("memo://2");
        let error = it.client.listen(unknown).await.unwrap_err();
        assert_eq!(error.refusal().unwrap().code, -32002);
    }
}

pub(super) async fn what_nobody_asked_for(it: Connected) {
    let filter = SubscriptionFilter::new().prompts();
    let mut changes = it.client.listen(filter).await.unwrap();
    let mut both = it
        .client
        .listen(SubscriptionFilter::new().tools().resource("memo://1"))
        .await
        .unwrap();
    it.say("grow", json!({ "text": "tools" })).await.unwrap();
    it.say("touch", json!({ "text": "memo://1" }))
        .await
        .unwrap();
    assert_eq!(next(&mut both).await, Change::Tools);
    let uri = "memo://1".to_owned();
    assert_eq!(next(&mut both).await, Change::Updated { uri });
    let silence = tokio::time::timeout(Duration::from_millis(50), changes.next()).await;
    assert!(silence.is_err(), "{silence:?}");
}

/// A server that shuts down says so on the modern wire; elsewhere the link goes.
pub(super) async fn an_end_in_good_order(it: Connected) {
    let filter = SubscriptionFilter::new().tools();
    let (other, serving) = it.wire.connect().await;
    let changes = other.client.listen(filter).await.unwrap();
    match serving {
        Serving::Http(listening) => {
            listening.shutdown();
            listening.await;
            // A legacy client waits for its server to come back, until it is told not to.
            if it.wire.era() == Era::Legacy {
                other.client.close().await;
            }
        }
        Serving::Process => {
            let pid = rustix::process::Pid::from_raw(other.client.pid().unwrap() as i32);
            let _ = rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::TERM);
        }
    }
    assert!(changes.end().is_none());
    let mut changes = changes.into_stream();
    let ended = tokio::time::timeout(Duration::from_secs(60), async {
        loop {
            if let Err(end) = next_of(&mut changes).await.unwrap() {
                return end;
            }
        }
    });
    let end = ended.await.unwrap();
    assert!(next_of(&mut changes).await.is_none());
    match (it.wire.era(), end) {
        (Era::Modern, SubscriptionEnd::Finished) => {}
        (Era::Legacy, SubscriptionEnd::Failed(error)) => assert!(error.is_lost(), "{error:?}"),
        (era, end) => panic!("{era:?}: {end:?}"),
    }
}
