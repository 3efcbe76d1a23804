//! **bounded**: what is kept of the streams of legacy sessions, and for how long.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use belay::http::{EventStore, MemoryEvents, StreamId};
use belay_testkit::{RawHttp, until};
use bytes::Bytes;
use serde_json::json;

use super::Running;

/// Keeps events in memory, and notes which streams have not been over.
#[derive(Clone)]
struct Watched {
    events: Arc<MemoryEvents>,
    open: Arc<Mutex<HashSet<u64>>>,
}

impl Watched {
    fn new() -> Self {
        Self {
            events: Arc::new(MemoryEvents::new(1 << 20, Duration::MAX)),
            open: Arc::default(),
        }
    }

    fn open(&self) -> usize {
        self.open.lock().unwrap().len()
    }
}

impl EventStore for Watched {
    fn append(&self, stream: StreamId<'_>, event: &Bytes) -> u64 {
        self.open.lock().unwrap().insert(stream.number);
        self.events.append(stream, event)
    }

    fn after(&self, stream: StreamId<'_>, number: u64) -> Option<Vec<Bytes>> {
        self.events.after(stream, number)
    }

    fn over(&self, stream: StreamId<'_>) {
        let known = self.open.lock().unwrap().remove(&stream.number);
        assert!(known, "{stream:?} was over before, or never there");
        self.events.over(stream);
    }

    fn forget(&self, session: &str) {
        self.events.forget(session);
    }
}

async fn server(store: &Watched, window: Option<Duration>) -> Running {
    Running::of(
        |server| server.timeouts(|timeouts| timeouts.resume_window = window),
        |it| it.events(store.clone()),
    )
    .await
}

/// A request that has said something, and waits.
async fn shout(server: &Running, session: &RawHttp, id: i64) -> (RawHttp, String) {
    let mut http = server.beside(session).await;
    http.call(id, "shout", json!({})).await;
    assert!(http.answer().await.is_stream());
    let (greeting, _) = http.event().await.unwrap();
    http.message().await.unwrap();
    (http, greeting.unwrap())
}

async fn cancel(session: &mut RawHttp, id: i64) {
    let params = json!({ "requestId": id });
    session
        .post(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }))
        .await;
    assert_eq!(session.answer().await.status, 202);
}

#[tokio::test]
async fn bounded_a_stream_that_broke_and_was_cancelled_is_over() {
    let store = Watched::new();
    let server = server(&store, None).await;
    let mut session = server.session("2025-11-25").await;
    for id in 0..30 {
        let (http, greeting) = shout(&server, &session, id).await;
        if id % 3 == 1 {
            // It came back, and broke again.
            let mut again = server.beside(&session).await;
            again.set("Last-Event-ID", Some(&*greeting));
            again.send("GET", b"").await;
            assert!(again.answer().await.is_stream());
            assert!(!again.message().await.unwrap().is_null());
        }
        if id % 3 != 2 {
            drop(http);
            until("it broke", || server.listening.service().streams() == 0).await;
        }
        cancel(&mut session, id).await;
    }
    server.hanging.comes_to(0).await;
    until("every stream is over", || store.open() == 0).await;
}

/// Nothing happens then but that the answer is withdrawn: there is no handler to stop.
#[tokio::test]
async fn bounded_an_answer_that_nobody_came_back_for_and_was_cancelled_is_over() {
    let store = Watched::new();
    let server = server(&store, None).await;
    let mut session = server.session("2025-11-25").await;
    let mut http = server.beside(&session).await;
    let count = json!({ "to": 2, "delay_ms": 100 });
    http.call(7, "count", count).await;
    assert!(http.answer().await.is_stream());
    http.message().await.unwrap();
    drop(http);
    let service = server.listening.service();
    until("it broke", || service.streams() == 0).await;
    until("it is done", || service.handlers() == 0).await;
    assert_eq!(store.open(), 1);
    let cancelled = Instant::now();
    cancel(&mut session, 7).await;
    until("its stream is over", || store.open() == 0).await;
    // Not when the session turns for some other reason: a cancel is remembered for 10 s.
    assert!(cancelled.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn bounded_a_stream_that_broke_and_never_came_back_is_over() {
    let store = Watched::new();
    let server = server(&store, Some(Duration::from_millis(100))).await;
    let session = server.session("2025-11-25").await;
    for id in 0..10 {
        shout(&server, &session, id).await;
    }
    server.hanging.comes_to(0).await;
    until("every stream is over", || store.open() == 0).await;
}

#[tokio::test]
async fn bounded_a_stream_that_was_read_to_its_end_is_over() {
    let store = Watched::new();
    let server = server(&store, None).await;
    let mut session = server.session("2025-11-25").await;
    for id in 0..10 {
        session
            .call(id, "count", json!({ "to": 3, "delay_ms": 1 }))
            .await;
        assert!(session.answer().await.is_stream());
        while session.message().await.is_some() {}
    }
    until("every stream is over", || store.open() == 0).await;
}
