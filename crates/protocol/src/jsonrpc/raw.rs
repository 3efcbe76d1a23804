//! JSON that has been validated and is kept as text.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use bytes::Bytes;
use memchr::memchr2;
use serde::de::DeserializeOwned;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use super::members::Members;
use super::scan::{MAX_DEPTH, Scanner, Walk, unescape};

/// A well-formed JSON value that is decoded only on demand.
///
/// It is a slice of the frame it arrived in, so that passing it on copies nothing.
///
/// ```
/// use belay_protocol::jsonrpc::RawJson;
///
/// let raw = RawJson::parse("{\"a\": [1,\n 2]}").unwrap();
/// assert_eq!(raw.field("a").unwrap().decode::<Vec<u8>>().unwrap(), [1, 2]);
/// assert!(!raw.as_str().contains('\n'));
/// assert!(RawJson::parse("{\"a\": [1,").is_err());
/// ```
// Invariants:
// 1. The bytes are UTF-8 and one well-formed JSON value, without white space around it.
// 2. They contain no `\n` and no `\r`, so they can be spliced into a line or an SSE event.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Bytes);

/// The error for a text that is not one well-formed JSON value.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not JSON: {0}")]
pub struct InvalidJson(String);

impl RawJson {
    /// Validates `text` and keeps it.
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, InvalidJson> {
        let bytes: Bytes = text.into();
        let text = str::from_utf8(&bytes).map_err(|error| InvalidJson(error.to_string()))?;
        let range = whole_value(text).map_err(|fault| InvalidJson(fault.to_string()))?;
        Ok(Self::from_scanned(bytes.slice(range)))
    }

    /// Encodes `value` as JSON.
    pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|bytes| Self::from_scanned(bytes.into()))
    }

    /// The empty object, `{}`.
    pub const fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// For bytes that a [`Scanner`] has validated, or that `serde_json` has written.
    pub(super) fn from_scanned(bytes: Bytes) -> Self {
        // Strings always escape newlines, so the ones found here are white space.
        if memchr2(b'\n', b'\r', &bytes).is_none() {
            return Self(bytes);
        }
        let spaces_for_newlines = |byte: &u8| match byte {
            b'\n' | b'\r' => b' ',
            other => *other,
        };
        Self(bytes.iter().map(spaces_for_newlines).collect())
    }

    /// For bytes that are one valid value without newlines.
    pub(super) fn from_written(bytes: Bytes) -> Self {
        Self(bytes)
    }

    /// A part of it that is itself a value.
    pub(super) fn part(&self, range: Range<usize>) -> Self {
        Self(self.0.slice(range))
    }

    /// Decodes the value into a type.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        // Not `from_slice`, which would validate the UTF-8 of every string again.
        serde_json::from_str(self.as_str())
    }

    /// The member `name` of an object; `None` if there is none, or if this is not an object.
    pub fn field(&self, name: &str) -> Option<Self> {
        let [found] = self.fields([name]);
        found
    }

    /// Several members of an object, found in one scan, which ends with the last of them.
    ///
    /// ```
    /// use belay_protocol::jsonrpc::RawJson;
    ///
    /// let json = RawJson::parse(r#"{"a":1,"b":{"c":2},"d":3}"#).unwrap();
    /// let [d, b, x] = json.fields(["d", "b", "x"]);
    /// assert_eq!(d.unwrap().as_str(), "3");
    /// assert_eq!(b.unwrap().as_str(), r#"{"c":2}"#);
    /// assert!(x.is_none());
    /// ```
    pub fn fields<const N: usize>(&self, names: [&str; N]) -> [Option<Self>; N] {
        fields_of(&self.0, names).map(|found| found.map(|found| Self(self.0.slice_ref(found))))
    }

    /// Calls `member` for each member of an object; does nothing if this is not an object.
    pub fn for_each_member(&self, mut member: impl FnMut(&str, Self)) {
        for (key, value) in Members::of(&self.0) {
            member(&unescaped(key), Self(self.0.slice(value)));
        }
    }

    /// A name that appears twice in this object, if there is one. Parsers disagree on which of the
    /// two values counts ([`RawJson::field`] finds the first), so such an object must not be
    /// trusted.
    ///
    /// ```
    /// use belay_protocol::jsonrpc::RawJson;
    /// let twice = RawJson::parse(r#"{"a":1,"b":2,"\u0061":3}"#).unwrap();
    /// assert_eq!(twice.repeated_member().as_deref(), Some("a"));
    /// ```
    pub fn repeated_member(&self) -> Option<Cow<'_, str>> {
        const FEW: usize = 16;
        let mut few: [&[u8]; FEW] = [&[]; FEW];
        let mut many: Vec<Cow<'_, str>> = Vec::new();
        for (number, (key, _)) in Members::of(&self.0).enumerate() {
            match few.get_mut(number) {
                Some(slot) => *slot = key,
                None => many.push(unescaped(key)),
            }
            let before = &few[..number.min(FEW)];
            if number < FEW && before.iter().any(|known| is_same(known, key)) {
                return Some(unescaped(key));
            }
        }
        if many.is_empty() {
            return None;
        }
        many.extend(few.map(unescaped));
        many.sort_unstable();
        let repeated = many.windows(2).find(|pair| pair[0] == pair[1])?;
        Some(repeated[0].clone())
    }

    /// The text of a string, copied only if it has escapes; `None` if this is not a string.
    pub fn as_text(&self) -> Option<Cow<'_, str>> {
        text_of(&self.0)
    }

    /// Whether the value is an object, as `params` and results are in MCP.
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Whether the value is an object without members.
    pub fn is_empty_object(&self) -> bool {
        let inside = self.0.strip_prefix(b"{").unwrap_or_default();
        inside.trim_ascii_start() == b"}"
    }

    /// The same object with one more member, whose key must be new.
    ///
    /// ```
    /// use belay_protocol::jsonrpc::RawJson;
    ///
    /// let json = RawJson::parse(r#"{"a":1}"#).unwrap();
    /// let more = json.with_member("b", &RawJson::empty_object()).unwrap();
    /// assert_eq!(more.as_str(), r#"{"a":1,"b":{}}"#);
    /// ```
    pub fn with_member(&self, key: &str, value: &Self) -> Result<Self, NotAnObject> {
        if !self.is_object() {
            return Err(NotAnObject);
        }
        let inside = self.0[1..self.0.len() - 1].trim_ascii_end();
        let mut text = Vec::with_capacity(self.0.len() + key.len() + value.0.len() + 4);
        text.push(b'{');
        text.extend_from_slice(inside);
        if !inside.trim_ascii().is_empty() {
            text.push(b',');
        }
        serde_json::to_writer(&mut text, key).expect("a text is always valid JSON");
        text.push(b':');
        text.extend_from_slice(&value.0);
        text.push(b'}');
        Ok(Self(text.into()))
    }

    /// A copy in memory of its own, which does not keep a larger frame alive.
    pub fn detached(&self) -> Self {
        Self(Bytes::copy_from_slice(&self.0))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(&self.0).expect("invariant 1: the bytes are UTF-8")
    }

    /// The JSON text as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Several members of a well-formed object, see [`RawJson::fields`].
