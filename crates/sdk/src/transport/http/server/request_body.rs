//! Reading the body of a POST, within its limits.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use http_body::Body;
use tokio::time::{Instant, timeout_at};

use super::refusal::Refusal;
use crate::driver::{Peer, Permit, Pool};

/// The least that a slow body must deliver in each interval, 1 KiB a second. A slower one would
/// hold its memory budget at the cost of other clients.
const AT_LEAST: usize = 5 << 10;
const IN_EACH: Duration = Duration::from_secs(5);

/// The limits of a body.
pub(super) struct Allowed<'a> {
    pub(super) bytes: usize,
    pub(super) within: Duration,
    /// The peer whose share it is counted against.
    pub(super) peer: &'a Arc<Peer>,
}

/// Reads a body and counts its bytes, whatever length it announced. The bytes are counted against
/// the peer's share until they are no longer used.
pub(super) async fn read<B>(
    headers: &HeaderMap,
    body: B,
    allowed: Allowed<'_>,
) -> Result<Bytes, Refusal>
where
    B: Body,
    B::Data: Buf,
{
    let limit = allowed.bytes;
    let announced = headers.get(CONTENT_LENGTH);
    let announced = announced.and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_long(limit));
    }
    let mut body = pin!(body);
    let mut read = Read {
        limit,
        first: Bytes::new(),
        rest: BytesMut::new(),
        weight: allowed.peer.begin(Pool::Bytes),
    };
    // Most bodies are complete already, and a timer is not free: it is set only if
    // there is something to wait for.
    let mut pace: Option<Pace> = None;
    loop {
        let next = poll_fn(|cx| Poll::Ready(poll_data(body.as_mut(), cx))).await;
        let data = match next {
            Poll::Ready(data) => data,
            Poll::Pending => {
                let pace = pace.get_or_insert_with(|| Pace::new(allowed.within, read.len()));
                let until = pace.until(read.len())?;
                let waiting = poll_fn(|cx| poll_data(body.as_mut(), cx));
                match timeout_at(until, waiting).await {
                    Ok(data) => data,
                    Err(_) => continue,
                }
            }
        };
        match data {
            Some(data) => read.take(data?)?,
            None => return Ok(read.finish()),
        }
    }
}

/// The next data of a body. Trailers are ignored.
fn poll_data<B>(
    mut body: Pin<&mut B>,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<B::Data, Refusal>>>
where
    B: Body,
{
    loop {
        let frame = match body.as_mut().poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => frame,
            Poll::Ready(Some(Err(_))) => {
                let problem = "the body broke off";
                let refusal = Refusal::new(StatusCode::BAD_REQUEST, problem);
                return Poll::Ready(Some(Err(refusal)));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => return Poll::Pending,
        };
        if let Ok(data) = frame.into_data() {
            return Poll::Ready(Some(Ok(data)));
        }
    }
}

/// The data that was read so far.
struct Read {
    limit: usize,
    /// Most bodies come in one piece, which need not be copied.
    first: Bytes,
    rest: BytesMut,
    weight: Permit,
}

impl Read {
    fn len(&self) -> usize {
        self.first.len() + self.rest.len()
    }

    fn take(&mut self, mut data: impl Buf) -> Result<(), Refusal> {
        let (before, length) = (self.len(), data.remaining());
        let after = before + length;
        if after > self.limit {
            return Err(too_long(self.limit));
        }
        if !self.weight.resize(before, after) {
            let problem = "overloaded: too much is being read and worked on; send it again later";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem));
        }
        let data = data.copy_to_bytes(length);
        if before == 0 {
            self.first = data;
            return Ok(());
        }
        if self.rest.is_empty() {
            self.rest
                .extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.rest.extend_from_slice(&data);
        Ok(())
    }

    fn finish(self) -> Bytes {
        let bytes = match self.rest.is_empty() {
            true => self.first,
            false => self.rest.freeze(),
        };
        self.weight.attach(bytes)
    }
}

/// The required speed of a body, once it has to be waited for.
struct Pace {
    /// When all of it must have arrived.
    end: Instant,
    within: Duration,
    /// The end of the current interval; `had` bytes had arrived at its start.
    next: Instant,
    had: usize,
}

impl Pace {
    fn new(within: Duration, had: usize) -> Self {
        let now = Instant::now();
        Self {
            end: now + within,
            within,
            next: now + IN_EACH,
            had,
        }
    }

    /// How long to wait for more, when this much has arrived.
    fn until(&mut self, has: usize) -> Result<Instant, Refusal> {
        let now = Instant::now();
        let timed_out = |problem: String| Refusal::new(StatusCode::REQUEST_TIMEOUT, problem);
        if now >= self.end {
            let within = self.within;
            return Err(timed_out(format!("the body took longer than {within:?}")));
        }
        if now >= self.next {
            if has - self.had < AT_LEAST {
                let problem = format!("less than {AT_LEAST} bytes of the body in {IN_EACH:?}");
                return Err(timed_out(problem));
            }
            (self.had, self.next) = (has, now + IN_EACH);
        }
        Ok(self.end.min(self.next))
    }
}

fn too_long(limit: usize) -> Refusal {
    let problem = format!("the body is longer than {limit} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, problem)
}
