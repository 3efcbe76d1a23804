//! Elicitation, sampling and roots: a request on the old wire, a round trip on the new one.

use belay::types::Era;
use belay::{Client, ErrorKind};
use serde_json::json;

use super::{Connected, text};

pub(super) async fn forms_are_filled_in(it: Connected) {
    let met = it
        .say("meet", json!({ "text": "Who are you?" }))
        .await
        .unwrap();
    assert_eq!(met, "Grace is Large");
    assert_eq!(it.guests.asked(), 1);
}

pub(super) async fn people_say_no_or_go_away(it: Connected) {
    for (question, said) in [
        ("no", "the user said no"),
        ("gone", "the user did not answer"),
    ] {
        let met = it
            .client
            .call_tool("meet", json!({ "text": question }))
            .await
            .unwrap();
        assert_eq!((met.is_error, text(&met).as_str()), (Some(true), said));
    }
}

/// In one line, and in steps.
fn asks_badly() -> [(&'static str, serde_json::Value); 2] {
    [
        ("meet", json!({ "text": "wrong" })),
        ("guess", json!({ "wrong": true })),
    ]
}

/// A client that can looks first: what does not fit the form is not sent.
#[cfg(feature = "validate")]
pub(super) async fn answers_that_do_not_fit(it: Connected) {
    for (tool, arguments) in asks_badly() {
        let met = it.client.call_tool(tool, arguments).await;
        let said = match it.wire.era() {
            Era::Legacy => text(&met.unwrap()),
            Era::Modern => met.unwrap_err().to_string(),
        };
        let problem = "the answer does not fit the form: ";
        assert!(said.contains(problem), "{tool}: {said}");
    }
}

#[cfg(not(feature = "validate"))]
pub(super) async fn answers_that_do_not_fit(it: Connected) {
    for (tool, arguments) in asks_badly() {
        let met = it.client.call_tool(tool, arguments).await;
        match it.wire.era() {
            Era::Legacy => {
                let met = met.unwrap();
                let said = text(&met);
                assert_eq!(met.is_error, Some(true));
                let problem = "the client's answer does not fit: `";
                assert!(said.starts_with(problem), "{tool}: {said}");
            }
            // There it is what was wrong with the request.
            Era::Modern => {
                let error = met.unwrap_err();
                assert_eq!(error.refusal().unwrap().code, -32602, "{tool}");
            }
        }
    }
}

/// The form has a field of each kind, and the person agrees to all proposals.
pub(super) async fn all_kinds_of_fields(it: Connected) {
    let said = it.say("survey", json!({})).await.unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let expected = json!({
        "text": "Ada", "number": 0.5, "whole": 7, "yes": true, "one": "blue", "one_titled": "l",
        "one_named": "s", "many": ["red"], "many_titled": ["s"],
    });
    assert_eq!(said, expected);
}

pub(super) async fn pages_are_visited(it: Connected) {
    let visit = |url: &str| it.say("visit", json!({ "text": url }));
    assert_eq!(visit("https://example.com").await.unwrap(), "they agreed");
    let visits = std::mem::take(&mut *it.guests.visits.lock().unwrap());
    match it.client.era() {
        // When it was shown, and when they were done.
        Era::Legacy => {
            assert_eq!(visits.len(), 2);
            assert!(visits[0].is_some() && visits[0] == visits[1], "{visits:?}");
        }
        Era::Modern => assert_eq!(visits, [None]),
    }
    assert_eq!(
        visit("http://example.com").await.unwrap(),
        "the user said no"
    );
}

pub(super) async fn models_are_asked(it: Connected) {
    let said = it
        .say("ask", json!({ "text": "Is it late" }))
        .await
        .unwrap();
    assert_eq!(said, "Is it late? Certainly.");
}

/// The model uses a tool of the handler's, and says something when it knows.
pub(super) async fn models_use_tools(it: Connected) {
    let said = it.say("plan", json!({ "text": "Is it late" })).await;
    assert_eq!(said.unwrap(), "clock said: It is noon.");
}

pub(super) async fn folders_are_told(it: Connected) {
    let folders = it.say("folders", json!({})).await.unwrap();
    assert_eq!(folders, "file:///a file:///b");
    it.client.roots_changed();
    assert!(it.say("folders", json!({})).await.is_ok());
    let moves = async || it.say("moves", json!({})).await.unwrap();
    match it.client.era() {
        Era::Legacy => {
            // On HTTP a call may overtake what was said before it.
            let mut tries = 0..1000;
            while moves().await != "1" {
                tries.next().expect("the server hears of it");
            }
        }
        Era::Modern => assert_eq!(moves().await, "0"),
    }
}

pub(super) async fn two_rounds(it: Connected) {
    let said = it.say("twice", json!({})).await.unwrap();
    assert_eq!(said, "Ada and Alan, rolled 1 times");
    assert_eq!(it.guests.asked(), 2, "each question is asked once");
}

pub(super) async fn rounds_that_can_be_seen(it: Connected) {
    assert_eq!(it.say("guess", json!({})).await.unwrap(), "Ada and Alan");
    assert_eq!(it.guests.asked(), 2);
    let online = it.say("guess", json!({ "online": true })).await.unwrap();
    assert_eq!(online, "they guess online");
}

pub(super) async fn two_at_once(it: Connected) {
    assert_eq!(it.say("both", json!({})).await.unwrap(), "Ada and Alan");
    assert_eq!(it.guests.asked(), 2);
    if it.wire.era() == Era::Modern {
        // The probe, the question, and the answer.
        let calls = it.client.ledger().calls;
        assert_eq!(calls.started(), 3, "one round for both: {calls:?}");
    }
}

pub(super) async fn resources_and_prompts_ask(it: Connected) {
    let secret = it.client.read_resource("memo://secret").await.unwrap();
    assert_eq!(secret.contents[0].text.as_deref(), Some("for Grace"));
    let none = ();
    let interview = it.client.get_prompt("interview", none).await.unwrap();
    let text = interview.messages[0].content.as_text();
    assert_eq!(text, Some("Ask Grace three questions."));
}

/// The request ends there, with the code that its era has for it.
pub(super) async fn a_client_that_cannot_be_asked(it: Connected) {
    let (client, _serving) = it.wire.connect_with(Client::builder("mute", "1")).await;
    for (tool, arguments, needed) in [
        ("meet", json!({ "text": "hi" }), "elicitation"),
        ("visit", json!({ "text": "https://a" }), "elicitation"),
        ("ask", json!({ "text": "hi" }), "sampling"),
        ("folders", json!({}), "roots"),
    ] {
        let error = client.call_tool(tool, arguments).await.unwrap_err();
        let refusal = error.refusal().unwrap();
        let code = match it.wire.era() {
            Era::Legacy => -32600,
            Era::Modern => -32021,
        };
        assert_eq!(refusal.code, code, "{refusal:?}");
        let data: serde_json::Value = refusal.data.as_ref().unwrap().decode().unwrap();
        assert!(data["requiredCapabilities"][needed].is_object(), "{data}");
    }
    assert!(client.list_tools().await.is_ok());
}

pub(super) async fn a_request_is_refused(it: Connected) {
    let error = it.client.call_tool("refuse", json!({})).await.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(
        (refusal.code, refusal.message.as_str()),
        (-31999, "not today")
    );
    it.until_idle().await;
}

/// Nobody else notices.
pub(super) async fn a_guest_that_fails(it: Connected) {
    for (question, cause) in [
        ("broken", "the form fell apart"),
        ("panic", "internal error"),
    ] {
        let met = it
            .client
            .call_tool("meet", json!({ "text": question }))
            .await;
        match it.wire.era() {
            Era::Legacy => {
                let said = text(&met.unwrap());
                assert!(said.contains(cause), "{said}");
            }
            Era::Modern => {
                let error = met.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::InputRequired);
                assert!(format!("{error:?}").contains(cause), "{error:?}");
                assert!(error.input_required().unwrap().request_state.is_some());
            }
        }
    }
    assert_eq!(it.say("echo", json!({ "text": "hi" })).await.unwrap(), "hi");
    it.until_idle().await;
}
