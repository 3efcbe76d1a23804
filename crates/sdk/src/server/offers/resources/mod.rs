//! Resources: data that clients can read, by a fixed URI or by a URI template.

use std::sync::Arc;

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::legacy::SubscribeParams;
use belay_protocol::types::{
    Completion, EmptyResult, Era, ListResourceTemplatesResult, ListResourcesResult,
    ReadResourceParams, ReadResourceResult, error_code,
};

mod contents;
mod resource;
mod template;
mod uri_template;

pub use contents::{Contents, IntoContents};
pub use resource::Resource;
pub use template::ResourceTemplate;
pub use uri_template::{UriTemplate, UriTemplateError};

use super::caching::CacheHint;
use super::catalogue::Catalogue;
use super::completion::CompletionRequest;
use super::request_error::{RequestError, not_found};
use crate::context::Context;
use crate::driver::BoxFuture;
use crate::server::changes::Full;
use crate::server::changes::{Changes, List};
use template::Variables;

/// A running handler.
type Running = BoxFuture<Result<Contents, RequestError>>;

/// The resources of a server. They can be added, removed and disabled while it runs;
/// subscribed clients are notified.
#[derive(Clone)]
pub struct Resources {
    single: Catalogue<Resource>,
    templates: Catalogue<ResourceTemplate>,
    changes: Changes,
}

/// The most resources that a legacy session may subscribe to.
const SUBSCRIPTIONS: usize = 1024;

impl Resources {
    pub(in crate::server) fn new(changes: &Changes) -> Self {
        Self {
            single: Catalogue::new(List::Resources, changes.clone()),
            templates: Catalogue::new(List::Resources, changes.clone()),
            changes: changes.clone(),
        }
    }

    /// Adds a resource, or replaces the one with the same URI.
    pub fn add(&self, resource: Resource) {
        self.single.add(resource);
    }

    /// Adds a template, or replaces the one with the same pattern.
    pub fn add_template(&self, template: ResourceTemplate) {
        self.templates.add(template);
    }

    /// Removes a resource. Returns false if there was none.
    pub fn remove(&self, uri: &str) -> bool {
        self.single.remove(uri)
    }

    /// Removes a template. Returns false if there was none.
    pub fn remove_template(&self, pattern: &str) -> bool {
        self.templates.remove(pattern)
    }

    /// Hides or shows a resource. Returns false if there is none, or if nothing changed.
    pub fn set_enabled(&self, uri: &str, enabled: bool) -> bool {
        self.single.set_enabled(uri, enabled)
    }

    /// The URIs of the enabled resources.
    pub fn uris(&self) -> Vec<String> {
        self.single.names()
    }

    /// Notifies subscribed clients that the list has changed.
    pub fn changed(&self) {
        self.single.changed();
    }

    /// Notifies subscribed clients that a resource has changed.
    pub fn updated(&self, uri: &str) {
        self.changes.updated(uri);
    }

    pub(in crate::server) fn offer(&self) {
        self.single.offer();
    }

    pub(in crate::server) fn is_offered(&self) -> bool {
        self.single.is_offered() || self.templates.is_offered()
    }

    pub(in crate::server) fn completes(&self) -> bool {
        let completes = |template: &Arc<ResourceTemplate>| !template.completers.is_empty();
        self.templates
            .find(|template| completes(template).then_some(()))
            .is_some()
    }

    pub(in crate::server) fn list(
        &self,
        cx: &Context,
        page_size: Option<usize>,
    ) -> Result<ListResourcesResult, ErrorObject> {
        let describe = |resource: &Resource| resource.description.clone();
        let (resources, next) = self.single.page(cx.params(), page_size, describe)?;
        let mut result = ListResourcesResult::new(resources);
        result.next_cursor = next;
        Ok(result)
    }

    pub(in crate::server) fn list_templates(
        &self,
        cx: &Context,
        page_size: Option<usize>,
    ) -> Result<ListResourceTemplatesResult, ErrorObject> {
        let describe = |template: &ResourceTemplate| template.description.clone();
        let (templates, next) = self.templates.page(cx.params(), page_size, describe)?;
        let mut result = ListResourceTemplatesResult::new(templates);
        result.next_cursor = next;
        Ok(result)
    }

