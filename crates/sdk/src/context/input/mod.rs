//! Questions of a handler to its client: elicitation, sampling and roots.
//!
//! The same call works in both eras. In the legacy era it sends a request. In the modern one the
//! question is the answer to the handler's request, which the client repeats with its responses:
//! **what a handler does before it asks is done again in each round.** [`Context::once`] is for
//! work that must not be repeated.

mod capabilities;
mod error;
mod request;

use std::future::Future;

use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::modern::{InputRequest, MissingCapabilityData};
use belay_protocol::types::{
    ClientCapabilities, CreateMessage, CreateMessageParams, CreateMessageResult, Elicit,
    ElicitParams, ElicitResult, ListRoots, ListRootsParams, ListRootsResult, Named,
    Request as Typed, Root,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Context;
use crate::form::form_of;
use capabilities::{missing, names, needs, suit};
use error::Kind;

pub use error::InputError;
pub use request::InputFuture;
pub(crate) use request::{Read, agreed, filled_in};

impl Context {
    /// Asks the user to fill in a form with the fields of `T`: strings, numbers, `bool`s, enums
    /// without values, and lists of such enums. A field of type `Option` may be left empty.
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
    /// In the modern era the handler is run again with the answer: **what it did before it
    /// asked is done again**; see [`Context::once`]. Two questions that are asked concurrently,
    /// with `join!`, take one round.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the question: in the legacy era the client is
    /// sent a cancellation.
    pub fn elicit<T: DeserializeOwned + JsonSchema + 'static>(
        &self,
        message: impl Into<String>,
    ) -> InputFuture<T> {
        let params = form_of::<T>()
            .map(|form| ElicitParams::form(message, form))
            .map_err(|problem| InputError(Kind::Form(problem)));
        self.ask::<Elicit, T>(params, filled_in)
    }

    /// Asks the user with hand-written parameters: a custom form, or a URL to visit. It returns the
    /// result as it is, whether the user accepted, declined or dismissed it.
    ///
    /// # Cancel safety
    ///
    /// As with [`Context::elicit`].
    pub fn elicit_by_hand(&self, params: ElicitParams) -> InputFuture<ElicitResult> {
        self.ask::<Elicit, _>(Ok(params), Ok)
    }

    /// Asks the user to visit a URL. It returns when the user agrees, which does not mean
    /// that they have finished there.
    ///
    /// # Cancel safety
    ///
    /// As with [`Context::elicit`].
    pub fn elicit_url(
        &self,
        message: impl Into<String>,
        url: impl Into<String>,
    ) -> InputFuture<()> {
        let params = ElicitParams::url(message, url);
        self.ask::<Elicit, _>(Ok(params), agreed)
    }

    /// Samples the client's language model.
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
    pub fn sample(&self, params: CreateMessageParams) -> InputFuture<CreateMessageResult> {
        let params = match params.check_tool_use() {
            Ok(()) => Ok(params),
            Err(problem) => Err(InputError::bad_question(problem)),
        };
        self.ask::<CreateMessage, _>(params, Ok)
    }

    /// Asks for the client's roots: the folders it works in.
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
    pub fn roots(&self) -> InputFuture<Vec<Root>> {
        let read = |result: ListRootsResult| Ok(result.roots);
        self.ask::<ListRoots, _>(Ok(ListRootsParams::new()), read)
    }

    fn ask<R: Typed, T>(
        &self,
        params: Result<R::Params, InputError>,
        read: fn(R::Result) -> Result<T, Read>,
    ) -> InputFuture<T>
    where
        R::Result: 'static,
        T: 'static,
    {
        let params = params.and_then(|params| {
            let params = serde_json::to_value(&params);
            params.map_err(InputError::unwritten)
        });
        InputFuture::new(self.clone(), R::METHOD, params, move |answer| {
            let result = serde_json::from_value(answer);
            read(result.map_err(|error| Read::Invalid(error.to_string()))?)
        })
    }

    /// Computes a value once per conversation, however many rounds the request takes.
    /// The value is encrypted and carried by the client. Use it for work that is
    /// expensive or must not be repeated.
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
    /// A client can begin another conversation, or repeat a round with the state it carries. An
    /// effect that must never happen twice needs an idempotency key where it happens.
    ///
    /// A legacy request has a single run, in which each key is computed once, too. The computation
    /// cannot ask the client anything, in either era: ask first, then compute.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the computation.
    pub async fn once<T, F, Fut>(&self, key: &str, compute: F) -> Result<T, InputError>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        self.try_once(key, || async { Ok(compute().await) }).await
    }

    /// Like [`Context::once`], for work that can fail. An error is not kept: the
    /// next round tries again.
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
    /// Dropping the future drops the computation.
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

    /// Ends this request with a protocol error, whatever the handler returns. Use it for an invalid
    /// request; a tool that failed returns a result that says so.
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
    /// In a tool, prompt or resource handler it does not return before the handler is
    /// dropped. Elsewhere, in a layer or a completer, it returns at once, with an
    /// error for the caller to return.
    ///
    /// # Cancel safety
    ///
    /// The request ends when the future is first polled.
    pub async fn refuse(&self, error: ErrorObject) -> InputError {
        match self.rounds() {
            Some(rounds) => {
                rounds.end(error).await;
                InputError(Kind::Over)
            }
            None => InputError(Kind::Refused(error)),
        }
    }

    /// The client's capabilities. Check them where a question is optional.
    pub fn client_capabilities(&self) -> ClientCapabilities {
        let declared = self.rules().client_capabilities(self);
        declared.unwrap_or_default()
    }

    /// Ends this request, unless the client has the capability for the question.
    pub(crate) async fn require_for(&self, question: &InputRequest) -> Result<(), InputError> {
        let params = Value::Object(question.params.clone().unwrap_or_default());
        let needed = needs(&question.method)(&params);
        self.require(&needed).await
    }

    /// Ends this round with questions, and with the state for the next one. Modern only.
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

    /// Sends the question as a request. Legacy only.
    pub(crate) fn ask_legacy(
        &self,
        question: &InputRequest,
    ) -> Result<crate::InFlight<Value>, InputError> {
        let mut question = question.clone();
        suit(&mut question, self.version())?;
        let params = Value::Object(question.params.unwrap_or_default());
        Ok(self.request_raw(&question.method, &params).start())
    }

    /// Ends this request, unless the client has the capabilities.
    pub(super) async fn require(&self, needed: &ClientCapabilities) -> Result<(), InputError> {
        if let Some(missing) = missing(needed, &self.client_capabilities()) {
            let names: Vec<String> = names(&missing);
            let problem = format!("this needs a client with {}", names.join(" and "));
            let code = self.rules().missing_capability();
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
