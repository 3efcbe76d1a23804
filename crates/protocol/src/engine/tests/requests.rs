//! Incoming requests: admission, handler, answer.

use super::*;
use crate::jsonrpc::ErrorObject;

#[test]
fn a_request_gets_one_answer_after_its_progress() {
    for era in ERAS {
        let mut harness = Harness::server(era, Wire::Pipe);
        harness.hear(&tool_call_of(era, "\"a\""));
        let key = harness.started();
        for step in 1..=200 {
            let step = f64::from(step);
            harness
                .engine
                .progress(harness.now, key, step, Some(200.0), None)
                .unwrap();
        }
        harness.respond(key);
        let frames = harness.written();
        assert_eq!(frames.len(), 201);
        for (at, frame) in frames[..200].iter().enumerate() {
            let expected = format!(r#""progressToken":"a","progress":{},"total":200"#, at + 1);
            assert!(frame.contains(&expected), "order: {frame}");
        }
        assert_eq!(
            frames[200],
            r#"{"jsonrpc":"2.0","id":"a","result":{"content":[]}}"#
        );
        harness.engine.check().unwrap();
    }
}

#[test]
fn progress_that_does_not_grow_is_dropped_and_counted() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    for value in [1.0, 1.0, 0.5, f64::NAN, f64::INFINITY, 2.0] {
        harness
            .engine
            .progress(harness.now, key, value, None, None)
            .unwrap();
    }
    assert_eq!(harness.written().len(), 2);
    assert_eq!(harness.engine.ledger().stale_progress, 4);
}

#[test]
fn progress_for_a_request_without_a_token_is_not_written() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#);
    let key = harness.started();
    harness
        .engine
        .progress(harness.now, key, 1.0, None, None)
        .unwrap();
    assert!(harness.written().is_empty());
}

#[test]
fn a_duplicate_id_is_refused_and_the_first_is_untouched() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.hear(&tool_call("1"));
    assert!(harness.events().is_empty());
    assert!(harness.written()[0].contains("-32600"));
    harness.hear(&cancel_of("1"));
    assert!(matches!(harness.events()[0], Event::Stop { request, .. } if request == key));
}

/// Many requests are found by an index, few by a search. The results are the same.
#[test]
fn ids_are_found_among_many_requests_as_among_few() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let keys: Vec<RequestKey> = (0..100).map(|id| harness.start(&id.to_string())).collect();
    for id in [0, 31, 32, 33, 99] {
        harness.hear(&tool_call(&id.to_string()));
        assert!(harness.events().is_empty(), "{id} is in use");
    }
    harness.hear(&cancel_of("50"));
    assert!(matches!(harness.events()[0], Event::Stop { request, .. } if request == keys[50]));
    harness.hear(&cancel_of("50"));
    assert_eq!(harness.engine.ledger().stray_cancels, 1, "it is over");
    let again = harness.start("50");
    harness.hear(&cancel_of("50"));
    assert!(matches!(harness.events()[0], Event::Stop { request, .. } if request == again));
    for id in (0..100).filter(|id| *id != 50) {
        harness.hear(&cancel_of(&id.to_string()));
    }
    assert_eq!(harness.engine.ledger().requests.in_flight(), 0);
    harness.events();
    harness.start("0");
}

#[test]
fn the_string_seven_is_another_id() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.start("7");
    harness.start("\"7\"");
    harness.hear(&cancel_of("\"7\""));
    assert_eq!(harness.engine.ledger().requests.in_flight(), 1);
    assert_eq!(harness.engine.ledger().stray_cancels, 0);
}

#[test]
fn an_id_can_be_used_again_once_its_request_is_over() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.respond(key);
    harness.written();
    harness.start("1");
}

#[test]
fn strays_are_quiet() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.respond(key);
    harness.written();
    let before = harness.engine.fingerprint();
    for stray in [
        cancel_of("1"),
        cancel_of("2"),
        cancel_of("\"1\""),
        cancel_of("null"),
        cancel_of("1.5"),
        cancel_of("{}"),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#.into(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{}}"#.into(),
    ] {
        harness.hear(&stray);
    }
    assert_eq!(harness.engine.fingerprint(), before);
    assert_eq!(harness.engine.ledger().stray_cancels, 8);
}

#[test]
fn a_panicking_handler_ends_its_request_and_nothing_else() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let first = harness.start("1");
    let second = harness.start("2");
    harness.engine.handler_gone(harness.now, first);
    harness.respond(second);
    let frames = harness.written();
    assert_eq!(
        frames[0],
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"internal error"}}"#
    );
    assert!(frames[1].contains("\"result\""));
}

#[test]
fn a_plain_handler_is_dropped_at_once_and_one_with_its_token_after_its_grace() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let plain = harness.start("1");
    let careful = harness.start("2");
    let own = harness.start("3");
    let hasty = harness.start("4");
    harness.engine.grant_grace(careful, None);
    harness
        .engine
        .grant_grace(own, Some(Duration::from_secs(5)));
    harness.engine.grant_grace(hasty, Some(Duration::ZERO));
    // Taking the token afterwards does not change a grace that was set.
    harness.engine.grant_grace(own, None);
    harness.engine.grant_grace(hasty, None);
    for id in ["1", "2", "3", "4"] {
        harness.hear(&cancel_of(id));
    }
    assert_eq!(aborted(&mut harness), [plain, hasty]);
    harness.pass(Duration::from_secs(1));
    assert_eq!(aborted(&mut harness), [careful]);
    harness.pass(Duration::from_secs(4));
    assert_eq!(aborted(&mut harness), [own]);
}

