//! Prompts: message templates that the user chooses and fills in.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::{
    Completion, GetPromptParams, GetPromptResult, Icon, ListPromptsResult, PromptArgument,
    PromptDefinition, PromptMessage, error_code,
};
use schemars::JsonSchema;
use schemars::generate::Contract;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::catalogue::{Catalogue, Offer};
use super::completion::{Completer, Completers, CompletionRequest};
use super::request_error::RequestError;
use super::text_arguments;
use crate::context::Context;
use crate::driver::BoxFuture;
use crate::server::changes::{Changes, List};
use crate::server::reply::schema_of;

/// A prompt: a message template that the user chooses and fills in.
///
/// ```
/// use belay::{Context, Prompt};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Review {
///     /// The code to look at.
///     code: String,
///     language: Option<String>,
/// }
///
/// let prompt = Prompt::new("review", |_cx: Context, review: Review| async move {
///     format!("Please review this:\n{}", review.code)
/// })
/// .description("Asks for a review.")
/// .complete("language", |_cx, typed| async move {
///     ["rust", "ruby"].into_iter().filter(move |known| known.starts_with(&typed.value))
/// });
/// ```
///
/// Prompt arguments are strings on the wire. The fields of the handler's type may be numbers,
/// `bool`s and enums, too, and are parsed. A handler returns a `String` for one user message, a
/// [`PromptMessage`] or several, a [`GetPromptResult`], or a `Result` with a [`RequestError`].
#[derive(Clone)]
#[must_use = "a prompt does nothing until a server offers it"]
pub struct Prompt {
    description: PromptDefinition,
    handler: Handler,
    completers: Completers,
}

type Given = BTreeMap<String, String>;
type Handler =
    Arc<dyn Fn(Context, Given) -> BoxFuture<Result<GetPromptResult, RequestError>> + Send + Sync>;

impl Prompt {
    /// Makes a prompt from its name and its handler. The argument type defines the arguments.
    pub fn new<A, F, Fut, R>(name: impl Into<String>, handler: F) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        F: Fn(Context, A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoPrompt,
    {
        let handler: Handler = Arc::new(move |cx, given| {
            let named = given.iter();
            let named = named.map(|(name, value)| (name.as_str(), Cow::from(value.as_str())));
            match text_arguments::decode(named) {
                Ok(arguments) => {
                    let running = handler(cx, arguments);
                    Box::pin(async move { running.await.into_prompt() })
                }
                Err(problem) => {
                    let failure = RequestError::invalid(format!("invalid arguments: {problem}"));
                    Box::pin(std::future::ready(Err(failure)))
                }
            }
        });
        let mut description = PromptDefinition::new(name);
        let arguments = arguments_of(&schema_of::<A>(Contract::Deserialize));
        description.arguments = Some(arguments).filter(|arguments| !arguments.is_empty());
        Self {
            description,
            handler,
            completers: Completers::default(),
        }
    }

    /// Sets the description.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description.description = Some(description.into());
        self
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.description.title = Some(title.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.description.icons.get_or_insert_default().push(icon);
        self
    }

    /// Changes the description of an argument, or adds an argument.
    pub fn argument(
        mut self,
        name: impl Into<String>,
        change: impl FnOnce(&mut PromptArgument),
    ) -> Self {
        let name = name.into();
        let arguments = self.description.arguments.get_or_insert_default();
        match arguments.iter_mut().find(|known| known.name == name) {
            Some(argument) => change(argument),
            None => {
                let mut argument = PromptArgument::new(name);
                change(&mut argument);
                arguments.push(argument);
            }
        }
        self
    }

    /// Registers a completer, which suggests values for an argument while the user types.
    pub fn complete<F, Fut, I>(mut self, argument: impl Into<String>, completer: F) -> Self
    where
        F: Fn(Context, CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = I> + Send + 'static,
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.completers.add(argument, Completer::new(completer));
        self
    }
}

impl Offer for Prompt {
    fn key(&self) -> &str {
        &self.description.name
    }
}

impl std::fmt::Debug for Prompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Prompt").field(&self.key()).finish()
    }
}

/// The fields of a type, as prompt arguments.
fn arguments_of(schema: &Map<String, Value>) -> Vec<PromptArgument> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| {
        required.is_some_and(|all| all.iter().any(|known| known.as_str() == Some(name)))
    };
    let fields = schema.get("properties").and_then(Value::as_object);
    let describe = |(name, field): (&String, &Value)| {
        let text = |key: &str| field.get(key).and_then(Value::as_str).map(str::to_owned);
        let mut argument = PromptArgument::new(name.as_str());
        argument.title = text("title");
        argument.description = text("description");
        argument.required = Some(is_required(name));
        argument
    };
    fields.into_iter().flatten().map(describe).collect()
}

