//! The token of a handler: fires once, and knows why.

use std::sync::{Arc, OnceLock};

use belay_protocol::engine::StopCause;
use tokio_util::sync::CancellationToken;

/// Fires when a handler should stop.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopToken {
    fired: CancellationToken,
    cause: Arc<OnceLock<StopCause>>,
}

impl StopToken {
    pub(crate) fn fire(&self, cause: StopCause) {
        let _ = self.cause.set(cause);
        self.fired.cancel();
    }

    pub(crate) fn token(&self) -> &CancellationToken {
        &self.fired
    }

    pub(crate) fn cause(&self) -> Option<&StopCause> {
        self.cause.get()
    }

    pub(crate) async fn fired(&self) -> StopCause {
        self.fired.cancelled().await;
        self.cause().cloned().unwrap_or(StopCause::Shutdown)
    }
}
