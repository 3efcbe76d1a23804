//! Lines and events: how the bytes were cut never shows.

use belay_protocol::framing::{LineDecoder, Oversize, SseDecoder, SseEvent};
use belay_protocol::jsonrpc::Kind;

type Line = Result<String, Oversize>;

/// Something too long in which nothing was found.
fn oversize(limit: usize) -> Oversize {
    Oversize {
        limit,
        id: None,
        looks_like: Kind::Unknown,
    }
}

/// An answer that is too long.
fn oversize_answer(limit: usize, id: i64) -> Oversize {
    Oversize {
        limit,
        id: Some(id.into()),
        looks_like: Kind::Response,
    }
}

fn lines_of(pieces: &[&[u8]], limit: usize) -> Vec<Line> {
    let mut decoder = LineDecoder::new(limit);
    let mut lines = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(line) = decoder.next_line() {
            lines.push(line.map(|line| String::from_utf8_lossy(&line).into_owned()));
        }
    }
    let tail = decoder.finish();
    lines.extend(tail.map(|line| line.map(|line| String::from_utf8_lossy(&line).into_owned())));
    lines
}

fn whole(text: &[u8], limit: usize) -> Vec<Line> {
    lines_of(&[text], limit)
}

fn ok(lines: &[&str]) -> Vec<Line> {
    lines.iter().map(|line| Ok((*line).to_owned())).collect()
}

#[test]
fn lines_end_with_a_newline_and_blank_ones_are_passed_over() {
    assert_eq!(whole(b"a\nb\r\n\n \t\r\n\r\nc", 100), ok(&["a", "b", "c"]));
    assert_eq!(whole(b"", 100), []);
    assert_eq!(whole(b"\n\n\n", 100), []);
}

#[test]
fn a_byte_order_mark_is_passed_over_at_the_start_only() {
    assert_eq!(whole(b"\xEF\xBB\xBFa\n", 100), ok(&["a"]));
    assert_eq!(whole(b"\xEF\xBB\xBF\na\n", 100), ok(&["a"]));
    assert_eq!(whole(b"a\n\xEF\xBB\xBFb\n", 100), ok(&["a", "\u{FEFF}b"]));
}

#[test]
fn a_line_over_the_limit_is_skipped_and_the_next_is_read() {
    assert_eq!(
        whole(b"12345\n123456\n12345\r\nab\n", 5),
        [
            Ok("12345".into()),
            Err(oversize(5)),
            Ok("12345".into()),
            Ok("ab".into())
        ]
    );
    assert_eq!(
        whole(b"123456789\nx\n", 5),
        [Err(oversize(5)), Ok("x".into())]
    );
    assert_eq!(whole(b"123456789", 5), [Err(oversize(5))]);
}

