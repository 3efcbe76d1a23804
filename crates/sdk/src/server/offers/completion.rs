//! Completion of arguments: suggestions while the user types.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::{CompleteParams, CompleteResult, Completion, Reference, error_code};

use super::{Prompts, Resources};
use crate::context::Context;
use crate::driver::BoxFuture;

/// An argument that is being completed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CompletionRequest {
    /// The name of the argument.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
    /// The values of other arguments that are already chosen.
    pub settled: BTreeMap<String, String>,
}

/// A function that suggests values for an argument.
#[derive(Clone)]
pub(in crate::server) struct Completer(
    Arc<dyn Fn(Context, CompletionRequest) -> BoxFuture<Completion> + Send + Sync>,
);

impl Completer {
    pub(in crate::server) fn new<F, Fut, I>(completer: F) -> Self
    where
        F: Fn(Context, CompletionRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = I> + Send + 'static,
        I: IntoIterator,
        I::Item: Into<String>,
    {
        Self(Arc::new(move |cx, typed| {
            let running = completer(cx, typed);
            Box::pin(async move { Completion::of(running.await) })
        }))
    }
}

/// The completers of a prompt or a template, by argument.
#[derive(Clone, Default)]
pub(in crate::server) struct Completers(BTreeMap<String, Completer>);

impl Completers {
    pub(in crate::server) fn add(&mut self, argument: impl Into<String>, completer: Completer) {
        self.0.insert(argument.into(), completer);
    }

    pub(in crate::server) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Suggestions for an argument. Without a completer there are none.
    pub(in crate::server) async fn complete(
        &self,
        cx: &Context,
        typed: CompletionRequest,
    ) -> Result<Completion, ErrorObject> {
        match self.0.get(&typed.argument) {
            Some(completer) => Ok((completer.0)(cx.clone(), typed).await),
            None => Ok(Completion::new([])),
        }
    }
}

/// Handles `completion/complete`.
pub(in crate::server) async fn complete(
    cx: &Context,
    prompts: &Prompts,
    resources: &Resources,
) -> Result<CompleteResult, ErrorObject> {
    let params: CompleteParams = cx.decode_params()?;
    let context = params.context;
    let typed = CompletionRequest {
        argument: params.argument.name,
        value: params.argument.value,
        settled: context.and_then(|it| it.arguments).unwrap_or_default(),
    };
    let completion = match params.reference {
        Reference::Prompt(prompt) => prompts.complete(cx, &prompt.name, typed).await?,
        Reference::Resource(resource) => resources.complete(cx, &resource.uri, typed).await?,
        _ => {
            let problem = "`ref`: `type` must be `ref/prompt` or `ref/resource`";
            return Err(ErrorObject::new(error_code::INVALID_PARAMS, problem));
        }
    };
    Ok(CompleteResult::new(completion))
}
