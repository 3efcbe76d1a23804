//! Multi round-trip requests: a handler's questions to its client.
//!
//! In the legacy era a question is a request. In the modern one a request that needs input is
//! answered with the questions, and the client repeats it with the answers:
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
//! Between two rounds the server stores nothing: the answers and the values of `once` are encrypted
//! and carried by the client. A question is identified by its name and its content: an answer to
//! another question is not used.

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

/// The questions of one request, with the answers and values that are known.
#[derive(Default)]
pub(crate) struct Rounds {
    inner: Mutex<Inner>,
    /// A computation has ended, with a value or without.
    computed: Notify,
    /// The run is over: questions in other tasks get no answer.
    over: CancellationToken,
}

#[derive(Default)]
struct Inner {
    memory: Memory,
    /// The responses that came with this request.
    responses: Map<String, Value>,
    /// There was an earlier round.
    asked_before: bool,
    /// The questions of this round.
    asked: Named<InputRequest>,
    /// The names of the questions of this run.
    names: BTreeSet<String>,
    /// The keys being computed, which must not be computed twice, so the round waits for them.
    computing: BTreeSet<String>,
    /// A step of a `Tool::in_steps` handler has ended, with questions or without.
    step_over: bool,
    /// The error that ends the request, whatever the handler returns.
    verdict: Option<ErrorObject>,
    waker: Option<Waker>,
}

/// The state that the client carries between rounds.
#[derive(Default, Serialize, Deserialize)]
struct Memory {
    /// The answers, each with the digest of its question.
    answers: BTreeMap<String, (String, Value)>,
    /// The values of `once`.
    once: BTreeMap<String, Value>,
    /// The digests of the last round's questions.
    pending: BTreeMap<String, String>,
    /// The state of a `Tool::in_steps` handler.
    #[serde(default)]
    step: Option<(Value,)>,
}

/// How the run of a handler ended.
pub(super) enum Run<T> {
    /// With a result.
    Done(T),
    /// With questions.
    InputRequired(Box<InputRequiredResult>),
}

impl Rounds {
    /// The state that a request carries from an earlier round. Modern only.
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

    /// The answer to a question, with the name of the question. Without an answer the request ends
    /// with this question, and this waits for that.
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

    /// Ends the run: open questions get no answer.
    pub(crate) fn end_all(&self) {
        self.over.cancel();
    }

    /// Waits until the run is over, so until the handler is dropped.
    pub(crate) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Whether this is called from within a `once` computation of this request. Other tasks may be
    /// computing at the same time, which does not count.
    pub(crate) fn is_computing_here(&self) -> bool {
        COMPUTING.get() == Some(self.address())
    }

    fn address(&self) -> usize {
        std::ptr::from_ref(&self.inner).addr()
    }

    /// Ends the request with an error, whatever the handler returns.
    pub(crate) async fn end(&self, error: ErrorObject) {
        self.lock().end(error);
        self.over.cancelled().await;
    }

    /// Ends the request because an answer does not match its question. The error is about the
    /// request, since the answer came with it.
    pub(crate) fn end_for_answer(&self, name: &str, problem: &str) {
        let problem = format!("`inputResponses`: `{name}`: {problem}");
        self.lock().end(invalid(problem));
    }

    /// The state of the previous step, and the answers to its questions.
    pub(crate) fn step(&self) -> Option<(Value, Map<String, Value>)> {
        let inner = self.lock();
        let (state,) = inner.memory.step.clone()?;
        let answers = inner.memory.answers.iter();
        let answers = answers.map(|(name, (_, answer))| (name.clone(), answer.clone()));
        Some((state, answers.collect()))
    }

    /// Ends a step. Earlier answers are dropped, because the handler has kept what
    /// it needs in its state.
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

    /// The value of a key, from this round or an earlier one. Without one the caller computes it,
    /// and stores it through the returned guard.
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
            // Another task computes it.
            computed.await;
        }
    }
}

/// Runs a handler until it is done, or until it has asked a question without an answer.
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
            // The question may come from another task.
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

/// Ends the run when it is dropped.
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
        // All answers are stored, in whatever order this run asks its questions.
        for (name, digest) in std::mem::take(&mut self.memory.pending) {
            if let Some(answer) = self.responses.get(&name).cloned() {
                self.memory.answers.insert(name, (digest, answer));
            }
        }
        Ok(())
    }

    /// Whether the run ends now, without waiting for its handler.
    fn is_over(&self) -> bool {
        let asked = self.step_over || !self.asked.is_empty();
        self.verdict.is_some() || (asked && self.computing.is_empty())
    }

    fn answer(&mut self, name: Option<String>, question: InputRequest) -> Option<(String, Value)> {
        // A client may know the name of a question, and answer it before it is asked.
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

    /// Makes the name unique within this run: `input`, `input-2`, …
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

    /// The questions of this round, with the encrypted state for the next one.
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
    /// The address of the request whose computation is being polled on this thread.
    static COMPUTING: Cell<Option<usize>> = const { Cell::new(None) };
}

/// A computation in progress. If it is dropped, another task may compute the key.
pub(crate) struct Computing<'a> {
    rounds: &'a Rounds,
    key: String,
}

impl Computing<'_> {
    /// Runs the computation. Questions asked from within it fail.
    pub(crate) async fn run<T>(&self, compute: impl Future<Output = T>) -> T {
        let mut compute = pin!(compute);
        poll_fn(|task| {
            let before = COMPUTING.replace(Some(self.rounds.address()));
            let _after = OnDrop(|| COMPUTING.set(before));
            compute.as_mut().poll(task)
        })
        .await
    }

    /// Stores the value.
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

/// Runs its closure on drop, so also when the computation panics.
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

/// What the state is bound to: the principal, the method and the parameters.
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
