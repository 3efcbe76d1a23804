//! Server-sent events, as used on HTTP.
//!
//! Follows the "event stream" section of the HTML standard, with one difference: an event without
//! data is returned if it has an `id` or a `retry`, because MCP prepares a stream for reconnection
//! with such an event.

use bytes::{Buf, Bytes, BytesMut};

use super::Oversize;
use super::lines::{Skipping, skip_byte_order_mark};

/// One event of a stream.
///
/// ```
/// use belay_protocol::framing::{SseDecoder, SseEvent};
///
/// let event = SseEvent { id: Some("7-1".into()), ..SseEvent::message("{}") };
/// let mut stream = SseDecoder::new(1024);
/// stream.push(&event.encode());
/// assert_eq!(stream.next_event().unwrap().unwrap(), event);
/// ```
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct SseEvent {
    /// The id to resume after, if the event has one.
    pub id: Option<String>,
    /// The type of the event; `None` means `message`.
    pub event: Option<String>,
    /// The payload: the `data` lines, joined by newlines.
    pub data: Bytes,
    /// The delay before reconnecting in milliseconds, if the event has one.
    pub retry: Option<u64>,
}

impl SseEvent {
    /// An event of the default type with this payload.
    pub fn message(data: impl Into<Bytes>) -> Self {
        Self {
            data: data.into(),
            ..Self::default()
        }
    }

    /// Encodes the event. Every event has at least one `data` line.
    ///
    /// `id` and `event` must not contain line breaks; everything after one is dropped.
    pub fn encode(&self) -> Bytes {
        let mut out = self.head(self.data.len());
        for line in lines(&self.data) {
            push_field(&mut out, "data", line);
        }
        out.push(b'\n');
        out.into()
    }

    /// Encodes the event in three parts, some of which may be empty. The payload is not copied, so
    /// that many streams can share one large event.
    ///
    /// ```
    /// use belay_protocol::framing::SseEvent;
    ///
    /// let event = SseEvent::message("{}");
    /// assert_eq!(event.parts().concat(), event.encode());
    /// ```
    pub fn parts(&self) -> [Bytes; 3] {
        // A payload of several lines has to be copied.
        if line_end(&self.data).is_some() {
            return [self.encode(), Bytes::new(), Bytes::new()];
        }
        let mut head = self.head(0);
        head.extend_from_slice(b"data: ");
        [head.into(), self.data.clone(), Bytes::from_static(b"\n\n")]
    }

    /// The fields before the payload, with this much capacity reserved for the payload.
    fn head(&self, room: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(room + 64);
        if let Some(event) = &self.event {
            push_field(&mut out, "event", first_line(event));
        }
        if let Some(id) = &self.id {
            push_field(&mut out, "id", first_line(id));
        }
        if let Some(retry) = self.retry {
            push_field(&mut out, "retry", retry.to_string().as_bytes());
        }
        out
    }
}

fn push_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.push(b'\n');
}

fn first_line(text: &str) -> &[u8] {
    lines(text.as_bytes()).next().unwrap_or_default()
}

/// Splits at `\r\n`, `\n` and `\r`, as a decoder will.
fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = line_end(text) else {
            rest = None;
            return Some(text);
        };
        let skip = if text[end..].starts_with(b"\r\n") {
            2
        } else {
            1
        };
        rest = Some(&text[end + skip..]);
        Some(&text[..end])
    })
}

fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
}

/// A line whose beginning was skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MidLine {
    Data,
    Other,
}

/// Splits a byte stream into events.
///
/// Lines may end in `\n`, `\r\n` or `\r`. Comments and unknown fields are skipped. An event over
/// the limit is skipped to its end. It is reported as soon as its id and kind are known, otherwise
/// at its end.
#[derive(Debug)]
pub struct SseDecoder {
    buffer: BytesMut,
    searched: usize,
    limit: usize,
    event: SseEvent,
    data: BytesMut,
    has_data: bool,
    /// Bytes of the current event, including the skipped ones.
    size: usize,
    /// The current event is over the limit and is being skipped.
    skipping: Option<Skipping>,
    /// The beginning of the current line was skipped, so the line is not blank.
    mid_line: Option<MidLine>,
    /// The last line ended in `\r`, so a `\n` right after it belongs to the same line end.
    after_cr: bool,
    at_start: bool,
    comments: usize,
}

