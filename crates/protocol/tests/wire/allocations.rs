//! A request in a steady state allocates what goes onto the wire, and nothing else.

use std::time::Duration;

use allocation_counter::measure;
use belay_protocol::engine::{Ask, Config, Engine, Event, ExchangeId, Mode, Time, Wire};
use belay_protocol::jsonrpc::{RawJson, decode};
use belay_protocol::types::{ClientCapabilities, Implementation, ServerCapabilities};
use bytes::Bytes;

const LINK: ExchangeId = ExchangeId::LINK;

/// A modern `tools/call` of about three hundred bytes.
const CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hello, is anybody there?"},"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;

fn serve(engine: &mut Engine, frame: &Bytes, result: &RawJson) {
    let now = Time::START;
    let message = decode(frame, 64).expect("it is well formed");
    engine.handle_message(now, LINK, message);
    let Some(Event::Request(incoming)) = engine.poll_event() else {
        panic!("a request should start");
    };
    engine.respond(now, incoming.key, Ok(result.clone()));
    while engine.poll_transmit().is_some() {}
    engine.begin_write(now, LINK);
    engine.handle_write_done(now, LINK);
}

#[test]
fn a_request_that_is_served_allocates_its_answer_only() {
    let me = Implementation::new("server", "1");
    let mut engine = Engine::new(Config::server(me, ServerCapabilities::new(), Wire::Pipe));
    let frame = Bytes::from_static(CALL.as_bytes());
    let text = r#"{"resultType":"complete","content":[{"type":"text","text":"hi"}]}"#;
    let result = RawJson::parse(text).unwrap();
    for _ in 0..10 {
        serve(&mut engine, &frame, &result);
    }
    // The result becomes shared by being cloned; that happened above.
    let used = measure(|| {
        for _ in 0..100 {
            serve(&mut engine, &frame, &result);
        }
    });
    assert_eq!(used.count_total, 100, "one for each answer");
    assert_eq!(used.count_current, 0, "and nothing is kept");
}

#[test]
fn a_call_allocates_its_frame_only() {
    let me = Implementation::new("client", "1");
    let mut engine = Engine::new(Config::client(me, ClientCapabilities::new(), Wire::Pipe));
    engine.connect(Time::START, Mode::Legacy);
    engine.begin_write(Time::START, LINK);
    engine.handle_write_done(Time::START, LINK);
    let introduction = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}"#;
    let hear = |engine: &mut Engine, text: String| {
        let message = decode(&Bytes::from(text), 64).expect("it is well formed");
        engine.handle_message(Time::START, LINK, message);
    };
    hear(&mut engine, introduction.into());
    let mut round = |number: i64| {
        let ask = Ask::new("tools/list", RawJson::empty_object());
        let answer = format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{{}}}}"#);
        let used = measure(|| {
            engine
                .request(Time::START, ask)
                .expect("the call should begin");
            while engine.poll_transmit().is_some() {}
            engine.begin_write(Time::START, LINK);
            engine.handle_write_done(Time::START, LINK);
        });
        hear(&mut engine, answer);
        while engine.poll_event().is_some() {}
        engine.handle_timeout(Time::START + Duration::from_secs(1));
        used.count_total
    };
    for number in 2..20 {
        round(number);
    }
    // The frame, and the count of those who share it: it is not as large as it might have been.
    assert_eq!(round(20), 2);
}
