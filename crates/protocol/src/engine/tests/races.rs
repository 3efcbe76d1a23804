//! Every pair of events that can race, in both orders.

use super::*;

/// A legacy client on a pipe with one call written.
fn asked() -> (Harness, CallId) {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let call = harness.call("tools/call");
    harness.written();
    (harness, call)
}

/// A legacy server on a pipe with one handler running.
fn serving() -> (Harness, RequestKey) {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    (harness, key)
}

fn is_cancel_for(frames: &[String], id: &str) -> bool {
    let named = format!(r#""params":{{"requestId":{id}"#);
    frames.len() == 1 && frames[0].contains("notifications/cancelled") && frames[0].contains(&named)
}

// ── answer and cancel ──

#[test]
fn answer_then_cancel_is_answered_and_nothing_is_announced() {
    let (mut harness, call) = asked();
    harness.hear(&answer_to("1"));
    harness.cancel(call);
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
    assert!(harness.written().is_empty());
}

#[test]
fn cancel_then_answer_is_cancelled_and_the_answer_is_late() {
    let (mut harness, call) = asked();
    harness.cancel(call);
    harness.hear(&answer_to("1"));
    let outcome = harness.only_end();
    assert!(matches!(
        outcome,
        Outcome::Cancelled {
            by: By::Caller,
            sent: Sent::Maybe,
            ..
        }
    ));
    assert!(is_cancel_for(&harness.written(), "1"));
    assert_eq!(harness.engine.ledger().late_answers, 1);
}

// ── answer and timeout ──

#[test]
fn answer_then_timeout_is_answered() {
    let (mut harness, _) = asked();
    harness.hear(&answer_to("1"));
    harness.pass(Duration::from_secs(1000));
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
    assert!(harness.written().is_empty());
}

#[test]
fn timeout_then_answer_is_timed_out_and_announced() {
    let (mut harness, _) = asked();
    harness.pass(Duration::from_secs(60));
    harness.hear(&answer_to("1"));
    let outcome = harness.only_end();
    assert!(matches!(
        outcome,
        Outcome::TimedOut {
            clock: Clock::Idle,
            sent: Sent::Maybe,
            ..
        }
    ));
    assert!(is_cancel_for(&harness.written(), "1"));
}

// ── cancel and timeout ──

#[test]
fn cancel_then_timeout_announces_once() {
    let (mut harness, call) = asked();
    harness.cancel(call);
    harness.pass(Duration::from_secs(1000));
    assert!(matches!(harness.only_end(), Outcome::Cancelled { .. }));
    assert!(is_cancel_for(&harness.written(), "1"));
}

#[test]
fn timeout_then_cancel_announces_once() {
    let (mut harness, call) = asked();
    harness.pass(Duration::from_secs(60));
    harness.cancel(call);
    assert!(matches!(harness.only_end(), Outcome::TimedOut { .. }));
    assert!(is_cancel_for(&harness.written(), "1"));
}

#[test]
fn cancel_then_cancel_announces_once() {
    let (mut harness, call) = asked();
    harness.cancel(call);
    harness.cancel(call);
    assert!(matches!(harness.only_end(), Outcome::Cancelled { .. }));
    assert!(is_cancel_for(&harness.written(), "1"));
}

// ── cancel and the write of the request ──

#[test]
fn cancel_then_write_takes_the_request_out_of_the_queue() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let call = harness.call("tools/call");
    harness.cancel(call);
    assert!(harness.written().is_empty());
    assert!(matches!(
        harness.only_end(),
        Outcome::Cancelled {
            sent: Sent::Never,
            ..
        }
    ));
}

#[test]
fn write_begun_then_cancel_announces_after_the_request() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let call = harness.call("tools/call");
    harness.begin();
    harness.cancel(call);
    assert!(matches!(
        harness.only_end(),
        Outcome::Cancelled {
            sent: Sent::Maybe,
            ..
        }
    ));
    harness.finish();
    assert!(is_cancel_for(&harness.written(), "1"));
}

#[test]
fn timeout_then_write_takes_the_request_out_of_the_queue() {
    let mut harness = Harness::client(Era::Modern, Wire::Pipe);
    harness.call("tools/call");
    harness.pass(Duration::from_secs(60));
    assert!(harness.written().is_empty());
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            sent: Sent::Never,
            ..
        }
    ));
}

