//! Tools: what a server does for a client.
//!
//! A tool is a plain async function. Its arguments are a type with `Deserialize` and `JsonSchema`, and
//! the schema is made from it:
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
//! [`#[belay::server]`](crate::server) writes the same from methods.
//!
//! # What comes back
//!
//! A `String` is text; [`Json`](crate::Json) is structured content with an output schema; a
//! [`CallToolResult`](crate::types::CallToolResult) is anything at all: pictures, sounds, resources.
//! An `Err` is a *result* that says that the tool failed, which the model gets to see and can learn
//! from. What is wrong with the request itself, an unknown tool for one, is an *error*; a handler says
//! so with [`Context::refuse`](crate::Context::refuse).
//!
//! # What is checked
//!
//! The types are. With the feature `validate`, which is on by default, the arguments are held against the
//! schema as well, so that `range` above means something: JSON Schema 2020-12 and older dialects, nothing fetched, within
//! bounds (`Schema`). A tool whose schema cannot be used cannot be called. Patterns that look ahead or behind,
//! or refer to their groups, cannot be matched in linear time: they are passed over, and a warning is logged
//! when the tool is added. Very large arguments may be refused, with what to do about it; very large results
//! are sent unchecked, with a warning.
//!
//! An argument whose schema has `x-mcp-header` is repeated in a header of modern HTTP, for whoever
//! routes by it; clients of Belay do so by themselves, and servers look whether both say the same.
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
//! # While it runs
//!
//! Tools can be added, removed and disabled while a server runs ([`Server::tools`](crate::Server::tools));
//! whoever listens is told. They are listed in the order in which they were added, in pages if
//! [`Server::page_size`](crate::Server::page_size) says so.