#[test]
fn a_line_over_the_limit_is_reported_as_soon_as_it_is_known_whose_it_is() {
    let mut decoder = LineDecoder::new(100);
    decoder.push(br#"{"jsonrpc":"2.0","id":7,"result":{"text":""#);
    assert_eq!(decoder.next_line(), None);
    decoder.push(&[b'x'; 100]);
    let answer = oversize_answer(100, 7);
    assert_eq!(decoder.next_line(), Some(Err(answer.clone())));
    decoder.push(&[b'x'; 1000]);
    assert_eq!(decoder.next_line(), None, "it is reported once");
    decoder.push(b"\"}}\nnext\n");
    assert_eq!(decoder.next_line().unwrap().unwrap(), "next");

    // Some write the id last.
    decoder.push(br#"{"result":{"text":""#);
    decoder.push(&[b'x'; 1000]);
    assert_eq!(decoder.next_line(), None);
    decoder.push(b"\"},\"jsonrpc\":\"2.0\",\"id\":7}\nnext\n");
    assert_eq!(decoder.next_line(), Some(Err(answer)));
    assert_eq!(decoder.next_line().unwrap().unwrap(), "next");
}

#[test]
fn an_event_over_the_limit_is_reported_as_soon_as_it_is_known_whose_it_is() {
    let mut decoder = SseDecoder::new(100);
    decoder.push(br#"data: {"jsonrpc":"2.0","id":7,"result":{"text":""#);
    assert_eq!(decoder.next_event(), None);
    assert_eq!(decoder.over_limit(), None);
    decoder.push(&[b'x'; 100]);
    assert_eq!(decoder.next_event(), Some(Err(oversize_answer(100, 7))));
    assert_eq!(decoder.over_limit(), Some(oversize_answer(100, 7)));
    decoder.push(&[b'x'; 1000]);
    assert_eq!(decoder.next_event(), None, "it is reported once");
    decoder.push(b"\"}}\n\ndata: next\n\n");
    assert_eq!(decoder.next_event(), Some(Ok(message("next"))));
}

#[test]
fn an_endless_line_is_not_kept() {
    let mut decoder = LineDecoder::new(1000);
    for _ in 0..10_000 {
        decoder.push(&[b'x'; 1000]);
        assert!(decoder.next_line().is_none());
        assert!(decoder.buffer().len() <= 2001);
    }
    decoder.push(b"\nnext\n");
    assert_eq!(decoder.next_line(), Some(Err(oversize(1000))));
    assert_eq!(decoder.next_line().unwrap().unwrap(), "next");
}

#[test]
fn lines_split_at_every_byte_are_the_same_lines() {
    for text in [
        &b"{\"a\":1}\n{\"b\":\"\xC3\xA9\"}\r\n\r\n{\"c\":3}"[..],
        b"\xEF\xBB\xBF{}\r\n\xEF\xBB\xBF\n",
        b"short\nmuch too long a line\r\nshort\r\n",
        b"0123456789abc\r\n0123456789ab\r\n0123456789\r\n",
        br#"{"id":7,"result":{"text":"0123456789"}}"#,
        b"{\"result\":{\"text\":\"0123456789\"},\"id\":7}\r\nnext\n",
        b"\r\n\r\r\n\n",
    ] {
        for limit in [3, 10, 12, 100] {
            let expected = whole(text, limit);
            for at in 0..=text.len() {
                assert_eq!(
                    lines_of(&[&text[..at], &text[at..]], limit),
                    expected,
                    "{at} {limit}"
                );
            }
            let single: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(lines_of(&single, limit), expected, "{limit}");
        }
    }
}

fn events_of(pieces: &[&[u8]], limit: usize) -> Vec<Result<SseEvent, Oversize>> {
    let mut decoder = SseDecoder::new(limit);
    let mut events = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        while let Some(event) = decoder.next_event() {
            events.push(event);
        }
    }
    events
}

fn message(data: &str) -> SseEvent {
    SseEvent::message(data.to_owned())
}

#[test]
fn events_have_their_fields() {
    let text = b": comment\nevent: endpoint\nid: 7\nretry: 1500\ndata: one\ndata:two\ndata\n\n";
    assert_eq!(
        events_of(&[text], 1000),
        [Ok(SseEvent {
            id: Some("7".into()),
            event: Some("endpoint".into()),
            data: "one\ntwo\n".into(),
            retry: Some(1500),
        })]
    );
}

#[test]
fn lines_of_events_end_in_any_of_three_ways() {
    for end in ["\n", "\r", "\r\n"] {
        let text = format!("data: a{end}data: b{end}{end}data: c{end}{end}");
        let expected = [Ok(message("a\nb")), Ok(message("c"))];
        assert_eq!(events_of(&[text.as_bytes()], 1000), expected, "{end:?}");
    }
}

#[test]
fn an_event_that_only_primes_a_stream_is_given_out() {
    let id = |id: &str| SseEvent {
        id: Some(id.into()),
        ..SseEvent::default()
    };
    assert_eq!(events_of(&[b"id: 1\ndata:\n\n"], 100), [Ok(id("1"))]);
    assert_eq!(events_of(&[b"id: 1\ndata: \n\n"], 100), [Ok(id("1"))]);
    let retry = SseEvent {
        retry: Some(5),
        ..SseEvent::default()
    };
    assert_eq!(events_of(&[b"retry: 5\n\n"], 100), [Ok(retry)]);
}

#[test]
fn what_says_nothing_is_no_event() {
    for text in [
        "\n\n\n",
        ": keep-alive\n\n",
        "data\n\n",
        "event: x\n\n",
        "retry: soon\n\n",
        "foo: bar\n\n",
    ] {
        assert_eq!(events_of(&[text.as_bytes()], 100), [], "{text:?}");
    }
}

#[test]
fn an_id_with_a_nul_is_no_id() {
    let events = events_of(&[b"id: a\0b\ndata: x\n\n"], 100);
    assert_eq!(events, [Ok(message("x"))]);
}

#[test]
fn an_event_that_is_cut_off_is_not_given_out() {
    assert_eq!(
        events_of(&[b"data: a\n\ndata: b\n"], 100),
        [Ok(message("a"))]
    );
}

#[test]
fn a_byte_order_mark_before_the_first_event_is_passed_over() {
    assert_eq!(
        events_of(&[b"\xEF\xBB\xBFdata: a\n\n"], 100),
        [Ok(message("a"))]
    );
}

#[test]
fn the_parts_of_an_event_are_the_event_and_its_data_is_shared() {
    let full = SseEvent {
        id: Some("1-2".into()),
        event: Some("endpoint".into()),
        retry: Some(5),
        ..message("data")
    };
    for event in [
        full,
        message(""),
        message("one"),
        message("a\nb"),
        message("a\r\nb\r"),
        SseEvent::default(),
    ] {
        assert_eq!(event.parts().concat(), event.encode(), "{event:?}");
    }
    let event = message("shared");
    assert_eq!(event.parts()[1].as_ptr(), event.data.as_ptr());
}

#[test]
fn an_event_over_the_limit_is_skipped_and_the_next_is_read() {
    let text = b"data: 0123456789\n\ndata: 01234\ndata: 56789\nid: 1\n\ndata: ok\n\n";
    assert_eq!(
        events_of(&[text], 12),
        [Err(oversize(12)), Err(oversize(12)), Ok(message("ok"))]
    );
}

#[test]
fn an_endless_event_is_not_kept() {
    let mut decoder = SseDecoder::new(1000);
    for _ in 0..10_000 {
        decoder.push(&[b'x'; 1000]);
        assert!(decoder.next_event().is_none());
    }
    decoder.push(b"\n\ndata: next\n\n");
    assert_eq!(decoder.next_event(), Some(Err(oversize(1000))));
    assert_eq!(decoder.next_event(), Some(Ok(message("next"))));
}

#[test]
fn events_split_at_every_byte_are_the_same_events() {
    for text in [
        &b"\xEF\xBB\xBFevent: a\r\nid: 1\rdata: x\n\r\n: c\r\rdata: \xC3\xA9\r\ndata: z\r\n\r\n"[..],
        b"data: 0123456789\n\ndata: ok\r\n\r\ndata: 0123456789012\r\rid: 4\n\n",
        b"\xEF\xBB\xBFdata: 0123456789\ndata: 0123456789\n\nretry: 10\n\n",
        b"data: a\n\n\n\r\r\n\ndata\n\n:\n\n",
        b"data: {\"result\":{\"text\":\"0123456789\"},\ndata: \"id\":7}\nid: 3\n\ndata: ok\n\n",
    ] {
        for limit in [4, 14, 20, 1000] {
            let expected = events_of(&[text], limit);
            for at in 0..=text.len() {
                let pieces = [&text[..at], &text[at..]];
                assert_eq!(events_of(&pieces, limit), expected, "{at} {limit}");
            }
            let single: Vec<&[u8]> = text.chunks(1).collect();
            assert_eq!(events_of(&single, limit), expected, "{limit}");
        }
    }
}

#[test]
fn what_is_encoded_is_decoded_again() {
    let event = SseEvent {
        id: Some("a-1".into()),
        event: Some("message".into()),
        data: "one\ntwo\r\nthree\rfour".into(),
        retry: Some(9),
    };
    let read = events_of(&[&event.encode()], 1000);
    let expected = SseEvent {
        data: "one\ntwo\nthree\nfour".into(),
        ..event
    };
    assert_eq!(read, [Ok(expected)]);
}

#[test]
fn an_id_cannot_smuggle_in_another_field() {
    let event = SseEvent {
        id: Some("1\ndata: forged".into()),
        ..message("true")
    };
    let read = events_of(&[&event.encode()], 1000);
    assert_eq!(
        read,
        [Ok(SseEvent {
            id: Some("1".into()),
            ..message("true")
        })]
    );
}
