//! The headers that MCP adds to HTTP, and those it is strict about.

#[cfg(feature = "client")]
use belay_protocol::jsonrpc::RawJson;
use std::borrow::Cow;

use belay_protocol::base64;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

/// The session that a legacy request belongs to.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The revision that a request is made in.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// What is asked. Modern only.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// Of which tool, prompt or resource it is asked. Modern only.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// Where a stream broke.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// How the names of those headers begin that repeat arguments of tools. Modern only.
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
pub(crate) const BOTH: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");

/// A header that may be there once. `Err` if it is there more often, or is not text.
pub(crate) fn single<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, NotOne> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| NotOne),
        (Some(_), Some(_)) => Err(NotOne),
    }
}

/// A header came twice, or is not plain text.
#[derive(Debug)]
pub(crate) struct NotOne;

/// Whether the body is of this media type, whatever parameters it has.
pub(crate) fn content_is(headers: &HeaderMap, media_type: &str) -> bool {
    match single(headers, &CONTENT_TYPE) {
        Ok(Some(value)) => essence(value).eq_ignore_ascii_case(media_type),
        _ => false,
    }
}

/// Whether an answer of this media type is welcome. Whoever says nothing takes everything.
pub(crate) fn accepts(headers: &HeaderMap, media_type: &str) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    let (kind, _) = media_type.split_once('/').unwrap_or((media_type, ""));
    values
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter(|range| !is_refused(range))
        .map(essence)
        .any(|range| {
            range.eq_ignore_ascii_case(media_type)
                || range == "*/*"
                || range
                    .strip_suffix("/*")
                    .is_some_and(|range| range.eq_ignore_ascii_case(kind))
        })
}

/// `text/html;q=0` is not wanted at all.
fn is_refused(range: &str) -> bool {
    let mut parameters = range.split(';').skip(1).map(str::trim);
    parameters.any(|parameter| {
        let quality = parameter.strip_prefix("q=").map(str::parse::<f32>);
        quality.is_some_and(|quality| quality == Ok(0.0))
    })
}

fn essence(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

/// Which parameter of a method its `Mcp-Name` header repeats.
pub(crate) fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        _ => None,
    }
}

/// The `Mcp-Name` header of a request, if it has one.
#[cfg(feature = "client")]
pub(crate) fn name(method: &str, params: &RawJson) -> Option<HeaderValue> {
    let named = params.field(named_by(method)?)?;
    Some(encode(&named.as_text()?))
}

/// How a text stands in a header: as it is if that is safe, else in base64 between markers. What
/// only looks like the latter is encoded, too (2026-07-28, Value Encoding).
pub(crate) fn encode(text: &str) -> HeaderValue {
    let safe = text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.trim() == text
        && !(text.starts_with(PREFIX) && text.ends_with(SUFFIX));
    let value = match safe {
        true => text.to_owned(),
        false => format!("{PREFIX}{}{SUFFIX}", base64::encode(text.as_bytes())),
    };
    HeaderValue::try_from(value).expect("only visible ASCII, spaces and tabs are left")
}

/// The text that stands in a header; `None` if it is malformed.
pub(crate) fn decode(value: &str) -> Option<Cow<'_, str>> {
    let inside = value
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.strip_suffix(SUFFIX));
    match inside {
        None => Some(Cow::Borrowed(value)),
        Some(inside) => String::from_utf8(base64::decode(inside)?)
            .ok()
            .map(Cow::Owned),
    }
}

const PREFIX: &str = "=?base64?";
const SUFFIX: &str = "?=";
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        for (text, header) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(text), header);
            assert_eq!(decode(header).as_deref(), Some(text));
        }
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in [
            "=?base64?A?=",
            "=?base64?AAAA=?=",
            "=?base64?A*==?=",
            "=?base64?/w==?=",
        ] {
            assert_eq!(decode(text), None, "{text}");
        }
    }

    #[test]
    fn accept_is_read_with_ranges_and_qualities() {
        let accepts = |value: &'static str, media_type| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, HeaderValue::from_static(value));
            super::accepts(&headers, media_type)
        };
        assert!(accepts(
            "application/json, text/event-stream",
            "text/event-stream"
        ));
        assert!(accepts("*/*", "text/event-stream"));
        assert!(accepts("Application/*;q=0.5", "application/json"));
        assert!(!accepts("application/*", "text/event-stream"));
        assert!(!accepts(
            "application/json;q=0, text/html",
            "application/json"
        ));
        assert!(super::accepts(&HeaderMap::new(), "application/json"));
    }
}
