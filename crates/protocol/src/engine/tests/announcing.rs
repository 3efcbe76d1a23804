//! **announce-once** where request and cancel are two POSTs, on legacy HTTP and on event streams.

use super::*;

const WIRES: [Wire; 2] = [Wire::Http, Wire::EventStream];
const HEAD: Duration = Duration::from_millis(250);
const AFTER_HEAD: Duration = Duration::from_millis(50);

/// A client with one call on its own exchange. The call is not written yet.
fn posted(wire: Wire) -> (Harness, CallId, ExchangeId) {
    let mut harness = Harness::client(Era::Legacy, wire);
    let call = harness.call("tools/call");
    let exchange = harness.opened();
    (harness, call, exchange)
}

/// The same, after the call was written. It is not acknowledged yet.
fn written(wire: Wire) -> (Harness, CallId, ExchangeId) {
    let (mut harness, call, exchange) = posted(wire);
    harness.written_on(exchange);
    (harness, call, exchange)
}

/// The exchange that carries the cancel of the call, which the transport has to open now.
fn cancel_of_call(harness: &mut Harness, exchange: ExchangeId) -> ExchangeId {
    let opened = harness.opened();
    assert_ne!(opened, exchange);
    let frames: Vec<_> = harness.engine.queued(opened).cloned().collect();
    assert_eq!(frames.len(), 1);
    let frame = str::from_utf8(&frames[0]).unwrap();
    assert!(frame.contains("notifications/cancelled"), "{frame}");
    opened
}

fn close(exchange: ExchangeId, how: Closing) -> Transmit {
    Transmit::Close {
        exchange,
        how,
        kept: (),
    }
}

#[test]
fn head_then_cancel_waits_a_moment_after_the_head() {
    for wire in WIRES {
        for late in [Duration::ZERO, AFTER_HEAD] {
            let (mut harness, call, exchange) = written(wire);
            harness.engine.handle_acknowledged(harness.now, exchange);
            harness.pass(late);
            harness.cancel(call);
            if late.is_zero() {
                assert!(
                    harness.transmits().is_empty(),
                    "{wire:?}: it must not overtake"
                );
                harness.pass(AFTER_HEAD);
            }
            cancel_of_call(&mut harness, exchange);
            assert!(matches!(harness.only_end(), Outcome::Cancelled { .. }));
            harness.engine.check().unwrap();
        }
    }
}

#[test]
fn a_call_that_the_peer_has_spoken_of_is_cancelled_at_once() {
    for wire in WIRES {
        let (mut harness, call, exchange) = written(wire);
        let on = if wire == Wire::Http { exchange } else { LINK };
        harness.hear_on(on, &progress_of("1", 1));
        harness.cancel(call);
        cancel_of_call(&mut harness, exchange);
        harness.engine.check().unwrap();
    }
}

#[test]
fn cancel_then_head_waits_for_the_head() {
    for wire in WIRES {
        let (mut harness, call, exchange) = written(wire);
        harness.cancel(call);
        assert!(matches!(harness.only_end(), Outcome::Cancelled { .. }));
        harness.pass(HEAD - Duration::from_millis(1));
        assert!(
            harness.transmits().is_empty(),
            "{wire:?}: it must not overtake"
        );
        harness.engine.handle_acknowledged(harness.now, exchange);
        harness.pass(AFTER_HEAD - Duration::from_millis(1));
        assert!(
            harness.transmits().is_empty(),
            "{wire:?}: not right behind it"
        );
        harness.pass(Duration::from_millis(1));
        cancel_of_call(&mut harness, exchange);
        harness.engine.check().unwrap();
    }
}

#[test]
fn cancel_then_no_head_waits_a_quarter_of_a_second_after_the_body() {
    for wire in WIRES {
        let (mut harness, call, exchange) = posted(wire);
        harness.engine.begin_write(harness.now, exchange);
        harness.cancel(call);
        harness.pass(Duration::from_secs(1));
        harness.engine.handle_write_done(harness.now, exchange);
        harness.pass(HEAD - Duration::from_millis(1));
        assert!(
            harness.transmits().is_empty(),
            "{wire:?}: it must not overtake"
        );
        harness.pass(Duration::from_millis(1));
        cancel_of_call(&mut harness, exchange);
        harness.engine.handle_acknowledged(harness.now, exchange);
        assert!(harness.transmits().is_empty(), "{wire:?}: once");
        harness.engine.check().unwrap();
    }
}

