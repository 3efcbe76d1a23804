//! Bytes to frames and back: newline-delimited lines, and server-sent events.
//!
//! Both decoders are incremental. They take pieces of any size and return whole frames; how the
//! bytes were cut never changes the result.

mod lines;
mod sse;

pub use lines::{LineDecoder, Oversize};
pub use sse::{SseDecoder, SseEvent};
