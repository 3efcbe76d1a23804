//! Rate limits for the calls of tools.

use std::collections::HashMap;
use std::time::Duration;

use belay_protocol::jsonrpc::{ErrorObject, RawJson};
use belay_protocol::types::{CallTool, Request, error_code};
use tokio::time::Instant;

use crate::Context;
use crate::layers::{LayerFuture, Next, ServerLayer};
use crate::sync::Mutex;

/// Limits the rate of calls to each tool. A call above the limit is refused at once, with the
/// documented code for overload (-31001) and `retryAfterMs` in its data.
///
/// Tools are told apart by name, up to a thousand of them; further names share a bucket.
///
/// It is a token bucket: it starts full, each call takes one token, and it refills steadily.
///
/// ```
/// use belay::Server;
/// use belay::layers::RateLimit;
/// use std::time::Duration;
///
/// let second = Duration::from_secs(1);
/// let limit = RateLimit::new(100, Duration::from_secs(60))
///     .tool("ship", 5, second)
///     .method("completion/complete", 20, second);
/// let server = Server::new("orders", "1.0.0").layer(limit);
/// ```
#[derive(Debug)]
#[must_use = "it does nothing until a server is given it"]
pub struct RateLimit {
    rate: Rate,
    tools: HashMap<String, Rate>,
    methods: HashMap<String, Rate>,
    buckets: Mutex<HashMap<String, Bucket>>,
}

/// The most tools with a bucket of their own.
const NAMES: usize = 1000;

#[derive(Clone, Copy, Debug)]
struct Rate {
    calls: u32,
    span: Duration,
}

#[derive(Debug)]
struct Bucket {
    left: f64,
    at: Instant,
}

impl RateLimit {
    /// Allows this many calls of each tool within `span`.
    pub fn new(calls: u32, span: Duration) -> Self {
        Self {
            rate: Rate { calls, span },
            tools: HashMap::new(),
            methods: HashMap::new(),
            buckets: Mutex::default(),
        }
    }

    /// Sets a rate for one tool.
    pub fn tool(mut self, name: impl Into<String>, calls: u32, span: Duration) -> Self {
        self.tools.insert(name.into(), Rate { calls, span });
        self
    }

    /// Sets a rate for all requests of another method. By default other methods are not limited.
    pub fn method(mut self, method: impl Into<String>, calls: u32, span: Duration) -> Self {
        self.methods.insert(method.into(), Rate { calls, span });
        self
    }

    /// Takes a token from a bucket. If there is none, the error is the time until the next.
    fn take(&self, name: &str, rate: &Rate) -> Result<(), Option<Duration>> {
        let now = Instant::now();
        let mut buckets = self.buckets.lock();
        // A client can invent names, so those beyond the limit share a bucket.
        let name = match buckets.len() < NAMES || buckets.contains_key(name) {
            true => name,
            false => "",
        };
        let bucket = buckets.entry(name.to_owned()).or_insert(Bucket {
            left: f64::from(rate.calls),
            at: now,
        });
        rate.refill(bucket, now);
        match bucket.left >= 1.0 {
            true => {
                bucket.left -= 1.0;
                Ok(())
            }
            false => Err(rate.until_one(bucket)),
        }
    }
}

impl Rate {
    fn refill(self, bucket: &mut Bucket, now: Instant) {
        let passed = now.saturating_duration_since(bucket.at).as_secs_f64();
        let calls = f64::from(self.calls);
        let gained = calls * passed / self.span.as_secs_f64().max(f64::MIN_POSITIVE);
        bucket.left = (bucket.left + gained).min(calls);
        bucket.at = now;
    }

    /// The time until the next token; `None` if there will be none.
    fn until_one(self, bucket: &Bucket) -> Option<Duration> {
        let missing = (1.0 - bucket.left) / f64::from(self.calls);
        let wait = self.span.as_secs_f64() * missing;
        Duration::try_from_secs_f64(wait).ok()
    }
}

impl ServerLayer for RateLimit {
    fn handle<'a>(
        &'a self,
        cx: &'a Context,
        next: Next<'a>,
    ) -> LayerFuture<'a, Result<RawJson, ErrorObject>> {
        let (what, taken) = match cx.method() {
            CallTool::METHOD => {
                // Read as the dispatch reads it, so that both see the same name. A
                // missing name counts, too.
                let name = cx.params().and_then(|params| params.field("name"));
                let name = name.as_ref().and_then(RawJson::as_text).unwrap_or_default();
                let rate = self.tools.get(&*name).unwrap_or(&self.rate);
                ("this tool", self.take(&format!("tool {name}"), rate))
            }
            method => match self.methods.get(method) {
                Some(rate) => ("this", self.take(&format!("method {method}"), rate)),
                None => return next.run(),
            },
        };
        match taken {
            Ok(()) => next.run(),
            Err(wait) => Box::pin(std::future::ready(Err(refusal(what, wait)))),
        }
    }
}

fn refusal(what: &str, wait: Option<Duration>) -> ErrorObject {
    let Some(wait) = wait else {
        let problem = format!("overloaded: {what} may not be called");
        return ErrorObject::new(error_code::OVERLOADED, problem);
    };
    let problem = format!("overloaded: too many calls of {what}; again in {wait:.0?}");
    let mut error = ErrorObject::new(error_code::OVERLOADED, problem);
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let data = serde_json::json!({ "retryAfterMs": millis.saturating_add(1) });
    error.data = RawJson::encode(&data).ok();
    error
}
