//! Storage of the events of legacy streams, from which a broken stream is resumed.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::ExchangeId;
use belay_protocol::framing::SseEvent;
use bytes::Bytes;
use tokio::time::Instant;

use super::sessions::SessionId;
use crate::driver::{ExchangeHandle, Link};
use crate::sync::{Mutex, MutexGuard};

/// Stores the events of streams, so that they can be resumed. Legacy only: modern
/// streams cannot be.
///
/// It is called while a stream is written, so it must not block.
pub trait EventStore: Send + Sync + 'static {
    /// Stores an event, and returns its number. The first event of a stream has the number 1, and
    /// each later one the next number.
    fn append(&self, stream: StreamId<'_>, event: &Bytes) -> u64;

    /// The events after the one with this number, in order. `None` if some of them are no longer
    /// stored: a stream with a gap must not be resumed.
    fn after(&self, stream: StreamId<'_>, number: u64) -> Option<Vec<Bytes>>;

    /// Reports that a stream has ended. Its events may still be requested. This is called at least
    /// once for each stream with events, unless its session ends first.
    fn over(&self, stream: StreamId<'_>);

    /// Removes the events of a session, which has ended.
    fn forget(&self, session: &str);
}

/// A stream of a session. The session id is a secret, because it authorises
/// requests in the session.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StreamId<'a> {
    /// The id of the session.
    pub session: &'a str,
    /// The number of the stream within the session.
    pub number: u64,
}

impl std::fmt::Debug for StreamId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StreamId({})", self.number)
    }
}

/// An in-memory event store, limited in bytes and in time. The oldest events are dropped first. A
/// session with more than half of all bytes loses its own events, and not those of others.
///
/// ```
/// use belay::http::MemoryEvents;
/// use std::time::Duration;
///
/// let events = MemoryEvents::new(16 << 20, Duration::from_secs(60));
/// ```
#[derive(Debug)]
pub struct MemoryEvents {
    limit: usize,
    span: Duration,
    kept: Mutex<Kept>,
}

#[derive(Default, Debug)]
struct Kept {
    sessions: HashMap<Arc<str>, Session>,
    /// The index of all stored events, oldest first.
    oldest: BTreeMap<u64, Entry>,
    /// The number of events ever stored, which is the index of the last one.
    last: u64,
    bytes: usize,
}

#[derive(Debug)]
struct Entry {
    since: Instant,
    session: Arc<str>,
    stream: u64,
}

#[derive(Default, Debug)]
struct Session {
    streams: HashMap<u64, Stream>,
    bytes: usize,
}

impl Session {
    /// The index of its oldest event.
    fn oldest(&self) -> Option<u64> {
        let first = |stream: &Stream| stream.events.front().map(|(place, _)| *place);
        self.streams.values().filter_map(first).min()
    }
}

/// The memory that an event takes besides its bytes.
const OVERHEAD: usize = 128;

#[derive(Default, Debug)]
struct Stream {
    /// The number of events that were dropped.
    dropped: u64,
    /// The events with their places in the index.
    events: VecDeque<(u64, Bytes)>,
    /// The stream has ended.
    over: bool,
}

impl MemoryEvents {
    /// A store of at most this many bytes, which keeps each event for at most this long.
    pub fn new(limit: usize, span: Duration) -> Self {
        Self {
            limit,
            span,
            kept: Mutex::default(),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock()
    }
}

impl EventStore for MemoryEvents {
    fn append(&self, stream: StreamId<'_>, event: &Bytes) -> u64 {
        let now = Instant::now();
        let mut kept = self.kept();
        let number = kept.append(now, stream, event.clone());
        while kept.oldest_age(now) > Some(self.span) {
            kept.drop_oldest();
        }
        while kept.bytes > self.limit {
            kept.make_room_in(stream.session);
        }
        number
    }

    fn after(&self, stream: StreamId<'_>, number: u64) -> Option<Vec<Bytes>> {
        let kept = self.kept();
        let session = kept.sessions.get(stream.session);
        let Some(stream) = session.and_then(|session| session.streams.get(&stream.number)) else {
            // The stream has no events yet.
            return (number == 0).then(Vec::new);
        };
        let skip = number.checked_sub(stream.dropped)?;
        let skip = usize::try_from(skip).ok()?;
        let events = stream.events.iter().map(|(_, event)| event);
        (skip <= stream.events.len()).then(|| events.skip(skip).cloned().collect())
    }

