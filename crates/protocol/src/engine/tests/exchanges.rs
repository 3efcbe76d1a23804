//! HTTP: each POST is an exchange. Its end has a different meaning in each era.

use super::*;

fn lost(harness: &mut Harness, exchange: ExchangeId, resumable: bool) {
    let cause = LossKind::Io.into();
    harness
        .engine
        .handle_exchange_lost(harness.now, exchange, cause, resumable);
}

/// A client on HTTP with one call on its own exchange. The call is not written yet.
fn posted(era: Era) -> (Harness, CallId, ExchangeId) {
    let mut harness = Harness::client(era, Wire::Http);
    let call = harness.call("tools/call");
    let exchange = harness.opened();
    (harness, call, exchange)
}

fn close(exchange: ExchangeId, how: Closing) -> Transmit {
    Transmit::Close {
        exchange,
        how,
        kept: (),
    }
}

// ── the client ──

#[test]
fn an_answer_on_its_exchange_finishes_both() {
    for era in ERAS {
        let (mut harness, _, exchange) = posted(era);
        harness.written_on(exchange);
        harness.hear_on(exchange, &answer_to("1"));
        assert!(matches!(harness.only_end(), Outcome::Answered(_)));
        assert_eq!(harness.transmits(), [close(exchange, Closing::Finished)]);
    }
}

#[test]
fn an_answer_on_another_exchange_is_not_an_answer() {
    let (mut harness, _, first) = posted(Era::Modern);
    harness.call("tools/call");
    let second = harness.opened();
    harness.written_on(first);
    harness.written_on(second);
    harness.hear_on(second, &answer_to("1"));
    assert!(harness.ends().is_empty());
    assert_eq!(harness.engine.ledger().late_answers, 1);
}

#[test]
fn giving_up_on_modern_http_closes_the_stream_and_posts_nothing() {
    let (mut harness, call, exchange) = posted(Era::Modern);
    harness.written_on(exchange);
    harness.cancel(call);
    assert_eq!(harness.transmits(), [close(exchange, Closing::Abandoned)]);
    assert!(matches!(harness.only_end(), Outcome::Cancelled { .. }));
}

#[test]
fn a_call_given_up_before_its_post_is_never_posted() {
    for era in ERAS {
        let (mut harness, call, exchange) = posted(era);
        harness.cancel(call);
        assert_eq!(harness.transmits(), [close(exchange, Closing::Abandoned)]);
        assert!(matches!(
            harness.only_end(),
            Outcome::Cancelled {
                sent: Sent::Never,
                ..
            }
        ));
    }
}

#[test]
fn a_stream_that_ends_without_the_answer_is_lost() {
    for era in ERAS {
        let (mut harness, _, exchange) = posted(era);
        harness.written_on(exchange);
        let cause = LossKind::NoAnswer.into();
        harness
            .engine
            .handle_exchange_lost(harness.now, exchange, cause, false);
        let outcome = harness.only_end();
        assert!(matches!(
            outcome,
            Outcome::Lost {
                cause: Loss {
                    kind: LossKind::NoAnswer,
                    ..
                },
                sent: Sent::Maybe
            }
        ));
    }
}

#[test]
fn a_broken_stream_that_is_resumed_gives_its_answer() {
    let (mut harness, _, exchange) = posted(Era::Legacy);
    harness.written_on(exchange);
    lost(&mut harness, exchange, true);
    assert!(harness.ends().is_empty());
    harness
        .engine
        .handle_exchange_resumed(harness.now, exchange);
    harness.hear_on(exchange, &answer_to("1"));
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
}

#[test]
fn a_broken_stream_whose_reconnect_is_refused_is_lost() {
    let (mut harness, _, exchange) = posted(Era::Legacy);
    harness.written_on(exchange);
    lost(&mut harness, exchange, true);
    lost(&mut harness, exchange, false);
    assert!(matches!(harness.only_end(), Outcome::Lost { .. }));
}

