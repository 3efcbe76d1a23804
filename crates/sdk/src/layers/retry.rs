//! Retries of calls, where a repetition is harmless.

use std::collections::HashMap;
use std::time::Duration;

use belay_protocol::jsonrpc::RawJson;
use belay_protocol::types::{
    CallTool, CallToolParams, ListTools, ListToolsResult, Request, ToolAnnotations, error_code,
};

use crate::layers::{CallRequest, ClientLayer, LayerFuture, NextCall};
use crate::sync::Mutex;
use crate::{Error, ErrorKind};

/// Retries a call that was lost, or refused because of overload, where a repetition is
/// harmless (**retry-is-explicit**):
///
/// - nothing of it was sent, or the server says that it did not begin it (-31001, -31002); or
/// - the method is a list or a ping, or the tool's hints say that it is read-only or
///   idempotent. The layer learns the hints from the lists of tools that pass through it; a
///   tool that it has not seen is not retried.
///
/// A call that was cancelled, or whose deadline has passed, is not retried. All attempts
/// share the call's total deadline.
///
/// On its own it helps with overload. For a server that dies, the client must also be supervised.
///
/// ```
/// use belay::Client;
/// use belay::layers::Retry;
///
/// let builder = Client::builder("host", "1.0.0").layer(Retry::new(3));
/// ```
#[derive(Debug)]
#[must_use = "it does nothing until a client is given it"]
pub struct Retry {
    times: u32,
    first_delay: Duration,
    longest_delay: Duration,
    /// Whether each known tool can be repeated harmlessly.
    harmless: Mutex<HashMap<String, bool>>,
}

/// The most tools that are remembered.
const NAMES: usize = 10_000;

impl Retry {
    /// Retries up to this many times, with a backoff of 100 ms that doubles up to 5 s.
    pub fn new(times: u32) -> Self {
        Self {
            times,
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(5),
            harmless: Mutex::default(),
        }
    }

    /// Sets the backoff: `first` before the first retry, doubled each time, up to `longest`. A
    /// server can ask for a longer delay, up to `longest`.
    pub fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        self.first_delay = first;
        self.longest_delay = longest;
        self
    }

    fn may_repeat(&self, request: &CallRequest, error: &Error) -> bool {
        let refused = error.refusal().map(|refusal| refusal.code);
        match (error.kind(), refused) {
            (ErrorKind::Refused, Some(code)) => {
                matches!(code, error_code::OVERLOADED | error_code::SHUTTING_DOWN)
            }
            (ErrorKind::Lost, _) => error.safe_to_retry() || self.is_harmless(request),
            _ => false,
        }
    }

    fn is_harmless(&self, request: &CallRequest) -> bool {
        match &*request.method {
            CallTool::METHOD => {
                let call: Result<CallToolParams, _> = request.params.decode();
                let harmless = self.harmless.lock();
                call.is_ok_and(|call| harmless.get(&call.name).copied().unwrap_or(false))
            }
            method => method.ends_with("/list") || method == "ping",
        }
    }

    /// Learns the hints from a list of tools.
    fn learn(&self, result: &RawJson) {
        let Ok(page) = result.decode::<ListToolsResult>() else {
            return;
        };
        let mut harmless = self.harmless.lock();
        for tool in page.tools {
            // A server can invent names, so tools beyond the limit are not retried.
            if harmless.len() >= NAMES && !harmless.contains_key(&tool.name) {
                continue;
            }
            let hints = tool.annotations.as_ref();
            harmless.insert(tool.name, hints.is_some_and(says_harmless));
        }
    }
}

/// The delay that the server asks for, or zero.
fn asked_to_wait(error: &Error) -> Duration {
    let data = error.refusal().and_then(|refusal| refusal.data.as_ref());
    let millis = data.and_then(|data| data.field("retryAfterMs"));
    let millis = millis.and_then(|millis| millis.decode().ok());
    Duration::from_millis(millis.unwrap_or(0))
}

fn says_harmless(hints: &ToolAnnotations) -> bool {
    hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true)
}

impl ClientLayer for Retry {
    fn call<'a>(
        &'a self,
        request: CallRequest,
        next: NextCall<'a>,
    ) -> LayerFuture<'a, Result<RawJson, Error>> {
        Box::pin(async move {
            let mut delay = self.first_delay;
            for left in (0..=self.times).rev() {
                match next.run(request.clone()).await {
                    Ok(result) => {
                        if &*request.method == ListTools::METHOD {
                            self.learn(&result);
                        }
                        return Ok(result);
                    }
                    Err(error) if left == 0 || !self.may_repeat(&request, &error) => {
                        return Err(error);
                    }
                    Err(error) => {
                        // The server's delay is capped, so that it cannot stall the call.
                        let asked = asked_to_wait(&error).min(self.longest_delay);
                        let wait = delay.max(asked);
                        tracing::debug!(%error, method = %request.method, "again in {wait:?}");
                        tokio::time::sleep(wait).await;
                    }
                }
                delay = delay.saturating_mul(2).min(self.longest_delay);
            }
            unreachable!("the last time returns")
        })
    }
}
