//! **deadline-covers-all**.

use super::*;

#[test]
fn a_deadline_starts_with_the_call_and_covers_the_queue() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.call("tools/call");
    assert_eq!(
        desk.engine.poll_timeout(),
        Some(Time::START + Duration::from_secs(60))
    );
}

#[test]
fn a_deadline_fires_on_time_with_a_peer_that_has_stopped_reading() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.call("tools/call");
    desk.begin();
    desk.ask(Ask {
        idle: Wait::AtMost(Duration::from_millis(200)),
        total: Wait::Forever,
        ..Ask::new("tools/call", RawJson::empty_object())
    });
    desk.pass(Duration::from_millis(200));
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            sent: Sent::Never,
            ..
        }
    ));
}

#[test]
fn progress_does_not_reset_the_total_clock() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.call("tools/call");
    desk.written();
    for value in 1..=20 {
        desk.pass(Duration::from_secs(30));
        desk.hear(&progress_of("1", value));
    }
    let ends = desk.ends();
    assert!(matches!(
        ends[0].1,
        Outcome::TimedOut {
            clock: Clock::Total,
            sent: Sent::Yes,
            ..
        }
    ));
}

#[test]
fn progress_that_does_not_grow_resets_nothing() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.call("tools/call");
    desk.written();
    desk.hear(&progress_of("1", 5));
    desk.pass(Duration::from_secs(59));
    desk.hear(&progress_of("1", 5));
    desk.pass(Duration::from_secs(1));
    assert!(matches!(
        desk.ends()[0].1,
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
    assert_eq!(desk.engine.ledger().stale_progress, 1);
}

#[test]
fn the_idle_clock_stands_still_while_we_owe_an_answer() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.call("tools/call");
    desk.written();
    desk.pass(Duration::from_secs(40));
    desk.hear(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#);
    let form = desk.started();
    desk.pass(Duration::from_secs(300));
    assert!(desk.ends().is_empty());
    desk.respond(form);
    desk.pass(Duration::from_secs(19));
    assert!(desk.ends().is_empty());
    desk.pass(Duration::from_secs(1));
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
}

#[test]
fn the_total_clock_never_stands_still() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.call("tools/call");
    desk.written();
    desk.hear(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#);
    desk.started();
    desk.pass(Duration::from_secs(600));
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            clock: Clock::Total,
            ..
        }
    ));
}

#[test]
fn a_call_made_while_we_owe_an_answer_starts_with_its_idle_clock_paused() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.hear(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#);
    let form = desk.started();
    desk.call("tools/call");
    desk.written();
    desk.pass(Duration::from_secs(100));
    assert!(desk.ends().is_empty());
    desk.respond(form);
    desk.pass(Duration::from_secs(60));
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
}

#[test]
fn an_answer_that_waits_in_a_full_pipe_does_not_pause_the_clock() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.call("tools/call");
    desk.written();
    desk.hear(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    desk.pass(Duration::from_secs(60));
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
}

#[test]
fn a_server_that_calls_back_has_an_idle_clock() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    let key = desk.start("1");
    desk.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    desk.written();
    desk.pass(Duration::from_secs(60));
    assert!(matches!(
        desk.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
}

#[test]
fn none_has_to_be_said() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    desk.ask(Ask {
        idle: Wait::Forever,
        total: Wait::Forever,
        ..Ask::new("tools/call", RawJson::empty_object())
    });
    assert_eq!(desk.engine.poll_timeout(), None);
}

#[test]
fn a_listen_has_no_deadline_unless_it_says_so() {
    let mut desk = Desk::client(Era::Modern, Wire::Pipe);
    desk.call("subscriptions/listen");
    assert_eq!(desk.engine.poll_timeout(), None);
}

#[test]
fn a_cancel_keeps_its_slot_on_a_stalled_pipe() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    let calls: Vec<CallId> = (0..50).map(|_| desk.call("tools/call")).collect();
    for _ in 0..50 {
        desk.begin();
    }
    for call in calls {
        desk.cancel(call);
    }
    desk.pass(Duration::from_secs(3600));
    for _ in 0..50 {
        desk.finish();
    }
    assert_eq!(desk.written().len(), 50);
}

#[test]
fn only_cancels_overtake() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    let first = desk.call("tools/call");
    desk.begin();
    desk.call("tools/list");
    desk.cancel(first);
    desk.finish();
    let frames = desk.written();
    assert!(frames[0].contains("notifications/cancelled"));
    assert!(frames[1].contains("tools/list"));
}

#[test]
fn a_form_has_no_idle_deadline() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    let key = desk.start("1");
    desk.ask(Ask {
        serves: Some(key),
        ..Ask::new("elicitation/create", RawJson::empty_object())
    });
    assert_eq!(
        desk.engine.poll_timeout(),
        Some(Time::START + Duration::from_secs(600))
    );
}

#[test]
fn a_form_with_a_total_deadline_of_its_own_still_has_no_idle_one() {
    let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
    let key = desk.start("1");
    let five_minutes = Duration::from_secs(300);
    desk.ask(Ask {
        serves: Some(key),
        total: Wait::AtMost(five_minutes),
        ..Ask::new("elicitation/create", RawJson::empty_object())
    });
    assert_eq!(desk.engine.poll_timeout(), Some(Time::START + five_minutes));
}