#[test]
fn a_deadline_covers_a_broken_stream() {
    let (mut harness, _, exchange) = posted(Era::Legacy);
    harness.written_on(exchange);
    lost(&mut harness, exchange, true);
    harness.pass(Duration::from_secs(60));
    assert!(matches!(harness.only_end(), Outcome::TimedOut { .. }));
}

#[test]
fn whatever_arrives_on_a_calls_stream_shows_that_it_was_sent() {
    let (mut harness, _, exchange) = posted(Era::Modern);
    harness.written_on(exchange);
    harness.hear_on(
        exchange,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
    );
    lost(&mut harness, exchange, false);
    let events = harness.events();
    assert!(matches!(
        events.as_slice(),
        [
            Event::Notification { about: Some(_), .. },
            Event::Ended {
                outcome: Outcome::Lost {
                    sent: Sent::Yes,
                    ..
                },
                ..
            },
        ]
    ));
}

#[test]
fn initialize_on_http_is_given_up_in_silence() {
    let mut harness = Harness::new(client_config(Wire::Http));
    harness.engine.connect(harness.now, Mode::Legacy);
    let exchange = harness.opened();
    harness.written_on(exchange);
    harness.pass(Duration::from_secs(60));
    assert!(harness.transmits().is_empty(), "never-initialize");
    harness.pass(Duration::from_secs(5));
    assert_eq!(harness.transmits(), [close(exchange, Closing::Abandoned)]);
}

#[test]
fn a_client_on_http_answers_on_a_lane_of_its_own_in_order() {
    let (mut harness, _, exchange) = posted(Era::Legacy);
    harness.written_on(exchange);
    harness.hear_on(exchange, &tool_call("\"ask\""));
    let key = harness.started();
    harness
        .engine
        .progress(harness.now, key, 1.0, None, None)
        .unwrap();
    harness.respond(key);
    let lane = harness.opened();
    let said = harness.written_on(lane);
    assert!(said[0].contains("notifications/progress") && said[1].contains("\"result\""));
    assert_eq!(harness.transmits(), [close(lane, Closing::Finished)]);
}

#[test]
fn a_request_back_pauses_the_idle_clock_of_its_own_call_only() {
    let (mut harness, first, exchange) = posted(Era::Legacy);
    harness.written_on(exchange);
    let second = harness.call("tools/call");
    let other = harness.opened();
    harness.written_on(other);
    harness.hear_on(exchange, &tool_call("9"));
    harness.started();
    harness.pass(Duration::from_secs(60));
    let ends = harness.ends();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0].0, second);
    assert_ne!(ends[0].0, first);
}

// ── the server ──

#[test]
fn a_disconnect_on_modern_http_cancels() {
    let mut harness = Harness::server(Era::Modern, Wire::Http);
    let exchange = harness.post(&modern_tool_call("1"));
    harness.started();
    lost(&mut harness, exchange, false);
    assert!(matches!(
        harness.events().as_slice(),
        [
            Event::Stop {
                cause: StopCause::Disconnected,
                ..
            },
            Event::Abort { .. }
        ]
    ));
    assert_eq!(harness.engine.ledger().requests.in_flight(), 0);
}

#[test]
fn a_disconnect_on_legacy_http_does_not_cancel() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("1"));
    harness.started();
    lost(&mut harness, exchange, false);
    assert!(harness.events().is_empty());
    assert_eq!(harness.engine.ledger().requests.in_flight(), 1);
}

#[test]
fn resume_then_window_lets_it_run_on() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("1"));
    let key = harness.started();
    lost(&mut harness, exchange, false);
    harness.pass(Duration::from_secs(59));
    harness
        .engine
        .handle_exchange_resumed(harness.now, exchange);
    harness.pass(Duration::from_secs(600));
    assert!(harness.events().is_empty());
    harness.respond(key);
    assert_eq!(harness.written_on(exchange).len(), 1);
}

