//! Finds the id and the kind of a message that is too long to keep, piece by piece while it is
//! skipped.

use super::{Kind, RequestId};

/// Longer keys and ids are ignored.
const LONGEST: usize = 256;

/// Scans the text of one object, and keeps only what is needed of its top level.
///
/// The text is not validated: an answer to broken JSON that is too long may name a wrong id.
#[derive(Clone, Default, Debug)]
pub(crate) struct Skim {
    depth: usize,
    string: InString,
    /// The text of the current key or value at the top level.
    token: Vec<u8>,
    /// The key whose value is being scanned; `None` while a key is.
    key: Option<Key>,
    id: Option<RequestId>,
    kind: Option<Key>,
}

#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum InString {
    #[default]
    No,
    Yes,
    /// After a backslash.
    Escaped,
}

/// The keys that matter at the top level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Key {
    Id,
    Method,
    Answer,
    Other,
}

impl Skim {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.byte(*byte);
        }
    }

    /// Whether the id and the kind are both known, so that the rest does not matter.
    pub(crate) fn is_known(&self) -> bool {
        self.id.is_some() && self.kind.is_some()
    }

    pub(crate) fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// The kind of message, decided by the first member that shows it.
    pub(crate) fn looks_like(&self) -> Kind {
        match (self.kind, &self.id) {
            (Some(Key::Answer), _) => Kind::Response,
            (Some(Key::Method), Some(_)) => Kind::Request,
            (Some(Key::Method), None) => Kind::Notification,
            _ => Kind::Unknown,
        }
    }

    fn byte(&mut self, byte: u8) {
        match (self.string, byte) {
            (InString::Escaped, _) => self.string = InString::Yes,
            (InString::Yes, b'\\') => self.string = InString::Escaped,
            (InString::Yes, b'"') => self.string = InString::No,
            (InString::Yes, _) => {}
            (InString::No, b'"') => self.string = InString::Yes,
            (InString::No, b'{' | b'[') => self.depth += 1,
            (InString::No, b'}' | b']') => {
                if self.depth == 1 {
                    self.member_ended();
                }
                self.depth = self.depth.saturating_sub(1);
            }
            (InString::No, b':') if self.depth == 1 && self.key.is_none() => {
                self.key_ended();
                return;
            }
            (InString::No, b',') if self.depth == 1 => {
                self.member_ended();
                return;
            }
            (InString::No, _) => {}
        }
        if self.depth == 1 && self.token.len() <= LONGEST {
            self.token.push(byte);
        }
    }

    fn key_ended(&mut self) {
        // The opening bracket of the object precedes its first key.
        let token = std::mem::take(&mut self.token);
        let token = token.trim_ascii();
        let token = token.strip_prefix(b"{").unwrap_or(token).trim_ascii();
        let key = match token {
            b"\"id\"" => Key::Id,
            b"\"method\"" => Key::Method,
            b"\"result\"" | b"\"error\"" => Key::Answer,
            _ => Key::Other,
        };
        if matches!(key, Key::Method | Key::Answer) {
            self.kind.get_or_insert(key);
        }
        self.key = Some(key);
    }

    fn member_ended(&mut self) {
        let token = std::mem::take(&mut self.token);
        if self.key.take() == Some(Key::Id) && self.id.is_none() && token.len() <= LONGEST {
            self.id = serde_json::from_slice(&token).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skim(text: &str, piece: usize) -> (Option<String>, Kind) {
        let mut skim = Skim::default();
        for piece in text.as_bytes().chunks(piece) {
            skim.push(piece);
        }
        (skim.id().map(ToString::to_string), skim.looks_like())
    }

    #[test]
    fn the_id_is_found_wherever_it_stands_and_nowhere_else() {
        let long = "x".repeat(1000);
        for (text, id, kind) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"id":8}}"#,
                Some("7"),
                Kind::Response,
            ),
            (
                r#" { "result" : {"id":8} , "id" : "a\"b" } "#,
                Some(r#""a\"b""#),
                Kind::Response,
            ),
            (
                r#"{"error":[{"id":1}],"id":-3}"#,
                Some("-3"),
                Kind::Response,
            ),
            (
                r#"{"method":"m","params":{"a":"\"id\":9"},"id":1}"#,
                Some("1"),
                Kind::Request,
            ),
            (
                r#"{"method":"m","params":{"id":9}}"#,
                None,
                Kind::Notification,
            ),
            (r#"{"id":1,"id":2,"result":{}}"#, Some("1"), Kind::Response),
            (r#"{"id":1.5,"result":{}}"#, None, Kind::Response),
            (r#"{"id":1"#, None, Kind::Unknown),
            (r#"{"id":{"id":1},"result":{}}"#, None, Kind::Response),
            (r#"["id",1]"#, None, Kind::Unknown),
            (
                &format!(r#"{{"id":"{long}","result":{{}}}}"#),
                None,
                Kind::Response,
            ),
            (
                &format!(r#"{{"{long}":1,"id":4,"method":"m"}}"#),
                Some("4"),
                Kind::Request,
            ),
        ] {
            for piece in [1, 3, 4096] {
                let found = skim(text, piece);
                assert_eq!(found, (id.map(Into::into), kind), "{text:.60} by {piece}");
            }
        }
    }

    #[test]
    fn it_is_known_as_soon_as_both_are_known() {
        let mut skim = Skim::default();
        skim.push(br#"{"jsonrpc":"2.0","id":7"#);
        assert!(!skim.is_known(), "it may be 71");
        skim.push(br#","result""#);
        assert!(!skim.is_known());
        skim.push(b":");
        assert!(skim.is_known());
    }
}
