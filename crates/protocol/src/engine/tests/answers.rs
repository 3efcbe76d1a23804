//! The answers of a peer, and the outcomes they lead to.

use super::*;
use crate::jsonrpc::DecodeFault;

fn outcome_of(era: Era, answer: &str) -> Outcome {
    let mut harness = Harness::client(era, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    harness.hear(answer);
    harness.only_end()
}

#[test]
fn a_result_is_an_answer_in_both_eras() {
    for era in ERAS {
        assert!(matches!(
            outcome_of(era, &answer_to("1")),
            Outcome::Answered(_)
        ));
    }
}

#[test]
fn an_error_is_a_refusal_and_keeps_its_data() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no","data":[1]}}"#;
    let Outcome::Refused(error) = outcome_of(Era::Legacy, answer) else {
        panic!("refused")
    };
    assert_eq!((error.code, error.message.as_str()), (-32000, "no"));
    assert_eq!(error.data.unwrap().as_str(), "[1]");
}

#[test]
fn a_peers_error_is_never_mistaken_for_an_end_of_ours() {
    for code in [-32000, -32001, 408, -32800] {
        let answer = format!(
            r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"timed out"}}}}"#
        );
        assert_eq!(outcome_of(Era::Modern, &answer).end(), End::Refused);
    }
}

#[test]
fn input_required_ends_a_modern_call() {
    let answer =
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
    assert!(matches!(
        outcome_of(Era::Modern, answer),
        Outcome::InputRequired(_)
    ));
    assert!(matches!(
        outcome_of(Era::Legacy, answer),
        Outcome::Answered(_)
    ));
}

/// 2026-07-28, basic/patterns/mrtr.
#[test]
fn only_some_requests_can_be_answered_with_questions() {
    let answer =
        r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","requestState":"s"}}"#;
    for (method, expected) in [
        ("tools/call", End::InputRequired),
        ("prompts/get", End::InputRequired),
        ("resources/read", End::InputRequired),
        ("tools/list", End::Violated),
        ("completion/complete", End::Violated),
    ] {
        let mut harness = Harness::client(Era::Modern, Wire::Pipe);
        harness.call(method);
        harness.written();
        harness.hear(answer);
        assert_eq!(harness.only_end().end(), expected, "{method}");
    }
}

#[test]
fn an_unknown_result_type_is_a_violation() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"riddle"}}"#;
    let Outcome::Violated(violation) = outcome_of(Era::Modern, answer) else {
        panic!("violated")
    };
    assert_eq!(violation, Violation::UnknownResultType("riddle".into()));
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":7}}"#;
    assert_eq!(outcome_of(Era::Modern, answer).end(), End::Violated);
}

#[test]
fn a_result_type_of_an_extension_that_was_announced_is_an_answer() {
    let mut config = client_config(Wire::Pipe);
    config.result_types.push("task".into());
    let mut harness = Harness::new(config);
    harness.connect(Era::Modern);
    harness.call("tools/call");
    harness.written();
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task"}}"#);
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
}

#[test]
fn a_result_that_is_no_object_is_a_violation() {
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":[1]}"#;
    for era in ERAS {
        let outcome = outcome_of(era, answer);
        assert!(matches!(
            outcome,
            Outcome::Violated(Violation::ResultNotObject)
        ));
    }
}

#[test]
fn a_malformed_answer_spoils_its_call_and_nothing_else() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let first = harness.call("tools/call");
    harness.call("tools/call");
    harness.written();
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}"#);
    let ends = harness.ends();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0].0, first);
    assert!(matches!(
        ends[0].1,
        Outcome::Violated(Violation::MalformedAnswer {
            fault: DecodeFault::SeveralKinds,
            ..
        })
    ));
}

