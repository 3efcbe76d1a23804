//! Notifications of a handler to its client: progress and log messages.

use belay_protocol::jsonrpc::RawJson;
#[cfg(feature = "server")]
use belay_protocol::types::legacy::ElicitationCompleteParams;
use belay_protocol::types::{LoggingLevel, LoggingMessageParams, Notification};

use super::Context;

impl Context {
    /// Sends a progress notification to the caller. Progress that does not increase is not sent.
    ///
    /// It waits while the connection is full (backpressure), so that a handler
    /// cannot outrun its reader.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future either has sent the notification or has not; it is never sent in part.
    pub async fn progress(&self, progress: f64, total: impl Into<Option<f64>>, message: &str) {
        let message = Some(message).filter(|message| !message.is_empty());
        let key = self.inner.incoming.key;
        let said = self
            .inner
            .link
            .progress(key, progress, total.into(), message);
        // A handler that sends a lot must let other tasks run.
        tokio::task::coop::consume_budget().await;
        if let Err(error) = said.await {
            tracing::debug!(%error, "progress was not sent");
        }
    }

    /// Like [`Context::progress`] without waiting, for blocking handlers: if the
    /// queue is full, nothing is sent.
    pub fn progress_now(&self, progress: f64, total: impl Into<Option<f64>>, message: &str) {
        let message = Some(message).filter(|message| !message.is_empty());
        let key = self.inner.incoming.key;
        let link = &self.inner.link;
        if let Err(error) = link.progress_now(key, progress, total.into(), message) {
            tracing::debug!(%error, "progress was not sent");
        }
    }

    /// Sends a log message to the caller. A modern caller gets it only if its request asked for
    /// messages of this level; a legacy caller from the level on that it has set, or from `info`.
    ///
    /// # Cancel safety
    ///
    /// As with [`Context::progress`].
    pub async fn log(&self, level: LoggingLevel, message: impl Into<serde_json::Value>) {
        self.tell(LoggingMessageParams::new(level, message)).await;
    }

    /// Like [`Context::log`], with a logger name, such as a part of the server.
    ///
    /// ```
    /// use belay::types::LoggingLevel;
    ///
    /// async fn restock(cx: &belay::Context) {
    ///     cx.log_as("store", LoggingLevel::Warning, "low on tea").await;
    /// }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// As with [`Context::progress`].
    pub async fn log_as(
        &self,
        logger: impl Into<String>,
        level: LoggingLevel,
        message: impl Into<serde_json::Value>,
    ) {
        let mut params = LoggingMessageParams::new(level, message);
        params.logger = Some(logger.into());
        self.tell(params).await;
    }

    /// Tells the client that the person is done with a page that they were asked to visit.
    /// 2025-11-25 has a message for that. In other revisions nothing is said: there the client learns it
    /// from the answer to its request.
    ///
    /// ```
    /// use belay::input::InputError;
    /// use belay::Context;
    ///
    /// # async fn paid(_payment: &str) {}
    /// // Each time it is asked, the payment has another number.
    /// async fn pay(cx: &Context, payment: &str) -> Result<(), InputError> {
    ///     let page = format!("https://pay.example.com/{payment}");
    ///     cx.elicit_url("Please pay.", page).elicitation_id(payment).await?;
    ///     paid(payment).await;
    ///     cx.elicitation_complete(payment).await;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Cancel safety
    ///
    /// As with [`Context::progress`].
    #[cfg(feature = "server")]
    pub async fn elicitation_complete(&self, elicitation_id: impl Into<String>) {
        if self.version().names_visits() {
            self.notify(&ElicitationCompleteParams::new(elicitation_id))
                .await;
        }
    }

    async fn tell(&self, params: LoggingMessageParams) {
        if self.rules().wants_log(self, params.level) {
            self.notify(&params).await;
        }
    }

    async fn notify<N: Notification>(&self, params: &N) {
        if let Ok(params) = RawJson::encode(params) {
            self.say(N::METHOD, &params).await;
        }
    }

    /// Sends a notification on behalf of this request.
    pub(crate) async fn say(&self, method: &str, params: &RawJson) {
        let key = Some(self.inner.incoming.key);
        let said = self.inner.link.notify(key, method, Some(params));
        tokio::task::coop::consume_budget().await;
        if let Err(error) = said.await {
            tracing::debug!(%error, method, "a notification was not sent");
        }
    }
}
