//! A server: what it offers, and where it serves it.

mod blocking;
mod books;
mod layer;
#[cfg(feature = "macros")]
mod produced;
mod reply;
mod tool_error;
mod tools;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use belay_protocol::engine::{
    Config, Deadlines, Identity, Ledger, Limits, Loss, Shutdown, Spans, Wire,
};
use belay_protocol::jsonrpc::{ErrorObject, Notification, RawJson};
use belay_protocol::types::{
    CallTool, Era, Implementation, ListCapability, ListTools, Meta, Request as _,
    ServerCapabilities, error_code, meta_key,
};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinHandle;

use crate::context::Context;
use crate::driver::{Answer, App, BoxFuture, Ends, Link, Request, launch};

pub use books::Books;
#[cfg(feature = "http")]
pub(crate) use books::Entry;
pub use layer::{Next, ServerLayer};
pub use reply::{IntoToolResult, Json};
pub use tool_error::ToolError;
pub use tools::{Tool, Tools};

#[cfg(feature = "macros")]
pub use produced::{Produced, Structured, ViaContent, ViaResult, ViaStructured};

/// What a server offers.
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
    layers: Vec<Arc<dyn ServerLayer>>,
    limits: Limits,
    deadlines: Deadlines,
    spans: Spans,
    books: Books,
}

