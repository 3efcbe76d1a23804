//! Patterns, which JSON Schema writes as JavaScript does (ECMA-262), in linear time.
//!
//! What cannot be matched in linear time is no pattern here: no looking ahead or behind, no references to
//! groups.

use std::fmt;

use regex_automata::meta::Regex;
use regex_automata::nfa::thompson;
use regex_automata::util::syntax;

use super::BadSchema;
use super::text::quoted;

/// A pattern is no longer than this, in characters of what it is translated to.
const LONGEST: usize = 16 << 10;
/// And no larger when it is compiled, in bytes.
const LARGEST: usize = 256 << 10;
/// A letter of a pattern can stand for many that must be read, so each counts as so many bytes.
const READ: usize = 64;
/// What a match may keep to be faster, in bytes.
const CACHE: usize = 64 << 10;

pub(super) struct Pattern {
    source: String,
    regex: Regex,
    states: u64,
    size: usize,
}

impl Pattern {
    pub(super) fn compile(source: &str) -> Result<Self, BadSchema> {
        let unknown = |what: &str| BadSchema::new(format!("the pattern {} {what}", quoted(source)));
        let translated = translated(source).ok_or_else(|| unknown("is too long"))?;
        let hir = syntax::parse(&translated).map_err(|_| unknown("is not understood"))?;
        let config = thompson::Config::new()
            .nfa_size_limit(Some(LARGEST))
            .which_captures(thompson::WhichCaptures::None);
        let states = thompson::Compiler::new()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|_| unknown("is too large"))?;
        let config = Regex::config()
            .nfa_size_limit(Some(LARGEST))
            .which_captures(thompson::WhichCaptures::Implicit)
            .hybrid_cache_capacity(CACHE);
        let regex = Regex::builder()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|_| unknown("is too large"))?;
        Ok(Self {
            source: source.to_owned(),
            regex,
            states: states.states().len() as u64,
            size: READ * translated.len() + states.memory_usage() + CACHE,
        })
    }

    /// What it takes to have it, in bytes, about.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn is_match(&self, text: &str) -> bool {
        self.regex.is_match(text)
    }

    /// What a match may cost: where no cache helps, each letter is shown to each state.
    pub(super) fn cost(&self, text: &str) -> u64 {
        (text.len() as u64).saturating_mul(1 + self.states / 16) / 4 + 1
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(&self.source))
    }
}

/// A pattern of JavaScript in the words of the `regex` crates; `None` if it is too long.
fn translated(source: &str) -> Option<String> {
    let mut out = String::with_capacity(source.len().min(LONGEST));
    let mut rest = source.chars().peekable();
    while let Some(letter) = rest.next() {
        match letter {
            '\\' => match rest.next() {
                Some(letter) => _ = escape(letter, &mut rest, false, &mut out),
                None => out.push('\\'),
            },
            // Every end of a line that JavaScript knows.
            '.' => out.push_str(r"[^\n\r\x{2028}\x{2029}]"),
            '[' => class(&mut rest, &mut out),
            // What would be flags, and other things that JavaScript does not know.
            '(' if rest.peek() == Some(&'?') => {
                rest.next();
                match rest.peek() {
                    Some(':' | '<' | '=' | '!') => out.push_str("(?"),
                    _ => out.push_str("(?="),
                }
            }
            letter => out.push(letter),
        }
        if out.len() > LONGEST {
            return None;
        }
    }
    Some(out)
}

type Letters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Where we are in brackets, which says what a `-` means there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A letter, which can begin a range.
    Letter,
    /// A letter and a `-`.
    RangeBegun,
    /// Anything else: the beginning, the end of a range, a set such as `\w`.
    Other,
}

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
        // It is refused then.
        if out.len() > LONGEST {
            return;
        }
    }
}

/// Whether a letter comes, and not the end or a set.
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

/// What comes after a backslash. Says whether it is a set of letters.
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
        // Of words in ASCII.
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"(?-u:\B)"),
        '0' => out.push_str(r"\x00"),
        'c' => match rest.next() {
            Some(letter) if letter.is_ascii_alphabetic() => {
                out.push_str(&format!(r"\x{:02x}", u32::from(letter) % 32));
            }
            // Refused, as it should be.
            _ => out.push_str(r"\c"),
        },
        'u' => match surrogates(rest) {
            Some(letter) => out.push_str(&format!(r"\x{{{letter:x}}}")),
            None => out.push_str(r"\u"),
        },
        // What JavaScript does not know.
        'A' | 'z' | 'a' | '<' | '>' => out.push_str(r"\c"),
        letter => out.extend(['\\', letter]),
    }
    false
}

/// Two halves of a letter, each written as `\u` and four digits; the first `\u` has been read.
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
        Pattern::compile(pattern).expect(pattern).is_match(text)
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
    fn what_is_not_linear_is_not_understood() {
        for pattern in [
            "(?=a)",
            "(?!a)",
            "(?<=a)",
            "(?<!a)",
            r"(a)\1",
            "(?i)a",
            "(?i:a)",
            "(?P<a>b)",
            r"\Aa",
            r"a\z",
            "[a",
            "(",
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
        for (pattern, problem) in [
            ("(a{1000}){1000}".to_owned(), "too large"),
            (r"\p{L}{1000}".to_owned(), "too large"),
            (".".repeat(5000), "too long"),
            (format!("[{}", ".".repeat(1 << 20)), "too long"),
            (format!("[{}]", r"\w".repeat(5000)), "too long"),
            (scattered.repeat(10), "too long"),
            ("(".repeat(1000), "is not understood"),
            ("\u{7f}".repeat(10_000) + "(", "is not understood"),
        ] {
            let Err(found) = Pattern::compile(&pattern) else {
                panic!("{problem}");
            };
            let found = found.to_string();
            assert!(found.contains(problem) && found.len() < 300, "{found}");
        }
    }
}
