//! Iterates over the members of an object that was scanned before. Nothing is validated again, so
//! only the ends of keys and values have to be found.

use std::ops::Range;

use super::scan::plain_run;

/// The members of an object: each key as written between its quotes, and the range of its value.
pub(super) struct Members<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Members<'a> {
    /// The members of a well-formed object. Any other text has none.
    pub(super) fn of(text: &'a [u8]) -> Self {
        let at = match text.first() {
            Some(b'{') => 1,
            _ => text.len(),
        };
        Self { text, at }
    }

    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// Skips white space, commas and colons, which carry no meaning here.
    fn skip_between(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r' | b',' | b':') = self.byte() {
            self.at += 1;
        }
    }

    /// Skips a string, and returns the range between its quotes.
    fn skip_string(&mut self) -> Range<usize> {
        self.at += 1;
        let start = self.at;
        loop {
            self.at += plain_run(self.text.get(self.at..).unwrap_or_default());
            match self.byte() {
                Some(b'"') => break,
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
                None => {
                    self.at = self.text.len();
                    return start.min(self.at)..self.at;
                }
            }
        }
        self.at += 1;
        start..self.at - 1
    }

    fn skip_value(&mut self) -> Range<usize> {
        let start = self.at;
        match self.byte() {
            Some(b'"') => drop(self.skip_string()),
            Some(b'{' | b'[') => self.skip_nested(),
            _ => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t'..=b'\r');
                self.at += rest.iter().position(ends).unwrap_or(rest.len());
            }
        }
        start..self.at.min(self.text.len())
    }

    /// Skips from an opening bracket to the matching closing one.
    fn skip_nested(&mut self) {
        let mut depth = 0_usize;
        while let Some(byte) = self.byte() {
            match byte {
                b'"' => {
                    self.skip_string();
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a [u8], Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_between();
        if self.byte() != Some(b'"') {
            return None;
        }
        let key = self.skip_string();
        self.skip_between();
        let value = self.skip_value();
        Some((self.text.get(key).unwrap_or_default(), value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(text: &str) -> Vec<(&str, &str)> {
        Members::of(text.as_bytes())
            .map(|(key, value)| (std::str::from_utf8(key).unwrap(), &text[value]))
            .collect()
    }

    #[test]
    fn every_kind_of_value_is_found_whole() {
        let text = r#"{ "a" : 1, "b":"}\",{", "c":{"d":[{"e":"]"}],"f":{}} ,"g":[],"h":-1.5e3, "i":null,"":true }"#;
        let expected = [
            ("a", "1"),
            ("b", r#""}\",{""#),
            ("c", r#"{"d":[{"e":"]"}],"f":{}}"#),
            ("g", "[]"),
            ("h", "-1.5e3"),
            ("i", "null"),
            ("", "true"),
        ];
        assert_eq!(members(text), expected);
        assert_eq!(members("{}"), []);
        assert_eq!(members("[1]"), []);
        assert_eq!(members("{ }"), []);
    }

    #[test]
    fn what_is_cut_off_is_no_reason_to_panic() {
        let text = r#"{"a":{"b":"\"c"},"d":[1,"e"]}"#;
        for length in 0..text.len() {
            let _ = Members::of(&text.as_bytes()[..length]).count();
        }
    }
}
