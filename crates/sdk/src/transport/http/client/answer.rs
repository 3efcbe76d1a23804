//! Classification of HTTP responses.

use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{Loss, LossKind};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use http_body::Body as _;
use hyper::body::Incoming;

use super::super::headers;

/// The most bytes of an unexpected body that are kept.
const SHOWN: usize = 200;
const DRAINED_WITHIN: Duration = Duration::from_millis(100);
const SHOWN_WITHIN: Duration = Duration::from_secs(1);

/// An answer over HTTP that was none: what a call is lost to when a server, or somebody in front of
/// it, says something else than the protocol has it.
///
/// It is the source of the [`Loss`](crate::outcome::Loss).
#[derive(Debug)]
#[non_exhaustive]
pub struct HttpAnswer {
    /// The HTTP status.
    pub status: u16,
    /// The content type, as the response states it.
    pub content_type: Option<String>,
    /// The target of a redirect, which is not followed.
    pub location: Option<String>,
    /// The first 200 bytes of the body.
    pub body: String,
    /// The `Retry-After` header, as the server sent it.
    pub retry_after: Option<String>,
}

impl HttpAnswer {
    pub(super) fn new(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Self {
        let text = |name| {
            let value: Option<&http::HeaderValue> = headers.get(name);
            value.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        Self {
            status: status.as_u16(),
            content_type: text(CONTENT_TYPE),
            location: text(LOCATION).filter(|_| status.is_redirection()),
            body: beginning(body),
            retry_after: text(RETRY_AFTER),
        }
    }
}

impl fmt::Display for HttpAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HTTP {}", self.status)?;
        if let Some(location) = &self.location {
            return write!(
                f,
                ", which sends to {location}; use that address if you trust it"
            );
        }
        match &self.content_type {
            Some(content_type) => write!(f, " with {content_type}")?,
            None => f.write_str(" without a content type")?,
        }
        if let Some(when) = &self.retry_after {
            write!(f, ", Retry-After: {when}")?;
        }
        match self.body.trim() {
            "" => f.write_str(", and nothing in it"),
            body => write!(f, ": {body}"),
        }
    }
}

impl StdError for HttpAnswer {}

/// The kinds of response bodies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    Json,
    Events,
    Other,
}

pub(super) fn content(headers: &HeaderMap) -> Content {
    if headers::content_is(headers, "application/json") {
        Content::Json
    } else if headers::content_is(headers, "text/event-stream") {
        Content::Events
    } else {
        Content::Other
    }
}

/// Why a body was not read to its end.
pub(super) enum Unread {
    TooLong { limit: usize },
    Broken(Loss),
}

/// Reads a body to its end, up to `limit` bytes.
pub(super) async fn read(mut body: Incoming, limit: usize) -> Result<Bytes, Unread> {
    let mut first = Bytes::new();
    let mut read = BytesMut::new();
    while let Some(data) = next(&mut body).await.map_err(Unread::Broken)? {
        if first.len() + read.len() + data.len() > limit {
            return Err(Unread::TooLong { limit });
        }
        // A body of a single piece is not copied.
        match first.is_empty() && read.is_empty() {
            true => first = data,
            false => {
                read.extend_from_slice(&std::mem::take(&mut first));
                read.extend_from_slice(&data);
            }
        }
    }
    Ok(match read.is_empty() {
        true => first,
        false => read.freeze(),
    })
}

/// Reads the rest of an unused body, so that its connection can be reused. Limited
/// in size and time.
pub(super) async fn drain(mut body: Incoming) {
    let draining = async {
        let mut left = 64 << 10_usize;
        while let Ok(Some(data)) = next(&mut body).await
            && data.len() < left
        {
            left -= data.len();
        }
    };
    let _ = tokio::time::timeout(DRAINED_WITHIN, draining).await;
}

/// The next piece of a body.
pub(super) async fn next(body: &mut Incoming) -> Result<Option<Bytes>, Loss> {
    loop {
        match poll_fn(|cx| Pin::new(&mut *body).poll_frame(cx)).await {
            None => return Ok(None),
            Some(Err(error)) => return Err(broken(error)),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

/// Describes an unexpected response, with the beginning of its body.
pub(super) async fn odd(status: StatusCode, headers: &HeaderMap, mut body: Incoming) -> Loss {
    let mut shown = BytesMut::new();
    let showing = async {
        while shown.len() < SHOWN {
            match next(&mut body).await {
                Ok(Some(data)) => shown.extend_from_slice(&data[..data.len().min(SHOWN)]),
                Ok(None) | Err(_) => break,
            }
        }
    };
    // The body need not be read to its end.
    let _ = tokio::time::timeout(SHOWN_WITHIN, showing).await;
    shown.truncate(SHOWN);
    unexpected(status, headers, &shown)
}

/// Describes an unexpected response whose body was read.
pub(super) fn unexpected(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Loss {
    let answer = HttpAnswer::new(status, headers, body);
    because(LossKind::HttpStatus(status.as_u16()), answer)
}

/// The first bytes of a body, as text.
pub(super) fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned()
}

/// A request that did not reach the server, or was cut off.
pub(super) fn failed(error: hyper_util::client::legacy::Error) -> Loss {
    because(LossKind::Io, error)
}

fn broken(error: hyper::Error) -> Loss {
    because(LossKind::Io, error)
}

pub(super) fn because(kind: LossKind, source: impl StdError + Send + Sync + 'static) -> Loss {
    Loss {
        kind,
        source: Some(Arc::new(source)),
    }
}