pub(crate) fn fields_of<'a, const N: usize>(
    object: &'a [u8],
    names: [&str; N],
) -> [Option<&'a [u8]>; N] {
    let mut found = [None; N];
    let mut left = N;
    for (key, value) in Members::of(object) {
        let has_escapes = key
            .iter()
            .fold(false, |found, byte| found | (*byte == b'\\'));
        let at = match has_escapes {
            false => names.iter().position(|name| name.as_bytes() == key),
            true => {
                let key = unescaped(key);
                names.iter().position(|name| *name == key)
            }
        };
        if let Some(found) = at.map(|at| &mut found[at])
            && found.is_none()
        {
            *found = object.get(value);
            left -= 1;
            if left == 0 {
                break;
            }
        }
    }
    found
}

/// The unescaped text of a well-formed string; `None` if this is not a string.
pub(crate) fn text_of(json: &[u8]) -> Option<Cow<'_, str>> {
    let quoted = json.strip_prefix(b"\"")?;
    quoted.strip_suffix(b"\"").map(unescaped)
}

fn is_same(left: &[u8], right: &[u8]) -> bool {
    let escapes = |key: &[u8]| key.contains(&b'\\');
    left == right || (escapes(left) || escapes(right)) && unescaped(left) == unescaped(right)
}

fn unescaped(key: &[u8]) -> Cow<'_, str> {
    unescape(str::from_utf8(key).expect("invariant 1: the bytes are UTF-8"))
}

fn whole_value(text: &str) -> Walk<Range<usize>> {
    let mut scanner = Scanner::new(text, MAX_DEPTH);
    let range = scanner.value()?;
    scanner.end()?;
    Ok(range)
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(self.as_str()).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for RawJson {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::parse(String::from(Box::<str>::from(raw))).map_err(serde::de::Error::custom)
    }
}

/// The JSON value is not an object, so it has no members.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the JSON value is not an object")]
pub struct NotAnObject;
