//! The door: what is asked of a request before anybody looks into it.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH, EXPECT, HOST, ORIGIN, TRANSFER_ENCODING};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body::Body;

use super::super::headers::{self, single};
use super::refusal::Refusal;

/// Which names this server answers to, and which pages may speak to it. A browser can be made to
/// send requests to any address under any name (DNS rebinding); it cannot be made to lie about the
/// name.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// What was to be a host, and is none.
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

    /// The name it was asked under, and the page that asks, if one does.
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

    /// Unless it was told its names, a server answers to those of this machine alone.
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

    /// A name without a port covers it on every port.
    fn covers(&self, other: &Self) -> bool {
        let same = self.host.eq_ignore_ascii_case(other.host);
        same && (self.port.is_none() || self.port == other.port)
    }
}

/// What hyper leaves to others: it counts headers on HTTP/1.1 only, reads whatever ends in `chunked`
/// as if it were that alone, and passes over what it is not expected to do.
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

/// What is posted must be JSON: a page cannot send that to a foreign server without asking first.
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

/// An answer may be one or the other, so both must be welcome.
pub(super) fn check_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    let welcome = |media_type| headers::accepts(headers, media_type);
    match welcome("application/json") && welcome("text/event-stream") {
        true => Ok(()),
        false => {
            let problem = "send `Accept: application/json, text/event-stream`";
            Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, problem))
        }
    }
}

/// The answer to a GET is a stream.
pub(super) fn check_stream_accept(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers::accepts(headers, "text/event-stream") {
        true => Ok(()),
        false => {
            let problem = "send `Accept: text/event-stream`";
            Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, problem))
        }
    }
}

/// Reads a body, and counts while it does: nobody's word is taken for its length.
pub(super) async fn read_body<B>(
    headers: &HeaderMap,
    body: B,
    limit: usize,
    within: Duration,
    reading: &Reading,
) -> Result<Bytes, Refusal>
where
    B: Body,
    B::Data: bytes::Buf,
{
    let too_long = || {
        let problem = format!("the body is longer than {limit} bytes");
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, problem)
    };
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_long());
    }
    let mut body = pin!(body);
    let mut taken = reading.begin();
    let reading = async {
        // Most come in one piece, which need not be copied.
        let mut first = Bytes::new();
        let mut rest = BytesMut::new();
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            let frame = frame.map_err(|_| {
                let problem = "the body broke off";
                Refusal::new(StatusCode::BAD_REQUEST, problem)
            })?;
            let Ok(mut data) = frame.into_data() else {
                continue;
            };
            let length = bytes::Buf::remaining(&data);
            if first.len() + rest.len() + length > limit {
                return Err(too_long());
            }
            if !taken.more(length) {
                let problem = "overloaded: too much is being read; send it again later";
                return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem));
            }
            let data = bytes::Buf::copy_to_bytes(&mut data, length);
            match first.is_empty() && rest.is_empty() {
                true => first = data,
                false => {
                    if rest.is_empty() {
                        rest.extend_from_slice(&std::mem::take(&mut first));
                    }
                    rest.extend_from_slice(&data);
                }
            }
        }
        Ok(match rest.is_empty() {
            true => first,
            false => rest.freeze(),
        })
    };
    match ready_within(within, reading).await {
        Some(read) => read,
        None => {
            let problem = format!("the body took longer than {within:?}");
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, problem))
        }
    }
}

/// How much is being read in all.
pub(super) struct Reading {
    bytes: AtomicUsize,
    limit: usize,
}

/// What one body has taken of that. It is given back when the body was read, or is given up.
struct Taken<'a> {
    of: &'a Reading,
    bytes: usize,
}

impl Reading {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            limit,
        }
    }

    fn begin(&self) -> Taken<'_> {
        Taken { of: self, bytes: 0 }
    }
}

impl Taken<'_> {
    /// Takes more; false if there is no more.
    fn more(&mut self, bytes: usize) -> bool {
        let before = self.of.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        before + bytes <= self.of.limit
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.of.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Waits for something, but not longer than that. Most bodies are there already, and a timer is not
/// free: so it is set only if there is something to wait for.
async fn ready_within<F: Future>(span: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx)));
    match first.await {
        Poll::Ready(ready) => Some(ready),
        Poll::Pending => tokio::time::timeout(span, future).await.ok(),
    }
}
