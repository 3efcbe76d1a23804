//! The handlers for a server's requests to the client: one set for both eras.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::{
    CreateMessage, CreateMessageParams, CreateMessageResult, Elicit, ElicitFormParams,
    ElicitParams, ElicitResult, ElicitUrlParams, ElicitationCapability, Extra, ListCapability,
    ListRoots, ListRootsParams, ListRootsResult, Request as Typed, Root, SamplingCapability,
    error_code,
};
use serde_json::Value;

use super::ClientBuilder;
use crate::driver::{BoxFuture, fence};

type InputHandler<P, R> = Arc<dyn Fn(P) -> BoxFuture<Result<R, ErrorObject>> + Send + Sync>;
type Raw = InputHandler<Value, Value>;

/// The handlers, by method and mode.
#[derive(Clone, Default)]
pub(crate) struct InputHandlers {
    raw: HashMap<&'static str, Raw>,
    form: Option<InputHandler<ElicitFormParams, ElicitResult>>,
    url: Option<InputHandler<ElicitUrlParams, ElicitResult>>,
    /// The client declared that its model accepts tools.
    pub(super) model_takes_tools: bool,
}

impl InputHandlers {
    pub(crate) fn is_empty(&self) -> bool {
        self.raw.is_empty() && self.form.is_none() && self.url.is_none()
    }

    /// Runs the handler for a request, or returns `None` if there is none. Dropping
    /// the future stops the handler.
    pub(crate) fn serve(
        &self,
        method: &str,
        params: Value,
    ) -> Option<BoxFuture<Result<Value, ErrorObject>>> {
        if method == Elicit::METHOD {
            return self.elicit(params);
        }
        let handler = self.raw.get(method)?.clone();
        let with_tools = params.get("tools").is_some() || params.get("toolChoice").is_some();
        if method == CreateMessage::METHOD && with_tools && !self.model_takes_tools {
            return Some(refused("this client's model takes no tools"));
        }
        Some(fenced(move || handler(params)))
    }

    fn elicit(&self, params: Value) -> Option<BoxFuture<Result<Value, ErrorObject>>> {
        if self.form.is_none() && self.url.is_none() {
            return None;
        }
        let params = match decode(params) {
            Ok(params) => params,
            Err(error) => return Some(Box::pin(std::future::ready(Err(error)))),
        };
        match (params, &self.form, &self.url) {
            (ElicitParams::Form(params), Some(form), _) => {
                let form = form.clone();
                let asked = serde_json::to_value(&params.requested_schema).unwrap_or_default();
                let answered = move || -> BoxFuture<_> {
                    Box::pin(async move {
                        let answer = form(params).await?;
                        check_form(&asked, &answer)?;
                        Ok(answer)
                    })
                };
                Some(fenced(move || encoded(answered())))
            }
            (ElicitParams::Url(params), _, Some(url)) => {
                let url = url.clone();
                Some(fenced(move || encoded(url(params))))
            }
            _ => Some(refused("this client cannot be asked in this mode")),
        }
    }

    fn add<R: Typed>(&mut self, handler: InputHandler<R::Params, R::Result>)
    where
        R::Params: 'static,
        R::Result: 'static,
    {
        let raw: Raw = Arc::new(move |params| match decode(params) {
            Ok(params) => encoded(handler(params)),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        });
        self.raw.insert(R::METHOD, raw);
    }
}

/// An answer that does not match its form is not sent, because the server could not use it.
fn check_form(asked: &Value, answer: &ElicitResult) -> Result<(), ErrorObject> {
    let Err(problem) = crate::filled::check(asked, answer) else {
        return Ok(());
    };
    tracing::error!(problem, "an answer does not fit its form");
    let problem = format!("the answer does not fit the form: {problem}");
    Err(ErrorObject::new(error_code::INTERNAL_ERROR, problem))
}

fn refused(problem: &str) -> BoxFuture<Result<Value, ErrorObject>> {
    let error = ErrorObject::new(error_code::INVALID_PARAMS, problem);
    Box::pin(std::future::ready(Err(error)))
}

fn decode<P: serde::de::DeserializeOwned>(params: Value) -> Result<P, ErrorObject> {
    let params = match params {
        Value::Null => Value::Object(Extra::new()),
        params => params,
    };
    serde_json::from_value(params)
        .map_err(|error| ErrorObject::new(error_code::INVALID_PARAMS, error.to_string()))
}

