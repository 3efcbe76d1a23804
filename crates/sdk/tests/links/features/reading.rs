//! Resources, prompts and completion.

use belay::Client;
use belay::client::Cache;
use belay::types::{Era, PromptReference, ResourceReference, Role};

use super::Connected;

pub(super) async fn resources_are_listed_and_read(it: Connected) {
    let all = it.client.list_all_resources().await.unwrap();
    let uris: Vec<&str> = all.iter().map(|resource| resource.uri.as_str()).collect();
    let expected = [
        "memo://1",
        "photo://1",
        "memo://slow",
        "memo://secret",
        "memo://kept",
        "memo://last",
    ];
    assert_eq!(uris, expected);
    assert_eq!(all[0].title.as_deref(), Some("First memo"));
    assert_eq!(all[0].size, Some(9));

    let memo = it.client.read_resource("memo://1").await.unwrap();
    assert_eq!(memo.contents[0].text.as_deref(), Some("Buy milk."));
    assert_eq!(memo.contents[0].mime_type.as_deref(), Some("text/plain"));
    let photo = it.client.read_resource("photo://1").await.unwrap();
    assert_eq!(photo.contents[0].to_bytes().unwrap(), b"\x89PNG");
    assert_eq!(photo.contents[0].mime_type.as_deref(), Some("image/png"));
}

pub(super) async fn templates_are_matched(it: Connected) {
    let templates = it.client.list_all_resource_templates().await.unwrap();
    let templates: Vec<&str> = templates
        .iter()
        .map(|it| it.uri_template.as_str())
        .collect();
    assert_eq!(templates, ["written://{number}", "square://{number}"]);
    let square = it.client.read_resource("square://12").await.unwrap();
    assert_eq!(square.contents[0].text.as_deref(), Some("144"));
    assert_eq!(square.contents[0].uri, "square://12");
    for nothing in [
        "square://x",
        "square://1/2",
        "square://-1",
        "square://4000000000",
    ] {
        assert!(it.client.read_resource(nothing).await.is_err(), "{nothing}");
    }
}

pub(super) async fn what_is_not_there(it: Connected) {
    let error = it.client.read_resource("memo://2").await.unwrap_err();
    let refusal = error.refusal().unwrap();
    let code = match it.wire.era() {
        Era::Legacy => -32002,
        Era::Modern => -32602,
    };
    assert_eq!(refusal.code, code);
    assert_eq!(
        refusal.data.as_ref().unwrap().as_str(),
        r#"{"uri":"memo://2"}"#
    );
    let none = ();
    let error = it.client.get_prompt("nobody", none).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32602);
}

pub(super) async fn prompts_are_listed_and_filled_in(it: Connected) {
    let all = it.client.list_all_prompts().await.unwrap();
    let greet = &all[1];
    assert_eq!(greet.title.as_deref(), Some("Greet"));
    let arguments = greet.arguments.as_ref().unwrap();
    assert_eq!(arguments[0].description.as_deref(), Some("Who is greeted."));
    assert_eq!(
        (arguments[0].required, arguments[1].required),
        (Some(true), Some(false))
    );

    let filled = it
        .client
        .get_prompt("greet", [("name", "Ada"), ("times", "2")]);
    let filled = filled.await.unwrap();
    assert_eq!(filled.description.as_deref(), Some("Greets somebody."));
    assert_eq!(filled.messages[0].role, Role::User);
    assert_eq!(
        filled.messages[0].content.as_text(),
        Some("Hello! Hello! Ada")
    );

    for (arguments, problem) in [
        (vec![], "missing field `name`"),
        (
            vec![("name", "Ada"), ("times", "often")],
            "`times`: \"often\" is not a whole number",
        ),
    ] {
        let error = it.client.get_prompt("greet", arguments).await.unwrap_err();
        let refusal = error.refusal().unwrap();
        assert_eq!(refusal.code, -32602);
        assert!(refusal.message.contains(problem), "{refusal:?}");
    }
}

pub(super) async fn arguments_are_completed(it: Connected) {
    let greet = || PromptReference::new("greet");
    let completed = it.client.complete(greet(), "name", "A").await.unwrap();
    assert_eq!(completed.completion.values, ["Ada", "Alan"]);
    let nothing = it.client.complete(greet(), "times", "1").await.unwrap();
    assert!(nothing.completion.values.is_empty());
    let square = ResourceReference::new("square://{number}");
    let completed = it.client.complete(square, "number", "1").await.unwrap();
    assert_eq!(completed.completion.values.len(), 10);
    let nobody = PromptReference::new("nobody");
    let error = it.client.complete(nobody, "name", "").await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32602);
}

/// As long as the server says, on the modern wire. The other knows nothing of that.
pub(super) async fn what_is_known_is_not_asked_for(it: Connected) {
    let asked = || it.client.ledger().calls.started();
    let kept = it.wire.era() == Era::Modern;
    let read = async |client: &Client| {
        let read = client.read_resource("memo://kept").await.unwrap();
        read.contents[0].text.clone().unwrap()
    };
    let before = asked();
    let first = read(&it.client).await;
    assert_eq!(read(&it.client).await == first, kept);
    assert_eq!(asked() - before, if kept { 1 } else { 2 });
    let fresh = it
        .client
        .read_resource("memo://kept")
        .fresh()
        .await
        .unwrap();
    assert_ne!(fresh.contents[0].text.as_ref(), Some(&first));

    let before = asked();
    for _ in 0..3 {
        assert_eq!(it.client.list_tools().await.unwrap().tools.len(), 4);
    }
    assert_eq!(asked() - before, if kept { 1 } else { 3 });

    let forgetful = Client::builder("forgetful", "1").no_cache();
    let (forgetful, _serving) = it.wire.connect_with(forgetful).await;
    assert_ne!(read(&forgetful).await, read(&forgetful).await);
    let cache = Cache::new(10, 100_000);
    let shared = Client::builder("shared", "1").cache(&cache);
    let (shared, _serving) = it.wire.connect_with(shared).await;
    assert_eq!(read(&shared).await == read(&shared).await, kept);
    assert_eq!(!cache.is_empty(), kept);
}
