//! The application's data in the engine's tables: it exists as long as its entry, is returned at
//! the end of that, and is nowhere afterwards.

use std::sync::Arc;

use super::*;

type Kept = Option<Arc<str>>;
type Keeping = Engine<Kept, Kept, Kept>;

const NOW: Time = Time::START;

fn client(wire: Wire) -> Keeping {
    let mut engine = Keeping::carrying(client_config(wire));
    engine.handshake = Handshake::Legacy(ProtocolVersion::LATEST_LEGACY);
    engine
}

fn server() -> Keeping {
    let mut engine = Keeping::carrying(server_config(Wire::Pipe));
    engine.handshake = Handshake::Legacy(ProtocolVersion::LATEST_LEGACY);
    engine
}

fn hear(engine: &mut Keeping, json: &str) {
    let frame = Bytes::copy_from_slice(json.as_bytes());
    let message = jsonrpc::decode(&frame, 64).unwrap();
    engine.handle_message(NOW, LINK, message);
}

fn call(engine: &mut Keeping, kept: &Arc<str>) -> CallId {
    let ask = Ask::new("tools/list", RawJson::empty_object());
    let call = engine.request(NOW, ask).unwrap();
    *engine.call_mut(call).unwrap() = Some(kept.clone());
    call
}

fn start(engine: &mut Keeping, kept: &Arc<str>) -> RequestKey {
    hear(engine, &tool_call("1"));
    let Some(Event::Request(incoming)) = engine.poll_event() else {
        panic!("a request should start");
    };
    *engine.handler_mut(incoming.key).unwrap() = Some(kept.clone());
    incoming.key
}

