//! A single resource, with a fixed URI.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::types::{Annotations, CacheScope, Icon, ResourceDefinition};

use super::Running;
use super::contents::IntoContents;
use crate::context::Context;
use crate::server::offers::caching::CacheHint;
use crate::server::offers::catalogue::Offer;

/// A resource: data that clients can read at a fixed URI.
///
/// ```
/// use belay::{Context, RequestError, Resource};
///
/// let readme = Resource::text("file:///README.md", "readme", "# Orders").mime_type("text/markdown");
/// let config = Resource::new("file:///config", "config", |_cx: Context| async {
///     Ok::<_, RequestError>(std::fs::read("/etc/orders.conf")?)
/// });
/// ```
///
/// A handler returns a `String` for text, a `Vec<u8>` for bytes, one or several `ResourceContents`,
/// an `Option` of one of these, where `None` means not found, or a `Result` with a
/// [`RequestError`](crate::RequestError).
#[derive(Clone)]
#[must_use = "a resource does nothing until a server offers it"]
pub struct Resource {
    pub(super) description: ResourceDefinition,
    pub(super) handler: Handler,
    pub(super) hint: Option<CacheHint>,
}

type Handler = Arc<dyn Fn(Context) -> Running + Send + Sync>;

impl Resource {
    /// Makes a resource from its URI, its name and its handler.
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
            description: ResourceDefinition::new(uri, name),
            handler,
            hint: None,
        }
    }

    /// A resource with a fixed text.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> Self {
        let text: String = text.into();
        let size = text.len() as u64;
        let mut resource = Self::new(uri, name, move |_| std::future::ready(text.clone()));
        resource.description.size = Some(size);
        resource.mime_type("text/plain")
    }

    /// A resource with fixed bytes.
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

    /// Sets the MIME type. Contents of the handler without a type of their own get this one.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.description.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the size in bytes.
    pub fn size(mut self, size: u64) -> Self {
        self.description.size = Some(size);
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
