//! What a response means. Whatever it is, it is the end of a call, or the beginning of one.

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

/// So much is shown of a body that nobody understands.
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
    /// Its status.
    pub status: u16,
    /// What it calls its body.
    pub content_type: Option<String>,
    /// Where it sends us, which we do not follow.
    pub location: Option<String>,
    /// How its body begins.
    pub body: String,
    /// When to come back, as the server says it.
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

/// What kind of body a response has.
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

/// A body that was not read to its end.
pub(super) enum Unread {
    TooLong { limit: usize },
    Broken(Loss),
}

/// Reads a body to its end.
pub(super) async fn read(mut body: Incoming, limit: usize) -> Result<Bytes, Unread> {
    let mut first = Bytes::new();
    let mut read = BytesMut::new();
    while let Some(data) = next(&mut body).await.map_err(Unread::Broken)? {
        if first.len() + read.len() + data.len() > limit {
            return Err(Unread::TooLong { limit });
        }
        // What comes in one piece is not copied.
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

/// Reads what is left of a body that says nothing, so that its connection can be used again; but not
/// for long.
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

/// What a response is that nobody asked for.
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
    // Whoever says something odd need not be heard out.
    let _ = tokio::time::timeout(SHOWN_WITHIN, showing).await;
    shown.truncate(SHOWN);
    unexpected(status, headers, &shown)
}

/// The same, of which the body was read.
pub(super) fn unexpected(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Loss {
    let answer = HttpAnswer::new(status, headers, body);
    because(LossKind::HttpStatus(status.as_u16()), answer)
}

/// How a body begins, for people.
pub(super) fn beginning(body: &[u8]) -> String {
    String::from_utf8_lossy(&body[..body.len().min(SHOWN)]).into_owned()
}

/// A request that found nobody, or was cut off.
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
