//! CORS: the headers that a browser needs before a page of another origin may send requests to this
//! server and read its responses.
//!
//! Which origins are allowed is checked in `access.rs`, before anything here is called. The origin is
//! repeated as it came and never replaced by `*`, since not every page is allowed. There is no
//! `Access-Control-Allow-Credentials`: nothing here reads cookies, and a token comes in
//! `Authorization`, which a page sets by itself.

use http::header::{
    ACCEPT, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_HEADERS, ACCESS_CONTROL_REQUEST_METHOD, AUTHORIZATION, CONTENT_TYPE,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, VARY,
};
use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::super::headers;
use super::body::Body;

/// The request headers that a page may set, besides those that repeat arguments of tools.
const REQUEST_HEADERS: [HeaderName; 8] = [
    ACCEPT,
    AUTHORIZATION,
    CONTENT_TYPE,
    headers::LAST_EVENT_ID,
    headers::METHOD,
    headers::NAME,
    headers::PROTOCOL_VERSION,
    headers::SESSION_ID,
];

/// The response headers that a page may read, besides those that CORS always lets it read.
const EXPOSED_HEADERS: HeaderValue = HeaderValue::from_static("Mcp-Session-Id, Retry-After");

/// For how many seconds a browser may use the answer to a preflight. Chromium caps it at two hours.
/// It can be long: an origin that is not allowed any more is refused with 403 whatever the browser
/// remembers.
const MAX_AGE: HeaderValue = HeaderValue::from_static("7200");

/// Whether this is a preflight: a browser asks what a page may send, before it sends that.
pub(super) fn is_preflight(parts: &Parts) -> bool {
    parts.method == Method::OPTIONS
        && parts.headers.contains_key(ORIGIN)
        && parts.headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The answer to a preflight: these methods, and those of the requested headers that are known.
pub(super) fn preflight(requested: &HeaderMap, methods: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(
        ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static(methods),
    );
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Some(known) = known_headers(requested) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, known);
    }
    response
}

fn known_headers(requested: &HeaderMap) -> Option<HeaderValue> {
    let lists = requested.get_all(ACCESS_CONTROL_REQUEST_HEADERS).iter();
    let names = lists
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','))
        .filter_map(|name| name.trim().parse::<HeaderName>().ok());
    let known: Vec<HeaderName> = names
        .filter(|name| {
            REQUEST_HEADERS.contains(name) || name.as_str().starts_with(headers::PARAM_PREFIX)
        })
        .collect();
    let known: Vec<&str> = known.iter().map(HeaderName::as_str).collect();
    // Header names joined by commas are always a valid header value.
    let known = HeaderValue::try_from(known.join(", ")).ok();
    known.filter(|known| !known.is_empty())
}

/// Lets pages of this origin read the response.
pub(super) fn allow_origin(origin: &HeaderValue, response: &mut HeaderMap) {
    response.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    response.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED_HEADERS);
    // A cache must not give it to pages of other origins.
    response.append(VARY, HeaderValue::from_static("Origin"));
}
