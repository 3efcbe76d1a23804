//! Digests of JSON values, independent of the order of members.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The digest of a JSON value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Digested([u8; 32]);

impl Digested {
    pub(super) fn of(value: &Value) -> Self {
        let mut hasher = Sha256::new();
        write(&mut hasher, value);
        Self(hasher.finalize().into())
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Shortened, since one is stored for each question.
    pub(super) fn short(&self) -> String {
        belay_protocol::base64::encode(&self.0[..15])
    }
}

/// Each value is written with its kind and its length, so that different values differ in bytes.
fn write(hasher: &mut Sha256, value: &Value) {
    let mut text = |kind: &[u8], text: &str| {
        hasher.update(kind);
        hasher.update((text.len() as u64).to_be_bytes());
        hasher.update(text);
    };
    match value {
        Value::Null => text(b"n", ""),
        Value::Bool(value) => text(b"b", if *value { "true" } else { "false" }),
        Value::Number(number) => text(b"d", &number.to_string()),
        Value::String(string) => text(b"s", string),
        Value::Array(values) => {
            hasher.update(b"[");
            hasher.update((values.len() as u64).to_be_bytes());
            for value in values {
                write(hasher, value);
            }
        }
        Value::Object(members) => {
            hasher.update(b"{");
            hasher.update((members.len() as u64).to_be_bytes());
            let mut sorted: Vec<(&String, &Value)> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            for (name, value) in sorted {
                hasher.update((name.len() as u64).to_be_bytes());
                hasher.update(name);
                write(hasher, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn order_says_nothing_and_everything_else_does() {
        let same = |left: Value, right: Value| Digested::of(&left) == Digested::of(&right);
        assert!(same(
            json!({ "a": 1, "b": [2] }),
            json!({ "b": [2], "a": 1 })
        ));
        for (left, right) in [
            (json!([]), json!({})),
            (json!(null), json!("")),
            (json!("1"), json!(1)),
            (json!(true), json!("true")),
            (json!([1, [2]]), json!([1, 2])),
            (json!(["ab", "c"]), json!(["a", "bc"])),
            (json!({ "a": "b" }), json!({ "ab": "" })),
        ] {
            assert!(!same(left.clone(), right.clone()), "{left} {right}");
        }
    }
}