impl Server {
    /// A server that offers nothing yet.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        let info = Implementation::new(name, version);
        let defaults = Config::server(info.clone(), ServerCapabilities::new(), Wire::Pipe);
        Self {
            info,
            instructions: None,
            tools: Tools::default(),
            layers: Vec::new(),
            limits: defaults.limits,
            deadlines: defaults.deadlines,
            spans: defaults.spans,
            books: Books::default(),
        }
    }

    /// Tells the model how to make good use of it.
    pub fn instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Offers a tool. One of the same name is replaced.
    pub fn tool(self, tool: Tool) -> Self {
        self.tools.add(tool);
        self
    }

    /// Puts something around every request. The first one is the outermost.
    pub fn layer(mut self, layer: impl ServerLayer) -> Self {
        self.layers.push(Arc::new(layer));
        self
    }

    /// Changes how much is too much.
    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    /// When requests to the client give up that do not say so themselves
    /// (**deadline-covers-all**).
    pub fn deadlines(mut self, deadlines: Deadlines) -> Self {
        self.deadlines = deadlines;
        self
    }

    /// Changes how long things may take that are not calls: grace, drain and the like.
    pub fn spans(mut self, change: impl FnOnce(&mut Spans)) -> Self {
        change(&mut self.spans);
        self
    }

    /// The books of all its connections.
    pub fn books(&self) -> Books {
        self.books.clone()
    }

    /// The tools, which can be changed while the server runs.
    pub fn tools(&self) -> Tools {
        self.tools.clone()
    }

    /// Serves one connection, on any pair of byte streams. Signals are left to the caller.
    ///
    /// The writer's poll methods must not block, nor call back into this connection: frames that
    /// they did not take can still be withdrawn, so nothing else happens while they run.
    ///
    /// Must be called within a tokio runtime. The connection is served in the background; what is
    /// given back waits for its end, and ends it when it is dropped.
    pub fn serve<R, W>(&self, reader: R, writer: W) -> Serving
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let link = Link::new(self.config(Wire::Pipe));
        self.tools.serve_on(&link);
        let ends = Ends {
            reader,
            writer,
            exit: None,
            keep: Some(Box::new(self.books.enter(&link))),
            process: None,
            tap: None,
        };
        let driver = launch(&link, ends, self.app());
        Serving { link, driver }
    }

    /// What serves the requests of a link.
    pub(crate) fn app(&self) -> Arc<dyn App> {
        let mut meta = Meta::default();
        // Our own name is always valid JSON.
        let _ = meta.set(meta_key::SERVER_INFO, &self.info);
        let handler = Handler {
            signature: RawJson::encode(&meta).unwrap_or(RawJson::empty_object()),
            info: self.info.clone(),
            tools: self.tools.clone(),
        };
        Arc::new(Routes {
            handler: Arc::new(handler),
            layers: self.layers.as_slice().into(),
        })
    }

    /// The longest message that is read, and how deep it may be nested.
    pub(crate) fn reading_limits(&self) -> (usize, usize) {
        (self.limits.received_bytes, self.limits.depth)
    }

    pub(crate) fn resume_window(&self) -> Option<std::time::Duration> {
        self.spans.resume_window
    }

    /// What an engine is told.
    pub(crate) fn config(&self, wire: Wire) -> Config {
        let mut capabilities = ServerCapabilities::new();
        let mut tools = ListCapability::new();
        tools.list_changed = Some(true);
        capabilities.tools = Some(tools);
        let mut config = Config::server(self.info.clone(), capabilities.clone(), wire);
        config.identity = Identity::Server {
            info: self.info.clone(),
            capabilities,
            instructions: self.instructions.clone(),
        };
        config.limits = self.limits.clone();
        config.deadlines = self.deadlines;
        config.spans = self.spans.clone();
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

/// A connection that is being served. Wait for it to know why it ended.
///
/// # Cancel safety
///
/// Dropping it ends the connection: handlers are stopped at once, without a drain.
#[must_use = "dropping it ends the connection"]
#[derive(Debug)]
pub struct Serving {
    link: Arc<Link>,
    driver: JoinHandle<()>,
}

impl Serving {
    /// Begins an orderly shutdown: running handlers may finish for a while, then they are stopped
    /// (**orderly-close**). Called again, it ends that while.
    pub fn shutdown(&self) {
        self.link.shutdown(Shutdown::Drain);
    }

    /// Whether a handler was left behind because it never yields.
    #[cfg(all(feature = "stdio", unix))]
    pub(crate) fn is_stuck(&self) -> bool {
        self.link.is_stuck()
    }

    /// How many requests began, and how each ended.
    pub fn ledger(&self) -> Ledger {
        self.link.ledger()
    }

    /// How many handlers exist: running, or being stopped.
    pub fn handlers(&self) -> usize {
        self.link.handlers()
    }
}

impl Future for Serving {
    type Output = Loss;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Loss> {
        Pin::new(&mut self.driver)
            .poll(cx)
            .map(|_| self.link.closed_because())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.link.shutdown(Shutdown::Now);
    }
}

/// Method to handler.
struct Routes {
    handler: Arc<Handler>,
    layers: Arc<[Arc<dyn ServerLayer>]>,
}

impl App for Routes {
    fn handle(&self, request: Request) -> BoxFuture<Answer> {
        let cx = Context::new(request);
        let handler = self.handler.clone();
        let layers = self.layers.clone();
        Box::pin(async move {
            let _children = cx.children();
            Next::new(&layers, &handler, &cx).run().await
        })
    }

    fn notified(&self, notification: Notification) {
        tracing::debug!(method = %notification.method, "a notification was passed over");
    }
}

/// What is behind all layers.
pub(crate) struct Handler {
    info: Implementation,
    /// The `_meta` of a modern result that has none of its own: who we are, written once.
    signature: RawJson,
    tools: Tools,
}

impl Handler {
    async fn handle(&self, cx: &Context) -> Answer {
        let result = match cx.method() {
            ListTools::METHOD => self.tools.list(),
            CallTool::METHOD => self.tools.call(cx).await?,
            other => {
                let problem = format!("no such method: {other}");
                return Err(ErrorObject::new(error_code::METHOD_NOT_FOUND, problem));
            }
        };
        let encode = |result: &reply::Reply| {
            RawJson::encode(result).map_err(|error| {
                let problem = format!("the result cannot be written as JSON: {error}");
                ErrorObject::new(error_code::INTERNAL_ERROR, problem)
            })
        };
        match cx.era() {
            Era::Legacy => encode(&reply::legacy(result)),
            Era::Modern if result.meta().is_none() => {
                let result = encode(&reply::modern(result))?;
                Ok(result.with_member("_meta", &self.signature))
            }
            Era::Modern => encode(&reply::signed(reply::modern(result), &self.info)),
        }
    }
}
