//! The configuration of an engine.

use std::time::Duration;

use crate::types::{
    CacheScope, ClientCapabilities, Implementation, ProtocolVersion, ServerCapabilities,
};

/// Which side this is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// This side opened the connection.
    Client,
    /// The peer opened the connection.
    Server,
}

/// How messages travel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wire {
    /// One exchange carries everything, in order: stdio, a socket, memory.
    Pipe,
    /// Streamable HTTP: each POST, and each GET stream, is an exchange of its own.
    Http,
    /// The transport of 2024-11-05: a server sends everything on one stream, a client sends
    /// everything in POSTs, which can overtake each other. To a client each POST is an exchange; a
    /// server sees a single one.
    EventStream,
}

impl Wire {
    /// Whether one stream carries everything that a server sends, so that its end closes the link.
    pub(super) fn has_one_stream(self) -> bool {
        self != Self::Http
    }
}

/// How this side introduces itself. It decides the [`Role`].
#[derive(Clone, Debug)]
pub enum Identity {
    /// A client.
    Client {
        /// Its name and version.
        info: Implementation,
        /// Its capabilities.
        capabilities: ClientCapabilities,
    },
    /// A server.
    Server {
        /// Its name and version.
        info: Implementation,
        /// Its capabilities.
        capabilities: ServerCapabilities,
        /// Instructions for the model on how to use the server.
        instructions: Option<String>,
        /// For how many milliseconds a modern client may cache the introduction.
        ttl_ms: u64,
        /// Who may share the cached introduction.
        cache_scope: CacheScope,
    },
}

/// The configuration of an engine. Every timeout and limit has a default.
///
/// ```
/// use belay_protocol::engine::{Config, Wire};
/// use belay_protocol::types::{ClientCapabilities, Implementation};
///
/// let me = Implementation::new("editor", "1.0.0");
/// let mut config = Config::client(me, ClientCapabilities::new(), Wire::Pipe);
/// config.limits.calls = 16;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The role, name, version and capabilities of this side.
    pub identity: Identity,
    /// How messages travel.
    pub wire: Wire,
    /// The protocol revisions this side supports, in order of preference.
    pub versions: Vec<ProtocolVersion>,
    /// The legacy revision in which an engine begins, without `initialize`. Servers only: a server
    /// without sessions handles each POST separately, and trusts the version header.
    pub opened_in: Option<ProtocolVersion>,
    /// Result types of extensions that this side understands.
    pub result_types: Vec<String>,
    /// The timeouts of calls that do not set their own.
    pub deadlines: Deadlines,
    /// Limits on queues, handlers, calls and messages.
    pub limits: Limits,
    /// Timeouts for everything except calls.
    pub timeouts: Timeouts,
}

impl Config {
    /// The default configuration of a client.
    pub fn client(info: Implementation, capabilities: ClientCapabilities, wire: Wire) -> Self {
        Self::new(Identity::Client { info, capabilities }, wire)
    }

    /// The default configuration of a server.
    pub fn server(info: Implementation, capabilities: ServerCapabilities, wire: Wire) -> Self {
        let identity = Identity::Server {
            info,
            capabilities,
            instructions: None,
            ttl_ms: 0,
            cache_scope: CacheScope::Private,
        };
        let mut config = Self::new(identity, wire);
        // Shorter than a client's: a server has drained before, so only the handlers' last messages
        // are left to flush.
        config.timeouts.flush = Duration::from_millis(500);
        config.limits.received_bytes = 4 << 20;
        config
    }

    fn new(identity: Identity, wire: Wire) -> Self {
        Self {
            identity,
            wire,
            versions: ProtocolVersion::ALL.to_vec(),
            opened_in: None,
            result_types: Vec::new(),
            deadlines: Deadlines::default(),
            limits: Limits::default(),
            timeouts: Timeouts::default(),
        }
    }

    /// Which side this is.
    pub fn role(&self) -> Role {
        match self.identity {
            Identity::Client { .. } => Role::Client,
            Identity::Server { .. } => Role::Server,
        }
    }
}

/// The timeouts of a call. `None` waits without limit and has to be set explicitly, since both have
/// a default (**deadline-covers-all**).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Deadlines {
    /// How long a call may go without progress.
    pub idle: Option<Duration>,
    /// How long a call may take in total.
    pub total: Option<Duration>,
}

impl Deadlines {
    /// No timeouts.
    pub const NONE: Self = Self {
        idle: None,
        total: None,
    };
}

impl Deadlines {
    /// The timeouts for this method, derived from `self`. A listen has none. A form has no idle
    /// timeout, since a person who fills it in shows no progress.
    pub fn of_method(self, method: &str) -> Self {
        super::rules::deadlines(method, self)
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            idle: Some(Duration::from_secs(60)),
            total: Some(Duration::from_secs(600)),
        }
    }
}

