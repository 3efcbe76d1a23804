//! A listening server: accepts connections, and shuts down in good order.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use belay_protocol::engine::{Ledger, Shutdown};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Impatient, Version, recognise};
use super::endpoint::{Endpoint, Options};
use super::service::HttpService;
use super::streams::Streams;
use crate::driver::Pool;
use crate::server::Server;

/// The time for connections to end by themselves after a shutdown.
const LAST_MOMENT: Duration = Duration::from_millis(300);

/// The pause after accepting has failed, as it does without free file descriptors.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Serves on HTTP until a signal arrives. Prints the URL to stderr; [`Endpoint::bind`] prints nothing.
///
/// Installs handlers for SIGTERM and SIGINT: the first signal begins an orderly shutdown,
/// a second one ends its drain.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// belay::http::serve("127.0.0.1:8000", belay::Server::new("example", "1.0.0")).await
/// # }
/// ```
///
/// # Cancel safety
///
/// Dropping the future stops the handlers at once, without a drain.
#[cfg(unix)]
pub async fn serve(address: impl ToSocketAddrs, server: impl Into<Server>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let _stderr = crate::server::guard_stderr();
    let mut listening = Endpoint::new(server).bind(address).await?;
    // Unlike `eprintln!`, this does not panic if stderr cannot be written.
    let _ = writeln!(
        io::stderr(),
        "serving at http://{}/mcp",
        listening.address()
    );
    loop {
        tokio::select! {
            biased;
            () = &mut listening => return Ok(()),
            _ = terminate.recv() => listening.shutdown(),
            _ = interrupt.recv() => listening.shutdown(),
        }
    }
}

impl Endpoint {
    /// Listens on this address, and serves HTTP/1.1 and HTTP/2 in the background. Must be
    /// called within a tokio runtime.
    ///
    /// An address that other machines can reach needs an allowed host: see
    /// [`Endpoint::allow_host`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn bind(self, address: impl ToSocketAddrs) -> io::Result<ServerHandle> {
        let listener = TcpListener::bind(address).await?;
        self.listen(listener)
    }

    /// Like [`Endpoint::bind`], with a socket that already listens.
    pub fn listen(mut self, listener: TcpListener) -> io::Result<ServerHandle> {
        self.options.path.get_or_insert_with(|| "/mcp".to_owned());
        let address = listener.local_addr()?;
        if let Some(wrong) = self.options.names.wrong() {
            let problem = format!("{wrong:?} is no host; write `name` or `name:port`");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        if !address.ip().is_loopback() && !self.options.names.has_hosts() {
            let problem = format!(
                "{address} can be reached from elsewhere: say under which name, with `allow_host` \
                 (`--allow-host`), or bind to 127.0.0.1"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, problem));
        }
        if !address.ip().is_loopback() && !self.server.shares_state() {
            tracing::warn!(
                "the key for the state of rounds is random: with more than one process, choose one \
                 with `request_state`"
            );
        }
        #[cfg(feature = "tls")]
        let tls = self.tls.clone();
        let service = self.service();
        let stop = CancellationToken::new();
        let accepting = Accepting {
            listener,
            #[cfg(feature = "tls")]
            tls,
            service: service.clone(),
            stop: stop.clone(),
            gone: CancellationToken::new(),
            connections: TaskTracker::new(),
        };
        Ok(ServerHandle {
            driver: tokio::spawn(accepting.run()),
            address,
            service,
            stop,
        })
    }
}

/// A running HTTP server. Awaiting it returns when the server has ended.
///
/// # Cancel safety
///
/// Dropping it ends the server: handlers are stopped at once, without a drain.
#[must_use = "dropping it ends the server"]
#[derive(Debug)]
pub struct ServerHandle {
    address: SocketAddr,
    service: HttpService,
    stop: CancellationToken,
    driver: JoinHandle<()>,
}

impl ServerHandle {
    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins an orderly shutdown: no connections are accepted, running handlers may
    /// finish within the drain time, then they are stopped (**orderly-close**). A second
    /// call ends the drain at once.
    pub fn shutdown(&self) {
        self.stop.cancel();
        self.service.shared().connections.end(Shutdown::Drain);
    }

    /// Counts of requests that began, and of how each ended.
    pub fn ledger(&self) -> Ledger {
        self.service.ledger()
    }

    /// The service, for its counters and metrics.
    pub fn service(&self) -> &HttpService {
        &self.service
    }
}

impl Future for ServerHandle {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.driver).poll(cx).map(drop)
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.service.shared().connections.end(Shutdown::Now);
        self.stop.cancel();
    }
}

struct Accepting {
    listener: TcpListener,
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
    service: HttpService,
    stop: CancellationToken,
    /// Cancelled when the time of all connections is up.
    gone: CancellationToken,
    connections: TaskTracker,
}

