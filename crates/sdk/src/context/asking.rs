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
    ElicitAction, ElicitParams, ElicitResult, ElicitationCapability, Era, Extra, ListCapability,
    ListRoots, ListRootsParams, ListRootsResult, Named, ProtocolVersion, Request as Typed, Root,
    SamplingCapability, error_code,
};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Context;
use crate::Error;
use crate::driver::BoxFuture;
use crate::form::form_of;
use crate::server::NoAnswer;

impl Context {
    /// Asks the person behind the client to fill in a form, whose fields are those of `T`: texts,
    /// numbers, `bool`s, enums without values, and lists of those. An `Option` may be left empty.
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
        self.ask::<Elicit, T>(params, |result| match result.action {
            ElicitAction::Accept => {
                let content = Value::Object(result.content.unwrap_or_default());
                serde_path_to_error::deserialize(content).map_err(|error| {
                    let problem = error.inner().to_string();
                    Read::Unfit(match error.path().to_string().as_str() {
                        "." => problem,
                        path => format!("`{path}`: {problem}"),
                    })
                })
            }
            ElicitAction::Decline => Err(Read::Answer(Kind::Declined)),
            _ => Err(Read::Answer(Kind::Dismissed)),
        })
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
        self.ask::<Elicit, _>(Ok(params), |result| match result.action {
            ElicitAction::Accept => Ok(()),
            ElicitAction::Decline => Err(Read::Answer(Kind::Declined)),
            _ => Err(Read::Answer(Kind::Dismissed)),
        })
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
        self.ask::<CreateMessage, _>(Ok(params), Ok)
    }

    /// Asks which folders matter to the client.
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
    /// client, sealed. For what costs, or must not be done twice.
    ///
    /// ```no_run
    /// # async fn charge() -> u64 { 7 }
    /// use belay::{Context, ToolError};
    ///
    /// async fn buy(cx: &Context) -> Result<String, ToolError> {
    ///     let receipt: u64 = cx.once("charge", || async { charge().await }).await?;
    ///     let name: String = cx.elicit("For whom?").await?;
    ///     Ok(format!("receipt {receipt} for {name}"))
    /// }
    /// ```
    ///
    /// On the legacy wire there is one run; within it, too, each key is computed once. What is computed
    /// cannot ask the client anything: ask first, and compute then.
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
        let Some(rounds) = self.rounds() else {
            return Ok(compute().await);
        };
        match rounds.once(key).await {
            Ok(known) => serde_json::from_value(known).map_err(InputError::unwritten),
            Err(computing) => {
                let computed = computing.run(compute()).await;
                let value = serde_json::to_value(&computed).map_err(InputError::unwritten)?;
                computing.keep(value);
                Ok(computed)
            }
        }
    }

    /// Ends this request with an error, whatever the handler returns. For what is wrong with the
    /// request itself: a tool that failed says so in its result.
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
        questions: Named<InputRequest>,
    ) -> InputError {
        match self.rounds() {
            Some(rounds) => {
                rounds.end_step(state, questions).await;
                InputError(Kind::Over)
            }
            None => InputError(Kind::NotHere),
        }
    }

    /// Asks this as a request. Legacy only.
    pub(crate) fn ask_legacy(&self, question: &InputRequest) -> crate::InFlight<Value> {
        let params = Value::Object(question.params.clone().unwrap_or_default());
        let params = legacy(params, self.version());
        self.request_raw(&question.method, &params).start()
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
/// has for it (`-32021`). See [`Context::client_capabilities`] to know before.
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

/// What was read of an answer.
enum Read {
    /// It is one, but not a good one.
    Answer(Kind),
    /// It is none.
    Unfit(String),
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
        cx.require(&(self.needs)(&params)).await?;
        if cx.era() == Era::Legacy {
            let params = legacy(params, cx.version());
            let mut call = cx.request_raw::<Value>(self.method, &params);
            if let Some(timeout) = self.timeout {
                call = call.timeout(timeout);
            }
            let answer = call
                .await
                .map_err(|error| InputError(Kind::Failed(error)))?;
            return (self.read)(answer).map_err(|read| match read {
                Read::Answer(kind) => InputError(kind),
                Read::Unfit(problem) => InputError(Kind::Unfit(problem)),
            });
        }
        let Some(rounds) = cx.rounds() else {
            return Err(InputError(Kind::NotHere));
        };
        let question = InputRequest::by_name(self.method, &params);
        let question = question.map_err(InputError::unwritten)?;
        let name = self.name.clone();
        let answer = rounds.answer(self.name, question).await;
        let answer = answer.map_err(|why| match why {
            NoAnswer::RunOver => InputError(Kind::Over),
            NoAnswer::InsideOnce => InputError(Kind::InsideOnce),
        })?;
        match (self.read)(answer) {
            Ok(answer) => Ok(answer),
            Err(Read::Answer(kind)) => Err(InputError(kind)),
            // The client has sent it with its request, so that is what is wrong.
            Err(Read::Unfit(problem)) => {
                let name = name.as_deref().unwrap_or("input");
                let problem = format!("`inputResponses`: `{name}`: {problem}");
                let error = ErrorObject::new(error_code::INVALID_PARAMS, problem);
                Err(cx.refuse(error).await)
            }
        }
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

/// Older revisions have no modes, and the one that has them names each visit.
fn legacy(mut params: Value, version: ProtocolVersion) -> Value {
    if let Some(params) = params.as_object_mut() {
        match params.get("mode").and_then(Value::as_str) {
            Some("form") if version != ProtocolVersion::V2025_11_25 => {
                params.shift_remove("mode");
                let fields = params.get_mut("requestedSchema");
                let fields = fields.and_then(|schema| schema.get_mut("properties"));
                for field in fields.and_then(Value::as_object_mut).into_iter().flatten() {
                    if let Some(field) = field.1.as_object_mut() {
                        plain_field(field);
                    }
                }
            }
            Some("url") => {
                let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                let id = params.entry("elicitationId");
                id.or_insert_with(|| format!("elicitation-{number}").into());
            }
            _ => {}
        }
    }
    params
}

/// A field as 2025-06-18 knows it: choices have names beside them, and only a yes or no can be
/// proposed.
fn plain_field(field: &mut serde_json::Map<String, Value>) {
    if let Some(Value::Array(options)) = field.shift_remove("oneOf") {
        let member = |name: &str| -> Value {
            let members = options.iter().filter_map(|option| option.get(name));
            members.cloned().collect()
        };
        let (values, titles) = (member("const"), member("title"));
        field.insert("enum".into(), values);
        field.insert("enumNames".into(), titles);
    }
    if field.get("type").and_then(Value::as_str) != Some("boolean") {
        field.shift_remove("default");
    }
}

static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);

/// What a client must be able to do to be asked this.
fn needs(method: &str) -> fn(&Value) -> ClientCapabilities {
    match method {
        Elicit::METHOD => |params| {
            let mut elicitation = ElicitationCapability::new();
            match params.get("mode").and_then(Value::as_str) {
                Some("url") => elicitation.url = Some(Extra::new()),
                _ => elicitation.form = Some(Extra::new()),
            }
            let mut needed = ClientCapabilities::new();
            needed.elicitation = Some(elicitation);
            needed
        },
        CreateMessage::METHOD => |params| {
            let mut sampling = SamplingCapability::new();
            if params.get("tools").is_some() || params.get("toolChoice").is_some() {
                sampling.tools = Some(Extra::new());
            }
            let mut needed = ClientCapabilities::new();
            needed.sampling = Some(sampling);
            needed
        },
        _ => |_| {
            let mut needed = ClientCapabilities::new();
            needed.roots = Some(ListCapability::new());
            needed
        },
    }
}

/// What of it a client has not declared.
fn missing(
    needed: &ClientCapabilities,
    declared: &ClientCapabilities,
) -> Option<ClientCapabilities> {
    let mut missing = ClientCapabilities::new();
    if needed.roots.is_some() && declared.roots.is_none() {
        missing.roots.clone_from(&needed.roots);
    }
    if let Some(sampling) = &needed.sampling {
        let declared = declared.sampling.as_ref();
        let tools = sampling.tools.is_none() || declared.is_some_and(|it| it.tools.is_some());
        if declared.is_none() || !tools {
            missing.sampling = Some(sampling.clone());
        }
    }
    if let Some(elicitation) = &needed.elicitation {
        let can = declared.elicitation.as_ref().is_some_and(|declared| {
            match elicitation.url.is_some() {
                true => declared.url.is_some(),
                // Neither mode named means a form.
                false => declared.form.is_some() || declared.url.is_none(),
            }
        });
        if !can {
            let mut elicitation = elicitation.clone();
            // That is how clients say so that know of no modes.
            elicitation.form = None;
            missing.elicitation = Some(elicitation);
        }
    }
    (missing != ClientCapabilities::new()).then_some(missing)
}

fn names(missing: &ClientCapabilities) -> Vec<String> {
    let named = [
        ("`roots`", missing.roots.is_some()),
        ("`sampling`", missing.sampling.is_some()),
        ("`elicitation`", missing.elicitation.is_some()),
    ];
    let missing = named.into_iter().filter(|(_, missing)| *missing);
    missing.map(|(name, _)| name.to_owned()).collect()
}

/// Why a question was not answered.
///
/// ```
/// # fn handle(error: belay::InputError) {
/// if error.is_declined() {
///     // the person said no
/// } else if error.is_dismissed() {
///     // the person went away; perhaps ask again later
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct InputError(Kind);

#[derive(Debug)]
enum Kind {
    Declined,
    Dismissed,
    Failed(Error),
    Unfit(String),
    Form(String),
    Unwritten(serde_json::Error),
    Refused(ErrorObject),
    Over,
    InsideOnce,
    NotHere,
}

impl InputError {
    /// Whether the person said no.
    pub fn is_declined(&self) -> bool {
        matches!(self.0, Kind::Declined)
    }

    /// Whether the person went away without an answer.
    pub fn is_dismissed(&self) -> bool {
        matches!(self.0, Kind::Dismissed)
    }

    /// How the request for it ended, if it was one and gave no answer. Legacy only.
    pub fn error(&self) -> Option<&Error> {
        match &self.0 {
            Kind::Failed(error) => Some(error),
            _ => None,
        }
    }

    pub(crate) fn unwritten(error: serde_json::Error) -> Self {
        Self(Kind::Unwritten(error))
    }

    pub(crate) fn unfit(problem: String) -> Self {
        Self(Kind::Unfit(problem))
    }

    pub(crate) fn form(problem: String) -> Self {
        Self(Kind::Form(problem))
    }

    pub(crate) fn failed(error: Error) -> Self {
        Self(Kind::Failed(error))
    }

    pub(crate) fn declined() -> Self {
        Self(Kind::Declined)
    }

    pub(crate) fn dismissed() -> Self {
        Self(Kind::Dismissed)
    }
}

/// This level only; the cause is in `source()`.
impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Declined => f.write_str("the user said no"),
            Kind::Dismissed => f.write_str("the user did not answer"),
            Kind::Failed(_) => f.write_str("the client could not be asked"),
            Kind::Unfit(problem) => write!(f, "the client's answer does not fit: {problem}"),
            Kind::Form(problem) => write!(f, "this type cannot be a form: {problem}"),
            Kind::Unwritten(_) => f.write_str("this cannot be written as JSON"),
            Kind::Refused(error) => write!(f, "refused: {error}"),
            Kind::Over => f.write_str("the request, or this round of it, is over"),
            Kind::InsideOnce => f.write_str("what is computed once cannot ask: ask first"),
            Kind::NotHere => f.write_str("only tools, prompts and resources can ask"),
        }
    }
}

impl std::error::Error for InputError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0 {
            Kind::Failed(error) => Some(error),
            Kind::Unwritten(error) => Some(error),
            _ => None,
        }
    }
}
