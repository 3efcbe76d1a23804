//! How long the pure parts take, without any I/O: `cargo bench -p belay-protocol`.
//!
//! Figures are nanoseconds for one operation, the median of many batches. For a count that is the
//! same on every machine: `valgrind --tool=callgrind` on the binary with the name of one line and a
//! number of rounds, once with N and once with 2N; the difference is N operations.

use std::hint::black_box;
use std::time::Instant;

use belay_protocol::engine::{Config, Engine, Event, ExchangeId, Time, Wire};
use belay_protocol::framing::LineDecoder;
use belay_protocol::jsonrpc::{Message, RawJson, Response, decode};
use belay_protocol::types::{Implementation, ServerCapabilities};
use bytes::Bytes;

const LINK: ExchangeId = ExchangeId::LINK;

/// Two hundred bytes.
const LEGACY_CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"convert_time","arguments":{"source":"Europe/Berlin","time":"16:30","target":"America/New_York"},"_meta":{"progressToken":7,"x":"12345"}}}"#;
const MODERN_CALL: &str = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"convert_time","arguments":{"source":"Europe/Berlin","time":"16:30","target":"America/New_York"},"_meta":{"progressToken":7,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}"#;
const RESULT: &str =
    r#"{"content":[{"type":"text","text":"10:30 in New York, six hours behind"}],"isError":false}"#;
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let only = arguments.first();
    let rounds = arguments.get(1).and_then(|rounds| rounds.parse().ok());
    let run = |name: &str, operation: &mut dyn FnMut()| match (only, rounds) {
        (Some(only), _) if only != name => {}
        (_, Some(rounds)) => (0..rounds).for_each(|_: u64| operation()),
        _ => println!("{name:<28} {:>8.0} ns", median(operation)),
    };

    let legacy = Bytes::from_static(LEGACY_CALL.as_bytes());
    let modern = Bytes::from_static(MODERN_CALL.as_bytes());
    let result = RawJson::parse(RESULT).expect("it is JSON");
    let response = Message::from(Response {
        id: 7.into(),
        body: Ok(result.clone()),
    });
    run("decode-envelope", &mut || {
        black_box(decode(black_box(&legacy), 64).expect("it is well formed"));
    });
    run("serde-json-raw-values", &mut || {
        black_box(raw_values(black_box(LEGACY_CALL)));
    });
    run("encode-response", &mut || {
        black_box(black_box(&response).encode());
    });
    let mut lines = LineDecoder::new(1 << 22);
    run("read-line", &mut || {
        lines.push(black_box(LEGACY_CALL.as_bytes()));
        lines.push(b"\n");
        black_box(lines.next_line());
    });
    let mut server = server();
    run("round-trip-legacy", &mut || {
        serve(&mut server, &legacy, &result)
    });
    run("round-trip-modern", &mut || {
        serve(&mut server, &modern, &result)
    });
}

/// What `serde_json` does with the same text, if it only finds out where things are: a bar for
/// `decode-envelope`, which also keeps ids as they came, checks the depth and finds the members of
/// `params`.
fn raw_values(text: &str) -> Envelope<'_> {
    serde_json::from_str(text).expect("it is well formed")
}

#[derive(serde::Deserialize)]
#[expect(dead_code, reason = "it is only read")]
struct Envelope<'a> {
    jsonrpc: &'a str,
    #[serde(borrow)]
    id: &'a serde_json::value::RawValue,
    method: &'a str,
    #[serde(borrow)]
    params: &'a serde_json::value::RawValue,
}

fn server() -> Engine {
    let me = Implementation::new("server", "1");
    let mut engine = Engine::new(Config::server(me, ServerCapabilities::new(), Wire::Pipe));
    let initialize = decode(&INITIALIZE.into(), 64).expect("it is well formed");
    engine.handle_message(Time::START, LINK, initialize);
    engine.begin_write(Time::START, LINK);
    engine.handle_write_done(Time::START, LINK);
    engine
}

/// Request in, response out: decoded, admitted, handled, encoded, written.
fn serve(engine: &mut Engine, frame: &Bytes, result: &RawJson) {
    let now = Time::START;
    let message = decode(black_box(frame), 64).expect("it is well formed");
    engine.handle_message(now, LINK, message);
    let Some(Event::Request(incoming)) = engine.poll_event() else {
        panic!("a request should start");
    };
    engine.respond(now, incoming.key, Ok(result.clone()));
    while engine.poll_transmit().is_some() {}
    black_box(engine.queued(LINK).next());
    engine.begin_write(now, LINK);
    engine.handle_write_done(now, LINK);
}

fn median(operation: &mut dyn FnMut()) -> f64 {
    const BATCH: u32 = 2_000;
    let mut batches: Vec<f64> = (0..101)
        .map(|_| {
            let start = Instant::now();
            (0..BATCH).for_each(|_| operation());
            start.elapsed().as_nanos() as f64 / f64::from(BATCH)
        })
        .collect();
    batches.sort_by(f64::total_cmp);
    batches[batches.len() / 2]
}
