//! `Endpoint`: the settings of a server on HTTP.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::access::Names;
use super::events::{EventStore, MemoryEvents};
use super::service::HttpService;
use super::shared::Shared;
use crate::server::Server;

/// Makes a service for hyper or axum, with default settings. For other settings use [`Endpoint`].
///
/// ```no_run
/// # fn example(server: belay::Server) {
/// let service = belay::http::service(server);
/// // axum: Router::new().route_service("/mcp", service)
/// # }
/// ```
pub fn service(server: impl Into<Server>) -> HttpService {
    Endpoint::new(server).service()
}

/// A server on HTTP, with its settings.
///
/// ```
/// use belay::Server;
/// use belay::http::Endpoint;
/// use std::time::Duration;
///
/// let service = Endpoint::new(Server::new("example", "1.0.0"))
///     .allow_host("mcp.example.com")
///     .session_idle(Duration::from_secs(60))
///     .service();
/// ```
#[must_use = "an endpoint does nothing until it serves"]
pub struct Endpoint {
    pub(super) server: Server,
    pub(super) options: Options,
    events: Option<Arc<dyn EventStore>>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<tokio_rustls::TlsAcceptor>,
}

/// The settings of a server on HTTP.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) names: Names,
    /// The path of Streamable HTTP, or `None` for every path.
    pub(super) path: Option<String>,
    pub(super) sse: bool,
    pub(super) sessionless: bool,
    pub(super) with_metrics: bool,
    pub(super) body_bytes: usize,
    pub(super) depth: usize,
    pub(super) body_within: Duration,
    pub(super) stream_after: Duration,
    pub(super) keep_alive: Duration,
    pub(super) sessions: usize,
    pub(super) session_idle: Duration,
    pub(super) in_flight: usize,
    pub(super) in_flight_per_connection: usize,
    pub(super) header_bytes: usize,
    pub(super) headers: usize,
    pub(super) header_within: Duration,
    pub(super) write_stall: Duration,
    pub(super) connections: usize,
    pub(super) kept_bytes: usize,
    pub(super) proxies: Vec<IpAddr>,
}

impl Endpoint {
    /// A server with default settings: it accepts only requests for localhost and
    /// loopback addresses.
    pub fn new(server: impl Into<Server>) -> Self {
        let server = server.into();
        let (body_bytes, depth) = server.reading_limits();
        Self {
            server,
            events: None,
            #[cfg(feature = "tls")]
            tls: None,
            options: Options {
                names: Names::default(),
                path: None,
                sse: false,
                sessionless: false,
                with_metrics: false,
                body_bytes,
                depth,
                body_within: Duration::from_secs(30),
                stream_after: Duration::from_millis(250),
                keep_alive: Duration::from_secs(15),
                sessions: 10_000,
                session_idle: Duration::from_secs(300),
                in_flight: 4096,
                in_flight_per_connection: 128,
                header_bytes: 32 << 10,
                headers: 64,
                header_within: Duration::from_secs(10),
                write_stall: Duration::from_secs(10),
                connections: 16 << 10,
                kept_bytes: 256 << 20,
                proxies: Vec::new(),
            },
        }
    }

    /// Accepts requests for this host, `host` or `host:port`. Without any allowed host, only
    /// `localhost` and loopback addresses are accepted. Invalid host names are reported by
    /// [`Endpoint::bind`] and never match.
    pub fn allow_host(mut self, host: &str) -> Self {
        self.options.names.allow_host(host);
        self
    }

    /// Accepts requests from pages of this origin, such as `https://app.example.com`. Origins of
    /// the server's own hosts are always accepted; others are refused with 403.
    ///
    /// CORS is handled: preflight requests are answered, and pages of these origins can read every
    /// response. A CORS layer in front of the service is not needed.
    pub fn allow_origin(mut self, origin: &str) -> Self {
        self.options.names.allow_origin(origin);
        self
    }