#[test]
fn window_then_resume_was_cancelled() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("1"));
    harness.started();
    lost(&mut harness, exchange, false);
    harness.pass(Duration::from_secs(60));
    harness
        .engine
        .handle_exchange_resumed(harness.now, exchange);
    assert!(matches!(
        harness.events()[0],
        Event::Stop {
            cause: StopCause::ResumeWindowPassed,
            ..
        }
    ));
}

#[test]
fn a_resume_window_of_never_is_never() {
    let mut config = server_config(Wire::Http);
    config.timeouts.resume_window = None;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    let exchange = harness.post(&tool_call("1"));
    harness.started();
    lost(&mut harness, exchange, false);
    harness.pass(Duration::from_secs(1_000_000));
    assert!(harness.events().is_empty());
}

#[test]
fn an_answer_given_while_the_stream_is_broken_waits_for_it() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("1"));
    let key = harness.started();
    lost(&mut harness, exchange, false);
    harness.respond(key);
    harness
        .engine
        .handle_exchange_resumed(harness.now, exchange);
    assert_eq!(harness.written_on(exchange).len(), 1);
    assert!(
        harness
            .transmits()
            .contains(&close(exchange, Closing::Finished))
    );
}

#[test]
fn an_exchange_is_finished_with_its_answer() {
    for era in ERAS {
        let mut harness = Harness::server(era, Wire::Http);
        let exchange = harness.post(&tool_call_of(era, "1"));
        let key = harness.started();
        harness.respond(key);
        harness.written_on(exchange);
        assert!(
            harness
                .transmits()
                .contains(&close(exchange, Closing::Finished))
        );
        harness.engine.check().unwrap();
    }
}

#[test]
fn a_cancelled_request_on_legacy_http_ends_its_stream_silently() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let waiting = harness.post(&tool_call("1"));
    harness.started();
    let cancel = harness.post(&cancel_of("1"));
    let closed = harness.transmits();
    assert!(closed.contains(&close(waiting, Closing::Silent)));
    assert!(closed.contains(&close(cancel, Closing::Accepted)));
}

#[test]
fn request_then_cancel_on_legacy_http_stops_it() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    harness.post(&tool_call("1"));
    harness.started();
    harness.post(&cancel_of("1"));
    assert!(matches!(harness.events()[0], Event::Stop { .. }));
}

#[test]
fn cancel_then_request_on_legacy_http_never_starts() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    harness.post(&cancel_of("1"));
    let exchange = harness.post(&tool_call("1"));
    assert!(harness.events().is_empty());
    assert!(
        harness
            .transmits()
            .contains(&close(exchange, Closing::Silent))
    );
    assert_eq!(harness.engine.ledger().requests.ended_as(End::Cancelled), 1);
}

#[test]
fn a_cancel_that_came_too_early_is_forgotten_after_ten_seconds() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    harness.post(&cancel_of("1"));
    harness.pass(Duration::from_secs(10));
    harness.post(&tool_call("1"));
    harness.started();
    harness.transmits();
    assert_eq!(harness.engine.early_cancels.len(), 0);
}

#[test]
fn only_so_many_early_cancels_are_remembered() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    for id in 0..100 {
        harness.post(&cancel_of(&id.to_string()));
    }
    assert_eq!(harness.engine.early_cancels.len(), 64);
}

#[test]
fn a_late_cancel_does_not_hit_the_next_request_with_the_same_id() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("1"));
    let key = harness.started();
    harness.respond(key);
    harness.written_on(exchange);
    harness.post(&cancel_of("1"));
    harness.post(&tool_call("1"));
    harness.started();
}

