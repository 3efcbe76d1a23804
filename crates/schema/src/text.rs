//! Excerpts of schemas and values for messages: shortened, and without terminal control characters.

use serde_json::Value;

/// The maximum length of an excerpt in characters.
const SHOWN: usize = 60;
/// The maximum length of a list.
const LISTED: usize = 10;

/// The beginning of a text, with at most this many characters.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A text in quotes, escaped.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", escaped(text))
}

/// A name in backticks, escaped.
pub(super) fn named(name: &str) -> String {
    format!("`{}`", escaped(name))
}

/// A shortened text without control characters.
pub(super) fn escaped(text: &str) -> String {
    let letters = text.escape_debug().take(SHOWN + 1);
    cut(&letters.collect::<String>(), SHOWN)
}

/// An excerpt of a value.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) if items.len() > LISTED => "an array".into(),
        Value::Object(members) if members.len() > LISTED => "an object".into(),
        value => {
            let mut start = Start(String::new());
            let _ = serde_json::to_writer(&mut start, value);
            cut(&start.0, SHOWN)
        }
    }
}

/// A list, shortened if it is long.
pub(super) fn listed(things: impl ExactSizeIterator<Item = String>) -> String {
    let more = things.len().saturating_sub(LISTED);
    let list = things.take(LISTED).collect::<Vec<_>>().join(", ");
    match more {
        0 => list,
        more => format!("{list} and {more} more"),
    }
}

/// Collects the beginning of a text, and stops the writer after that.
struct Start(String);

impl std::io::Write for Start {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() > 4 * SHOWN {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        let bytes = &bytes[..bytes.len().min(8 * SHOWN)];
        self.0.push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn much_is_cut_short() {
        assert_eq!(named("a\u{1b}[2J"), "`a\\u{1b}[2J`");
        assert_eq!(shown(&json!({ "a": [1, "b"] })), r#"{"a":[1,"b"]}"#);
        assert_eq!(shown(&json!("a\nb")), r#""a\nb""#);
        let long = "é".repeat(100_000);
        for text in [named(&long), quoted(&long), shown(&json!([long, long]))] {
            assert!(text.contains('…') && text.chars().count() < 70, "{text}");
        }
        let many = (0..12).map(|number| number.to_string());
        let many: Vec<String> = many.collect();
        assert!(listed(many.into_iter()).ends_with("8, 9 and 2 more"));
    }
}