impl Accepting {
    async fn run(self) {
        let room = Arc::new(Semaphore::new(self.service.shared().options.connections));
        loop {
            let next = async {
                // Further connections wait in the backlog, where they use no memory
                // of this process.
                let place = room.clone().acquire_owned().await;
                (place, self.listener.accept().await)
            };
            let (place, accepted) = tokio::select! {
                biased;
                () = self.stop.cancelled() => break,
                next = next => next,
            };
            match accepted {
                Ok((stream, address)) => self.begin(stream, address.ip(), place.ok()),
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(ACCEPT_AGAIN).await;
                }
            }
        }
        drop(self.listener);
        // Each link ends within its time limits. After that, connections have nothing to do.
        self.service.shared().connections.closed().await;
        self.connections.close();
        let _ = tokio::time::timeout(LAST_MOMENT, self.connections.wait()).await;
        self.gone.cancel();
        self.connections.wait().await;
    }

    fn begin(&self, stream: TcpStream, address: IpAddr, place: Option<OwnedSemaphorePermit>) {
        let (stop, gone) = (self.stop.clone(), self.gone.child_token());
        let peer = self.service.shared().peers.from(address);
        let Some(share) = peer.take(Pool::Connections, 1) else {
            return tracing::debug!("a connection too many of one peer was closed (bounded)");
        };
        let service = self.service.on_connection(peer);
        let write_stall = service.shared().options.write_stall;
        let streams = Streams::new(self.connections.clone(), write_stall);
        prepare(&stream);
        #[cfg(feature = "tls")]
        let tls = self.tls.clone();
        let carrying = async move {
            #[cfg(feature = "tls")]
            if let Some(tls) = tls {
                let within = service.shared().options.header_within;
                let secured = tokio::time::timeout(within, tls.accept(stream)).await??;
                return carry(secured, service, stop, streams).await;
            }
            carry(stream, service, stop, streams).await
        };
        self.connections.spawn(async move {
            let _place = (place, share);
            if let Some(Err(error)) = gone.run_until_cancelled(carrying).await {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
}

/// Sends small responses at once, and detects a vanished peer.
fn prepare(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY");
    }
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        let keepalive = sockopt::set_socket_keepalive(stream, true)
            .and_then(|()| sockopt::set_tcp_keepidle(stream, Duration::from_secs(15)))
            .and_then(|()| sockopt::set_tcp_keepintvl(stream, Duration::from_secs(5)))
            // Also when data was sent and is not acknowledged.
            .and_then(|()| sockopt::set_tcp_user_timeout(stream, 30_000));
        if let Err(error) = keepalive {
            tracing::debug!(%error, "keep-alive");
        }
    }
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

/// Serves one connection until it ends.
async fn carry<S>(
    io: S,
    service: HttpService,
    stop: CancellationToken,
    streams: Streams,
) -> Result<(), Failure>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let options = service.shared().options.clone();
    let first = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(()),
        first = tokio::time::timeout(options.header_within, recognise(io)) => first,
    };
    let (version, io) = first??;
    let io = TokioIo::new(Impatient::new(io, options.write_stall));
    let answer = service_fn(move |request| {
        let service = service.clone();
        async move { Ok::<_, Infallible>(service.answer(request).await) }
    });
    match version {
        Version::Http1 => {
            let connection = http1(&options).serve_connection(io, answer);
            let mut connection = pin!(connection);
            tokio::select! {
                biased;
                ended = connection.as_mut() => return Ok(ended?),
                () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
            }
            Ok(connection.await?)
        }
        Version::Http2 => {
            let connection = http2(&options, streams.clone()).serve_connection(io, answer);
            let mut connection = pin!(connection);
            // An idle HTTP/2 connection has the same time for its next request as one of HTTP/1.1.
            tokio::select! {
                biased;
                ended = connection.as_mut() => return Ok(ended?),
                () = stop.cancelled() => {}
                () = streams.idle(options.header_within) => {}
            }
            connection.as_mut().graceful_shutdown();
            // Requests that arrived meanwhile are answered. The peer may never acknowledge the end
            // of the connection, so it is not waited for.
            tokio::select! {
                biased;
                ended = connection.as_mut() => Ok(ended?),
                () = streams.idle(options.header_within) => Ok(()),
            }
        }
    }
}

fn http1(options: &Options) -> http1::Builder {
    let mut http = http1::Builder::new();
    // hyper needs a timer for its timeout.
    http.timer(TokioTimer::new())
        .header_read_timeout(options.header_within)
        .max_headers(options.headers)
        .max_buf_size(options.header_bytes.max(8 << 10))
        // The end of the connection cancels its request. (`pipeline_flush` is not set: it would
        // delay events while further input is waiting.)
        .half_close(false);
    http
}

fn http2(options: &Options, streams: Streams) -> http2::Builder<Streams> {
    let mut http = http2::Builder::new(streams);
    let header_bytes = u32::try_from(options.header_bytes).unwrap_or(u32::MAX);
    // Twice as many streams as handlers, so that a request too many gets an answer.
    let most = options.in_flight_per_connection.saturating_mul(2);
    http.timer(TokioTimer::new())
        .keep_alive_interval(options.keep_alive)
        .keep_alive_timeout(options.keep_alive)
        .max_header_list_size(header_bytes)
        .max_send_buf_size(64 << 10)
        .max_concurrent_streams(u32::try_from(most).unwrap_or(u32::MAX));
    http
}
