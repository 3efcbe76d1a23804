//! **orderly-close**, **closed-is-known**.

use super::*;

fn closed(events: &[Event]) -> Option<(&Loss, usize)> {
    events.iter().find_map(|event| match event {
        Event::Closed { cause, overrun } => Some((cause, *overrun)),
        _ => None,
    })
}

#[test]
fn after_the_close_every_new_call_is_lost_and_never_sent() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.lose_link();
    let ask = Ask::new("tools/list", RawJson::empty_object());
    let outcome = harness.engine.request(harness.now, ask).unwrap_err();
    assert!(matches!(
        outcome,
        Outcome::Lost {
            cause: Loss {
                kind: LossKind::Io,
                ..
            },
            sent: Sent::Never
        }
    ));
    assert_eq!(harness.engine.closed_because().unwrap().kind, LossKind::Io);
}

#[test]
fn the_death_of_a_server_is_lost_for_every_caller_and_says_what_was_sent() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.call("tools/call");
    harness.begin();
    harness.finish();
    harness.hear(&progress_of("1", 1));
    harness.begin();
    harness.call("tools/call");
    let source: Arc<dyn std::error::Error + Send + Sync> = Arc::from(Box::from("signal 9"));
    let cause = Loss {
        kind: LossKind::ProcessExit,
        source: Some(source),
    };
    harness
        .engine
        .handle_exchange_lost(harness.now, LINK, cause, false);
    let sent: Vec<Sent> = harness
        .ends()
        .iter()
        .map(|(_, outcome)| match outcome {
            Outcome::Lost { cause, sent } => {
                use std::error::Error;
                assert_eq!(cause.source().unwrap().to_string(), "signal 9");
                *sent
            }
            other => panic!("typed-end: {other:?}"),
        })
        .collect();
    assert_eq!(sent, [Sent::Yes, Sent::Maybe, Sent::Never]);
}

#[test]
fn the_end_of_input_is_the_end_for_a_client() {
    let mut harness = Harness::client(Era::Modern, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    harness.engine.handle_input_ended(harness.now, LINK);
    let events = harness.events();
    assert!(matches!(
        events[0],
        Event::Ended {
            outcome: Outcome::Lost {
                cause: Loss {
                    kind: LossKind::EndOfStream,
                    ..
                },
                ..
            },
            ..
        }
    ));
    assert!(closed(&events).is_some());
}

#[test]
fn a_server_that_is_idle_closes_at_once_on_end_of_input() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.engine.handle_input_ended(harness.now, LINK);
    assert!(closed(&harness.events()).is_some());
    assert_eq!(harness.engine.poll_timeout(), None);
}

#[test]
fn five_plain_handlers_are_dropped_after_the_drain() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let keys: Vec<RequestKey> = (1..=5).map(|id| harness.start(&id.to_string())).collect();
    harness.engine.handle_input_ended(harness.now, LINK);
    harness.pass(Duration::from_millis(999));
    assert!(harness.events().is_empty());
    harness.pass(Duration::from_millis(1));
    let events = harness.events();
    for key in &keys {
        assert!(
            events
                .iter()
                .any(|event| matches!(event, Event::Abort { request } if request == key))
        );
    }
    assert_eq!(closed(&events).unwrap().1, 5, "nobody has returned yet");
    assert!(harness.written().is_empty());
}

#[test]
fn a_handler_with_its_token_gets_its_grace_capped_by_the_shutdowns() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let quick = harness.start("1");
    let slow = harness.start("2");
    harness.engine.grant_grace(quick, None);
    harness
        .engine
        .grant_grace(slow, Some(Duration::from_secs(60)));
    harness.engine.shutdown(harness.now, Shutdown::Now);
    assert_eq!(harness.events().len(), 2, "two tokens fire");
    harness.pass(Duration::from_secs(1));
    assert!(matches!(harness.events().as_slice(), [Event::Abort { request }] if *request == quick));
    harness.pass(Duration::from_secs(1));
    let events = harness.events();
    assert!(matches!(events[0], Event::Abort { request } if request == slow));
    assert!(closed(&events).is_some());
}

#[test]
fn a_handler_that_cleans_up_in_time_lets_the_server_go_early() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.engine.grant_grace(key, None);
    harness.engine.shutdown(harness.now, Shutdown::Now);
    harness.pass(Duration::from_millis(10));
    harness.engine.handler_gone(harness.now, key);
    assert!(closed(&harness.events()).is_some());
}

#[test]
fn a_second_shutdown_ends_the_drain() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.start("1");
    harness.engine.shutdown(harness.now, Shutdown::Drain);
    assert!(harness.events().is_empty());
    harness.engine.shutdown(harness.now, Shutdown::Drain);
    assert!(closed(&harness.events()).is_some());
}

#[test]
fn no_drain_if_the_reader_of_our_output_is_gone() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.start("1");
    harness.engine.handle_input_ended(harness.now, LINK);
    harness.lose_link();
    assert!(closed(&harness.events()).is_some());
}

