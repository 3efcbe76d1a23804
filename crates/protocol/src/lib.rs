//! The Model Context Protocol without I/O: the format of messages and the life of requests.
//!
//! ```text
//!   bytes ──► framing ──► jsonrpc ──► engine ──► events     to the application
//!   bytes ◄── framing ◄── jsonrpc ◄── engine ◄── verbs      from the application
//! ```
//!
//! - [`framing`] cuts bytes into frames: lines, and server-sent events.
//! - [`jsonrpc`] turns a frame into a message, or into one precise fault.
//! - [`types`] is the content of messages, in both eras of the protocol.
//! - [`engine`] is the life of a request: where it begins, and the eight ways it can end.
//!
//! ([`base64`] encodes bytes in JSON.)
//!
//! There is no tokio here, no socket, no clock and no thread. A driver reads, writes, spawns and
//! waits; the engine decides.

pub mod base64;
pub mod engine;
pub mod framing;
pub mod jsonrpc;
pub mod types;