impl SseDecoder {
    /// Creates a decoder for events of at most `limit` bytes, including field names.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            event: SseEvent::default(),
            data: BytesMut::new(),
            has_data: false,
            size: 0,
            skipping: None,
            mid_line: None,
            after_cr: false,
            at_start: true,
            comments: 0,
        }
    }

    /// How many comments were skipped so far. A server sends comments as keep-alives.
    pub fn comments(&self) -> usize {
        self.comments
    }

    /// Appends bytes to the buffer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event, or a report of a skipped one; `None` if more bytes are needed.
    ///
    /// An event that is cut off by the end of the stream is never returned.
    pub fn next_event(&mut self) -> Option<Result<SseEvent, Oversize>> {
        while let Some(line) = self.next_line() {
            let rest_of = self.mid_line.take();
            if line.is_empty() && rest_of.is_none() {
                if let Some(event) = self.dispatch() {
                    return Some(event);
                }
            } else {
                self.size += line.len();
                match self.size <= self.limit {
                    true => self.field(&line),
                    false => _ = self.skip(&line, rest_of),
                }
            }
        }
        let skipping = self.skipping.as_mut()?;
        skipping.report(self.limit, false).map(Err)
    }

    /// What is known of the current event, if it is over the limit.
    pub fn over_limit(&self) -> Option<Oversize> {
        let skipping = self.skipping.as_ref()?;
        Some(skipping.oversize(self.limit))
    }

    /// Skips a line, or a part of one, of an event that is over the limit.
    fn skip(&mut self, line: &[u8], rest_of: Option<MidLine>) -> MidLine {
        let skipping = self.skipping.get_or_insert_with(|| {
            let mut skipping = Skipping::default();
            skipping.skim.push(&self.data.split());
            skipping
        });
        let (kind, value) = match (rest_of, line.strip_prefix(b"data:")) {
            (Some(kind), _) => (kind, line),
            (None, Some(value)) => (MidLine::Data, value),
            (None, None) => (MidLine::Other, line),
        };
        if kind == MidLine::Data {
            skipping.skim.push(value);
        }
        kind
    }

    fn next_line(&mut self) -> Option<BytesMut> {
        if !skip_byte_order_mark(&mut self.buffer, &mut self.at_start) {
            return None;
        }
        if self.after_cr && self.buffer.first() == Some(&b'\n') {
            self.buffer.advance(1);
            self.searched = self.searched.saturating_sub(1);
            self.after_cr = false;
        }
        let Some(end) = line_end(&self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            self.drop_if_over_limit();
            return None;
        };
        let line = self.buffer.split_to(self.searched + end);
        self.after_cr = self.buffer[0] == b'\r';
        self.buffer.advance(1);
        self.searched = 0;
        Some(line)
    }

    fn drop_if_over_limit(&mut self) {
        let has_room = self.buffer.len() <= self.limit.saturating_sub(self.size);
        // A field name is kept whole, so that the kind of field that is skipped is known.
        let is_name = self.mid_line.is_none() && self.buffer.len() < b"data:".len();
        if !has_room && !is_name {
            self.size += self.buffer.len();
            let part = self.buffer.split();
            self.mid_line = Some(self.skip(&part, self.mid_line));
            self.searched = 0;
            self.after_cr = false;
        }
    }

    fn field(&mut self, line: &[u8]) {
        let colon = line.iter().position(|byte| *byte == b':');
        if colon == Some(0) {
            self.comments += 1;
            return;
        }
        let (name, value) = match colon {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.data.extend_from_slice(b"\n");
                }
                self.data.extend_from_slice(value);
            }
            b"event" => self.event.event = Some(lossy(value)),
            b"id" if !value.contains(&0) => self.event.id = Some(lossy(value)),
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                self.event.retry = lossy(value).parse().ok();
            }
            _ => {}
        }
    }

    fn dispatch(&mut self) -> Option<Result<SseEvent, Oversize>> {
        self.size = 0;
        let mut event = std::mem::take(&mut self.event);
        let data = self.data.split().freeze();
        self.has_data = false;
        if let Some(mut skipping) = self.skipping.take() {
            return skipping.report(self.limit, true).map(Err);
        }
        event.event = event.event.filter(|name| !name.is_empty());
        event.data = data;
        let says_something = !event.data.is_empty() || event.id.is_some() || event.retry.is_some();
        says_something.then_some(Ok(event))
    }
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
