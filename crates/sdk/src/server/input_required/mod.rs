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

#[cfg(feature = "sealed")]
mod digest;
#[cfg(feature = "sealed")]
mod seal;
mod steps;
#[cfg(not(feature = "sealed"))]
mod unsealed;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Poll, Waker};

use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::modern::{InputRequest, InputRequiredResult};
use belay_protocol::types::{Era, Named, ResultType, error_code};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::sync::{Mutex, MutexGuard};
#[cfg(feature = "sealed")]
use digest::Digested;
#[cfg(feature = "sealed")]
use seal::Bound;
#[cfg(feature = "sealed")]
pub use seal::{RequestState, StateKey};
pub use steps::{InputMethod, InputRequests, RoundTrip, Step};
#[cfg(not(feature = "sealed"))]
pub(super) use unsealed::RequestState;
#[cfg(not(feature = "sealed"))]
use unsealed::{Bound, Digested};

/// What one request asks, and what is known of it.
#[derive(Default)]
pub(crate) struct Rounds {
    inner: Mutex<Inner>,
    /// Something was computed, or will not be.
    computed: Notify,
    /// The run is over: whoever still asks, elsewhere, gets no answer.
    over: CancellationToken,
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
    /// The names of the questions of this run.
    names: BTreeSet<String>,
    /// What is being computed, which must not be computed twice: the round does not end before.
    computing: BTreeSet<String>,
    /// A round that can be seen is over, with questions or without.
    step_over: bool,
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
    /// What the round before has left, where rounds can be seen.
    #[serde(default)]
    step: Option<(Value,)>,
}

/// How a run of a handler ended.
pub(super) enum Run<T> {
    /// With a result.
    Done(T),
    /// With questions.
    InputRequired(Box<InputRequiredResult>),
}

impl Rounds {
    /// What a request brings along from an earlier round, in the modern era.
    pub(super) fn brought_by(
        cx: &Context,
        state: &RequestState,
    ) -> Result<Option<Self>, ErrorObject> {
        let Some(params) = cx.params().filter(|_| cx.era() == Era::Modern) else {
            return Ok(None);
        };
        let present = |member: &RawJson| member.as_bytes() != b"null";
        let brought = params.fields(["requestState", "inputResponses"]);
        let [sealed, responses] = brought.map(|member| member.filter(present));
        if sealed.is_none() && responses.is_none() {
            return Ok(None);
        }
        let rounds = Self::default();
        rounds.lock().recall(cx, sealed, responses, state)?;
        Ok(Some(rounds))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// The answer to a question, with what the question is called. If there is none, the request ends
    /// with this question, and this does not return before.
    pub(crate) async fn answer(
        &self,
        name: Option<String>,
        question: InputRequest,
    ) -> Option<(String, Value)> {
        let answer = self.lock().answer(name, question);
        if answer.is_none() {
            self.over.cancelled().await;
        }
        answer
    }

    /// Nobody who asks gets an answer any more.
    pub(crate) fn end_all(&self) {
        self.over.cancel();
    }

    /// Until the handler is dropped.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Whether whoever asks this is part of what is computed once: other tasks may compute elsewhere.
    pub(crate) fn is_computing_here(&self) -> bool {
        COMPUTING.get() == Some(self.address())
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(&self.inner).addr()
    }

    /// Ends the request, whatever its handler does.
    pub(crate) async fn end(&self, error: ErrorObject) {
        self.lock().end(error);
        self.over.cancelled().await;
    }

    /// What the client has answered is not what was asked for. It came with the request, so that is
    /// what is wrong.
    pub(crate) fn end_for_answer(&self, name: &str, problem: &str) {
        let problem = format!("`inputResponses`: `{name}`: {problem}");
        self.lock().end(invalid(problem));
    }

    /// What the round before has left, and what was answered to its questions.
    pub(crate) fn step(&self) -> Option<(Value, Map<String, Value>)> {
        let inner = self.lock();
        let (state,) = inner.memory.step.clone()?;
        let answers = inner.memory.answers.iter();
        let answers = answers.map(|(name, (_, answer))| (name.clone(), answer.clone()));
        Some((state, answers.collect()))
    }

    /// Ends a round that can be seen. What was answered before is the handler's to keep.
    pub(crate) async fn end_step(&self, state: Value, questions: Named<InputRequest>) {
        {
            let mut inner = self.lock();
            inner.memory.step = Some((state,));
            inner.memory.answers.clear();
            inner.asked = questions;
            inner.step_over = true;
            inner.wake();
        }
        self.over.cancelled().await;
    }

    /// What is known under a key, from an earlier round or from this one; else it is to be computed,
    /// and kept with what is given back.
    pub(crate) async fn once(&self, key: &str) -> Result<Value, Computing<'_>> {
        loop {
            let mut computed = pin!(self.computed.notified());
            computed.as_mut().enable();
            {
                let mut inner = self.lock();
                if let Some(known) = inner.memory.once.get(key) {
                    return Ok(known.clone());
                }
                if inner.computing.insert(key.to_owned()) {
                    let key = key.to_owned();
                    return Err(Computing { rounds: self, key });
                }
            }
            // Somebody else computes it.
            computed.await;
        }
    }
}

