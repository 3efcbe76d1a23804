//! Every pair of events that can race, in both orders.

use super::*;

/// A legacy client on a pipe with one call written.
fn asked() -> (Desk, CallId) {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    let call = desk.call("tools/call");
    desk.written();
    (desk, call)
}

/// A legacy server on a pipe with one handler running.
fn serving() -> (Desk, RequestKey) {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    let key = desk.start("1");
    (desk, key)
}

fn is_cancel_for(frames: &[String], id: &str) -> bool {
    let named = format!(r#""params":{{"requestId":{id}"#);
    frames.len() == 1 && frames[0].contains("notifications/cancelled") && frames[0].contains(&named)
}

// ── answer and cancel ──

#[test]
fn answer_then_cancel_is_answered_and_nothing_is_announced() {
    let (mut desk, call) = asked();
    desk.hear(&answer_to("1"));
    desk.cancel(call);
    assert!(matches!(desk.only_end(), Outcome::Answered(_)));
    assert!(desk.written().is_empty());
}

#[test]
fn cancel_then_answer_is_cancelled_and_the_answer_is_late() {
    let (mut desk, call) = asked();
    desk.cancel(call);
    desk.hear(&answer_to("1"));
    let outcome = desk.only_end();
    assert!(matches!(
        outcome,
        Outcome::Cancelled {
            by: By::Caller,
            sent: Sent::Maybe,
            ..
        }
    ));
    assert!(is_cancel_for(&desk.written(), "1"));
    assert_eq!(desk.engine.ledger().late_answers, 1);
}

// ── answer and timeout ──

#[test]
fn answer_then_timeout_is_answered() {
    let (mut desk, _) = asked();
    desk.hear(&answer_to("1"));
    desk.pass(Duration::from_secs(1000));
    assert!(matches!(desk.only_end(), Outcome::Answered(_)));
    assert!(desk.written().is_empty());
}

#[test]
fn timeout_then_answer_is_timed_out_and_announced() {
    let (mut desk, _) = asked();
    desk.pass(Duration::from_secs(60));
    desk.hear(&answer_to("1"));
    let outcome = desk.only_end();
    assert!(matches!(
        outcome,
        Outcome::TimedOut {
            clock: Clock::Idle,
            sent: Sent::Maybe,
            ..
        }
    ));
    assert!(is_cancel_for(&desk.written(), "1"));
}

// ── cancel and timeout ──

#[test]
fn cancel_then_timeout_announces_once() {
    let (mut desk, call) = asked();
    desk.cancel(call);
    desk.pass(Duration::from_secs(1000));
    assert!(matches!(desk.only_end(), Outcome::Cancelled { .. }));
    assert!(is_cancel_for(&desk.written(), "1"));
}

#[test]
fn timeout_then_cancel_announces_once() {
    let (mut desk, call) = asked();
    desk.pass(Duration::from_secs(60));
    desk.cancel(call);
    assert!(matches!(desk.only_end(), Outcome::TimedOut { .. }));
    assert!(is_cancel_for(&desk.written(), "1"));
}

#[test]
fn cancel_then_cancel_announces_once() {
    let (mut desk, call) = asked();
    desk.cancel(call);
    desk.cancel(call);
    assert!(matches!(desk.only_end(), Outcome::Cancelled { .. }));
    assert!(is_cancel_for(&desk.written(), "1"));
}

// ── cancel and the write of the request ──

#[test]
fn cancel_then_write_takes_the_request_out_of_the_queue() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    let call = desk.call("tools/call");
    desk.cancel(call);
    assert!(desk.written().is_empty());
    assert!(matches!(
        desk.only_end(),
        Outcome::Cancelled {
            sent: Sent::Never,
            ..
        }
    ));
}

#[test]
fn write_begun_then_cancel_announces_after_the_request() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    let call = desk.call("tools/call");
    desk.begin();
    desk.cancel(call);
    assert!(matches!(
        desk.only_end(),
        Outcome::Cancelled {
            sent: Sent::Maybe,
            ..
        }
    ));
    desk.finish();
    assert!(is_cancel_for(&desk.written(), "1"));
}

#[test]
fn timeout_then_write_takes_the_request_out_of_the_queue() {
    let mut desk = Desk::client(Era::Modern, Wire::Pipe);
    desk.call("tools/call");
    desk.pass(Duration::from_secs(60));
    assert!(desk.written().is_empty());
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            sent: Sent::Never,
            ..
        }
    ));
}

