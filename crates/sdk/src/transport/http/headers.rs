//! The HTTP headers of MCP, and the parsing of headers where it is strict.

#[cfg(feature = "client")]
use belay_protocol::jsonrpc::RawJson;
use std::borrow::Cow;

use belay_protocol::base64;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

/// The session of a legacy request.
pub(crate) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// The protocol version of a request.
pub(crate) const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The method of a request. Modern only.
pub(crate) const METHOD: HeaderName = HeaderName::from_static("mcp-method");
/// The name of the tool or prompt, or the URI of the resource. Modern only.
pub(crate) const NAME: HeaderName = HeaderName::from_static("mcp-name");
/// The id of the last event before a stream broke off.
pub(crate) const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The prefix of headers that repeat tool arguments. Modern only.
pub(crate) const PARAM_PREFIX: &str = "mcp-param-";

pub(crate) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(crate) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
pub(crate) const BOTH: HeaderValue =
    HeaderValue::from_static("application/json, text/event-stream");

/// A header that may occur once. `Err` if it occurs more often, or is not plain text.
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

/// A header occurs twice, or is not plain text.
#[derive(Debug)]
pub(crate) struct NotOne;

/// Whether the body has this media type, with any parameters.
pub(crate) fn content_is(headers: &HeaderMap, media_type: &str) -> bool {
    match single(headers, &CONTENT_TYPE) {
        Ok(Some(value)) => essence(value).eq_ignore_ascii_case(media_type),
        _ => false,
    }
}

/// Whether a response of this media type is accepted. Without an `Accept` header, everything is.
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

/// `text/html;q=0` means not acceptable.
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

/// The parameter that the `Mcp-Name` header of a method repeats.
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

/// Encodes a header value: as it is if that is safe, else in base64 between markers. Text that
/// looks like the encoded form is encoded, too (2026-07-28, Value Encoding).
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

/// Decodes a header value. Returns `None` if it is malformed.
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
