//! What a handler asks of its client: to fill in a form, to ask a model, where its folders are.
//!
//! The same line works on both wires. In the legacy era it is a request. In the modern one the
//! handler's request is answered with the question, and made again with the answer: **what a handler
//! does before it asks is done again in each round.** [`Context::once`] is for what must not be.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::time::Duration;

use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::modern::{InputRequest, MissingCapabilityData};
use belay_protocol::types::{
    ClientCapabilities, CreateMessage, CreateMessageParams, CreateMessageResult, Elicit,
    ElicitAction, ElicitParams, ElicitResult, Era, ListRoots, ListRootsParams, ListRootsResult,
    Named, Request as Typed, Root, error_code,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Context;
use super::input_error::{InputError, Kind};
use super::questions::{missing, names, needs, suit};
use crate::driver::BoxFuture;
use crate::filled;
use crate::form::form_of;

impl Context {
    /// Asks the person behind the client to fill in a form, whose fields are those of `T`: texts,
    /// numbers, `bool`s, enums without values, and lists of such enums. An `Option` may be left empty.
    ///
    /// ```no_run
    /// use belay::{Context, ToolError};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Label {
    ///     /// Who gets it.
    ///     name: String,
    ///     size: Size,
    /// }
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// enum Size { Small, Large }
    ///
    /// async fn ship(cx: &Context) -> Result<String, ToolError> {
    ///     let label: Label = cx.elicit("Which label?").await?;
    ///     Ok(format!("on its way to {}", label.name))
    /// }
    /// ```
    ///
    /// # Rounds
    ///
    /// On the modern wire the handler is run again with the answer: **what it did before it asked is
    /// done again**; see [`Context::once`]. Two questions that are asked at once, with `join!`, are
    /// one round.
    ///
    /// # Cancel safety
    ///
    /// Dropping it takes the question back: on the legacy wire the client is told.
    pub fn elicit<T: DeserializeOwned + JsonSchema + 'static>(
        &self,
        message: impl Into<String>,
    ) -> Asking<T> {
        let params = form_of::<T>()
            .map(|form| ElicitParams::form(message, form))
            .map_err(|problem| InputError(Kind::Form(problem)));
        self.ask::<Elicit, T>(params, filled_in)
    }

    /// Asks the person behind the client, by hand: a form of one's own, or a page to visit. Whatever
    /// the person did is the answer.
    ///
    /// # Cancel safety
    ///
    /// As with [`Context::elicit`].
    pub fn elicit_by_hand(&self, params: ElicitParams) -> Asking<ElicitResult> {
        self.ask::<Elicit, _>(Ok(params), Ok)
    }

    /// Asks the person behind the client to visit a page. That they agree does not mean that they are
    /// done there.
    ///
    /// # Cancel safety
    ///
    /// As with [`Context::elicit`].
    pub fn elicit_url(&self, message: impl Into<String>, url: impl Into<String>) -> Asking<()> {
        let params = ElicitParams::url(message, url);
        self.ask::<Elicit, _>(Ok(params), agreed)
    }

    /// Asks the client's language model.
    ///
    /// ```no_run
    /// use belay::types::{CreateMessageParams, SamplingMessage};
    /// use belay::{Context, ToolError};
    ///
    /// async fn summarise(cx: &Context, text: String) -> Result<String, ToolError> {
    ///     let ask = CreateMessageParams::new([SamplingMessage::user(text)], 200_u64);
    ///     let said = cx.sample(ask).await?;
    ///     Ok(said.content.as_text().unwrap_or_default().to_owned())
    /// }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// As with [`Context::elicit`].
    pub fn sample(&self, params: CreateMessageParams) -> Asking<CreateMessageResult> {
        let params = match params.check_tool_use() {
            Ok(()) => Ok(params),
            Err(problem) => Err(InputError::bad_question(problem)),
        };
        self.ask::<CreateMessage, _>(params, Ok)
    }

    /// Asks which folders matter to the client.
    ///
    /// ```no_run
    /// use belay::{Context, ToolError};
    ///
    /// async fn first(cx: &Context) -> Result<String, ToolError> {
    ///     let roots = cx.roots().await?;
    ///     Ok(roots.first().map_or("none".to_owned(), |root| root.uri.clone()))
    /// }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// As with [`Context::elicit`].
    pub fn roots(&self) -> Asking<Vec<Root>> {
        let read = |result: ListRootsResult| Ok(result.roots);
        self.ask::<ListRoots, _>(Ok(ListRootsParams::new()), read)
    }

    fn ask<R: Typed, T>(
        &self,
        params: Result<R::Params, InputError>,
        read: fn(R::Result) -> Result<T, Read>,
    ) -> Asking<T>
    where
        R::Result: 'static,
        T: 'static,
    {
        let (params, needs) = match params {
            Ok(params) => {
                let value = serde_json::to_value(&params).map_err(InputError::unwritten);
                (value, needs(R::METHOD))
            }
            Err(error) => (Err(error), needs(R::METHOD)),
        };
        Asking {
            cx: self.clone(),
            name: None,
            timeout: None,
            method: R::METHOD,
            params,
            needs,
            read: Box::new(move |answer| {
                let result = serde_json::from_value(answer);
                read(result.map_err(|error| Read::Unfit(error.to_string()))?)
            }),
        }
    }

    /// Computes something once, however many rounds the request takes: its value travels with the
    /// client, sealed. For what costs, or should not be done again.
    ///
    /// ```no_run
    /// # async fn reserve() -> u64 { 7 }
    /// use belay::{Context, ToolError};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Guest { name: String }
    ///
    /// async fn book(cx: &Context) -> Result<String, ToolError> {
    ///     let seat: u64 = cx.once("seat", || async { reserve().await }).await?;
    ///     let guest: Guest = cx.elicit("For whom?").await?;
    ///     Ok(format!("seat {seat} for {}", guest.name))
    /// }
    /// ```
    ///
    /// That is once for each conversation: a client can begin another, or repeat a round with what it
    /// carries. What must never happen twice needs a key of its own where it happens.
    ///
    /// On the legacy wire there is one run; within it, too, each key is computed once. What is computed
    /// cannot ask the client anything, in neither era: ask first, and compute then.
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops what computes.
    pub async fn once<T, F, Fut>(&self, key: &str, compute: F) -> Result<T, InputError>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        self.try_once(key, || async { Ok(compute().await) }).await
    }

    /// The same for what can fail. An error is not kept: the next round tries again.
    ///
    /// ```no_run
    /// # async fn reserve() -> Result<u64, ToolError> { Ok(7) }
    /// use belay::{Context, ToolError};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Guest { name: String }
    ///
    /// async fn book(cx: &Context) -> Result<String, ToolError> {
    ///     let seat: u64 = cx.try_once("seat", || async { reserve().await }).await?;
    ///     let guest: Guest = cx.elicit("For whom?").await?;
    ///     Ok(format!("seat {seat} for {}", guest.name))
    /// }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping it drops what computes.
    pub async fn try_once<T, E, F, Fut>(&self, key: &str, compute: F) -> Result<T, E>
    where
        T: Serialize + DeserializeOwned,
        E: From<InputError>,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        let Some(rounds) = self.rounds() else {
            return compute().await;
        };
        match rounds.once(key).await {
            Ok(known) => Ok(serde_json::from_value(known).map_err(InputError::unwritten)?),
            Err(computing) => {
                let computed = computing.run(compute()).await?;
                let value = serde_json::to_value(&computed).map_err(InputError::unwritten)?;
                computing.keep(value);
                Ok(computed)
            }
        }
    }

    /// Ends this request with an error, whatever the handler returns. For what is wrong with the
    /// request itself: a tool that failed says so in its result.
    ///
    /// ```no_run
    /// use belay::jsonrpc::ErrorObject;
    /// use belay::{Context, ToolError};
    ///
    /// async fn pay(cx: &Context, coins: i64) -> Result<String, ToolError> {
    ///     if coins < 0 {
    ///         return Err(cx.refuse(ErrorObject::new(-32602, "nobody pays less than nothing")).await.into());
    ///     }
    ///     Ok("paid".into())
    /// }
    /// ```
    ///
    /// In a tool, a prompt or a resource it does not return before the handler is dropped. Elsewhere,
    /// in a layer or a completer, which return errors of their own, it returns at once.
    ///
    /// # Cancel safety
    ///
    /// The request is over when this is first polled.
    pub async fn refuse(&self, error: ErrorObject) -> InputError {
        match self.rounds() {
            Some(rounds) => {
                rounds.end(error).await;
                InputError(Kind::Over)
            }
            None => InputError(Kind::Refused(error)),
        }
    }

    /// What the client can do: see whether it can be asked before it is, where one can do without.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        use belay_protocol::types::meta_key::CLIENT_CAPABILITIES;
        let declared = match self.era() {
            Era::Modern => self.meta().get(CLIENT_CAPABILITIES).ok().flatten(),
            Era::Legacy => {
                let introduction = self.inner.link.introduction();
                let declared = introduction.and_then(|it| it.field("capabilities"));
                declared.and_then(|declared| declared.decode().ok())
            }
        };
        declared.unwrap_or_default()
    }

    /// Ends this request, unless the client can be asked this.
    pub(crate) async fn require_for(&self, question: &InputRequest) -> Result<(), InputError> {
        let params = Value::Object(question.params.clone().unwrap_or_default());
        let needed = needs(&question.method)(&params);
        self.require(&needed).await
    }

    /// Ends this round, with questions and what the next one is to know. Modern only.
    pub(crate) async fn end_step(
        &self,
        state: Value,
        mut questions: Named<InputRequest>,
    ) -> InputError {
        let version = self.version();
        let suited = questions
            .values_mut()
            .try_for_each(|question| suit(question, version));
        if let Err(error) = suited {
            return error;
        }
        match self.rounds() {
            Some(rounds) => {
                rounds.end_step(state, questions).await;
                InputError(Kind::Over)
            }
            None => InputError(Kind::NotHere),
        }
    }

    /// Asks this as a request. Legacy only.
    pub(crate) fn ask_legacy(
        &self,
        question: &InputRequest,
    ) -> Result<crate::InFlight<Value>, InputError> {
        let mut question = question.clone();
        suit(&mut question, self.version())?;
        let params = Value::Object(question.params.unwrap_or_default());
        Ok(self.request_raw(&question.method, &params).start())
    }

    /// Ends this request, unless the client can do what is needed.
    async fn require(&self, needed: &ClientCapabilities) -> Result<(), InputError> {
        if let Some(missing) = missing(needed, &self.client_capabilities()) {
            let names: Vec<String> = names(&missing);
            let problem = format!("this needs a client with {}", names.join(" and "));
            let code = match self.era() {
                Era::Modern => error_code::MISSING_REQUIRED_CLIENT_CAPABILITY,
                Era::Legacy => error_code::INVALID_REQUEST,
            };
            let error = ErrorObject::new(code, problem);
            let data = RawJson::encode(&MissingCapabilityData::new(missing));
            let error = match data {
                Ok(data) => error.with_data(data),
                Err(_) => error,
            };
            return Err(self.refuse(error).await);
        }
        Ok(())
    }
}