#[test]
fn two_requests_with_one_id_never_meet() {
    for era in ERAS {
        let mut harness = Harness::server(era, Wire::Http);
        let first = harness.post(&tool_call_of(era, "1"));
        let first_key = harness.started();
        let second = harness.post(&tool_call_of(era, "1"));
        let second_key = harness.started();
        harness.engine.respond(
            harness.now,
            second_key,
            Ok(RawJson::parse(r#"{"n":2}"#).unwrap()),
        );
        harness.engine.respond(
            harness.now,
            first_key,
            Ok(RawJson::parse(r#"{"n":1}"#).unwrap()),
        );
        assert!(harness.written_on(first)[0].contains(r#"{"n":1}"#));
        assert!(harness.written_on(second)[0].contains(r#"{"n":2}"#));
    }
}

#[test]
fn a_cancel_that_could_mean_two_requests_means_neither() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    harness.post(&tool_call("1"));
    harness.post(&tool_call("1"));
    harness.events();
    harness.post(&cancel_of("1"));
    assert!(harness.events().is_empty());
    assert_eq!(harness.engine.ledger().stray_cancels, 1);
}

#[test]
fn a_modern_cancel_post_has_no_effect() {
    let mut harness = Harness::server(Era::Modern, Wire::Http);
    harness.post(&modern_tool_call("1"));
    harness.started();
    let cancel = harness.post(&cancel_of("1"));
    assert!(harness.events().is_empty());
    assert!(
        harness
            .transmits()
            .contains(&close(cancel, Closing::Accepted))
    );
}

#[test]
fn a_server_asks_on_the_stream_of_the_request_it_serves() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("1"));
    let key = harness.started();
    harness.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    harness.call("ping");
    assert!(harness.written_on(exchange)[0].contains("roots/list"));
    assert!(
        harness.written()[0].contains("ping"),
        "what serves nobody goes to the GET stream"
    );
    let answer = harness.post(&answer_to("1"));
    assert!(
        harness
            .transmits()
            .contains(&close(answer, Closing::Accepted))
    );
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
}

#[test]
fn what_a_cancelled_request_asked_is_announced_before_its_stream_ends() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("7"));
    let key = harness.started();
    harness.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    harness.written_on(exchange);
    harness.post(&cancel_of("7"));
    assert!(
        !harness
            .transmits()
            .contains(&close(exchange, Closing::Silent))
    );
    assert!(harness.written_on(exchange)[0].contains("notifications/cancelled"));
    assert!(
        harness
            .transmits()
            .contains(&close(exchange, Closing::Silent))
    );
}

#[test]
fn a_malformed_post_is_answered_on_its_own_exchange() {
    let mut harness = Harness::server(Era::Modern, Wire::Http);
    let exchange = harness.post(r#"{"jsonrpc":"2.0","id":5,"method":7}"#);
    let said = harness.written_on(exchange);
    assert!(said[0].contains("-32600") && said[0].contains("\"id\":5"));
    assert!(
        harness
            .transmits()
            .contains(&close(exchange, Closing::Finished))
    );
}

#[test]
fn an_exchange_with_several_requests_is_over_with_the_last() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.engine.handle_exchange_opened();
    harness.hear_on(exchange, &tool_call("1"));
    harness.hear_on(exchange, &tool_call("2"));
    harness.engine.handle_input_ended(harness.now, exchange);
    let (first, second) = (harness.started(), harness.started());
    harness.respond(first);
    harness.written_on(exchange);
    assert!(
        !harness
            .transmits()
            .contains(&close(exchange, Closing::Finished))
    );
    harness.respond(second);
    harness.written_on(exchange);
    assert!(
        harness
            .transmits()
            .contains(&close(exchange, Closing::Finished))
    );
}

#[test]
fn what_waits_for_a_broken_stream_is_announced_when_it_is_back() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("1"));
    let key = harness.started();
    lost(&mut harness, exchange, false);
    harness.respond(key);
    assert!(harness.transmits().is_empty(), "it cannot be written now");
    harness
        .engine
        .handle_exchange_resumed(harness.now, exchange);
    assert_eq!(harness.transmits(), [Transmit::Write(exchange)]);
}

#[test]
fn what_waits_for_the_get_stream_is_announced_when_it_opens() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    harness.call("ping");
    assert!(harness.transmits().is_empty());
    harness.engine.handle_exchange_resumed(harness.now, LINK);
    assert_eq!(harness.transmits(), [Transmit::Write(LINK)]);
}

