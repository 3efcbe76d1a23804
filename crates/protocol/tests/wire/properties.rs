//! Properties of envelopes and frames, on whatever proptest comes up with.

use belay_protocol::framing::{LineDecoder, SseDecoder, SseEvent};
use belay_protocol::jsonrpc::{
    ErrorObject, Message, Notification, RawJson, Request, RequestId, Response, decode,
};
use bytes::Bytes;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::Value;

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = RawJson> {
    btree_map(any::<String>(), json(), 0..4)
        .prop_map(|map| RawJson::encode(&map).expect("a map of values is JSON"))
}

fn id() -> impl Strategy<Value = RequestId> {
    prop_oneof![
        any::<i64>().prop_map(RequestId::from),
        any::<String>().prop_map(|text| RequestId::from(&*text)),
    ]
}

fn error() -> impl Strategy<Value = ErrorObject> {
    let data = proptest::option::of(json());
    (any::<i64>(), any::<String>(), data).prop_map(|(code, message, data)| {
        let error = ErrorObject::new(code, message);
        match data {
            Some(data) => error.with_data(RawJson::encode(&data).expect("a value is JSON")),
            None => error,
        }
    })
}

fn message() -> impl Strategy<Value = Message> {
    let params = || proptest::option::of(object());
    prop_oneof![
        (id(), any::<String>(), params())
            .prop_map(|(id, method, params)| Request::new(id, &method, params).into()),
        (any::<String>(), params())
            .prop_map(|(method, params)| Notification::new(&method, params).into()),
        (id(), object()).prop_map(|(id, result)| Response {
            id,
            body: Ok(result)
        }
        .into()),
        (id(), error()).prop_map(|(id, error)| Response {
            id,
            body: Err(error)
        }
        .into()),
        error().prop_map(Message::Unaddressed),
    ]
}

/// Cuts `bytes` at the given places.
fn cut<'a>(bytes: &'a [u8], places: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places
        .iter()
        .map(|place| place % (bytes.len() + 1))
        .collect();
    places.sort_unstable();
    let mut pieces = Vec::new();
    let mut from = 0;
    for to in places {
        pieces.push(&bytes[from..to]);
        from = to;
    }
    pieces.push(&bytes[from..]);
    pieces
}

proptest! {
    #[test]
    fn messages_survive_a_round_trip(message in message()) {
        let encoded = message.encode();
        prop_assert!(!encoded.contains(&b'\n'));
        prop_assert_eq!(decode(&encoded, 64).expect("we wrote it"), message);
    }

    #[test]
    fn what_we_accept_serde_json_accepts_and_the_other_way_round(text in "[\\[\\]{}:,\"0-9a-z\\\\ .eEu+-]{0,40}") {
        let ours = RawJson::parse(text.clone());
        let theirs = serde_json::from_str::<&serde_json::value::RawValue>(&text);
        // Lone surrogates are the one thing we are stricter about than their raw values.
        let surrogate = text.contains("\\ud");
        prop_assert!(ours.is_ok() == theirs.is_ok() || surrogate, "{:?} {:?}", ours, theirs);
    }

    #[test]
    fn no_bytes_make_the_decoder_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode(&Bytes::from(bytes), 8);
    }

    #[test]
    fn lines_cut_anywhere_are_the_same_lines(
        messages in vec(message(), 0..5),
        places in vec(any::<usize>(), 0..10),
    ) {
        let mut stream = Vec::new();
        for message in &messages {
            stream.extend_from_slice(&message.encode());
            stream.push(b'\n');
        }
        let mut decoder = LineDecoder::new(1 << 20);
        let mut read = Vec::new();
        for piece in cut(&stream, &places) {
            decoder.push(piece);
            while let Some(line) = decoder.next_line() {
                read.push(decode(&line.expect("within the limit"), 64).expect("we wrote it"));
            }
        }
        prop_assert_eq!(read, messages);
        prop_assert_eq!(decoder.finish(), None);
    }

    #[test]
    fn events_cut_anywhere_are_the_same_events(
        messages in vec((message(), proptest::option::of("[!-~]{1,8}")), 0..5),
        places in vec(any::<usize>(), 0..10),
    ) {
        let events: Vec<SseEvent> = messages
            .into_iter()
            .map(|(message, id)| SseEvent { id, ..SseEvent::message(message.encode()) })
            .collect();
        let stream: Vec<u8> = events.iter().flat_map(SseEvent::encode).collect();
        let mut decoder = SseDecoder::new(1 << 20);
        let mut read = Vec::new();
        for piece in cut(&stream, &places) {
            decoder.push(piece);
            while let Some(event) = decoder.next_event() {
                read.push(event.expect("within the limit"));
            }
        }
        prop_assert_eq!(read, events);
    }
}