/// Runs a handler until it is done, or has asked something that nobody has answered.
pub(super) async fn run<T>(
    cx: &Context,
    state: &RequestState,
    handler: impl Future<Output = Result<T, ErrorObject>>,
) -> Result<Run<T>, ErrorObject> {
    let _over = Over(cx);
    let mut handler = pin!(handler);
    let done = poll_fn(|task| {
        let polled = handler.as_mut().poll(task);
        let rounds = match &polled {
            Poll::Ready(_) => cx.rounds_so_far(),
            // Who asks may be another task.
            Poll::Pending => cx.rounds(),
        };
        let mut inner = rounds.map(Rounds::lock);
        let verdict = inner.as_ref().and_then(|inner| inner.verdict.as_ref());
        if let (Poll::Ready(done), None) = (polled, verdict) {
            return Poll::Ready(Some(done));
        }
        let has_asked = inner.as_ref().is_none_or(|inner| inner.is_over());
        match (has_asked, &mut inner) {
            (false, Some(inner)) => {
                inner.waker = Some(task.waker().clone());
                Poll::Pending
            }
            _ => Poll::Ready(None),
        }
    });
    if let Some(done) = done.await {
        return done.map(Run::Done);
    }
    let mut inner = match cx.rounds() {
        Some(rounds) => rounds.lock(),
        None => return Err(invalid("this request cannot ask anything")),
    };
    match inner.verdict.take() {
        Some(error) => Err(error),
        None => {
            let questions = inner.questions(cx, state)?;
            Ok(Run::InputRequired(Box::new(questions)))
        }
    }
}

/// When it is dropped, the run is over.
struct Over<'a>(&'a Context);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.end_rounds();
    }
}

impl Inner {
    fn recall(
        &mut self,
        cx: &Context,
        sealed: Option<RawJson>,
        responses: Option<RawJson>,
        state: &RequestState,
    ) -> Result<(), ErrorObject> {
        if let Some(sealed) = sealed {
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
        if let Some(responses) = responses {
            self.responses = responses
                .decode()
                .map_err(|error| invalid(format!("`inputResponses`: {error}")))?;
        }
        // What was asked is answered, whether this run asks it first or last.
        for (name, digest) in std::mem::take(&mut self.memory.pending) {
            if let Some(answer) = self.responses.get(&name).cloned() {
                self.memory.answers.insert(name, (digest, answer));
            }
        }
        Ok(())
    }

    /// Whether the run ends here, whatever its handler does.
    fn is_over(&self) -> bool {
        let asked = self.step_over || !self.asked.is_empty();
        self.verdict.is_some() || (asked && self.computing.is_empty())
    }

    fn answer(&mut self, name: Option<String>, question: InputRequest) -> Option<(String, Value)> {
        // A client may know the question by its name, and answer it before it is asked.
        let anticipated = name.is_some() && !self.asked_before;
        let name = self.unique(name.unwrap_or_else(|| "input".to_owned()));
        let digest = digest_of(&question).short();
        if let Some((known, answer)) = self.memory.answers.get(&name)
            && *known == digest
        {
            let answer = answer.clone();
            return Some((name, answer));
        }
        if anticipated && let Some(answer) = self.responses.get(&name).cloned() {
            let kept = (digest, answer.clone());
            self.memory.answers.insert(name.clone(), kept);
            return Some((name, answer));
        }
        self.asked.insert(name, question);
        self.wake();
        None
    }

    /// A name that no other question of this run has: `input`, `input-2`, …
    fn unique(&mut self, name: String) -> String {
        let mut unique = name.clone();
        let mut number = 1;
        while !self.names.insert(unique.clone()) {
            number += 1;
            unique = format!("{name}-{number}");
        }
        unique
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
        let digests = asked.iter();
        let digests =
            digests.map(|(name, question)| (name.to_owned(), digest_of(question).short()));
        self.memory.pending = digests.collect();
        let memory = serde_json::to_vec(&self.memory)
            .map_err(|error| ErrorObject::new(error_code::INTERNAL_ERROR, error.to_string()))?;
        let mut result = InputRequiredResult::new();
        result.result_type = Some(ResultType::InputRequired);
        result.input_requests = Some(asked).filter(|asked| !asked.is_empty());
        result.request_state = Some(state.seal(&bound(cx)?, &memory)?);
        Ok(result)
    }
}

thread_local! {
    /// For which request something is being computed on this thread at this moment.
    static COMPUTING: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Something that is being computed. If this is dropped, somebody else may.
pub(crate) struct Computing<'a> {
    rounds: &'a Rounds,
    key: String,
}

impl Computing<'_> {
    /// Computes it. Whoever asks something meanwhile, from within, is told that this cannot be.
    pub(crate) async fn run<T>(&self, compute: impl Future<Output = T>) -> T {
        let mut compute = pin!(compute);
        poll_fn(|task| {
            let before = COMPUTING.replace(Some(self.rounds.address()));
            let _after = OnDrop(|| COMPUTING.set(before));
            compute.as_mut().poll(task)
        })
        .await
    }

    /// Keeps what was computed.
    pub(crate) fn keep(self, value: Value) {
        let mut inner = self.rounds.lock();
        inner.memory.once.insert(self.key.clone(), value);
    }
}

impl Drop for Computing<'_> {
    fn drop(&mut self) {
        let mut inner = self.rounds.lock();
        inner.computing.remove(&self.key);
        inner.wake();
        drop(inner);
        self.rounds.computed.notify_waiters();
    }
}

/// Even if what runs panics.
struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
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
    let params = cx
        .params()
        .map(|params| params.decode::<Map<String, Value>>());
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