    /// Serves at this path only. The default is `/mcp` for a listening server, and every path for a
    /// service inside another router.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.options.path = Some(path.into());
        self
    }

    /// Also serves the HTTP+SSE transport of 2024-11-05, at `/sse` and `/messages`.
    pub fn sse(mut self, sse: bool) -> Self {
        self.options.sse = sse;
        self
    }

    /// Gives legacy clients no sessions: each POST is served on its own, nothing can be
    /// resumed, and the end of a stream is the end of its request. For servers behind a load
    /// balancer without session affinity.
    pub fn sessionless(mut self) -> Self {
        self.options.sessionless = true;
        self
    }

    /// Serves `/healthz`, which returns 200 until the server shuts down, and `/metrics`, for
    /// Prometheus. Both are available to every client that passes the host and origin checks.
    pub fn with_metrics(mut self) -> Self {
        self.options.with_metrics = true;
        self
    }

    /// Limits the number of open legacy sessions and event streams. Beyond it new ones are refused
    /// with 503, unless a session that was opened and never used can be closed instead.
    pub fn sessions(mut self, limit: usize) -> Self {
        self.options.sessions = limit;
        self
    }

    /// Sets the time after which an unused legacy session is closed. A session with
    /// a running request is in use.
    pub fn session_idle(mut self, span: Duration) -> Self {
        self.options.session_idle = bearable(span);
        self
    }

    /// Limits the handlers that run at once in total. Further requests are refused with 503.
    pub fn in_flight(mut self, limit: usize) -> Self {
        self.options.in_flight = permits(limit);
        self
    }

    /// Limits the handlers that run at once for one connection. Further requests
    /// are refused with 429.
    pub fn in_flight_per_connection(mut self, limit: usize) -> Self {
        self.options.in_flight_per_connection = permits(limit);
        self
    }

    /// Sets the delay before a pending response becomes an event stream, so that clients and
    /// proxies see a response head. 250 ms by default.
    pub fn stream_after(mut self, span: Duration) -> Self {
        self.options.stream_after = bearable(span);
        self
    }

    /// Sets the longest silence on an event stream before a keep-alive comment is
    /// sent. 15 seconds by default.
    pub fn keep_alive(mut self, span: Duration) -> Self {
        self.options.keep_alive = bearable(span);
        self
    }

    /// Sets the timeouts for reading the headers and the body of a request. The first also
    /// limits how long a connection may be open without a request, from its start or from
    /// the end of the last request.
    pub fn read_timeouts(mut self, headers: Duration, body: Duration) -> Self {
        self.options.header_within = bearable(headers);
        self.options.body_within = bearable(body);
        self
    }

    /// Sets the time after which a connection is closed whose client reads nothing. On HTTP/2, a
    /// stream that is not read is reset after the same time, and the other streams go on.
    pub fn write_stall(mut self, span: Duration) -> Self {
        self.options.write_stall = bearable(span);
        self
    }

    /// Limits the connections, and the HTTP requests that are open at once. Further
    /// connections wait to be accepted, or are closed if their client has used its share;
    /// further requests are refused with 503.
    pub fn connections(mut self, limit: usize) -> Self {
        self.options.connections = permits(limit);
        self
    }

    /// Sets the memory budget for data that clients cause the server to keep; 256
    /// MiB by default. It covers
    ///
    /// - the bodies of requests, until they are no longer used;
    /// - responses and notifications that are not read yet: notifications of a handler wait for
    ///   room, and a response that finds none is replaced by an error that says so;
    /// - the stored events of legacy streams, a quarter of the budget, unless [`Endpoint::events`]
    ///   sets another store, and the events that are replayed;
    /// - the introductions of clients, and the URIs of their subscriptions.
    ///
    /// The first 8 KiB of each body, response, subscription or session are free, so that small
    /// requests pass under any load. What exceeds the budget is refused, with 503 or -31001.
    ///
    /// No client can use up this limit, or any other: a single one can have half of it, the next
    /// one half of the rest. So a response larger than three eighths of the budget is never
    /// delivered. A client is a [`Principal`](crate::Principal) if there is one, else an address;
    /// see [`Endpoint::reverse_proxy`] for addresses with many clients. Inside another router,
    /// requests without a principal have no share, because their client is unknown.
    pub fn kept_bytes(mut self, limit: usize) -> Self {
        self.options.kept_bytes = limit;
        self
    }

    /// Declares that requests from this address come from many clients, through a reverse proxy.
    /// Each connection from it then counts as a client of its own when limits are shared.
    /// (Connections from 127.0.0.1 and ::1 always do.)
    ///
    /// ```
    /// # use belay::{Server, http::Endpoint};
    /// let endpoint = Endpoint::new(Server::new("example", "1.0.0"))
    ///     .reverse_proxy("10.0.0.1".parse().unwrap());
    /// ```
    pub fn reverse_proxy(mut self, address: IpAddr) -> Self {
        self.options.proxies.push(address.to_canonical());
        self
    }

    /// Sets the store for the events of legacy streams, which can be resumed from it. By
    /// default they are in memory, within a quarter of [`Endpoint::kept_bytes`], for as
    /// long as a stream can be resumed.
    pub fn events(mut self, store: impl EventStore) -> Self {
        self.events = Some(Arc::new(store));
        self
    }

    /// Makes a service for hyper or axum.
    pub fn service(self) -> HttpService {
        HttpService::new(self.shared())
    }

    pub(super) fn shared(mut self) -> Arc<Shared> {
        let window = self.server.resume_window();
        let events = self.events.unwrap_or_else(|| {
            let span = window.unwrap_or(Duration::MAX);
            let limit = self.options.kept_bytes / 4;
            self.options.kept_bytes -= limit;
            Arc::new(MemoryEvents::new(limit, span))
        });
        Shared::new(self.server, self.options, events)
    }
}

/// At most ten years: a longer span could overflow when it is added to an instant.
fn bearable(span: Duration) -> Duration {
    span.min(Duration::from_secs(10 * 365 * 24 * 3600))
}

/// At most what a semaphore can hold, which stands for no limit.
fn permits(limit: usize) -> usize {
    limit.min(tokio::sync::Semaphore::MAX_PERMITS)
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint")
            .field("server", &self.server)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}