#[test]
fn what_is_no_json_spoils_the_call_that_has_its_stream_to_itself_and_no_other() {
    for text in ["oops", r#"{"jsonrpc":"2.0","id":1"#, "[]"] {
        let mut harness = Harness::client(Era::Modern, Wire::Http);
        let call = harness.call("tools/call");
        let exchange = harness.opened();
        harness.hear_on(exchange, text);
        assert!(harness.ends().is_empty(), "it was not written yet");
        harness.written_on(exchange);
        harness.hear_on(exchange, r#"{"jsonrpc":"2.0","method":7}"#);
        assert!(harness.ends().is_empty(), "that was to be a notification");
        harness.hear_on(exchange, text);
        let ends = harness.ends();
        let violated = |outcome: &Outcome| {
            matches!(
                outcome,
                Outcome::Violated(Violation::MalformedAnswer { .. })
            )
        };
        assert!(
            matches!(&ends[..], [(ended, outcome)] if *ended == call && violated(outcome)),
            "{text}: {ends:?}"
        );

        let mut harness = Harness::client(Era::Modern, Wire::Pipe);
        harness.call("tools/call");
        harness.written();
        harness.hear(text);
        assert!(harness.ends().is_empty(), "{text}");
    }
}

/// Ids that are cut off, invalid as JSON, or there twice.
#[test]
fn an_error_never_names_a_request_that_it_may_not_mean() {
    for text in [
        r#"{"jsonrpc":"2.0","method":"tools/call","id":1"#,
        r#"{"jsonrpc":"2.0","method":"tools/call","id":0x1}"#,
        r#"{"jsonrpc":"2.0","id":7,"id":1,"method":"tools/call"}"#,
        r#"{"id":1e,"jsonrpc":"2.0","method":"tools/call"}"#,
    ] {
        let mut server = Harness::server(Era::Legacy, Wire::Pipe);
        server.start("1");
        server.hear(text);
        let told = server.written();
        assert_eq!(told.len(), 1, "{text}");
        let named = jsonrpc::decode(&told[0].clone().into(), 64).unwrap();
        assert!(
            matches!(named, crate::jsonrpc::Message::Unaddressed(_)),
            "{told:?}"
        );

        let mut client = Harness::client(Era::Legacy, Wire::Pipe);
        client.call("tools/call");
        client.written();
        client.hear(&text.replace(r#""method":"tools/call""#, r#""result":{}"#));
        assert!(client.ends().is_empty(), "{text}");
    }
}

#[test]
fn an_answer_that_is_malformed_inside_spoils_its_call_too() {
    let deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    for body in [
        format!(r#""result":{{"a":{deep}}}"#),
        r#""result":{"a":tru}"#.to_owned(),
        r#""error":{"code":1,"message":"\x"}"#.to_owned(),
    ] {
        let answer = format!(r#"{{"jsonrpc":"2.0","id":1,{body}}}"#);
        let outcome = outcome_of(Era::Modern, &answer);
        assert!(
            matches!(
                outcome,
                Outcome::Violated(Violation::MalformedAnswer { .. })
            ),
            "{body}"
        );
    }
}

#[test]
fn garbage_spoils_nothing() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    for garbage in [
        "Listening on stdio…",
        "{",
        "[]",
        "\"id\"",
        r#"{"jsonrpc":"1.0","id":1}"#,
    ] {
        harness.hear(garbage);
    }
    assert!(harness.events().is_empty());
    assert!(
        harness.written().is_empty(),
        "a client does not answer garbage"
    );
    assert_eq!(harness.engine.ledger().malformed, 5);
}

/// The server waits for an answer: the request cannot be decoded, but its id can.
#[test]
fn a_malformed_request_of_a_server_is_answered_by_a_legacy_client() {
    let malformed = r#"{"jsonrpc":"2.0","id":"q","method":"roots/list","params":[]}"#;
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.hear(malformed);
    let written = harness.written();
    assert_eq!(written.len(), 1);
    assert!(written[0].contains(r#""id":"q","error":{"code":-32600"#));
    let mut harness = Harness::client(Era::Modern, Wire::Pipe);
    harness.hear(malformed);
    assert!(
        harness.written().is_empty(),
        "a modern client must not answer"
    );
    assert_eq!(harness.engine.ledger().ignored_requests, 1);
}

#[test]
fn bounded_a_server_that_floods_a_client_with_malformed_requests_is_left() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let long = "x".repeat(100_000);
    let malformed =
        format!(r#"{{"jsonrpc":"2.0","id":"{long}","method":"roots/list","params":[]}}"#);
    for _ in 0..200 {
        harness.hear(&malformed);
    }
    let cause = harness.engine.closed_because().expect("it is closing");
    assert_eq!(cause.kind, LossKind::Flooded);
}

#[test]
fn an_answer_to_something_that_was_not_written_yet_is_no_answer() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.hear(&answer_to("1"));
    assert!(harness.ends().is_empty());
    assert_eq!(harness.engine.ledger().late_answers, 1);
}

#[test]
fn seven_is_not_the_string_seven() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    harness.hear(&answer_to("\"1\""));
    assert!(harness.ends().is_empty());
}

#[test]
fn a_cancel_from_the_server_does_not_touch_a_call_of_ours_with_the_same_id() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    let roots = harness.started();
    harness.hear(&cancel_of("1"));
    assert!(matches!(
        harness.events().as_slice(),
        [Event::Stop { request, .. }, Event::Abort { .. }] if *request == roots
    ));
    harness.hear(&answer_to("1"));
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
}

#[test]
fn a_modern_server_may_end_a_listen_with_a_cancel_and_nothing_else() {
    let mut harness = Harness::client(Era::Modern, Wire::Pipe);
    harness.call("subscriptions/listen");
    harness.call("tools/call");
    harness.written();
    harness.hear(&cancel_of("2"));
    assert!(harness.ends().is_empty());
    harness.hear(&cancel_of("1"));
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
    assert!(harness.written().is_empty());
}

#[test]
fn a_modern_listen_ends_with_its_result_too() {
    let mut harness = Harness::client(Era::Modern, Wire::Pipe);
    harness.call("subscriptions/listen");
    harness.written();
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":1}}}"#);
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
}

#[test]
fn a_modern_client_ignores_requests() {
    let mut harness = Harness::client(Era::Modern, Wire::Pipe);
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    assert!(harness.events().is_empty());
    assert!(harness.written().is_empty());
    assert_eq!(harness.engine.ledger().ignored_requests, 1);
}

#[test]
fn ids_are_never_used_again() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let first = harness.call("tools/call");
    harness.cancel(first);
    let second = harness.call("tools/call");
    assert_ne!(first, second);
    assert_eq!(second.request_id().to_string(), "2");
}

#[test]
fn every_call_carries_a_progress_token_and_its_meta() {
    let mut harness = Harness::client(Era::Modern, Wire::Pipe);
    let mut ask = Ask::new(
        "tools/call",
        RawJson::parse(r#"{ "name":"echo" }"#).unwrap(),
    );
    ask.meta.set("traceparent", "00-1-2-01").unwrap();
    harness.ask(ask);
    let frame = harness.written().remove(0);
    let value: serde_json::Value = serde_json::from_str(&frame).unwrap();
    let meta = &value["params"]["_meta"];
    assert_eq!(meta["progressToken"], 1);
    assert_eq!(meta["traceparent"], "00-1-2-01");
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "client");
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        serde_json::json!({})
    );
    assert_eq!(value["params"]["name"], "echo");
}

#[test]
fn a_legacy_call_carries_no_modern_meta() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/list");
    assert_eq!(
        harness.written(),
        [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":1}}}"#
        ]
    );
}
