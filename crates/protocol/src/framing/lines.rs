//! Newline-delimited frames, as on stdio.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use crate::jsonrpc::{DecodeError, DecodeFault, Kind, RequestId, Skim};

/// A longer line is a part of the buffer that it was read into.
const COPIED: usize = 4 << 10;

/// Splits a byte stream into lines.
///
/// Blank lines and a byte-order mark at the very start are passed over, `\r\n` ends a line like
/// `\n`. A line over the limit is skipped to its newline, and reported as soon as it is known which
/// request it speaks of, at its end otherwise; the next line is read as if nothing had happened.
///
/// ```
/// use belay_protocol::framing::LineDecoder;
///
/// let mut lines = LineDecoder::new(1024);
/// lines.push(b"{\"a\":1}\r\n\n{\"b\"");
/// assert_eq!(lines.next_line().unwrap().unwrap(), "{\"a\":1}");
/// assert!(lines.next_line().is_none());
/// lines.push(b":2}\n");
/// assert_eq!(lines.next_line().unwrap().unwrap(), "{\"b\":2}");
/// ```
#[derive(Debug)]
pub struct LineDecoder {
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    searched: usize,
    limit: usize,
    /// An oversized line whose newline is still to come.
    skipping: Option<Skipping>,
    at_start: bool,
}

/// What is thrown away, and what was found in it.
#[derive(Clone, Default, Debug)]
pub(super) struct Skipping {
    pub(super) skim: Skim,
    /// It was reported.
    reported: bool,
}

impl Skipping {
    /// What to report now: once, as soon as all is known, or at the end.
    pub(super) fn report(&mut self, limit: usize, ended: bool) -> Option<Oversize> {
        let due = !self.reported && (ended || self.skim.is_known());
        self.reported |= due;
        due.then(|| self.oversize(limit))
    }

    pub(super) fn oversize(&self, limit: usize) -> Oversize {
        Oversize {
            limit,
            id: self.skim.id().cloned(),
            looks_like: self.skim.looks_like(),
        }
    }
}

/// A message that was longer than the limit, and is gone.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message of more than {limit} bytes was skipped")]
pub struct Oversize {
    /// How long it might have been.
    pub limit: usize,
    /// Its id, if that was found.
    pub id: Option<RequestId>,
    /// What it was meant to be, as far as that could be told.
    pub looks_like: Kind,
}

impl From<Oversize> for DecodeError {
    fn from(oversize: Oversize) -> Self {
        let limit = oversize.limit;
        Self {
            id: oversize.id,
            looks_like: oversize.looks_like,
            ..DecodeFault::TooLong { limit }.into()
        }
    }
}

/// Some editors and shells put a byte-order mark at the start of a stream: takes it away. False as
/// long as it cannot be told whether there is one.
pub(super) fn skip_byte_order_mark(buffer: &mut BytesMut, at_start: &mut bool) -> bool {
    const MARK: &[u8] = b"\xEF\xBB\xBF";
    if *at_start && buffer.starts_with(MARK) {
        buffer.advance(MARK.len());
    } else if *at_start && MARK.starts_with(buffer) {
        return false;
    }
    *at_start = false;
    true
}

impl LineDecoder {
    /// A decoder for lines of at most `limit` bytes, the newline not counted.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            skipping: None,
            at_start: true,
        }
    }

    /// Takes in bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The buffer itself, for readers that can fill it without a copy. Only append to it.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next whole line, or what was skipped in its place; `None` if more bytes are needed.
    pub fn next_line(&mut self) -> Option<Result<Bytes, Oversize>> {
        if !skip_byte_order_mark(&mut self.buffer, &mut self.at_start) {
            return None;
        }
        loop {
            let unsearched = &self.buffer[self.searched..];
            let Some(newline) = memchr(b'\n', unsearched) else {
                self.searched = self.buffer.len();
                return self.drop_if_over_limit().map(Err);
            };
            let end = self.searched + newline;
            self.searched = 0;
            if self.is_oversize(&self.buffer[..end]) {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                match self.end_skipping(&line) {
                    Some(oversize) => return Some(Err(oversize)),
                    None => continue,
                }
            }
            let line = self.take(end);
            self.buffer.advance(1);
            if !line.is_empty() {
                return Some(Ok(line));
            }
        }
    }

    /// What stands after the last newline, once the stream has ended.
    ///
    /// A JSON object cannot be the beginning of a longer one, so a tail that decodes was complete.
    pub fn finish(&mut self) -> Option<Result<Bytes, Oversize>> {
        self.searched = 0;
        if self.is_oversize(&self.buffer) {
            let tail = self.buffer.split();
            return self.end_skipping(&tail).map(Err);
        }
        let tail = self.take(self.buffer.len());
        (!tail.is_empty()).then_some(Ok(tail))
    }

    /// Takes so many bytes, which are a line, without the rest of its end. A short one is copied: it
    /// may live long, and would keep all that was read with it alive.
    fn take(&mut self, length: usize) -> Bytes {
        let line = stripped(&self.buffer[..length]);
        if line.len() > COPIED {
            let kept = line.len();
            return self.buffer.split_to(length).freeze().slice(..kept);
        }
        let line = Bytes::copy_from_slice(line);
        self.buffer.advance(length);
        line
    }

    /// Whether this line, with what was skipped of it, is over the limit.
    fn is_oversize(&self, line: &[u8]) -> bool {
        let length = line.len() - usize::from(line.ends_with(b"\r"));
        self.skipping.is_some() || length > self.limit
    }

    fn end_skipping(&mut self, rest: &[u8]) -> Option<Oversize> {
        let mut skipping = self.skipping.take().unwrap_or_default();
        skipping.skim.push(rest);
        skipping.report(self.limit, true)
    }

    /// Keeps at most one line's worth of bytes. One byte more may be the `\r` of its end.
    fn drop_if_over_limit(&mut self) -> Option<Oversize> {
        if self.buffer.len() <= self.limit + 1 && self.skipping.is_none() {
            return None;
        }
        let skipping = self.skipping.get_or_insert_default();
        skipping.skim.push(&self.buffer);
        self.buffer.clear();
        self.searched = 0;
        skipping.report(self.limit, false)
    }
}

/// The line without the rest of its end; nothing if that was all.
fn stripped(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.trim_ascii_start() {
        [] => &[],
        _ => line,
    }
}
