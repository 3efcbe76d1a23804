//! The stop token of a handler, with the cause.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};

use belay_protocol::engine::StopCause;
use tokio_util::sync::CancellationToken;

/// Fires when a handler should stop.
///
/// The cancellation token is created on first use, because most handlers never take one.
#[derive(Debug, Default)]
pub(crate) struct StopToken {
    /// Set before the token is cancelled, so that a cancelled token always has a cause.
    cause: OnceLock<StopCause>,
    fires: OnceLock<CancellationToken>,
}

impl StopToken {
    pub(crate) fn fire(&self, cause: StopCause) {
        let _ = self.cause.set(cause);
        // `token` creates first and checks then, and this sets first and checks then. The fence
        // ensures that at least one of the two sees the other.
        fence(Ordering::SeqCst);
        if let Some(fires) = self.fires.get() {
            fires.cancel();
        }
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        let fires = self.fires.get_or_init(CancellationToken::new);
        fence(Ordering::SeqCst);
        if self.cause.get().is_some() {
            fires.cancel();
        }
        fires
    }

    pub(crate) fn cause(&self) -> Option<&StopCause> {
        self.cause.get()
    }

    pub(crate) async fn fired(&self) -> StopCause {
        self.token().cancelled().await;
        self.cause().cloned().unwrap_or(StopCause::Shutdown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_fires_whether_it_is_taken_before_or_after() {
        let (before, after) = (StopToken::default(), StopToken::default());
        let taken = before.token().clone();
        assert!(!taken.is_cancelled());
        before.fire(StopCause::Lost);
        after.fire(StopCause::Lost);
        assert!(taken.is_cancelled());
        assert!(after.token().is_cancelled());
        after.fire(StopCause::Shutdown);
        assert_eq!(
            after.cause(),
            Some(&StopCause::Lost),
            "the first cause stands"
        );
    }
}
