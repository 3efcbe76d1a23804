//! How a client finds out what a server speaks.
//!
//! ```text
//!   server/discover ── 400, 404, 405 ──► initialize ── 400, 404, 405 ──► GET, 2024-11-05
//! ```
//!
//! Only these statuses say that a server does not know what it was asked. A login page, a broken
//! gateway or a slow network says nothing about eras.

use std::sync::Arc;
use std::time::Duration;

use belay_protocol::engine::{LossKind, Mode, Outcome, Sent, Wire};
use belay_protocol::types::Era;
use http::header::{HeaderName, HeaderValue};
use tokio_util::sync::CancellationToken;

use super::address::{self, Address, Speaks};
use super::connect::Connections;
use super::post::Place;
use super::{carrier, event_stream};
use crate::Error;
use crate::client::supervise::{self, Opener, Supervision};
use crate::client::{Client, ClientBuilder, Established};
use crate::driver::{Driven, Link};

impl Client {
    /// Connects to a server on HTTP, whatever era it speaks, down to the event streams of 2024-11-05.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), belay::Error> {
    /// let client = belay::Client::http("http://localhost:8000/mcp").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves nothing behind; the handshake is never cancelled on the wire.
    pub async fn http(address: &str) -> Result<Self, Error> {
        ClientBuilder::default().http(address).await
    }
}

impl ClientBuilder {
    /// Sends a header with every HTTP request.
    ///
    /// # Panics
    ///
    /// If that is no header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a name of a header");
        let mut value = HeaderValue::from_str(value).expect("a value of a header");
        // It may be a credential.
        value.set_sensitive(true);
        self.reach.headers.append(name, value);
        self
    }

    /// How long it may take to reach a server on HTTP. Ten seconds by default.
    pub fn connect_timeout(mut self, within: Duration) -> Self {
        self.reach.within = within;
        self
    }

    /// Connects to a server on HTTP.
    ///
    /// What it speaks is found out, and remembered for the next time: the modern era, the legacy one,
    /// or the event streams of 2024-11-05. A legacy session that the server has forgotten is begun
    /// again; calls in flight are then lost, and new ones wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping it leaves nothing behind; the handshake is never cancelled on the wire.
    pub async fn http(mut self, address: &str) -> Result<Client, Error> {
        let address = Address::parse(address)?;
        // Any of them may say who asks.
        let mut credentials = Vec::new();
        for (name, value) in &self.reach.headers {
            for part in [name.as_str().as_bytes(), value.as_bytes()] {
                credentials.extend_from_slice(&part.len().to_be_bytes());
                credentials.extend_from_slice(part);
            }
        }
        self.at(&address.uri().to_string(), &credentials);
        let first = self.find_out(&address).await?;
        if first.version().era() == Era::Modern {
            return Ok(self.client(first));
        }
        let supervision = self.supervision.clone();
        let supervision = supervision.unwrap_or_else(Supervision::of_sessions);
        let opener = Reopen {
            builder: self.again(self.mode),
            address,
        };
        Ok(supervise::start(&self, supervision, first, opener))
    }

    async fn find_out(&self, address: &Address) -> Result<Established, Error> {
        if let (Mode::Auto, Some(speaks)) = (self.mode, address::recall(address)) {
            let opened = match speaks {
                Speaks::Modern => self.open_http(address, Mode::Auto).await,
                Speaks::Legacy => self.open_http(address, Mode::Legacy).await,
                Speaks::EventStream => self.open_event_stream(address).await,
            };
            match opened {
                // It was not reached, which says nothing.
                Err(error) if was_not_reached(&error) => return Err(error),
                // It may have become another one since.
                Err(_) => address::learn(address, None),
                opened => return opened,
            }
        }
        let opened = self.open_http(address, self.mode).await;
        let (opened, speaks) = match opened {
            Ok(opened) => {
                let speaks = match opened.version().era() {
                    Era::Modern => Speaks::Modern,
                    Era::Legacy => Speaks::Legacy,
                };
                (opened, speaks)
            }
            Err(error) if self.mode != Mode::Modern && does_not_know(&error) => {
                let opened = self.open_event_stream(address).await;
                // If it has no event stream either, the first error says more; if it has one, what is
                // wrong with that.
                let opened = opened.map_err(|second| match second.http_status() {
                    Some(_) => error,
                    None => second,
                })?;
                (opened, Speaks::EventStream)
            }
            Err(error) => return Err(error),
        };
        if self.mode == Mode::Auto {
            address::learn(address, Some(speaks));
        }
        Ok(opened)
    }

    async fn open_http(&self, address: &Address, mode: Mode) -> Result<Established, Error> {
        let link = Link::new(self.config(Wire::Http));
        let place = Arc::new(self.place(address, &link)?);
        let (gone, finished) = finish();
        let connected = link.connect(mode);
        let listens = place.listens.clone();
        let driving = carrier::drive(Driven(link.clone()), place, self.app(), gone);
        tokio::spawn(driving);
        let opened = self.opened(link, connected, None, Some(finished)).await?;
        // Some servers lose what they want to say while nobody listens.
        if opened.version().era() == Era::Legacy {
            let _ = tokio::time::timeout(LISTENS_WITHIN, listens.cancelled()).await;
        }
        Ok(opened)
    }

    async fn open_event_stream(&self, address: &Address) -> Result<Established, Error> {
        let link = Link::new(self.config(Wire::EventStream));
        let place = self.place(address, &link)?;
        let (longest, _) = place.limits;
        let opened = event_stream::open(address, &place.connections, longest).await;
        let opened = opened.map_err(|cause| {
            let sent = Sent::Never;
            Error::from(Outcome::Lost { cause, sent })
        })?;
        let (gone, finished) = finish();
        let connected = link.connect(Mode::Legacy);
        let driving = event_stream::drive(Driven(link.clone()), place, opened, self.app(), gone);
        tokio::spawn(driving);
        self.opened(link, connected, None, Some(finished)).await
    }

    fn place(&self, address: &Address, link: &Arc<Link>) -> Result<Place, Error> {
        if cfg!(not(feature = "tls")) && address.uri().scheme_str() == Some("https") {
            let problem = "https needs the feature `tls` of belay-mcp";
            return Err(Error::connect(problem, None));
        }
        let connections = Connections::new(&self.reach, link.tasks().clone())?;
        let limits = link.reading_limits();
        let tap = self.tap.clone();
        Ok(Place::new(address.clone(), connections, tap, limits))
    }
}

