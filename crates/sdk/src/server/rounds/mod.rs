//! Rounds: what a handler asks of its client.
//!
//! In the legacy era a question is a request. In the modern one a request that needs something is
//! answered with what it needs, and made again with the answers:
//!
//! ```text
//!   tools/call ──► handler ── asks, and nobody has answered ──► input_required, sealed state
//!                                                                       │
//!   tools/call, answers, sealed state ──► handler, from the start ◄─────┘
//!                                            │ asks, and there is the answer
//!                                            ▼
//!                                          result
//! ```
//!
//! Between two rounds nothing of a request is left here: what was answered and what must not be
//! computed twice travels with the client, sealed. A question is known by its name and by what it
//! asks: an answer to something else is none.

mod digest;
mod seal;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::modern::{InputRequest, InputRequiredResult};
use belay_protocol::types::{Era, Named, ResultType, error_code};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::context::Context;
use digest::Digested;
use seal::Bound;
pub use seal::{RequestState, StateKey};

/// What one request asks, and what is known of it.
pub(crate) struct Rounds {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    memory: Memory,
    /// What came with this request.
    responses: Map<String, Value>,
    /// There was a round before.
    asked_before: bool,
    /// What is asked in this round.
    asked: Named<InputRequest>,
    /// How often each name was used in this run.
    names: HashMap<String, usize>,
    /// What is not needed any more is not kept.
    used: BTreeSet<String>,
    /// The request ends so, whatever its handler does.
    verdict: Option<ErrorObject>,
    waker: Option<Waker>,
}

/// What the client carries from one round to the next.
#[derive(Default, Serialize, Deserialize)]
struct Memory {
    /// Answers, each with the digest of its question.
    answers: BTreeMap<String, (String, Value)>,
    /// What must not be computed twice.
    once: BTreeMap<String, Value>,
    /// What was asked last, with digests.
    pending: BTreeMap<String, String>,
}

/// How a run of a handler ended.
pub(super) enum Run<T> {
    /// With a result.
    Done(T),
    /// With questions.
    InputRequired(Box<InputRequiredResult>),
}

impl Rounds {
    /// For a request: in the modern era with what it brings along.
    pub(super) fn of(cx: &Context, state: &RequestState) -> Result<Self, ErrorObject> {
        let rounds = Self {
            inner: Mutex::default(),
        };
        if cx.era() == Era::Modern
            && let Some(params) = cx.params()
        {
            rounds.lock().recall(cx, params, state)?;
        }
        Ok(rounds)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a question. If there is none, the request ends with this question, and this
    /// never returns.
    pub(crate) async fn answer(&self, name: Option<String>, question: InputRequest) -> Value {
        let answer = self.lock().answer(name, question);
        match answer {
            Some(answer) => answer,
            None => pending().await,
        }
    }

    /// Ends the request, whatever its handler does.
    pub(crate) async fn end<T>(&self, error: ErrorObject) -> T {
        self.lock().end(error);
        pending().await
    }

    /// What was computed in an earlier round.
    pub(crate) fn recall(&self, key: &str) -> Option<Value> {
        self.lock().memory.once.get(key).cloned()
    }

    /// Keeps what must not be computed twice.
    pub(crate) fn remember(&self, key: &str, value: Value) {
        self.lock().memory.once.insert(key.to_owned(), value);
    }

    /// Runs a handler until it is done, or has asked something that nobody has answered.
    pub(super) async fn run<T>(
        &self,
        cx: &Context,
        state: &RequestState,
        handler: impl Future<Output = Result<T, ErrorObject>>,
    ) -> Result<Run<T>, ErrorObject> {
        let mut handler = pin!(handler);
        let done = poll_fn(|task| {
            if let Poll::Ready(done) = handler.as_mut().poll(task) {
                return Poll::Ready(Some(done));
            }
            let mut inner = self.lock();
            match inner.verdict.is_some() || !inner.asked.is_empty() {
                true => Poll::Ready(None),
                // Who asks may be another task.
                false => {
                    inner.waker = Some(task.waker().clone());
                    Poll::Pending
                }
            }
        });
        if let Some(done) = done.await {
            return done.map(Run::Done);
        }
        let mut inner = self.lock();
        match inner.verdict.take() {
            Some(error) => Err(error),
            None => {
                let questions = inner.questions(cx, state)?;
                Ok(Run::InputRequired(Box::new(questions)))
            }
        }
    }
}

impl Inner {
    fn recall(
        &mut self,
        cx: &Context,
        params: &RawJson,
        state: &RequestState,
    ) -> Result<(), ErrorObject> {
        let [sealed, responses] = params.fields(["requestState", "inputResponses"]);
        let present = |member: &RawJson| member.as_bytes() != b"null";
        if let Some(sealed) = sealed.filter(present) {
            let Some(sealed) = sealed.as_text() else {
                return Err(invalid("`requestState` must be a string"));
            };
            self.asked_before = true;
            let opened = state.open(&bound(cx)?, &sealed)?;
            self.memory = serde_json::from_slice(&opened).map_err(|error| {
                let problem = format!("`requestState` was sealed by another version: {error}");
                ErrorObject::new(error_code::INVALID_PARAMS, problem)
            })?;
        }
        if let Some(responses) = responses.filter(present) {
            self.responses = responses
                .decode()
                .map_err(|error| invalid(format!("`inputResponses`: {error}")))?;
        }
        Ok(())
    }

