//! HTTP: each POST an exchange, and what its end means in each era.

use super::*;

fn lost(desk: &mut Desk, exchange: ExchangeId, resumable: bool) {
    let cause = LossKind::Io.into();
    desk.engine
        .handle_exchange_lost(desk.now, exchange, cause, resumable);
}

/// A client on HTTP with one call on an exchange of its own, not written.
fn posted(era: Era) -> (Desk, CallId, ExchangeId) {
    let mut desk = Desk::client(era, Wire::Http);
    let call = desk.call("tools/call");
    let exchange = desk.opened();
    (desk, call, exchange)
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
        let (mut desk, _, exchange) = posted(era);
        desk.written_on(exchange);
        desk.hear_on(exchange, &answer_to("1"));
        assert!(matches!(desk.only_end(), Outcome::Answered(_)));
        assert_eq!(desk.transmits(), [close(exchange, Closing::Finished)]);
    }
}

#[test]
fn an_answer_on_another_exchange_is_not_an_answer() {
    let (mut desk, _, first) = posted(Era::Modern);
    desk.call("tools/call");
    let second = desk.opened();
    desk.written_on(first);
    desk.written_on(second);
    desk.hear_on(second, &answer_to("1"));
    assert!(desk.ends().is_empty());
    assert_eq!(desk.engine.ledger().late_answers, 1);
}

#[test]
fn giving_up_on_modern_http_closes_the_stream_and_posts_nothing() {
    let (mut desk, call, exchange) = posted(Era::Modern);
    desk.written_on(exchange);
    desk.cancel(call);
    assert_eq!(desk.transmits(), [close(exchange, Closing::Abandoned)]);
    assert!(matches!(desk.only_end(), Outcome::Cancelled { .. }));
}

#[test]
fn a_call_given_up_before_its_post_is_never_posted() {
    for era in ERAS {
        let (mut desk, call, exchange) = posted(era);
        desk.cancel(call);
        assert_eq!(desk.transmits(), [close(exchange, Closing::Abandoned)]);
        assert!(matches!(
            desk.only_end(),
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
        let (mut desk, _, exchange) = posted(era);
        desk.written_on(exchange);
        let cause = LossKind::NoAnswer.into();
        desk.engine
            .handle_exchange_lost(desk.now, exchange, cause, false);
        let outcome = desk.only_end();
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
    let (mut desk, _, exchange) = posted(Era::Legacy);
    desk.written_on(exchange);
    lost(&mut desk, exchange, true);
    assert!(desk.ends().is_empty());
    desk.engine.handle_exchange_resumed(desk.now, exchange);
    desk.hear_on(exchange, &answer_to("1"));
    assert!(matches!(desk.only_end(), Outcome::Answered(_)));
}

#[test]
fn a_broken_stream_whose_reconnect_is_refused_is_lost() {
    let (mut desk, _, exchange) = posted(Era::Legacy);
    desk.written_on(exchange);
    lost(&mut desk, exchange, true);
    lost(&mut desk, exchange, false);
    assert!(matches!(desk.only_end(), Outcome::Lost { .. }));
}

#[test]
fn a_deadline_covers_a_broken_stream() {
    let (mut desk, _, exchange) = posted(Era::Legacy);
    desk.written_on(exchange);
    lost(&mut desk, exchange, true);
    desk.pass(Duration::from_secs(60));
    assert!(matches!(desk.only_end(), Outcome::TimedOut { .. }));
}

#[test]
fn whatever_arrives_on_a_calls_stream_shows_that_it_was_sent() {
    let (mut desk, _, exchange) = posted(Era::Modern);
    desk.written_on(exchange);
    desk.hear_on(
        exchange,
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#,
    );
    lost(&mut desk, exchange, false);
    let events = desk.events();
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
    let mut desk = Desk::new(client_config(Wire::Http));
    desk.engine.connect(desk.now, Mode::Legacy);
    let exchange = desk.opened();
    desk.written_on(exchange);
    desk.pass(Duration::from_secs(60));
    assert!(desk.transmits().is_empty(), "never-initialize");
    desk.pass(Duration::from_secs(5));
    assert_eq!(desk.transmits(), [close(exchange, Closing::Abandoned)]);
}

#[test]
fn a_client_on_http_answers_on_a_lane_of_its_own_in_order() {
    let (mut desk, _, exchange) = posted(Era::Legacy);
    desk.written_on(exchange);
    desk.hear_on(exchange, &tool_call("\"ask\""));
    let key = desk.started();
    desk.engine
        .progress(desk.now, key, 1.0, None, None)
        .unwrap();
    desk.respond(key);
    let lane = desk.opened();
    let said = desk.written_on(lane);
    assert!(said[0].contains("notifications/progress") && said[1].contains("\"result\""));
    assert_eq!(desk.transmits(), [close(lane, Closing::Finished)]);
}

#[test]
fn a_request_back_pauses_the_idle_clock_of_its_own_call_only() {
    let (mut desk, first, exchange) = posted(Era::Legacy);
    desk.written_on(exchange);
    let second = desk.call("tools/call");
    let other = desk.opened();
    desk.written_on(other);
    desk.hear_on(exchange, &tool_call("9"));
    desk.started();
    desk.pass(Duration::from_secs(60));
    let ends = desk.ends();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0].0, second);
    assert_ne!(ends[0].0, first);
}

// ── the server ──

#[test]
fn a_disconnect_on_modern_http_cancels() {
    let mut desk = Desk::server(Era::Modern, Wire::Http);
    let exchange = desk.post(&modern_tool_call("1"));
    desk.started();
    lost(&mut desk, exchange, false);
    assert!(matches!(
        desk.events().as_slice(),
        [
            Event::Stop {
                cause: StopCause::Disconnected,
                ..
            },
            Event::Abort { .. }
        ]
    ));
    assert_eq!(desk.engine.ledger().requests.in_flight(), 0);
}

#[test]
fn a_disconnect_on_legacy_http_does_not_cancel() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("1"));
    desk.started();
    lost(&mut desk, exchange, false);
    assert!(desk.events().is_empty());
    assert_eq!(desk.engine.ledger().requests.in_flight(), 1);
}