/// A question that can be asked: set what you like, then `await` it.
///
/// If the client cannot be asked this, the request ends there, with the error that the specification
/// has for it (`-32021`; `-32600` in the legacy era, which has none). See [`Context::client_capabilities`] to know before.
///
/// # Cancel safety
///
/// Dropping it takes the question back: on the legacy wire the client is told.
#[must_use = "a question is not asked until it is awaited"]
pub struct Asking<T> {
    cx: Context,
    name: Option<String>,
    timeout: Option<Duration>,
    method: &'static str,
    params: Result<Value, InputError>,
    needs: fn(&Value) -> ClientCapabilities,
    read: Box<dyn FnOnce(Value) -> Result<T, Read> + Send>,
}

/// Whether the person agreed.
pub(crate) fn agreed(result: ElicitResult) -> Result<(), Read> {
    match result.action {
        ElicitAction::Accept => Ok(()),
        ElicitAction::Decline => Err(Read::Answer(Kind::Declined)),
        _ => Err(Read::Answer(Kind::Dismissed)),
    }
}

/// What was filled in, if it was.
pub(crate) fn filled_in<T: DeserializeOwned>(mut result: ElicitResult) -> Result<T, Read> {
    let content = Value::Object(result.content.take().unwrap_or_default());
    agreed(result)?;
    serde_path_to_error::deserialize(content).map_err(|error| {
        let problem = error.inner().to_string();
        Read::Unfit(match error.path().to_string().as_str() {
            "." => problem,
            path => format!("`{path}`: {problem}"),
        })
    })
}

