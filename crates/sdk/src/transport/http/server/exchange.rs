//! A modern POST: an engine, an exchange and a request of its own, and nothing that outlives them.
//!
//! ```text
//!   POST ──► link ──► handler ── answers in time ──► JSON
//!              │          ├───── says something ───► events, then the answer
//!              │          └───── takes its time ───► events, then the answer
//!              └── whoever waits hangs up: the handler is stopped
//! ```
//!
//! Whoever waits for the answer turns the link by the way. A handler that answers at once costs nothing
//! more: neither a timer, nor a place in the server's registry of connections while it runs. Only when there is more to
//! come, or something is left to be stopped, a task of its own turns the link.

use std::future::{pending, poll_fn};
use std::sync::Arc;

use belay_protocol::engine::Closing;
use belay_protocol::framing::SseEvent;
use belay_protocol::jsonrpc::{DecodeError, Message};
use belay_protocol::types::Era;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};

use super::super::headers;
use super::body::{Body, Events};
use super::refusal::{self, Refusal};
use super::shared::Shared;
use crate::driver::{
    Driven, ExchangeHandle, ExchangeStep, Last, Link, Pool, Until, drive_exchanges,
};
use crate::server::{Entry, Unentered};
use crate::sync::count_task;

/// Serves one message on a link of its own.
pub(super) async fn serve(
    shared: &Arc<Shared>,
    link: Arc<Link>,
    era: Era,
    message: Result<Message, DecodeError>,
) -> Response<Body> {
    // In the legacy era handlers find what their client wants in the registry.
    let entered = (era == Era::Legacy).then(|| Post::new(shared, &link, None));
    let is_request = matches!(message, Ok(Message::Request(_)));
    let unentered = (entered.is_none() && is_request).then(|| shared.connections.begin_unentered());
    let mut handle = link.posted(&shared.app, message);
    // Most requests are answered by now, and nothing of them is left.
    if let Some(last) = handle.take_last() {
        match (&last.ledger, unentered) {
            (Some(ledger), Some(unentered)) => unentered.over(ledger),
            (_, unentered) => {
                drop(entered.unwrap_or_else(|| Post::new(shared, &link, unentered)));
            }
        }
        return last.respond(shared, &handle, era);
    }
    let post = entered.unwrap_or_else(|| Post::new(shared, &link, unentered));
    let turning = async {
        drive_exchanges(&link, &shared.app, Until::Idle).await;
        pending().await
    };
    let first = tokio::select! {
        biased;
        turn = poll_fn(|cx| handle.poll_step(cx)) => Some(turn),
        () = turning => None,
        () = shared.head_timer.wait() => None,
    };
    let first = match first {
        Some(ExchangeStep::Write(waiting)) if is_last(waiting) => {
            match answer(&mut handle, refusal::status(era, waiting)) {
                Some(answer) => return answer,
                // It was withdrawn in between, because its request was cancelled.
                None => Some(poll_fn(|cx| handle.poll_step(cx)).await),
            }
        }
        first => first,
    };
    match first {
        // A shutdown came first, so the request is not served.
        Some(ExchangeStep::Over(Closing::Abandoned)) => Refusal::shutting_down().into(),
        Some(ExchangeStep::Over(how)) => ended(how),
        Some(ExchangeStep::Write(_) | ExchangeStep::Replaced | ExchangeStep::CloseStream(_))
        | None => {
            post.go_on_in_background();
            stream(Events::new(handle, shared.options.keep_alive).keeping(shared.stream_opened()))
        }
    }
}

/// Whether this is the only message of the exchange.
pub(super) fn is_last(waiting: belay_protocol::engine::Waiting) -> bool {
    use belay_protocol::engine::Waiting;
    matches!(waiting, Waiting::Answer { .. } | Waiting::Refusal { .. })
}

/// A response with a single message.
pub(super) fn answer(handle: &mut ExchangeHandle, status: StatusCode) -> Option<Response<Body>> {
    let frame = handle.take()?;
    let frame = handle.weighed(frame);
    handle.written();
    Some(respond(frame, status))
}

impl Last {
    /// The response with the final message, and the notifications before it.
    pub(super) fn respond(
        self,
        shared: &Shared,
        handle: &ExchangeHandle,
        era: Era,
    ) -> Response<Body> {
        if self.before.is_empty() {
            let status = refusal::status(era, self.waiting);
            return respond(handle.weighed(self.frame), status);
        }
        let frames = self.before.into_iter().chain([self.frame]);
        let events: Vec<SseEvent> = frames.map(SseEvent::message).collect();
        let bytes = events.iter().map(|event| event.data.len()).sum();
        let mut weight = handle.link().peer().begin(Pool::Bytes);
        weight.weigh(bytes);
        let events = Events::replay(events).weighed(weight);
        stream(events.keeping(shared.stream_opened()))
    }
}

fn respond(frame: Bytes, status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::full(frame));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, headers::JSON);
    headers.extend(refusal::retry_after(status));
    response
}

/// The response to an exchange without messages.
pub(super) fn ended(how: Closing) -> Response<Body> {
    match how {
        Closing::Accepted => {
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::ACCEPTED;
            response
        }
        // A cancelled request ends with an empty stream (**silence**).
        Closing::Silent | Closing::Finished => stream(Events::replay(Vec::new())),
        Closing::Abandoned => Refusal::new(StatusCode::NOT_FOUND, "the session is over").into(),
    }
}

pub(super) fn stream(events: Events) -> Response<Body> {
    let mut response = Response::new(Body::events(events));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, headers::EVENT_STREAM);
    headers.insert(
        http::header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache"),
    );
    // Asks proxies not to buffer the stream.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// The link of a POST. When it is dropped before its handlers have ended, a background task
/// drives the link until they have.
struct Post {
    shared: Arc<Shared>,
    rest: Option<Rest>,
}

/// What is left of a link at its end: it is closed, then its ledger is kept.
struct Rest {
    driven: Driven,
    _entry: Entry,
}

impl Post {
    fn new(shared: &Arc<Shared>, link: &Arc<Link>, unentered: Option<Unentered>) -> Self {
        let rest = Rest {
            driven: Driven(link.clone()),
            _entry: shared.connections.enter_late(link, unentered),
        };
        Self {
            shared: shared.clone(),
            rest: Some(rest),
        }
    }

    fn go_on_in_background(self) {
        // Dropping it starts the background task.
    }
}

impl Drop for Post {
    fn drop(&mut self) {
        let Some(rest) = self.rest.take() else {
            return;
        };
        let link = rest.driven.0.clone();
        if link.dispatch(&self.shared.app).reached(Until::Idle) {
            return;
        }
        // Without a runtime the link ends here.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let app = self.shared.app.clone();
            let going_on = async move {
                let rest = rest;
                drive_exchanges(&rest.driven.0, &app, Until::Idle).await;
            };
            count_task();
            link.tasks().spawn_on(going_on, &runtime);
        }
    }
}