/// A call's own setting for one of its timeouts.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Wait {
    /// Use the configured timeout for the method.
    #[default]
    AsConfigured,
    /// Use this timeout.
    AtMost(Duration),
    /// Wait without limit.
    Forever,
}

impl Wait {
    /// The timeout to use, given the configured one.
    pub fn or(self, configured: Option<Duration>) -> Option<Duration> {
        match self {
            Self::AsConfigured => configured,
            Self::AtMost(span) => Some(span),
            Self::Forever => None,
        }
    }
}

/// Limits on queues, handlers, calls and messages (**bounded**). Each has a typed refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Handlers running at once, including those that are being stopped.
    pub handlers: usize,
    /// Listens open at once. They do not count as handlers.
    pub listens: usize,
    /// Blocking handlers whose threads run at once, including threads whose request is over.
    /// Enforced by the code that starts the threads.
    pub blocking: usize,
    /// Outgoing calls in flight at once.
    pub calls: usize,
    /// Bytes of calls and notifications waiting to be written: per exchange on a server, in total
    /// on a client. Answers have a separate budget of the same size. While that budget is used up,
    /// a server on a pipe and a client on HTTP pause reading, and a server on HTTP refuses
    /// requests. A client on a pipe must not pause, so it closes the link as
    /// [`LossKind::Flooded`](super::LossKind::Flooded).
    pub queued_bytes: usize,
    /// Answers waiting to be written. Above this number the same happens, except that a client on a
    /// pipe closes the link only for the bytes of its answers.
    pub queued_answers: usize,
    /// Size in bytes of one outgoing message.
    pub message_bytes: usize,
    /// Size in bytes of one incoming message: 16 MiB for a client, 4 MiB for a server. Enforced by
    /// the transport that reads.
    pub received_bytes: usize,
    /// Nesting depth of the JSON of a message. Enforced by the transport that reads.
    pub depth: usize,
    /// How many early cancels are remembered (their requests have not arrived yet), and as many ids
    /// of finished requests. Servers on legacy HTTP and on event streams only.
    pub early_cancels: usize,
    /// Bytes kept for the peer on one connection: requests until they are over, and a client's
    /// subscriptions. Enforced by the transport that reads. On HTTP, where clients come and go, one
    /// such limit covers all clients of the server.
    pub kept_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handlers: 128,
            listens: 1024,
            blocking: 64,
            calls: 4096,
            queued_bytes: 16 << 20,
            queued_answers: 1024,
            message_bytes: 16 << 20,
            received_bytes: 16 << 20,
            depth: 64,
            early_cancels: 64,
            kept_bytes: 64 << 20,
        }
    }
}

/// Timeouts for everything except calls.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Timeouts {
    /// For the answer to the era probe. After it, a server on a pipe or an event stream is taken
    /// for a legacy one.
    pub probe: Duration,
    /// For the answer to `initialize`.
    pub initialize: Duration,
    /// For posting a cancel, including the rest of its request's POST. Legacy HTTP and event
    /// streams only.
    pub cancel_post: Duration,
    /// How long a cancel waits for the response head, after its request was fully written. Many
    /// servers ignore a cancel that overtakes its request. Legacy HTTP and event streams only.
    pub response_head: Duration,
    /// How long a cancel waits after the response head has arrived: some servers send the head
    /// before they start on the request. Legacy HTTP and event streams only.
    pub after_head: Duration,
    /// For each POST of any other notification or answer.
    pub other_post: Duration,
    /// For a broken stream to be resumed before its request counts as cancelled. `None` waits
    /// without limit. Legacy HTTP servers only.
    pub resume_window: Option<Duration>,
    /// How long an early cancel is remembered for a request that has not arrived yet. Servers on
    /// legacy HTTP and on event streams only.
    pub early_cancel: Duration,
    /// For a stopped handler to clean up, if it took its cancellation token and set no grace of its
    /// own.
    pub handler_grace: Duration,
    /// For running handlers to finish when a server is closed.
    pub drain: Duration,
    /// For stopped handlers to clean up when a server is closed.
    pub shutdown_grace: Duration,
    /// For writing the remaining frames, above all cancels, when a link is closed. Half a second
    /// for a server.
    pub flush: Duration,
    /// For writing the remaining answers when the input of a server has ended, or its writer is
    /// gone. Each byte that the peer reads restarts it.
    pub last_answers: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            probe: Duration::from_secs(5),
            initialize: Duration::from_secs(60),
            cancel_post: Duration::from_secs(5),
            response_head: Duration::from_millis(250),
            after_head: Duration::from_millis(50),
            other_post: Duration::from_secs(30),
            resume_window: Some(Duration::from_secs(60)),
            early_cancel: Duration::from_secs(10),
            handler_grace: Duration::from_secs(1),
            drain: Duration::from_secs(1),
            shutdown_grace: Duration::from_secs(2),
            flush: Duration::from_secs(1),
            last_answers: Duration::from_secs(5),
        }
    }
}