#[test]
fn resume_then_window_lets_it_run_on() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("1"));
    let key = desk.started();
    lost(&mut desk, exchange, false);
    desk.pass(Duration::from_secs(59));
    desk.engine.handle_exchange_resumed(desk.now, exchange);
    desk.pass(Duration::from_secs(600));
    assert!(desk.events().is_empty());
    desk.respond(key);
    assert_eq!(desk.written_on(exchange).len(), 1);
}

#[test]
fn window_then_resume_was_cancelled() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("1"));
    desk.started();
    lost(&mut desk, exchange, false);
    desk.pass(Duration::from_secs(60));
    desk.engine.handle_exchange_resumed(desk.now, exchange);
    assert!(matches!(
        desk.events()[0],
        Event::Stop {
            cause: StopCause::ResumeWindowPassed,
            ..
        }
    ));
}

#[test]
fn a_resume_window_of_never_is_never() {
    let mut config = server_config(Wire::Http);
    config.spans.resume_window = None;
    let mut desk = Desk::new(config);
    desk.be_initialized();
    let exchange = desk.post(&tool_call("1"));
    desk.started();
    lost(&mut desk, exchange, false);
    desk.pass(Duration::from_secs(1_000_000));
    assert!(desk.events().is_empty());
}

#[test]
fn an_answer_given_while_the_stream_is_broken_waits_for_it() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("1"));
    let key = desk.started();
    lost(&mut desk, exchange, false);
    desk.respond(key);
    desk.engine.handle_exchange_resumed(desk.now, exchange);
    assert_eq!(desk.written_on(exchange).len(), 1);
    assert!(
        desk.transmits()
            .contains(&close(exchange, Closing::Finished))
    );
}

#[test]
fn an_exchange_is_finished_with_its_answer() {
    for era in ERAS {
        let mut desk = Desk::server(era, Wire::Http);
        let exchange = desk.post(&tool_call_of(era, "1"));
        let key = desk.started();
        desk.respond(key);
        desk.written_on(exchange);
        assert!(
            desk.transmits()
                .contains(&close(exchange, Closing::Finished))
        );
        desk.engine.check().unwrap();
    }
}

#[test]
fn a_cancelled_request_on_legacy_http_ends_its_stream_silently() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let waiting = desk.post(&tool_call("1"));
    desk.started();
    let cancel = desk.post(&cancel_of("1"));
    let closed = desk.transmits();
    assert!(closed.contains(&close(waiting, Closing::Silent)));
    assert!(closed.contains(&close(cancel, Closing::Accepted)));
}

