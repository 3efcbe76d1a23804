//! Makes a call again, if that can do no harm.

use std::collections::HashMap;
use std::time::Duration;

use belay_protocol::jsonrpc::RawJson;
use belay_protocol::types::{
    CallTool, CallToolParams, ListTools, ListToolsResult, Request, ToolAnnotations, error_code,
};

use crate::layers::{CallRequest, ClientLayer, LayerFuture, NextCall};
use crate::sync::Mutex;
use crate::{Error, ErrorKind};

/// Makes a call again that was lost, or refused because the server was overloaded, if that can do no
/// harm (**retry-is-explicit**):
///
/// - nothing of it was sent, or the server says that it did not begin it (-31001, -31002); or
/// - it only reads: a list, or a tool whose hints say that it is read-only or idempotent. The layer
///   learns those from the lists of tools that pass by; a tool it has not seen is neither.
///
/// A call that somebody cancelled, or whose deadline has passed, is not made again. All attempts
/// share the call's total deadline.
///
/// On its own it helps with overload; for a server that dies it needs a client that is supervised.
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
    /// The tools that can be called again.
    harmless: Mutex<HashMap<String, bool>>,
}

/// So many tools are remembered.
const NAMES: usize = 10_000;

impl Retry {
    /// Makes a call again so many times, after 100 ms, 200 ms and so on up to 5 s.
    pub fn new(times: u32) -> Self {
        Self {
            times,
            first_delay: Duration::from_millis(100),
            longest_delay: Duration::from_secs(5),
            harmless: Mutex::default(),
        }
    }

    /// How long to wait before each time: `first`, and twice as long each time, up to `longest`. A server
    /// can ask for more than that, up to `longest`.
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

    /// Looks at a list of tools that passes by.
    fn learn(&self, result: &RawJson) {
        let Ok(page) = result.decode::<ListToolsResult>() else {
            return;
        };
        let mut harmless = self.harmless.lock();
        for tool in page.tools {
            // A server can make names up. Those that are too many are taken for harmful.
            if harmless.len() >= NAMES && !harmless.contains_key(&tool.name) {
                continue;
            }
            let hints = tool.annotations.as_ref();
            harmless.insert(tool.name, hints.is_some_and(says_harmless));
        }
    }
}

/// How long the server wants us to wait, if it says so.
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
                        // A server that wants too much patience does not get it.
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