#[test]
fn write_begun_then_timeout_announces() {
    let mut harness = Harness::client(Era::Modern, Wire::Pipe);
    harness.call("tools/call");
    harness.begin();
    harness.pass(Duration::from_secs(60));
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            sent: Sent::Maybe,
            ..
        }
    ));
    harness.finish();
    assert!(is_cancel_for(&harness.written(), "1"));
}

// ── cancel and close ──

#[test]
fn cancel_then_link_lost_is_cancelled() {
    let (mut harness, call) = asked();
    harness.cancel(call);
    harness.lose_link();
    assert!(matches!(harness.only_end(), Outcome::Cancelled { .. }));
    assert!(harness.written().is_empty());
}

#[test]
fn link_lost_then_cancel_is_lost() {
    let (mut harness, call) = asked();
    harness.lose_link();
    harness.cancel(call);
    assert!(matches!(
        harness.only_end(),
        Outcome::Lost {
            sent: Sent::Maybe,
            ..
        }
    ));
}

#[test]
fn answer_then_link_lost_is_answered() {
    let (mut harness, _) = asked();
    harness.hear(&answer_to("1"));
    harness.lose_link();
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
}

#[test]
fn link_lost_then_answer_is_lost() {
    let (mut harness, _) = asked();
    harness.lose_link();
    harness.hear(&answer_to("1"));
    assert!(matches!(harness.only_end(), Outcome::Lost { .. }));
}

#[test]
fn timeout_then_link_lost_is_timed_out() {
    let (mut harness, _) = asked();
    harness.pass(Duration::from_secs(60));
    harness.lose_link();
    assert!(matches!(harness.only_end(), Outcome::TimedOut { .. }));
}

#[test]
fn link_lost_then_timeout_is_lost() {
    let (mut harness, _) = asked();
    harness.lose_link();
    harness.pass(Duration::from_secs(60));
    assert!(matches!(harness.only_end(), Outcome::Lost { .. }));
}

#[test]
fn answer_then_shutdown_is_answered() {
    let (mut harness, _) = asked();
    harness.hear(&answer_to("1"));
    harness.engine.shutdown(harness.now, Shutdown::Now);
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
}

#[test]
fn shutdown_then_answer_is_cancelled_by_the_shutdown() {
    let (mut harness, _) = asked();
    harness.engine.shutdown(harness.now, Shutdown::Now);
    harness.hear(&answer_to("1"));
    assert!(matches!(
        harness.only_end(),
        Outcome::Cancelled {
            by: By::Shutdown,
            ..
        }
    ));
    assert!(is_cancel_for(&harness.written(), "1"));
}

// ── progress and the clocks ──

#[test]
fn progress_then_idle_deadline_waits_for_the_new_one() {
    let (mut harness, _) = asked();
    harness.pass(Duration::from_secs(59));
    harness.hear(&progress_of("1", 1));
    harness.pass(Duration::from_secs(59));
    assert!(harness.ends().is_empty());
    harness.pass(Duration::from_secs(1));
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            sent: Sent::Yes,
            ..
        }
    ));
}

#[test]
fn idle_deadline_then_progress_is_timed_out() {
    let (mut harness, _) = asked();
    harness.pass(Duration::from_secs(60));
    harness.hear(&progress_of("1", 1));
    let events = harness.events();
    assert!(matches!(
        events.as_slice(),
        [Event::Ended {
            outcome: Outcome::TimedOut { .. },
            ..
        }]
    ));
    assert_eq!(harness.engine.ledger().stray_progress, 1);
}

#[test]
fn progress_then_cancel_was_sent() {
    let (mut harness, call) = asked();
    harness.hear(&progress_of("1", 1));
    harness.cancel(call);
    assert!(matches!(
        harness.ends()[0].1,
        Outcome::Cancelled {
            sent: Sent::Yes,
            ..
        }
    ));
}

#[test]
fn cancel_then_progress_is_not_told() {
    let (mut harness, call) = asked();
    harness.cancel(call);
    harness.hear(&progress_of("1", 1));
    assert!(matches!(harness.events().as_slice(), [Event::Ended { .. }]));
}

#[test]
fn idle_and_total_deadline_at_once_is_the_total_one() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let minute = Wait::AtMost(Duration::from_secs(60));
    harness.ask(Ask {
        idle: minute,
        total: minute,
        ..Ask::new("tools/call", RawJson::empty_object())
    });
    harness.pass(Duration::from_secs(60));
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            clock: Clock::Total,
            ..
        }
    ));
}

