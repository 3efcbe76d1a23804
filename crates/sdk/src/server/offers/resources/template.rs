//! Resource templates: many resources with one URI template.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::types::{Annotations, CacheScope, Icon, ResourceTemplateDefinition};
use serde::de::DeserializeOwned;

use super::Running;
use super::contents::IntoContents;
use super::uri_template::UriTemplate;
use crate::context::Context;
use crate::server::offers::caching::CacheHint;
use crate::server::offers::catalogue::Offer;
use crate::server::offers::completion::{Completer, Completers, CompletionRequest};
use crate::server::offers::request_error::RequestError;
use crate::server::offers::text_arguments;

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
/// [`UriTemplate`](crate::server::UriTemplate) for patterns. What does not fit its type is not found.
#[derive(Clone)]
#[must_use = "a template does nothing until a server offers it"]
pub struct ResourceTemplate {
    pub(super) description: ResourceTemplateDefinition,
    pub(super) template: UriTemplate,
    pub(super) handler: Handler,
    pub(super) completers: Completers,
    pub(super) hint: Option<CacheHint>,
}

type Handler = Arc<dyn Fn(Context, Variables) -> Running + Send + Sync>;

/// The names and values of the variables.
pub(super) type Variables = Vec<(String, String)>;

impl ResourceTemplate {
    /// A template from its pattern, its name and its handler.
    ///
    /// # Panics
    ///
    /// If the pattern cannot be used: see [`UriTemplate`](crate::server::UriTemplate).
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
        let handler: Handler = Arc::new(move |cx, variables| {
            let named = variables.iter();
            let named = named.map(|(name, value)| (name.as_str(), value.as_str().into()));
            match text_arguments::decode(named) {
                Ok(variables) => {
                    let running = handler(cx, variables);
                    Box::pin(async move { running.await.into_contents() })
                }
                Err(_) => Box::pin(std::future::ready(Err(RequestError::not_found()))),
            }
        });
        Self {
            description: ResourceTemplateDefinition::new(pattern, name),
            template,
            handler,
            completers: Completers::default(),
            hint: None,
        }
    }

    /// Sets the description, for the model.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description.description = Some(description.into());
        self
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.description.title = Some(title.into());
        self
    }

    /// Sets the MIME type, if all resources have the same.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.description.mime_type = Some(mime_type.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.description.icons.get_or_insert_default().push(icon);
        self
    }

    /// Changes the annotations, such as audience and priority.
    pub fn annotations(mut self, change: impl FnOnce(&mut Annotations)) -> Self {
        let annotations = &mut self.description.annotations;
        change(annotations.get_or_insert_with(Annotations::new));
        self
    }

    /// Sets how long the contents may be cached, and in which scope. The default is the
    /// server's, which is not at all.
    pub fn cache(mut self, span: Duration, scope: CacheScope) -> Self {
        self.hint = Some(CacheHint::new(span, scope));
        self
    }

    /// Registers a completer, which suggests values for a variable while the user types.
    pub fn complete<F, Fut, I>(mut self, variable: impl Into<String>, completer: F) -> Self
    where
        F: Fn(Context, CompletionRequest) -> Fut + Send + Sync + 'static,
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
