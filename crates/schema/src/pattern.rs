//! Patterns in JavaScript's syntax (ECMA-262), as JSON Schema uses them, matched in linear time.
//!
//! Patterns that cannot be matched in linear time (lookaround, backreferences, changed flags) and
//! patterns that are too large are accepted, but the result of a match is unknown. A pattern that
//! is invalid in JavaScript is refused, since it is a mistake.

use std::fmt;

use regex_automata::meta::Regex;
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;

use super::SchemaError;
use super::text::quoted;
use super::truth::Truth;

/// The maximum length of a translated pattern in bytes.
const LONGEST: usize = 16 << 10;
/// The maximum size of a compiled pattern in bytes.
const LARGEST: usize = 256 << 10;
/// The cost of parsing one byte of a pattern, in bytes of memory: one letter can stand for many.
const READ: usize = 64;
/// The size of the cache of a matcher in bytes.
const CACHE: usize = 64 << 10;

pub(super) struct Pattern {
    source: String,
    /// `None` if the pattern is unsupported.
    matcher: Option<Matcher>,
    size: usize,
}

struct Matcher {
    regex: Regex,
    states: u64,
}

impl Pattern {
    pub(super) fn compile(source: &str) -> Result<Self, SchemaError> {
        let pattern = |matcher, size| Self {
            source: source.to_owned(),
            matcher,
            size,
        };
        let Some(translated) = translated(source) else {
            return Ok(pattern(None, LONGEST));
        };
        let read = READ * translated.text.len();
        let hir = syntax::parse(&translated.text).map_err(|_| {
            SchemaError::new(format!("the pattern {} is not understood", quoted(source)))
        })?;
        if translated.is_changed {
            return Ok(pattern(None, read));
        }
        let config = thompson::Config::new()
            .nfa_size_limit(Some(LARGEST))
            .which_captures(thompson::WhichCaptures::None);
        let states = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(&hir);
        let config = Regex::config()
            .nfa_size_limit(Some(LARGEST))
            .which_captures(thompson::WhichCaptures::Implicit)
            .hybrid_cache_capacity(CACHE);
        let regex = Regex::builder().configure(config).build_from_hir(&hir);
        // Too large a pattern fails here. The time for that counts as if the limit had been used
        // up.
        let (Ok(states), Ok(regex)) = (states, regex) else {
            return Ok(pattern(None, read + LARGEST));
        };
        let size = read + states.memory_usage() + CACHE;
        let states = states.states().len() as u64;
        Ok(pattern(Some(Matcher { regex, states }), size))
    }

    /// The memory of the compiled pattern in bytes, approximately.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Whether the pattern can be matched here.
    pub(super) fn is_supported(&self) -> bool {
        self.matcher.is_some()
    }

    pub(super) fn is_match(&self, text: &str) -> Truth {
        let matcher = self.matcher.as_ref();
        matcher.map_or(Truth::Unknown, |matcher| {
            matcher.regex.is_match(text).into()
        })
    }

    /// The cost of a match in the worst case: without the cache, each letter is tried in each
    /// state.
    pub(super) fn cost(&self, text: &str) -> u64 {
        let cost = |matcher: &Matcher| {
            let length = text.len() as u64;
            length.saturating_mul(1 + matcher.states / 16) / 4 + 1
        };
        self.matcher.as_ref().map_or(1, cost)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(&self.source))
    }
}

/// A JavaScript pattern, translated to the syntax of the `regex` crates.
struct Translated {
    text: String,
    /// A construct could not be translated. A placeholder stands for it, so that the rest of the
    /// pattern can still be validated.
    is_changed: bool,
}

/// Returns `None` if the pattern is too long.
fn translated(source: &str) -> Option<Translated> {
    let mut out = String::with_capacity(source.len().min(LONGEST));
    let mut is_changed = false;
    let mut rest = source.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => match rest.next() {
                // A backreference, by number or by name.
                Some('1'..='9' | 'k') => {
                    is_changed = true;
                    out.push_str("(?:)");
                }
                Some(letter) => _ = escape(letter, &mut rest, false, &mut out),
                None => out.push('\\'),
            },
            // Any character except JavaScript's line terminators.
            '.' => out.push_str(r"[^\n\r\x{2028}\x{2029}]"),
            '[' => class(&mut rest, &mut out),
            '(' if rest.peek() == Some(&'?') => {
                rest.next();
                is_changed |= group(&mut rest, &mut out);
            }
            letter => out.push(letter),
        }
        if out.len() > LONGEST {
            return None;
        }
    }
    Some(Translated {
        text: out,
        is_changed,
    })
}

