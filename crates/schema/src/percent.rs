//! Percent-encoding in URIs (RFC 3986).

use std::borrow::Cow;

/// Decodes percent-encoding. Returns `None` if it is malformed, or if the result is not UTF-8.
pub(crate) fn decoded(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains('%') {
        return Some(Cow::Borrowed(text));
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let byte = digit(high)? * 16 + digit(low)?;
                bytes.push(u8::try_from(byte).ok()?);
                rest = after;
            }
            (b'%', _) => return None,
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok().map(Cow::Owned)
}
