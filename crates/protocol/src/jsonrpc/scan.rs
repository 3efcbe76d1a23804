//! A validating scanner of JSON text that keeps only positions.
//!
//! It does not recurse. The kind of each open bracket is one bit, so any depth that a peer sends
//! costs a few words of stack.

use std::borrow::Cow;
use std::ops::Range;

/// The highest depth limit that can be set.
pub const MAX_DEPTH: usize = 512;

/// Why the scan stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum Fault {
    #[error("expected {expected} at byte {at}")]
    Syntax { at: usize, expected: &'static str },
    #[error("nested deeper than {limit}")]
    TooDeep { limit: usize },
}

/// The result of a step. A fault is rare and large, so it is boxed, and the usual result fits into
/// registers.
pub(super) type Walk<T> = Result<T, Box<Fault>>;

pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    limit: usize,
    /// The key of the member at which the scan stopped.
    last_key: Option<Written<'a>>,
}

/// A string as written between its quotes, with its escapes.
#[derive(Clone, Copy)]
pub(super) struct Written<'a> {
    text: &'a str,
    start: usize,
    end: usize,
    has_escapes: bool,
}

impl<'a> Written<'a> {
    /// The text with its escapes resolved.
    pub(super) fn unescaped(&self) -> Cow<'a, str> {
        let inner = &self.text[self.range()];
        match self.has_escapes {
            true => unescape(inner),
            false => Cow::Borrowed(inner),
        }
    }

    /// The same as bytes, for comparison.
    pub(super) fn bytes(&self) -> Cow<'a, [u8]> {
        match self.has_escapes {
            true => Cow::Owned(self.unescaped().into_owned().into_bytes()),
            false => Cow::Borrowed(&self.text.as_bytes()[self.range()]),
        }
    }

    pub(super) fn has_escapes(&self) -> bool {
        self.has_escapes
    }

    /// The position of the text between the quotes.
    pub(super) fn range(&self) -> Range<usize> {
        self.start..self.end
    }
}

/// Resolves the escapes of a string. `inner` is the text between its quotes, and was scanned
/// before.
pub(super) fn unescape(inner: &str) -> Cow<'_, str> {
    if !inner.as_bytes().contains(&b'\\') {
        return Cow::Borrowed(inner);
    }
    let quoted = format!("\"{inner}\"");
    Cow::Owned(serde_json::from_str(&quoted).expect("the scanner has checked every escape"))
}

impl<'a> Scanner<'a> {
    pub(super) fn new(text: &'a str, limit: usize) -> Self {
        let limit = limit.min(MAX_DEPTH);
        Self {
            text,
            at: 0,
            limit,
            last_key: None,
        }
    }

    /// Scans one value and the white space before it, and returns the range of the value.
    pub(super) fn value(&mut self) -> Walk<Range<usize>> {
        self.value_within(0)
    }