/// Translates what follows `(?`. Lookaround and changed flags become a plain group, and the result
/// is true.
fn group(rest: &mut Letters<'_>, out: &mut String) -> bool {
    let mut ahead = rest.clone();
    let mut flags = 0;
    while ahead.next_if(|letter| "ims-".contains(*letter)).is_some() {
        flags += 1;
    }
    let mut next = || ahead.next();
    let plain = match (flags, next(), next()) {
        (0, Some('=' | '!'), _) => 1,
        (0, Some('<'), Some('=' | '!')) => 2,
        (0, Some(':' | '<'), _) => {
            out.push_str("(?");
            return false;
        }
        (1.., Some(':'), _) => flags + 1,
        // Invalid in JavaScript: this is refused by the parser.
        _ => {
            out.push_str("(?=");
            return false;
        }
    };
    rest.by_ref().take(plain).for_each(drop);
    out.push_str("(?:");
    true
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// The position in a character class, which decides what a `-` means there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// After a character, which can begin a range.
    Letter,
    /// After a character and a `-`.
    RangeBegun,
    /// Anywhere else: at the beginning, after a range, after a set such as `\w`.
    Other,
}

/// Translates a character class. In JavaScript `[`, `&&`, `--` and `~~` have no special meaning
/// inside one.
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
    let mut before = Before::Other;
    while let Some(letter) = rest.next() {
        let is_set = match letter {
            ']' => return out.push(']'),
            '-' if before == Before::Letter && begins_range(rest) => {
                out.push('-');
                before = Before::RangeBegun;
                continue;
            }
            '\\' => match rest.next() {
                Some(letter) => escape(letter, rest, true, out),
                None => return,
            },
            '-' | '[' | '&' | '~' | '^' => {
                out.extend(['\\', letter]);
                false
            }
            letter => {
                out.push(letter);
                false
            }
        };
        before = match is_set || before == Before::RangeBegun {
            true => Before::Other,
            false => Before::Letter,
        };
        // The caller refuses a pattern of this length.
        if out.len() > LONGEST {
            return;
        }
    }
}

/// Whether a character follows, and not the end of the class or a set.
fn begins_range(rest: &Letters<'_>) -> bool {
    let mut ahead = rest.clone();
    match ahead.next() {
        None | Some(']') => false,
        Some('\\') => !ahead
            .next()
            .is_some_and(|letter| "dDsSwWpP".contains(letter)),
        Some(_) => true,
    }
}

/// Translates an escape. Returns whether it is a set of characters.
fn escape(letter: char, rest: &mut Letters<'_>, in_class: bool, out: &mut String) -> bool {
    const DIGITS: &str = "0-9";
    const WORDS: &str = "0-9A-Za-z_";
    const SPACES: &str =
        r"\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}";
    let mut set = |letters: &str, negated: bool| {
        match (in_class, negated) {
            (true, false) => out.push_str(letters),
            (_, true) => out.extend(["[^", letters, "]"]),
            (false, false) => out.extend(["[", letters, "]"]),
        }
        true
    };
    match letter {
        'd' | 'D' => return set(DIGITS, letter == 'D'),
        'w' | 'W' => return set(WORDS, letter == 'W'),
        's' | 'S' => return set(SPACES, letter == 'S'),
        'p' | 'P' => {
            out.extend(['\\', letter]);
            return true;
        }
        'b' if in_class => out.push_str(r"\x08"),
        // A word boundary of ASCII words.
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"(?-u:\B)"),
        '0' => out.push_str(r"\x00"),
        'c' => match rest.next() {
            Some(letter) if letter.is_ascii_alphabetic() => {
                out.push_str(&format!(r"\x{:02x}", u32::from(letter) % 32));
            }
            // Refused by the parser, as in JavaScript.
            _ => out.push_str(r"\c"),
        },
        'u' => match surrogates(rest) {
            Some(letter) => out.push_str(&format!(r"\x{{{letter:x}}}")),
            None => out.push_str(r"\u"),
        },
        // Not valid in JavaScript: this makes the parser refuse it.
        'A' | 'z' | 'a' | '<' | '>' => out.push_str(r"\c"),
        letter => out.extend(['\\', letter]),
    }
    false
}

