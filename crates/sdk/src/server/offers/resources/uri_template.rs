//! URI templates after RFC 6570, and how URIs are matched against them.
//!
//! Matching takes time linear in the length of the URI, for any pattern: first, from the end, the
//! places are computed at which each part can begin; then a walk from the front takes the
//! shortest match of each variable.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use crate::percent::decoded;

/// A pattern such as `file:///{+path}` or `search://items{?q,limit}`.
///
/// | in the pattern | stands for |
/// |---|---|
/// | `{name}` | something without `/`, `?` and `#` |
/// | `{+name}` | anything |
/// | `{?a,b}` | at the end: a query, of which each may be missing |
///
/// What stands there is given percent-decoded, so it may hold anything, `../` included: a handler
/// that reads files has to look.
///
/// ```
/// use belay::server::UriTemplate;
///
/// let template: UriTemplate = "file:///{+path}".parse().unwrap();
/// let found = template.matches("file:///src/main%20.rs").unwrap();
/// assert_eq!(found["path"], "src/main .rs");
/// assert!(template.matches("http://src").is_none());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UriTemplate {
    text: String,
    parts: Vec<Part>,
    /// The names of the query parameters at the end.
    query: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Literal(Vec<u8>),
    Variable { name: String, reserved: bool },
}

/// The longest URI that can match.
const LONGEST: usize = 64 * 1024;

/// The most variables and literals of a pattern.
const MOST_PARTS: usize = 64;

/// Why a pattern is invalid or not supported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UriTemplateError {
    template: String,
    problem: String,
}

impl fmt::Display for UriTemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { template, problem } = self;
        write!(f, "the URI template {template:?} cannot be used: {problem}")
    }
}

impl std::error::Error for UriTemplateError {}

impl std::str::FromStr for UriTemplate {
    type Err = UriTemplateError;

    fn from_str(text: &str) -> Result<Self, UriTemplateError> {
        parse(text).map_err(|problem| UriTemplateError {
            template: text.to_owned(),
            problem,
        })
    }
}

impl fmt::Display for UriTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn parse(text: &str) -> Result<UriTemplate, String> {
    let mut template = UriTemplate {
        text: text.to_owned(),
        parts: Vec::new(),
        query: Vec::new(),
    };
    let mut rest = text;
    while !rest.is_empty() {
        if !template.query.is_empty() {
            return Err("nothing can follow `{?…}`".into());
        }
        let literal = rest.find(['{', '}']).unwrap_or(rest.len());
        if literal > 0 {
            let literal = &rest.as_bytes()[..literal];
            template.parts.push(Part::Literal(literal.to_vec()));
        }
        rest = &rest[literal..];
        if rest.is_empty() {
            break;
        }
        let inside = rest.strip_prefix('{').ok_or("a `}` without a `{`")?;
        let end = inside.find('}').ok_or("a `{` without a `}`")?;
        expression(&inside[..end], &mut template)?;
        rest = &inside[end + 1..];
    }
    if template.parts.len() > MOST_PARTS {
        return Err(format!("it has more than {MOST_PARTS} parts"));
    }
    Ok(template)
}

fn expression(inside: &str, template: &mut UriTemplate) -> Result<(), String> {
    if let Some(names) = inside.strip_prefix('?') {
        for name in names.split(',') {
            let name = known_name(name, template)?;
            template.query.push(name);
        }
        return Ok(());
    }
    let (name, reserved) = match inside.strip_prefix('+') {
        Some(name) => (name, true),
        None => (inside, false),
    };
    let name = known_name(name, template)?;
    if let Some(Part::Variable { name: before, .. }) = template.parts.last() {
        let problem = "nothing tells where the first of them ends";
        return Err(format!(
            "`{{{before}}}` and `{{{name}}}` stand side by side: {problem}"
        ));
    }
    template.parts.push(Part::Variable { name, reserved });
    Ok(())
}

fn known_name(name: &str, template: &UriTemplate) -> Result<String, String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if name.is_empty() || !name.bytes().all(fits) {
        let known = "`{name}`, `{+name}` and `{?a,b}`";
        return Err(format!("`{{{name}}}` is not understood; there are {known}"));
    }
    match template.variables().any(|known| known == name) {
        true => Err(format!("`{name}` stands in it twice")),
        false => Ok(name.to_owned()),
    }
}

