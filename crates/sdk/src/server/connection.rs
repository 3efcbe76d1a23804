//! A connection that is being served.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

use belay_protocol::engine::{Ledger, Loss, Shutdown};
use tokio::task::JoinHandle;

use crate::driver::Link;

/// A connection that is being served. Awaiting it returns why the connection ended.
///
/// # Cancel safety
///
/// Dropping it ends the connection: handlers are stopped at once, without a drain.
#[must_use = "dropping it ends the connection"]
#[derive(Debug)]
pub struct ServerConnection {
    pub(super) link: Arc<Link>,
    pub(super) driver: JoinHandle<()>,
}

impl ServerConnection {
    /// Begins an orderly shutdown: running handlers may finish within the drain time, then they are
    /// stopped (**orderly-close**). A second call ends the drain at once.
    pub fn shutdown(&self) {
        self.link.shutdown(Shutdown::Drain);
    }

    /// Whether a handler was abandoned because it never yields.
    #[cfg(all(feature = "stdio", unix))]
    pub(crate) fn is_stuck(&self) -> bool {
        self.link.is_stuck()
    }

    /// Counts of requests that began, and of how each ended.
    pub fn ledger(&self) -> Ledger {
        self.link.ledger()
    }

    /// The number of handlers that run or are being stopped.
    pub fn handlers(&self) -> usize {
        self.link.handlers()
    }
}

impl Future for ServerConnection {
    type Output = Loss;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Loss> {
        Pin::new(&mut self.driver)
            .poll(cx)
            .map(|_| self.link.closed_because())
    }
}

impl Drop for ServerConnection {
    fn drop(&mut self) {
        self.link.shutdown(Shutdown::Now);
    }
}
