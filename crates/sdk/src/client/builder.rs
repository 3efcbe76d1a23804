//! The builder of a client, with the handlers for a legacy server's requests.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use belay_protocol::engine::{Config, Connected, Deadlines, Limits, Mode, Outcome, Shutdown, Wire};
use belay_protocol::jsonrpc::{ErrorObject, Notification, RawJson};
use belay_protocol::types::{
    ClientCapabilities, Era, Extra, Implementation, LoggingMessageParams, Notification as _,
    error_code,
};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Cache, CallHooks, ChangeHub, Client, Established, Held, InputHandlers, Routes, Shelf};
use crate::Error;
use crate::call::{ClientLayer, Lines, Outlet, Route};
use crate::context::Context;
use crate::driver::{
    Answer, App, BoxFuture, Direction, Ends, Link, Notified, Payload, Process, Tap, launch, pass_on,
};

/// Settings of a client, and its handlers for requests of the server.
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    info: Implementation,
    pub(super) capabilities: ClientCapabilities,
    /// Additional result types that the extensions in use understand.
    result_types: Vec<String>,
    pub(super) input_handlers: InputHandlers,
    cache: Option<Cache>,
    #[cfg(feature = "validate")]
    outputs: Option<super::outputs::Outputs>,
    /// The cache key of this server: its address and the credentials used with it.
    place: Option<(Arc<str>, Arc<[u8]>)>,
    changes: Arc<ChangeHub>,
    pub(crate) mode: Mode,
    handlers: HashMap<String, Handler>,
    notified: Option<Notified>,
    logged: Option<Logged>,
    limits: Option<Limits>,
    deadlines: Deadlines,
    probe: Option<Duration>,
    layers: Vec<Arc<dyn ClientLayer>>,
    pub(crate) tap: Option<Tap>,
    pub(crate) supervision: Option<super::supervise::Supervision>,
    #[cfg(feature = "http")]
    pub(crate) reach: crate::transport::http::client::Reach,
}

type Handler = Arc<dyn Fn(Context, Value) -> BoxFuture<Result<Value, ErrorObject>> + Send + Sync>;
type Logged = Arc<dyn Fn(LoggingMessageParams) + Send + Sync>;

impl Default for ClientBuilder {
    fn default() -> Self {
        Self::new(Implementation::new("belay", env!("CARGO_PKG_VERSION")))
    }
}

impl ClientBuilder {
    pub(super) fn new(info: Implementation) -> Self {
        Self {
            info,
            capabilities: ClientCapabilities::new(),
            input_handlers: InputHandlers::default(),
            cache: Some(Cache::default()),
            #[cfg(feature = "validate")]
            outputs: None,
            place: None,
            changes: Arc::default(),
            mode: Mode::Auto,
            handlers: HashMap::new(),
            notified: None,
            logged: None,
            limits: None,
            result_types: Vec::new(),
            deadlines: Deadlines::default(),
            probe: None,
            layers: Vec::new(),
            tap: None,
            supervision: None,
            #[cfg(feature = "http")]
            reach: Default::default(),
        }
    }

    /// Changes how the client introduces itself: its title, icons, website and description.
    ///
    /// ```
    /// let builder = belay::Client::builder("orders", "1.0.0")
    ///     .info(|info| info.title("Orders").website_url("https://example.com"));
    /// ```
    pub fn info(mut self, change: impl FnOnce(Implementation) -> Implementation) -> Self {
        self.info = change(self.info);
        self
    }

    /// Which protocol era to use. By default it is negotiated with the server.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// Changes the client capabilities that are sent to servers. The capabilities of registered
    /// handlers are included without this.
    pub fn capabilities(mut self, change: impl FnOnce(&mut ClientCapabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    /// Declares an extension of the protocol by its identifier, and the result types that the
    /// client understands because of it. A call whose result has another type ends as *violated*.
    ///
    /// ```
    /// let builder = belay::Client::builder("editor", "1.0.0")
    ///     .extension("com.example/receipts", Default::default(), ["receipt"]);
    /// ```
    ///
    /// # Panics
    ///
    /// If the identifier is invalid. A valid one has a prefix, as in `com.example/receipts`.
    #[track_caller]
    pub fn extension<T: Into<String>>(
        mut self,
        identifier: impl Into<String>,
        settings: Extra,
        result_types: impl IntoIterator<Item = T>,
    ) -> Self {
        let identifier = crate::extension(identifier.into());
        let extensions = self.capabilities.extensions.get_or_insert_default();
        extensions.insert(identifier, settings.into());
        let types = result_types.into_iter().map(Into::into);
        self.result_types.extend(types);
        self
    }

    /// Changes the limits on message sizes and queues.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(self.limits.get_or_insert_default());
        self
    }

    /// The default deadlines of calls that set none of their own (**deadline-covers-all**).
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// How long to wait for an answer to the era probe before the server is taken for a legacy one.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe = Some(timeout);
        self
    }

