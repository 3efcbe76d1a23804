//! Tools: functions of a server that a client calls.
//!
//! A tool is a plain async function. Its arguments are a type that implements `Deserialize` and
//! `JsonSchema`; the input schema is generated from that type:
//!
//! ```
//! use belay::{Context, Json, Server, Tool};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Area {
//!     /// In metres.
//!     #[schemars(range(min = 0.0))]
//!     width: f64,
//!     height: f64,
//! }
//!
//! #[derive(serde::Serialize, schemars::JsonSchema)]
//! struct Size { area: f64 }
//!
//! let server = Server::new("rooms", "1.0.0").tool(
//!     Tool::new("area", |_cx: Context, it: Area| async move {
//!         match it.width * it.height {
//!             area if area.is_finite() => Ok(Json(Size { area })),
//!             _ => Err("that is no room"),
//!         }
//!     })
//!     .description("Computes an area.")
//!     .annotations(|hints| hints.read_only_hint = Some(true)),
//! );
//! ```
//!
//! [`#[belay::server]`](macro@crate::server) generates the same from methods.
//!
//! # Results and errors
//!
//! A `String` becomes text content. [`Json`](crate::Json) becomes structured content with an output
//! schema. A [`CallToolResult`](crate::types::CallToolResult) can hold any content: images, audio,
//! resources. An `Err` becomes a *result* that is marked as failed; the model sees its message and can
//! react to it. If the request itself is wrong, for example because the tool is unknown, the call ends
//! with an *error*; a handler returns one with [`Context::refuse`](crate::Context::refuse).
//!
//! # Validation
//!
//! The types are always checked. With the feature `validate`, which is on by default, arguments are also
//! validated against the input schema, so that `range` above has an effect, and structured results
//! against the output schema. The validator knows JSON Schema 2020-12 and older dialects, fetches
//! nothing, and bounds its work (`Schema`).
//!
//! - A tool whose schema is invalid, or has a remote `$ref`, is listed, but calls to it are refused.
//! - Regular expressions with look-around or back-references cannot be matched in linear time. What
//!   depends on them is not checked, and a warning is logged when the tool is added.
//! - Very large arguments may be refused; the error says what to do. Very large results are sent
//!   unchecked, and a warning is logged.
//!
//! On modern HTTP an argument whose schema has `x-mcp-header` is repeated in a request header, so that
//! proxies can route by it. Clients of Belay set the header automatically, and servers refuse a call
//! whose header and argument differ.
//!
//! ```
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Order {
//!     /// Also in `Mcp-Param-Region`.
//!     #[schemars(extend("x-mcp-header" = "Region"))]
//!     region: String,
//! }
//! ```
//!
//! # Changes at run time
//!
//! Tools can be added, removed and disabled while a server runs ([`Server::tools`](crate::Server::tools));
//! [subscribed](super::listening) clients are notified. Tools are listed in the order in which they were
//! added, and paginated if [`Server::page_size`](crate::Server::page_size) is set.
