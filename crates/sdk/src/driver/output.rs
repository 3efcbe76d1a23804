//! The output to the peer, and what happens if the peer does not read it (**bounded**).
//!
//! On a pipe the engine's limits hold, and the pipe has backpressure. On HTTP, where a peer can
//! leave any number of streams unread, waiting output counts against the peer's share. A response
//! that finds no room is replaced by an error that says so. Notifications of a handler wait for
//! room. But one small frame on a stream with no other frame waiting always passes, because
//! otherwise the room might have to come from the handler that waits for it.

use belay_protocol::engine::{self, Rejection, RequestKey, Time};
use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::error_code;

use super::handlers::Running;
use super::shares::FREE;
use super::{Answer, Engine, Link, Payload, Pool, State};

impl Link {
    /// Queues the answer of a handler that has ended.
    pub(super) fn respond(
        &self,
        engine: &mut Engine,
        now: Time,
        key: RequestKey,
        answer: Answer,
    ) -> Option<Option<Running>> {
        let bytes = answer.as_ref().map_or(0, Payload::len);
        match answer {
            Ok(_) if !self.has_room(engine, bytes) => {
                engine.respond(now, key, Err(no_room_for_answer(bytes)))
            }
            Ok(Payload::Frame(result)) => engine.respond_with(now, key, result),
            Ok(Payload::Json(result)) => engine.respond(now, key, Ok(result)),
            Err(error) => engine.respond(now, key, Err(error)),
        }
    }

    /// Sends a notification, and waits for room if there is none.
    pub(crate) async fn notify(
        &self,
        serves: Option<RequestKey>,
        method: &str,
        params: Option<&RawJson>,
    ) -> Result<(), Rejection> {
        let word = Word {
            serves,
            bytes: params.map_or(0, |params| params.as_bytes().len()),
            is_progress: false,
        };
        self.when_there_is_room(word, |engine, now| {
            engine.notify(now, serves, method, params)
        })
        .await
    }

    /// Sends a progress notification, and waits for room if there is none.
    pub(crate) async fn progress(
        &self,
        key: RequestKey,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Result<(), Rejection> {
        self.when_there_is_room(Word::progress(key, message), |engine, now| {
            engine.progress(now, key, progress, total, message)
        })
        .await
    }

    /// Sends a progress notification, if there is room.
    pub(crate) fn progress_now(
        &self,
        key: RequestKey,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Result<(), Rejection> {
        self.say(Word::progress(key, message), |engine, now| {
            engine.progress(now, key, progress, total, message)
        })
    }

    async fn when_there_is_room(
        &self,
        word: Word,
        mut say: impl FnMut(&mut Engine, Time) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        match self.say(word, &mut say) {
            Err(Rejection::QueueFull { .. }) => {}
            said => return said,
        }
        // Room comes when output of this link is written, or when other links release bytes.
        let waits = self.peer.wait_for_bytes();
        loop {
            let (room, freed) = (self.room.notified(), waits.freed());
            match self.say(word, &mut say) {
                Err(Rejection::QueueFull { .. }) => tokio::select! {
                    () = room => {}
                    () = freed => {}
                },
                said => return said,
            }
        }
    }

    /// Queues a notification, if there is room. If there is none, nothing has changed and the
    /// driver is not woken: it would find nothing to do, and wake the tasks that wait for room.
    fn say(
        &self,
        word: Word,
        say: impl FnOnce(&mut Engine, Time) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        let routed = {
            let mut state = self.lock();
            if !self.may_wait_in_queue(&state.engine, word) {
                let limit = self.peer.limit(Pool::Bytes);
                return Err(Rejection::QueueFull { limit });
            }
            let now = self.now();
            say(&mut state.engine, now)?;
            state.route()
        };
        self.wake(routed);
        Ok(())
    }

    fn may_wait_in_queue(&self, engine: &Engine, word: Word) -> bool {
        let goes_out = match word.serves {
            Some(key) if word.is_progress => engine.wants_progress(key),
            Some(key) => engine.is_working(key),
            None => true,
        };
        let passes = word.bytes <= SMALL && engine.output_bytes_for(word.serves) == 0;
        !goes_out || passes || self.has_room(engine, word.bytes)
    }

    /// Whether there is room for another waiting frame with this many bytes of content.
    fn has_room(&self, engine: &Engine, bytes: usize) -> bool {
        if !self.weighs_output {
            return true;
        }
        let waiting = engine.output_bytes();
        let frame = ENVELOPE + bytes + engine::Engine::FRAME_OVERHEAD;
        let beyond_free = |bytes: usize| bytes.saturating_sub(FREE);
        let more = beyond_free(waiting + frame) - beyond_free(waiting);
        self.peer.could_take(Pool::Bytes, more)
    }
}

/// A notification of a handler, or of the link.
#[derive(Clone, Copy)]
struct Word {
    /// The request on whose behalf it is sent.
    serves: Option<RequestKey>,
    /// The length of its content.
    bytes: usize,
    is_progress: bool,
}

impl Word {
    fn progress(key: RequestKey, message: Option<&str>) -> Self {
        Self {
            serves: Some(key),
            bytes: message.map_or(0, str::len),
            is_progress: true,
        }
    }
}

/// Roughly what a frame has besides its content: `jsonrpc`, an id or a method, a progress token.
const ENVELOPE: usize = 100;

/// Notifications with at most this much content count as small.
const SMALL: usize = 4 << 10;

impl State {
    /// Counts the waiting output against the peer's share.
    pub(super) fn weigh_output(&mut self) {
        if let Some(output) = &mut self.output {
            output.weigh(self.engine.output_bytes());
        }
    }
}

fn no_room_for_answer(bytes: usize) -> ErrorObject {
    let problem = format!(
        "the request was carried out, but its answer of {bytes} bytes was dropped: it is too much, \
         with all that waits to be read and is worked on (`kept_bytes`)"
    );
    // Not the code for overload, after which a request can be repeated: this one has run.
    ErrorObject::new(error_code::INTERNAL_ERROR, problem)
}