    fn over(&self, stream: StreamId<'_>) {
        let mut kept = self.kept();
        let session = kept.sessions.get_mut(stream.session);
        if let Some(events) = session.and_then(|session| session.streams.get_mut(&stream.number)) {
            events.over = true;
            kept.forget_if_empty(stream.session, stream.number);
        }
    }

    fn forget(&self, session: &str) {
        let mut kept = self.kept();
        let session = kept.sessions.remove(session).unwrap_or_default();
        let streams = session.streams.into_values();
        for (place, event) in streams.flat_map(|stream| stream.events) {
            kept.oldest.remove(&place);
            kept.bytes -= event.len() + OVERHEAD;
        }
    }
}

impl Kept {
    fn append(&mut self, now: Instant, stream: StreamId<'_>, event: Bytes) -> u64 {
        let known = self.sessions.get_key_value(stream.session);
        let session = known.map_or_else(|| stream.session.into(), |(known, _)| known.clone());
        let kept = self.sessions.entry(session.clone()).or_default();
        let events = kept.streams.entry(stream.number).or_default();
        self.last += 1;
        self.bytes += event.len() + OVERHEAD;
        kept.bytes += event.len() + OVERHEAD;
        events.events.push_back((self.last, event));
        let entry = Entry {
            since: now,
            session,
            stream: stream.number,
        };
        self.oldest.insert(self.last, entry);
        events.dropped + events.events.len() as u64
    }

    fn oldest_age(&self, now: Instant) -> Option<Duration> {
        let (_, oldest) = self.oldest.first_key_value()?;
        Some(now.duration_since(oldest.since))
    }

    fn drop_oldest(&mut self) {
        if let Some((place, _)) = self.oldest.first_key_value() {
            self.drop_event(*place);
        }
    }

    /// Drops the oldest event of all, or of this session if it has more than half of all bytes.
    fn make_room_in(&mut self, session: &str) {
        let most = self
            .sessions
            .get(session)
            .filter(|it| it.bytes > self.bytes / 2);
        match most.and_then(Session::oldest) {
            Some(place) => self.drop_event(place),
            None => self.drop_oldest(),
        }
    }

    /// Drops an event, which is the oldest of its stream.
    fn drop_event(&mut self, place: u64) {
        let Some(entry) = self.oldest.remove(&place) else {
            return;
        };
        if let Some(session) = self.sessions.get_mut(&entry.session)
            && let Some(events) = session.streams.get_mut(&entry.stream)
            && let Some((_, event)) = events.events.pop_front()
        {
            events.dropped += 1;
            session.bytes -= event.len() + OVERHEAD;
            self.bytes -= event.len() + OVERHEAD;
            self.forget_if_empty(&entry.session, entry.stream);
        }
    }

    /// Removes a stream that has ended and has no events left.
    fn forget_if_empty(&mut self, session: &str, number: u64) {
        if let Some(session) = self.sessions.get_mut(session) {
            let is_gone = |stream: &Stream| stream.over && stream.events.is_empty();
            if session.streams.get(&number).is_some_and(is_gone) {
                session.streams.remove(&number);
            }
        }
    }
}

/// The events of one session.
pub(super) struct SessionEvents {
    store: Arc<dyn EventStore>,
    session: SessionId,
    link: Arc<Link>,
    /// Held from the moment a message is taken from the engine until it is stored, so that a
    /// resumed stream misses nothing and keeps the order. True once the session has ended,
    /// after which nothing is stored.
    saying: Mutex<bool>,
    /// Streams without a carrier whose end was not reported to the store, because
    /// they may still be resumed.
    left: Mutex<BTreeSet<u64>>,
}

impl SessionEvents {
    pub(super) fn new(
        store: Arc<dyn EventStore>,
        session: SessionId,
        link: Arc<Link>,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            session,
            link,
            saying: Mutex::new(false),
            left: Mutex::default(),
        })
    }

    fn saying(&self) -> MutexGuard<'_, bool> {
        self.saying.lock()
    }

    fn left(&self) -> MutexGuard<'_, BTreeSet<u64>> {
        self.left.lock()
    }

    /// Reports the streams that have ended to the store. A broken stream ends without a carrier,
    /// when its request is cancelled or times out, so this is called at every turn of the session.
    pub(super) fn settle(&self) {
        let mut over = Vec::new();
        self.left().retain(|number| {
            let stays = self.link.is_open(ExchangeId::from_number(*number));
            if !stays {
                over.push(*number);
            }
            stays
        });
        for number in over {
            self.store.over(self.stream_id(number));
        }
    }

    /// Removes the events of the session, which has ended.
    pub(super) fn forget(&self) {
        let mut forgotten = self.saying();
        *forgotten = true;
        self.store.forget(self.session.as_str());
    }

    fn stream_id(&self, number: u64) -> StreamId<'_> {
        let session = self.session.as_str();
        StreamId { session, number }
    }
}

