//! The HTTP+SSE transport of 2024-11-05: a GET whose event stream carries all messages of the
//! server, and a POST for each message of the client. The stream is the connection: when it ends,
//! everything ends (**stops-with-its-caller**).

use std::collections::HashMap;
use std::sync::Arc;

use belay_protocol::engine::LossKind;
use belay_protocol::framing::SseEvent;
use belay_protocol::jsonrpc::{self, Message};
use bytes::Bytes;
use http::request::Parts;
use http::{Response, StatusCode};

use super::body::{Body, Events};
use super::exchange::{ended, stream};
use super::refusal::Refusal;
use super::sessions::SessionId;
use super::shared::{Caller, Shared};
use crate::Principal;
use crate::driver::{Driven, Link, Until, drive_exchanges};
use crate::sync::{Mutex, MutexGuard};

pub(super) const STREAM: &str = "/sse";
pub(super) const MESSAGES: &str = "/messages";

/// All open event streams of a server.
#[derive(Default)]
pub(super) struct EventStreams {
    open: Mutex<HashMap<SessionId, Open>>,
}

#[derive(Clone)]
struct Open {
    link: Arc<Link>,
    principal: Option<Principal>,
}

impl EventStreams {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Open>> {
        self.open.lock()
    }

    /// Ends all of them.
    pub(super) fn end_all(&self) {
        let open: Vec<Open> = self.lock().values().cloned().collect();
        for stream in open {
            stream.link.lose(LossKind::SessionGone.into());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }
}

/// Handles a GET: opens a connection. Its first event names the address to post to.
pub(super) fn open(shared: &Arc<Shared>, caller: &Caller) -> Result<Response<Body>, Refusal> {
    let place = shared.sessions.place(shared, caller)?;
    let link = shared.event_stream_link(caller);
    let id = SessionId::random()?;
    let open = Open {
        link: link.clone(),
        principal: caller.principal.clone(),
    };
    shared.event_streams.lock().insert(id.clone(), open);
    let living = (Driven(link.clone()), shared.connections.enter(&link));
    let app = shared.app.clone();
    shared.tasks.spawn(async move {
        let living = living;
        drive_exchanges(&living.0.0, &app, Until::Closed).await;
    });
    // Relative to the URL of the stream, since a proxy may have changed the path.
    let endpoint = SseEvent {
        event: Some("endpoint".into()),
        ..SseEvent::message(format!("{}?sessionId={}", &MESSAGES[1..], id.as_str()))
    };
    let registered = Registered {
        shared: shared.clone(),
        id,
    };
    let events = Events::new(link.carry_link(), shared.options.keep_alive)
        .after(vec![endpoint])
        .keeping((registered, place, shared.stream_opened()));
    Ok(stream(events))
}

/// Handles a POST: one message, whose answer comes on the stream.
pub(super) async fn post(
    shared: &Shared,
    parts: &Parts,
    body: &Bytes,
) -> Result<Response<Body>, Refusal> {
    let query = parts.uri.query().unwrap_or_default();
    let named = query.split('&').find_map(|pair| {
        pair.strip_prefix("sessionId=")
            .or(pair.strip_prefix("session_id="))
    });
    let principal = parts.extensions.get();
    let open = named.and_then(|id| shared.event_streams.lock().get(id).cloned());
    let Some(open) = open.filter(|open| open.principal.as_ref() == principal) else {
        let problem = "post to the address that the stream's `endpoint` event gave";
        return Err(Refusal::new(StatusCode::NOT_FOUND, problem));
    };
    let message = jsonrpc::decode(body, shared.options.depth);
    // Cancellations and responses are always accepted. Requests are refused while too many answers
    // wait on the stream (**bounded**, **answered-or-gone**).
    if !open.link.wants_input() {
        let problem = "overloaded: too many answers wait to be read; send it again later";
        let refusal = Refusal::new(StatusCode::TOO_MANY_REQUESTS, problem);
        match &message {
            Ok(Message::Request(request)) => return Err(refusal.about(&request.id)),
            Err(_) => return Err(refusal),
            Ok(_) => {}
        }
    }
    open.link.until_heard_before(&message).await;
    open.link.deliver(message);
    Ok(ended(belay_protocol::engine::Closing::Accepted))
}

/// The registration of a stream, under the id to post with.
struct Registered {
    shared: Arc<Shared>,
    id: SessionId,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.shared.event_streams.lock().remove(&self.id);
    }
}
