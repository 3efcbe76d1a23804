//! Connecting over HTTP, and finding out which era a server uses.
//!
//! ```text
//!   server/discover ── 400, 404, 405 ──► initialize ── 400, 404, 405 ──► GET, 2024-11-05
//! ```
//!
//! Only these statuses mean that a server does not know a method. A login page, a broken gateway or
//! a slow network says nothing about the era.

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
    /// Connects to a server over HTTP, of any era, including the event streams of 2024-11-05.
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
    /// Dropping the future leaves nothing behind; the handshake is never cancelled on the wire.
    pub async fn http(address: &str) -> Result<Self, Error> {
        ClientBuilder::default().http(address).await
    }
}

impl ClientBuilder {
    /// Adds a header to every HTTP request.
    ///
    /// # Panics
    ///
    /// If the name or the value is not valid in a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let name: HeaderName = name.parse().expect("a name of a header");
        let mut value = HeaderValue::from_str(value).expect("a value of a header");
        // It may be a credential, which must not be logged.
        value.set_sensitive(true);
        self.reach.headers.append(name, value);
        self
    }

    /// Sets the time limit for connecting to a server over HTTP. Ten seconds by default.
    pub fn connect_timeout(mut self, within: Duration) -> Self {
        self.reach.within = within;
        self
    }

    /// Connects to a server over HTTP.
    ///
    /// The server's era is detected and remembered for the next connection: modern, legacy, or the
    /// event streams of 2024-11-05. A legacy session that the server has forgotten is reopened:
    /// calls in flight are lost, and new ones wait.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind; the handshake is never cancelled on the wire.
    pub async fn http(mut self, address: &str) -> Result<Client, Error> {
        let address = Address::parse(address)?;
        // Any header may identify the user.
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
                // The server was not reached, so what is remembered may still be right.
                Err(error) if was_not_reached(&error) => return Err(error),
                // The server may have changed its era since.
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
                // If the server has no event stream either, the first error says more. If it has
                // one, the second error says what is wrong with it.
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
        // Some servers drop messages while no client listens.
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

/// The time for the server to answer the GET of a new session, before calls are made.
const LISTENS_WITHIN: Duration = Duration::from_millis(500);

/// A guard, and a token that is cancelled when the connection is fully torn down.
fn finish() -> (tokio_util::sync::DropGuard, CancellationToken) {
    let finished = CancellationToken::new();
    (finished.clone().drop_guard(), finished)
}

/// Whether there was no answer from the server itself.
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

/// Whether a server refused a request because it does not know the method.
fn does_not_know(error: &Error) -> bool {
    match error.outcome() {
        Some(Outcome::Lost { cause, .. }) => {
            matches!(cause.kind, LossKind::HttpStatus(400 | 404 | 405))
        }
        Some(Outcome::Refused(error)) => !belay_protocol::types::error_code::is_modern(error.code),
        _ => false,
    }
}

/// Reconnects to the same server.
struct Reopen {
    builder: ClientBuilder,
    address: Address,
}

impl Opener for Reopen {
    async fn open(&mut self) -> Result<Established, Error> {
        self.builder.find_out(&self.address).await
    }
}
