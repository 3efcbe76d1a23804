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
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.lose_link();
    let ask = Ask::new("tools/list", RawJson::empty_object());
    let outcome = desk.engine.request(desk.now, ask).unwrap_err();
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
    assert_eq!(desk.engine.closed_because().unwrap().kind, LossKind::Io);
}

#[test]
fn the_death_of_a_server_is_lost_for_every_caller_and_says_what_was_sent() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.call("tools/call");
    desk.call("tools/call");
    desk.begin();
    desk.finish();
    desk.hear(&progress_of("1", 1));
    desk.begin();
    desk.call("tools/call");
    let source: Arc<dyn std::error::Error + Send + Sync> = Arc::from(Box::from("signal 9"));
    let cause = Loss {
        kind: LossKind::ProcessExit,
        source: Some(source),
    };
    desk.engine
        .handle_exchange_lost(desk.now, LINK, cause, false);
    let sent: Vec<Sent> = desk
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
    let mut desk = Desk::client(Era::Modern, Wire::Pipe);
    desk.call("tools/call");
    desk.written();
    desk.engine.handle_input_ended(desk.now, LINK);
    let events = desk.events();
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
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    desk.engine.handle_input_ended(desk.now, LINK);
    assert!(closed(&desk.events()).is_some());
    assert_eq!(desk.engine.poll_timeout(), None);
}

#[test]
fn five_plain_handlers_are_dropped_after_the_drain() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    let keys: Vec<RequestKey> = (1..=5).map(|id| desk.start(&id.to_string())).collect();
    desk.engine.handle_input_ended(desk.now, LINK);
    desk.pass(Duration::from_millis(999));
    assert!(desk.events().is_empty());
    desk.pass(Duration::from_millis(1));
    let events = desk.events();
    for key in &keys {
        assert!(
            events
                .iter()
                .any(|event| matches!(event, Event::Abort { request } if request == key))
        );
    }
    assert_eq!(closed(&events).unwrap().1, 5, "nobody has returned yet");
    assert!(desk.written().is_empty());
}

#[test]
fn a_handler_with_its_token_gets_its_grace_capped_by_the_shutdowns() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    let quick = desk.start("1");
    let slow = desk.start("2");
    desk.engine.grant_grace(quick, None);
    desk.engine.grant_grace(slow, Some(Duration::from_secs(60)));
    desk.engine.shutdown(desk.now, Shutdown::Now);
    assert_eq!(desk.events().len(), 2, "two tokens fire");
    desk.pass(Duration::from_secs(1));
    assert!(matches!(desk.events().as_slice(), [Event::Abort { request }] if *request == quick));
    desk.pass(Duration::from_secs(1));
    let events = desk.events();
    assert!(matches!(events[0], Event::Abort { request } if request == slow));
    assert!(closed(&events).is_some());
}

#[test]
fn a_handler_that_cleans_up_in_time_lets_the_server_go_early() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    let key = desk.start("1");
    desk.engine.grant_grace(key, None);
    desk.engine.shutdown(desk.now, Shutdown::Now);
    desk.pass(Duration::from_millis(10));
    desk.engine.handler_gone(desk.now, key);
    assert!(closed(&desk.events()).is_some());
}

#[test]
fn a_second_shutdown_ends_the_drain() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    desk.start("1");
    desk.engine.shutdown(desk.now, Shutdown::Drain);
    assert!(desk.events().is_empty());
    desk.engine.shutdown(desk.now, Shutdown::Drain);
    assert!(closed(&desk.events()).is_some());
}

#[test]
fn no_drain_if_the_reader_of_our_output_is_gone() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    desk.start("1");
    desk.engine.handle_input_ended(desk.now, LINK);
    desk.lose_link();
    assert!(closed(&desk.events()).is_some());
}

#[test]
fn a_full_output_does_not_keep_a_server_alive() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    let key = desk.start("1");
    desk.respond(key);
    desk.begin();
    let key = desk.start("2");
    desk.respond(key);
    desk.engine.handle_input_ended(desk.now, LINK);
    desk.pass(Duration::from_millis(1000));
    assert!(!desk.engine.is_closed());
    desk.pass(Duration::from_millis(5000));
    assert!(desk.engine.is_closed());
    assert_eq!(desk.engine.ledger().requests.in_flight(), 0);
}