#[test]
fn answer_then_answer_is_answered_once() {
    let (mut harness, _) = asked();
    harness.hear(&answer_to("1"));
    harness.hear(&error_for("1"));
    assert!(matches!(harness.only_end(), Outcome::Answered(_)));
    assert_eq!(harness.engine.ledger().late_answers, 1);
}

// ── the answering side: respond and cancel ──

#[test]
fn respond_then_cancel_withdraws_the_answer() {
    let (mut harness, key) = serving();
    harness.respond(key);
    harness.hear(&cancel_of("1"));
    assert!(harness.written().is_empty());
    assert_eq!(harness.engine.ledger().requests.ended_as(End::Cancelled), 1);
}

#[test]
fn cancel_then_respond_says_nothing() {
    let (mut harness, key) = serving();
    harness.hear(&cancel_of("1"));
    harness.respond(key);
    assert!(harness.written().is_empty());
    assert_eq!(harness.engine.ledger().silenced, 1);
}

#[test]
fn write_of_the_answer_then_cancel_finishes_the_answer() {
    let (mut harness, key) = serving();
    harness.respond(key);
    harness.begin();
    harness.hear(&cancel_of("1"));
    harness.finish();
    let requests = &harness.engine.ledger().requests;
    assert_eq!(
        (requests.ended_as(End::Answered), requests.in_flight()),
        (1, 0)
    );
    assert_eq!(harness.engine.ledger().stray_cancels, 1);
}

#[test]
fn progress_then_cancel_withdraws_the_progress() {
    let (mut harness, key) = serving();
    harness
        .engine
        .progress(harness.now, key, 1.0, None, None)
        .unwrap();
    harness.hear(&cancel_of("1"));
    assert!(harness.written().is_empty());
}

#[test]
fn cancel_then_progress_says_nothing() {
    let (mut harness, key) = serving();
    harness.hear(&cancel_of("1"));
    harness
        .engine
        .progress(harness.now, key, 1.0, None, None)
        .unwrap();
    assert!(harness.written().is_empty());
}

#[test]
fn start_then_cancel_stops_the_handler() {
    let (mut harness, key) = serving();
    harness.hear(&cancel_of("1"));
    let events = harness.events();
    assert!(matches!(
        events.as_slice(),
        [
            Event::Stop { request, cause: StopCause::Cancelled { reason: Some(reason) } },
            Event::Abort { request: aborted },
        ] if *request == key && *aborted == key && &**reason == "tired"
    ));
}

#[test]
fn cancel_then_start_never_starts() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    harness.hear(&tool_call("1"));
    harness.hear(&cancel_of("1"));
    assert!(harness.events().is_empty());
    assert_eq!(harness.engine.handlers(), 0);
}

#[test]
fn cancel_then_cancel_stops_once() {
    let (mut harness, _) = serving();
    harness.hear(&cancel_of("1"));
    harness.hear(&cancel_of("1"));
    assert_eq!(harness.events().len(), 2);
    assert_eq!(harness.engine.ledger().stray_cancels, 1);
}

#[test]
fn handler_gone_then_cancel_withdraws_the_error() {
    let (mut harness, key) = serving();
    harness.engine.handler_gone(harness.now, key);
    harness.hear(&cancel_of("1"));
    assert!(harness.written().is_empty());
}

#[test]
fn cancel_then_handler_gone_says_nothing() {
    let (mut harness, key) = serving();
    harness.hear(&cancel_of("1"));
    harness.engine.handler_gone(harness.now, key);
    assert!(harness.written().is_empty());
}

// ── respond and the end of the link, of a deadline, of a grace ──

#[test]
fn respond_then_link_lost_writes_nothing() {
    let (mut harness, key) = serving();
    harness.respond(key);
    harness.lose_link();
    assert!(harness.written().is_empty());
    assert_eq!(harness.engine.ledger().requests.ended_as(End::Lost), 1);
}

#[test]
fn link_lost_then_respond_writes_nothing() {
    let (mut harness, key) = serving();
    harness.lose_link();
    harness.respond(key);
    assert!(harness.written().is_empty());
    assert!(harness.engine.is_closed());
}

