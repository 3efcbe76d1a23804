//! What an engine is told before it begins.

use std::time::Duration;

use crate::types::{
    CacheScope, ClientCapabilities, Implementation, ProtocolVersion, ServerCapabilities,
};

/// Which side we are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// We opened the conversation.
    Client,
    /// We were spoken to.
    Server,
}

/// How messages travel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Wire {
    /// One exchange carries everything, in order: stdio, a socket, memory.
    Pipe,
    /// Streamable HTTP: each POST, and each GET stream, is an exchange of its own.
    Http,
    /// The transport of 2024-11-05: all that a server says comes on one stream, all that a client
    /// says goes out in POSTs, which can overtake each other. To a client each POST is an exchange;
    /// a server sees a single one.
    EventStream,
}

impl Wire {
    /// Whether one stream carries all that a server says, so that its end is the end of everything.
    pub(super) fn has_one_stream(self) -> bool {
        self != Self::Http
    }
}

/// Who we are, as the other side gets to know it. It settles the [`Role`].
#[derive(Clone, Debug)]
pub enum Identity {
    /// A client.
    Client {
        /// Its name and version.
        info: Implementation,
        /// What it can do.
        capabilities: ClientCapabilities,
    },
    /// A server.
    Server {
        /// Its name and version.
        info: Implementation,
        /// What it can do.
        capabilities: ServerCapabilities,
        /// How to make good use of it, for the model.
        instructions: Option<String>,
        /// For how many milliseconds a modern client may keep this.
        ttl_ms: u64,
        /// Who may share it.
        cache_scope: CacheScope,
    },
}

/// What an engine is told before it begins. The defaults are those of the documentation; whoever
/// wants less says so.
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
    /// Who we are.
    pub identity: Identity,
    /// How messages travel.
    pub wire: Wire,
    /// The revisions we speak, our favourite first.
    pub versions: Vec<ProtocolVersion>,
    /// The legacy revision in which the conversation counts as opened, without `initialize`. Servers
    /// only: one without sessions sees each POST by itself, and takes the header's word for it.
    pub opened_in: Option<ProtocolVersion>,
    /// Result types of extensions that we understand.
    pub result_types: Vec<String>,
    /// The deadlines of a call that does not set its own.
    pub deadlines: Deadlines,
    /// How much is too much.
    pub limits: Limits,
    /// How long things may take that are not calls.
    pub timeouts: Timeouts,
}

impl Config {
    /// For a client.
    pub fn client(info: Implementation, capabilities: ClientCapabilities, wire: Wire) -> Self {
        Self::new(Identity::Client { info, capabilities }, wire)
    }

    /// For a server.
    pub fn server(info: Implementation, capabilities: ServerCapabilities, wire: Wire) -> Self {
        let identity = Identity::Server {
            info,
            capabilities,
            instructions: None,
            ttl_ms: 0,
            cache_scope: CacheScope::Private,
        };
        let mut config = Self::new(identity, wire);
        // A server that drains has had its time; this is for what the handlers said last.
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

    /// Which side we are.
    pub fn role(&self) -> Role {
        match self.identity {
            Identity::Client { .. } => Role::Client,
            Identity::Server { .. } => Role::Server,
        }
    }
}

/// When a call gives up. `None` has to be said (**deadline-covers-all**).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Deadlines {
    /// Without progress.
    pub idle: Option<Duration>,
    /// In all.
    pub total: Option<Duration>,
}

impl Deadlines {
    /// A call that never gives up by itself.
    pub const NONE: Self = Self {
        idle: None,
        total: None,
    };
}

impl Deadlines {
    /// Those of a call of this method, if these are configured: a listen never gives up, and a
    /// person who fills in a form shows no progress.
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

/// What one call says about one of its deadlines.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Wait {
    /// Nothing: it is as configured, for its method.
    #[default]
    AsConfigured,
    /// So long and no longer.
    AtMost(Duration),
    /// For ever.
    Forever,
}

impl Wait {
    /// What it comes to, if this is configured.
    pub fn or(self, configured: Option<Duration>) -> Option<Duration> {
        match self {
            Self::AsConfigured => configured,
            Self::AtMost(span) => Some(span),
            Self::Forever => None,
        }
    }
}

/// How much is too much (**bounded**). Each has its typed refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Handlers running at once, those that are being stopped included.
    pub handlers: usize,
    /// Listens open at once; they do not count as handlers.
    pub listens: usize,
    /// Blocking handlers whose threads run at once, those that nobody waits for any more included.
    /// Whoever starts the threads sees to it.
    pub blocking: usize,
    /// Calls of ours in flight at once.
    pub calls: usize,
    /// Bytes of calls and notifications waiting to be written: on an exchange for a server, in all
    /// for a client. Answers have a budget of the same size of their own. While that is used up, a
    /// server on a pipe and a client on HTTP take no more messages, a server on HTTP refuses
    /// requests, and a client on a pipe, which must go on reading, closes the link as
    /// [`LossKind::Flooded`](super::LossKind::Flooded).
    pub queued_bytes: usize,
    /// Answers waiting to be written. While there are more, the same happens, but that a client on a
    /// pipe closes the link only for their bytes.
    pub queued_answers: usize,
    /// Bytes of one message that we send.
    pub message_bytes: usize,
    /// Bytes of one message that we accept: 16 MiB for a client, 4 MiB for a server. Whoever reads
    /// sees to it.
    pub received_bytes: usize,
    /// How deep the JSON of a message may be nested. Whoever reads sees to it.
    pub depth: usize,
    /// Cancels remembered for requests that have not come yet, and as many requests that are over.
    /// Servers on legacy HTTP and on event streams only.
    pub early_cancels: usize,
    /// Bytes that the peer can make us keep on one connection: requests until they are over, and what
    /// a client has subscribed to. Whoever reads sees to it. On HTTP, where clients come
    /// and go, the server has one such limit for all of them.
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

/// How long things may take that are not calls.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Timeouts {
    /// For the answer to the era probe, before a server on a pipe is taken for a legacy one.
    pub probe: Duration,
    /// For the answer to `initialize`.
    pub initialize: Duration,
    /// For a cancel's POST, the rest of its request's POST included. Legacy HTTP and event streams
    /// only.
    pub cancel_post: Duration,
    /// After a request was fully written, its cancel waits so long for the response head. Many
    /// servers ignore a cancel that overtakes its request. Legacy HTTP and event streams only.
    pub response_head: Duration,
    /// After the response head has come, a cancel waits so long: some servers send the head before
    /// they begin with the request. Legacy HTTP and event streams only.
    pub after_head: Duration,
    /// For each POST of any other notification or answer.
    pub other_post: Duration,
    /// For a broken stream to come back before its request counts as cancelled; `None` is for
    /// ever. Legacy HTTP servers only.
    pub resume_window: Option<Duration>,
    /// For which a cancel waits for a request that has not come yet. Servers on legacy HTTP and on
    /// event streams only.
    pub early_cancel: Duration,
    /// For a handler to clean up in, once it has taken its token and not said otherwise.
    pub handler_grace: Duration,
    /// For running handlers to finish in, when a server is closed.
    pub drain: Duration,
    /// For stopped handlers to clean up in, when a server is closed.
    pub shutdown_grace: Duration,
    /// For what waits to be written, cancels above all, when a link is closed. Half a second for
    /// a server.
    pub flush: Duration,
    /// For answers that wait to be written when the input of a server has ended, or its writer is
    /// gone: each byte that is taken begins it anew, since somebody reads.
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