#[test]
fn a_full_output_does_not_keep_a_server_alive() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.respond(key);
    harness.begin();
    let key = harness.start("2");
    harness.respond(key);
    harness.engine.handle_input_ended(harness.now, LINK);
    harness.pass(Duration::from_millis(1000));
    assert!(!harness.engine.is_closed());
    harness.pass(Duration::from_millis(5000));
    assert!(harness.engine.is_closed());
    assert_eq!(harness.engine.ledger().requests.in_flight(), 0);
}

/// A server after the end of its input, with a partly written answer and another one behind it.
fn flushing_after_the_end_of_input() -> Harness {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    for id in ["1", "2"] {
        let key = harness.start(id);
        harness.respond(key);
    }
    harness.begin();
    harness.engine.handle_input_ended(harness.now, LINK);
    harness.pass(Duration::from_secs(1));
    harness
}

#[test]
fn answers_after_the_end_of_input_are_written_as_long_as_somebody_reads() {
    let mut harness = flushing_after_the_end_of_input();
    for _ in 0..100 {
        harness.pass(Duration::from_secs(4));
        harness.engine.handle_bytes_taken(harness.now);
    }
    assert!(!harness.engine.is_closed());
    harness.finish();
    assert_eq!(harness.written().len(), 1);
    assert!(harness.engine.is_closed());
}

#[test]
fn a_slow_reader_is_not_waited_for_after_a_shutdown_before_or_after_the_end_of_input() {
    let half_a_second = Duration::from_millis(500);
    let mut after = flushing_after_the_end_of_input();
    after.engine.shutdown(after.now, Shutdown::Drain);
    let mut before = Harness::server(Era::Legacy, Wire::Pipe);
    let key = before.start("1");
    before.respond(key);
    before.begin();
    before.engine.shutdown(before.now, Shutdown::Drain);
    before.engine.handle_input_ended(before.now, LINK);
    for harness in [&mut after, &mut before] {
        harness.engine.handle_bytes_taken(harness.now);
        assert!(!harness.engine.is_closed());
        harness.pass(half_a_second);
        assert!(harness.engine.is_closed());
    }
}

/// A server that has paused reading because its answers are not read; its client has hung up.
fn paused_after_a_hang_up() -> Harness {
    let mut config = server_config(Wire::Pipe);
    config.limits.queued_answers = 1;
    let mut harness = Harness::new(config);
    harness.be_initialized();
    harness.start("9");
    for id in ["1", "2", "3"] {
        let key = harness.start(id);
        harness.respond(key);
    }
    harness.begin();
    assert!(!harness.engine.wants_input());
    harness.engine.handle_hung_up(harness.now);
    harness
}

#[test]
fn a_paused_server_that_neither_has_a_writer_nor_a_reader_is_lost() {
    let mut harness = paused_after_a_hang_up();
    harness.pass(Duration::from_millis(4900));
    harness.engine.handle_hung_up(harness.now);
    assert_eq!(harness.engine.closed_because().map(|it| it.kind), None);
    harness.pass(Duration::from_millis(100));
    let closed = harness.engine.closed_because().map(|it| it.kind);
    assert_eq!(closed, Some(LossKind::EndOfStream));
    harness.pass(Duration::from_secs(3));
    assert!(harness.engine.is_closed());
    assert_eq!(harness.engine.ledger().requests.in_flight(), 0);
}

#[test]
fn a_paused_server_waits_for_a_reader_that_reads_and_then_for_the_end_of_its_input() {
    let mut harness = paused_after_a_hang_up();
    for _ in 0..100 {
        harness.pass(Duration::from_secs(4));
        harness.engine.handle_bytes_taken(harness.now);
    }
    harness.finish();
    assert_eq!(harness.written().len(), 2);
    assert!(harness.engine.wants_input());
    harness.pass(Duration::from_secs(60));
    assert_eq!(harness.engine.closed_because().map(|it| it.kind), None);
    harness.engine.handle_input_ended(harness.now, LINK);
    harness.pass(Duration::from_secs(1));
    harness.pass(Duration::from_secs(2));
    assert!(harness.engine.is_closed());
}

#[test]
fn requests_that_come_while_draining_are_refused() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.start("1");
    harness.engine.shutdown(harness.now, Shutdown::Drain);
    harness.hear(&tool_call("2"));
    assert!(harness.written()[0].contains("-31002"));
}

#[test]
fn handlers_blocked_on_the_client_wake_when_the_input_ends() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    for id in ["1", "2"] {
        let key = harness.start(id);
        harness.ask(Ask {
            serves: Some(key),
            ..Ask::new("roots/list", RawJson::empty_object())
        });
    }
    harness.written();
    harness.engine.handle_input_ended(harness.now, LINK);
    let ends = harness.ends();
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|(_, outcome)| outcome.end() == End::Lost));
    assert!(
        harness.written().is_empty(),
        "there is nobody to announce it to"
    );
}

