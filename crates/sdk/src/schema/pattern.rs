//! Patterns, which JSON Schema writes as JavaScript does (ECMA-262), in linear time.
//!
//! What cannot be matched in linear time is no pattern here: no looking ahead or behind, no references to
//! groups.

use std::fmt;

use regex::{Regex, RegexBuilder};

use super::BadSchema;

/// A compiled pattern is so large at most, and is tried smaller first: its size tells what a match costs.
const SIZES: [usize; 4] = [1 << 12, 1 << 14, 1 << 16, 1 << 18];

pub(super) struct Pattern {
    source: String,
    regex: Regex,
    size: usize,
}

impl Pattern {
    pub(super) fn compile(source: &str) -> Result<Self, BadSchema> {
        let translated = translated(source);
        for size in SIZES {
            let compiled = RegexBuilder::new(&translated)
                .size_limit(size)
                .dfa_size_limit(1 << 20)
                .build();
            match compiled {
                Ok(regex) => {
                    return Ok(Self {
                        source: source.to_owned(),
                        regex,
                        size,
                    });
                }
                Err(regex::Error::CompiledTooBig(_)) => {}
                Err(_) => {
                    let problem = format!("the pattern {source:?} is not understood");
                    return Err(BadSchema(problem));
                }
            }
        }
        Err(BadSchema(format!("the pattern {source:?} is too large")))
    }

    /// How large it is, in bytes, at most.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// What a match costs at most.
    pub(super) fn cost(&self, text: &str) -> u64 {
        (text.len() / 2 * (self.size / SIZES[0])) as u64 + 1
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

/// A pattern of JavaScript in the words of the `regex` crate.
fn translated(source: &str) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut rest = source.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => match rest.next() {
                Some(letter) => escape(letter, &mut rest, false, &mut out),
                None => out.push('\\'),
            },
            // Every end of a line that JavaScript knows.
            '.' => out.push_str(r"[^\n\r\x{2028}\x{2029}]"),
            '[' => class(&mut rest, &mut out),
            // What would be flags, and other things that only the `regex` crate knows.
            '(' if rest.peek() == Some(&'?') => {
                rest.next();
                match rest.peek() {
                    Some(':' | '<' | '=' | '!') => out.push_str("(?"),
                    _ => out.push_str("(?="),
                }
            }
            letter => out.push(letter),
        }
    }
    out
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// What stands in brackets. There, an opening bracket is one of the letters, and so are `&&`, `--` and `~~`.
fn class(rest: &mut Letters<'_>, out: &mut String) {
    let start = out.len();
    out.push('[');
    if rest.peek() == Some(&'^') {
        rest.next();
        out.push('^');
    }
    if rest.peek() == Some(&']') {
        rest.next();
        let negated = out.ends_with('^');
        out.truncate(start);
        out.push_str(if negated { r"[\s\S]" } else { r"[^\s\S]" });
        return;
    }
    // Whether a `-` here can stand between the ends of a range.
    let mut after_letter = false;
    while let Some(letter) = rest.next() {
        match letter {
            ']' => return out.push(']'),
            '\\' => {
                if let Some(letter) = rest.next() {
                    escape(letter, rest, true, out);
                }
                after_letter = true;
            }
            '-' if after_letter => {
                out.push('-');
                after_letter = false;
            }
            '-' | '[' | '&' | '~' | '^' => {
                out.extend(['\\', letter]);
                after_letter = true;
            }
            letter => {
                out.push(letter);
                after_letter = true;
            }
        }
    }
}

/// What comes after a backslash.
fn escape(letter: char, rest: &mut Letters<'_>, in_class: bool, out: &mut String) {
    let (open, close) = if in_class { ("", "") } else { ("[", "]") };
    match letter {
        // All of Unicode for the `regex` crate, not for JavaScript.
        'd' => out.extend([open, "0-9", close]),
        'w' => out.extend([open, "0-9A-Za-z_", close]),
        's' => out.extend([open, r"\s\x{feff}", close]),
        'D' => out.push_str("[^0-9]"),
        'W' => out.push_str("[^0-9A-Za-z_]"),
        'S' => out.push_str(r"[^\s\x{feff}]"),
        'b' if in_class => out.push_str(r"\x08"),
        'b' | 'B' => {
            let kind = if letter == 'b' {
                r"(?-u:\b)"
            } else {
                r"(?-u:\B)"
            };
            out.push_str(kind);
        }
        '0' => out.push_str(r"\x00"),
        'c' => match rest.next() {
            Some(letter) if letter.is_ascii_alphabetic() => {
                out.push_str(&format!(r"\x{:02x}", u32::from(letter) % 32));
            }
            // Refused by the `regex` crate, as it should be.
            _ => out.push_str(r"\c"),
        },
        // Names of what the `regex` crate knows, and JavaScript does not.
        'A' | 'z' | 'a' | '<' | '>' => out.push_str(r"\c"),
        letter => out.extend(['\\', letter]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Pattern::compile(pattern).expect(pattern).is_match(text)
    }

    #[test]
    fn patterns_mean_what_they_mean_in_javascript() {
        for (pattern, yes, no) in [
            (r"^\d+$", "42", "४२"),
            (r"^\w$", "a", "é"),
            (r"^\W$", "é", "a"),
            (r"^\s$", "\u{feff}", "a"),
            (r"^[\s]$", "\u{feff}", "a"),
            (r"^\S$", "a", "\u{a0}"),
            (r"^.$", "a", "\r"),
            (r"^[^]$", "\n", ""),
            (r"^[[a]$", "[", "b"),
            (r"^[a&&b]$", "&", "c"),
            (r"^[+--]$", ",", "."),
            (r"^[--a]$", "A", "b"),
            (r"^[a-c-e]$", "-", "d"),
            (r"^[\]a]$", "]", "b"),
            (r"^[\w-]$", "-", "+"),
            (r"^[\b]$", "\u{8}", "b"),
            (r"^[\D]$", "a", "1"),
            (r"^\/$", "/", "a"),
            (r"^\-$", "-", "a"),
            (r"^\cA$", "\u{1}", "A"),
            (r"^\0$", "\0", "0"),
            (r"^\u00e9$", "é", "e"),
            (r"^\u{1F600}$", "😀", "e"),
            (r"^\p{Letter}$", "é", "1"),
            (r"^(?<year>a)$", "a", "b"),
            (r"^a$", "a", "a\n"),
            (r"\bfoo\b", "a foo!", "afoo"),
            ("a|b", "xbx", "c"),
        ] {
            assert!(matches(pattern, yes), "{pattern} {yes:?}");
            assert!(!matches(pattern, no), "{pattern} {no:?}");
        }
        assert!(!matches("[]", "a"));
    }

    #[test]
    fn what_is_not_linear_is_not_understood() {
        for pattern in [
            "(?=a)", "(?!a)", "(?<=a)", "(?<!a)", r"(a)\1", "(?i)a", "(?i:a)", "(?P<a>b)", r"\Aa",
            r"a\z", "[a", "(", r"\c1", "a\\",
        ] {
            assert!(Pattern::compile(pattern).is_err(), "{pattern}");
        }
        let Err(problem) = Pattern::compile("(a{1000}){1000}") else {
            panic!("it is large");
        };
        assert!(problem.to_string().contains("too large"), "{problem}");
    }
}
