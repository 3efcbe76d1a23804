//! Resources: what can be read, one by one or by a pattern.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::legacy::SubscribeParams;
use belay_protocol::types::{
    Annotations, CacheScope, Completion, EmptyResult, Era, Icon, ListResourceTemplatesResult,
    ListResourcesResult, ReadResourceParams, ReadResourceResult, Resource as Description,
    ResourceTemplate as TemplateDescription, error_code,
};
use serde::de::DeserializeOwned;

use super::caching::CacheHint;
use super::catalogue::{Catalogue, Offer};
use super::changes::{Changes, List};
use super::completion::{Completer, Completers, Typed};
use super::contents::{Contents, IntoContents};
use super::failure::{Failure, not_found};
use super::strings;
use super::uri_template::UriTemplate;
use crate::context::Context;
use crate::driver::BoxFuture;

/// Something that can be read.
///
/// ```
/// use belay::{Context, Failure, Resource};
///
/// let readme = Resource::text("file:///README.md", "readme", "# Orders").mime_type("text/markdown");
/// let config = Resource::new("file:///config", "config", |_cx: Context| async {
///     Ok::<_, Failure>(std::fs::read("/etc/orders.conf")?)
/// });
/// ```
///
/// A handler gives a `String` for text, a `Vec<u8>` for bytes, `ResourceContents` of its own or
/// several, an `Option` of one of these, which is not found if there is none, or a `Result` with a
/// [`Failure`].
#[derive(Clone)]
#[must_use = "a resource does nothing until a server offers it"]
pub struct Resource {
    description: Description,
    handler: Handler,
    hint: Option<CacheHint>,
}

type Handler = Arc<dyn Fn(Context) -> BoxFuture<Result<Contents, Failure>> + Send + Sync>;

impl Resource {
    /// A resource from its URI, its name and its handler.
    pub fn new<F, Fut, R>(uri: impl Into<String>, name: impl Into<String>, handler: F) -> Self
    where
        F: Fn(Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContents,
    {
        let handler: Handler = Arc::new(move |cx| {
            let running = handler(cx);
            Box::pin(async move { running.await.into_contents() })
        });
        Self {
            description: Description::new(uri, name),
            handler,
            hint: None,
        }
    }

    /// A text that stays as it is.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let size = text.len() as u64;
        let mut resource = Self::new(uri, name, move |_| std::future::ready(text.clone()));
        resource.description.size = Some(size);
        resource.mime_type("text/plain")
    }

    /// Bytes that stay as they are.
    pub fn bytes(
        uri: impl Into<String>,
        name: impl Into<String>,
        bytes: impl Into<Vec<u8>>,
    ) -> Self {
        let bytes: Vec<u8> = bytes.into();
        let size = bytes.len() as u64;
        let mut resource = Self::new(uri, name, move |_| std::future::ready(bytes.clone()));
        resource.description.size = Some(size);
        resource
    }

    /// What is in it, for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description.description = Some(description.into());
        self
    }

    /// Its name, for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.description.title = Some(title.into());
        self
    }

    /// Its type. What the handler gives is of that type, unless it says otherwise.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.description.mime_type = Some(mime_type.into());
        self
    }

    /// How many bytes it has.
    pub fn size(mut self, size: u64) -> Self {
        self.description.size = Some(size);
        self
    }

    /// What it looks like.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.description.icons.get_or_insert_default().push(icon);
        self
    }

    /// For whom it is, and how much it matters.
    pub fn annotations(mut self, change: impl FnOnce(&mut Annotations)) -> Self {
        let annotations = &mut self.description.annotations;
        change(annotations.get_or_insert_with(Annotations::new));
        self
    }

    /// How long what was read may be kept, and by whom. Not at all, unless it is said here or for
    /// the server.
    pub fn cache(mut self, span: Duration, scope: CacheScope) -> Self {
        self.hint = Some(CacheHint::new(span, scope));
        self
    }
}

impl Offer for Resource {
    fn key(&self) -> &str {
        &self.description.uri
    }
}

impl std::fmt::Debug for Resource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Resource").field(&self.key()).finish()
    }
}