#[test]
fn closing_a_client_flushes_its_cancels_for_up_to_a_second() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    for _ in 0..50 {
        harness.call("tools/call");
    }
    harness.written();
    harness.engine.shutdown(harness.now, Shutdown::Drain);
    assert_eq!(harness.ends().len(), 50);
    assert!(!harness.engine.is_closed());
    assert_eq!(harness.written().len(), 50);
    assert!(harness.engine.is_closed());
}

#[test]
fn closing_a_client_whose_peer_reads_nothing_takes_a_second() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.begin();
    harness.engine.shutdown(harness.now, Shutdown::Drain);
    harness.pass(Duration::from_millis(999));
    assert!(!harness.engine.is_closed());
    harness.pass(Duration::from_millis(1));
    assert!(harness.engine.is_closed());
}

#[test]
fn listens_end_with_their_result_before_a_server_closes() {
    let mut harness = Harness::server(Era::Modern, Wire::Pipe);
    harness.hear(&modern_tool_call("7").replace("tools/call", "subscriptions/listen"));
    let key = harness.started();
    harness.engine.shutdown(harness.now, Shutdown::Drain);
    assert_eq!(
        harness.written(),
        [
            r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7,"io.modelcontextprotocol/serverInfo":{"name":"server","version":"1"}}}}"#
        ]
    );
    let events = harness.events();
    assert!(
        matches!(events[0], Event::Stop { request, cause: StopCause::Shutdown } if request == key)
    );
}

#[test]
fn closing_a_session_on_http_ends_its_streams_silently() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    let exchange = harness.post(&tool_call("1"));
    harness.started();
    harness.engine.shutdown(harness.now, Shutdown::Now);
    let how = Closing::Silent;
    assert!(harness.transmits().contains(&Transmit::Close {
        exchange,
        how,
        kept: ()
    }));
    assert!(harness.engine.is_closed());
}

#[test]
fn nothing_is_heard_after_the_close() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.engine.shutdown(harness.now, Shutdown::Now);
    harness.events();
    harness.hear(&tool_call("1"));
    harness.hear("garbage");
    assert!(harness.events().is_empty());
    assert!(harness.written().is_empty());
}

#[test]
fn a_listen_is_ended_once_however_often_a_server_is_told_to_close() {
    let mut harness = Harness::server(Era::Modern, Wire::Pipe);
    harness.hear(&modern_tool_call("7").replace("tools/call", "subscriptions/listen"));
    harness.started();
    harness.engine.shutdown(harness.now, Shutdown::Drain);
    harness.engine.shutdown(harness.now, Shutdown::Drain);
    harness.pass(Duration::from_millis(400));
    assert_eq!(harness.written().len(), 1);
}

#[test]
fn a_session_that_is_gone_is_lost_and_not_cancelled() {
    let mut harness = Harness::client(Era::Legacy, Wire::Http);
    harness.call("tools/call");
    let exchange = harness.opened();
    harness.written_on(exchange);
    harness
        .engine
        .handle_link_lost(harness.now, LossKind::SessionGone.into());
    let events = harness.events();
    assert!(matches!(
        events[0],
        Event::Ended {
            outcome: Outcome::Lost {
                cause: Loss {
                    kind: LossKind::SessionGone,
                    ..
                },
                ..
            },
            ..
        }
    ));
    assert_eq!(closed(&events).unwrap().0.kind, LossKind::SessionGone);
    let how = Closing::Abandoned;
    assert!(harness.transmits().contains(&Transmit::Close {
        exchange,
        how,
        kept: ()
    }));
}

#[test]
fn connecting_after_the_close_fails_at_once() {
    let mut harness = Harness::new(client_config(Wire::Pipe));
    harness.lose_link();
    harness.events();
    harness.engine.connect(harness.now, Mode::Auto);
    assert!(matches!(
        harness.events().as_slice(),
        [Event::ConnectFailed(Outcome::Lost {
            sent: Sent::Never,
            ..
        })]
    ));
    assert!(harness.written().is_empty());
}

#[test]
fn nothing_can_be_told_after_the_close() {
    for wire in [Wire::Pipe, Wire::Http] {
        let mut harness = Harness::client(Era::Legacy, wire);
        harness.engine.shutdown(harness.now, Shutdown::Now);
        harness.transmits();
        let told =
            harness
                .engine
                .notify(harness.now, None, "notifications/roots/list_changed", None);
        assert_eq!(told, Err(Rejection::Closed));
        assert!(harness.transmits().is_empty());
    }
}

#[test]
fn a_post_to_a_closed_session_is_not_accepted() {
    let mut harness = Harness::server(Era::Legacy, Wire::Http);
    harness.engine.shutdown(harness.now, Shutdown::Now);
    let exchange = harness.post(&tool_call("1"));
    let how = Closing::Abandoned;
    assert_eq!(
        harness.transmits(),
        [Transmit::Close {
            exchange,
            how,
            kept: ()
        }]
    );
}