#[test]
fn write_begun_then_timeout_announces() {
    let mut desk = Desk::client(Era::Modern, Wire::Pipe);
    desk.call("tools/call");
    desk.begin();
    desk.pass(Duration::from_secs(60));
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            sent: Sent::Maybe,
            ..
        }
    ));
    desk.finish();
    assert!(is_cancel_for(&desk.written(), "1"));
}

// ── cancel and close ──

#[test]
fn cancel_then_link_lost_is_cancelled() {
    let (mut desk, call) = asked();
    desk.cancel(call);
    desk.lose_link();
    assert!(matches!(desk.only_end(), Outcome::Cancelled { .. }));
    assert!(desk.written().is_empty());
}

#[test]
fn link_lost_then_cancel_is_lost() {
    let (mut desk, call) = asked();
    desk.lose_link();
    desk.cancel(call);
    assert!(matches!(
        desk.only_end(),
        Outcome::Lost {
            sent: Sent::Maybe,
            ..
        }
    ));
}

#[test]
fn answer_then_link_lost_is_answered() {
    let (mut desk, _) = asked();
    desk.hear(&answer_to("1"));
    desk.lose_link();
    assert!(matches!(desk.only_end(), Outcome::Answered(_)));
}

#[test]
fn link_lost_then_answer_is_lost() {
    let (mut desk, _) = asked();
    desk.lose_link();
    desk.hear(&answer_to("1"));
    assert!(matches!(desk.only_end(), Outcome::Lost { .. }));
}

#[test]
fn timeout_then_link_lost_is_timed_out() {
    let (mut desk, _) = asked();
    desk.pass(Duration::from_secs(60));
    desk.lose_link();
    assert!(matches!(desk.only_end(), Outcome::TimedOut { .. }));
}

#[test]
fn link_lost_then_timeout_is_lost() {
    let (mut desk, _) = asked();
    desk.lose_link();
    desk.pass(Duration::from_secs(60));
    assert!(matches!(desk.only_end(), Outcome::Lost { .. }));
}

#[test]
fn answer_then_shutdown_is_answered() {
    let (mut desk, _) = asked();
    desk.hear(&answer_to("1"));
    desk.engine.shutdown(desk.now, Shutdown::Now);
    assert!(matches!(desk.only_end(), Outcome::Answered(_)));
}

#[test]
fn shutdown_then_answer_is_cancelled_by_the_shutdown() {
    let (mut desk, _) = asked();
    desk.engine.shutdown(desk.now, Shutdown::Now);
    desk.hear(&answer_to("1"));
    assert!(matches!(
        desk.only_end(),
        Outcome::Cancelled {
            by: By::Shutdown,
            ..
        }
    ));
    assert!(is_cancel_for(&desk.written(), "1"));
}

// ── progress and the clocks ──

#[test]
fn progress_then_idle_deadline_waits_for_the_new_one() {
    let (mut desk, _) = asked();
    desk.pass(Duration::from_secs(59));
    desk.hear(&progress_of("1", 1));
    desk.pass(Duration::from_secs(59));
    assert!(desk.ends().is_empty());
    desk.pass(Duration::from_secs(1));
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            sent: Sent::Yes,
            ..
        }
    ));
}

#[test]
fn idle_deadline_then_progress_is_timed_out() {
    let (mut desk, _) = asked();
    desk.pass(Duration::from_secs(60));
    desk.hear(&progress_of("1", 1));
    let events = desk.events();
    assert!(matches!(
        events.as_slice(),
        [Event::Ended {
            outcome: Outcome::TimedOut { .. },
            ..
        }]
    ));
    assert_eq!(desk.engine.ledger().stray_progress, 1);
}

#[test]
fn progress_then_cancel_was_sent() {
    let (mut desk, call) = asked();
    desk.hear(&progress_of("1", 1));
    desk.cancel(call);
    assert!(matches!(
        desk.ends()[0].1,
        Outcome::Cancelled {
            sent: Sent::Yes,
            ..
        }
    ));
}

#[test]
fn cancel_then_progress_is_not_told() {
    let (mut desk, call) = asked();
    desk.cancel(call);
    desk.hear(&progress_of("1", 1));
    assert!(matches!(desk.events().as_slice(), [Event::Ended { .. }]));
}

