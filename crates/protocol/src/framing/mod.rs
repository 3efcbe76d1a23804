//! Bytes to frames and back: newline-delimited lines, and server-sent events.
//!
//! Both decoders are incremental. They take bytes in pieces of any size and give out whole frames;
//! how the bytes were cut never shows in what comes out.

mod lines;
mod sse;

pub use lines::{LineDecoder, Oversize};
pub use sse::{SseDecoder, SseEvent};