    /// Registers a callback for every frame that is sent or received, in order, for tracing
    /// the wire. It must not block.
    pub fn tap(mut self, tap: impl Fn(Direction, &[u8]) + Send + Sync + 'static) -> Self {
        self.tap = Some(Arc::new(tap));
        self
    }

    /// Adds a layer around every call. The first layer added is the outermost.
    pub fn layer(mut self, layer: impl ClientLayer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Caches results in this cache. Without this, each client has a cache of its own.
    pub fn cache(mut self, cache: &Cache) -> Self {
        self.cache = Some(cache.clone());
        self
    }

    /// Turns caching off: every request is sent.
    pub fn no_cache(mut self) -> Self {
        self.cache = None;
        self
    }

    /// Holds the structured results of tools against the schemas that the server has listed. One that
    /// does not fit ends its call as *violated*, and so does one whose schema cannot be used, since it is
    /// none or leads elsewhere. Which that was, the error says.
    ///
    /// Where it cannot be found out whether a result fits, it is passed on, and a warning logged: where the
    /// schema loops or takes too much work, and where it has patterns that cannot be matched in linear time
    /// ([`Schema::unsupported_patterns`](crate::schema::Schema::unsupported_patterns)). The server has broken
    /// nothing then.
    #[cfg(feature = "validate")]
    pub fn check_results(mut self) -> Self {
        self.outputs = Some(Default::default());
        self
    }

    /// Registers a callback for log messages. It is called in order and must not block.
    pub fn on_log(mut self, told: impl Fn(LoggingMessageParams) + Send + Sync + 'static) -> Self {
        self.logged = Some(Arc::new(told));
        self
    }

    /// Registers a handler for a legacy server's request, by method name. It takes
    /// precedence over the typed handlers, such as [`on_elicit`](ClientBuilder::on_elicit),
    /// and declares no capability. The handler is dropped when the server cancels the
    /// request, or when the connection is lost.
    pub fn on_request<F, Fut>(mut self, method: &str, handler: F) -> Self
    where
        F: Fn(Context, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ErrorObject>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |cx, params| Box::pin(handler(cx, params)));
        self.handlers.insert(method.to_owned(), handler);
        self
    }

    /// Registers a callback for notifications that do not belong to a call. It is called
    /// in order and must not block.
    pub fn on_notification(mut self, told: impl Fn(Notification) + Send + Sync + 'static) -> Self {
        self.notified = Some(Arc::new(told));
        self
    }