#[test]
fn requests_on_a_calls_stream_stop_with_it() {
    for lose in [true, false] {
        let (mut harness, call, exchange) = posted(Era::Legacy);
        harness.written_on(exchange);
        harness.hear_on(exchange, &tool_call("\"form\""));
        let form = harness.started();
        if lose {
            lost(&mut harness, exchange, false);
        } else {
            harness.cancel(call);
            let cancel = harness.opened();
            harness.written_on(cancel);
        }
        let stopped = harness.events().into_iter().any(
            |event| matches!(event, Event::Stop { request, cause: StopCause::Disconnected } if request == form),
        );
        assert!(stopped, "lost: {lose}");
    }
}

#[test]
fn a_clients_answer_that_is_lost_with_its_lane_ends_its_request() {
    for time_up in [true, false] {
        let (mut harness, _, exchange) = posted(Era::Legacy);
        harness.written_on(exchange);
        harness.hear_on(exchange, &tool_call("\"form\""));
        let form = harness.started();
        harness.respond(form);
        let lane = harness.opened();
        match time_up {
            true => harness.pass(Duration::from_secs(30)),
            false => lost(&mut harness, lane, false),
        }
        let requests = &harness.engine.ledger().requests;
        assert_eq!((requests.in_flight(), requests.ended_as(End::Lost)), (0, 1));
        harness.engine.check().unwrap();
    }
}

#[test]
fn each_post_of_a_lane_has_its_own_time() {
    let (mut harness, _, exchange) = posted(Era::Legacy);
    harness.written_on(exchange);
    harness.hear_on(exchange, &tool_call("\"form\""));
    let form = harness.started();
    for step in 1..=4 {
        harness
            .engine
            .progress(harness.now, form, f64::from(step), None, None)
            .unwrap();
    }
    let lane = harness.opened();
    for _ in 0..3 {
        harness.engine.begin_write(harness.now, lane);
        harness.pass(Duration::from_secs(20));
        harness.engine.handle_write_done(harness.now, lane);
    }
    assert!(harness.transmits().is_empty(), "the lane is still open");
}

#[test]
fn an_answer_on_the_get_stream_does_not_wake_the_clock_of_a_call_that_waits_for_a_form() {
    let (mut harness, _, exchange) = posted(Era::Legacy);
    harness.written_on(exchange);
    harness.hear_on(exchange, &tool_call("\"form\""));
    harness.started();
    harness.hear(&tool_call("\"other\""));
    let other = harness.started();
    harness.respond(other);
    harness.pass(Duration::from_secs(120));
    assert!(harness.ends().is_empty());
}

#[test]
fn the_end_of_a_calls_stream_is_the_end_of_the_call() {
    let (mut harness, _, exchange) = posted(Era::Modern);
    harness.written_on(exchange);
    harness.engine.handle_input_ended(harness.now, exchange);
    assert!(matches!(
        harness.only_end(),
        Outcome::Lost {
            cause: Loss {
                kind: LossKind::NoAnswer,
                ..
            },
            ..
        }
    ));
}

#[test]
fn an_error_without_an_id_on_a_calls_own_stream_is_its_refusal() {
    let (mut harness, _, exchange) = posted(Era::Modern);
    harness.written_on(exchange);
    harness.hear_on(
        exchange,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"?"}}"#,
    );
    assert!(matches!(harness.only_end(), Outcome::Refused(error) if error.code == -32020));
}

#[test]
fn a_given_up_stream_that_could_be_resumed_is_closed() {
    let (mut harness, call, exchange) = posted(Era::Legacy);
    harness.written_on(exchange);
    harness.cancel(call);
    harness.transmits();
    lost(&mut harness, exchange, true);
    assert_eq!(harness.transmits(), [close(exchange, Closing::Abandoned)]);
}