/// Numbers and stores the events of one stream.
pub(super) struct Numbering {
    events: Arc<SessionEvents>,
    stream: ExchangeId,
}

impl Numbering {
    pub(super) fn new(events: Arc<SessionEvents>, stream: ExchangeId) -> Self {
        Self { events, stream }
    }

    /// While this guard is held, no message of the session is taken.
    pub(super) fn still(&self) -> MutexGuard<'_, bool> {
        self.events.saying()
    }

    /// Takes the next message and stores it. Returns its event id with it.
    pub(super) fn take(&self, handle: &mut ExchangeHandle) -> Option<(String, Bytes)> {
        let forgotten = self.still();
        // Events that are stored after the end of the session would never be removed.
        if *forgotten {
            return None;
        }
        let event = handle.take()?;
        let number = self.events.store.append(self.stream_id(), &event);
        Some((event_id(self.stream, number), event))
    }

    /// An event without data, so that the stream can be resumed from its beginning.
    pub(super) fn greeting(&self) -> SseEvent {
        SseEvent {
            id: Some(event_id(self.stream, 0)),
            ..SseEvent::default()
        }
    }

    /// Called when the carrier is dropped: the stream ended, broke off, or has another carrier.
    pub(super) fn leave(self, handle: Option<ExchangeHandle>) {
        // In this order, so that a stream that ends in between is found by the next call.
        self.events.left().insert(self.stream.number());
        drop(handle);
        self.events.settle();
    }

    /// The events after the one with this number.
    pub(super) fn missed(&self, number: u64) -> Option<Vec<SseEvent>> {
        let events = self.events.store.after(self.stream_id(), number)?;
        let numbers = number + 1..;
        let again = events
            .into_iter()
            .zip(numbers)
            .map(|(event, number)| SseEvent {
                id: Some(event_id(self.stream, number)),
                ..SseEvent::message(event)
            });
        Some(again.collect())
    }

    fn stream_id(&self) -> StreamId<'_> {
        self.events.stream_id(self.stream.number())
    }
}

fn event_id(stream: ExchangeId, number: u64) -> String {
    format!("{}-{number}", stream.number())
}