#[test]
fn respond_then_deadline_answers_once() {
    let (mut harness, key) = serving();
    let late = RawJson::parse(r#"{"late":true}"#).unwrap();
    harness
        .engine
        .set_deadline(harness.now, key, Duration::from_secs(1), late);
    harness.respond(key);
    harness.pass(Duration::from_secs(2));
    let frames = harness.written();
    assert!(frames.len() == 1 && !frames[0].contains("late"));
}

#[test]
fn deadline_then_respond_answers_in_the_handlers_stead() {
    let (mut harness, key) = serving();
    let late = RawJson::parse(r#"{"late":true}"#).unwrap();
    harness
        .engine
        .set_deadline(harness.now, key, Duration::from_secs(1), late);
    harness.pass(Duration::from_secs(2));
    harness.respond(key);
    let frames = harness.written();
    assert!(frames.len() == 1 && frames[0].contains("late"));
    let cause = StopCause::Deadline;
    assert!(matches!(&harness.events()[0], Event::Stop { cause: seen, .. } if *seen == cause));
}

#[test]
fn respond_then_end_of_grace_aborts_nobody() {
    let (mut harness, key) = serving();
    harness.engine.grant_grace(key, None);
    harness.hear(&cancel_of("1"));
    harness.respond(key);
    harness.pass(Duration::from_secs(2));
    assert!(matches!(harness.events().as_slice(), [Event::Stop { .. }]));
}

#[test]
fn end_of_grace_then_respond_was_aborted() {
    let (mut harness, key) = serving();
    harness.engine.grant_grace(key, None);
    harness.hear(&cancel_of("1"));
    harness.pass(Duration::from_secs(2));
    harness.respond(key);
    assert!(matches!(
        harness.events().as_slice(),
        [Event::Stop { .. }, Event::Abort { .. }]
    ));
    assert_eq!(harness.engine.handlers(), 0);
}

#[test]
fn respond_then_end_of_input_is_answered() {
    let (mut harness, key) = serving();
    harness.respond(key);
    harness.engine.handle_input_ended(harness.now, LINK);
    assert_eq!(harness.written().len(), 1);
    assert!(harness.engine.is_closed());
}

#[test]
fn end_of_input_then_respond_is_answered_while_draining() {
    let (mut harness, key) = serving();
    harness.engine.handle_input_ended(harness.now, LINK);
    harness.pass(Duration::from_millis(900));
    harness.respond(key);
    assert_eq!(harness.written().len(), 1);
    assert!(harness.engine.is_closed());
}

#[test]
fn end_of_drain_then_respond_says_nothing() {
    let (mut harness, key) = serving();
    harness.engine.handle_input_ended(harness.now, LINK);
    harness.pass(Duration::from_secs(1));
    harness.respond(key);
    assert!(harness.written().is_empty());
}

// ── a child call and its parent ──

#[test]
fn child_answered_then_parent_cancelled_announces_nothing() {
    let (mut harness, key) = serving();
    harness.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    harness.written();
    harness.hear(&answer_to("1"));
    harness.hear(&cancel_of("1"));
    assert!(harness.written().is_empty());
}

#[test]
fn parent_cancelled_then_child_answered_announces_the_child() {
    let (mut harness, key) = serving();
    harness.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    harness.written();
    harness.hear(&cancel_of("1"));
    harness.hear(&answer_to("1"));
    assert!(is_cancel_for(&harness.written(), "1"));
    assert_eq!(harness.engine.ledger().late_answers, 1);
}

#[test]
fn parent_answered_then_child_is_given_up() {
    let (mut harness, key) = serving();
    harness.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    harness.written();
    harness.respond(key);
    let frames = harness.written();
    assert!(frames[0].contains("notifications/cancelled") && frames[1].contains("result"));
}

// ── the era probe and `initialize` ──

#[test]
fn late_answer_to_the_probe_after_initialize_is_inert() {
    let mut harness = Harness::new(client_config(Wire::Pipe));
    harness.engine.connect(harness.now, Mode::Auto);
    harness.written();
    harness.pass(Duration::from_secs(5));
    assert!(harness.written()[0].contains("\"initialize\""));
    let before = harness.engine.fingerprint();
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#);
    assert_eq!(harness.engine.fingerprint(), before);
    assert_eq!(harness.engine.ledger().late_answers, 1);
}