#[test]
fn idle_and_total_deadline_at_once_is_the_total_one() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    let minute = Wait::AtMost(Duration::from_secs(60));
    desk.ask(Ask {
        idle: minute,
        total: minute,
        ..Ask::new("tools/call", RawJson::empty_object())
    });
    desk.pass(Duration::from_secs(60));
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            clock: Clock::Total,
            ..
        }
    ));
}

#[test]
fn answer_then_answer_is_answered_once() {
    let (mut desk, _) = asked();
    desk.hear(&answer_to("1"));
    desk.hear(&error_for("1"));
    assert!(matches!(desk.only_end(), Outcome::Answered(_)));
    assert_eq!(desk.engine.ledger().late_answers, 1);
}

// ── the answering side: respond and cancel ──

#[test]
fn respond_then_cancel_withdraws_the_answer() {
    let (mut desk, key) = serving();
    desk.respond(key);
    desk.hear(&cancel_of("1"));
    assert!(desk.written().is_empty());
    assert_eq!(desk.engine.ledger().requests.ended_as(End::Cancelled), 1);
}

#[test]
fn cancel_then_respond_says_nothing() {
    let (mut desk, key) = serving();
    desk.hear(&cancel_of("1"));
    desk.respond(key);
    assert!(desk.written().is_empty());
    assert_eq!(desk.engine.ledger().silenced, 1);
}

#[test]
fn write_of_the_answer_then_cancel_finishes_the_answer() {
    let (mut desk, key) = serving();
    desk.respond(key);
    desk.begin();
    desk.hear(&cancel_of("1"));
    desk.finish();
    let requests = &desk.engine.ledger().requests;
    assert_eq!(
        (requests.ended_as(End::Answered), requests.in_flight()),
        (1, 0)
    );
    assert_eq!(desk.engine.ledger().stray_cancels, 1);
}

#[test]
fn progress_then_cancel_withdraws_the_progress() {
    let (mut desk, key) = serving();
    desk.engine
        .progress(desk.now, key, 1.0, None, None)
        .unwrap();
    desk.hear(&cancel_of("1"));
    assert!(desk.written().is_empty());
}

#[test]
fn cancel_then_progress_says_nothing() {
    let (mut desk, key) = serving();
    desk.hear(&cancel_of("1"));
    desk.engine
        .progress(desk.now, key, 1.0, None, None)
        .unwrap();
    assert!(desk.written().is_empty());
}

#[test]
fn start_then_cancel_stops_the_handler() {
    let (mut desk, key) = serving();
    desk.hear(&cancel_of("1"));
    let events = desk.events();
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
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    desk.hear(&tool_call("1"));
    desk.hear(&cancel_of("1"));
    assert!(desk.events().is_empty());
    assert_eq!(desk.engine.handlers(), 0);
}

#[test]
fn cancel_then_cancel_stops_once() {
    let (mut desk, _) = serving();
    desk.hear(&cancel_of("1"));
    desk.hear(&cancel_of("1"));
    assert_eq!(desk.events().len(), 2);
    assert_eq!(desk.engine.ledger().stray_cancels, 1);
}

#[test]
fn handler_gone_then_cancel_withdraws_the_error() {
    let (mut desk, key) = serving();
    desk.engine.handler_gone(desk.now, key);
    desk.hear(&cancel_of("1"));
    assert!(desk.written().is_empty());
}

#[test]
fn cancel_then_handler_gone_says_nothing() {
    let (mut desk, key) = serving();
    desk.hear(&cancel_of("1"));
    desk.engine.handler_gone(desk.now, key);
    assert!(desk.written().is_empty());
}

// ── respond and the end of the link, of a deadline, of a grace ──

#[test]
fn respond_then_link_lost_writes_nothing() {
    let (mut desk, key) = serving();
    desk.respond(key);
    desk.lose_link();
    assert!(desk.written().is_empty());
    assert_eq!(desk.engine.ledger().requests.ended_as(End::Lost), 1);
}

#[test]
fn link_lost_then_respond_writes_nothing() {
    let (mut desk, key) = serving();
    desk.lose_link();
    desk.respond(key);
    assert!(desk.written().is_empty());
    assert!(desk.engine.is_closed());
}

