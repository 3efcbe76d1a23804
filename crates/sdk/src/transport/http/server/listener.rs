//! A server that runs by itself: accepts connections, and ends them in good order.

use std::convert::Infallible;
use std::future::Future;
use std::io;
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

/// After a shutdown, connections get so long to end by themselves.
const LAST_MOMENT: Duration = Duration::from_millis(300);

/// After accepting has failed, because there are no more descriptors for one, it is tried again.
const ACCEPT_AGAIN: Duration = Duration::from_millis(50);

/// Serves on HTTP until a signal says so.
///
/// Installs handlers for SIGTERM and SIGINT: the first begins an orderly shutdown, a second one ends
/// its drain.
///
/// ```no_run
/// # async fn example() -> std::io::Result<()> {
/// belay::http::serve("127.0.0.1:8000", belay::Server::new("example", "1.0.0")).await
/// # }
/// ```
///
/// # Cancel safety
///
/// Dropping it stops the handlers at once, without a drain.
#[cfg(unix)]
pub async fn serve(address: impl ToSocketAddrs, server: impl Into<Server>) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let _stderr = crate::server::guard_stderr();
    let mut listening = Endpoint::new(server).bind(address).await?;
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
    /// Serves at this address, in the background, HTTP/1.1 and HTTP/2. Must be called within a tokio
    /// runtime.
    ///
    /// An address that others can reach needs a name: see [`Endpoint::allow_host`].
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves nothing behind.
    pub async fn bind(self, address: impl ToSocketAddrs) -> io::Result<ServerHandle> {
        let listener = TcpListener::bind(address).await?;
        self.listen(listener)
    }

    /// The same on a socket that listens already.
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

/// A server that is running. Wait for it to know when it has ended.
///
/// # Cancel safety
///
/// Dropping it ends it: handlers are stopped at once, without a drain.
#[must_use = "dropping it ends the server"]
#[derive(Debug)]
pub struct ServerHandle {
    address: SocketAddr,
    service: HttpService,
    stop: CancellationToken,
    driver: JoinHandle<()>,
}

impl ServerHandle {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Begins an orderly shutdown: no more connections, running handlers may finish for a while,
    /// then they are stopped (**orderly-close**). Called again, it ends that while.
    pub fn shutdown(&self) {
        self.stop.cancel();
        self.service.shared().connections.end(Shutdown::Drain);
    }

    /// How many requests began, and how each ended.
    pub fn ledger(&self) -> Ledger {
        self.service.ledger()
    }

    /// The server behind it, for its numbers.
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
    /// Cancelled when the time of all connections is over.
    gone: CancellationToken,
    connections: TaskTracker,
}

impl Accepting {
    async fn run(self) {
        let room = Arc::new(Semaphore::new(self.service.shared().options.connections));
        loop {
            let next = async {
                // One too many waits in the backlog, where it costs us nothing.
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
        // Each link ends within its time; then connections have nothing left to carry.
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

/// Small answers leave at once, and a peer that has vanished is noticed.
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
            // What was sent and never arrived counts, too.
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
            // A connection without a stream has as long for its next request as one of HTTP/1.1.
            tokio::select! {
                biased;
                ended = connection.as_mut() => return Ok(ended?),
                () = stop.cancelled() => {}
                () = streams.idle(options.header_within) => {}
            }
            connection.as_mut().graceful_shutdown();
            // What was asked in the meantime is answered. But whether the other side has heard of
            // the end, only it can say: one that does not is not waited for.
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
    // A timeout needs a timer, which hyper does not have of its own.
    http.timer(TokioTimer::new())
        .header_read_timeout(options.header_within)
        .max_headers(options.headers)
        .max_buf_size(options.header_bytes.max(8 << 10))
        // The end of the connection is the end of whoever waits on it. (And events are flushed when
        // they are written, whatever else was sent to us: that is what `pipeline_flush` would spoil.)
        .half_close(false);
    http
}

fn http2(options: &Options, streams: Streams) -> http2::Builder<Streams> {
    let mut http = http2::Builder::new(streams);
    let header_bytes = u32::try_from(options.header_bytes).unwrap_or(u32::MAX);
    // Twice as many streams as handlers, so that one too many is told so.
    let most = options.in_flight_per_connection.saturating_mul(2);
    http.timer(TokioTimer::new())
        .keep_alive_interval(options.keep_alive)
        .keep_alive_timeout(options.keep_alive)
        .max_header_list_size(header_bytes)
        .max_send_buf_size(64 << 10)
        .max_concurrent_streams(u32::try_from(most).unwrap_or(u32::MAX));
    http
}
