//! **bounded**: each limit has its typed refusal.

use super::*;

fn ask(harness: &mut Harness, params: &str) -> Result<CallId, Outcome> {
    let params = RawJson::parse(params.to_owned()).unwrap();
    harness
        .engine
        .request(harness.now, Ask::new("tools/call", params))
}

#[test]
fn one_call_too_many_is_rejected() {
    let mut config = client_config(Wire::Pipe);
    config.limits.calls = 2;
    let mut harness = Harness::new(config);
    harness.connect(Era::Legacy);
    assert!(ask(&mut harness, "{}").is_ok());
    assert!(ask(&mut harness, "{}").is_ok());
    let outcome = ask(&mut harness, "{}").unwrap_err();
    assert!(matches!(
        outcome,
        Outcome::Rejected(Rejection::TooManyCalls { limit: 2 })
    ));
    let calls = &harness.engine.ledger().calls;
    assert_eq!(
        (calls.started(), calls.ended(), calls.in_flight()),
        (3, 1, 2)
    );
}

#[test]
fn calls_are_rejected_while_too_much_waits_to_be_written_and_accepted_again_later() {
    for wire in [Wire::Pipe, Wire::Http] {
        let mut config = client_config(wire);
        config.limits.queued_bytes = 1000;
        let mut harness = Harness::new(config);
        harness.connect(Era::Legacy);
        let params = format!(r#"{{"text":"{}"}}"#, "x".repeat(400));
        assert!(ask(&mut harness, &params).is_ok());
        let on = harness.opened();
        assert!(ask(&mut harness, &params).is_ok());
        let outcome = ask(&mut harness, &params).unwrap_err();
        assert!(matches!(
            outcome,
            Outcome::Rejected(Rejection::QueueFull { limit: 1000 })
        ));
        harness.written_on(on);
        assert!(ask(&mut harness, &params).is_ok());
    }
}

#[test]
fn a_message_that_is_too_large_is_rejected() {
    let mut config = client_config(Wire::Pipe);
    config.limits.message_bytes = 200;
    let mut harness = Harness::new(config);
    harness.connect(Era::Legacy);
    let params = format!(r#"{{"text":"{}"}}"#, "x".repeat(400));
    let outcome = ask(&mut harness, &params).unwrap_err();
    assert!(matches!(
        outcome,
        Outcome::Rejected(Rejection::MessageTooLarge { limit: 200 })
    ));
}

#[test]
fn a_withdrawn_call_makes_room() {
    let mut config = client_config(Wire::Pipe);
    config.limits.queued_bytes = 600;
    let mut harness = Harness::new(config);
    harness.connect(Era::Legacy);
    let params = format!(r#"{{"text":"{}"}}"#, "x".repeat(400));
    let call = ask(&mut harness, &params).unwrap();
    assert!(ask(&mut harness, &params).is_err());
    harness.cancel(call);
    assert!(ask(&mut harness, &params).is_ok());
}

#[test]
fn one_request_too_many_is_refused_at_once_and_cancels_are_still_read() {
    let mut config = server_config(Wire::Pipe);
    config.limits.handlers = 2;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    let first = harness.start("1");
    harness.start("2");
    harness.hear(&tool_call("3"));
    let frame = harness.written().remove(0);
    assert!(
        frame.contains("-31001") && frame.contains("\"id\":3"),
        "{frame}"
    );
    harness.hear(&cancel_of("1"));
    assert!(matches!(harness.events()[0], Event::Stop { request, .. } if request == first));
}

#[test]
fn handlers_that_are_being_stopped_still_count() {
    let mut config = server_config(Wire::Pipe);
    config.limits.handlers = 1;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    let key = harness.start("1");
    harness.hear(&cancel_of("1"));
    harness.events();
    harness.hear(&tool_call("2"));
    assert!(harness.written()[0].contains("-31001"));
    harness.engine.handler_gone(harness.now, key);
    harness.start("3");
}

#[test]
fn a_blocking_handler_that_was_dropped_keeps_nobody_from_starting() {
    let mut config = server_config(Wire::Pipe);
    config.limits.handlers = 1;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    let key = harness.start("1");
    harness.engine.handler_blocks(key);
    harness.hear(&tool_call("2"));
    assert!(harness.written()[0].contains("-31001"), "it still runs");
    harness.hear(&cancel_of("1"));
    harness.events();
    harness.start("3");
    assert_eq!(harness.engine.handlers(), 2, "it is still there");
    harness.engine.handler_gone(harness.now, key);
    assert_eq!(harness.engine.handlers(), 1);
}

#[test]
fn listens_count_separately() {
    let mut config = server_config(Wire::Pipe);
    config.limits.handlers = 1;
    config.limits.listens = 1;
    let mut harness = Harness::new(config);
    let listen = |id| modern_tool_call(id).replace("tools/call", "subscriptions/listen");
    harness.hear(&listen("1"));
    harness.started();
    harness.hear(&modern_tool_call("2"));
    harness.started();
    harness.hear(&listen("3"));
    assert!(harness.written()[0].contains("listens are open"));
}

#[test]
fn a_server_stops_reading_only_while_its_answers_pile_up() {
    let mut config = server_config(Wire::Pipe);
    config.limits.queued_bytes = 300;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    for id in 1..=8 {
        let key = harness.start(&id.to_string());
        harness.respond(key);
    }
    assert!(!harness.engine.wants_input());
    harness.written();
    assert!(harness.engine.wants_input());
}

#[test]
fn a_client_on_a_pipe_never_stops_reading_and_closes_the_link_to_a_server_that_floods_it() {
    let mut config = client_config(Wire::Pipe);
    config.limits.queued_bytes = 1000;
    config.limits.queued_answers = 1;
    config.limits.handlers = 2;
    let mut harness = Harness::new(config);
    harness.connect(Era::Legacy);
    let call = harness.call("tools/call");
    harness.written();
    let mut asked = 0;
    while !harness.engine.is_closed() {
        assert!(harness.engine.wants_input());
        asked += 1;
        harness.hear(&tool_call(&asked.to_string()));
        assert!(asked < 100, "it never ends");
    }
    assert!(asked > 5, "what fits is answered: {asked}");
    let ends = harness.ends();
    assert!(
        matches!(&ends[..], [(ended, Outcome::Lost { cause, .. })]
            if *ended == call && cause.kind == LossKind::Flooded),
        "{ends:?}"
    );
}

#[test]
fn a_client_on_http_takes_no_more_requests_while_its_answers_wait() {
    let mut config = client_config(Wire::Http);
    config.limits.queued_answers = 1;
    let mut harness = Harness::new(config);
    harness.connect(Era::Legacy);
    for id in 1..=2 {
        assert!(harness.engine.wants_input());
        harness.hear(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    }
    assert!(!harness.engine.wants_input());
    let first = harness.opened();
    assert_eq!(harness.written_on(first).len(), 1);
    assert!(harness.engine.wants_input());
}

#[test]
fn a_refusal_is_written_however_much_waits() {
    for wire in [Wire::Pipe, Wire::Http, Wire::EventStream] {
        let mut config = server_config(wire);
        config.limits.queued_answers = 2;
        config.limits.handlers = 0;
        let mut harness = Harness::new(config);
        harness.be_initialized();
        let mut frames = 0;
        for id in 0..10 {
            let on = match wire {
                Wire::Pipe | Wire::EventStream => LINK,
                Wire::Http => harness.engine.handle_exchange_opened(),
            };
            harness.hear_on(on, &tool_call(&id.to_string()));
            harness.hear_on(on, "{");
            frames += match wire {
                Wire::Pipe | Wire::EventStream => 0,
                Wire::Http => harness.written_on(on).len(),
            };
        }
        frames += harness.written().len();
        assert_eq!(frames, 20, "answered-or-gone on {wire:?}");
    }
}

#[test]
fn a_server_stops_reading_while_many_small_answers_wait() {
    let mut config = server_config(Wire::Pipe);
    config.limits.queued_answers = 4;
    let mut harness = Harness::new(config);
    for id in 0..5 {
        harness.hear(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    }
    assert!(!harness.engine.wants_input());
    harness.written();
    assert!(harness.engine.wants_input());
}

#[test]
fn a_session_whose_answers_nobody_fetches_refuses_more() {
    let mut config = server_config(Wire::Http);
    config.limits.queued_answers = 4;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    for id in 0..5 {
        harness.post(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#));
    }
    let refused = harness.post(&tool_call("9"));
    assert!(harness.events().is_empty());
    assert!(harness.written_on(refused)[0].contains("-31001"));
}

#[test]
fn an_answer_that_is_too_large_becomes_an_error() {
    let mut config = server_config(Wire::Pipe);
    config.limits.message_bytes = 100;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    let key = harness.start("1");
    let large = format!(r#"{{"text":"{}"}}"#, "x".repeat(200));
    harness
        .engine
        .respond(harness.now, key, Ok(RawJson::parse(large).unwrap()));
    let frame = harness.written().remove(0);
    assert!(
        frame.contains("-32603") && frame.contains("larger than 100 bytes"),
        "{frame}"
    );
}

#[test]
fn parameters_that_are_no_object_are_rejected() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    for params in ["7", "[1]", "null", "\"text\""] {
        let outcome = ask(&mut harness, params).unwrap_err();
        assert!(matches!(
            outcome,
            Outcome::Rejected(Rejection::ParamsNotObject)
        ));
    }
}

#[test]
fn what_a_handler_says_is_refused_while_too_much_waits_but_its_answer_is_not() {
    let mut config = server_config(Wire::Pipe);
    config.limits.queued_bytes = 250;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    let key = harness.start("1");
    let mut refused = None;
    for step in 1..10 {
        let said = harness
            .engine
            .progress(harness.now, key, f64::from(step), None, None);
        refused = refused.or(said.err());
    }
    assert_eq!(refused, Some(Rejection::QueueFull { limit: 250 }));
    harness.respond(key);
    assert!(harness.written().last().unwrap().contains("\"result\""));
}

#[test]
fn progress_that_found_no_room_can_be_told_again() {
    let mut config = server_config(Wire::Pipe);
    config.limits.queued_bytes = 150;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    harness.hear(&tool_call("1"));
    let key = harness.started();
    let tell =
        |harness: &mut Harness, step| harness.engine.progress(harness.now, key, step, None, None);
    assert_eq!(tell(&mut harness, 1.0), Ok(()));
    assert!(tell(&mut harness, 2.0).is_err(), "the queue is full");
    assert_eq!(harness.written().len(), 1);
    assert_eq!(tell(&mut harness, 2.0), Ok(()));
    assert!(harness.written()[0].contains("\"progress\":2"));
    assert_eq!(harness.engine.ledger().stale_progress, 0);
}

#[test]
fn what_is_larger_than_the_queue_is_refused_and_does_not_wait() {
    let mut config = server_config(Wire::Pipe);
    config.limits.queued_bytes = 50;
    let mut harness = Harness::new(config);
    let message = RawJson::encode(&"x".repeat(60)).unwrap();
    let told = harness
        .engine
        .notify(harness.now, None, "notifications/any", Some(&message));
    assert_eq!(told, Err(Rejection::MessageTooLarge { limit: 50 }));
}

#[test]
fn bounded_an_answer_of_the_engine_without_room_is_refused_and_opens_nothing() {
    let mut harness = Harness::new(server_config(Wire::Pipe));
    harness.engine.set_answer_room(50);
    let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}"#;
    let hello = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
    harness.hear(&hello);
    assert!(harness.written()[0].contains("-31001"));
    assert_eq!(harness.engine.version(), None, "it is not open");
    harness.engine.set_answer_room(5000);
    harness.hear(&hello.replace("\"id\":1", "\"id\":2"));
    assert!(harness.written()[0].contains("result"));
}

#[test]
fn bounded_a_request_that_cannot_be_kept_is_refused_and_the_first_of_its_id_untouched() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    let Ok(Message::Request(request)) = jsonrpc::decode(&tool_call("1").into(), 64) else {
        panic!("a request");
    };
    let refuse = |harness: &mut Harness| {
        let engine = &mut harness.engine;
        engine.handle_request_without_room(harness.now, LINK, &request);
    };
    refuse(&mut harness);
    assert!(harness.written()[0].contains("-31001"));
    harness.respond(key);
    assert!(harness.written()[0].contains("result"));
    harness.start("2");
    harness.engine.shutdown(harness.now, Shutdown::Drain);
    refuse(&mut harness);
    let closing = harness.written().join("\n");
    assert!(
        closing.contains(&crate::types::error_code::SHUTTING_DOWN.to_string()),
        "{closing}"
    );
}

#[test]
fn bounded_a_client_leaves_a_server_that_floods_it_with_requests_that_cannot_be_kept() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let long = "x".repeat(100_000);
    let asked = format!(r#"{{"jsonrpc":"2.0","id":"{long}","method":"roots/list"}}"#);
    let Ok(Message::Request(request)) = jsonrpc::decode(&asked.into(), 64) else {
        panic!("a request");
    };
    for _ in 0..200 {
        harness
            .engine
            .handle_request_without_room(harness.now, LINK, &request);
    }
    let cause = harness.engine.closed_because().expect("it is closing");
    assert_eq!(cause.kind, LossKind::Flooded);
}
