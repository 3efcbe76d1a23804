//! Explicit round trips: a tool as a function from one round to the next.

use std::future::Future;
use std::marker::PhantomData;

use belay_protocol::types::modern::InputRequest;
use belay_protocol::types::{
    CreateMessage, CreateMessageParams, CreateMessageResult, Elicit, ElicitParams, ElicitResult,
    Era, ListRoots, ListRootsParams, ListRootsResult, Named, Request as Typed, Root,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::context::{Context, InputError, Read, agreed, filled_in};
use crate::filled;
use crate::input::form_of;
use crate::server::offers::Tool;
use crate::server::reply::IntoToolResult;

/// The input of a round: the state of the previous one, and the client's answers.
///
/// An answer is decoded as what was asked. If it does not match, it came with a modern client's
/// request, and that request is refused (`-32602`), whatever the handler returns.
#[derive(Debug)]
pub struct RoundTrip<S> {
    cx: Context,
    state: Option<S>,
    answers: Map<String, Value>,
}

impl<S> RoundTrip<S> {
    /// The state of the previous round, or `None` in the first one.
    pub fn state(&self) -> Option<&S> {
        self.state.as_ref()
    }

    /// Takes the state of the previous round.
    pub fn into_state(self) -> Option<S> {
        self.state
    }

    /// What the person filled in under this name. `None` if nobody has answered: ask again.
    ///
    /// It is held against the form of `T`, which is what [`InputRequests::elicit`] asks for.
    pub fn elicited<T: DeserializeOwned + JsonSchema>(
        &self,
        name: &str,
    ) -> Option<Result<T, InputError>> {
        let answer = self.answer::<Elicit>(name)?;
        Some(answer.and_then(|result| self.filled_in(name, result)))
    }

    fn filled_in<T: DeserializeOwned + JsonSchema>(
        &self,
        name: &str,
        result: ElicitResult,
    ) -> Result<T, InputError> {
        let form = form_of::<T>().map_err(InputError::form)?;
        let form = serde_json::to_value(form).map_err(InputError::unwritten)?;
        let read = match filled::check(&form, &result) {
            Ok(()) => filled_in(result),
            Err(problem) => Err(Read::Invalid(problem)),
        };
        read.map_err(|read| match read {
            Read::Invalid(problem) => self.unfit(name, problem),
            read => read.into(),
        })
    }

    fn unfit(&self, name: &str, problem: String) -> InputError {
        if self.cx.era() == Era::Modern
            && let Some(rounds) = self.cx.rounds()
        {
            rounds.end_for_answer(name, &problem);
        }
        InputError::unfit(problem)
    }

    /// Whether the user agreed to visit the URL of the question of this name.
    pub fn agreed(&self, name: &str) -> Option<Result<(), InputError>> {
        let answer = self.answer::<Elicit>(name)?;
        Some(answer.and_then(|result| agreed(result).map_err(InputError::from)))
    }

    /// The model's message for the question of this name.
    pub fn sampled(&self, name: &str) -> Option<Result<CreateMessageResult, InputError>> {
        self.answer::<CreateMessage>(name)
    }

    /// The client's roots, for the question of this name.
    pub fn roots(&self, name: &str) -> Option<Result<Vec<Root>, InputError>> {
        let answer = self.answer::<ListRoots>(name)?;
        Some(answer.map(|result: ListRootsResult| result.roots))
    }

    /// The answer to any question, as it came.
    pub fn answer<R: InputMethod>(&self, name: &str) -> Option<Result<R::Result, InputError>> {
        let answer = self.answers.get(name)?.clone();
        let answer = serde_json::from_value(answer);
        Some(answer.map_err(|error| self.unfit(name, error.to_string())))
    }
}

/// The questions of a server: [`Elicit`], [`CreateMessage`] and [`ListRoots`]. The trait is sealed.
pub trait InputMethod: Typed + sealed::Sealed {}

impl InputMethod for Elicit {}
impl InputMethod for CreateMessage {}
impl InputMethod for ListRoots {}

mod sealed {
    use super::{CreateMessage, Elicit, ListRoots};

    pub trait Sealed {}

    impl Sealed for Elicit {}
    impl Sealed for CreateMessage {}
    impl Sealed for ListRoots {}
}

/// How a round ends.
#[derive(Debug)]
pub enum Step<T, S> {
    /// With the result of the tool.
    Done(T),
    /// With questions to the client, and the state for the next round.
    Ask(InputRequests<S>),
}

/// The questions at the end of a round, each with a name.
#[derive(Debug)]
pub struct InputRequests<S> {
    state: S,
    questions: Named<InputRequest>,
    problem: Option<InputError>,
}

impl<S> InputRequests<S> {
    /// Starts with the state for the next round. It is encrypted and carried by the client.
    pub fn new(state: S) -> Self {
        Self {
            state,
            questions: Named::new(),
            problem: None,
        }
    }

    /// Asks the user to fill in a form with the fields of `T`.
    pub fn elicit<T: JsonSchema>(self, name: &str, message: impl Into<String>) -> Self {
        match form_of::<T>() {
            Ok(form) => self.ask::<Elicit>(name, &ElicitParams::form(message, form)),
            Err(problem) => self.failed(InputError::form(problem)),
        }
    }

    /// Asks the user to visit a URL.
    pub fn elicit_url(
        self,
        name: &str,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> Self {
        self.ask::<Elicit>(name, &ElicitParams::url(message, url))
    }

    /// Samples the client's language model.
    pub fn sample(self, name: &str, params: &CreateMessageParams) -> Self {
        match params.check_tool_use() {
            Ok(()) => self.ask::<CreateMessage>(name, params),
            Err(problem) => self.failed(InputError::bad_question(problem)),
        }
    }

    /// Asks for the client's roots.
    pub fn roots(self, name: &str) -> Self {
        self.ask::<ListRoots>(name, &ListRootsParams::new())
    }

    /// Asks any question, with hand-written parameters.
    pub fn ask<R: InputMethod>(mut self, name: &str, params: &R::Params) -> Self {
        match InputRequest::of::<R>(params) {
            Ok(question) => {
                self.questions.insert(name, question);
                self
            }
            Err(error) => self.failed(InputError::unwritten(error)),
        }
    }

    fn failed(mut self, error: InputError) -> Self {
        self.problem.get_or_insert(error);
        self
    }
}

impl Tool {
    /// A tool whose rounds can be seen: its handler is called once for each, with what the one before
    /// has left and what was answered, and nothing is run twice. On the legacy wire the rounds are
    /// requests; the handler does not notice. Prompts and resources ask in one line, with
    /// [`Context::elicit`] and the others.
    ///
    /// ```
    /// use belay::input::{InputError, InputRequests, RoundTrip, Step};
    /// use belay::{Context, Tool};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Cart { item: String }
    ///
    /// #[derive(Clone, serde::Deserialize, schemars::JsonSchema)]
    /// struct Item { item: String }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Sure { sure: bool }
    ///
    /// async fn buy(_: Context, it: Item, round: RoundTrip<Cart>) -> Result<Step<String, Cart>, InputError> {
    ///     let (Some(cart), Some(sure)) = (round.state(), round.elicited::<Sure>("sure")) else {
    ///         let ask = InputRequests::new(Cart { item: it.item });
    ///         return Ok(Step::Ask(ask.elicit::<Sure>("sure", "Are you sure?")));
    ///     };
    ///     match sure? {
    ///         Sure { sure: true } => Ok(Step::Done(format!("bought {}", cart.item))),
    ///         Sure { sure: false } => Ok(Step::Done("never mind".to_owned())),
    ///     }
    /// }
    ///
    /// let tool = Tool::in_steps("buy", buy);
    /// ```
    pub fn in_steps<A, S, F, Fut, T, E>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema + Clone + Send + Sync + 'static,
        S: Serialize + DeserializeOwned + Send + Sync + 'static,
        F: Fn(Context, A, RoundTrip<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Step<T, S>, E>> + Send + 'static,
        T: IntoToolResult + Send + 'static,
        E: From<InputError> + std::fmt::Display + Send + 'static,
    {
        let handler = std::sync::Arc::new(handler);
        Self::new(name, move |cx: Context, arguments: A| {
            let handler = handler.clone();
            let steps = Steps::<S>(PhantomData);
            async move { steps.take(&cx, arguments, &*handler).await }
        })
    }
}

/// Drives the handler from one round to the next.
struct Steps<S>(PhantomData<fn() -> S>);

impl<S: Serialize + DeserializeOwned> Steps<S> {
    async fn take<A, F, Fut, T, E>(self, cx: &Context, arguments: A, handler: &F) -> Result<T, E>
    where
        A: Clone,
        F: Fn(Context, A, RoundTrip<S>) -> Fut,
        Fut: Future<Output = Result<Step<T, S>, E>>,
        E: From<InputError>,
    {
        let mut round = match cx.rounds().and_then(|rounds| rounds.step()) {
            Some((state, answers)) => RoundTrip {
                cx: cx.clone(),
                state: Some(serde_json::from_value(state).map_err(InputError::unwritten)?),
                answers,
            },
            None => RoundTrip {
                cx: cx.clone(),
                state: None,
                answers: Map::new(),
            },
        };
        loop {
            let asked = match handler(cx.clone(), arguments.clone(), round).await? {
                Step::Done(result) => return Ok(result),
                Step::Ask(asked) => asked,
            };
            if let Some(problem) = asked.problem {
                return Err(problem.into());
            }
            let answers = ask(cx, &asked.state, asked.questions).await?;
            round = RoundTrip {
                cx: cx.clone(),
                state: Some(asked.state),
                answers,
            };
        }
    }
}

/// Asks the questions. In the modern era this ends the run.
async fn ask<S: Serialize>(
    cx: &Context,
    state: &S,
    questions: Named<InputRequest>,
) -> Result<Map<String, Value>, InputError> {
    for (_, question) in questions.iter() {
        cx.require_for(question).await?;
    }
    if cx.era() == Era::Modern {
        let state = serde_json::to_value(state).map_err(InputError::unwritten)?;
        return Err(cx.end_step(state, questions).await);
    }
    let mut running = Vec::new();
    for (name, question) in questions {
        running.push((name, cx.ask_legacy(&question)?));
    }
    // A handler that loops without questions must let other tasks run.
    tokio::task::yield_now().await;
    let mut answers = Map::new();
    for (name, answer) in running {
        answers.insert(name, answer.await.map_err(InputError::failed)?);
    }
    Ok(answers)
}
