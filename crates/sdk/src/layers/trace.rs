//! A span for each request, which records how it ended.

use belay_protocol::jsonrpc::RawJson;
use tracing::{Instrument, Span};

/// A `tracing` span around each request, on either side, named after its method. The field `end` says
/// how it ended, whatever ended it: a handler that was dropped because its caller is gone leaves a
/// span that says so.
///
/// The names of the fields are those of OpenTelemetry's conventions for MCP where it has one.
///
/// ```
/// use belay::{Client, Server};
/// use belay::layers::Trace;
///
/// let server = Server::new("orders", "1.0.0").layer(Trace);
/// let client = Client::builder("host", "1.0.0").layer(Trace);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace;

/// The span of a request, with the fields that both sides have.
macro_rules! request_span {
    ($kind:literal, $method:expr) => {
        tracing::info_span!(
            "mcp",
            otel.kind = $kind,
            mcp.method.name = $method,
            mcp.protocol.version = tracing::field::Empty,
            jsonrpc.request.id = tracing::field::Empty,
            gen_ai.tool.name = tracing::field::Empty,
            end = tracing::field::Empty,
            error.type = tracing::field::Empty,
        )
    };
}

/// Records the end of a request, even if nobody is left to see it.
struct Ending<F: Fn() -> String> {
    span: Span,
    dropped: F,
    recorded: bool,
}

impl<F: Fn() -> String> Ending<F> {
    fn new(span: &Span, dropped: F) -> Self {
        Self {
            span: span.clone(),
            dropped,
            recorded: false,
        }
    }

    fn record(&mut self, end: &str) {
        self.span.record("end", end);
        self.recorded = true;
    }
}

impl<F: Fn() -> String> Drop for Ending<F> {
    fn drop(&mut self) {
        if !self.recorded {
            let end = (self.dropped)();
            self.record(&end);
        }
    }
}

fn tool_name(params: &RawJson) -> Option<String> {
    params.field("name")?.decode().ok()
}

#[cfg(feature = "server")]
mod server {
    use belay_protocol::engine::StopCause;
    use belay_protocol::jsonrpc::{ErrorObject, RawJson};

    use super::{Ending, Instrument, Trace, tool_name};
    use crate::{Context, LayerFuture, Next, ServerLayer};

    impl ServerLayer for Trace {
        fn handle<'a>(
            &'a self,
            cx: &'a Context,
            next: Next<'a>,
        ) -> LayerFuture<'a, Result<RawJson, ErrorObject>> {
            let span = request_span!("server", cx.method());
            span.record("jsonrpc.request.id", tracing::field::display(cx.id()));
            span.record("mcp.protocol.version", cx.version().as_str());
            if let Some(name) = cx.params().and_then(tool_name) {
                span.record("gen_ai.tool.name", name);
            }
            let inside = span.clone();
            let handling = async move {
                let mut ending = Ending::new(&span, || match cx.stop_cause() {
                    Some(StopCause::Deadline) => "timed_out".to_owned(),
                    Some(cause) => format!("cancelled: {cause}"),
                    None => "dropped".to_owned(),
                });
                let answer = next.run().await;
                match &answer {
                    // It was stopped, and has cleaned up. Nobody gets to see its answer.
                    _ if cx.stop_cause().is_some() => drop(ending),
                    Ok(_) => ending.record("answered"),
                    Err(error) => {
                        span.record("error.type", error.code);
                        ending.record("refused");
                    }
                }
                answer
            };
            Box::pin(handling.instrument(inside))
        }
    }
}

#[cfg(feature = "client")]
mod client {
    use belay_protocol::jsonrpc::RawJson;

    use super::{Ending, Instrument, Trace, tool_name};
    use crate::{ClientLayer, Error, ErrorKind, LayerFuture, NextCall, Outgoing};

    impl ClientLayer for Trace {
        fn call<'a>(
            &'a self,
            request: Outgoing,
            next: NextCall<'a>,
        ) -> LayerFuture<'a, Result<RawJson, Error>> {
            let span = request_span!("client", &*request.method);
            if let Some(name) = tool_name(&request.params) {
                span.record("gen_ai.tool.name", name);
            }
            let inside = span.clone();
            let calling = async move {
                let mut ending = Ending::new(&span, || "cancelled".to_owned());
                let ended = next.run(request).await;
                match &ended {
                    Ok(_) => ending.record("answered"),
                    Err(error) => {
                        if let Some(refusal) = error.refusal() {
                            span.record("error.type", refusal.code);
                        }
                        ending.record(word(error.kind()));
                    }
                }
                ended
            };
            Box::pin(calling.instrument(inside))
        }
    }

    fn word(kind: ErrorKind) -> &'static str {
        match kind {
            ErrorKind::Refused => "refused",
            ErrorKind::InputRequired => "input_required",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::TimedOut => "timed_out",
            ErrorKind::Lost => "lost",
            ErrorKind::Violated => "violated",
            ErrorKind::Rejected => "rejected",
        }
    }
}