/// Many things that can be read, by one pattern.
///
/// ```
/// use belay::{Context, ResourceTemplate};
///
/// #[derive(serde::Deserialize)]
/// struct Which { id: u64 }
///
/// let orders = ResourceTemplate::new(
///     "orders://{id}",
///     "orders",
///     |_cx: Context, which: Which| async move { format!("order {}", which.id) },
/// )
/// .mime_type("text/plain")
/// .complete("id", |_cx, typed| async move { [format!("{}1", typed.value)] });
/// ```
///
/// The variables of the pattern are the fields of what the handler takes; see
/// [`UriTemplate`](crate::UriTemplate) for patterns. What does not fit its type is not found.
#[derive(Clone)]
#[must_use = "a template does nothing until a server offers it"]
pub struct ResourceTemplate {
    description: TemplateDescription,
    template: UriTemplate,
    handler: TemplateHandler,
    completers: Completers,
    hint: Option<CacheHint>,
}

type TemplateHandler =
    Arc<dyn Fn(Context, Variables) -> BoxFuture<Result<Contents, Failure>> + Send + Sync>;

/// What stands in the places of a pattern's variables.
type Variables = Vec<(String, String)>;

impl ResourceTemplate {
    /// A template from its pattern, its name and its handler.
    ///
    /// # Panics
    ///
    /// If the pattern cannot be used: see [`UriTemplate`](crate::UriTemplate).
    #[track_caller]
    pub fn new<V, F, Fut, R>(pattern: &str, name: impl Into<String>, handler: F) -> Self
    where
        V: DeserializeOwned,
        F: Fn(Context, V) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = R> + Send + 'static,
        R: IntoContents,
    {
        let template: UriTemplate = match pattern.parse() {
            Ok(template) => template,
            Err(error) => panic!("{error}"),
        };
        let handler: TemplateHandler = Arc::new(move |cx, variables| {
            let named = variables.iter();
            let named = named.map(|(name, value)| (name.as_str(), value.as_str().into()));
            match strings::decode(named) {
                Ok(variables) => {
                    let running = handler(cx, variables);
                    Box::pin(async move { running.await.into_contents() })
                }
                Err(_) => Box::pin(std::future::ready(Err(Failure::not_found()))),
            }
        });
        Self {
            description: TemplateDescription::new(pattern, name),
            template,
            handler,
            completers: Completers::default(),
            hint: None,
        }
    }

    /// What is in them, for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description.description = Some(description.into());
        self
    }

    /// Its name, for people.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.description.title = Some(title.into());
        self
    }

    /// Their type, if all have the same.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.description.mime_type = Some(mime_type.into());
        self
    }

    /// What they look like.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.description.icons.get_or_insert_default().push(icon);
        self
    }

    /// For whom they are, and how much they matter.
    pub fn annotations(mut self, change: impl FnOnce(&mut Annotations)) -> Self {
        let annotations = &mut self.description.annotations;
        change(annotations.get_or_insert_with(Annotations::new));
        self
    }

    /// How long what was read may be kept, and by whom. Not at all, unless it is said here or for
    /// the server.
    pub fn cache(mut self, span: Duration, scope: CacheScope) -> Self {
        self.hint = Some(CacheHint::new(span, scope));
        self
    }

    /// Says what a variable could be, while somebody types it.
    pub fn complete<F, Fut, I>(mut self, variable: impl Into<String>, completer: F) -> Self
    where
        F: Fn(Context, Typed) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = I> + Send + 'static,
        I: IntoIterator,
        I::Item: Into<String>,
    {
        self.completers.add(variable, Completer::new(completer));
        self
    }
}

impl Offer for ResourceTemplate {
    fn key(&self) -> &str {
        self.template.as_str()
    }
}

impl std::fmt::Debug for ResourceTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ResourceTemplate")
            .field(&self.key())
            .finish()
    }
}

/// The resources of a server. They can be added, removed and disabled while it runs; whoever listens
/// is told.
#[derive(Clone)]
pub struct Resources {
    single: Catalogue<Resource>,
    templates: Catalogue<ResourceTemplate>,
    changes: Changes,
}

/// A session may subscribe to so many.
const SUBSCRIPTIONS: usize = 1024;