#[test]
fn request_then_cancel_on_legacy_http_stops_it() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    desk.post(&tool_call("1"));
    desk.started();
    desk.post(&cancel_of("1"));
    assert!(matches!(desk.events()[0], Event::Stop { .. }));
}

#[test]
fn cancel_then_request_on_legacy_http_never_starts() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    desk.post(&cancel_of("1"));
    let exchange = desk.post(&tool_call("1"));
    assert!(desk.events().is_empty());
    assert!(desk.transmits().contains(&close(exchange, Closing::Silent)));
    assert_eq!(desk.engine.ledger().requests.ended_as(End::Cancelled), 1);
}

#[test]
fn a_cancel_that_came_too_early_is_forgotten_after_ten_seconds() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    desk.post(&cancel_of("1"));
    desk.pass(Duration::from_secs(10));
    desk.post(&tool_call("1"));
    desk.started();
    desk.transmits();
    assert_eq!(desk.engine.early_cancels.len(), 0);
}

#[test]
fn only_so_many_early_cancels_are_remembered() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    for id in 0..100 {
        desk.post(&cancel_of(&id.to_string()));
    }
    assert_eq!(desk.engine.early_cancels.len(), 64);
}

#[test]
fn a_late_cancel_does_not_hit_the_next_request_with_the_same_id() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("1"));
    let key = desk.started();
    desk.respond(key);
    desk.written_on(exchange);
    desk.post(&cancel_of("1"));
    desk.post(&tool_call("1"));
    desk.started();
}

#[test]
fn two_requests_with_one_id_never_meet() {
    for era in ERAS {
        let mut desk = Desk::server(era, Wire::Http);
        let first = desk.post(&tool_call_of(era, "1"));
        let first_key = desk.started();
        let second = desk.post(&tool_call_of(era, "1"));
        let second_key = desk.started();
        desk.engine.respond(
            desk.now,
            second_key,
            Ok(RawJson::parse(r#"{"n":2}"#).unwrap()),
        );
        desk.engine.respond(
            desk.now,
            first_key,
            Ok(RawJson::parse(r#"{"n":1}"#).unwrap()),
        );
        assert!(desk.written_on(first)[0].contains(r#"{"n":1}"#));
        assert!(desk.written_on(second)[0].contains(r#"{"n":2}"#));
    }
}

#[test]
fn a_cancel_that_could_mean_two_requests_means_neither() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    desk.post(&tool_call("1"));
    desk.post(&tool_call("1"));
    desk.events();
    desk.post(&cancel_of("1"));
    assert!(desk.events().is_empty());
    assert_eq!(desk.engine.ledger().stray_cancels, 1);
}

#[test]
fn a_modern_cancel_post_has_no_effect() {
    let mut desk = Desk::server(Era::Modern, Wire::Http);
    desk.post(&modern_tool_call("1"));
    desk.started();
    let cancel = desk.post(&cancel_of("1"));
    assert!(desk.events().is_empty());
    assert!(desk.transmits().contains(&close(cancel, Closing::Accepted)));
}

#[test]
fn a_server_asks_on_the_stream_of_the_request_it_serves() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("1"));
    let key = desk.started();
    desk.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    desk.call("ping");
    assert!(desk.written_on(exchange)[0].contains("roots/list"));
    assert!(
        desk.written()[0].contains("ping"),
        "what serves nobody goes to the GET stream"
    );
    let answer = desk.post(&answer_to("1"));
    assert!(desk.transmits().contains(&close(answer, Closing::Accepted)));
    assert!(matches!(desk.only_end(), Outcome::Answered(_)));
}

#[test]
fn what_a_cancelled_request_asked_is_announced_before_its_stream_ends() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("7"));
    let key = desk.started();
    desk.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    desk.written_on(exchange);
    desk.post(&cancel_of("7"));
    assert!(!desk.transmits().contains(&close(exchange, Closing::Silent)));
    assert!(desk.written_on(exchange)[0].contains("notifications/cancelled"));
    assert!(desk.transmits().contains(&close(exchange, Closing::Silent)));
}

#[test]
fn a_malformed_post_is_answered_on_its_own_exchange() {
    let mut desk = Desk::server(Era::Modern, Wire::Http);
    let exchange = desk.post(r#"{"jsonrpc":"2.0","id":5,"method":7}"#);
    let said = desk.written_on(exchange);
    assert!(said[0].contains("-32600") && said[0].contains("\"id\":5"));
    assert!(
        desk.transmits()
            .contains(&close(exchange, Closing::Finished))
    );
}

#[test]
fn an_exchange_with_several_requests_is_over_with_the_last() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.engine.handle_exchange_opened();
    desk.hear_on(exchange, &tool_call("1"));
    desk.hear_on(exchange, &tool_call("2"));
    desk.engine.handle_input_ended(desk.now, exchange);
    let (first, second) = (desk.started(), desk.started());
    desk.respond(first);
    desk.written_on(exchange);
    assert!(
        !desk
            .transmits()
            .contains(&close(exchange, Closing::Finished))
    );
    desk.respond(second);
    desk.written_on(exchange);
    assert!(
        desk.transmits()
            .contains(&close(exchange, Closing::Finished))
    );
}

#[test]
fn what_waits_for_a_broken_stream_is_announced_when_it_is_back() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("1"));
    let key = desk.started();
    lost(&mut desk, exchange, false);
    desk.respond(key);
    assert!(desk.transmits().is_empty(), "it cannot be written now");
    desk.engine.handle_exchange_resumed(desk.now, exchange);
    assert_eq!(desk.transmits(), [Transmit::Write(exchange)]);
}

#[test]
fn what_waits_for_the_get_stream_is_announced_when_it_opens() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    desk.call("ping");
    assert!(desk.transmits().is_empty());
    desk.engine.handle_exchange_resumed(desk.now, LINK);
    assert_eq!(desk.transmits(), [Transmit::Write(LINK)]);
}