    /// Checks that nothing but white space is left.
    pub(super) fn end(&mut self) -> Walk<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end of the message")),
        }
    }

    /// Skips white space, and returns the next byte without taking it.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.bytes().get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// The current position.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Scans the next value, an object inside `depth` brackets. The callback gets each key and must
    /// scan its value, for example with [`Scanner::value_within`].
    #[inline]
    pub(super) fn members<E: From<Box<Fault>>>(
        &mut self,
        depth: usize,
        member: impl FnMut(&mut Self, Written<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut last_key = None;
        let walked = self.all_members(depth, &mut last_key, member);
        if walked.is_err() {
            self.last_key = last_key;
        }
        walked
    }

    #[inline]
    fn all_members<E: From<Box<Fault>>>(
        &mut self,
        depth: usize,
        last_key: &mut Option<Written<'a>>,
        mut member: impl FnMut(&mut Self, Written<'a>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.expect(b'{', "an object")?;
        self.check_depth(depth)?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key()?;
            *last_key = Some(key);
            member(self, key)?;
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return Err(self.expected("`,` or `}`").into()),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// The last key that [`Scanner::members`] came to in the outermost object before it failed.
    pub(super) fn last_key(&self) -> Option<Cow<'a, str>> {
        self.last_key.map(|key| key.unescaped())
    }

    /// Scans the next value, an array, and passes its elements to the callback until that returns
    /// false.
    pub(super) fn elements(&mut self, mut element: impl FnMut(Range<usize>) -> bool) -> Walk<()> {
        self.expect(b'[', "an array")?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            if !element(self.value_within(1)?) {
                return Ok(());
            }
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return Err(self.expected("`,` or `]`")),
            }
        }
        self.at += 1;
        Ok(())
    }

    /// Scans the next value, inside `depth` brackets.
    #[inline]
    pub(super) fn value_within(&mut self, depth: usize) -> Walk<Range<usize>> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'"') => _ = self.string_end()?,
            Some(b'{' | b'[') => self.nested(depth)?,
            _ => self.scalar()?,
        }
        Ok(start..self.at)
    }

    /// Scans from an opening bracket to the matching closing one.
    fn nested(&mut self, depth: usize) -> Walk<()> {
        let mut open = Brackets::below(depth);
        loop {
            if self.opening(&mut open)? {
                continue;
            }
            if self.closings(&mut open)? {
                return Ok(());
            }
        }
    }

    /// Scans a scalar or an opening bracket. Returns true if a value must follow.
    #[inline]
    fn opening(&mut self, open: &mut Brackets) -> Walk<bool> {
        match self.peek() {
            Some(b'{') => {
                open.push(Bracket::Object, self.limit)?;
                self.at += 1;
                if self.peek() == Some(b'}') {
                    return Ok(false);
                }
                self.skip_key()?;
                return Ok(true);
            }
            Some(b'[') => {
                open.push(Bracket::Array, self.limit)?;
                self.at += 1;
                return Ok(self.peek() != Some(b']'));
            }
            Some(b'"') => _ = self.string_end()?,
            _ => self.scalar()?,
        }
        Ok(false)
    }

    /// A value that is neither a string nor in brackets.
    fn scalar(&mut self) -> Walk<()> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.literal("true"),
            Some(b'f') => self.literal("false"),
            Some(b'n') => self.literal("null"),
            _ => Err(self.expected("a value")),
        }
    }

    /// Scans what follows a value. Returns true if the outermost value is complete.
    #[inline]
    fn closings(&mut self, open: &mut Brackets) -> Walk<bool> {
        loop {
            let Some(bracket) = open.innermost() else {
                return Ok(true);
            };
            match (bracket, self.peek()) {
                (Bracket::Object, Some(b',')) => {
                    self.at += 1;
                    self.skip_key()?;
                    return Ok(false);
                }
                (Bracket::Array, Some(b',')) => {
                    self.at += 1;
                    return Ok(false);
                }
                (Bracket::Object, Some(b'}')) | (Bracket::Array, Some(b']')) => {
                    self.at += 1;
                    open.pop();
                }
                (Bracket::Object, _) => return Err(self.expected("`,` or `}`")),
                (Bracket::Array, _) => return Err(self.expected("`,` or `]`")),
            }
        }
    }

    #[inline]
    fn key(&mut self) -> Walk<Written<'a>> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key in quotes"));
        }
        let start = self.at + 1;
        let has_escapes = self.string_end()?;
        let end = self.at - 1;
        self.expect(b':', "`:`")?;
        Ok(Written {
            text: self.text,
            start,
            end,
            has_escapes,
        })
    }

    /// Scans a key without keeping it.
    #[inline]
    fn skip_key(&mut self) -> Walk<()> {
        if self.peek() != Some(b'"') {
            return Err(self.expected("a key in quotes"));
        }
        self.string_end()?;
        self.expect(b':', "`:`")
    }

    /// Scans a string and validates its escapes. Returns whether it has any.
    fn string_end(&mut self) -> Walk<bool> {
        let bytes = self.bytes();
        let mut at = self.at + 1;
        let mut has_escapes = false;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let plain = plain_run(rest);
            at += plain;
            match rest.get(plain) {
                Some(b'"') => {
                    self.at = at + 1;
                    return Ok(has_escapes);
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.at = at;
                    self.escape()?;
                    at = self.at;
                }
                other => {
                    self.at = at;
                    return Err(self.expected(match other {
                        Some(_) => "no control character in a string",
                        None => "the end of a string",
                    }));
                }
            }
        }
    }

    #[cold]
    fn escape(&mut self) -> Walk<()> {
        match self.bytes().get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 2;
                Ok(())
            }
            Some(b'u') => self.unicode_escape(),
            _ => Err(self.expected("an escape that JSON knows")),
        }
    }

    /// Scans one `\uXXXX`, or a surrogate pair for a character outside the basic plane. A lone
    /// surrogate has no meaning, and decoders disagree on it, so it is refused here.
    fn unicode_escape(&mut self) -> Walk<()> {
        match self.hex_escape()? {
            0xD800..=0xDBFF => match self.hex_escape() {
                Ok(0xDC00..=0xDFFF) => Ok(()),
                _ => Err(self.expected("the second half of a surrogate pair")),
            },
            0xDC00..=0xDFFF => Err(self.expected("the first half of a surrogate pair")),
            _ => Ok(()),
        }
    }

    fn hex_escape(&mut self) -> Walk<u32> {
        let digits = self
            .bytes()
            .get(self.at..self.at + 6)
            .and_then(|escape| escape.strip_prefix(b"\\u"))
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .ok_or_else(|| self.expected("`\\u` and four hexadecimal digits"))?;
        self.at += 6;
        Ok(digits.iter().fold(0, |code, digit| {
            code * 16 + char::from(*digit).to_digit(16).expect("checked above")
        }))
    }

    fn number(&mut self) -> Walk<()> {
        let bytes = self.bytes();
        if bytes[self.at] == b'-' {
            self.at += 1;
        }
        match bytes.get(self.at) {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.expected("a digit")),
        }
        if bytes.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(bytes.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(bytes.get(self.at), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        match bytes.get(self.at) {
            Some(b'0'..=b'9') => Err(self.expected("no digit after a leading zero")),
            _ => Ok(()),
        }
    }

    fn digits(&mut self) -> Walk<()> {
        let rest = &self.bytes()[self.at..];
        match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
            0 => Err(self.expected("a digit")),
            count => {
                self.at += count;
                Ok(())
            }
        }
    }

    fn literal(&mut self, word: &'static str) -> Walk<()> {
        if !self.bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    #[inline]
    fn expect(&mut self, byte: u8, expected: &'static str) -> Walk<()> {
        if self.peek() != Some(byte) {
            return Err(self.expected(expected));
        }
        self.at += 1;
        Ok(())
    }

    fn check_depth(&self, depth: usize) -> Walk<()> {
        match depth < self.limit {
            true => Ok(()),
            false => Err(too_deep(self.limit)),
        }
    }

    #[cold]
    fn expected(&self, expected: &'static str) -> Box<Fault> {
        Box::new(Fault::Syntax {
            at: self.at,
            expected,
        })
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }
}