    /// The handler for a URI, started, with the type and the cache hint of the resource.
    fn reader(&self, cx: &Context, uri: &str) -> Option<Reader> {
        if let Some(resource) = self.single.get(uri) {
            return Some(Reader {
                running: (resource.handler)(cx.clone()),
                mime_type: resource.description.mime_type.clone(),
                hint: resource.hint.clone(),
            });
        }
        let (template, variables) = self.templates.find(|template| {
            let found = template.template.matches(uri)?;
            let owned = |(name, value): (&str, std::borrow::Cow<'_, str>)| {
                (name.to_owned(), value.into_owned())
            };
            let variables: Variables = found.into_iter().map(owned).collect();
            Some((template.clone(), variables))
        })?;
        Some(Reader {
            running: (template.handler)(cx.clone(), variables),
            mime_type: template.description.mime_type.clone(),
            hint: template.hint.clone(),
        })
    }

    pub(in crate::server) async fn read(
        &self,
        cx: &Context,
    ) -> Result<ReadResourceResult, ErrorObject> {
        let params: ReadResourceParams = cx.decode_params()?;
        let uri = params.uri;
        let reader = self.reader(cx, &uri);
        let Some(reader) = reader else {
            return Err(not_found(cx.era(), Some(&uri)));
        };
        let contents = reader.running.await;
        let contents = contents.map_err(|failure| failure.into_error(cx.era(), Some(&uri)))?;
        let contents = contents.of(&uri, reader.mime_type.as_deref());
        let mut result = ReadResourceResult::new(contents);
        if let Some(hint) = &reader.hint {
            hint.mark(&mut result.ttl_ms, &mut result.cache_scope);
        }
        Ok(result)
    }

    /// Whether a resource or a template has this URI.
    fn knows(&self, uri: &str) -> bool {
        let fits = |template: &Arc<ResourceTemplate>| template.template.matches(uri).map(drop);
        self.single.get(uri).is_some() || self.templates.find(fits).is_some()
    }

    /// Subscribes a session to a resource. Legacy only.
    pub(in crate::server) fn subscribe(&self, cx: &Context) -> Result<EmptyResult, ErrorObject> {
        let params: SubscribeParams = cx.decode_params()?;
        if !self.knows(&params.uri) {
            return Err(not_found(Era::Legacy, Some(&params.uri)));
        }
        let session = cx.legacy_session();
        let subscribed = session.map_or(Ok(()), |it| {
            it.subscribe(&params.uri, SUBSCRIPTIONS, cx.peer())
        });
        subscribed.map_err(|full| {
            let problem = match full {
                Full::Many => format!("overloaded: {SUBSCRIPTIONS} subscriptions are enough"),
                Full::Long => "overloaded: too much is remembered; send it again later".into(),
            };
            ErrorObject::new(error_code::OVERLOADED, problem)
        })?;
        Ok(EmptyResult::new())
    }

    /// Ends a subscription. Legacy only.
    pub(in crate::server) fn unsubscribe(&self, cx: &Context) -> Result<EmptyResult, ErrorObject> {
        let params: SubscribeParams = cx.decode_params()?;
        if let Some(session) = cx.legacy_session() {
            session.unsubscribe(&params.uri);
        }
        Ok(EmptyResult::new())
    }

    /// Completes a variable of a template.
    pub(in crate::server) async fn complete(
        &self,
        cx: &Context,
        pattern: &str,
        typed: CompletionRequest,
    ) -> Result<Completion, ErrorObject> {
        match self.templates.get(pattern) {
            Some(template) => template.completers.complete(cx, typed).await,
            // A URI without variables has nothing to complete.
            None if self.single.get(pattern).is_some() => Ok(Completion::new([])),
            None => Err(not_found(cx.era(), Some(pattern))),
        }
    }
}

/// A started handler, with what the result needs from the resource's description.
struct Reader {
    running: Running,
    mime_type: Option<String>,
    hint: Option<CacheHint>,
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Resources").field(&self.uris()).finish()
    }
}