    /// Connects over any pair of byte streams.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the streams; the handshake is never cancelled on the wire.
    pub async fn connect<R, W>(self, reader: R, writer: W) -> Result<Client, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let ends = Ends {
            reader,
            writer,
            exit: None,
            hung_up: None,
            keep: None,
            process: None,
            tap: None,
        };
        self.open(ends).await
    }

    /// Connects to a server in this process, over memory: see [`Client::in_process`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the server's connection.
    #[cfg(feature = "server")]
    pub async fn in_process(self, server: impl Into<crate::Server>) -> Result<Client, Error> {
        let ((server_in, server_out), (reader, writer)) = crate::transport::memory();
        let serving = server.into().serve(server_in, server_out);
        let finished = CancellationToken::new();
        let ended = finished.clone().drop_guard();
        // The pipe ends with the client. Then the server drains and stops its handlers, for which
        // `Client::close` waits.
        crate::sync::count_task();
        tokio::spawn(async move {
            serving.await;
            drop(ended);
        });
        let ends = Ends {
            reader,
            writer,
            exit: None,
            hung_up: None,
            keep: None,
            process: None,
            tap: None,
        };
        let established = self.establish_until(ends, Some(finished)).await?;
        Ok(self.client(established))
    }

    #[cfg(all(feature = "stdio", unix))]
    pub(crate) fn is_auto(&self) -> bool {
        self.mode == Mode::Auto
    }

    /// A copy of the settings, for another attempt to connect.
    pub(crate) fn again(&self, mode: Mode) -> Self {
        Self {
            info: self.info.clone(),
            capabilities: self.capabilities.clone(),
            result_types: self.result_types.clone(),
            input_handlers: self.input_handlers.clone(),
            cache: self.cache.clone(),
            #[cfg(feature = "validate")]
            outputs: self.outputs.clone(),
            place: self.place.clone(),
            changes: self.changes.clone(),
            mode,
            handlers: self.handlers.clone(),
            notified: self.notified.clone(),
            logged: self.logged.clone(),
            limits: self.limits.clone(),
            deadlines: self.deadlines,
            probe: self.probe,
            layers: self.layers.clone(),
            tap: self.tap.clone(),
            supervision: self.supervision.clone(),
            #[cfg(feature = "http")]
            reach: self.reach.clone(),
        }
    }

    pub(crate) async fn open<R, W>(self, ends: Ends<R, W>) -> Result<Client, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let established = self.establish(ends).await?;
        Ok(self.client(established))
    }

    /// A client that has this one connection, without supervision.
    pub(crate) fn client(&self, established: Established) -> Client {
        let link = established.link.clone();
        let routes = self.routes(
            Arc::new(link.clone()),
            Some((link, established.version().era())),
        );
        Client::from_parts(routes, Held::One(Arc::new(established)), self.changes())
    }

    pub(super) fn changes(&self) -> Arc<ChangeHub> {
        self.changes.clone()
    }

    /// Sets the server's address and credentials, which separate its cache entries from others'.
    #[cfg(feature = "http")]
    pub(crate) fn at(&mut self, place: &str, credentials: &[u8]) {
        self.place = Some((place.into(), credentials.into()));
    }

    /// The routes of requests. Requests on a single link that need no further work
    /// take the direct route.
    pub(super) fn routes(&self, lines: Arc<dyn Lines>, only: Option<(Arc<Link>, Era)>) -> Routes {
        let hooks = self.hooks(only.as_ref().map(|(_, era)| *era));
        let direct = only.map(|(link, _)| Route::Direct(link));
        let direct = direct.filter(|_| self.layers.is_empty() && hooks.is_idle());
        let keeps = hooks.shelf.is_some() || hooks.input_handlers.is_some() || !hooks.is_idle();
        let layered = Route::Layered(Arc::new(Outlet {
            layers: self.layers.clone(),
            lines,
            deadlines: self.deadlines,
            hooks,
        }));
        let all = direct.unwrap_or_else(|| layered.clone());
        let kept = match keeps {
            true => layered,
            false => all.clone(),
        };
        let has_roots = self.capabilities.roots.is_some();
        Routes {
            all,
            kept,
            has_roots,
        }
    }

    /// The handlers of the server's requests, with what the capabilities say about them.
    fn input_handlers(&self) -> InputHandlers {
        let mut input_handlers = self.input_handlers.clone();
        let sampling = self.capabilities.sampling.as_ref();
        input_handlers.model_takes_tools =
            sampling.is_some_and(|sampling| sampling.tools.is_some());
        input_handlers
    }

    /// The per-request work of a client. In the legacy era only output validation remains.
    fn hooks(&self, era: Option<Era>) -> CallHooks {
        if era == Some(Era::Legacy) {
            return CallHooks {
                #[cfg(feature = "validate")]
                outputs: self.outputs.clone(),
                ..CallHooks::default()
            };
        }
        let input_handlers = self.input_handlers();
        let shelf = self.cache.clone().map(|cache| {
            let (place, owner) = self.place.clone().unwrap_or_else(|| {
                // A server at the end of a pipe has this one client, so a number of
                // its own is enough.
                static NEXT: AtomicU64 = AtomicU64::new(1);
                let number = NEXT.fetch_add(1, Ordering::Relaxed);
                (format!("pipe {number}").into(), [].into())
            });
            let shelf = Shelf::new(cache, place, owner);
            self.changes.set_cache(&shelf);
            shelf
        });
        CallHooks {
            input_handlers: Some(Arc::new(input_handlers)),
            shelf,
            #[cfg(feature = "http")]
            known_tools: (era.is_some() && self.place.is_some())
                .then(|| self.reach.known_tools.clone()),
            #[cfg(feature = "validate")]
            outputs: self.outputs.clone(),
        }
    }

    /// Opens one connection.
    pub(crate) async fn establish<R, W>(&self, ends: Ends<R, W>) -> Result<Established, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        self.establish_until(ends, None).await
    }

    /// The same. The connection is closed when its link is, and `finished` is cancelled.
    async fn establish_until<R, W>(
        &self,
        mut ends: Ends<R, W>,
        finished: Option<CancellationToken>,
    ) -> Result<Established, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let link = Link::new(self.config(Wire::Pipe));
        let process = ends.process.clone();
        ends.tap = self.tap.clone();
        let connected = link.connect(self.mode);
        launch(&link, ends, self.app());
        self.opened(link, connected, process, finished).await
    }

    /// Waits for the handshake, and closes the link if it fails or is dropped.
    pub(crate) async fn opened(
        &self,
        link: Arc<Link>,
        connected: oneshot::Receiver<Result<Connected, Outcome>>,
        process: Option<Process>,
        finished: Option<CancellationToken>,
    ) -> Result<Established, Error> {
        let opening = CloseUnlessOpened(Some(link.clone()));
        let connected = connected.await.unwrap_or_else(|_| Err(link.lost()))?;
        opening.opened();
        Ok(Established {
            version: connected.version,
            introduction: connected.introduction,
            process,
            finished,
            link,
        })
    }

    /// The engine's configuration.
    pub(crate) fn config(&self, wire: Wire) -> Config {
        let mut config = Config::client(self.info.clone(), self.capabilities.clone(), wire);
        if let Some(limits) = &self.limits {
            config.limits = limits.clone();
        }
        config.deadlines = self.deadlines;
        config.result_types.clone_from(&self.result_types);
        config.timeouts.probe = match (self.probe, wire) {
            (Some(probe), _) => probe,
            (None, Wire::Pipe) => config.timeouts.probe,
            // Over HTTP, a slow answer to the probe does not suggest a legacy server.
            (None, Wire::Http | Wire::EventStream) => config.timeouts.initialize,
        };
        config
    }

    /// The handlers of the server's messages.
    pub(crate) fn app(&self) -> Arc<dyn App> {
        Arc::new(Handlers {
            input_handlers: self.input_handlers(),
            handlers: self.handlers.clone(),
            notified: self.notified.clone(),
            logged: self.logged.clone(),
            changes: self.changes.clone(),
        })
    }
}

