//! Checks of a request's head, before its body is read.

use http::header::{ACCEPT, CONTENT_ENCODING, EXPECT, HOST, ORIGIN, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, StatusCode};

use super::super::headers::{self, single};
use super::refusal::Refusal;

/// The allowed host names and origins. A browser can be tricked into sending requests to any
/// address under any name (DNS rebinding), but it always sends the true name.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// An allowed host that is not a valid host name.
    wrong: Option<String>,
}

impl Names {
    pub(super) fn allow_host(&mut self, host: &str) {
        match Authority::parse(host) {
            Some(_) => self.hosts.push(host.to_owned()),
            None => self.wrong = Some(host.to_owned()),
        }
    }

    pub(super) fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    pub(super) fn allow_origin(&mut self, origin: &str) {
        self.origins
            .push(origin.trim_end_matches('/').to_ascii_lowercase());
    }

    pub(super) fn has_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Checks the `Host` that the request is for, and the `Origin` of the page that
    /// sent it, if any.
    pub(super) fn check(&self, parts: &Parts) -> Result<(), Refusal> {
        let named = single(&parts.headers, &HOST);
        let named = named.map_err(|_| foreign_host("there is more than one `Host` header"))?;
        let authority = parts.uri.authority().map(http::uri::Authority::as_str);
        if named.is_none() && authority.is_none() {
            return Err(foreign_host("there is no `Host` header"));
        }
        for name in [named, authority].into_iter().flatten() {
            let allowed = Authority::parse(name).is_some_and(|name| self.answers_to(&name));
            if !allowed {
                return Err(foreign_host(&format!("this server is not called {name:?}")));
            }
        }
        match single(&parts.headers, &ORIGIN) {
            Ok(None) => Ok(()),
            Ok(Some(origin)) if self.welcomes(origin) => Ok(()),
            Ok(Some(origin)) => Err(foreign_origin(&format!("{origin:?} is not welcome"))),
            Err(_) => Err(foreign_origin("there is more than one `Origin` header")),
        }
    }

    /// By default only the loopback names are accepted.
    fn answers_to(&self, name: &Authority<'_>) -> bool {
        match self.hosts.is_empty() && self.wrong.is_none() {
            true => name.is_loopback(),
            false => {
                let mut hosts = self.hosts.iter().filter_map(|host| Authority::parse(host));
                hosts.any(|host| host.covers(name))
            }
        }
    }

    fn welcomes(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.origins.contains(&origin) {
            return true;
        }
        let rest = origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"));
        let name = rest.and_then(Authority::parse);
        name.is_some_and(|name| self.answers_to(&name))
    }
}

fn foreign_host(problem: &str) -> Refusal {
    let hint = "name it with `allow_host` if it is (`--allow-host`)";
    Refusal::new(StatusCode::FORBIDDEN, format!("{problem}; {hint}"))
}

fn foreign_origin(problem: &str) -> Refusal {
    let hint = "allow it with `allow_origin` if it is yours (`--allow-origin`)";
    Refusal::new(
        StatusCode::FORBIDDEN,
        format!("`Origin`: {problem}; {hint}"),
    )
}

/// `host` or `host:port`, without a dot at the end of the host.
#[derive(Clone, Copy, Debug)]
struct Authority<'a> {
    host: &'a str,
    port: Option<u16>,
}

impl<'a> Authority<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (host, rest) = rest.split_once(']')?;
                host.parse::<std::net::Ipv6Addr>().ok()?;
                let port = match rest {
                    "" => None,
                    rest => Some(rest.strip_prefix(':')?),
                };
                (host, port)
            }
            None => {
                let (host, port) = match text.split_once(':') {
                    Some((host, port)) => (host, Some(port)),
                    None => (text, None),
                };
                let host = host.strip_suffix('.').unwrap_or(host);
                let valid =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
                if host.is_empty() || !host.bytes().all(valid) {
                    return None;
                }
                (host, port)
            }
        };
        let port = match port {
            None => None,
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(port.parse().ok()?)
            }
            Some(_) => return None,
        };
        Some(Self { host, port })
    }

    fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self
                .host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback())
    }

    /// Whether it matches. A name without a port matches every port.
    fn covers(&self, other: &Self) -> bool {
        let same = self.host.eq_ignore_ascii_case(other.host);
        same && (self.port.is_none() || self.port == other.port)
    }
}

/// Checks that hyper leaves to its user: it counts headers on HTTP/1.1 only, treats every coding
/// that ends in `chunked` as plain `chunked`, and ignores unknown expectations.
pub(super) fn check_headers(headers: &HeaderMap, most: usize) -> Result<(), Refusal> {
    if headers.len() > most {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        let problem = format!("there are more than {most} headers");
        return Err(Refusal::new(status, problem));
    }
    let is = |header, known: &str| match single(headers, header) {
        Ok(value) => value.is_none_or(|value| value.eq_ignore_ascii_case(known)),
        Err(_) => false,
    };
    if !is(&TRANSFER_ENCODING, "chunked") {
        let problem = "of transfer codings only `chunked` is known, once";
        return Err(Refusal::new(StatusCode::NOT_IMPLEMENTED, problem));
    }
    if !is(&EXPECT, "100-continue") {
        let problem = "of expectations only `100-continue` is known, once";
        return Err(Refusal::new(StatusCode::EXPECTATION_FAILED, problem));
    }
    Ok(())
}

/// Requires JSON: a browser page cannot post that to another origin without a preflight.
pub(super) fn check_content(headers: &HeaderMap) -> Result<(), Refusal> {
    if !headers::content_is(headers, "application/json") {
        let problem = "post `Content-Type: application/json`";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem));
    }
    if headers.contains_key(CONTENT_ENCODING) {
        let problem = "post without `Content-Encoding`";
        return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, problem));
    }
    Ok(())
}

/// The response may be JSON or an event stream, so the client must accept both.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    // The header of most clients, compared first because that is cheap.
    let mut said = headers.get_all(ACCEPT).iter();
    if let (Some(only), None) = (said.next(), said.next())
        && *only == headers::BOTH
    {
        return Ok(());
    }
    let welcome = |media_type| headers::accepts(headers, media_type);
    match welcome("application/json") && welcome("text/event-stream") {
        true => Ok(()),
        false => {
            let problem = "send `Accept: application/json, text/event-stream`";
            Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, problem))
        }
    }
}

/// The response to a GET is an event stream.
pub(super) fn check_stream_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers::accepts(headers, "text/event-stream") {
        true => Ok(()),
        false => {
            let problem = "send `Accept: text/event-stream`";
            Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, problem))
        }
    }
}