    fn answer(&mut self, name: Option<String>, question: InputRequest) -> Option<Value> {
        // A client may know the question by its name, and answer it before it is asked.
        let anticipated = name.is_some() && !self.asked_before;
        let name = self.unique(name.unwrap_or_else(|| "input".to_owned()));
        let digest = digest_of(&question).short();
        self.used.insert(name.clone());
        if let Some((known, answer)) = self.memory.answers.get(&name)
            && *known == digest
        {
            return Some(answer.clone());
        }
        if (anticipated || self.memory.pending.get(&name) == Some(&digest))
            && let Some(answer) = self.responses.get(&name).cloned()
        {
            self.memory.answers.insert(name, (digest, answer.clone()));
            return Some(answer);
        }
        self.asked.insert(name, question);
        self.wake();
        None
    }

    /// A name that no other question of this run has: `input`, `input-2`, …
    fn unique(&mut self, name: String) -> String {
        let count = self.names.entry(name.clone()).or_default();
        *count += 1;
        match count {
            1 => name,
            count => format!("{name}-{count}"),
        }
    }

    fn end(&mut self, error: ErrorObject) {
        self.verdict.get_or_insert(error);
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// What is asked, and what the client carries until it is answered.
    fn questions(
        &mut self,
        cx: &Context,
        state: &RequestState,
    ) -> Result<InputRequiredResult, ErrorObject> {
        let asked = std::mem::take(&mut self.asked);
        let used = &self.used;
        self.memory.answers.retain(|name, _| used.contains(name));
        let digests = asked.iter();
        let digests =
            digests.map(|(name, question)| (name.to_owned(), digest_of(question).short()));
        self.memory.pending = digests.collect();
        let memory = serde_json::to_vec(&self.memory)
            .map_err(|error| ErrorObject::new(error_code::INTERNAL_ERROR, error.to_string()))?;
        let mut result = InputRequiredResult::new();
        result.result_type = Some(ResultType::InputRequired);
        result.input_requests = Some(asked);
        result.request_state = Some(state.seal(&bound(cx)?, &memory)?);
        Ok(result)
    }
}

fn digest_of(question: &InputRequest) -> Digested {
    let params = question.params.clone().unwrap_or_default();
    Digested::of(&Value::from(vec![
        Value::from(question.method.as_str()),
        Value::Object(params),
    ]))
}

/// What the state of a request is good for: whoever makes it, and what is asked with what.
fn bound(cx: &Context) -> Result<Bound<'_>, ErrorObject> {
    let params = cx.params().map(RawJson::decode::<Map<String, Value>>);
    let mut params = params
        .transpose()
        .map_err(|error| invalid(error.to_string()))?
        .unwrap_or_default();
    for changes in ["_meta", "inputResponses", "requestState"] {
        params.shift_remove(changes);
    }
    Ok(Bound {
        principal: cx.principal(),
        method: cx.method(),
        params: Digested::of(&Value::Object(params)),
    })
}

fn invalid(problem: impl Into<String>) -> ErrorObject {
    ErrorObject::new(error_code::INVALID_PARAMS, problem)
}
