//! How a client is made, and what it answers when a legacy server asks.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{Config, Connected, Deadlines, Limits, Mode, Outcome, Shutdown, Wire};
use belay_protocol::jsonrpc::{ErrorObject, Notification, RawJson};
use belay_protocol::types::{ClientCapabilities, Implementation, error_code};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::{Client, Established, Held};
use crate::Error;
use crate::call::{ClientLayer, Lines, Outlet, Route};
use crate::context::Context;
use crate::driver::{Answer, App, BoxFuture, Ends, Link, Passed, Process, Request, Tap, launch};

/// Settings of a client, and its handlers for what a legacy server may ask.
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    info: Implementation,
    capabilities: ClientCapabilities,
    pub(crate) mode: Mode,
    handlers: HashMap<String, Handler>,
    notified: Option<Notified>,
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
type Notified = Arc<dyn Fn(Notification) + Send + Sync>;

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
            mode: Mode::Auto,
            handlers: HashMap::new(),
            notified: None,
            limits: None,
            deadlines: Deadlines::default(),
            probe: None,
            layers: Vec::new(),
            tap: None,
            supervision: None,
            #[cfg(feature = "http")]
            reach: Default::default(),
        }
    }

    /// Which era to speak. By default the server decides.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = mode;
        self
    }

    /// What this client can do, as it tells the server.
    pub fn capabilities(mut self, change: impl FnOnce(&mut ClientCapabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    /// Changes how much is too much.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(self.limits.get_or_insert_default());
        self
    }

    /// When calls give up that do not say so themselves (**deadline-covers-all**).
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// How long a server is given to answer the era probe before it is taken for a legacy one.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe = Some(timeout);
        self
    }

    /// Is shown every frame that passes, in order, for tracing the wire. It must not take long.
    pub fn tap(mut self, tap: impl Fn(Passed, &[u8]) + Send + Sync + 'static) -> Self {
        self.tap = Some(Arc::new(tap));
        self
    }

    /// Puts something around every call. The first one is the outermost.
    pub fn layer(mut self, layer: impl ClientLayer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Answers a request of the server's, such as `elicitation/create`. It is stopped when the
    /// server cancels it, or is gone.
    pub fn on_request<F, Fut>(mut self, method: &str, handler: F) -> Self
    where
        F: Fn(Context, Value) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, ErrorObject>> + Send + 'static,
    {
        let handler: Handler = Arc::new(move |cx, params| Box::pin(handler(cx, params)));
        self.handlers.insert(method.to_owned(), handler);
        self
    }

    /// Is told of notifications that are not about a call, in order. It must not take long.
    pub fn on_notification(mut self, told: impl Fn(Notification) + Send + Sync + 'static) -> Self {
        self.notified = Some(Arc::new(told));
        self
    }

    /// Connects over any pair of byte streams.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes the streams; the handshake is never cancelled on the wire.
    pub async fn connect<R, W>(self, reader: R, writer: W) -> Result<Client, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let ends = Ends {
            reader,
            writer,
            exit: None,
            keep: None,
            process: None,
            tap: None,
        };
        self.open(ends).await
    }

    #[cfg(all(feature = "stdio", unix))]
    pub(crate) fn is_auto(&self) -> bool {
        self.mode == Mode::Auto
    }

    /// The same settings for another attempt.
    pub(crate) fn again(&self, mode: Mode) -> Self {
        Self {
            info: self.info.clone(),
            capabilities: self.capabilities.clone(),
            mode,
            handlers: self.handlers.clone(),
            notified: self.notified.clone(),
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

    /// A client of one connection.
    pub(crate) fn client(&self, established: Established) -> Client {
        let link = established.link.clone();
        let route = match self.layers.is_empty() {
            true => Route::Direct(link),
            false => self.route(Arc::new(link)),
        };
        Client::from_parts(route, Held::One(Arc::new(established)))
    }

    /// The way by all layers.
    pub(crate) fn route(&self, lines: Arc<dyn Lines>) -> Route {
        Route::Layered(Arc::new(Outlet {
            layers: self.layers.clone(),
            lines,
            deadlines: self.deadlines,
        }))
    }

    /// Opens one connection.
    pub(crate) async fn establish<R, W>(&self, mut ends: Ends<R, W>) -> Result<Established, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let link = Link::new(self.config(Wire::Pipe));
        let process = ends.process.clone();
        ends.tap = self.tap.clone();
        let connected = link.connect(self.mode);
        launch(&link, ends, self.app());
        self.opened(link, connected, process, None).await
    }

    /// Waits until a conversation is open, and closes its link if it does not come to that.
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

    /// What an engine is told.
    pub(crate) fn config(&self, wire: Wire) -> Config {
        let mut config = Config::client(self.info.clone(), self.capabilities.clone(), wire);
        if let Some(limits) = &self.limits {
            config.limits = limits.clone();
        }
        config.deadlines = self.deadlines;
        config.spans.probe = match (self.probe, wire) {
            (Some(probe), _) => probe,
            (None, Wire::Pipe) => config.spans.probe,
            // Silence says nothing about eras there.
            (None, Wire::Http) => config.spans.initialize,
        };
        config
    }

    /// What serves the requests of a server.
    pub(crate) fn app(&self) -> Arc<dyn App> {
        Arc::new(Handlers {
            handlers: self.handlers.clone(),
            notified: self.notified.clone(),
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

/// A connection that could not be opened, or whose opening was dropped, is closed.
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
    handlers: HashMap<String, Handler>,
    notified: Option<Notified>,
}

impl App for Handlers {
    fn handle(&self, request: Request) -> BoxFuture<Answer> {
        let cx = Context::new(request);
        let handler = self.handlers.get(cx.method()).cloned();
        Box::pin(async move {
            let _children = cx.children();
            let Some(handler) = handler else {
                let problem = format!("no such method: {}", cx.method());
                return Err(ErrorObject::new(error_code::METHOD_NOT_FOUND, problem));
            };
            let params = match cx.params() {
                Some(params) => params.decode().unwrap_or(Value::Null),
                None => Value::Null,
            };
            let result = handler(cx, params).await?;
            RawJson::encode(&result)
                .map_err(|error| ErrorObject::new(error_code::INTERNAL_ERROR, error.to_string()))
        })
    }

    fn notified(&self, notification: Notification) {
        match &self.notified {
            Some(told) => told(notification),
            None => {
                tracing::debug!(method = %notification.method, "a notification was passed over")
            }
        }
    }
}