#[test]
fn respond_then_deadline_answers_once() {
    let (mut desk, key) = serving();
    let late = RawJson::parse(r#"{"late":true}"#).unwrap();
    desk.engine
        .set_deadline(desk.now, key, Duration::from_secs(1), late);
    desk.respond(key);
    desk.pass(Duration::from_secs(2));
    let frames = desk.written();
    assert!(frames.len() == 1 && !frames[0].contains("late"));
}

#[test]
fn deadline_then_respond_answers_in_the_handlers_stead() {
    let (mut desk, key) = serving();
    let late = RawJson::parse(r#"{"late":true}"#).unwrap();
    desk.engine
        .set_deadline(desk.now, key, Duration::from_secs(1), late);
    desk.pass(Duration::from_secs(2));
    desk.respond(key);
    let frames = desk.written();
    assert!(frames.len() == 1 && frames[0].contains("late"));
    let cause = StopCause::Deadline;
    assert!(matches!(&desk.events()[0], Event::Stop { cause: seen, .. } if *seen == cause));
}

#[test]
fn respond_then_end_of_grace_aborts_nobody() {
    let (mut desk, key) = serving();
    desk.engine.grant_grace(key, None);
    desk.hear(&cancel_of("1"));
    desk.respond(key);
    desk.pass(Duration::from_secs(2));
    assert!(matches!(desk.events().as_slice(), [Event::Stop { .. }]));
}

#[test]
fn end_of_grace_then_respond_was_aborted() {
    let (mut desk, key) = serving();
    desk.engine.grant_grace(key, None);
    desk.hear(&cancel_of("1"));
    desk.pass(Duration::from_secs(2));
    desk.respond(key);
    assert!(matches!(
        desk.events().as_slice(),
        [Event::Stop { .. }, Event::Abort { .. }]
    ));
    assert_eq!(desk.engine.handlers(), 0);
}

#[test]
fn respond_then_end_of_input_is_answered() {
    let (mut desk, key) = serving();
    desk.respond(key);
    desk.engine.handle_input_ended(desk.now, LINK);
    assert_eq!(desk.written().len(), 1);
    assert!(desk.engine.is_closed());
}

#[test]
fn end_of_input_then_respond_is_answered_while_draining() {
    let (mut desk, key) = serving();
    desk.engine.handle_input_ended(desk.now, LINK);
    desk.pass(Duration::from_millis(900));
    desk.respond(key);
    assert_eq!(desk.written().len(), 1);
    assert!(desk.engine.is_closed());
}

#[test]
fn end_of_drain_then_respond_says_nothing() {
    let (mut desk, key) = serving();
    desk.engine.handle_input_ended(desk.now, LINK);
    desk.pass(Duration::from_secs(1));
    desk.respond(key);
    assert!(desk.written().is_empty());
}

// ── a child call and its parent ──

#[test]
fn child_answered_then_parent_cancelled_announces_nothing() {
    let (mut desk, key) = serving();
    desk.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    desk.written();
    desk.hear(&answer_to("1"));
    desk.hear(&cancel_of("1"));
    assert!(desk.written().is_empty());
}

#[test]
fn parent_cancelled_then_child_answered_announces_the_child() {
    let (mut desk, key) = serving();
    desk.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    desk.written();
    desk.hear(&cancel_of("1"));
    desk.hear(&answer_to("1"));
    assert!(is_cancel_for(&desk.written(), "1"));
    assert_eq!(desk.engine.ledger().late_answers, 1);
}

#[test]
fn parent_answered_then_child_is_given_up() {
    let (mut desk, key) = serving();
    desk.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    desk.written();
    desk.respond(key);
    let frames = desk.written();
    assert!(frames[0].contains("notifications/cancelled") && frames[1].contains("result"));
}

// ── the era probe and `initialize` ──

#[test]
fn late_answer_to_the_probe_after_initialize_is_inert() {
    let mut desk = Desk::new(client_config(Wire::Pipe));
    desk.engine.connect(desk.now, Mode::Auto);
    desk.written();
    desk.pass(Duration::from_secs(5));
    assert!(desk.written()[0].contains("\"initialize\""));
    let before = desk.engine.fingerprint();
    desk.hear(r#"{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}"#);
    assert_eq!(desk.engine.fingerprint(), before);
    assert_eq!(desk.engine.ledger().late_answers, 1);
}
