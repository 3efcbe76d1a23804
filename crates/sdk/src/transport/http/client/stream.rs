//! Events, and what is done when they break off.
//!
//! A legacy stream that breaks can be asked for again, from the last event that came. The first
//! attempt that is refused ends it, and so does a server that lets us come back again and again
//! without ever saying something.

use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{Loss, LossKind};
use belay_protocol::framing::SseDecoder;
use belay_protocol::types::Era;
use http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;

use super::super::headers;
use super::answer::{self, Content};
use super::post::Place;
use crate::driver::{Carried, Link};

/// A server that has shown that it says something now and then is gone when it does not.
const DEAD_AFTER: Duration = Duration::from_secs(45);

/// So often a stream is asked for again without anything new on it.
const FRUITLESS: u32 = 10;

/// How long to wait before a stream is asked for again that had nothing new on it, at most.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The stream of one exchange.
pub(super) struct Stream<'a> {
    place: &'a Place,
    carried: &'a Carried,
    /// Where to go on from.
    last: Option<HeaderValue>,
    /// How long the server wants us to wait before we do.
    retry: Option<Duration>,
    /// How often we came back for nothing.
    fruitless: u32,
    /// The server says something now and then even if there is nothing to say.
    keeps_alive: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(place: &'a Place, carried: &'a Carried) -> Self {
        Self {
            place,
            carried,
            last: None,
            retry: None,
            fruitless: 0,
            keeps_alive: false,
        }
    }

    /// Reads the stream of a call, and asks for it again as long as that makes sense. Whoever waits
    /// for this drops it when the call is over.
    pub(super) async fn read(mut self, mut body: Incoming) {
        loop {
            let cause = self.take_in(body).await;
            if self.carried.is_over() {
                return;
            }
            if !self.is_resumable() {
                return self.carried.lost(cause, false);
            }
            self.carried.lost(cause, true);
            match self.ask_again().await {
                Ok(again) => body = again,
                Err(loss) => return self.carried.lost(loss, false),
            }
        }
    }

    fn is_resumable(&self) -> bool {
        let version = self.carried.link().version();
        let legacy = version.is_none_or(|version| version.era() == Era::Legacy);
        legacy && self.last.is_some() && self.fruitless < FRUITLESS
    }

    /// Asks for the rest of it.
    async fn ask_again(&mut self) -> Result<Incoming, Loss> {
        tokio::time::sleep(self.wait()).await;
        self.fruitless += 1;
        let mut request = self.place.about_session(Method::GET, self.carried.link());
        if let Some(last) = self.last.clone() {
            request.headers_mut().insert(headers::LAST_EVENT_ID, last);
        }
        let named = request.headers().contains_key(headers::SESSION_ID);
        let response = self.place.connections.send(request).await?;
        if self.place.is_gone(response.status(), named) {
            let gone = Loss::from(LossKind::SessionGone);
            self.carried.link().lose(gone.clone());
            return Err(gone);
        }
        let body = open(response).await?;
        self.carried.resumed();
        Ok(body)
    }

    /// At once, unless the server says otherwise, or it was in vain before.
    fn wait(&self) -> Duration {
        let polite = match self.fruitless {
            0 => Duration::ZERO,
            often => Duration::from_millis(100) * 2_u32.pow(often.min(10)),
        };
        self.retry.unwrap_or(polite).min(LONGEST_WAIT)
    }

    /// Takes in all that comes, until nothing more does; tells why.
    async fn take_in(&mut self, mut body: Incoming) -> Loss {
        let (longest, _) = self.place.limits;
        let mut events = SseDecoder::new(longest);
        loop {
            let next = answer::next(&mut body);
            let data = match self.keeps_alive {
                false => next.await,
                true => match tokio::time::timeout(DEAD_AFTER, next).await {
                    Ok(data) => data,
                    Err(_) => {
                        let problem = std::io::Error::from(std::io::ErrorKind::TimedOut);
                        return answer::because(LossKind::Io, problem);
                    }
                },
            };
            match data {
                Ok(Some(data)) => events.push(&data),
                Ok(None) => return LossKind::NoAnswer.into(),
                Err(loss) => return loss,
            }
            let mut said = false;
            while let Some(event) = events.next_event() {
                said = true;
                match event {
                    Ok(event) => self.take_in_event(event),
                    Err(oversize) => {
                        self.last = None;
                        let problem = format!("an event is longer than {} bytes", oversize.limit);
                        return answer::because(LossKind::Io, std::io::Error::other(problem));
                    }
                }
            }
            self.keeps_alive |= !said;
        }
    }

    fn take_in_event(&mut self, event: belay_protocol::framing::SseEvent) {
        if let Some(id) = event.id {
            // An empty one takes back what was said before.
            self.last = HeaderValue::from_str(&id).ok().filter(|id| !id.is_empty());
        }
        if let Some(retry) = event.retry {
            self.retry = Some(Duration::from_millis(retry));
        }
        let ordinary = event.event.is_none_or(|kind| kind == "message");
        if ordinary && !event.data.is_empty() {
            self.fruitless = 0;
            self.place.deliver(self.carried, &event.data);
        }
    }
}

/// The events of a response, if it has some.
pub(super) async fn open(response: Response<Incoming>) -> Result<Incoming, Loss> {
    let (parts, body) = response.into_parts();
    match answer::content(&parts.headers) {
        Content::Events if parts.status == StatusCode::OK => Ok(body),
        _ => Err(answer::odd(parts.status, &parts.headers, body).await),
    }
}

/// Listens to what a legacy server says by itself, if it does. It is asked again when it breaks off,
/// as long as the link lives.
pub(super) async fn listen(place: Arc<Place>, link: Arc<Link>) {
    let carried = link.carry_link();
    let mut stream = Stream::new(&place, &carried);
    let listening = async {
        loop {
            match stream.ask_again().await {
                Ok(body) => {
                    let cause = stream.take_in(body).await;
                    carried.lost(cause, true);
                }
                // It has none to offer.
                Err(loss) if matches!(loss.kind, LossKind::HttpStatus(_)) => return,
                Err(_) if stream.fruitless >= FRUITLESS => return,
                Err(_) => {}
            }
        }
    };
    tokio::select! {
        biased;
        _ = std::future::poll_fn(|cx| carried.poll_over(cx)) => {}
        () = listening => {}
    }
}
