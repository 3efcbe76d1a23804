//! What must hold for every input. The fuzz targets call this, and so do the ordinary tests with
//! the corpus that is kept.
#![allow(dead_code, reason = "each target uses one of these")]

use std::time::Duration;

use belay_protocol::engine::{Ask, Config, Engine, Event, ExchangeId, Mode, Shutdown, Time, Wire};
use belay_protocol::framing::{LineDecoder, SseDecoder};
use belay_protocol::jsonrpc::{Message, RawJson, decode, decode_batch};
use belay_protocol::types::{ClientCapabilities, Implementation, ServerCapabilities};
use bytes::Bytes;

/// What is decoded can be written, has no newline, and is the same when it is decoded again.
pub(crate) fn envelope(input: &[u8]) {
    let frame = Bytes::copy_from_slice(input);
    if let Ok(message) = decode(&frame, 64) {
        #[cfg(belay_planted)]
        if let Message::Request(request) = &message {
            let planted = request.method.contains("notifications/cancelled");
            assert!(!planted, "the planted bug was found");
        }
        let encoded = message.encode();
        assert!(!encoded.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
        assert_eq!(decode(&encoded, 64).expect("we wrote it"), message);
    }
    if let Ok(messages) = decode_batch(&frame, 64, 100) {
        assert!(!messages.is_empty());
    }
    if let Ok(raw) = RawJson::parse(frame) {
        raw.for_each_member(|_, value| assert!(RawJson::parse(value.as_str().to_owned()).is_ok()));
    }
}

/// The first byte says where the rest is cut; the cut must not show.
pub(crate) fn lines(input: &[u8]) {
    let Some((at, text)) = input.split_first() else {
        return;
    };
    let (head, tail) = text.split_at(usize::from(*at) % (text.len() + 1));
    let read = |pieces: &[&[u8]]| {
        let mut decoder = LineDecoder::new(16);
        let mut lines = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            lines.extend(std::iter::from_fn(|| decoder.next_line()));
        }
        lines.extend(decoder.finish());
        lines
    };
    assert_eq!(read(&[head, tail]), read(&[text]));
}

/// The same for server-sent events.
pub(crate) fn events(input: &[u8]) {
    let Some((at, text)) = input.split_first() else {
        return;
    };
    let (head, tail) = text.split_at(usize::from(*at) % (text.len() + 1));
    let read = |pieces: &[&[u8]]| {
        let mut decoder = SseDecoder::new(24);
        let mut events = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            events.extend(std::iter::from_fn(|| decoder.next_event()));
        }
        events
    };
    let events = read(&[text]);
    assert_eq!(read(&[head, tail]), events);
    for event in events.into_iter().flatten() {
        let mut decoder = SseDecoder::new(1 << 16);
        decoder.push(&event.encode());
        let again = decoder
            .next_event()
            .expect("it is whole")
            .expect("it is small");
        assert_eq!((again.id, again.retry), (event.id, event.retry));
    }
}

/// Whatever a peer says, in whatever role, nothing panics, the books balance, and after the close
/// nothing is in flight. The first byte chooses the engine; each line is a message, but `!x` is
/// something that happens on our side.
pub(crate) fn engine(input: &[u8]) {
    let Some((choice, script)) = input.split_first() else {
        return;
    };
    let (mut engine, mut now) = (new_engine(*choice), Time::START);
    let mut exchange = ExchangeId::LINK;
    let mut calls = Vec::new();
    let mut handlers = Vec::new();
    for line in script.split(|byte| *byte == b'\n') {
        match line {
            b"!ask" => {
                let ask = Ask::new("tools/call", RawJson::empty_object());
                calls.extend(engine.request(now, ask));
            }
            b"!cancel" => {
                if let Some(call) = calls.pop() {
                    engine.cancel(now, call, None);
                }
            }
            b"!write" => {
                engine.begin_write(now, exchange);
                engine.handle_write_done(now, exchange);
            }
            b"!respond" => {
                if let Some(key) = handlers.pop() {
                    engine.respond(now, key, Ok(RawJson::empty_object()));
                }
            }
            b"!wait" => {
                now = now + Duration::from_secs(30);
                engine.handle_timeout(now);
            }
            b"!post" => exchange = engine.handle_exchange_opened(),
            b"!end" => engine.handle_input_ended(now, exchange),
            message => match decode(&Bytes::copy_from_slice(message), 64) {
                Ok(message) => engine.handle_message(now, exchange, message),
                Err(error) => engine.handle_malformed(now, exchange, &error),
            },
        }
        while let Some(event) = engine.poll_event() {
            if let Event::Request(incoming) = event {
                handlers.push(incoming.key);
            }
        }
        while engine.poll_transmit().is_some() {}
        for queued in engine.queued(ExchangeId::LINK) {
            assert!(matches!(decode(queued, 512), Ok(message) if is_ours(&message)));
        }
        let ledger = engine.ledger();
        for book in [&ledger.calls, &ledger.requests] {
            assert_eq!(book.started(), book.ended() + book.in_flight());
        }
    }
    engine.shutdown(now, Shutdown::Now);
    for key in handlers {
        engine.handler_gone(now, key);
    }
    engine.handle_timeout(now + Duration::from_secs(10));
    engine.handle_timeout(now + Duration::from_secs(20));
    assert!(engine.is_closed());
    let ledger = engine.ledger();
    assert_eq!(
        (ledger.calls.in_flight(), ledger.requests.in_flight()),
        (0, 0)
    );
    assert_eq!((engine.handlers(), engine.poll_timeout()), (0, None));
}

fn new_engine(choice: u8) -> Engine {
    let wire = if choice & 1 == 0 {
        Wire::Pipe
    } else {
        Wire::Http
    };
    let me = Implementation::new("fuzz", "1");
    if choice & 2 == 0 {
        return Engine::new(Config::server(me, ServerCapabilities::new(), wire));
    }
    let mut engine = Engine::new(Config::client(me, ClientCapabilities::new(), wire));
    let mode = if choice & 4 == 0 {
        Mode::Auto
    } else {
        Mode::Legacy
    };
    engine.connect(Time::START, mode);
    engine
}

fn is_ours(message: &Message) -> bool {
    match message {
        Message::Request(request) => !request.method.is_empty(),
        _ => true,
    }
}
