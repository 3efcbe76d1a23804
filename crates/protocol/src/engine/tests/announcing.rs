//! **announce-once** where request and cancel are two POSTs, on legacy HTTP and on event streams.

use super::*;

const WIRES: [Wire; 2] = [Wire::Http, Wire::EventStream];
const HEAD: Duration = Duration::from_millis(250);
const AFTER_HEAD: Duration = Duration::from_millis(50);

/// A client with one call on an exchange of its own, not written.
fn posted(wire: Wire) -> (Desk, CallId, ExchangeId) {
    let mut desk = Desk::client(Era::Legacy, wire);
    let call = desk.call("tools/call");
    let exchange = desk.opened();
    (desk, call, exchange)
}

/// The same, written and not acknowledged.
fn written(wire: Wire) -> (Desk, CallId, ExchangeId) {
    let (mut desk, call, exchange) = posted(wire);
    desk.written_on(exchange);
    (desk, call, exchange)
}

/// The exchange on which the cancel of the call goes out, and which is to be opened now.
fn cancel_of_call(desk: &mut Desk, exchange: ExchangeId) -> ExchangeId {
    let opened = desk.opened();
    assert_ne!(opened, exchange);
    let frames: Vec<_> = desk.engine.queued(opened).cloned().collect();
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
            let (mut desk, call, exchange) = written(wire);
            desk.engine.handle_acknowledged(desk.now, exchange);
            desk.pass(late);
            desk.cancel(call);
            if late.is_zero() {
                assert!(
                    desk.transmits().is_empty(),
                    "{wire:?}: it must not overtake"
                );
                desk.pass(AFTER_HEAD);
            }
            cancel_of_call(&mut desk, exchange);
            assert!(matches!(desk.only_end(), Outcome::Cancelled { .. }));
            desk.engine.check().unwrap();
        }
    }
}

#[test]
fn a_call_that_the_peer_has_spoken_of_is_cancelled_at_once() {
    for wire in WIRES {
        let (mut desk, call, exchange) = written(wire);
        let on = if wire == Wire::Http { exchange } else { LINK };
        desk.hear_on(on, &progress_of("1", 1));
        desk.cancel(call);
        cancel_of_call(&mut desk, exchange);
        desk.engine.check().unwrap();
    }
}

#[test]
fn cancel_then_head_waits_for_the_head() {
    for wire in WIRES {
        let (mut desk, call, exchange) = written(wire);
        desk.cancel(call);
        assert!(matches!(desk.only_end(), Outcome::Cancelled { .. }));
        desk.pass(HEAD - Duration::from_millis(1));
        assert!(
            desk.transmits().is_empty(),
            "{wire:?}: it must not overtake"
        );
        desk.engine.handle_acknowledged(desk.now, exchange);
        desk.pass(AFTER_HEAD - Duration::from_millis(1));
        assert!(desk.transmits().is_empty(), "{wire:?}: not right behind it");
        desk.pass(Duration::from_millis(1));
        cancel_of_call(&mut desk, exchange);
        desk.engine.check().unwrap();
    }
}

#[test]
fn cancel_then_no_head_waits_a_quarter_of_a_second_after_the_body() {
    for wire in WIRES {
        let (mut desk, call, exchange) = posted(wire);
        desk.engine.begin_write(desk.now, exchange);
        desk.cancel(call);
        desk.pass(Duration::from_secs(1));
        desk.engine.handle_write_done(desk.now, exchange);
        desk.pass(HEAD - Duration::from_millis(1));
        assert!(
            desk.transmits().is_empty(),
            "{wire:?}: it must not overtake"
        );
        desk.pass(Duration::from_millis(1));
        cancel_of_call(&mut desk, exchange);
        desk.engine.handle_acknowledged(desk.now, exchange);
        assert!(desk.transmits().is_empty(), "{wire:?}: once");
        desk.engine.check().unwrap();
    }
}

