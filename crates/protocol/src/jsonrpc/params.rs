//! The parameters of a request, with an index of their members.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Deref, Range};

use super::RawJson;
use super::raw::{fields_of, text_of};
use super::scan::{Fault, Scanner, Walk};

/// The parameters of a request: an object with an index of its members, so that finding one needs
/// no scan.
///
/// ```
/// use belay_protocol::jsonrpc::{self, Message};
///
/// let frame = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo"}}"#;
/// let Message::Request(request) = jsonrpc::decode(&frame.into(), 64).unwrap() else { panic!() };
/// let params = request.params.unwrap();
/// assert_eq!(params.field("name").unwrap().as_str(), r#""echo""#);
/// assert_eq!(params.as_str(), r#"{"name":"echo"}"#);
/// ```
#[derive(Clone)]
pub struct Params {
    json: RawJson,
    index: Index,
}

/// Objects with more members are not indexed. Requests of MCP have fewer.
const FEW: usize = 6;

/// The positions of the members of an object, relative to its opening bracket. An object with many
/// members, or with an escape in a key, is not indexed.
#[derive(Clone, Copy, Default)]
pub(super) struct Index {
    members: [Member; FEW],
    /// The number of members; `None` if the object is not indexed.
    count: Option<u8>,
}

#[derive(Clone, Copy, Default)]
struct Member {
    key: (u32, u32),
    value: (u32, u32),
}

impl Index {
    /// Scans the next value of an envelope, which must be an object.
    pub(super) fn scan(&mut self, scanner: &mut Scanner<'_>) -> Walk<Range<usize>> {
        let start = scanner.position();
        self.count = Some(0);
        scanner.members(1, |scanner, key| {
            let value = scanner.value_within(2)?;
            self.note(start, key.has_escapes(), key.range(), value);
            Ok::<_, Box<Fault>>(())
        })?;
        Ok(start..scanner.position())
    }

    #[inline]
    fn note(&mut self, start: usize, escaped: bool, key: Range<usize>, value: Range<usize>) {
        let Some(count) = self.count else { return };
        let within = |range: Range<usize>| {
            let narrow = |at: usize| u32::try_from(at - start).ok();
            Some((narrow(range.start)?, narrow(range.end)?))
        };
        let slot = self.members.get_mut(usize::from(count));
        self.count = match (slot, within(key), within(value)) {
            (Some(slot), Some(key), Some(value)) if !escaped => {
                *slot = Member { key, value };
                Some(count + 1)
            }
            _ => None,
        };
    }

    fn members(&self) -> Option<&[Member]> {
        self.members.get(..usize::from(self.count?))
    }
}

impl Params {
    pub(super) fn indexed(json: RawJson, index: Index) -> Self {
        Self { json, index }
    }

    /// The member `name`, if there is one.
    pub fn field(&self, name: &str) -> Option<RawJson> {
        match self.index.members() {
            Some(members) => {
                let found = self.find(members, name)?;
                Some(self.json.part(range(found.value)))
            }
            None => self.json.field(name),
        }
    }

    /// The member `name`, if there is one; inside it its text, if it is a string.
    pub fn field_text(&self, name: &str) -> Option<Option<Cow<'_, str>>> {
        self.field_bytes(name).map(text_of)
    }

    /// The JSON text of the member `name`, if there is one.
    pub(crate) fn field_bytes(&self, name: &str) -> Option<&[u8]> {
        match self.index.members() {
            Some(members) => {
                let found = self.find(members, name)?;
                Some(part(self.json.as_bytes(), found.value))
            }
            None => {
                let [found] = fields_of(self.json.as_bytes(), [name]);
                found
            }
        }
    }

    fn find<'a>(&self, members: &'a [Member], name: &str) -> Option<&'a Member> {
        let bytes = self.json.as_bytes();
        members
            .iter()
            .find(|member| part(bytes, member.key) == name.as_bytes())
    }

    /// The members with these names.
    pub fn fields<const N: usize>(&self, names: [&str; N]) -> [Option<RawJson>; N] {
        match self.index.members() {
            Some(_) => names.map(|name| self.field(name)),
            None => self.json.fields(names),
        }
    }

    /// A name that appears twice, if there is one; see [`RawJson::repeated_member`].
    pub fn repeated_member(&self) -> Option<Cow<'_, str>> {
        let Some(members) = self.index.members() else {
            return self.json.repeated_member();
        };
        let bytes = self.json.as_bytes();
        let key = |member: &Member| part(bytes, member.key);
        let repeated = members.iter().enumerate().any(|(at, member)| {
            members[..at]
                .iter()
                .any(|before| key(before) == key(member))
        });
        repeated.then(|| self.json.repeated_member()).flatten()
    }
}

fn range((start, end): (u32, u32)) -> Range<usize> {
    start as usize..end as usize
}

fn part(bytes: &[u8], at: (u32, u32)) -> &[u8] {
    bytes.get(range(at)).unwrap_or_default()
}

/// Parameters that were not part of a message have no index.
impl From<RawJson> for Params {
    fn from(json: RawJson) -> Self {
        let index = Index::default();
        Self { json, index }
    }
}

impl Deref for Params {
    type Target = RawJson;

    fn deref(&self) -> &RawJson {
        &self.json
    }
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.json == other.json
    }
}

impl Eq for Params {}

impl Hash for Params {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.json.hash(state);
    }
}

impl fmt::Debug for Params {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.json.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Message, decode};
    use super::*;

    fn params(text: &str) -> Params {
        let frame = format!(r#"{{"id":1,"params": {text} ,"jsonrpc":"2.0","method":"m"}}"#);
        let Ok(Message::Request(request)) = decode(&frame.into(), 64) else {
            panic!("{text} should be parameters");
        };
        request.params.expect("it has some")
    }

    /// Members are the same, whether they are found by the index or by a scan.
    #[test]
    fn what_the_index_finds_is_what_a_walk_finds() {
        let few = r#"{ "a":1 ,"b" : "x\"y","c":{"a":2},"":[],"d":null}"#;
        let many = r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7}"#;
        let escaped = r#"{"\u0061":1,"b":2}"#;
        let newlines = "{\n\"a\":\r\n[1,\n2],\"b\":7}";
        for (text, indexed) in [
            (few, true),
            (many, false),
            (escaped, false),
            (newlines, true),
            ("{}", true),
        ] {
            let params = params(text);
            assert_eq!(params.index.members().is_some(), indexed, "{text}");
            let walked = RawJson::parse(text.to_owned()).expect("it is JSON");
            for name in ["a", "b", "c", "d", "", "g", "x"] {
                assert_eq!(params.field(name), walked.field(name), "{name} of {text}");
            }
            let names = ["b", "x", "a"];
            assert_eq!(params.fields(names), walked.fields(names), "{text}");
            assert!(params.repeated_member().is_none(), "{text}");
        }
    }

    #[test]
    fn a_repeated_member_is_found_with_an_index_and_without() {
        for text in [
            r#"{"a":1,"b":2,"a":3}"#,
            r#"{"a":1,"b":2,"\u0061":3}"#,
            r#"{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"a":7}"#,
        ] {
            assert_eq!(
                params(text).repeated_member().as_deref(),
                Some("a"),
                "{text}"
            );
        }
    }
}