/// However a call ends, its data is returned with the end, and nothing stays behind.
#[test]
fn one_end_gives_back_what_was_kept_for_a_call() {
    type Ending = fn(&mut Keeping, CallId);
    let endings: [(&str, Ending); 4] = [
        ("cancelled", |engine, call| engine.cancel(NOW, call, None)),
        ("lost", |engine, _| {
            engine.handle_link_lost(NOW, LossKind::EndOfStream.into());
        }),
        ("timed out", |engine, _| {
            engine.handle_timeout(NOW + Duration::from_secs(3600));
        }),
        ("answered", |engine, _| {
            hear(engine, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        }),
    ];
    for (how, end) in endings {
        let kept = Arc::<str>::from(how);
        let mut engine = client(Wire::Pipe);
        let call = call(&mut engine, &kept);
        engine.begin_write(NOW, LINK);
        end(&mut engine, call);
        assert!(engine.call_mut(call).is_none(), "{how}");
        let given_back = std::iter::from_fn(|| engine.poll_event()).find_map(|event| match event {
            Event::Ended { caller, .. } => caller,
            _ => None,
        });
        assert_eq!(given_back.as_deref(), Some(how));
        drop(given_back);
        assert_eq!(Arc::strong_count(&kept), 1, "{how}: nothing is kept");
    }
}

/// Progress that is still queued carries the data of its call, even if the call has ended
/// meanwhile.
#[test]
fn progress_before_an_end_comes_with_what_was_kept() {
    let kept = Arc::<str>::from("caller");
    let mut engine = client(Wire::Pipe);
    call(&mut engine, &kept);
    engine.begin_write(NOW, LINK);
    hear(
        &mut engine,
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#,
    );
    hear(&mut engine, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let told = engine.poll_event();
    assert!(
        matches!(&told, Some(Event::Progress { caller: Some(known), .. }) if Arc::ptr_eq(known, &kept))
    );
    drop((told, engine.poll_event()));
    assert_eq!(Arc::strong_count(&kept), 1);
}

/// However a handler ends, its data is returned with the end.
#[test]
fn stop_is_real_and_gives_back_what_was_kept_for_a_handler() {
    type Ending = fn(&mut Keeping, RequestKey) -> Option<Kept>;
    let endings: [(&str, Ending); 3] = [
        ("answered", |engine, key| {
            engine.respond(NOW, key, Ok(done()))
        }),
        ("panicked", |engine, key| engine.handler_gone(NOW, key)),
        ("stopped", |engine, key| {
            engine.handle_link_lost(NOW, LossKind::EndOfStream.into());
            assert!(engine.handler_mut(key).is_some(), "it has not stopped yet");
            engine.handler_gone(NOW, key)
        }),
    ];
    for (how, end) in endings {
        let kept = Arc::<str>::from(how);
        let mut engine = server();
        let key = start(&mut engine, &kept);
        let given_back = end(&mut engine, key);
        assert_eq!(given_back.flatten().as_deref(), Some(how));
        assert!(engine.handler_mut(key).is_none(), "{how}");
        assert_eq!(Arc::strong_count(&kept), 1, "{how}: nothing is kept");
    }
}

/// A thread that goes on after the answer counts as a handler until it is gone.
#[test]
fn a_handler_that_lingers_exists_until_it_is_gone() {
    let kept = Arc::<str>::from("thread");
    let mut engine = server();
    let key = start(&mut engine, &kept);
    engine.handler_lingers(key, true);
    assert_eq!(engine.respond(NOW, key, Ok(done())), None);
    engine.begin_write(NOW, LINK);
    engine.handle_write_done(NOW, LINK);
    assert_eq!(engine.ledger().requests.in_flight(), 0, "it was answered");
    assert_eq!(engine.handlers(), 1, "and goes on");
    assert!(engine.is_quiet(), "but nobody waits for it");
    engine.handler_lingers(key, false);
    assert!(engine.handler_gone(NOW, key).flatten().is_some());
    assert_eq!(engine.handlers(), 0);
    assert_eq!(engine.ledger().requests.in_flight(), 0);
    assert!(engine.is_quiet());
}

/// A thread cannot be stopped, so it must not delay the shutdown either.
#[test]
fn orderly_close_does_not_wait_for_a_handler_that_lingers() {
    let mut engine = server();
    let key = start(&mut engine, &Arc::<str>::from("thread"));
    engine.handler_lingers(key, true);
    engine.respond(NOW, key, Ok(done()));
    engine.begin_write(NOW, LINK);
    engine.handle_write_done(NOW, LINK);
    engine.handle_input_ended(NOW, LINK);
    assert!(engine.is_closed());
    let closed = std::iter::from_fn(|| engine.poll_event()).last();
    assert!(matches!(closed, Some(Event::Closed { overrun: 1, .. })));
}

/// When the driver abandons a link, every call ends and every handler is dropped at once, whatever
/// its grace.
#[test]
fn an_abandoned_link_is_closed_at_once() {
    let mut engine = server();
    let key = start(&mut engine, &Arc::<str>::from("handler"));
    engine.grant_grace(key, Some(Duration::from_secs(60)));
    engine.abandon(NOW);
    let events: Vec<_> = std::iter::from_fn(|| engine.poll_event()).collect();
    assert!(matches!(
        events[..],
        [
            Event::Stop { .. },
            Event::Abort { .. },
            Event::Closed { overrun: 1, .. }
        ]
    ));
    assert!(engine.is_closed());
    engine.abandon(NOW);
    assert!(engine.poll_event().is_none(), "once is enough");
}

/// The transport gets back the data of an exchange when it is told that the exchange is over.
#[test]
fn a_closed_exchange_gives_back_what_was_kept_for_it() {
    let kept = Arc::<str>::from("carrier");
    let mut engine = client(Wire::Http);
    let call = call(&mut engine, &Arc::<str>::from("caller"));
    let Some(Transmit::Write(exchange)) = engine.poll_transmit() else {
        panic!("a POST should be made");
    };
    *engine.exchange_mut(exchange).unwrap() = Some(kept.clone());
    engine.cancel(NOW, call, None);
    assert!(engine.exchange_mut(exchange).is_none());
    let closed = engine.poll_transmit();
    assert!(
        matches!(closed, Some(Transmit::Close { kept: Some(known), .. }) if Arc::ptr_eq(&known, &kept))
    );
    assert_eq!(Arc::strong_count(&kept), 1);
}