#[test]
fn no_head_for_a_quarter_of_a_second_then_cancel_posts_it_at_once() {
    for wire in WIRES {
        let (mut desk, call, exchange) = written(wire);
        desk.pass(HEAD);
        desk.cancel(call);
        cancel_of_call(&mut desk, exchange);
    }
}

#[test]
fn a_server_that_remembers_early_cancels_is_told_as_soon_as_the_request_is_written() {
    for wire in WIRES {
        let (mut desk, call, exchange) = posted(wire);
        desk.engine.peer_remembers_cancels = true;
        desk.engine.begin_write(desk.now, exchange);
        desk.cancel(call);
        assert!(desk.transmits().is_empty(), "not before its request");
        desk.engine.handle_write_done(desk.now, exchange);
        cancel_of_call(&mut desk, exchange);

        let (mut desk, call, exchange) = written(wire);
        desk.engine.peer_remembers_cancels = true;
        desk.cancel(call);
        cancel_of_call(&mut desk, exchange);
    }
}

#[test]
fn our_servers_say_that_they_remember_early_cancels_and_our_clients_hear_it() {
    for wire in WIRES {
        let mut server = Desk::new(server_config(wire));
        let mut client = Desk::new(client_config(wire));
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
    let mut server = Desk::new(server_config(Wire::Pipe));
    server.hear(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#,
    );
    let answered = server.written().remove(0);
    assert!(!answered.contains("experimental"), "{answered}");
}

#[test]
fn the_stream_of_the_request_stays_open_until_its_cancel_is_answered() {
    let (mut desk, call, exchange) = written(Wire::Http);
    desk.engine.handle_acknowledged(desk.now, exchange);
    desk.pass(AFTER_HEAD);
    desk.cancel(call);
    let cancel = cancel_of_call(&mut desk, exchange);
    desk.engine.begin_write(desk.now, cancel);
    assert!(desk.transmits().is_empty());
    desk.engine.handle_write_done(desk.now, cancel);
    assert_eq!(
        desk.transmits(),
        [
            close(cancel, Closing::Finished),
            close(exchange, Closing::Abandoned)
        ]
    );
    desk.engine.check().unwrap();
}

#[test]
fn both_posts_have_five_seconds() {
    for wire in WIRES {
        let (mut desk, call, exchange) = written(wire);
        desk.cancel(call);
        desk.pass(HEAD);
        let cancel = cancel_of_call(&mut desk, exchange);
        desk.pass(Duration::from_secs(5) - HEAD);
        let closed = desk.transmits();
        assert!(closed.contains(&close(exchange, Closing::Abandoned)));
        assert!(closed.contains(&close(cancel, Closing::Abandoned)));
        desk.engine.check().unwrap();
    }
}

#[test]
fn a_request_body_that_is_never_fully_written_is_closed_after_five_seconds() {
    for wire in WIRES {
        let (mut desk, call, exchange) = posted(wire);
        desk.engine.begin_write(desk.now, exchange);
        desk.cancel(call);
        desk.pass(Duration::from_secs(5));
        assert_eq!(desk.transmits(), [close(exchange, Closing::Abandoned)]);
    }
}

#[test]
fn an_answer_that_comes_before_the_cancel_went_out_makes_it_superfluous() {
    for wire in WIRES {
        let (mut desk, call, exchange) = written(wire);
        desk.cancel(call);
        let on = if wire == Wire::Http { exchange } else { LINK };
        desk.hear_on(on, &answer_to("1"));
        assert!(matches!(desk.only_end(), Outcome::Cancelled { .. }));
        assert_eq!(desk.engine.ledger().late_answers, 1);
        assert_eq!(desk.transmits(), [close(exchange, Closing::Finished)]);
        desk.pass(Duration::from_secs(10));
        assert!(desk.transmits().is_empty());
        desk.engine.check().unwrap();
    }
}

#[test]
fn an_answer_that_comes_after_the_cancel_went_out_is_late() {
    let (mut desk, call, exchange) = written(Wire::Http);
    desk.engine.handle_acknowledged(desk.now, exchange);
    desk.pass(AFTER_HEAD);
    desk.cancel(call);
    desk.hear_on(exchange, &answer_to("1"));
    assert!(matches!(desk.only_end(), Outcome::Cancelled { .. }));
    assert_eq!(desk.engine.ledger().late_answers, 1);
    cancel_of_call(&mut desk, exchange);
}

// ── a POST takes one frame ──

#[test]
fn a_post_whose_frame_was_withdrawn_takes_no_other() {
    let mut desk = Desk::new(client_config(Wire::Pipe));
    desk.connect(Era::Legacy);
    let first = desk.call("tools/call");
    desk.call("tools/list");
    let frame = desk.engine.queued(LINK).next().cloned().unwrap();
    desk.cancel(first);
    assert_eq!(desk.engine.begin_write_of(desk.now, LINK, &frame), None);
    assert_eq!(desk.written().len(), 1, "the other one is untouched");
}

// ── event streams ──

#[test]
fn an_acknowledged_call_waits_for_its_answer_on_the_stream() {
    let (mut desk, call, exchange) = written(Wire::EventStream);
    desk.engine.handle_acknowledged(desk.now, exchange);
    assert!(desk.transmits().is_empty() && desk.ends().is_empty());
    desk.hear(&answer_to("1"));
    let ends = desk.ends();
    assert!(matches!(&ends[..], [(ended, Outcome::Answered(_))] if *ended == call));
    assert_eq!(desk.transmits(), [close(exchange, Closing::Finished)]);
    desk.engine.check().unwrap();
}

#[test]
fn an_answer_on_the_stream_can_come_before_the_post_is_acknowledged() {
    let (mut desk, _, exchange) = written(Wire::EventStream);
    desk.hear(&answer_to("1"));
    assert!(matches!(desk.only_end(), Outcome::Answered(_)));
    assert_eq!(desk.transmits(), [close(exchange, Closing::Finished)]);
    desk.engine.handle_acknowledged(desk.now, exchange);
    assert!(desk.transmits().is_empty());
    desk.engine.check().unwrap();
}

#[test]
fn smallest_scope_a_post_that_fails_by_itself_loses_its_call_alone() {
    let mut desk = Desk::client(Era::Legacy, Wire::EventStream);
    let first = desk.call("tools/call");
    let lost = desk.opened();
    desk.call("tools/list");
    let other = desk.opened();
    desk.engine.begin_write(desk.now, lost);
    let cause = LossKind::HttpStatus(500).into();
    desk.engine
        .handle_exchange_lost(desk.now, lost, cause, false);
    let ends = desk.ends();
    let [(call, Outcome::Lost { cause, sent })] = &ends[..] else {
        panic!("one call should be lost: {ends:?}");
    };
    assert_eq!(
        (*call, cause.kind, *sent),
        (first, LossKind::HttpStatus(500), Sent::Maybe)
    );
    assert_eq!(desk.written_on(other).len(), 1, "the other one goes out");
    desk.hear(&answer_to("2"));
    assert!(matches!(desk.only_end(), Outcome::Answered(_)));
}

#[test]
fn the_end_of_the_stream_is_the_end_of_everything() {
    let (mut desk, _, exchange) = written(Wire::EventStream);
    desk.engine.handle_acknowledged(desk.now, exchange);
    desk.call("tools/list");
    desk.lose_link();
    let ends = desk.ends();
    assert_eq!(ends.len(), 2);
    assert!(ends.iter().all(|(_, outcome)| outcome.end() == End::Lost));
    assert!(desk.engine.is_closed());
}

#[test]
fn cancel_then_request_on_an_event_stream_never_starts() {
    let mut desk = Desk::server(Era::Legacy, Wire::EventStream);
    desk.hear(&cancel_of("1"));
    desk.hear(&tool_call("1"));
    assert!(desk.events().is_empty());
    desk.start("2");
}