/// What was read of an answer.
pub(crate) enum Read {
    /// It is one, but not a good one.
    Answer(Kind),
    /// It is none.
    Unfit(String),
}

impl From<Read> for InputError {
    fn from(read: Read) -> Self {
        match read {
            Read::Answer(kind) => Self(kind),
            Read::Unfit(problem) => Self(Kind::Unfit(problem)),
        }
    }
}

impl<T> Asking<T> {
    /// What the question is called on the modern wire. Without this it is called `input`, and the
    /// next ones `input-2` and so on.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Gives up after so long. Legacy only: on the modern wire the client may take as long as the
    /// state of a round is good for.
    pub fn timeout(mut self, total: Duration) -> Self {
        self.timeout = Some(total);
        self
    }

    async fn asked(self) -> Result<T, InputError> {
        let cx = &self.cx;
        let params = self.params?;
        let form = params.get("requestedSchema").cloned();
        let read = |answer: Value| {
            if let (Some(form), Ok(answer)) = (&form, serde_json::from_value(answer.clone())) {
                filled::check(form, &answer).map_err(Read::Unfit)?;
            }
            (self.read)(answer)
        };
        if cx.rounds().is_some_and(|rounds| rounds.is_computing_here()) {
            return Err(InputError(Kind::InsideOnce));
        }
        cx.require(&(self.needs)(&params)).await?;
        let question = InputRequest::by_name(self.method, &params);
        let mut question = question.map_err(InputError::unwritten)?;
        suit(&mut question, cx.version())?;
        if cx.era() == Era::Legacy {
            let params = Value::Object(question.params.unwrap_or_default());
            let mut call = cx.request_raw::<Value>(self.method, &params);
            if let Some(timeout) = self.timeout {
                call = call.timeout(timeout);
            }
            let answer = call
                .await
                .map_err(|error| InputError(Kind::Failed(error)))?;
            return read(answer).map_err(InputError::from);
        }
        let Some(rounds) = cx.rounds() else {
            return Err(InputError(Kind::NotHere));
        };
        let answer = rounds.answer(self.name, question).await;
        // Whoever asked in another task, or in another round, gets none.
        let (name, answer) = answer.ok_or(InputError(Kind::Over))?;
        match read(answer) {
            Ok(answer) => Ok(answer),
            Err(Read::Answer(kind)) => Err(InputError(kind)),
            Err(Read::Unfit(problem)) => {
                rounds.end_for_answer(&name, &problem);
                rounds.over().await;
                Err(InputError(Kind::Over))
            }
        }
    }
}

impl Asking<()> {
    /// What the visit of a page is called in 2025-11-25, for [`Context::visited`]. No other visit may be
    /// called the same. Without this it has a name that nobody can guess.
    pub fn elicitation_id(mut self, id: impl Into<String>) -> Self {
        if let Ok(Value::Object(params)) = &mut self.params {
            params.insert("elicitationId".into(), id.into().into());
        }
        self
    }
}

impl<T: Send + 'static> IntoFuture for Asking<T> {
    type Output = Result<T, InputError>;
    type IntoFuture = BoxFuture<Result<T, InputError>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.asked())
    }
}

impl<T> fmt::Debug for Asking<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asking")
            .field("method", &self.method)
            .finish_non_exhaustive()
    }
}
