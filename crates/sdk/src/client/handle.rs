//! The handle of a connection to a server: what users hold.

use std::fmt;
use std::sync::Arc;

use belay_protocol::engine::{Ledger, Loss, Shutdown};
use belay_protocol::jsonrpc::RawJson;
use belay_protocol::types::modern::InputRequiredResult;
use belay_protocol::types::{Era, Implementation, ProtocolVersion, Request as Typed};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use super::{ChangeHub, ClientBuilder, is_kept, supervise};
use crate::call::Route;
use crate::driver::{Link, Process};
use crate::{Call, Error};

/// A connection to a server. Cheap to clone; dropping the last clone closes the connection.
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
    pub(super) inner: Arc<Inner>,
}

pub(super) struct Inner {
    pub(super) routes: Routes,
    pub(super) held: Held,
    pub(super) changes: Arc<ChangeHub>,
}

/// The routes that a client's requests take.
pub(crate) struct Routes {
    pub(crate) all: Route,
    /// For methods whose answer may ask for input, or whose results may be cached.
    pub(crate) kept: Route,
    /// Whether the client declared the `roots` capability.
    pub(crate) has_roots: bool,
}

/// What a client owns: a connection, or a supervisor that replaces it.
pub(crate) enum Held {
    /// One connection.
    One(Arc<Established>),
    /// One connection after another.
    Supervised(supervise::Supervised),
}

/// An open connection.
pub(crate) struct Established {
    pub(crate) link: Arc<Link>,
    pub(super) introduction: RawJson,
    pub(super) version: ProtocolVersion,
    pub(super) process: Option<Process>,
    /// Cancelled when the connection is fully torn down, where that takes longer
    /// than closing its link.
    pub(super) finished: Option<CancellationToken>,
}

/// Dropping the last client skips the drain: calls in flight are cancelled on the
/// wire, then the link is closed.
impl Drop for Established {
    fn drop(&mut self) {
        self.link.shutdown(Shutdown::Now);
    }
}

impl Established {
    pub(crate) fn version(&self) -> ProtocolVersion {
        self.version
    }

    pub(crate) async fn close(&self) -> Loss {
        self.link.shutdown(Shutdown::Drain);
        let cause = self.link.closed().await.cause;
        if let Some(process) = &self.process {
            let _ = process.gone.clone().wait_for(|gone| *gone).await;
        }
        if let Some(finished) = &self.finished {
            finished.cancelled().await;
        }
        cause
    }
}

impl Client {
    pub(crate) fn from_parts(routes: Routes, held: Held, changes: Arc<ChangeHub>) -> Self {
        let inner = Arc::new(Inner {
            routes,
            held,
            changes,
        });
        Self { inner }
    }

    pub(super) fn route(&self, method: &str) -> Route {
        match is_kept(method) || InputRequiredResult::may_answer(method) {
            true => self.inner.routes.kept.clone(),
            false => self.inner.routes.all.clone(),
        }
    }

    /// A call that cannot be made.
    pub(super) fn cannot<T: DeserializeOwned>(&self, error: serde_json::Error) -> Call<T> {
        Call::failed(self.inner.routes.all.clone(), Error::bad_params(error))
    }

    pub(super) fn changes(&self) -> Arc<ChangeHub> {
        self.inner.changes.clone()
    }

    /// A link that was alive a moment ago. Waits for one that is being replaced.
    pub(super) async fn link(&self) -> Result<Arc<Link>, Error> {
        match &self.inner.routes.all {
            Route::Direct(link) => Ok(link.clone()),
            Route::Layered(outlet) => Ok(outlet.lines.link().await?),
        }
    }

    /// Whether the connection is closed and will not be replaced.
    pub(super) fn is_over(&self) -> bool {
        match &self.inner.held {
            Held::One(established) => established.link.is_closed(),
            Held::Supervised(supervised) => supervised.is_over(),
        }
    }

    /// Sends a notification without parameters, if the server is a legacy one.
    pub(super) fn tell_legacy(&self, method: &'static str) {
        let established = self.established();
        if established.version.era() == Era::Legacy {
            established.link.notify_now(method);
        }
    }

    /// Starts a builder, for a client with settings of its own. The name and the version
    /// introduce the client to servers.
    pub fn builder(name: impl Into<String>, version: impl Into<String>) -> ClientBuilder {
        ClientBuilder::new(Implementation::new(name, version))
    }