#[test]
fn no_head_for_a_quarter_of_a_second_then_cancel_posts_it_at_once() {
    for wire in WIRES {
        let (mut harness, call, exchange) = written(wire);
        harness.pass(HEAD);
        harness.cancel(call);
        cancel_of_call(&mut harness, exchange);
    }
}

#[test]
fn a_server_that_remembers_early_cancels_is_told_as_soon_as_the_request_is_written() {
    for wire in WIRES {
        let (mut harness, call, exchange) = posted(wire);
        harness.engine.peer_remembers_cancels = true;
        harness.engine.begin_write(harness.now, exchange);
        harness.cancel(call);
        assert!(harness.transmits().is_empty(), "not before its request");
        harness.engine.handle_write_done(harness.now, exchange);
        cancel_of_call(&mut harness, exchange);

        let (mut harness, call, exchange) = written(wire);
        harness.engine.peer_remembers_cancels = true;
        harness.cancel(call);
        cancel_of_call(&mut harness, exchange);
    }
}

#[test]
fn our_servers_say_that_they_remember_early_cancels_and_our_clients_hear_it() {
    for wire in WIRES {
        let mut server = Harness::new(server_config(wire));
        let mut client = Harness::new(client_config(wire));
        client.engine.connect(client.now, Mode::Legacy);
        let on = client.opened();
        let asked = client.written_on(on).remove(0);
        let answered = match wire {
            Wire::Http => {
                let exchange = server.post(&asked);
                server.written_on(exchange).remove(0)
            }
            _ => {
                server.hear(&asked);
                server.written().remove(0)
            }
        };
        assert!(!client.engine.peer_remembers_cancels);
        client.hear_on(on, &answered);
        assert!(client.engine.peer_remembers_cancels, "{answered}");
    }
    let mut server = Harness::new(server_config(Wire::Pipe));
    server.hear(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    );
    let answered = server.written().remove(0);
    assert!(!answered.contains("experimental"), "{answered}");
}

#[test]
fn the_stream_of_the_request_stays_open_until_its_cancel_is_answered() {
    let (mut harness, call, exchange) = written(Wire::Http);
    harness.engine.handle_acknowledged(harness.now, exchange);
    harness.pass(AFTER_HEAD);
    harness.cancel(call);
    let cancel = cancel_of_call(&mut harness, exchange);
    harness.engine.begin_write(harness.now, cancel);
    assert!(harness.transmits().is_empty());
    harness.engine.handle_write_done(harness.now, cancel);
    assert_eq!(
        harness.transmits(),
        [
            close(cancel, Closing::Finished),
            close(exchange, Closing::Abandoned)
        ]
    );
    harness.engine.check().unwrap();
}

#[test]
fn both_posts_have_five_seconds() {
    for wire in WIRES {
        let (mut harness, call, exchange) = written(wire);
        harness.cancel(call);
        harness.pass(HEAD);
        let cancel = cancel_of_call(&mut harness, exchange);
        harness.pass(Duration::from_secs(5) - HEAD);
        let closed = harness.transmits();
        assert!(closed.contains(&close(exchange, Closing::Abandoned)));
        assert!(closed.contains(&close(cancel, Closing::Abandoned)));
        harness.engine.check().unwrap();
    }
}

#[test]
fn a_request_body_that_is_never_fully_written_is_closed_after_five_seconds() {
    for wire in WIRES {
        let (mut harness, call, exchange) = posted(wire);
        harness.engine.begin_write(harness.now, exchange);
        harness.cancel(call);
        harness.pass(Duration::from_secs(5));
        assert_eq!(harness.transmits(), [close(exchange, Closing::Abandoned)]);
    }
}

#[test]
fn an_answer_that_comes_before_the_cancel_went_out_makes_it_superfluous() {
    for wire in WIRES {
        let (mut harness, call, exchange) = written(wire);
        harness.cancel(call);
        let on = if wire == Wire::Http { exchange } else { LINK };
        harness.hear_on(on, &answer_to("1"));
        assert!(matches!(harness.only_end(), Outcome::Cancelled { .. }));
        assert_eq!(harness.engine.ledger().late_answers, 1);
        assert_eq!(harness.transmits(), [close(exchange, Closing::Finished)]);
        harness.pass(Duration::from_secs(10));
        assert!(harness.transmits().is_empty());
        harness.engine.check().unwrap();
    }
}