#[test]
fn early_cancels_are_not_crowded_out_by_finished_requests() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    harness.post(&cancel_of("\"early\""));
    for id in 0..100 {
        let exchange = harness.post(&tool_call(&id.to_string()));
        let key = harness.started();
        harness.respond(key);
        harness.written_on(exchange);
    }
    harness.post(&tool_call("\"early\""));
    assert!(harness.events().is_empty());
}

#[test]
fn a_modern_disconnect_ends_what_the_engine_answers_by_itself_too() {
    let mut harness = Harness::server(Era::Modern, Wire::Http);
    let exchange = harness.post(&modern_tool_call("1").replace("tools/call", "server/discover"));
    lost(&mut harness, exchange, false);
    assert_eq!(harness.engine.ledger().requests.in_flight(), 0);
    harness.transmits();
    harness.engine.check().unwrap();
}

// ── what a transport asks before it chooses a response head ──

#[test]
fn what_waits_first_is_told_apart() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let link = ExchangeId::LINK;
    assert_eq!(harness.engine.first_waiting(link), None);
    let told = harness
        .engine
        .notify(harness.now, None, "notifications/any", None);
    assert_eq!(told, Ok(()));
    assert_eq!(harness.engine.first_waiting(link), Some(Waiting::Notice));
    harness.written();
    let first = harness.start("1");
    harness.respond(first);
    let answered = Waiting::Answer { error: None };
    assert_eq!(harness.engine.first_waiting(link), Some(answered));
    harness.written();
    let second = harness.start("2");
    harness.engine.handler_gone(harness.now, second);
    let failed = Waiting::Answer {
        error: Some(-32603),
    };
    assert_eq!(harness.engine.first_waiting(link), Some(failed));
    harness.written();
    harness.hear(r#"{"jsonrpc":"2.0","id":3,"method":7}"#);
    let refused = Waiting::Refusal { code: -32600 };
    assert_eq!(harness.engine.first_waiting(link), Some(refused));

    let (harness, call, exchange) = posted(Era::Modern);
    assert_eq!(
        harness.engine.first_waiting(exchange),
        Some(Waiting::Call(call))
    );
}

#[test]
fn a_frame_that_had_begun_when_its_stream_broke_does_not_keep_it_open() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("1"));
    let key = harness.started();
    harness
        .engine
        .progress(harness.now, key, 1.0, None, None)
        .unwrap();
    harness.engine.begin_write(harness.now, exchange);
    lost(&mut harness, exchange, false);
    harness
        .engine
        .handle_exchange_resumed(harness.now, exchange);
    harness.respond(key);
    harness.written_on(exchange);
    assert!(
        !harness.engine.is_open(exchange),
        "its answer was the last word"
    );
}

#[test]
fn tree_the_cancel_of_a_form_does_not_wait_for_a_broken_stream() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    harness.engine.handle_exchange_resumed(harness.now, LINK);
    let exchange = harness.post(&tool_call("1"));
    let key = harness.started();
    let ask = Ask {
        serves: Some(key),
        ..Ask::new("elicitation/create", RawJson::empty_object())
    };
    harness.ask(ask);
    harness.written_on(exchange);
    lost(&mut harness, exchange, false);
    harness.pass(Duration::from_secs(61));
    let told = harness.written();
    assert!(
        told.iter()
            .any(|frame| frame.contains("notifications/cancelled")),
        "{told:?}"
    );
}

#[test]
fn a_server_without_sessions_takes_each_post_by_itself() {
    let mut config = server_config(Wire::Http);
    config.opened_in = Some(ProtocolVersion::V2025_06_18);
    let mut harness = Harness::new(config);
    harness.post(&tool_call("1"));
    match harness.engine.poll_event() {
        Some(Event::Request(incoming)) => {
            assert_eq!(incoming.version, ProtocolVersion::V2025_06_18);
        }
        other => panic!("a request should start, not {other:?}"),
    }
}