/// A type that a prompt handler can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a prompt",
    label = "the result of a prompt",
    note = "give a `String`, a `PromptMessage` or several, a `GetPromptResult`, or a `Result` with a `belay::RequestError`"
)]
pub trait IntoPrompt {
    /// Converts it to the result of `prompts/get`.
    fn into_prompt(self) -> Result<GetPromptResult, RequestError>;
}

impl IntoPrompt for GetPromptResult {
    fn into_prompt(self) -> Result<GetPromptResult, RequestError> {
        Ok(self)
    }
}

impl IntoPrompt for Vec<PromptMessage> {
    fn into_prompt(self) -> Result<GetPromptResult, RequestError> {
        Ok(GetPromptResult::new(self))
    }
}

impl<const N: usize> IntoPrompt for [PromptMessage; N] {
    fn into_prompt(self) -> Result<GetPromptResult, RequestError> {
        Ok(GetPromptResult::new(self))
    }
}

impl IntoPrompt for PromptMessage {
    fn into_prompt(self) -> Result<GetPromptResult, RequestError> {
        [self].into_prompt()
    }
}

impl IntoPrompt for String {
    fn into_prompt(self) -> Result<GetPromptResult, RequestError> {
        PromptMessage::user(self).into_prompt()
    }
}

impl IntoPrompt for &str {
    fn into_prompt(self) -> Result<GetPromptResult, RequestError> {
        PromptMessage::user(self).into_prompt()
    }
}

impl<T: IntoPrompt, E: Into<RequestError>> IntoPrompt for Result<T, E> {
    fn into_prompt(self) -> Result<GetPromptResult, RequestError> {
        self.map_err(Into::into)?.into_prompt()
    }
}

/// The prompts of a server. They can be added, removed and disabled while it runs;
/// subscribed clients are notified.
#[derive(Clone)]
pub struct Prompts {
    catalogue: Catalogue<Prompt>,
}

impl Prompts {
    pub(in crate::server) fn new(changes: &Changes) -> Self {
        Self {
            catalogue: Catalogue::new(List::Prompts, changes.clone()),
        }
    }

    /// Adds a prompt, or replaces the one with the same name.
    pub fn add(&self, prompt: Prompt) {
        self.catalogue.add(prompt);
    }

    /// Removes a prompt. Returns false if there was none.
    pub fn remove(&self, name: &str) -> bool {
        self.catalogue.remove(name)
    }

    /// Hides or shows a prompt. Returns false if there is none, or if nothing changed.
    pub fn set_enabled(&self, name: &str, enabled: bool) -> bool {
        self.catalogue.set_enabled(name, enabled)
    }

    /// The names of the enabled prompts.
    pub fn names(&self) -> Vec<String> {
        self.catalogue.names()
    }

    /// Notifies subscribed clients that the list has changed.
    pub fn changed(&self) {
        self.catalogue.changed();
    }

    pub(in crate::server) fn offer(&self) {
        self.catalogue.offer();
    }

    pub(in crate::server) fn is_offered(&self) -> bool {
        self.catalogue.is_offered()
    }

    pub(in crate::server) fn completes(&self) -> bool {
        let completes = |prompt: &Arc<Prompt>| (!prompt.completers.is_empty()).then_some(());
        self.catalogue.find(completes).is_some()
    }

    pub(in crate::server) fn list(
        &self,
        cx: &Context,
        page_size: Option<usize>,
    ) -> Result<ListPromptsResult, ErrorObject> {
        let describe = |prompt: &Prompt| prompt.description.clone();
        let (prompts, next) = self.catalogue.page(cx.params(), page_size, describe)?;
        let mut result = ListPromptsResult::new(prompts);
        result.next_cursor = next;
        Ok(result)
    }

    fn find(&self, name: &str) -> Result<Arc<Prompt>, ErrorObject> {
        self.catalogue.get(name).ok_or_else(|| {
            let problem = format!("unknown prompt: {name}");
            ErrorObject::new(error_code::INVALID_PARAMS, problem)
        })
    }

    pub(in crate::server) async fn get(
        &self,
        cx: &Context,
    ) -> Result<GetPromptResult, ErrorObject> {
        let params: GetPromptParams = cx.decode_params()?;
        let prompt = self.find(&params.name)?;
        let given = params.arguments.unwrap_or_default();
        let result = (prompt.handler)(cx.clone(), given).await;
        let mut result = result.map_err(|failure| failure.into_error(cx.era(), None))?;
        if result.description.is_none() {
            result
                .description
                .clone_from(&prompt.description.description);
        }
        Ok(result)
    }

    /// Completes an argument of a prompt.
    pub(in crate::server) async fn complete(
        &self,
        cx: &Context,
        name: &str,
        typed: CompletionRequest,
    ) -> Result<Completion, ErrorObject> {
        self.find(name)?.completers.complete(cx, typed).await
    }
}

impl std::fmt::Debug for Prompts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Prompts").field(&self.names()).finish()
    }
}