impl UriTemplate {
    /// The names of the variables.
    pub fn variables(&self) -> impl Iterator<Item = &str> {
        let parts = self.parts.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Variable { name, .. } => Some(name.as_str()),
        });
        parts.chain(self.query.iter().map(String::as_str))
    }

    /// The pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The values of the variables, if the URI matches.
    pub fn matches<'a>(&'a self, uri: &'a str) -> Option<BTreeMap<&'a str, Cow<'a, str>>> {
        if uri.len() > LONGEST {
            return None;
        }
        let (path, query) = match (self.query.is_empty(), uri.split_once('?')) {
            (false, Some((path, query))) => (path, query),
            _ => (uri, ""),
        };
        let mut found = self.walk(path)?;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            // Other query parameters are ignored.
            if let Some(known) = self.query.iter().find(|known| *known == name) {
                found.insert(known, decoded(value)?);
            }
        }
        Some(found)
    }

    fn walk<'a>(&'a self, path: &'a str) -> Option<BTreeMap<&'a str, Cow<'a, str>>> {
        let begins = self.begins(path.as_bytes());
        if !*begins.first()?.first()? {
            return None;
        }
        let mut found = BTreeMap::new();
        let mut at = 0;
        for (part, next) in self.parts.iter().zip(begins.iter().skip(1)) {
            match part {
                Part::Literal(literal) => at += literal.len(),
                Part::Variable { name, .. } => {
                    let end = (at + 1..next.len()).find(|place| {
                        look();
                        next[*place]
                    })?;
                    found.insert(name.as_str(), decoded(path.get(at..end)?)?);
                    at = end;
                }
            }
        }
        Some(found)
    }

    /// For each part, and for the end: the places of the path at which it can begin
    /// such that the rest matches.
    fn begins(&self, path: &[u8]) -> Vec<Vec<bool>> {
        let places = path.len() + 1;
        let mut begins = vec![vec![false; places]; self.parts.len() + 1];
        begins[self.parts.len()][path.len()] = true;
        for (number, part) in self.parts.iter().enumerate().rev() {
            let (here, after) = begins.split_at_mut(number + 1);
            let (here, after) = (&mut here[number], &after[0]);
            for place in (0..path.len()).rev() {
                look();
                here[place] = match part {
                    Part::Literal(literal) => {
                        let end = place + literal.len();
                        end < places && after[end] && path[place..end] == literal[..]
                    }
                    Part::Variable { reserved, .. } => {
                        let fits = *reserved || !matches!(path[place], b'/' | b'?' | b'#');
                        fits && (after[place + 1] || here[place + 1])
                    }
                };
            }
        }
        begins
    }
}

/// Tests count the places that are examined.
#[cfg(not(test))]
fn look() {}

#[cfg(test)]
fn look() {
    tests::LOOKS.set(tests::LOOKS.get() + 1);
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static LOOKS: Cell<u64> = const { Cell::new(0) };
    }

    /// The values in a URI, as `name=value` pairs.
    fn found(template: &str, uri: &str) -> Option<String> {
        let template: UriTemplate = template.parse().unwrap();
        let found = template.matches(uri)?;
        let pairs = found.iter().map(|(name, value)| format!("{name}={value}"));
        Some(pairs.collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_fits_and_what_does_not() {
        for (template, uri, expected) in [
            ("test://t/{id}/data", "test://t/123/data", Some("id=123")),
            ("test://t/{id}/data", "test://t//data", None),
            ("test://t/{id}/data", "test://t/1/2/data", None),
            ("test://t/{id}/data", "test://t/123/dat", None),
            ("test://t/{id}/data", "test://t/123/data2", None),
            ("file:///{+path}", "file:///a/b/c", Some("path=a/b/c")),
            ("file:///{+path}", "file:///", None),
            ("{a}b{c}", "1b2b3", Some("a=1 c=2b3")),
            ("{a}b", "abab", Some("a=aba")),
            ("{+a}b{c}d", "1b/2b3d", Some("a=1b/2 c=3")),
            ("{a}x", "é/x", None),
            ("{a}x", "éx", Some("a=é")),
            ("{a}", "%C3%A9%2F", Some("a=é/")),
            ("{a}", "%C3", None),
            ("{a}", "%4", None),
            ("{a}", "%zz", None),
            ("plain", "plain", Some("")),
            ("plain", "plainer", None),
            ("s://i{?q,n}", "s://i", Some("")),
            ("s://i{?q,n}", "s://i?n=2&q=a%20b&z=9", Some("n=2 q=a b")),
            ("s://i{?q}", "s://i?q", Some("q=")),
            ("s://i{?q}", "s://j?q=1", None),
            ("s://{a}", "s://i?q=1", None),
            ("", "", Some("")),
            ("", "a", None),
        ] {
            let said = found(template, uri);
            assert_eq!(said.as_deref(), expected, "{template} {uri}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for (template, problem) in [
            ("{", "a `{` without a `}`"),
            ("}", "a `}` without a `{`"),
            ("{}", "`{}` is not understood"),
            ("{a*}", "`{a*}` is not understood"),
            ("{/a}", "`{/a}` is not understood"),
            ("{a}{b}", "stand side by side"),
            ("{a}/{a}", "`a` stands in it twice"),
            ("{?a}/b", "nothing can follow"),
        ] {
            let error = template.parse::<UriTemplate>().unwrap_err().to_string();
            assert!(error.contains(problem), "{template}: {error}");
        }
    }

    /// A backtracking matcher would not finish in any useful time. This one examines each place of
    /// the path once for each part of the template, and once more.
    #[test]
    fn hostile_uris_take_linear_time() {
        let template = "{+a}a".repeat(20).replace("{+a}", "{+v}");
        let mut number = 0;
        let template: String = template
            .split("{+v}")
            .skip(1)
            .map(|rest| {
                number += 1;
                format!("{{+v{number}}}{rest}")
            })
            .collect();
        let template: UriTemplate = template.parse().unwrap();
        for length in [LONGEST / 4, LONGEST / 2, LONGEST] {
            let most = (template.parts.len() as u64 + 1) * (length as u64 + 1);
            for (last, fits) in [("b", false), ("a", true)] {
                LOOKS.set(0);
                let uri = "a".repeat(length - 1) + last;
                assert_eq!(template.matches(&uri).is_some(), fits);
                let looks = LOOKS.get();
                assert!(looks > length as u64 && looks <= most, "{length}: {looks}");
            }
        }
        assert!(template.matches(&"a".repeat(LONGEST + 1)).is_none());
    }
}