/// A server whose input has ended, with an answer half written and another behind it.
fn flushing_after_the_end_of_input() -> Desk {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    for id in ["1", "2"] {
        let key = desk.start(id);
        desk.respond(key);
    }
    desk.begin();
    desk.engine.handle_input_ended(desk.now, LINK);
    desk.pass(Duration::from_secs(1));
    desk
}

#[test]
fn answers_after_the_end_of_input_are_written_as_long_as_somebody_reads() {
    let mut desk = flushing_after_the_end_of_input();
    for _ in 0..100 {
        desk.pass(Duration::from_secs(4));
        desk.engine.handle_bytes_taken(desk.now);
    }
    assert!(!desk.engine.is_closed());
    desk.finish();
    assert_eq!(desk.written().len(), 1);
    assert!(desk.engine.is_closed());
}

#[test]
fn a_slow_reader_is_not_waited_for_after_a_shutdown_before_or_after_the_end_of_input() {
    let half_a_second = Duration::from_millis(500);
    let mut after = flushing_after_the_end_of_input();
    after.engine.shutdown(after.now, Shutdown::Drain);
    let mut before = Desk::server(Era::Legacy, Wire::Pipe);
    let key = before.start("1");
    before.respond(key);
    before.begin();
    before.engine.shutdown(before.now, Shutdown::Drain);
    before.engine.handle_input_ended(before.now, LINK);
    for desk in [&mut after, &mut before] {
        desk.engine.handle_bytes_taken(desk.now);
        assert!(!desk.engine.is_closed());
        desk.pass(half_a_second);
        assert!(desk.engine.is_closed());
    }
}

/// A server that takes nothing more in, since nobody takes its answers; its client has hung up.
fn paused_after_a_hang_up() -> Desk {
    let mut config = server_config(Wire::Pipe);
    config.limits.queued_answers = 1;
    let mut desk = Desk::new(config);
    desk.be_initialized();
    desk.start("9");
    for id in ["1", "2", "3"] {
        let key = desk.start(id);
        desk.respond(key);
    }
    desk.begin();
    assert!(!desk.engine.wants_input());
    desk.engine.handle_hung_up(desk.now);
    desk
}

#[test]
fn a_paused_server_that_neither_has_a_writer_nor_a_reader_is_lost() {
    let mut desk = paused_after_a_hang_up();
    desk.pass(Duration::from_millis(4900));
    desk.engine.handle_hung_up(desk.now);
    assert_eq!(desk.engine.closed_because().map(|it| it.kind), None);
    desk.pass(Duration::from_millis(100));
    let closed = desk.engine.closed_because().map(|it| it.kind);
    assert_eq!(closed, Some(LossKind::EndOfStream));
    desk.pass(Duration::from_secs(3));
    assert!(desk.engine.is_closed());
    assert_eq!(desk.engine.ledger().requests.in_flight(), 0);
}

#[test]
fn a_paused_server_waits_for_a_reader_that_reads_and_then_for_the_end_of_its_input() {
    let mut desk = paused_after_a_hang_up();
    for _ in 0..100 {
        desk.pass(Duration::from_secs(4));
        desk.engine.handle_bytes_taken(desk.now);
    }
    desk.finish();
    assert_eq!(desk.written().len(), 2);
    assert!(desk.engine.wants_input());
    desk.pass(Duration::from_secs(60));
    assert_eq!(desk.engine.closed_because().map(|it| it.kind), None);
    desk.engine.handle_input_ended(desk.now, LINK);
    desk.pass(Duration::from_secs(1));
    desk.pass(Duration::from_secs(2));
    assert!(desk.engine.is_closed());
}

#[test]
fn requests_that_come_while_draining_are_refused() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    desk.start("1");
    desk.engine.shutdown(desk.now, Shutdown::Drain);
    desk.hear(&tool_call("2"));
    assert!(desk.written()[0].contains("-31002"));
}

#[test]
fn handlers_blocked_on_the_client_wake_when_the_input_ends() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    for id in ["1", "2"] {
        let key = desk.start(id);
        desk.ask(Ask {
            serves: Some(key),
            ..Ask::new("roots/list", RawJson::empty_object())
        });
    }
    desk.written();
    desk.engine.handle_input_ended(desk.now, LINK);
    let ends = desk.ends();
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|(_, outcome)| outcome.end() == End::Lost));
    assert!(
        desk.written().is_empty(),
        "there is nobody to announce it to"
    );
}