#[cold]
fn too_deep(limit: usize) -> Box<Fault> {
    Box::new(Fault::TooDeep { limit })
}

/// The number of bytes before the first quote, backslash or control character.
///
/// Most of what a peer sends is inside strings, so most of the time is spent here. It checks eight
/// bytes at once. In `word - ONES * n & !word & HIGHS` the high bit of each byte below `n` is set.
/// A borrow can set it for bytes after the first such byte, but never before it. A byte equals
/// another if their XOR is below one. Neither a quote nor a backslash has a high bit, so `!word` is
/// right for all three.
#[inline]
pub(super) fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    let is = |word: u64, byte: u8| (word ^ (ONES * u64::from(byte))).wrapping_sub(ONES);
    let mut words = bytes.chunks_exact(8);
    let mut at = 0;
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("a chunk of eight"));
        let is_control = word.wrapping_sub(ONES * 0x20);
        let special = (is(word, b'"') | is(word, b'\\') | is_control) & !word & HIGHS;
        if special != 0 {
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = words.remainder();
    let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
    at + rest.iter().position(special).unwrap_or(rest.len())
}

#[derive(Clone, Copy)]
enum Bracket {
    Object,
    Array,
}

/// The open brackets inside one value: a bit for each, set for an object.
struct Brackets {
    objects: [u64; MAX_DEPTH / 64],
    depth: usize,
    base: usize,
}

impl Brackets {
    fn below(base: usize) -> Self {
        Self {
            objects: [0; MAX_DEPTH / 64],
            depth: base,
            base,
        }
    }

    fn push(&mut self, bracket: Bracket, limit: usize) -> Walk<()> {
        if self.depth >= limit {
            return Err(too_deep(limit));
        }
        let (word, bit) = (self.depth / 64, 1 << (self.depth % 64));
        match bracket {
            Bracket::Object => self.objects[word] |= bit,
            Bracket::Array => self.objects[word] &= !bit,
        }
        self.depth += 1;
        Ok(())
    }

    fn pop(&mut self) {
        self.depth -= 1;
    }

    fn innermost(&self) -> Option<Bracket> {
        if self.depth == self.base {
            return None;
        }
        let last = self.depth - 1;
        match self.objects[last / 64] >> (last % 64) & 1 {
            1 => Some(Bracket::Object),
            _ => Some(Bracket::Array),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain_run;

    #[test]
    fn a_plain_run_ends_before_the_first_special_byte_wherever_it_stands() {
        let slowly = |bytes: &[u8]| {
            let special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            bytes.iter().position(special).unwrap_or(bytes.len())
        };
        for filler in [b' ', b'!', b'#', b'[', b']', 0x7F, 0x80, 0xA2, 0xDC, 0xFF] {
            for first in 0..=255u8 {
                for second in [b'"', b'\\', 0, 0x1F, filler] {
                    for at in 0..20 {
                        let mut bytes = [filler; 20];
                        bytes[at] = first;
                        bytes[19 - at] = second;
                        assert_eq!(plain_run(&bytes), slowly(&bytes), "{bytes:?}");
                    }
                }
            }
        }
    }
}
