//! Propagation of trace context to calls.

use std::fmt;

use belay_protocol::jsonrpc::RawJson;

use crate::Error;
use crate::layers::{CallRequest, ClientLayer, LayerFuture, NextCall, TraceContext};

/// Says of each call which trace it belongs to, unless the call says so itself. Where that comes from,
/// the tracing system knows:
///
/// ```
/// use belay::layers::Propagate;
/// use belay::layers::TraceContext;
/// use belay::Client;
///
/// let builder = Client::builder("host", "1.0.0").layer(Propagate::new(|| {
///     // With OpenTelemetry: inject the current context with its propagator, and take what it says.
///     TraceContext::new("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01")
/// }));
/// ```
pub struct Propagate {
    current: Box<dyn Fn() -> Option<TraceContext> + Send + Sync>,
}

impl Propagate {
    /// A layer that asks `current` for the trace context of each call.
    pub fn new(current: impl Fn() -> Option<TraceContext> + Send + Sync + 'static) -> Self {
        Self {
            current: Box::new(current),
        }
    }
}

impl ClientLayer for Propagate {
    fn call<'a>(
        &'a self,
        mut request: CallRequest,
        next: NextCall<'a>,
    ) -> LayerFuture<'a, Result<RawJson, Error>> {
        if TraceContext::of(&request.meta).is_none()
            && let Some(context) = (self.current)()
        {
            context.put(&mut request.meta);
        }
        next.run(request)
    }
}

impl fmt::Debug for Propagate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Propagate")
    }
}
