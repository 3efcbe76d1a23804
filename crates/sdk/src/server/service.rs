//! Dispatch of requests by method, inside all layers.

use std::future::Future;
use std::sync::Arc;

use belay_protocol::jsonrpc::{ErrorObject, RawJson, ResultFrame};
use belay_protocol::types::legacy::{SetLevel, SetLevelParams, Subscribe, Unsubscribe};
use belay_protocol::types::modern::Listen;
use belay_protocol::types::{
    CallTool, Complete, EmptyResult, Era, GetPrompt, Implementation, ListPrompts,
    ListResourceTemplates, ListResources, ListTools, Meta, ReadResource, Request as _, ResultType,
    error_code, meta_key,
};

use super::changes::{Changes, LegacySession, subscriptions};
use super::connections::Connections;
use super::input_required::{self, RequestState, Rounds, Run};
use super::offers::caching::{CacheHint, Caching};
use super::offers::completion;
use super::reply::Reply;
use super::{Prompts, Resources, Tools};
use crate::context::Context;
use crate::driver::{Answer, Link, Payload};

/// The features of a server, and the dispatch of requests to them.
pub(crate) struct Service {
    pub(super) info: Implementation,
    /// The `_meta` of a modern result without its own: the server's info, encoded once.
    pub(super) signature: RawJson,
    pub(super) tools: Tools,
    pub(super) resources: Resources,
    pub(super) prompts: Prompts,
    pub(super) changes: Changes,
    pub(super) connections: Connections,
    pub(super) caching: Caching,
    pub(super) page_size: Option<usize>,
    /// The limit on the bytes of a received message.
    #[cfg(feature = "validate")]
    pub(super) received_bytes: usize,
    pub(super) state: RequestState,
}

impl Service {
    pub(super) async fn handle(&self, cx: &Context) -> Answer {
        let page = self.page_size;
        let (tools, resources, prompts) = (&self.tools, &self.resources, &self.prompts);
        match (cx.method(), cx.era()) {
            (ListTools::METHOD, _) if tools.is_offered() => self.listed(cx, tools.list(cx, page)?),
            (CallTool::METHOD, _) if tools.is_offered() => self.in_rounds(cx, tools.call(cx)).await,
            // Boxed one by one, so that the future of a tool call stays small.
            (ListResources::METHOD, _) if resources.is_offered() => {
                self.listed(cx, resources.list(cx, page)?)
            }
            (ListResourceTemplates::METHOD, _) if resources.is_offered() => {
                self.listed(cx, resources.list_templates(cx, page)?)
            }
            (ReadResource::METHOD, _) if resources.is_offered() => {
                let read = async { self.reply(cx, resources.read(cx).await?, &self.caching.reads) };
                Box::pin(self.in_rounds(cx, read)).await
            }
            (ListPrompts::METHOD, _) if prompts.is_offered() => {
                self.listed(cx, prompts.list(cx, page)?)
            }
            (GetPrompt::METHOD, _) if prompts.is_offered() => {
                let get = async { self.reply(cx, prompts.get(cx).await?, &CacheHint::none()) };
                Box::pin(self.in_rounds(cx, get)).await
            }
            (Complete::METHOD, _) if self.completes() => {
                let result = Box::pin(completion::complete(cx, prompts, resources)).await?;
                self.reply(cx, result, &CacheHint::none())
            }
            (Listen::METHOD, Era::Modern) => Box::pin(subscriptions::listen(self, cx)).await,
            (Subscribe::METHOD, Era::Legacy) if resources.is_offered() => {
                self.reply(cx, resources.subscribe(cx)?, &CacheHint::none())
            }
            (Unsubscribe::METHOD, Era::Legacy) if resources.is_offered() => {
                self.reply(cx, resources.unsubscribe(cx)?, &CacheHint::none())
            }
            (SetLevel::METHOD, Era::Legacy) => self.reply(cx, set_level(cx)?, &CacheHint::none()),
            (other, _) => {
                let problem = format!("no such method: {other}");
                Err(ErrorObject::new(error_code::METHOD_NOT_FOUND, problem))
            }
        }
    }

    pub(super) fn completes(&self) -> bool {
        self.prompts.completes() || self.resources.completes()
    }

    /// The settings of a legacy client.
    pub(crate) fn legacy_session(&self, link: &Arc<Link>) -> Option<Arc<LegacySession>> {
        self.connections.legacy_session(link)
    }

    /// Runs a handler that may ask its client questions.
    async fn in_rounds(&self, cx: &Context, handler: impl Future<Output = Answer>) -> Answer {
        cx.begin_rounds(Rounds::brought_by(cx, &self.state)?);
        match input_required::run(cx, &self.state, handler).await? {
            Run::Done(answer) => Ok(answer),
            Run::InputRequired(result) => self.reply(cx, *result, &CacheHint::none()),
        }
    }

    fn listed(&self, cx: &Context, result: impl Reply) -> Answer {
        self.reply(cx, result, &self.caching.lists)
    }

    /// Adapts a result to the era, and encodes it.
    pub(super) fn reply<R: Reply>(&self, cx: &Context, mut result: R, hint: &CacheHint) -> Answer {
        let mut signature = None;
        match cx.era() {
            Era::Legacy => result.make_legacy(),
            Era::Modern => {
                let marks = result.marks();
                marks.result_type.get_or_insert(ResultType::Complete);
                if let Some((millis, scope)) = marks.hint {
                    hint.mark(millis, scope);
                }
                match marks.meta {
                    None => signature = Some(("_meta", &self.signature)),
                    Some(meta) => self.sign(meta),
                }
            }
        }
        let frame = ResultFrame::write(cx.id(), &result, signature);
        frame.map(Payload::Frame).map_err(|error| {
            let problem = format!("the result cannot be written as JSON: {error}");
            ErrorObject::new(error_code::INTERNAL_ERROR, problem)
        })
    }

    /// Adds the server's info.
    fn sign(&self, meta: &mut Meta) {
        // The server's own name can always be encoded.
        let _ = meta.set(meta_key::SERVER_INFO, &self.info);
    }
}

/// Handles `logging/setLevel`. Legacy only.
fn set_level(cx: &Context) -> Result<EmptyResult, ErrorObject> {
    let params: SetLevelParams = cx.decode_params()?;
    if let Some(session) = cx.legacy_session() {
        session.set_level(params.level);
    }
    Ok(EmptyResult::new())
}
