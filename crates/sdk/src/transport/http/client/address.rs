//! The address of a server, and a memory of which protocol era it uses.

use std::collections::HashMap;
use std::sync::LazyLock;

use http::Uri;
use http::uri::{Authority, Scheme};

use crate::Error;
use crate::sync::Mutex;

/// The address of a server.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Address(Uri);

impl Address {
    /// Parses `https://host/path`, or `host/path`, which means http for this
    /// machine and else https.
    pub(crate) fn parse(text: &str) -> Result<Self, Error> {
        let wrong =
            |problem: &str| Error::connect(format!("{text:?} is no address: {problem}"), None);
        let whole = match text.contains("://") {
            true => text.to_owned(),
            false => {
                let host = text.split(['/', '?']).next().unwrap_or_default();
                format!("{}://{text}", if is_here(host) { "http" } else { "https" })
            }
        };
        let uri: Uri = whole.parse().map_err(|error| wrong(&format!("{error}")))?;
        match uri.scheme_str() {
            Some("http" | "https") => {}
            _ => return Err(wrong("it must begin with https:// or http://")),
        }
        match uri.authority() {
            Some(authority) if authority.as_str().contains('@') => {
                Err(wrong("send credentials as a header, not in the address"))
            }
            Some(authority) if !authority.host().is_empty() => Ok(Self(uri)),
            _ => Err(wrong("there is no host in it")),
        }
    }

    pub(super) fn uri(&self) -> &Uri {
        &self.0
    }

    /// Resolves a reference from the server. Another origin is refused, because it would receive
    /// the requests and their credentials.
    pub(super) fn join(&self, reference: &str) -> Option<Self> {
        let uri = match reference.parse::<Uri>() {
            Ok(uri) if uri.scheme().is_some() => uri,
            _ => {
                let path = match reference.chars().next() {
                    Some('/') => reference.to_owned(),
                    Some('?') => format!("{}{reference}", self.0.path()),
                    _ => {
                        let base = self.0.path();
                        let folder = base.rfind('/').map_or("", |end| &base[..end]);
                        format!("{folder}/{reference}")
                    }
                };
                let mut parts = self.0.clone().into_parts();
                parts.path_and_query = Some(path.parse().ok()?);
                Uri::from_parts(parts).ok()?
            }
        };
        (origin(&uri) == origin(&self.0)).then_some(Self(uri))
    }
}

fn origin(uri: &Uri) -> (Option<&Scheme>, Option<String>, Option<u16>) {
    let port = uri.port_u16().or(match uri.scheme_str() {
        Some("https") => Some(443),
        _ => Some(80),
    });
    let host = uri.authority().map(Authority::host);
    (uri.scheme(), host.map(str::to_ascii_lowercase), port)
}

fn is_here(authority: &str) -> bool {
    let host = match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    host.eq_ignore_ascii_case("localhost")
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// The protocol that a server uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Speaks {
    Modern,
    Legacy,
    EventStream,
}

/// The protocols that servers used last, so that not every connection has to probe.
static LEARNT: LazyLock<Mutex<HashMap<Address, Speaks>>> = LazyLock::new(Mutex::default);

/// The most servers that are remembered.
const REMEMBERED: usize = 1024;

pub(super) fn recall(address: &Address) -> Option<Speaks> {
    let learnt = LEARNT.lock();
    learnt.get(address).copied()
}

pub(super) fn learn(address: &Address, speaks: Option<Speaks>) {
    let mut learnt = LEARNT.lock();
    match speaks {
        Some(speaks) if learnt.len() < REMEMBERED => learnt.insert(address.clone(), speaks),
        _ => learnt.remove(address),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_host_means_https_and_this_machine_http() {
        for (text, whole) in [
            ("example.com/mcp", "https://example.com/mcp"),
            ("localhost:8000/mcp", "http://localhost:8000/mcp"),
            ("127.0.0.1/mcp", "http://127.0.0.1/mcp"),
            ("[::1]:8000/mcp", "http://[::1]:8000/mcp"),
            ("http://example.com/mcp", "http://example.com/mcp"),
        ] {
            let address = Address::parse(text).unwrap();
            assert_eq!(address.uri(), whole, "{text}");
        }
        for text in [
            "ftp://example.com",
            "https://",
            "https://me:secret@example.com/",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_server_sends_nobody_elsewhere() {
        let address = Address::parse("http://localhost:8000/a/sse").unwrap();
        for (reference, whole) in [
            (
                "/messages?id=1",
                Some("http://localhost:8000/messages?id=1"),
            ),
            ("messages", Some("http://localhost:8000/a/messages")),
            ("?id=1", Some("http://localhost:8000/a/sse?id=1")),
            ("http://LOCALHOST:8000/m", Some("http://LOCALHOST:8000/m")),
            ("http://localhost:8001/m", None),
            ("http://example.com/m", None),
        ] {
            let joined = address.join(reference).map(|joined| joined.0.to_string());
            assert_eq!(joined.as_deref(), whole, "{reference}");
        }
    }
}
