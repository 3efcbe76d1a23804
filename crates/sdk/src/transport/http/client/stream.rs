//! Event streams, and their resumption after a break.
//!
//! A legacy stream that breaks off can be resumed from the last event. A refused attempt ends it,
//! and so does a server that accepts resumption again and again without sending anything new.

use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{Loss, LossKind};
use belay_protocol::framing::SseDecoder;
use belay_protocol::types::Era;
use http::{HeaderValue, Method, Response, StatusCode};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::super::headers;
use super::answer::{self, Content};
use super::post::Place;
use crate::driver::{ExchangeHandle, Link};

/// The least silence after which a server that sends keep-alive comments is considered gone. It is
/// longer if three times the server's usual interval is.
const DEAD_AFTER: Duration = Duration::from_secs(45);

/// How often a stream is resumed without anything new on it, unless the server asks
/// for that with `retry`.
const FRUITLESS: u32 = 5;

/// The shortest time between two attempts to resume.
const SHORTEST_WAIT: Duration = Duration::from_millis(100);

/// The longest pause before resuming a stream that had nothing new on it.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The stream of one exchange.
pub(super) struct Stream<'a> {
    place: &'a Place,
    handle: &'a ExchangeHandle,
    /// The id of the last event, to resume from.
    last: Option<HeaderValue>,
    /// The delay that the server asks for before resuming.
    retry: Option<Duration>,
    /// Attempts in a row that brought nothing new.
    fruitless: u32,
    /// When the stream was last requested again.
    asked: Option<Instant>,
    /// The longest silence that is allowed, for a server that sends keep-alive comments.
    silence: Option<Duration>,
    heard: Instant,
    /// The stream of notifications, which no call ends.
    listens: bool,
}

impl<'a> Stream<'a> {
    pub(super) fn new(place: &'a Place, handle: &'a ExchangeHandle) -> Self {
        Self {
            place,
            handle,
            last: None,
            retry: None,
            fruitless: 0,
            asked: None,
            silence: None,
            heard: Instant::now(),
            listens: false,
        }
    }

    /// Reads the stream of a call, and resumes it while that makes sense. The caller
    /// drops this when the call is over.
    pub(super) async fn read(mut self, mut body: Incoming) {
        loop {
            let cause = self.take_in(body).await;
            if self.handle.is_over() {
                return;
            }
            if !self.is_resumable() {
                return self.handle.lost(cause, false);
            }
            self.handle.lost(cause, true);
            match self.ask_again().await {
                Ok(again) => body = again,
                Err(loss) => return self.handle.lost(loss, false),
            }
        }
    }

    fn is_resumable(&self) -> bool {
        let version = self.handle.link().version();
        let legacy = version.is_none_or(|version| version.era() == Era::Legacy);
        // A server that sends `retry` may do so for as long as the call's deadline allows.
        let worthwhile = self.retry.is_some() || self.fruitless < FRUITLESS;
        legacy && self.last.is_some() && worthwhile
    }

    /// Requests the rest of the stream.
    async fn ask_again(&mut self) -> Result<Incoming, Loss> {
        // A lower limit, also if there is something new each time.
        let next = self.asked.map(|asked| asked + SHORTEST_WAIT);
        let next = next.unwrap_or_else(Instant::now);
        tokio::time::sleep_until(next.max(Instant::now() + self.wait())).await;
        self.asked = Some(Instant::now());
        self.fruitless += 1;
        let mut request = self.place.about_session(Method::GET, self.handle.link());
        if let Some(last) = self.last.clone() {
            request.headers_mut().insert(headers::LAST_EVENT_ID, last);
        }
        let named = request.headers().contains_key(headers::SESSION_ID);
        let response = self.place.connections.send(request).await?;
        // Some servers support only POST, and answer 404 to everything else.
        if self.last.is_some() && self.place.is_gone(response.status(), named) {
            let gone = Loss::from(LossKind::SessionGone);
            self.handle.link().lose(gone.clone());
            return Err(gone);
        }
        let body = open(response).await?;
        self.handle.resumed();
        Ok(body)
    }

