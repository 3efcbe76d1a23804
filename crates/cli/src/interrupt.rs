//! Ctrl-C.

use std::future::Future;

use belay::Client;
use tokio::sync::watch;

use crate::exit::{self, Code};
use crate::output;
use crate::target::Connected;

/// Counts how often Ctrl-C was pressed: the first cancels on the wire and waits, the second kills.
pub(crate) struct Interrupt(watch::Receiver<usize>);

impl Interrupt {
    pub(crate) fn new() -> Self {
        let (pressed, count) = watch::channel(0);
        tokio::spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                pressed.send_modify(|count| *count += 1);
            }
        });
        Self(count)
    }

    pub(crate) async fn once(&self) {
        self.pressed(1).await;
    }

    /// Does something with a server until it is done, or somebody presses.
    pub(crate) async fn stops(
        &self,
        server: &Connected<'_>,
        doing: impl Future<Output = Code>,
    ) -> Code {
        let doing = async {
            tokio::select! {
                code = doing => code,
                () = self.once() => {
                    server.bar.clear();
                    interrupted(server.json())
                }
            }
        };
        self.ends(&server.client, doing).await
    }

    /// Does something with a server, and closes it; unless somebody presses twice.
    pub(crate) async fn ends(&self, client: &Client, doing: impl Future<Output = Code>) -> Code {
        let done = async {
            let code = doing.await;
            client.close().await;
            code
        };
        tokio::select! {
            code = done => code,
            () = self.pressed(2) => {
                client.kill().await;
                exit::INTERRUPTED
            }
        }
    }

    async fn pressed(&self, times: usize) {
        if self
            .0
            .clone()
            .wait_for(|count| *count >= times)
            .await
            .is_err()
        {
            // No signals can be had; then nobody presses.
            std::future::pending().await
        }
    }
}

/// Tells that it was interrupted, where that is not seen.
pub(crate) fn interrupted(json: bool) -> Code {
    if json {
        output::end("cancelled", "interrupted", true);
    }
    exit::INTERRUPTED
}