impl Resources {
    pub(super) fn new(changes: &Changes) -> Self {
        Self {
            single: Catalogue::new(List::Resources, changes.clone()),
            templates: Catalogue::new(List::Resources, changes.clone()),
            changes: changes.clone(),
        }
    }

    /// Adds a resource, or replaces the one of the same URI.
    pub fn add(&self, resource: Resource) {
        self.single.add(resource);
    }

    /// Adds a template, or replaces the one of the same pattern.
    pub fn add_template(&self, template: ResourceTemplate) {
        self.templates.add(template);
    }

    /// Removes a resource. False if there was none.
    pub fn remove(&self, uri: &str) -> bool {
        self.single.remove(uri)
    }

    /// Removes a template. False if there was none.
    pub fn remove_template(&self, pattern: &str) -> bool {
        self.templates.remove(pattern)
    }

    /// Takes a resource out of sight, or back. False if there is none, or nothing changed.
    pub fn set_enabled(&self, uri: &str, enabled: bool) -> bool {
        self.single.set_enabled(uri, enabled)
    }

    /// The URIs of the resources that are enabled.
    pub fn uris(&self) -> Vec<String> {
        self.single.names()
    }

    /// Tells everybody who wants to know that the list is not what it was.
    pub fn changed(&self) {
        self.single.changed();
    }

    /// Tells everybody who wants to know that a resource is not what it was.
    pub fn updated(&self, uri: &str) {
        self.changes.updated(uri);
    }

    pub(super) fn offer(&self) {
        self.single.offer();
    }

    pub(super) fn is_offered(&self) -> bool {
        self.single.is_offered() || self.templates.is_offered()
    }

    pub(super) fn completes(&self) -> bool {
        let completes = |template: &Arc<ResourceTemplate>| !template.completers.is_empty();
        self.templates
            .find(|template| completes(template).then_some(()))
            .is_some()
    }

    pub(super) fn list(
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

    pub(super) fn list_templates(
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

    /// What reads a URI, and of what type that is.
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

    pub(super) async fn read(&self, cx: &Context) -> Result<ReadResourceResult, ErrorObject> {
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

    /// Whether there may be something at a URI.
    fn knows(&self, uri: &str) -> bool {
        let fits = |template: &Arc<ResourceTemplate>| template.template.matches(uri).map(drop);
        self.single.get(uri).is_some() || self.templates.find(fits).is_some()
    }

    /// Legacy: tells a session of changes from now on.
    pub(super) fn subscribe(&self, cx: &Context) -> Result<EmptyResult, ErrorObject> {
        let params: SubscribeParams = cx.decode_params()?;
        if !self.knows(&params.uri) {
            return Err(not_found(Era::Legacy, Some(&params.uri)));
        }
        let standing = cx.standing();
        let subscribed = standing.is_none_or(|it| it.subscribe(&params.uri, SUBSCRIPTIONS));
        match subscribed {
            true => Ok(EmptyResult::new()),
            false => {
                let problem = format!("overloaded: {SUBSCRIPTIONS} subscriptions are enough");
                Err(ErrorObject::new(error_code::OVERLOADED, problem))
            }
        }
    }

    /// Legacy: and not any more.
    pub(super) fn unsubscribe(&self, cx: &Context) -> Result<EmptyResult, ErrorObject> {
        let params: SubscribeParams = cx.decode_params()?;
        if let Some(standing) = cx.standing() {
            standing.unsubscribe(&params.uri);
        }
        Ok(EmptyResult::new())
    }

    /// What a variable of a template could be.
    pub(super) async fn complete(
        &self,
        cx: &Context,
        pattern: &str,
        typed: Typed,
    ) -> Result<Completion, ErrorObject> {
        match self.templates.get(pattern) {
            Some(template) => template.completers.complete(cx, typed).await,
            // A URI without variables has nothing to complete.
            None if self.single.get(pattern).is_some() => Ok(Completion::new([])),
            None => Err(not_found(cx.era(), Some(pattern))),
        }
    }
}

/// A read that has begun.
struct Reader {
    running: BoxFuture<Result<Contents, Failure>>,
    mime_type: Option<String>,
    hint: Option<CacheHint>,
}

impl std::fmt::Debug for Resources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Resources").field(&self.uris()).finish()
    }
}