fn aborted(harness: &mut Harness) -> Vec<RequestKey> {
    harness
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::Abort { request } => Some(request),
            _ => None,
        })
        .collect()
}

#[test]
fn a_blocking_handler_counts_until_it_returns() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.hear(&cancel_of("1"));
    assert_eq!(harness.engine.ledger().requests.in_flight(), 0);
    assert_eq!(harness.engine.handlers(), 1);
    harness.respond(key);
    assert_eq!(harness.engine.handlers(), 0);
    assert!(harness.written().is_empty());
}

#[test]
fn what_a_handler_says_after_its_answer_goes_nowhere() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.respond(key);
    harness
        .engine
        .progress(harness.now, key, 1.0, None, None)
        .unwrap();
    harness
        .engine
        .notify(harness.now, Some(key), "notifications/message", None)
        .unwrap();
    harness.respond(key);
    assert_eq!(harness.written().len(), 1);
    assert_eq!(harness.engine.ledger().silenced, 3);
}

#[test]
fn a_call_on_behalf_of_a_request_that_is_over_never_begins() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.hear(&cancel_of("1"));
    let ask = Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    };
    let outcome = harness.engine.request(harness.now, ask).unwrap_err();
    assert!(matches!(
        outcome,
        Outcome::Cancelled {
            sent: Sent::Never,
            ..
        }
    ));
    assert!(harness.written().is_empty());
}

#[test]
fn a_modern_server_cannot_send_requests() {
    let mut harness = Harness::server(Era::Modern, Wire::Pipe);
    harness.hear(&modern_tool_call("1"));
    let key = harness.started();
    let ask = Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    };
    let outcome = harness.engine.request(harness.now, ask).unwrap_err();
    assert!(matches!(outcome, Outcome::Rejected(Rejection::NotAllowed)));
}

#[test]
fn both_eras_are_answered_on_one_pipe() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.hear(&tool_call("1"));
    harness.hear(&modern_tool_call("2"));
    let eras: Vec<Era> = harness
        .events()
        .iter()
        .map(|event| match event {
            Event::Request(incoming) => incoming.era(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(eras, ERAS);
}

#[test]
fn ping_is_answered_at_once() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert!(harness.events().is_empty());
    assert_eq!(
        harness.written(),
        [r#"{"jsonrpc":"2.0","id":1,"result":{}}"#]
    );
}

#[test]
fn a_bad_message_spoils_that_message() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.hear("{");
    harness.hear(r#"{"jsonrpc":"2.0","id":8,"method":"tools/call","params":[]}"#);
    let frames = harness.written();
    assert!(frames[0].contains("-32700") && !frames[0].contains("\"id\""));
    assert!(frames[1].contains("-32600") && frames[1].contains("\"id\":8"));
    harness.respond(key);
    assert_eq!(harness.written().len(), 1);
}

#[test]
fn a_handlers_error_is_written_with_its_data() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    let error = ErrorObject::new(-32602, "no such tool").with_data(done());
    harness.engine.respond(harness.now, key, Err(error));
    assert_eq!(
        harness.written(),
        [
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such tool","data":{"content":[]}}}"#
        ]
    );
    assert_eq!(harness.engine.ledger().requests.ended_as(End::Refused), 1);
}

#[test]
fn a_malformed_notification_is_not_answered() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    for text in [
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":[7]}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}"#,
        r#"{"jsonrpc":"2.0","method":7}"#,
        r#"{"jsonrpc":"2.0","id":9,"result":{"a":}}"#,
        r#"{"jsonrpc":"2.0","result":{}}"#,
    ] {
        harness.hear(text);
    }
    assert!(harness.written().is_empty());
    assert_eq!(harness.engine.ledger().malformed, 5);
}

#[test]
fn a_deadline_cannot_be_set_for_what_is_answered() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.respond(key);
    harness
        .engine
        .set_deadline(harness.now, key, Duration::from_secs(1), done());
    harness.pass(Duration::from_secs(2));
    assert_eq!(harness.written().len(), 1);
}

/// Parsers disagree on which of two members with the same name counts.
#[test]
fn a_parameter_that_stands_twice_is_refused() {
    let mut harness = Harness::new(server_config(Wire::Pipe));
    harness.be_initialized();
    let twice = tool_call("1").replace("\"params\":{", "\"params\":{\"n\\u0061me\":\"other\",");
    harness.hear(&twice);
    let refusal = &harness.written()[0];
    assert!(
        refusal.contains("-32602") && refusal.contains("duplicate field `name`"),
        "{refusal}"
    );
    assert_eq!(harness.engine.ledger().requests.in_flight(), 0);
}