/// A surrogate pair, each half written as `\u` and four digits. The first `\u` has been read.
fn surrogates(rest: &mut Letters<'_>) -> Option<u32> {
    let mut ahead = rest.clone();
    let mut half = |range: std::ops::RangeInclusive<u32>| {
        let digits: String = ahead.by_ref().take(4).collect();
        let half = u32::from_str_radix(&digits, 16).ok()?;
        let more = [ahead.next(), ahead.next()] == [Some('\\'), Some('u')];
        range.contains(&half).then_some((half, more))
    };
    let (high, more) = half(0xd800..=0xdbff)?;
    let (low, _) = more.then(|| half(0xdc00..=0xdfff))??;
    // Four digits, `\u`, four digits.
    for _ in 0..10 {
        rest.next();
    }
    Some(0x10000 + (high - 0xd800) * 0x400 + (low - 0xdc00))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        let found = Pattern::compile(pattern).expect(pattern).is_match(text);
        assert_ne!(found, Truth::Unknown, "{pattern}");
        found == Truth::Yes
    }

    #[test]
    fn patterns_mean_what_they_mean_in_javascript() {
        for (pattern, yes, no) in [
            (r"^\d+$", "42", "४२"),
            (r"^\w$", "a", "é"),
            (r"^\W$", "é", "a"),
            (r"^\s$", "\u{feff}", "\u{85}"),
            (r"^[\s]$", "\u{feff}", "a"),
            (r"^\S$", "\u{85}", "\u{a0}"),
            (r"^.$", "a", "\r"),
            (r"^[^]$", "\n", ""),
            (r"^[[a]$", "[", "b"),
            (r"^[a&&b]$", "&", "c"),
            (r"^[+--]$", ",", "."),
            (r"^[--a]$", "A", "b"),
            (r"^[a-c-e]$", "-", "d"),
            (r"^[a-c--e]$", "A", "f"),
            (r"^[a-]$", "-", "b"),
            (r"^[\]a]$", "]", "b"),
            (r"^[\w-]$", "-", "+"),
            (r"^[\w-z]$", "-", "`"),
            (r"^[\w-\.]$", "-", ","),
            (r"^[+-\d]$", "5", "/"),
            (r"^[\b]$", "\u{8}", "b"),
            (r"^[\D]$", "a", "1"),
            (r"^[\D-z]$", "-", "1"),
            (r"^\/$", "/", "a"),
            (r"^\-$", "-", "a"),
            (r"^\cA$", "\u{1}", "A"),
            (r"^\0$", "\0", "0"),
            (r"^\u00e9$", "é", "e"),
            (r"^\ud83d\ude00$", "😀", "e"),
            (r"^[\ud83d\ude00-\ud83d\ude02]$", "😁", "e"),
            (r"^\u{1F600}$", "😀", "e"),
            (r"^\p{Letter}$", "é", "1"),
            (r"^\p{Alphabetic}$", "é", "1"),
            (r"^(?<year>a)$", "a", "b"),
            (r"^a$", "a", "a\n"),
            (r"\bfoo\b", "a foo!", "afoo"),
            (r"o\Bo", "foo", "fo o"),
            ("a|b", "xbx", "c"),
        ] {
            assert!(matches(pattern, yes), "{pattern} {yes:?}");
            assert!(!matches(pattern, no), "{pattern} {no:?}");
        }
        assert!(!matches("[]", "a"));
    }

    #[test]
    fn what_is_not_linear_is_not_matched() {
        for pattern in [
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            r"(a)\1",
            r"(?<a>b)\k<a>",
            "(?i:a)",
            "(?-i:a)",
            "(?i-ms:a)",
            // The patterns of zod for an email and a duration, and one for non-blank text.
            r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$",
            r"^P(?:(\d+W)|(?!.*W)(?=\d|T\d)(\d+Y)?(\d+M)?(\d+D)?(T(?=\d)(\d+H)?(\d+M)?(\d+([.,]\d+)?S)?)?)$",
            r"^(?!\s*$).+",
        ] {
            let compiled = Pattern::compile(pattern).expect(pattern);
            assert!(!compiled.is_supported(), "{pattern}");
            assert_eq!(compiled.is_match("a"), Truth::Unknown, "{pattern}");
        }
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for pattern in [
            "(?i)a",
            "(?P<a>b)",
            "(?>a)",
            "(?#a)",
            "(?",
            r"\Aa",
            r"a\z",
            "[a",
            "(",
            "(?=a",
            "(?=a)(",
            "(?!a)[b",
            r"\c1",
            "a\\",
            "[a\\",
            r"\ud83d",
            r"\ud83dxyzabc",
        ] {
            assert!(Pattern::compile(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn patterns_are_bounded() {
        let scattered: String = (0..5000)
            .map(|at| char::from(b'a' + at as u8 % 26))
            .collect();
        for pattern in [
            "(a{1000}){1000}".to_owned(),
            r"\p{L}{1000}".to_owned(),
            ".".repeat(5000),
            format!("[{}", ".".repeat(1 << 20)),
            format!("[{}]", r"\w".repeat(5000)),
            scattered.repeat(10),
        ] {
            let compiled = Pattern::compile(&pattern).unwrap_or_else(|error| panic!("{error}"));
            assert!(!compiled.is_supported(), "{pattern}");
            assert!(compiled.size() >= LONGEST, "what it took counts");
        }
        for pattern in ["(".repeat(1000), "\u{7f}".repeat(10_000) + "("] {
            let Err(found) = Pattern::compile(&pattern) else {
                panic!("{pattern}");
            };
            let found = found.to_string();
            assert!(
                found.contains("is not understood") && found.len() < 300,
                "{found}"
            );
        }
    }
}
