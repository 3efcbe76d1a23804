//! **deadline-covers-all**.

use super::*;

#[test]
fn a_deadline_starts_with_the_call_and_covers_the_queue() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    assert_eq!(
        harness.engine.poll_timeout(),
        Some(Time::START + Duration::from_secs(60))
    );
}

#[test]
fn a_deadline_fires_on_time_with_a_peer_that_has_stopped_reading() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.begin();
    harness.ask(Ask {
        idle: Wait::AtMost(Duration::from_millis(200)),
        total: Wait::Forever,
        ..Ask::new("tools/call", RawJson::empty_object())
    });
    harness.pass(Duration::from_millis(200));
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            sent: Sent::Never,
            ..
        }
    ));
}

#[test]
fn progress_does_not_reset_the_total_clock() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    for value in 1..=20 {
        harness.pass(Duration::from_secs(30));
        harness.hear(&progress_of("1", value));
    }
    let ends = harness.ends();
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
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    harness.hear(&progress_of("1", 5));
    harness.pass(Duration::from_secs(59));
    harness.hear(&progress_of("1", 5));
    harness.pass(Duration::from_secs(1));
    assert!(matches!(
        harness.ends()[0].1,
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
    assert_eq!(harness.engine.ledger().stale_progress, 1);
}

#[test]
fn the_idle_clock_stands_still_while_we_owe_an_answer() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    harness.pass(Duration::from_secs(40));
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#);
    let form = harness.started();
    harness.pass(Duration::from_secs(300));
    assert!(harness.ends().is_empty());
    harness.respond(form);
    harness.pass(Duration::from_secs(19));
    assert!(harness.ends().is_empty());
    harness.pass(Duration::from_secs(1));
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
}

#[test]
fn the_total_clock_never_stands_still() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#);
    harness.started();
    harness.pass(Duration::from_secs(600));
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            clock: Clock::Total,
            ..
        }
    ));
}

#[test]
fn a_call_made_while_we_owe_an_answer_starts_with_its_idle_clock_paused() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}"#);
    let form = harness.started();
    harness.call("tools/call");
    harness.written();
    harness.pass(Duration::from_secs(100));
    assert!(harness.ends().is_empty());
    harness.respond(form);
    harness.pass(Duration::from_secs(60));
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
}

#[test]
fn an_answer_that_waits_in_a_full_pipe_does_not_pause_the_clock() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.call("tools/call");
    harness.written();
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    harness.pass(Duration::from_secs(60));
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
}

#[test]
fn a_server_that_calls_back_has_an_idle_clock() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.ask(Ask {
        serves: Some(key),
        ..Ask::new("roots/list", RawJson::empty_object())
    });
    harness.written();
    harness.pass(Duration::from_secs(60));
    assert!(matches!(
        harness.only_end(),
        Outcome::TimedOut {
            clock: Clock::Idle,
            ..
        }
    ));
}

#[test]
fn none_has_to_be_said() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    harness.ask(Ask {
        idle: Wait::Forever,
        total: Wait::Forever,
        ..Ask::new("tools/call", RawJson::empty_object())
    });
    assert_eq!(harness.engine.poll_timeout(), None);
}

#[test]
fn a_listen_has_no_deadline_unless_it_says_so() {
    let mut harness = Harness::client(Era::Modern, Wire::Pipe);
    harness.call("subscriptions/listen");
    assert_eq!(harness.engine.poll_timeout(), None);
}

#[test]
fn a_cancel_keeps_its_slot_on_a_stalled_pipe() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let calls: Vec<CallId> = (0..50).map(|_| harness.call("tools/call")).collect();
    for _ in 0..50 {
        harness.begin();
    }
    for call in calls {
        harness.cancel(call);
    }
    harness.pass(Duration::from_secs(3600));
    for _ in 0..50 {
        harness.finish();
    }
    assert_eq!(harness.written().len(), 50);
}

#[test]
fn only_cancels_overtake() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let first = harness.call("tools/call");
    harness.begin();
    harness.call("tools/list");
    harness.cancel(first);
    harness.finish();
    let frames = harness.written();
    assert!(frames[0].contains("notifications/cancelled"));
    assert!(frames[1].contains("tools/list"));
}

#[test]
fn a_form_has_no_idle_deadline() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    harness.ask(Ask {
        serves: Some(key),
        ..Ask::new("elicitation/create", RawJson::empty_object())
    });
    assert_eq!(
        harness.engine.poll_timeout(),
        Some(Time::START + Duration::from_secs(600))
    );
}

#[test]
fn a_form_with_a_total_deadline_of_its_own_still_has_no_idle_one() {
    let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
    let key = harness.start("1");
    let five_minutes = Duration::from_secs(300);
    harness.ask(Ask {
        serves: Some(key),
        total: Wait::AtMost(five_minutes),
        ..Ask::new("elicitation/create", RawJson::empty_object())
    });
    assert_eq!(
        harness.engine.poll_timeout(),
        Some(Time::START + five_minutes)
    );
}