/// A server has so long to answer the GET of a new session before calls are made.
const LISTENS_WITHIN: Duration = Duration::from_millis(500);

/// Told when nothing is left of a connection.
fn finish() -> (tokio_util::sync::DropGuard, CancellationToken) {
    let finished = CancellationToken::new();
    (finished.clone().drop_guard(), finished)
}

/// Whether nothing was heard of a server.
fn was_not_reached(error: &Error) -> bool {
    match error.outcome() {
        Some(Outcome::Lost { cause, .. }) => {
            matches!(
                cause.kind,
                LossKind::Io | LossKind::HttpStatus(401 | 403 | 500..=599)
            )
        }
        Some(Outcome::TimedOut { .. }) | None => true,
        _ => false,
    }
}

/// Whether a server refused what it was asked because it does not know it.
fn does_not_know(error: &Error) -> bool {
    match error.outcome() {
        Some(Outcome::Lost { cause, .. }) => {
            matches!(cause.kind, LossKind::HttpStatus(400 | 404 | 405))
        }
        Some(Outcome::Refused(error)) => !belay_protocol::types::error_code::is_modern(error.code),
        _ => false,
    }
}

/// Opens a connection to the same server again.
struct Reopen {
    builder: ClientBuilder,
    address: Address,
}

impl Opener for Reopen {
    async fn open(&mut self) -> Result<Established, Error> {
        self.builder.find_out(&self.address).await
    }
}
