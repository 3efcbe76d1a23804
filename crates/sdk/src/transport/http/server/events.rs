//! What was said on the streams of legacy sessions, so that one that broke can be resumed.

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

/// Keeps events for streams that break and come back. Legacy only: a modern stream is not resumed.
///
/// It is asked while a stream is written, so it must not take long.
pub trait EventStore: Send + Sync + 'static {
    /// Keeps an event; tells its number, which must be one more than that of the event before it on
    /// the same stream. The first one is 1.
    fn append(&self, stream: StreamId<'_>, event: &Bytes) -> u64;

    /// The events after this one, in order. `None` if some of them are not there any more: a stream
    /// with a hole is worse than none.
    fn after(&self, stream: StreamId<'_>, number: u64) -> Option<Vec<Bytes>>;

    /// Nothing more will be said on this stream. What was said may still be asked for. This comes at
    /// least once for each stream on which something was said, unless its session is over before.
    fn over(&self, stream: StreamId<'_>);

    /// A session is over.
    fn forget(&self, session: &str);
}

/// A stream of a session. The session is a secret: whoever knows it can speak for its owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct StreamId<'a> {
    /// The id of the session.
    pub session: &'a str,
    /// The number of the stream in it.
    pub number: u64,
}

impl std::fmt::Debug for StreamId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StreamId({})", self.number)
    }
}

/// Keeps events in memory: up to a number of bytes in all, for a while, oldest out first. A session
/// that has more than half of what is kept makes room by its own events, and not by those of others.
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
    /// Where each event is, oldest first: one entry for each that is kept, and no other.
    oldest: BTreeMap<u64, Entry>,
    /// How many there were.
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
    /// Where its oldest event is in the index.
    fn oldest(&self) -> Option<u64> {
        let first = |stream: &Stream| stream.events.front().map(|(place, _)| *place);
        self.streams.values().filter_map(first).min()
    }
}

/// What keeping an event takes besides its bytes.
const OVERHEAD: usize = 128;

#[derive(Default, Debug)]
struct Stream {
    /// How many were dropped.
    dropped: u64,
    /// Each with its place in the index.
    events: VecDeque<(u64, Bytes)>,
    /// No more will come.
    over: bool,
}

impl MemoryEvents {
    /// Keeps this many bytes at most, each event for this long at most.
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
            // Nothing was said on it yet.
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

    /// Drops the oldest event of all; but of this session, if more than half of all are its own.
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

    /// Drops an event that is the oldest of its stream.
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

    /// A stream that is over and of which nothing is left.
    fn forget_if_empty(&mut self, session: &str, number: u64) {
        if let Some(session) = self.sessions.get_mut(session) {
            let is_gone = |stream: &Stream| stream.over && stream.events.is_empty();
            if session.streams.get(&number).is_some_and(is_gone) {
                session.streams.remove(&number);
            }
        }
    }
}

/// What was said in one session, and what the store knows of it.
pub(super) struct SessionEvents {
    store: Arc<dyn EventStore>,
    session: SessionId,
    link: Arc<Link>,
    /// Held while something is taken to be said, until it is kept: so that whoever goes on with a
    /// stream misses nothing, and finds everything in order. True when the session is over, and the
    /// store keeps nothing of it any more.
    saying: Mutex<bool>,
    /// Streams whose carrier has left, and of which the store does not know that they are over: they
    /// may still be resumed.
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

    /// Tells the store which of the streams that were left are over. A stream that broke ends while
    /// nobody carries it: it is cancelled, or its time is over. So this is to be done at every turn
    /// of the session.
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

    /// The session is over.
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

/// Numbers the events of one stream, and keeps them.
pub(super) struct Numbering {
    events: Arc<SessionEvents>,
    stream: ExchangeId,
}

impl Numbering {
    pub(super) fn new(events: Arc<SessionEvents>, stream: ExchangeId) -> Self {
        Self { events, stream }
    }

    /// Nothing is said in the session while this is kept.
    pub(super) fn still(&self) -> MutexGuard<'_, bool> {
        self.events.saying()
    }

    /// Takes what is to be said next, and keeps it; gives its id, too.
    pub(super) fn take(&self, handle: &mut ExchangeHandle) -> Option<(String, Bytes)> {
        let forgotten = self.still();
        // What is kept for a session that is over would be kept for ever.
        if *forgotten {
            return None;
        }
        let event = handle.take()?;
        let number = self.events.store.append(self.stream_id(), &event);
        Some((event_id(self.stream, number), event))
    }

    /// An event without a message, so that a stream can be resumed from its very beginning.
    pub(super) fn greeting(&self) -> SseEvent {
        SseEvent {
            id: Some(event_id(self.stream, 0)),
            ..SseEvent::default()
        }
    }

    /// Its carrier leaves, because the stream is over, or broke, or is carried by somebody else.
    pub(super) fn leave(self, handle: Option<ExchangeHandle>) {
        // In this order: a stream that ends in between is found by whoever looks next.
        self.events.left().insert(self.stream.number());
        drop(handle);
        self.events.settle();
    }

    /// What came after an event.
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

/// Which stream an event belongs to, and its number there.
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
        // One that goes on is remembered, or its numbers would begin anew.
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

    /// What the index names, and what is kept.
    fn entries(store: &MemoryEvents) -> (usize, usize) {
        let kept = store.kept();
        let streams = kept.sessions.values().flat_map(|it| it.streams.values());
        let events = streams.map(|stream| stream.events.len()).sum();
        (kept.oldest.len(), events)
    }

    #[test]
    fn bounded_a_session_that_is_over_leaves_nothing_in_the_index() {
        // A window of "never".
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
