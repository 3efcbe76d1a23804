//! The state that all requests of a server share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay_protocol::engine::{Config, Ledger, Shutdown, Wire};
use belay_protocol::types::{Era, ProtocolVersion};
use http::StatusCode;
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

use super::endpoint::Options;
use super::event_stream::EventStreams;
use super::events::EventStore;
use super::peers::Peers;
use super::refusal::Refusal;
use super::sessions::Sessions;
use super::shared_timer::SharedTimer;
use crate::Principal;
use crate::driver::{App, Link, Peer, Pool, Pools, Surroundings};
use crate::server::{Connections, Server, Tools};

pub(super) struct Shared {
    tools: Tools,
    pub(super) app: Arc<dyn App>,
    pub(super) options: Options,
    pub(super) events: Arc<dyn EventStore>,
    pub(super) sessions: Sessions,
    pub(super) event_streams: EventStreams,
    pub(super) tasks: TaskTracker,
    /// The timer after which a response becomes a stream.
    pub(super) head_timer: Arc<SharedTimer>,
    /// The peers, among which the limits are shared.
    pub(super) peers: Peers,
    /// The engines' configurations, made once.
    configs: Configs,
    pub(super) connections: Connections,
    streams: Arc<AtomicUsize>,
}

struct Configs {
    modern: Arc<Config>,
    legacy: Arc<Config>,
    event_stream: Arc<Config>,
    /// For POSTs of legacy clients without a session, by protocol version.
    alone: HashMap<ProtocolVersion, Arc<Config>>,
}

impl Shared {
    pub(super) fn new(server: Server, options: Options, events: Arc<dyn EventStore>) -> Arc<Self> {
        let config = server.config(Wire::Http);
        let legacy = ProtocolVersion::ALL
            .into_iter()
            .filter(|version| version.era() == Era::Legacy);
        let alone = legacy.map(|version| {
            let mut config = config.clone();
            config.opened_in = Some(version);
            // Without a session, a stream cannot be resumed.
            config.timeouts.resume_window = Some(Duration::ZERO);
            (version, Arc::new(config))
        });
        let tasks = TaskTracker::new();
        let pools = Pools::new(|pool| match pool {
            Pool::Bytes => options.kept_bytes,
            Pool::Handlers => options.in_flight,
            Pool::Listens => config.limits.listens,
            Pool::Blocking => config.limits.blocking,
            Pool::Sessions => options.sessions,
            // On HTTP/1.1 each connection has at most one open request.
            Pool::Requests | Pool::Connections => options.connections,
        });
        Arc::new(Self {
            head_timer: SharedTimer::new(options.stream_after, tasks.clone()),
            peers: Peers::new(pools, options.proxies.clone()),
            tasks,
            app: server.app(),
            configs: Configs {
                alone: alone.collect(),
                modern: Arc::new(config.clone()),
                legacy: Arc::new(config.clone()),
                event_stream: Arc::new(server.config(Wire::EventStream)),
            },
            connections: server.connections(),
            tools: server.known_tools(),
            options,
            events,
            sessions: Sessions::default(),
            event_streams: EventStreams::default(),
            streams: Arc::default(),
        })
    }

    /// The link of a modern POST.
    pub(super) fn modern_link(&self, caller: &Caller) -> Arc<Link> {
        self.link(&self.configs.modern, caller, true)
    }

    /// The link of a legacy client's POST without a session.
    pub(super) fn lone_link(&self, version: ProtocolVersion, caller: &Caller) -> Arc<Link> {
        let config = self.configs.alone.get(&version);
        self.link(config.unwrap_or(&self.configs.legacy), caller, true)
    }

    /// The link of a legacy session, which outlives the connection on which it was opened.
    pub(super) fn session_link(&self, caller: &Caller) -> Arc<Link> {
        self.link(&self.configs.legacy, &caller.without_connection(), false)
    }

    /// The link of an event stream of 2024-11-05.
    pub(super) fn event_stream_link(&self, caller: &Caller) -> Arc<Link> {
        self.link(
            &self.configs.event_stream,
            &caller.without_connection(),
            false,
        )
    }

    /// A link. The link of a single request runs its handler in the task that serves the request.
    fn link(&self, config: &Arc<Config>, caller: &Caller, runs_inline: bool) -> Arc<Link> {
        let surroundings = Surroundings {
            runs_inline,
            tasks: self.tasks.clone(),
            peer: Some(caller.peer.clone()),
            connection: caller.connection.clone(),
            stats: self.connections.stats(),
            principal: caller.principal.clone(),
        };
        Link::within(config.clone(), surroundings)
    }

    /// The registry of tools, for the headers that repeat arguments.
    pub(super) fn tools(&self) -> &Tools {
        &self.tools
    }

    /// Whether the server is not shutting down.
    pub(super) fn check_open(&self) -> Result<(), Refusal> {
        match self.connections.is_closing() {
            true => Err(Refusal::shutting_down()),
            false => Ok(()),
        }
    }

    /// Whether another request can be accepted.
    pub(super) fn check_room(&self) -> Result<(), Refusal> {
        self.check_open()?;
        if self.running() >= self.options.in_flight {
            let problem = "overloaded: too many requests are running; send it again later";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem));
        }
        Ok(())
    }

    /// The number of handlers, including those that are being stopped.
    pub(super) fn running(&self) -> usize {
        self.peers.pools().used(Pool::Handlers)
    }

    pub(super) fn streams(&self) -> usize {
        self.streams.load(Ordering::Relaxed)
    }

    /// Counts an open stream until the returned guard is dropped.
    pub(super) fn stream_opened(&self) -> OpenStream {
        self.streams.fetch_add(1, Ordering::Relaxed);
        OpenStream(self.streams.clone())
    }

    pub(super) fn ledger(&self) -> Ledger {
        self.connections.ledger()
    }
}

/// The caller of a request.
pub(super) struct Caller {
    /// The peer whose share is used.
    pub(super) peer: Arc<Peer>,
    pub(super) principal: Option<Principal>,
    /// The limit on handlers of the connection that the request came on.
    pub(super) connection: Option<Arc<Semaphore>>,
}

impl Caller {
    fn without_connection(&self) -> Self {
        Self {
            peer: self.peer.clone(),
            principal: self.principal.clone(),
            connection: None,
        }
    }
}

/// Shared by all clones of a service. When the last is dropped, handlers stop without a drain.
pub(super) struct Owner(pub(super) Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.connections.end(Shutdown::Now);
    }
}

/// The count of one open stream.
pub(super) struct OpenStream(Arc<AtomicUsize>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
