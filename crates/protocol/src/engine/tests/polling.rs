//! A driver polls the request or the end that it has just caused, apart from the other events.

use super::*;
use crate::jsonrpc::RequestId;

fn server() -> Harness {
    Harness::server(Era::Legacy, Wire::Pipe)
}

#[test]
fn a_request_is_polled_only_if_nothing_has_happened_before_it() {
    let mut harness = server();
    harness.hear(r#"{"jsonrpc":"2.0","method":"notifications/example"}"#);
    harness.hear(&tool_call("1"));
    assert!(
        harness.engine.poll_request().is_none(),
        "it is not the first"
    );
    assert!(matches!(
        harness.engine.poll_event(),
        Some(Event::Notification { .. })
    ));
    assert!(harness.engine.poll_request().is_some());
    assert!(harness.engine.poll_request().is_none(), "it is polled once");
    assert!(harness.engine.poll_event().is_none(), "by one of the two");
}

#[test]
fn cancel_overtakes_a_request_that_was_not_polled() {
    let mut harness = server();
    harness.hear(&tool_call("1"));
    harness.hear(&cancel_of("1"));
    harness.hear(&tool_call("2"));
    let next = harness.engine.poll_request().expect("the second request");
    assert_eq!(next.id, RequestId::Number(2));
    assert!(
        harness.engine.poll_event().is_none(),
        "nothing is to be stopped"
    );
}

#[test]
fn a_cancel_stops_a_request_that_was_polled() {
    let mut harness = server();
    harness.hear(&tool_call("1"));
    let key = harness.engine.poll_request().expect("a request").key;
    harness.hear(&cancel_of("1"));
    assert!(matches!(
        harness.engine.poll_event(),
        Some(Event::Stop { request, .. }) if request == key
    ));
}

/// A transport that takes all frames at once must not do so before the answer is among them.
#[test]
fn what_waits_last_tells_whether_all_was_said() {
    let mut harness = server();
    harness.hear(&tool_call("1"));
    let key = harness.engine.poll_request().expect("a request").key;
    assert_eq!(harness.engine.last_waiting(LINK), None);
    let said = harness.engine.progress(harness.now, key, 1.0, None, None);
    said.expect("there is room");
    assert_eq!(harness.engine.last_waiting(LINK), Some(Waiting::Notice));
    harness
        .engine
        .respond(harness.now, key, Ok(RawJson::empty_object()));
    assert_eq!(harness.engine.first_waiting(LINK), Some(Waiting::Notice));
    assert_eq!(
        harness.engine.last_waiting(LINK),
        Some(Waiting::Answer { error: None })
    );
}

#[test]
fn the_end_of_a_call_is_polled_only_if_nothing_has_happened_before_it() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let call = harness.call("tools/call");
    let id = call.request_id().to_string();
    harness.written();
    harness.hear(r#"{"jsonrpc":"2.0","method":"notifications/example"}"#);
    harness.hear(&answer_to(&id));
    assert!(harness.engine.poll_ended().is_none(), "it is not the first");
    assert!(matches!(
        harness.engine.poll_event(),
        Some(Event::Notification { .. })
    ));
    assert!(matches!(
        harness.engine.poll_ended(),
        Some((_, Outcome::Answered(_)))
    ));
    assert!(harness.engine.poll_ended().is_none(), "it is polled once");
    assert!(harness.engine.poll_event().is_none(), "by one of the two");
}
