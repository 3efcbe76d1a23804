//! Reads one configuration file: JSON with comments, or TOML.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::Deserialize;

use super::{Found, How, Problem, Server};
use crate::permissions::Doubt;

/// The map of servers, under the names that hosts use for it.
#[derive(Deserialize)]
struct Contents {
    #[serde(default, rename = "mcpServers")]
    mcp_servers: BTreeMap<String, Entry>,
    #[serde(default)]
    servers: BTreeMap<String, Entry>,
    #[serde(default, rename = "mcp_servers")]
    codex_servers: BTreeMap<String, Entry>,
}

/// One server. Unknown fields are ignored.
#[derive(Deserialize)]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, Scalar>,
    cwd: Option<String>,
    #[serde(alias = "httpUrl", alias = "serverUrl")]
    url: Option<String>,
    #[serde(default, alias = "http_headers")]
    headers: BTreeMap<String, Scalar>,
}

/// A number or a boolean is accepted where a string is expected.
#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Number(serde_json::Number),
    Flag(bool),
}

/// Adds the servers of a file. An error in one server does not affect the others.
pub(super) fn read(file: &Path, found: &mut Found) {
    let problem = |line, what| Problem {
        file: file.to_owned(),
        line,
        what,
    };
    let (text, doubt) = match contents(file) {
        Ok(contents) => contents,
        Err(error) => return found.problems.push(problem(None, error.to_string())),
    };
    let text = text.trim_start_matches('\u{feff}');
    let read = match file
        .extension()
        .is_some_and(|extension| extension == "toml")
    {
        true => toml(text),
        false => json(text),
    };
    let read = match read {
        Ok(read) => read,
        Err((line, what)) => return found.problems.push(problem(line, what)),
    };
    let all = [read.mcp_servers, read.servers, read.codex_servers];
    for (name, entry) in all.into_iter().flatten() {
        match entry.how() {
            Some(how) => found.servers.push(Server {
                name,
                file: file.to_owned(),
                how,
                doubt: doubt.clone(),
            }),
            None => {
                let what = format!("server {name:?}: expected a `command` or a `url`");
                found.problems.push(problem(line_of(text, &name), what));
            }
        }
    }
}

/// The text of a file, and whether another user could have written it.
fn contents(path: &Path) -> io::Result<(String, Option<Doubt>)> {
    let mut file = File::open(path)?;
    let doubt = Doubt::about(path, &file.metadata()?);
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok((text, doubt))
}

type Misread = (Option<usize>, String);

fn json(text: &str) -> Result<Contents, Misread> {
    serde_json::from_str(&without_comments(text)).map_err(|error| {
        let line = Some(error.line()).filter(|line| *line > 0);
        let told = error.to_string();
        // The message ends with the position, which is already printed in front.
        let what = told.split(" at line ").next().unwrap_or(&told);
        (line, format!("{what}{}", expected(what)))
    })
}

fn toml(text: &str) -> Result<Contents, Misread> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| {
            let before = text.get(..span.start).unwrap_or_default();
            before.matches('\n').count() + 1
        });
        let what = error.message().trim().to_owned();
        let hint = expected(&what);
        (line, what + hint)
    })
}

/// A hint about the expected format, if the message does not say what is expected.
fn expected(what: &str) -> &'static str {
    match what.contains("expected") {
        true => "",
        false => "; expected `\"mcpServers\": { \"name\": { \"command\": \"…\", \"args\": […] } }`",
    }
}

impl Entry {
    fn how(self) -> Option<How> {
        match (self.command, self.url) {
            (Some(program), _) => Some(How::Command {
                program,
                arguments: self.args,
                environment: texts(self.env),
                folder: self.cwd,
            }),
            (None, Some(url)) => Some(How::Url {
                url,
                headers: texts(self.headers),
            }),
            (None, None) => None,
        }
    }
}

fn texts(values: BTreeMap<String, Scalar>) -> BTreeMap<String, String> {
    let texts = values.into_iter().map(|(name, value)| (name, value.text()));
    texts.collect()
}

impl Scalar {
    fn text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
            Self::Flag(flag) => flag.to_string(),
        }
    }
}

/// The line on which a server's entry probably begins.
fn line_of(text: &str, name: &str) -> Option<usize> {
    let quoted = format!("\"{name}\"");
    let table = format!("servers.{name}]");
    let found = text
        .lines()
        .position(|line| line.contains(&quoted) || line.contains(&table));
    found.map(|line| line + 1)
}

/// Replaces comments and trailing commas by spaces, so that positions do not change.
fn without_comments(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut comma = None;
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => {
                comma = None;
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' {
                    at += 1 + usize::from(bytes[at] == b'\\');
                }
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                while at < bytes.len() && bytes[at] != b'\n' {
                    bytes[at] = b' ';
                    at += 1;
                }
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                while at < bytes.len() && !bytes[at..].starts_with(b"*/") {
                    if bytes[at] != b'\n' {
                        bytes[at] = b' ';
                    }
                    at += 1;
                }
                let end = bytes.len().min(at + 2);
                bytes[at..end].fill(b' ');
                at = end;
                continue;
            }
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    bytes[comma] = b' ';
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += 1;
    }
    // Still valid UTF-8: comments begin and end at ASCII characters.
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_trailing_commas_are_passed_over_in_place() {
        let text = "{ // \"x\" é\n  \"a\": \"// no\", /* \n , */ \"b\": [1, 2, ], }";
        let clean = without_comments(text);
        assert_eq!(clean.matches('\n').count(), text.matches('\n').count());
        let value: serde_json::Value = serde_json::from_str(&clean).unwrap();
        assert_eq!(value, serde_json::json!({ "a": "// no", "b": [1, 2] }));
    }
}