/// Parses an event id into a stream and a number.
pub(super) fn parse_event_id(id: &str) -> Option<(ExchangeId, u64)> {
    let (stream, number) = id.split_once('-')?;
    let stream = ExchangeId::from_number(stream.parse().ok()?);
    Some((stream, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(number: u64) -> StreamId<'static> {
        let session = "s";
        StreamId { session, number }
    }

    #[test]
    fn events_come_back_in_order_and_by_stream() {
        let store = MemoryEvents::new(1024, Duration::from_secs(60));
        for (number, event) in [(1, "a"), (2, "x"), (1, "b"), (1, "c")] {
            store.append(stream(number), &Bytes::from_static(event.as_bytes()));
        }
        assert_eq!(store.after(stream(1), 1).unwrap(), ["b", "c"]);
        assert_eq!(store.after(stream(2), 0).unwrap(), ["x"]);
        assert_eq!(store.after(stream(1), 3).unwrap(), [""; 0]);
        assert_eq!(store.after(stream(1), 4), None, "that was never said");
        store.forget("s");
        assert_eq!(store.after(stream(1), 1), None);
        assert_eq!(store.kept().bytes, 0);
    }

    #[test]
    fn bounded_the_oldest_go_first_and_a_hole_is_never_hidden() {
        let store = MemoryEvents::new(2 * (OVERHEAD + 4), Duration::from_secs(60));
        for _ in 0..5 {
            store.append(stream(1), &Bytes::from_static(b"four"));
        }
        assert!(store.kept().bytes <= 2 * (OVERHEAD + 4));
        assert_eq!(store.after(stream(1), 2), None, "the third is gone");
        assert_eq!(store.after(stream(1), 3).unwrap().len(), 2);
    }

    #[test]
    fn bounded_a_stream_that_is_over_leaves_nothing_behind() {
        let store = MemoryEvents::new(OVERHEAD + 1, Duration::from_secs(60));
        for number in 1..100 {
            store.append(stream(number), &Bytes::from_static(b"x"));
            store.over(stream(number));
        }
        assert_eq!(store.kept().sessions["s"].streams.len(), 1);
        // The number of a stream that goes on is kept, or its numbering would start again.
        store.append(stream(200), &Bytes::from_static(b"x"));
        store.append(stream(201), &Bytes::from_static(b"x"));
        assert_eq!(store.append(stream(200), &Bytes::from_static(b"x")), 2);
    }

    #[test]
    fn bounded_a_session_that_says_much_makes_room_by_its_own() {
        let store = MemoryEvents::new(10 * (OVERHEAD + 1), Duration::from_secs(60));
        let event = Bytes::from_static(b"x");
        let session = "other";
        for number in 0..2 {
            store.append(StreamId { session, number }, &event);
        }
        for number in 0..1000 {
            store.append(stream(number % 7), &event);
        }
        for number in 0..2 {
            let kept = store.after(StreamId { session, number }, 0);
            assert_eq!(kept.map(|kept| kept.len()), Some(1), "{number}");
        }
        assert!(store.kept().bytes <= 10 * (OVERHEAD + 1));
    }

    /// The number of indexed events, and of stored ones.
    fn entries(store: &MemoryEvents) -> (usize, usize) {
        let kept = store.kept();
        let streams = kept.sessions.values().flat_map(|it| it.streams.values());
        let events = streams.map(|stream| stream.events.len()).sum();
        (kept.oldest.len(), events)
    }

    #[test]
    fn bounded_a_session_that_is_over_leaves_nothing_in_the_index() {
        // A span of "never".
        let store = MemoryEvents::new(1 << 20, Duration::MAX);
        let event = Bytes::from_static(b"x");
        for round in 0..100 {
            let session = format!("session {round}");
            for number in 0..10 {
                let session = &session;
                store.append(StreamId { session, number }, &event);
                store.append(stream(1), &event);
            }
            store.forget(&session);
        }
        assert_eq!(entries(&store), (1000, 1000));
        store.forget("s");
        assert_eq!(entries(&store), (0, 0));
        assert_eq!(store.kept().bytes, 0);
    }

    #[test]
    fn bounded_what_is_left_of_other_sessions_still_goes_oldest_first() {
        let store = MemoryEvents::new(4 * (OVERHEAD + 1), Duration::from_secs(60));
        let session = "other";
        for number in 0..2 {
            store.append(stream(1), &Bytes::from_static(b"a"));
            store.append(StreamId { session, number }, &Bytes::from_static(b"b"));
        }
        store.forget(session);
        for _ in 0..3 {
            store.append(stream(2), &Bytes::from_static(b"c"));
        }
        assert_eq!(entries(&store), (4, 4));
        assert_eq!(store.after(stream(1), 0), None);
        assert_eq!(store.after(stream(1), 1).unwrap(), ["a"]);
        assert_eq!(store.after(stream(2), 0).unwrap(), ["c"; 3]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_too_old_goes() {
        let store = MemoryEvents::new(1024, Duration::from_secs(60));
        store.append(stream(1), &Bytes::from_static(b"old"));
        tokio::time::advance(Duration::from_secs(61)).await;
        assert_eq!(store.append(stream(1), &Bytes::from_static(b"new")), 2);
        assert_eq!(store.after(stream(1), 0), None);
        assert_eq!(store.after(stream(1), 1).unwrap(), ["new"]);
    }
}
