//! The connection pool.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use belay_protocol::engine::Loss;
use http::{HeaderMap, Request, Response, Uri};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioTimer;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;
use tower_service::Service;

use super::super::executor::Tracked;
use super::super::param_headers::KnownTools;
use super::answer;
use super::post_body::PostBody;

pub(super) type Tcp = HttpConnector<Resolver>;
#[cfg(feature = "tls")]
type Connector = Timely<hyper_rustls::HttpsConnector<super::tls::Proxied>>;
#[cfg(not(feature = "tls"))]
type Connector = Timely<Tcp>;

/// The idle timeout of the pool. Some servers close a connection after five seconds of silence.
/// A connection that is about to be closed must not be used, since it would be unknown whether
/// a request on it was received.
const KEPT: Duration = Duration::from_secs(4);

/// How to connect to a server.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    /// Headers that are sent with every request.
    pub(crate) headers: HeaderMap,
    /// The time limit for connecting.
    pub(crate) within: Duration,
    /// The tools whose arguments are repeated in headers.
    pub(crate) known_tools: KnownTools,
    /// The TLS settings. Built once, because that is slow.
    #[cfg(feature = "tls")]
    pub(crate) tls: super::tls::Tls,
}

impl Default for Reach {
    fn default() -> Self {
        Self {
            headers: HeaderMap::new(),
            within: Duration::from_secs(10),
            known_tools: KnownTools::default(),
            #[cfg(feature = "tls")]
            tls: super::tls::Tls::default(),
        }
    }
}

/// The connections that requests are sent on.
#[derive(Clone)]
pub(super) struct Connections {
    calls: Client<Connector, PostBody>,
    /// For cancellations, responses and notifications. They must not wait behind calls: an HTTP/2
    /// connection limits its concurrent streams, and only a cancellation may free one.
    beside: Client<Connector, PostBody>,
    headers: Arc<HeaderMap>,
}

impl Connections {
    pub(super) fn new(reach: &Reach, tasks: TaskTracker) -> Result<Self, crate::Error> {
        let connector = || -> Result<Connector, crate::Error> {
            let mut tcp = Tcp::new_with_resolver(Resolver);
            tcp.set_nodelay(true);
            tcp.set_keepalive(Some(Duration::from_secs(15)));
            #[cfg(feature = "tls")]
            let tcp = reach.tls.over(tcp)?;
            Ok(Timely {
                connector: tcp,
                within: reach.within,
            })
        };
        let client = |connector| {
            Client::builder(Tracked(tasks.clone()))
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(KEPT)
                // Detects a connection whose other end has vanished.
                .http2_keep_alive_interval(Duration::from_secs(15))
                .http2_keep_alive_timeout(Duration::from_secs(15))
                // A request that may have been sent is not repeated (**retry-is-explicit**).
                .retry_canceled_requests(false)
                .build(connector)
        };
        Ok(Self {
            calls: client(connector()?),
            beside: client(connector()?),
            headers: Arc::new(reach.headers.clone()),
        })
    }

    /// Sends a request, and waits for the head of the response.
    pub(super) async fn send(
        &self,
        request: Request<PostBody>,
    ) -> Result<Response<Incoming>, Loss> {
        let sent = self.calls.request(self.with_headers(request)).await;
        sent.map_err(answer::failed)
    }

    /// Sends a message that must not wait behind calls.
    pub(super) async fn send_beside(
        &self,
        request: Request<PostBody>,
    ) -> Result<Response<Incoming>, Loss> {
        let sent = self.beside.request(self.with_headers(request)).await;
        sent.map_err(answer::failed)
    }

    fn with_headers(&self, mut request: Request<PostBody>) -> Request<PostBody> {
        for (name, value) in &*self.headers {
            request.headers_mut().append(name, value.clone());
        }
        request
    }
}

/// Connects within a time limit, which covers name resolution, proxies and handshakes.
#[derive(Clone)]
pub(super) struct Timely<C> {
    connector: C,
    within: Duration,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Reaching<T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + Send>>;

impl<C> Service<Uri> for Timely<C>
where
    C: Service<Uri>,
    C::Error: Into<Failure>,
    C::Future: Send + 'static,
{
    type Response = C::Response;
    type Error = Failure;
    type Future = Reaching<C::Response>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        self.connector.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, to: Uri) -> Self::Future {
        let (reaching, within) = (self.connector.call(to), self.within);
        Box::pin(async move {
            match tokio::time::timeout(within, reaching).await {
                Ok(reached) => reached.map_err(Into::into),
                Err(_) => {
                    let problem = format!("not reached within {within:?}");
                    Err(io::Error::new(io::ErrorKind::TimedOut, problem).into())
                }
            }
        })
    }
}

/// Resolves names on a thread of its own. A lookup cannot be dropped, and a runtime waits for the
/// ones in its own pool when it ends (see `docs/decisions/0008`).
#[derive(Clone)]
pub(super) struct Resolver;

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (done, found) = oneshot::channel();
        let lookup = std::thread::Builder::new().name("belay-names".into());
        let spawned = lookup.spawn(move || {
            let _ = done.send((name.as_str(), 0).to_socket_addrs());
        });
        Box::pin(async move {
            spawned?;
            found
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::NotFound.into()))
        })
    }
}
