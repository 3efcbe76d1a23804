//! A span for each request, which records how it ended.

use belay_protocol::jsonrpc::RawJson;
use belay_protocol::types::{CallTool, GetPrompt, ReadResource, Request as _};
use tracing::{Instrument, Span};

use super::names;

/// A `tracing` span around each request, on either side. It is called `mcp`, and has an
/// OpenTelemetry name of method and subject, as in `tools/call add`. The field `end`
/// records how the request ended in every case: also a handler that is dropped because its
/// caller has gone records its end.
///
/// The field names are in [`names`]: those of OpenTelemetry's conventions for MCP,
/// where they define one.
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

/// The span of a request, with the fields of both sides.
macro_rules! request_span {
    ($kind:literal, $method:expr) => {
        tracing::info_span!(
            "mcp",
            { names::KIND } = $kind,
            { names::NAME } = tracing::field::Empty,
            { names::METHOD } = $method,
            { names::PROTOCOL_VERSION } = tracing::field::Empty,
            { names::REQUEST_ID } = tracing::field::Empty,
            { names::TOOL } = tracing::field::Empty,
            { names::PROMPT } = tracing::field::Empty,
            { names::RESOURCE } = tracing::field::Empty,
            { names::PARENT } = tracing::field::Empty,
            { names::END } = tracing::field::Empty,
            { names::ERROR } = tracing::field::Empty,
            { names::STATUS } = tracing::field::Empty,
            { names::OUTCOME } = tracing::field::Empty,
        )
    };
}

/// Records the end of a request, also if its future is dropped.
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
        self.span.record(names::END, end);
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

/// Records the subject of the request. URIs are too many to be part of a span's name.
fn record_subject(span: &Span, method: &str, params: Option<&RawJson>) {
    let subject = match method {
        CallTool::METHOD => Some((names::TOOL, "name")),
        GetPrompt::METHOD => Some((names::PROMPT, "name")),
        ReadResource::METHOD => Some((names::RESOURCE, "uri")),
        _ => None,
    };
    let found = subject.and_then(|(_, field)| params?.field(field));
    match (subject, found.as_ref().and_then(RawJson::as_text)) {
        (Some((name, field)), Some(subject)) => {
            span.record(name, &*subject);
            match field {
                "name" => span.record(names::NAME, format!("{method} {subject}")),
                _ => span.record(names::NAME, method),
            }
        }
        _ => span.record(names::NAME, method),
    };
}

/// Records a failure.
fn record_error(span: &Span, what: &str) {
    span.record(names::ERROR, what);
    span.record(names::OUTCOME, "ERROR");
}

/// Records an error answer with its code.
fn record_code(span: &Span, code: i64) {
    record_error(span, &code.to_string());
    span.record(names::STATUS, tracing::field::display(code));
}

/// Records a result, and returns how the request ended.
fn record_answer(span: &Span, method: &str, result: &RawJson) -> &'static str {
    let [failed, kind] = result.fields(["isError", "resultType"]);
    if method == CallTool::METHOD && failed.is_some_and(|failed| failed.as_str() == "true") {
        record_error(span, "tool_error");
    }
    let kind = kind.as_ref().and_then(RawJson::as_text);
    match kind.as_deref() == Some("input_required") {
        true => "input_required",
        false => "answered",
    }
}

#[cfg(feature = "server")]
mod server {
    use belay_protocol::engine::StopCause;
    use belay_protocol::jsonrpc::{ErrorObject, RawJson};

    use super::{Ending, Instrument, Trace, names, record_answer, record_code, record_subject};
    use crate::Context;
    use crate::layers::{LayerFuture, Next, ServerLayer};

    impl ServerLayer for Trace {
        fn handle<'a>(
            &'a self,
            cx: &'a Context,
            next: Next<'a>,
        ) -> LayerFuture<'a, Result<RawJson, ErrorObject>> {
            let span = request_span!("server", cx.method());
            span.record(names::REQUEST_ID, tracing::field::display(cx.id()));
            span.record(names::PROTOCOL_VERSION, cx.version().as_str());
            record_subject(&span, cx.method(), cx.params().map(|params| &**params));
            if let Some(context) = cx.trace_context() {
                span.record(names::PARENT, context.traceparent());
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
                    // It was stopped and has cleaned up; its answer is discarded.
                    _ if cx.stop_cause().is_some() => drop(ending),
                    Ok(result) => ending.record(record_answer(&span, cx.method(), result)),
                    Err(error) => {
                        record_code(&span, error.code);
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

    use super::{
        Ending, Instrument, Trace, names, record_answer, record_code, record_error, record_subject,
    };
    use crate::layers::{CallRequest, ClientLayer, LayerFuture, NextCall, TraceContext};
    use crate::{Error, ErrorKind};

    impl ClientLayer for Trace {
        fn call<'a>(
            &'a self,
            request: CallRequest,
            next: NextCall<'a>,
        ) -> LayerFuture<'a, Result<RawJson, Error>> {
            let span = request_span!("client", &*request.method);
            record_subject(&span, &request.method, Some(&request.params));
            if let Some(context) = TraceContext::of(&request.meta) {
                span.record(names::PARENT, context.traceparent());
            }
            let method = request.method.clone();
            let inside = span.clone();
            let calling = async move {
                let mut ending = Ending::new(&span, || "cancelled".to_owned());
                let ended = next.run(request).await;
                match &ended {
                    Ok(result) => ending.record(record_answer(&span, &method, result)),
                    Err(error) => {
                        match error.refusal() {
                            Some(refusal) => record_code(&span, refusal.code),
                            None => record_error(&span, word(error.kind())),
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