#[test]
fn requests_on_a_calls_stream_stop_with_it() {
    for lose in [true, false] {
        let (mut desk, call, exchange) = posted(Era::Legacy);
        desk.written_on(exchange);
        desk.hear_on(exchange, &tool_call("\"form\""));
        let form = desk.started();
        if lose {
            lost(&mut desk, exchange, false);
        } else {
            desk.cancel(call);
            let cancel = desk.opened();
            desk.written_on(cancel);
        }
        let stopped = desk.events().into_iter().any(
            |event| matches!(event, Event::Stop { request, cause: StopCause::Disconnected } if request == form),
        );
        assert!(stopped, "lost: {lose}");
    }
}

#[test]
fn a_clients_answer_that_is_lost_with_its_lane_ends_its_request() {
    for time_up in [true, false] {
        let (mut desk, _, exchange) = posted(Era::Legacy);
        desk.written_on(exchange);
        desk.hear_on(exchange, &tool_call("\"form\""));
        let form = desk.started();
        desk.respond(form);
        let lane = desk.opened();
        match time_up {
            true => desk.pass(Duration::from_secs(30)),
            false => lost(&mut desk, lane, false),
        }
        let requests = &desk.engine.ledger().requests;
        assert_eq!((requests.in_flight(), requests.ended_as(End::Lost)), (0, 1));
        desk.engine.check().unwrap();
    }
}

#[test]
fn each_post_of_a_lane_has_its_own_time() {
    let (mut desk, _, exchange) = posted(Era::Legacy);
    desk.written_on(exchange);
    desk.hear_on(exchange, &tool_call("\"form\""));
    let form = desk.started();
    for step in 1..=4 {
        desk.engine
            .progress(desk.now, form, f64::from(step), None, None)
            .unwrap();
    }
    let lane = desk.opened();
    for _ in 0..3 {
        desk.engine.begin_write(desk.now, lane);
        desk.pass(Duration::from_secs(20));
        desk.engine.handle_write_done(desk.now, lane);
    }
    assert!(desk.transmits().is_empty(), "the lane is still open");
}

#[test]
fn an_answer_on_the_get_stream_does_not_wake_the_clock_of_a_call_that_waits_for_a_form() {
    let (mut desk, _, exchange) = posted(Era::Legacy);
    desk.written_on(exchange);
    desk.hear_on(exchange, &tool_call("\"form\""));
    desk.started();
    desk.hear(&tool_call("\"other\""));
    let other = desk.started();
    desk.respond(other);
    desk.pass(Duration::from_secs(120));
    assert!(desk.ends().is_empty());
}

