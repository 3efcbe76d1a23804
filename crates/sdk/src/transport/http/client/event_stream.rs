//! The HTTP+SSE transport of 2024-11-05: one event stream down, POSTs up.

use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{Loss, LossKind};
use belay_protocol::framing::SseDecoder;
use belay_protocol::jsonrpc;
use http::Request;
use http::header::ACCEPT;
use hyper::body::Incoming;
use tokio_util::sync::DropGuard;

use super::super::headers;
use super::address::Address;
use super::answer;
use super::carrier::opener;
use super::connect::Connections;
use super::post::{Answers, Place};
use super::post_body::PostBody;
use super::stream;
use crate::driver::{App, Direction, Driven, Link, Until, drive_exchanges, drive_exchanges_with};

/// The time for the server to send its `endpoint` event.
const ENDPOINT_WITHIN: Duration = Duration::from_secs(10);

/// An open stream, and the address to post to.
pub(super) struct Opened {
    events: SseDecoder,
    body: Incoming,
    endpoint: Address,
}

/// Opens the stream, whose `endpoint` event names the address to post to.
pub(super) async fn open(
    address: &Address,
    connections: &Connections,
    longest: usize,
) -> Result<Opened, Loss> {
    let opening = async {
        let mut request = Request::new(PostBody::empty());
        *request.uri_mut() = address.uri().clone();
        request.headers_mut().insert(ACCEPT, headers::EVENT_STREAM);
        let response = connections.send(request).await?;
        let mut body = stream::open(response).await?;
        let mut events = SseDecoder::new(longest);
        loop {
            while let Some(event) = events.next_event() {
                let event = event
                    .ok()
                    .filter(|event| event.event.as_deref() == Some("endpoint"));
                let named = event.and_then(|event| String::from_utf8(event.data.to_vec()).ok());
                if let Some(named) = named {
                    let endpoint = address.join(named.trim()).ok_or_else(|| {
                        let problem = format!("it wants messages posted elsewhere: {named:?}");
                        answer::because(LossKind::Io, std::io::Error::other(problem))
                    })?;
                    return Ok(Opened {
                        events,
                        body,
                        endpoint,
                    });
                }
            }
            match answer::next(&mut body).await? {
                Some(data) => events.push(&data),
                None => return Err(LossKind::EndOfStream.into()),
            }
        }
    };
    let opened = tokio::time::timeout(ENDPOINT_WITHIN, opening).await;
    opened.unwrap_or_else(|_| {
        let problem = std::io::Error::from(std::io::ErrorKind::TimedOut);
        Err(answer::because(LossKind::Io, problem))
    })
}

/// Drives a link until it is closed. Each message is posted in an exchange of its own.
pub(super) async fn drive(
    driven: Driven,
    mut place: Place,
    opened: Opened,
    app: Arc<dyn App>,
    gone: DropGuard,
) {
    let link = driven.0.clone();
    let Opened {
        events,
        body,
        endpoint,
    } = opened;
    place.address = endpoint;
    place.answers = Answers::OnStream;
    let place = Arc::new(place);
    link.set_opener(opener(&place));
    let post = || link.open_exchanges();
    let reading = read(&place, &link, events, body);
    tokio::select! {
        biased;
        () = drive_exchanges_with(&link, &app, Until::Closed, post) => {}
        // The last messages are processed first, then all calls are ended.
        cause = reading => {
            link.lose(cause);
            drive_exchanges(&link, &app, Until::Closed).await;
        }
    }
    drop(driven);
    drop(gone);
}

/// Delivers all messages of the stream, and returns why the stream ended.
async fn read(place: &Place, link: &Link, mut events: SseDecoder, mut body: Incoming) -> Loss {
    loop {
        while let Some(event) = events.next_event() {
            match event {
                Ok(event) if event.event.as_deref().is_none_or(|kind| kind == "message") => {
                    place.show(Direction::In, &event.data);
                    if !event.data.is_empty() {
                        link.deliver(jsonrpc::decode(&event.data, place.limits.1));
                        link.until_heard().await;
                    }
                }
                Ok(_) => {}
                Err(oversize) => link.deliver(Err(oversize.into())),
            }
        }
        match answer::next(&mut body).await {
            Ok(Some(data)) => events.push(&data),
            Ok(None) => return LossKind::EndOfStream.into(),
            Err(loss) => return loss,
        }
    }
}
