//! The builder of a server, and where it serves.

use std::sync::Arc;

use belay_protocol::engine::{Config, Deadlines, Identity, Limits, Timeouts, Wire};
use belay_protocol::jsonrpc::{Notification, RawJson};
use belay_protocol::types::{
    Extra, Icon, Implementation, ListCapability, Meta, ResourcesCapability, ServerCapabilities,
    meta_key,
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::context::Context;
use crate::driver::{
    Answer, App, BoxFuture, Ends, Link, Notified, Payload, Surroundings, launch, pass_on,
};

use super::changes::Changes;
use super::connections::{Connections, ServerStats};
use super::input_required::RequestState;
use super::layer::{Next, ServerLayer};
use super::offers::{Caching, Prompt, Prompts, Resource, ResourceTemplate, Resources, Tool, Tools};
use super::{ServerConnection, Service};

/// An MCP server: its tools, resources and prompts, and how it serves connections.
///
/// ```
/// use belay::{Context, Server, Tool};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Echo { text: String }
///
/// let server = Server::new("example", "1.0.0")
///     .tool(Tool::new("echo", |_cx: Context, echo: Echo| async move { echo.text }));
/// ```
#[must_use = "a server does nothing until it serves"]
pub struct Server {
    info: Implementation,
    instructions: Option<String>,
    tools: Tools,
    resources: Resources,
    prompts: Prompts,
    extensions: Extra,
    changes: Changes,
    caching: Caching,
    page_size: Option<usize>,
    state: RequestState,
    layers: Vec<Arc<dyn ServerLayer>>,
    limits: Limits,
    deadlines: Deadlines,
    timeouts: Timeouts,
    connections: Connections,
    notified: Option<Notified>,
}

impl Server {
    /// A server without features. The name and the version introduce it to clients.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Implementation::new(name, version);
        let defaults = Config::server(info.clone(), ServerCapabilities::new(), Wire::Pipe);
        let connections = Connections::default();
        let changes = Changes::new(connections.clone());
        Self {
            info,
            instructions: None,
            tools: Tools::new(&changes),
            resources: Resources::new(&changes),
            prompts: Prompts::new(&changes),
            extensions: Extra::new(),
            changes,
            caching: Caching::default(),
            page_size: None,
            state: RequestState::default(),
            layers: Vec::new(),
            limits: defaults.limits,
            deadlines: defaults.deadlines,
            timeouts: defaults.timeouts,
            connections,
            notified: None,
        }
    }

    /// Sets instructions for the model on how to use this server.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Adds a tool, or replaces the one with the same name.
    pub fn tool(self, tool: Tool) -> Self {
        self.tools.add(tool);
        self
    }

    /// Adds a resource, or replaces the one with the same URI.
    pub fn resource(self, resource: Resource) -> Self {
        self.resources.add(resource);
        self
    }

    /// Adds a resource template, or replaces the one with the same pattern.
    pub fn resource_template(self, template: ResourceTemplate) -> Self {
        self.resources.add_template(template);
        self
    }

    /// Adds a prompt, or replaces the one with the same name.
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.prompts.add(prompt);
        self
    }

    /// Sets the display name.
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.info.title = Some(title.into());
        self
    }

    /// Sets a description of the server.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.info.description = Some(description.into());
        self
    }

    /// Adds an icon.
    pub fn icon(mut self, icon: Icon) -> Self {
        self.info.icons.get_or_insert_default().push(icon);
        self
    }

    /// Sets the URL of a website about the server.
    pub fn website(mut self, url: impl Into<String>) -> Self {
        self.info.website_url = Some(url.into());
        self
    }

    /// Declares an extension of the protocol by its identifier.
    ///
    /// # Panics
    ///
    /// If the identifier is invalid. A valid one has a prefix, as in `com.example/receipts`.
    #[track_caller]
    pub fn extension(mut self, identifier: impl Into<String>, settings: Extra) -> Self {
        let identifier = crate::extension(identifier.into());
        self.extensions.insert(identifier, settings.into());
        self
    }

    /// Sets the number of entries in a page of a list. By default a list has a single page.
    pub fn page_size(mut self, entries: usize) -> Self {
        self.page_size = Some(entries);
        self
    }

    /// Changes the cache hints in results.
    pub fn caching(mut self, change: impl FnOnce(&mut Caching)) -> Self {
        change(&mut self.caching);
        self
    }

    #[cfg(feature = "sealed")]
    /// Changes how the state of a multi round-trip request is encrypted.
    pub fn request_state(mut self, change: impl FnOnce(&mut RequestState)) -> Self {
        change(&mut self.state);
        self
    }

    /// Registers a callback for notifications from clients: in the legacy era that the roots have
    /// changed, or those of an extension. The callback does not learn which client sent it. On a
    /// stream it is called in order; on HTTP as notifications arrive, and possibly concurrently. It
    /// must not block, because the client waits for it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU64, Ordering};
    ///
    /// let changes = Arc::new(AtomicU64::new(0));
    /// let count = changes.clone();
    /// let server = belay::Server::new("example", "1.0.0").on_notification(move |told| {
    ///     if told.method == "notifications/roots/list_changed" {
    ///         count.fetch_add(1, Ordering::Relaxed);
    ///     }
    /// });
    /// ```
    pub fn on_notification(mut self, told: impl Fn(Notification) + Send + Sync + 'static) -> Self {
        self.notified = Some(Arc::new(told));
        self
    }

    /// Adds a layer around every request. The first layer added is the outermost.
    pub fn layer(mut self, layer: impl ServerLayer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Changes the limits on message sizes and concurrency.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// Sets the default deadlines of requests to clients that set none of their own
    /// (**deadline-covers-all**).
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// Changes the time spans of the server itself, such as grace and drain.
    pub fn timeouts(mut self, change: impl FnOnce(&mut Timeouts)) -> Self {
        change(&mut self.timeouts);
        self
    }

    /// Counts for all connections of this server.
    pub fn stats(&self) -> ServerStats {
        ServerStats::new(&self.connections)
    }

    #[cfg(feature = "http")]
    pub(crate) fn connections(&self) -> Connections {
        self.connections.clone()
    }

    /// The registry of tools, which can be changed while the server runs. Declares the feature.
    pub fn tools(&self) -> Tools {
        self.tools.offer();
        self.tools.clone()
    }

    /// The registry of tools, without declaring the feature.
    #[cfg(feature = "http")]
    pub(crate) fn known_tools(&self) -> Tools {
        self.tools.clone()
    }

    /// The registry of resources, which can be changed while the server runs. Declares the feature.
    pub fn resources(&self) -> Resources {
        self.resources.offer();
        self.resources.clone()
    }

    /// The registry of prompts, which can be changed while the server runs. Declares the feature.
    pub fn prompts(&self) -> Prompts {
        self.prompts.offer();
        self.prompts.clone()
    }

    /// Serves one connection over any pair of byte streams. Signals are left to the caller.
    ///
    /// The writer's poll methods must not block, nor call back into this connection: they run under
    /// its lock, so that frames that are not written yet can still be withdrawn.
    ///
    /// Must be called within a tokio runtime. The connection is served in the background. The
    /// returned future waits for its end, and ends the connection when it is dropped.
    pub fn serve<R, W>(&self, reader: R, writer: W) -> ServerConnection
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        self.serve_watched(reader, writer, None)
    }

    /// Like `serve`, with a future that reports that the writing peer is gone before all was read.
    pub(crate) fn serve_watched<R, W>(
        &self,
        reader: R,
        writer: W,
        hung_up: Option<BoxFuture<()>>,
    ) -> ServerConnection
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let surroundings = Surroundings {
            stats: self.connections.stats(),
            ..Surroundings::default()
        };
        let link = Link::within(self.config(Wire::Pipe), surroundings);
        let ends = Ends {
            reader,
            writer,
            exit: None,
            hung_up,
            keep: Some(Box::new(self.connections.enter(&link))),
            process: None,
            tap: None,
        };
        let driver = launch(&link, ends, self.app());
        ServerConnection { link, driver }
    }

    /// The handler of a link's requests.
    pub(crate) fn app(&self) -> Arc<dyn App> {
        let mut meta = Meta::default();
        // The server's own name can always be encoded.
        let _ = meta.set(meta_key::SERVER_INFO, &self.info);
        let service = Service {
            signature: RawJson::encode(&meta).unwrap_or(RawJson::empty_object()),
            info: self.info.clone(),
            tools: self.tools.clone(),
            resources: self.resources.clone(),
            prompts: self.prompts.clone(),
            changes: self.changes.clone(),
            connections: self.connections.clone(),
            caching: self.caching.clone(),
            page_size: self.page_size,
            #[cfg(feature = "validate")]
            received_bytes: self.limits.received_bytes,
            state: self.state.clone(),
        };
        Arc::new(Routes {
            service: Arc::new(service),
            layers: self.layers.as_slice().into(),
            notified: self.notified.clone(),
        })
    }

    /// Whether another process can continue a request whose earlier rounds ran here.
    pub(crate) fn shares_state(&self) -> bool {
        self.state.is_chosen()
    }

    /// The capabilities that are sent to clients.
    fn capabilities(&self) -> ServerCapabilities {
        let changing = || {
            let mut list = ListCapability::new();
            list.list_changed = Some(true);
            list
        };
        let mut capabilities = ServerCapabilities::new();
        capabilities.logging = Some(Extra::new());
        capabilities.tools = self.tools.is_offered().then(changing);
        capabilities.prompts = self.prompts.is_offered().then(changing);
        capabilities.resources = self.resources.is_offered().then(|| {
            let mut resources = ResourcesCapability::new();
            resources.subscribe = Some(true);
            resources.list_changed = Some(true);
            resources
        });
        let completes = self.prompts.completes() || self.resources.completes();
        capabilities.completions = completes.then(Extra::new);
        let extensions = Some(self.extensions.clone());
        capabilities.extensions = extensions.filter(|extensions| !extensions.is_empty());
        capabilities
    }

    /// The longest message that is read, and how deep it may be nested.
    pub(crate) fn reading_limits(&self) -> (usize, usize) {
        (self.limits.received_bytes, self.limits.depth)
    }

    pub(crate) fn resume_window(&self) -> Option<std::time::Duration> {
        self.timeouts.resume_window
    }

    /// The engine's configuration.
    pub(crate) fn config(&self, wire: Wire) -> Config {
        let capabilities = self.capabilities();
        let mut config = Config::server(self.info.clone(), capabilities.clone(), wire);
        config.identity = Identity::Server {
            info: self.info.clone(),
            capabilities,
            instructions: self.instructions.clone(),
            ttl_ms: self.caching.discovery.millis(),
            cache_scope: self.caching.discovery.scope().clone(),
        };
        config.limits = self.limits.clone();
        config.deadlines = self.deadlines;
        config.timeouts = self.timeouts.clone();
        config
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server")
            .field("info", &self.info)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// The layers, with the service inside them.
struct Routes {
    service: Arc<Service>,
    layers: Arc<[Arc<dyn ServerLayer>]>,
    notified: Option<Notified>,
}

impl App for Routes {
    fn handle(&self, cx: Context) -> BoxFuture<Answer> {
        cx.served_by(&self.service);
        let service = self.service.clone();
        let layers = self.layers.clone();
        Box::pin(async move {
            let _children = cx.children();
            match layers.is_empty() {
                true => service.handle(&cx).await,
                false => {
                    let answer = Next::new(&layers, &service, &cx).run().await;
                    answer.map(Payload::Json)
                }
            }
        })
    }

    fn notified(&self, notification: Notification) {
        pass_on(self.notified.as_ref(), notification);
    }
}
