//! What is said to the peer, and what becomes of it if the peer does not read (**bounded**).
//!
//! On a pipe the engine's own limits hold, and a pipe waits. On HTTP, where a peer can leave any
//! number of streams unread, all that waits to be written is weighed against the peer's share. An
//! answer that finds no room is dropped, for an error in its place that says so. What a handler says by
//! the way waits for room, unless nothing else waits to be read: what it waits for might be given back
//! by nobody but itself.

use belay_protocol::engine::{Engine, Rejection, RequestKey, Time};
use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::error_code;

use super::shares::FREE;
use super::{Answer, Link, Pool, State};

impl Link {
    /// A handler has come to its end with an answer.
    pub(super) fn respond(&self, key: RequestKey, answer: Answer) {
        self.tell(|engine, now| {
            let bytes = answer.as_ref().map_or(0, |result| result.as_bytes().len());
            let answer = match self.check_output(engine, bytes) {
                Ok(()) => answer,
                Err(_) => Err(no_room_for_answer(bytes)),
            };
            engine.respond(now, key, answer);
        });
    }

    /// Tells the peer something, waiting for room if there is none.
    pub(crate) async fn notify(
        &self,
        serves: Option<RequestKey>,
        method: &str,
        params: Option<&RawJson>,
    ) -> Result<(), Rejection> {
        let bytes = params.map_or(0, |params| params.as_bytes().len());
        self.when_there_is_room(bytes, |engine, now| {
            engine.notify(now, serves, method, params)
        })
        .await
    }

    /// Tells how far a request has come, waiting for room if there is none.
    pub(crate) async fn progress(
        &self,
        key: RequestKey,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Result<(), Rejection> {
        let bytes = message.map_or(0, str::len);
        self.when_there_is_room(bytes, |engine, now| {
            engine.progress(now, key, progress, total, message)
        })
        .await
    }

    /// The same, if there is room.
    pub(crate) fn progress_now(
        &self,
        key: RequestKey,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Result<(), Rejection> {
        let bytes = message.map_or(0, str::len);
        self.say(bytes, |engine, now| {
            engine.progress(now, key, progress, total, message)
        })
    }

    /// Says something of about so many bytes, if there is room for that.
    fn say(
        &self,
        bytes: usize,
        say: impl FnOnce(&mut Engine, Time) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        self.tell(|engine, now| {
            if engine.output_bytes() > 0 {
                self.check_output(engine, bytes)?;
            }
            say(engine, now)
        })
    }

    async fn when_there_is_room(
        &self,
        bytes: usize,
        mut say: impl FnMut(&mut Engine, Time) -> Result<(), Rejection>,
    ) -> Result<(), Rejection> {
        match self.say(bytes, &mut say) {
            Err(Rejection::QueueFull { .. }) => {}
            said => return said,
        }
        // Room comes when something of ours is written, or from somebody else who gives back.
        let waits = self.peer.wait_for_bytes();
        loop {
            let (room, freed) = (self.room.notified(), waits.freed());
            match self.say(bytes, &mut say) {
                Err(Rejection::QueueFull { .. }) => tokio::select! {
                    () = room => {}
                    () = freed => {}
                },
                said => return said,
            }
        }
    }

    /// Whether there is room for one frame more that waits to be written, with so many bytes of
    /// content.
    fn check_output(&self, engine: &Engine, bytes: usize) -> Result<(), Rejection> {
        if !self.weighs_output {
            return Ok(());
        }
        let waiting = engine.output_bytes();
        let frame = ENVELOPE + bytes + Engine::FRAME_OVERHEAD;
        let beyond_free = |bytes: usize| bytes.saturating_sub(FREE);
        let more = beyond_free(waiting + frame) - beyond_free(waiting);
        match self.peer.could_take(Pool::Bytes, more) {
            true => Ok(()),
            false => Err(Rejection::QueueFull {
                limit: self.peer.limit(Pool::Bytes),
            }),
        }
    }
}

/// About what a frame has besides its content: `jsonrpc`, an id or a method, a progress token.
const ENVELOPE: usize = 100;

impl State {
    /// Weighs what waits to be written.
    pub(super) fn weigh_output(&mut self) {
        if let Some(output) = &mut self.output {
            output.weigh(self.engine.output_bytes());
        }
    }
}

fn no_room_for_answer(bytes: usize) -> ErrorObject {
    let problem = format!(
        "the request was carried out, and its answer of {bytes} bytes dropped: too much waits to be \
         read"
    );
    // Not the code of an overload, after which a request can be sent again: this one has run.
    ErrorObject::new(error_code::INTERNAL_ERROR, problem)
}
