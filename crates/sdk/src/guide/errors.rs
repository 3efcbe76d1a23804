//! Errors: which type is for what, and how to tell a timeout from a lost connection.
//!
//! | type | who makes it | who sees it |
//! |---|---|---|
//! | [`ToolError`](crate::ToolError) | a tool, by `?` from errors (`Send + Sync + 'static`) and texts | the model, as the text of a result with `isError` |
//! | [`RequestError`](crate::RequestError) | a resource or a prompt, by `?` from any error; [`not_found`](crate::RequestError::not_found) and others | the client, as a JSON-RPC error with the code that its era prescribes |
//! | [`InputError`](crate::input::InputError) | [`Context::elicit`](crate::Context::elicit), [`sample`](crate::Context::sample) and [`roots`](crate::Context::roots) | the handler that asked: the user declined, the answer does not fit, the request is over. If the client lacks the capability, the request ends with an error instead |
//! | [`Error`](crate::Error) | every call of a client | the caller: how the call ended without a result |
//! | [`ErrorObject`](crate::jsonrpc::ErrorObject) | a peer | inside of an `Error` that [`is_refused`](crate::Error::is_refused), with code, message and data |
//! | `schema::SchemaError`, `schema::ValidationError` | JSON Schema validation | programs that validate by hand; servers and clients turn them into the errors above |
//!
//! So a tool that failed is a *result*, and a request that failed is an *error*: the model can react to
//! the first, only the program to the second.
//!
//! `Display` of [`Error`](crate::Error) says all there is to act on, in one line. The methods answer what a
//! program wants to know:
//!
//! ```no_run
//! # #[cfg(all(feature = "http", feature = "stdio", unix))]
//! # async fn example(client: belay::Client) {
//! use belay::ErrorKind;
//!
//! let Err(error) = client.call_tool("ship", serde_json::json!({ "order": 7 })).await else {
//!     return;
//! };
//! eprintln!("{error}");
//! match error.kind() {
//!     // The server said no, and why.
//!     ErrorKind::Refused => println!("code {}", error.refusal().unwrap().code),
//!     // The process died, the connection broke, HTTP gave a status: never a cancellation.
//!     ErrorKind::Lost => println!("exit {:?}, HTTP {:?}", error.exited(), error.http_status()),
//!     // A local deadline passed, and the server was told to stop.
//!     ErrorKind::TimedOut => println!("{:?}", error.clock()),
//!     // The caller, the peer or a shutdown stopped it.
//!     ErrorKind::Cancelled => println!("{:?}", error.cancelled_by()),
//!     _ => {}
//! }
//! if error.safe_to_retry() {
//!     // Nothing of the request was sent.
//! }
//! # }
//! ```
//!
//! Typed causes, such as an [`io::Error`](std::io::Error), are in [`Error::causes`](crate::Error::causes).
