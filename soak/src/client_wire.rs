//! Checks the frames that a client writes: a cancel is announced once, and only for a request that
//! was written (**announce-once**). On modern HTTP it is never written, because the end of the
//! stream is the cancellation.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use belay::client::ClientBuilder;
use belay::transport::Direction;
use serde_json::Value;

use crate::Done;

/// How often each request was cancelled, by id.
#[derive(Clone, Default)]
pub(crate) struct Written(Arc<Mutex<Requests>>);

#[derive(Default)]
struct Requests {
    cancels: HashMap<String, usize>,
    wrong: Option<String>,
}

impl Written {
    /// Observes every frame that the client writes.
    pub(crate) fn by(&self, builder: ClientBuilder) -> ClientBuilder {
        let written = self.clone();
        builder.tap(move |way, frame| {
            if way == Direction::Out {
                written.look_at(frame);
            }
        })
    }

    fn lock(&self) -> MutexGuard<'_, Requests> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look_at(&self, frame: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(frame) else {
            return;
        };
        let mut requests = self.lock();
        let (id, method) = (message.get("id"), message["method"].as_str());
        match (id, method) {
            (Some(id), Some(_)) => {
                requests.cancels.insert(id.to_string(), 0);
            }
            (None, Some("notifications/cancelled")) => {
                let id = message["params"]["requestId"].to_string();
                match requests.cancels.get_mut(&id) {
                    Some(0) => *requests.cancels.entry(id).or_default() += 1,
                    Some(_) => requests.wrong = Some(format!("{id} was cancelled twice")),
                    None => requests.wrong = Some(format!("{id} was cancelled and not written")),
                }
            }
            _ => {}
        }
    }

    pub(crate) fn check(&self, cancels_are_written: bool) -> Done {
        let requests = self.lock();
        if let Some(wrong) = &requests.wrong {
            return Err(format!("announce-once: {wrong}"));
        }
        let cancels: usize = requests.cancels.values().sum();
        match cancels {
            count if count > 0 && !cancels_are_written => {
                Err(format!("drop-announces: {count} cancels were posted"))
            }
            _ => Ok(()),
        }
    }
}