    /// Connects over any pair of byte streams.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future closes the streams; the handshake is never cancelled on the wire.
    pub async fn connect<R, W>(reader: R, writer: W) -> Result<Self, Error>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        ClientBuilder::default().connect(reader, writer).await
    }

    /// Connects to a server in this process, over memory: for tests of a server, and for servers that
    /// live in their host. The whole protocol is spoken; only the wire is missing.
    ///
    /// ```
    /// # #[cfg(all(feature = "macros", feature = "server"))] mod example {
    /// struct Orders;
    ///
    /// #[belay::server]
    /// impl Orders {
    ///     /// Ships an order.
    ///     #[tool]
    ///     async fn ship(&self, order: u64) -> String {
    ///         format!("order {order} is on its way")
    ///     }
    /// }
    ///
    /// # pub async fn test() -> Result<(), belay::Error> {
    /// let client = belay::Client::in_process(Orders).await?;
    /// let shipped = client.call_tool("ship", serde_json::json!({ "order": 7 })).await?;
    /// assert_eq!(shipped.as_text(), Some("order 7 is on its way"));
    /// # Ok(())
    /// # }
    /// # }
    /// # #[cfg(all(feature = "macros", feature = "server"))]
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), belay::Error> { example::test().await }
    /// # #[cfg(not(all(feature = "macros", feature = "server")))]
    /// # fn main() {}
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the server's connection.
    #[cfg(feature = "server")]
    pub async fn in_process(server: impl Into<crate::Server>) -> Result<Self, Error> {
        ClientBuilder::default().in_process(server).await
    }

    /// Makes a typed request. The methods of [`Client`] cover the common ones.
    pub fn request<R: Typed>(&self, params: &R::Params) -> Call<R::Result> {
        Call::new::<R>(self.route(R::METHOD), params, None)
    }

    /// Makes a request by its method name, for methods without a type.
    pub fn request_raw<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &(impl Serialize + ?Sized),
    ) -> Call<T> {
        Call::raw(self.route(method), method, params, None)
    }

    /// The protocol version in use.
    pub fn version(&self) -> ProtocolVersion {
        self.established().version
    }

    /// The era of the protocol version in use.
    pub fn era(&self) -> Era {
        self.version().era()
    }

    /// How the server introduced itself: its answer to `initialize` or `server/discover`.
    pub fn introduction(&self) -> RawJson {
        self.established().introduction.clone()
    }

    /// The process id of the server, if it is a child process. It is also the id of
    /// its process group.
    pub fn pid(&self) -> Option<u32> {
        let process = self.established().process.clone();
        process.map(|process| process.pid)
    }

    /// Counts of requests that began, and of how each ended. A supervised client counts
    /// those of all its connections.
    pub fn ledger(&self) -> Ledger {
        match &self.inner.held {
            Held::One(established) => established.link.ledger(),
            Held::Supervised(supervised) => supervised.ledger(),
        }
    }

    /// The connection, or the last one there was.
    pub(super) fn established(&self) -> Arc<Established> {
        match &self.inner.held {
            Held::One(established) => established.clone(),
            Held::Supervised(supervised) => supervised.established(),
        }
    }

    /// Closes the connection: calls in flight are cancelled on the wire, queued messages are
    /// written for up to a second, and then the link is closed. Returns why the connection closed,
    /// which may be a loss that came first.
    ///
    /// If the server is a child process, this waits until the process and everything it started are
    /// gone: a moment for a well-behaved server, a few seconds for one that has to be killed
    /// (**no-orphan-processes**). If the program exits before that, the child sees the end of its
    /// input, and on Linux a SIGTERM.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not stop the closing: it goes on in the background.
    pub async fn close(&self) -> Loss {
        match &self.inner.held {
            Held::One(established) => established.close().await,
            Held::Supervised(supervised) => supervised.close().await,
        }
    }

    /// Kills the server and every process it started, if it is a child process, and closes the
    /// connection. The server is not asked to stop and cannot clean up.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not undo it: the rest goes on in the background.
    pub async fn kill(&self) -> Loss {
        if let Held::Supervised(supervised) = &self.inner.held {
            supervised.stop();
        }
        let established = self.established();
        if let Some(process) = &established.process {
            (process.kill)();
        }
        established.link.shutdown(Shutdown::Now);
        self.closed().await
    }

    /// Waits until the connection is closed, and returns why. The connection of a supervised client
    /// counts as closed when its supervision has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future changes nothing.
    pub async fn closed(&self) -> Loss {
        match &self.inner.held {
            Held::One(established) => established.link.closed().await.cause,
            Held::Supervised(supervised) => supervised.closed().await,
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("version", &self.version())
            .finish()
    }
}
