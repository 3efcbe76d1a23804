//! Newline-delimited frames, as on stdio.

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr;

use crate::jsonrpc::{DecodeError, DecodeFault, Kind, RequestId, Skim};

/// A line longer than this shares the memory of the buffer; a shorter one is copied.
const COPIED: usize = 4 << 10;

/// Splits a byte stream into lines.
///
/// Blank lines and a byte-order mark at the start are skipped, and `\r\n` ends a line like `\n`. A
/// line over the limit is skipped to its newline. It is reported as soon as its id and kind are
/// known, otherwise at its end. The next line is read normally.
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
    /// How many bytes of the buffer have been searched for a newline.
    searched: usize,
    limit: usize,
    /// An oversized line whose newline has not come yet.
    skipping: Option<Skipping>,
    at_start: bool,
}

/// An oversized frame that is being skipped, and what is known of it.
#[derive(Clone, Default, Debug)]
pub(super) struct Skipping {
    pub(super) skim: Skim,
    /// Whether it was reported.
    reported: bool,
}

impl Skipping {
    /// The report, if it is due: once, as soon as everything is known, otherwise at the end.
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

/// A message that was longer than the limit and was skipped.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a message of more than {limit} bytes was skipped")]
pub struct Oversize {
    /// The limit.
    pub limit: usize,
    /// Its id, if found.
    pub id: Option<RequestId>,
    /// The kind of message, as far as known.
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

/// Removes a byte-order mark, which some editors and shells put at the start of a stream. Returns
/// false while there are too few bytes to decide.
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
    /// Creates a decoder for lines of at most `limit` bytes, not counting the newline.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            limit,
            skipping: None,
            at_start: true,
        }
    }

    /// Appends bytes to the buffer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The buffer itself, for readers that can fill it without a copy. Only append to it.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next whole line, or a report of a skipped one; `None` if more bytes are needed.
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

    /// The bytes after the last newline, once the stream has ended.
    ///
    /// No JSON object is the beginning of a longer one, so a tail that decodes is complete.
    pub fn finish(&mut self) -> Option<Result<Bytes, Oversize>> {
        self.searched = 0;
        if self.is_oversize(&self.buffer) {
            let tail = self.buffer.split();
            return self.end_skipping(&tail).map(Err);
        }
        let tail = self.take(self.buffer.len());
        (!tail.is_empty()).then_some(Ok(tail))
    }

    /// Takes a line of this length, without the `\r` at its end. A short line is copied: it may
    /// live long, and would keep the whole buffer alive.
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

    /// Whether this line, including its skipped part, is over the limit.
    fn is_oversize(&self, line: &[u8]) -> bool {
        let length = line.len() - usize::from(line.ends_with(b"\r"));
        self.skipping.is_some() || length > self.limit
    }

    fn end_skipping(&mut self, rest: &[u8]) -> Option<Oversize> {
        let mut skipping = self.skipping.take().unwrap_or_default();
        skipping.skim.push(rest);
        skipping.report(self.limit, true)
    }

    /// Drops an unfinished line that is over the limit. One byte more is allowed, which may be a
    /// `\r`.
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

/// The line without its `\r`; empty if it is blank.
fn stripped(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    match line.trim_ascii_start() {
        [] => &[],
        _ => line,
    }
}