fn encoded<R: serde::Serialize + 'static>(
    running: BoxFuture<Result<R, ErrorObject>>,
) -> BoxFuture<Result<Value, ErrorObject>> {
    Box::pin(async move {
        serde_json::to_value(running.await?)
            .map_err(|error| ErrorObject::new(error_code::INTERNAL_ERROR, error.to_string()))
    })
}

/// A handler that panics fails its own request only (**panic-fence**).
fn fenced(
    run: impl FnOnce() -> BoxFuture<Result<Value, ErrorObject>> + Send + 'static,
) -> BoxFuture<Result<Value, ErrorObject>> {
    Box::pin(async move {
        fence(run).await.unwrap_or_else(|_| {
            tracing::error!("a handler for a server's question panicked (panic-fence)");
            let problem = "internal error";
            Err(ErrorObject::new(error_code::INTERNAL_ERROR, problem))
        })
    })
}

/// Handlers for requests of the server. Each declares the capability that belongs to it.
impl ClientBuilder {
    /// Registers a handler that asks the user to fill in a form. It is dropped when the server no
    /// longer waits for the answer.
    ///
    /// ```
    /// use belay::types::ElicitResult;
    ///
    /// let builder = belay::Client::builder("editor", "1.0.0").on_elicit(|form| async move {
    ///     // Show `form.message` and the fields of `form.requested_schema`, and then:
    ///     Ok(ElicitResult::accept(form.requested_schema.defaults()))
    /// });
    /// ```
    pub fn on_elicit<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(ElicitFormParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, ErrorObject>> + Send + 'static,
    {
        self.input_handlers.form = Some(Arc::new(move |params| Box::pin(handler(params))));
        let elicitation = &mut self.capabilities.elicitation;
        let elicitation = elicitation.get_or_insert_with(ElicitationCapability::new);
        elicitation.form.get_or_insert_default();
        self
    }

    /// Registers a handler that asks the user to visit a URL. Show the user the full URL before
    /// they consent, and do not open or fetch it before that.
    pub fn on_elicit_url<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(ElicitUrlParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<ElicitResult, ErrorObject>> + Send + 'static,
    {
        self.input_handlers.url = Some(Arc::new(move |params| Box::pin(handler(params))));
        let elicitation = &mut self.capabilities.elicitation;
        let elicitation = elicitation.get_or_insert_with(ElicitationCapability::new);
        elicitation.url.get_or_insert_default();
        self
    }

    /// Registers a handler that samples a language model for the server. The user should be able to
    /// see the request and to deny it. If the model accepts tools, declare that with
    /// [`ClientBuilder::capabilities`].
    pub fn on_sample<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn(CreateMessageParams) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<CreateMessageResult, ErrorObject>> + Send + 'static,
    {
        let handler: InputHandler<CreateMessageParams, _> =
            Arc::new(move |params| match params.check_tool_use() {
                Ok(()) => Box::pin(handler(params)),
                Err(problem) => {
                    let error = ErrorObject::new(error_code::INVALID_PARAMS, problem);
                    Box::pin(std::future::ready(Err(error)))
                }
            });
        self.input_handlers.add::<CreateMessage>(handler);
        let sampling = &mut self.capabilities.sampling;
        sampling.get_or_insert_with(SamplingCapability::new);
        self
    }

    /// Sets the roots: the folders that the server should work in.
    pub fn roots(self, roots: impl IntoIterator<Item = Root>) -> Self {
        let roots: Vec<Root> = roots.into_iter().collect();
        self.on_roots(move || std::future::ready(roots.clone()))
    }

    /// Registers a handler that returns the current roots, for roots that change. See
    /// [`Client::roots_changed`](crate::Client::roots_changed).
    pub fn on_roots<F, Fut>(mut self, handler: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Vec<Root>> + Send + 'static,
    {
        let handler: InputHandler<ListRootsParams, ListRootsResult> = Arc::new(move |_| {
            let roots = handler();
            Box::pin(async move { Ok(ListRootsResult::new(roots.await)) })
        });
        self.input_handlers.add::<ListRoots>(handler);
        let roots = self
            .capabilities
            .roots
            .get_or_insert_with(ListCapability::new);
        roots.list_changed = Some(true);
        self
    }
}
