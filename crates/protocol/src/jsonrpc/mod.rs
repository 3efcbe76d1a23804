//! JSON-RPC 2.0, without anything of MCP.
//!
//! The envelope is decoded by hand over bytes, because the usual ways lose what we need:
//! `serde_json::Value` keeps the last of two equal keys and turns large integers into floats,
//! untagged enums reduce every fault to "did not match any variant", and `RawValue` has no depth
//! limit. Here each fault has its own [`DecodeFault`], ids stay as they came, and `params`,
//! `result` and `error.data` stay raw: slices of the frame they arrived in.
//!
//! ```
//! use belay_protocol::jsonrpc::{self, Message, RequestId};
//!
//! let frame = r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#.into();
//! let Message::Request(request) = jsonrpc::decode(&frame, 64).unwrap() else { panic!() };
//! assert_eq!(request.id, RequestId::from(7));
//! assert_ne!(request.id, RequestId::from("7"));
//! ```

mod answer;
mod decode;
mod encode;
mod error;
mod fault;
mod id;
mod members;
mod message;
mod params;
mod raw;
mod scan;
mod skim;

pub use answer::ResultFrame;
pub use decode::{decode, decode_batch, is_batch};
pub use error::ErrorObject;
pub use fault::{DecodeError, DecodeFault, Kind};
pub use id::RequestId;
pub use message::{Message, Notification, Request, Response, Text};
pub use params::Params;
pub use raw::{InvalidJson, NotAnObject, RawJson};
pub use scan::MAX_DEPTH;
pub(crate) use skim::Skim;

pub(crate) use encode::FrameWriter;
pub(crate) use raw::{fields_of, text_of};