#[test]
fn the_end_of_a_calls_stream_is_the_end_of_the_call() {
    let (mut desk, _, exchange) = posted(Era::Modern);
    desk.written_on(exchange);
    desk.engine.handle_input_ended(desk.now, exchange);
    assert!(matches!(
        desk.only_end(),
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
    let (mut desk, _, exchange) = posted(Era::Modern);
    desk.written_on(exchange);
    desk.hear_on(
        exchange,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32020,"message":"?"}}"#,
    );
    assert!(matches!(desk.only_end(), Outcome::Refused(error) if error.code == -32020));
}

#[test]
fn a_given_up_stream_that_could_be_resumed_is_closed() {
    let (mut desk, call, exchange) = posted(Era::Legacy);
    desk.written_on(exchange);
    desk.cancel(call);
    desk.transmits();
    lost(&mut desk, exchange, true);
    assert_eq!(desk.transmits(), [close(exchange, Closing::Abandoned)]);
}

#[test]
fn early_cancels_are_not_crowded_out_by_finished_requests() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    desk.post(&cancel_of("\"early\""));
    for id in 0..100 {
        let exchange = desk.post(&tool_call(&id.to_string()));
        let key = desk.started();
        desk.respond(key);
        desk.written_on(exchange);
    }
    desk.post(&tool_call("\"early\""));
    assert!(desk.events().is_empty());
}

#[test]
fn a_modern_disconnect_ends_what_the_engine_answers_by_itself_too() {
    let mut desk = Desk::server(Era::Modern, Wire::Http);
    let exchange = desk.post(&modern_tool_call("1").replace("tools/call", "server/discover"));
    lost(&mut desk, exchange, false);
    assert_eq!(desk.engine.ledger().requests.in_flight(), 0);
    desk.transmits();
    desk.engine.check().unwrap();
}

// ── what a transport wants to know before it says anything ──

#[test]
fn what_waits_first_is_told_apart() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    let link = ExchangeId::LINK;
    assert_eq!(desk.engine.first_waiting(link), None);
    let told = desk
        .engine
        .notify(desk.now, None, "notifications/any", None);
    assert_eq!(told, Ok(()));
    assert_eq!(desk.engine.first_waiting(link), Some(Waiting::Notice));
    desk.written();
    let first = desk.start("1");
    desk.respond(first);
    let answered = Waiting::Answer { error: None };
    assert_eq!(desk.engine.first_waiting(link), Some(answered));
    desk.written();
    let second = desk.start("2");
    desk.engine.handler_gone(desk.now, second);
    let failed = Waiting::Answer {
        error: Some(-32603),
    };
    assert_eq!(desk.engine.first_waiting(link), Some(failed));
    desk.written();
    desk.hear(r#"{"jsonrpc":"2.0","id":3,"method":7}"#);
    let refused = Waiting::Refusal { code: -32600 };
    assert_eq!(desk.engine.first_waiting(link), Some(refused));

    let (desk, call, exchange) = posted(Era::Modern);
    assert_eq!(
        desk.engine.first_waiting(exchange),
        Some(Waiting::Call(call))
    );
}

#[test]
fn a_frame_that_had_begun_when_its_stream_broke_does_not_keep_it_open() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("1"));
    let key = desk.started();
    desk.engine
        .progress(desk.now, key, 1.0, None, None)
        .unwrap();
    desk.engine.begin_write(desk.now, exchange);
    lost(&mut desk, exchange, false);
    desk.engine.handle_exchange_resumed(desk.now, exchange);
    desk.respond(key);
    desk.written_on(exchange);
    assert!(
        !desk.engine.is_open(exchange),
        "its answer was the last word"
    );
}

#[test]
fn tree_the_cancel_of_a_form_does_not_wait_for_a_broken_stream() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    desk.engine.handle_exchange_resumed(desk.now, LINK);
    let exchange = desk.post(&tool_call("1"));
    let key = desk.started();
    let ask = Ask {
        serves: Some(key),
        ..Ask::new("elicitation/create", RawJson::empty_object())
    };
    desk.ask(ask);
    desk.written_on(exchange);
    lost(&mut desk, exchange, false);
    desk.pass(Duration::from_secs(61));
    let told = desk.written();
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
    let mut desk = Desk::new(config);
    desk.post(&tool_call("1"));
    match desk.engine.poll_event() {
        Some(Event::Request(incoming)) => {
            assert_eq!(incoming.version, ProtocolVersion::V2025_06_18);
        }
        other => panic!("a request should start, not {other:?}"),
    }
}