#[test]
fn closing_a_client_flushes_its_cancels_for_up_to_a_second() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    for _ in 0..50 {
        desk.call("tools/call");
    }
    desk.written();
    desk.engine.shutdown(desk.now, Shutdown::Drain);
    assert_eq!(desk.ends().len(), 50);
    assert!(!desk.engine.is_closed());
    assert_eq!(desk.written().len(), 50);
    assert!(desk.engine.is_closed());
}

#[test]
fn closing_a_client_whose_peer_reads_nothing_takes_a_second() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.call("tools/call");
    desk.begin();
    desk.engine.shutdown(desk.now, Shutdown::Drain);
    desk.pass(Duration::from_millis(999));
    assert!(!desk.engine.is_closed());
    desk.pass(Duration::from_millis(1));
    assert!(desk.engine.is_closed());
}

#[test]
fn listens_end_with_their_result_before_a_server_closes() {
    let mut desk = Desk::server(Era::Modern, Wire::Pipe);
    desk.hear(&modern_tool_call("7").replace("tools/call", "subscriptions/listen"));
    let key = desk.started();
    desk.engine.shutdown(desk.now, Shutdown::Drain);
    assert_eq!(
        desk.written(),
        [
            r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":7,"io.modelcontextprotocol/serverInfo":{"name":"server","version":"1"}}}}"#
        ]
    );
    let events = desk.events();
    assert!(
        matches!(events[0], Event::Stop { request, cause: StopCause::Shutdown } if request == key)
    );
}

#[test]
fn closing_a_session_on_http_ends_its_streams_silently() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    let exchange = desk.post(&tool_call("1"));
    desk.started();
    desk.engine.shutdown(desk.now, Shutdown::Now);
    let how = Closing::Silent;
    assert!(desk.transmits().contains(&Transmit::Close {
        exchange,
        how,
        kept: ()
    }));
    assert!(desk.engine.is_closed());
}

#[test]
fn nothing_is_heard_after_the_close() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    desk.engine.shutdown(desk.now, Shutdown::Now);
    desk.events();
    desk.hear(&tool_call("1"));
    desk.hear("garbage");
    assert!(desk.events().is_empty());
    assert!(desk.written().is_empty());
}

#[test]
fn a_listen_is_ended_once_however_often_a_server_is_told_to_close() {
    let mut desk = Desk::server(Era::Modern, Wire::Pipe);
    desk.hear(&modern_tool_call("7").replace("tools/call", "subscriptions/listen"));
    desk.started();
    desk.engine.shutdown(desk.now, Shutdown::Drain);
    desk.engine.shutdown(desk.now, Shutdown::Drain);
    desk.pass(Duration::from_millis(400));
    assert_eq!(desk.written().len(), 1);
}

#[test]
fn a_session_that_is_gone_is_lost_and_not_cancelled() {
    let mut desk = Desk::client(Era::Legacy, Wire::Http);
    desk.call("tools/call");
    let exchange = desk.opened();
    desk.written_on(exchange);
    desk.engine
        .handle_link_lost(desk.now, LossKind::SessionGone.into());
    let events = desk.events();
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
    assert!(desk.transmits().contains(&Transmit::Close {
        exchange,
        how,
        kept: ()
    }));
}

#[test]
fn connecting_after_the_close_fails_at_once() {
    let mut desk = Desk::new(client_config(Wire::Pipe));
    desk.lose_link();
    desk.events();
    desk.engine.connect(desk.now, Mode::Auto);
    assert!(matches!(
        desk.events().as_slice(),
        [Event::ConnectFailed(Outcome::Lost {
            sent: Sent::Never,
            ..
        })]
    ));
    assert!(desk.written().is_empty());
}

#[test]
fn nothing_can_be_told_after_the_close() {
    for wire in [Wire::Pipe, Wire::Http] {
        let mut desk = Desk::client(Era::Legacy, wire);
        desk.engine.shutdown(desk.now, Shutdown::Now);
        desk.transmits();
        let told = desk
            .engine
            .notify(desk.now, None, "notifications/roots/list_changed", None);
        assert_eq!(told, Err(Rejection::Closed));
        assert!(desk.transmits().is_empty());
    }
}

#[test]
fn a_post_to_a_closed_session_is_not_accepted() {
    let mut desk = Desk::server(Era::Legacy, Wire::Http);
    desk.engine.shutdown(desk.now, Shutdown::Now);
    let exchange = desk.post(&tool_call("1"));
    let how = Closing::Abandoned;
    assert_eq!(
        desk.transmits(),
        [Transmit::Close {
            exchange,
            how,
            kept: ()
        }]
    );
}
