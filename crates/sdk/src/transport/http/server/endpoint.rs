//! What a server on HTTP is told before it begins.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use super::access::Names;
use super::events::{EventStore, MemoryEvents};
use super::service::HttpService;
use super::shared::Shared;
use crate::server::Server;

/// A server as a service of hyper's or axum's, with all that is usual; see [`Endpoint`] for what is
/// not.
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

/// A server on HTTP, and how it behaves there.
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

/// How a server on HTTP behaves.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub(super) names: Names,
    /// Where Streamable HTTP is served; `None` is everywhere.
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
    /// A server with the defaults: it answers to the names of this machine alone.
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

    /// Answers to this name, `host` or `host:port`, and to no other that was not said. Without any,
    /// it answers to `localhost` and loopback addresses. What is no name of a host is a mistake that
    /// [`Endpoint::bind`] tells of, and that nobody is let in by.
    pub fn allow_host(mut self, host: &str) -> Self {
        self.options.names.allow_host(host);
        self
    }

    /// Lets pages of this origin speak to it, such as `https://app.example.com`. Those of its own
    /// names always may; those of any other are refused with 403.
    ///
    /// Browsers are told so: what they ask beforehand is answered, and pages of these origins can
    /// read every answer (CORS). A layer in front of the service need not do that.
    pub fn allow_origin(mut self, origin: &str) -> Self {
        self.options.names.allow_origin(origin);
        self
    }

    /// Serves at this path alone. By default that is `/mcp` for a server that runs by itself, and every
    /// path for a service that somebody else routes to.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.options.path = Some(path.into());
        self
    }

    /// Serves the transport of 2024-11-05 beside the others, at `/sse` and `/messages`.
    pub fn sse(mut self, sse: bool) -> Self {
        self.options.sse = sse;
        self
    }

    /// Gives legacy clients no sessions: each POST is served by itself, nothing is resumed, and the
    /// end of a stream is the end of its request. For servers behind a load balancer that does not
    /// keep clients where they were.
    pub fn sessionless(mut self) -> Self {
        self.options.sessionless = true;
        self
    }

    /// Serves `/healthz`, which says 200 until the server shuts down, and `/metrics`, for Prometheus.
    /// Both are for whoever may speak to the server at all.
    pub fn with_metrics(mut self) -> Self {
        self.options.with_metrics = true;
        self
    }

    /// How many legacy sessions and event streams there may be. One more is refused with 503, unless
    /// a session that was opened and never used can make room for it.
    pub fn sessions(mut self, limit: usize) -> Self {
        self.options.sessions = limit;
        self
    }

    /// After how long an unused legacy session is over. One that works on something is in use.
    pub fn session_idle(mut self, span: Duration) -> Self {
        self.options.session_idle = bearable(span);
        self
    }

    /// How many handlers may run at once in all. One more is refused with 503.
    pub fn in_flight(mut self, limit: usize) -> Self {
        self.options.in_flight = permits(limit);
        self
    }

    /// How many handlers may run at once for one connection. One more is refused with 429.
    pub fn in_flight_per_connection(mut self, limit: usize) -> Self {
        self.options.in_flight_per_connection = permits(limit);
        self
    }

    /// After how long an answer becomes a stream, so that whoever waits sees that something lives.
    pub fn stream_after(mut self, span: Duration) -> Self {
        self.options.stream_after = bearable(span);
        self
    }

    /// After how much silence at most something is said on a stream.
    pub fn keep_alive(mut self, span: Duration) -> Self {
        self.options.keep_alive = bearable(span);
        self
    }

    /// How long the headers and the body of a request may take. The first is also how long a
    /// connection may be open without a request: from its beginning, and from the end of the last
    /// one.
    pub fn read_timeouts(mut self, headers: Duration, body: Duration) -> Self {
        self.options.header_within = bearable(headers);
        self.options.body_within = bearable(body);
        self
    }

    /// After how long a connection is closed whose other side reads nothing. On HTTP/2 a stream that
    /// nobody reads is reset after the same time, and the others on its connection go on.
    pub fn write_stall(mut self, span: Duration) -> Self {
        self.options.write_stall = bearable(span);
        self
    }

    /// How many connections there may be, and how many HTTP requests may be open at once. One
    /// connection more waits until it is accepted, or is closed if its client has its share; one
    /// request more is refused with 503.
    pub fn connections(mut self, limit: usize) -> Self {
        self.options.connections = permits(limit);
        self
    }

    /// How many bytes clients can make this server keep in all; 256 MiB by default. That is
    ///
    /// - the bodies of requests, from their first byte until nobody needs them any more;
    /// - what was answered or said and is not read: what a handler says by the way waits for room,
    ///   and an answer that finds none is dropped, for an error that says so;
    /// - what is kept for legacy streams that break, a quarter of all, unless [`Endpoint::events`]
    ///   says where else that is, and what is said again when they come back;
    /// - what clients say of themselves, and the URIs of resources that they want to hear of.
    ///
    /// The first 8 KiB of each body, answer, listen or session do not count, so that small requests
    /// pass whatever the others weigh. What has no room is refused, with 503 or -31001.
    ///
    /// No client may hold more of this, or of any other limit, than it leaves to the others: one
    /// alone can have half of it, the next one half of what is left. So an answer larger than three
    /// eighths of this number is never delivered. A client is a [`Principal`](crate::Principal) if
    /// there is one, else an address; see [`Endpoint::reverse_proxy`] for those that stand for many.
    /// In a router of somebody else's, requests without a principal have no share: nobody knows whose
    /// they are.
    pub fn kept_bytes(mut self, limit: usize) -> Self {
        self.options.kept_bytes = limit;
        self
    }

    /// Requests from this address come from many clients: a reverse proxy is there. Then each of
    /// its connections counts as a client when limits are shared out, and not all of them as one.
    /// (That is so for connections from 127.0.0.1 and ::1 in any case.)
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

    /// Where events are kept for legacy streams that break. In memory by default: a quarter of
    /// [`Endpoint::kept_bytes`] in all, each for as long as a stream may be resumed.
    pub fn events(mut self, store: impl EventStore) -> Self {
        self.events = Some(Arc::new(store));
        self
    }

    /// As a service of hyper's or axum's.
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

/// For ever is ten years: what is longer cannot be added to a moment in time.
fn bearable(span: Duration) -> Duration {
    span.min(Duration::from_secs(10 * 365 * 24 * 3600))
}

/// Without a limit is with the largest that there can be.
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