#[test]
fn an_answer_that_comes_after_the_cancel_went_out_is_late() {
    let (mut harness, call, exchange) = written(Wire::Http);
    harness.engine.handle_acknowledged(harness.now, exchange);
    harness.pass(AFTER_HEAD);
    harness.cancel(call);
    harness.hear_on(exchange, &answer_to("1"));
    assert!(matches!(harness.only_end(), Outcome::Cancelled { .. }));
    assert_eq!(harness.engine.ledger().late_answers, 1);
    cancel_of_call(&mut harness, exchange);
}

// ── a POST takes one frame ──

#[test]
fn a_post_whose_frame_was_withdrawn_takes_no_other() {
    let mut harness = Harness::new(client_config(Wire::Pipe));
    harness.connect(Era::Legacy);
    let first = harness.call("tools/call");
    harness.call("tools/list");
    let frame = harness.engine.queued(LINK).next().cloned().unwrap();
    harness.cancel(first);
    assert_eq!(
        harness.engine.begin_write_of(harness.now, LINK, &frame),
        None
    );
    assert_eq!(harness.written().len(), 1, "the other one is untouched");
}

// ── event streams ──

#[test]
fn an_acknowledged_call_waits_for_its_answer_on_the_stream() {
    let (mut harness, call, exchange) = written(Wire::EventStream);
    harness.engine.handle_acknowledged(harness.now, exchange);
    assert!(harness.transmits().is_empty() && harness.ends().is_empty());
    harness.hear(&answer_to("1"));
    let ends = harness.ends();
    assert!(matches!(&ends[..], [(ended, Outcome::Answered(_))] if *ended == call));
    assert_eq!(harness.transmits(), [close(exchange, Closing::Finished)]);
    harness.engine.check().unwrap();
}

#[test]
fn an_answer_on_the_stream_can_come_before_the_post_is_acknowledged() {
    let (mut harness, _, exchange) = written(Wire::EventStream);
    harness.hear(&answer_to("1"));
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
    assert_eq!(harness.transmits(), [close(exchange, Closing::Finished)]);
    harness.engine.handle_acknowledged(harness.now, exchange);
    assert!(harness.transmits().is_empty());
    harness.engine.check().unwrap();
}

#[test]
fn smallest_scope_a_post_that_fails_by_itself_loses_its_call_alone() {
    let mut harness = Harness::client(Era::Legacy, Wire::EventStream);
    let first = harness.call("tools/call");
    let lost = harness.opened();
    harness.call("tools/list");
    let other = harness.opened();
    harness.engine.begin_write(harness.now, lost);
    let cause = LossKind::HttpStatus(500).into();
    harness
        .engine
        .handle_exchange_lost(harness.now, lost, cause, false);
    let ends = harness.ends();
    let [(call, Outcome::Lost { cause, sent })] = &ends[..] else {
        panic!("one call should be lost: {ends:?}");
    };
    assert_eq!(
        (*call, cause.kind, *sent),
        (first, LossKind::HttpStatus(500), Sent::Maybe)
    );
    assert_eq!(harness.written_on(other).len(), 1, "the other one goes out");
    harness.hear(&answer_to("2"));
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
}

#[test]
fn the_end_of_the_stream_is_the_end_of_everything() {
    let (mut harness, _, exchange) = written(Wire::EventStream);
    harness.engine.handle_acknowledged(harness.now, exchange);
    harness.call("tools/list");
    harness.lose_link();
    let ends = harness.ends();
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|(_, outcome)| outcome.end() == End::Lost));
    assert!(harness.engine.is_closed());
}

#[test]
fn cancel_then_request_on_an_event_stream_never_starts() {
    let mut harness = Harness::server(Era::Legacy, Wire::EventStream);
    harness.hear(&cancel_of("1"));
    harness.hear(&tool_call("1"));
    assert!(harness.events().is_empty());
    harness.start("2");
}