impl fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

/// Closes the link of a connection that could not be opened, or whose opening was dropped.
struct CloseUnlessOpened(Option<Arc<Link>>);

impl CloseUnlessOpened {
    fn opened(mut self) {
        self.0 = None;
    }
}

impl Drop for CloseUnlessOpened {
    fn drop(&mut self) {
        if let Some(link) = self.0.take() {
            link.shutdown(Shutdown::Now);
        }
    }
}

struct Handlers {
    input_handlers: InputHandlers,
    handlers: HashMap<String, Handler>,
    notified: Option<Notified>,
    logged: Option<Logged>,
    changes: Arc<ChangeHub>,
}

impl App for Handlers {
    fn handle(&self, cx: Context) -> BoxFuture<Answer> {
        let params = match cx.params() {
            Some(params) => params.decode().unwrap_or(Value::Null),
            None => Value::Null,
        };
        let handler = self.handlers.get(cx.method()).cloned();
        let input = match handler.is_some() {
            true => None,
            false => self.input_handlers.serve(cx.method(), params.clone()),
        };
        Box::pin(async move {
            let _children = cx.children();
            let result = match (handler, input) {
                (Some(handler), _) => handler(cx, params).await?,
                (None, Some(input)) => input.await?,
                (None, None) => {
                    let problem = format!("no such method: {}", cx.method());
                    return Err(ErrorObject::new(error_code::METHOD_NOT_FOUND, problem));
                }
            };
            RawJson::encode(&result)
                .map(Payload::Json)
                .map_err(|error| ErrorObject::new(error_code::INTERNAL_ERROR, error.to_string()))
        })
    }

    fn notified(&self, notification: Notification) {
        self.changes.notified(&notification);
        if let Some(logged) = &self.logged
            && notification.method == *LoggingMessageParams::METHOD
        {
            let params = notification.params.as_ref();
            match params.map(|params| params.decode()) {
                Some(Ok(message)) => logged(message),
                _ => tracing::debug!("a log message could not be read"),
            }
        }
        pass_on(self.notified.as_ref(), notification);
    }
}
