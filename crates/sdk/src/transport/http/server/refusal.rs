//! Refusals of HTTP requests, and the status codes of answers.

use belay_protocol::engine::Waiting;
use belay_protocol::jsonrpc::{self, ErrorObject, Message, RequestId};
use belay_protocol::types::{Era, error_code};
use http::header::{ALLOW, CONNECTION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderName, Response, StatusCode};

use super::super::headers;
use super::body::Body;

/// An HTTP request that is refused before it reaches the engine.
#[derive(Debug)]
pub(super) struct Refusal(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    error: ErrorObject,
    id: Option<RequestId>,
    extra: Option<(HeaderName, HeaderValue)>,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, problem: impl Into<String>) -> Self {
        let code = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                error_code::OVERLOADED
            }
            _ => error_code::INVALID_REQUEST,
        };
        Self::with_error(status, ErrorObject::new(code, problem))
    }

    pub(super) fn with_error(status: StatusCode, error: ErrorObject) -> Self {
        let extra = match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Some((RETRY_AFTER, SOON))
            }
            // The rest of the body would be read as the next request.
            StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::NOT_IMPLEMENTED => Some((CONNECTION, HeaderValue::from_static("close"))),
            _ => None,
        };
        Self(Box::new(Inner {
            status,
            error,
            id: None,
            extra,
        }))
    }

    pub(super) fn shutting_down() -> Self {
        let error = ErrorObject::new(error_code::SHUTTING_DOWN, "shutting down");
        Self::with_error(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    /// The headers differ from the body.
    pub(super) fn mismatch(id: &RequestId, problem: String) -> Self {
        let error = ErrorObject::new(error_code::HEADER_MISMATCH, problem);
        Self::with_error(StatusCode::BAD_REQUEST, error).about(id)
    }

    pub(super) fn method_not_allowed(allowed: &'static str) -> Self {
        let problem = format!("only {allowed} here");
        let mut refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, problem);
        refusal.0.extra = Some((ALLOW, HeaderValue::from_static(allowed)));
        refusal
    }

    /// Adds the id of the request that it answers.
    pub(super) fn about(mut self, id: &RequestId) -> Self {
        self.0.id = Some(id.clone());
        self
    }
}

const SOON: HeaderValue = HeaderValue::from_static("1");

impl From<Refusal> for Response<Body> {
    fn from(refusal: Refusal) -> Self {
        let refusal = *refusal.0;
        tracing::debug!(status = %refusal.status, error = %refusal.error, "turned away");
        let message = match refusal.id {
            Some(id) => Message::Response(jsonrpc::Response {
                id,
                body: Err(refusal.error),
            }),
            None => Message::Unaddressed(refusal.error),
        };
        let mut response = Self::new(Body::full(message.encode()));
        *response.status_mut() = refusal.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, headers::JSON);
        headers.extend(refusal.extra);
        response
    }
}

/// The status code of an answer. In the legacy era it says only whether the message was accepted.
/// In the modern one it depends on the error, where the specification defines that.
pub(super) fn status(era: Era, answer: Waiting) -> StatusCode {
    let (code, refused) = match answer {
        Waiting::Refusal { code } => (code, true),
        Waiting::Answer { error: Some(code) } => (code, false),
        _ => return StatusCode::OK,
    };
    match (code, era) {
        (error_code::OVERLOADED, _) => StatusCode::TOO_MANY_REQUESTS,
        (error_code::SHUTTING_DOWN, _) => StatusCode::SERVICE_UNAVAILABLE,
        (error_code::PARSE_ERROR | error_code::INVALID_REQUEST, _) if refused => {
            StatusCode::BAD_REQUEST
        }
        (_, Era::Legacy) => StatusCode::OK,
        (error_code::METHOD_NOT_FOUND, _) => StatusCode::NOT_FOUND,
        (
            error_code::HEADER_MISMATCH
            | error_code::MISSING_REQUIRED_CLIENT_CAPABILITY
            | error_code::UNSUPPORTED_PROTOCOL_VERSION,
            _,
        ) => StatusCode::BAD_REQUEST,
        (error_code::INVALID_PARAMS, _) if refused => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

/// The `Retry-After` header, for statuses that ask the client to try later.
pub(super) fn retry_after(status: StatusCode) -> Option<(HeaderName, HeaderValue)> {
    let later = matches!(
        status,
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
    );
    later.then_some((RETRY_AFTER, SOON))
}
