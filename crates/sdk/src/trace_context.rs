//! W3C trace context and baggage, carried in `_meta`.

use belay_protocol::types::Meta;
use belay_protocol::types::meta_key::{BAGGAGE, TRACEPARENT, TRACESTATE};

/// Which trace a request belongs to, as tracing systems hand it on from one program to the next.
///
/// ```
/// use belay::layers::TraceContext;
///
/// let parent = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
/// let context = TraceContext::new(parent).unwrap();
/// assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
/// assert!(context.is_sampled());
/// assert!(TraceContext::new("00-not-a-trace").is_none());
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct TraceContext {
    traceparent: String,
    /// The `tracestate`: data of the tracing systems on the way.
    pub tracestate: Option<String>,
    /// The `baggage`: properties of the application.
    pub baggage: Option<String>,
}

/// Longer values of `tracestate` and `baggage` are dropped.
const LONGEST: usize = 8192;

impl TraceContext {
    /// Parses a `traceparent`. Returns `None` if it is invalid.
    pub fn new(traceparent: impl Into<String>) -> Option<Self> {
        let traceparent = traceparent.into();
        is_traceparent(&traceparent).then_some(Self {
            traceparent,
            tracestate: None,
            baggage: None,
        })
    }

    /// Reads the trace context from `_meta`, if there is a valid one.
    pub fn of(meta: &Meta) -> Option<Self> {
        let text = |key: &str| {
            let text: Option<String> = meta.get(key).ok().flatten();
            text.filter(|text| text.len() <= LONGEST)
        };
        let mut context = Self::new(text(TRACEPARENT)?)?;
        context.tracestate = text(TRACESTATE);
        context.baggage = text(BAGGAGE);
        Some(context)
    }

    /// Writes the trace context into `_meta`.
    pub fn put(&self, meta: &mut Meta) {
        let pairs = [
            (TRACEPARENT, Some(&self.traceparent)),
            (TRACESTATE, self.tracestate.as_ref()),
            (BAGGAGE, self.baggage.as_ref()),
        ];
        for (key, text) in pairs {
            if let Some(text) = text {
                // A string can always be encoded.
                let _ = meta.set(key, text);
            }
        }
    }

    /// The `traceparent` as it is written on the wire.
    pub fn traceparent(&self) -> &str {
        &self.traceparent
    }

    /// The trace id: 32 hexadecimal digits.
    pub fn trace_id(&self) -> &str {
        &self.traceparent[3..35]
    }

    /// The id of the span that made the request: 16 hexadecimal digits.
    pub fn parent_id(&self) -> &str {
        &self.traceparent[36..52]
    }

    /// Whether the caller records this trace.
    pub fn is_sampled(&self) -> bool {
        let flags = u8::from_str_radix(&self.traceparent[53..55], 16);
        flags.is_ok_and(|flags| flags & 1 == 1)
    }
}

/// A version, a trace id, a span id and flags: 2, 32, 16 and 2 digits. Neither id may be all zero.
fn is_traceparent(text: &str) -> bool {
    let digits = |text: &str| {
        text.bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let zero = |text: &str| text.bytes().all(|byte| byte == b'0');
    if !text.is_ascii() || text.len() < 55 {
        return false;
    }
    let (version, rest) = text.split_at(2);
    let (trace, span, flags) = (&rest[1..33], &rest[34..50], &rest[51..53]);
    let dashes = [0, 33, 50]
        .into_iter()
        .all(|at| rest.as_bytes()[at] == b'-');
    // Later versions may have further fields.
    let ends = match version {
        "00" => text.len() == 55,
        _ => text.len() == 55 || text.as_bytes()[55] == b'-',
    };
    let all_digits = [version, trace, span, flags].into_iter().all(digits);
    ends && dashes && all_digits && version != "ff" && !zero(trace) && !zero(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_traceparent() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        assert!(is_traceparent(good));
        assert!(is_traceparent(&good.replace("00-0a", "cc-0a")));
        assert!(is_traceparent(&(good.replace("00-0a", "cc-0a") + "-more")));
        for bad in [
            "",
            "00",
            &good.to_uppercase(),
            &good.replace("00-0a", "ff-0a"),
            &(good.to_owned() + "-more"),
            &good.replace('-', "_"),
            &good.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &good.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &good.replace("0af7", "é7"),
        ] {
            assert!(!is_traceparent(bad), "{bad}");
        }
    }
}
