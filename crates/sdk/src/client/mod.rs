//! A client: calls, and what a legacy server may ask back.

use std::collections::HashMap;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{Config, Deadlines, Ledger, Limits, Loss, Mode, Shutdown, Wire};
use belay_protocol::jsonrpc::{ErrorObject, Notification, RawJson};
use belay_protocol::types::{
    CallTool, CallToolParams, CallToolResult, ClientCapabilities, Era, Implementation, ListTools,
    ListToolsResult, PaginatedParams, ProtocolVersion, Request as Typed, Tool, error_code,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::context::Context;
use crate::driver::{Answer, App, BoxFuture, Ends, Link, Process, Request, launch};
use crate::{Call, Error};

/// A connection to a server. Cheap to clone; the connection is closed when the last one is dropped.
///
/// ```no_run
/// # async fn example() -> Result<(), belay::Error> {
/// let client = belay::Client::stdio("uvx", ["mcp-server-time"]).await?;
/// let result = client
///     .call_tool("get_current_time", serde_json::json!({ "timezone": "UTC" }))
///     .timeout(std::time::Duration::from_secs(5))
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    link: Arc<Link>,
    introduction: RawJson,
    version: ProtocolVersion,
    process: Option<Process>,
}

/// Dropping the last client skips the drain: calls are cancelled and announced, and the link goes.
impl Drop for Inner {
    fn drop(&mut self) {
        self.link.shutdown(Shutdown::Now);
    }
}

impl Client {
    /// A client with settings of its own.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    /// Connects over any pair of byte streams.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes the streams; the handshake is never cancelled on the wire.
    pub async fn connect<R, W>(reader: R, writer: W) -> Result<Self, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        ClientBuilder::default().connect(reader, writer).await
    }

    /// Calls a tool.
    pub fn call_tool(&self, name: &str, arguments: impl Serialize) -> Call<CallToolResult> {
        let mut params = CallToolParams::new(name);
        match serde_json::to_value(arguments) {
            Ok(Value::Object(arguments)) => params.arguments = Some(arguments),
            Ok(Value::Null) => {}
            Ok(_) => {
                let error = serde::ser::Error::custom("the arguments of a tool are an object");
                return Call::failed(self.inner.link.clone(), Error::bad_params(error));
            }
            Err(error) => return Call::failed(self.inner.link.clone(), Error::bad_params(error)),
        }
        self.request::<CallTool>(&params)
    }

    /// Lists the first page of tools.
    pub fn list_tools(&self) -> Call<ListToolsResult> {
        self.request::<ListTools>(&PaginatedParams::new())
    }

    /// Lists all tools, page by page; 64 pages at most, of which each has its own deadlines.
    ///
    /// # Cancel safety
    ///
    /// Dropping it cancels the page that is being asked for.
    pub async fn list_all_tools(&self) -> Result<Vec<Tool>, Error> {
        const PAGES: usize = 64;
        let mut tools = Vec::new();
        let mut page = PaginatedParams::new();
        for _ in 0..PAGES {
            let result = self.request::<ListTools>(&page).await?;
            tools.extend(result.tools);
            match result.next_cursor {
                Some(cursor) => page.cursor = Some(cursor),
                None => break,
            }
        }
        Ok(tools)
    }

    /// Makes a request.
    pub fn request<R: Typed>(&self, params: &R::Params) -> Call<R::Result> {
        Call::new::<R>(self.inner.link.clone(), params, None)
    }

    /// Makes a request by name, for what has no type.
    pub fn request_raw<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Call<T> {
        Call::raw(self.inner.link.clone(), method, params, None)
    }

    /// The revision that is spoken.
    pub fn version(&self) -> ProtocolVersion {
        self.inner.version
    }

    /// The era that is spoken.
    pub fn era(&self) -> Era {
        self.inner.version.era()
    }

    /// How the server introduced itself: its answer to `initialize` or `server/discover`.
    pub fn introduction(&self) -> &RawJson {
        &self.inner.introduction
    }

    /// The process id of the server, if it is a child of ours. It is its process group's, too.
    pub fn pid(&self) -> Option<u32> {
        self.inner.process.as_ref().map(|process| process.pid)
    }

    /// How many requests began, and how each ended.
    pub fn ledger(&self) -> Ledger {
        self.inner.link.ledger()
    }

    /// Closes the connection: calls in flight are cancelled and announced, what waits is written for
    /// up to a second, and the link goes. Tells why it is closed, which may be something earlier.
    ///
    /// If the server is a child process, this waits until it is gone, with all it has left behind: a
    /// moment if it is well-behaved, a few seconds if it has to be killed
    /// (**no-orphan-processes**). A program that ends before that leaves the child with the end of
    /// its input, and on Linux with a SIGTERM.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves the closing to go on in the background.
    pub async fn close(&self) -> Loss {
        self.inner.link.shutdown(Shutdown::Drain);
        let cause = self.closed().await;
        if let Some(process) = &self.inner.process {
            let _ = process.gone.clone().wait_for(|gone| *gone).await;
        }
        cause
    }

    /// Waits until the connection is closed, and tells why.
    ///
    /// # Cancel safety
    ///
    /// Dropping it changes nothing.
    pub async fn closed(&self) -> Loss {
        self.inner.link.closed().await.cause
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("version", &self.inner.version)
            .finish()
    }
}

/// Settings of a client, and its handlers for what a legacy server may ask.
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    info: Implementation,
    capabilities: ClientCapabilities,
    mode: Mode,
    handlers: HashMap<String, Handler>,
    notified: Option<Notified>,
    limits: Option<Limits>,
    deadlines: Deadlines,
    probe: Option<Duration>,
}

type Handler = Arc<dyn Fn(Context, Value) -> BoxFuture<Result<Value, ErrorObject>> + Send + Sync>;
type Notified = Arc<dyn Fn(Notification) + Send + Sync>;

impl Default for ClientBuilder {
    fn default() -> Self {
        Self::new(Implementation::new("belay", env!("CARGO_PKG_VERSION")))
    }
}

impl ClientBuilder {
    fn new(info: Implementation) -> Self {
        Self {
            info,
            capabilities: ClientCapabilities::new(),
            mode: Mode::Auto,
            handlers: HashMap::new(),
            notified: None,
            limits: None,
            deadlines: Deadlines::default(),
            probe: None,
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
        };
        self.open(ends).await
    }

    #[cfg(all(feature = "stdio", unix))]
    pub(crate) fn is_auto(&self) -> bool {
        self.mode == Mode::Auto
    }

    /// The same settings for another attempt.
    #[cfg(all(feature = "stdio", unix))]
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
        }
    }

    pub(crate) async fn open<R, W>(self, ends: Ends<R, W>) -> Result<Client, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let mut config = Config::client(self.info, self.capabilities, Wire::Pipe);
        if let Some(limits) = self.limits {
            config.limits = limits;
        }
        config.deadlines = self.deadlines;
        if let Some(probe) = self.probe {
            config.spans.probe = probe;
        }
        let link = Link::new(config);
        let app: Arc<dyn App> = Arc::new(Handlers {
            handlers: self.handlers,
            notified: self.notified,
        });
        let process = ends.process.clone();
        let connected = link.connect(self.mode);
        launch(&link, ends, app);
        let opening = CloseUnlessOpened(Some(link.clone()));
        let connected = connected.await.unwrap_or_else(|_| Err(link.lost()))?;
        opening.opened();
        Ok(Client {
            inner: Arc::new(Inner {
                version: connected.version,
                introduction: connected.introduction,
                process,
                link,
            }),
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