    /// At once, unless the server asks for a delay, or the last attempts brought nothing new.
    fn wait(&self) -> Duration {
        let polite = match self.fruitless {
            0 => Duration::ZERO,
            often => (SHORTEST_WAIT * 2_u32.pow(often.min(10))).min(LONGEST_WAIT),
        };
        match self.retry {
            None => polite,
            Some(retry) if self.listens => retry.max(polite),
            Some(retry) => retry.max(polite.min(SHORTEST_WAIT)),
        }
    }

    /// Delivers all events of a body, and returns why it ended.
    async fn take_in(&mut self, mut body: Incoming) -> Loss {
        let (longest, _) = self.place.limits;
        let mut events = SseDecoder::new(longest);
        loop {
            let next = answer::next(&mut body);
            let data = match self.silence {
                None => next.await,
                Some(silence) => match tokio::time::timeout(silence, next).await {
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
            let comments = events.comments();
            while let Some(event) = events.next_event() {
                match event {
                    Ok(event) => self.take_in_event(event),
                    Err(oversize) => self.handle.deliver(Err(oversize.into())),
                }
                self.handle.link().until_heard().await;
            }
            // A message that is too long is reported at once, before its end has arrived. On a
            // call's stream it counts as the answer, unless it says that it is something else.
            if let Some(oversize) = events.over_limit() {
                self.handle.deliver(Err(oversize.into()));
            }
            self.hear(events.comments() > comments);
        }
    }

    /// Notes that data has arrived, and whether it was only a keep-alive comment.
    fn hear(&mut self, sign_of_life: bool) {
        let after = self.heard.elapsed();
        self.heard = Instant::now();
        if sign_of_life {
            let usual = self.silence.unwrap_or(DEAD_AFTER);
            self.silence = Some(usual.max(after * 3));
        }
    }

    fn take_in_event(&mut self, event: belay_protocol::framing::SseEvent) {
        if let Some(id) = event.id {
            // An empty id clears the last one.
            let id = HeaderValue::from_str(&id).ok().filter(|id| !id.is_empty());
            if id != self.last {
                self.fruitless = 0;
            }
            self.last = id;
        }
        if let Some(retry) = event.retry {
            self.retry = Some(Duration::from_millis(retry));
        }
        let ordinary = event.event.is_none_or(|kind| kind == "message");
        if ordinary && !event.data.is_empty() {
            self.fruitless = 0;
            let excerpt = || answer::beginning(&event.data);
            self.handle.deliver(self.place.read(&event.data, excerpt));
        }
    }
}

/// The body of a response that is an event stream.
pub(super) async fn open(response: Response<Incoming>) -> Result<Incoming, Loss> {
    let (parts, body) = response.into_parts();
    match answer::content(&parts.headers) {
        Content::Events if parts.status == StatusCode::OK => Ok(body),
        _ => Err(answer::odd(parts.status, &parts.headers, body).await),
    }
}

/// Receives the notifications of a legacy server, if it sends any. The stream is requested again
/// when it breaks off, while the link lives.
pub(super) async fn listen(place: Arc<Place>, link: Arc<Link>) {
    let handle = link.carry_link();
    let mut stream = Stream::new(&place, &handle);
    stream.listens = true;
    let listening = async {
        loop {
            let asked = stream.ask_again().await;
            place.listens.cancel();
            match asked {
                Ok(body) => {
                    let cause = stream.take_in(body).await;
                    handle.lost(cause, true);
                }
                // The server has no such stream.
                Err(loss) if matches!(loss.kind, LossKind::HttpStatus(200..=499)) => return,
                // The server may be back later.
                Err(_) => {}
            }
        }
    };
    tokio::select! {
        biased;
        _ = std::future::poll_fn(|cx| handle.poll_over(cx)) => {}
        () = listening => {}
    }
}
