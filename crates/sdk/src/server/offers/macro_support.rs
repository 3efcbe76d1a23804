//! For the macros: makes a result of whatever a method returns.
//!
//! A method may return what [`IntoToolResult`] takes, or a value of its own with `Serialize` and
//! `JsonSchema`, which becomes structured content. Which of them it is, is decided by how many
//! references stand before it: the compiler tries `ViaContent` first, then `ViaResult`, then
//! `ViaStructured`.

use std::cell::Cell;
use std::fmt::Display;

use belay_protocol::types::CallToolResult;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::server::reply::{IntoToolResult, Json};

/// What a method returned, or its type alone.
#[allow(
    missing_debug_implementations,
    reason = "it exists for a moment, in expansions"
)]
pub struct Produced<T>(Cell<Option<T>>);

impl<T> Produced<T> {
    /// What a method returned.
    pub fn new(output: T) -> Self {
        Self(Cell::new(Some(output)))
    }

    /// Its type alone.
    pub fn none() -> Self {
        Self(Cell::new(None))
    }

    fn take<R>(&self, make: impl FnOnce(T) -> R) -> R {
        let output = self.0.take().expect("it is produced once");
        make(output)
    }
}

/// A type that becomes structured content.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the result of a tool",
    label = "the result of a tool",
    note = "derive `serde::Serialize` and `schemars::JsonSchema` for it, or return a `String`, a `CallToolResult`, or a `Result` of one of these"
)]
pub trait Structured: Serialize + JsonSchema {}

impl<T: Serialize + JsonSchema> Structured for T {}

/// First choice: what says itself how to become a result.
pub trait ViaContent {
    /// The result.
    fn produce(&self) -> CallToolResult;
    /// The schema of its structured content.
    fn output_schema(&self) -> Option<Map<String, Value>>;
}

impl<T: IntoToolResult> ViaContent for &&Produced<T> {
    fn produce(&self) -> CallToolResult {
        self.take(T::into_tool_result)
    }

    fn output_schema(&self) -> Option<Map<String, Value>> {
        T::output_schema()
    }
}

/// Second choice: a `Result` of a value of one's own. No `Result` gets past this: an error that
/// cannot be shown is told so by the compiler.
pub trait ViaResult<T, E> {
    /// The result.
    fn produce(&self) -> CallToolResult
    where
        T: Structured,
        E: Display;
    /// The schema of its structured content.
    fn output_schema(&self) -> Option<Map<String, Value>>
    where
        T: Structured,
        E: Display;
}

impl<T, E> ViaResult<T, E> for &Produced<Result<T, E>> {
    fn produce(&self) -> CallToolResult
    where
        T: Structured,
        E: Display,
    {
        self.take(|output| output.map(Json).into_tool_result())
    }

    fn output_schema(&self) -> Option<Map<String, Value>>
    where
        T: Structured,
        E: Display,
    {
        Json::<T>::output_schema()
    }
}

/// Last choice: a value of one's own. If it is none, the message says what it should be.
pub trait ViaStructured<T> {
    /// The result.
    fn produce(&self) -> CallToolResult
    where
        T: Structured;
    /// The schema of its structured content.
    fn output_schema(&self) -> Option<Map<String, Value>>
    where
        T: Structured;
}

impl<T> ViaStructured<T> for Produced<T> {
    fn produce(&self) -> CallToolResult
    where
        T: Structured,
    {
        self.take(|output| Json(output).into_tool_result())
    }

    fn output_schema(&self) -> Option<Map<String, Value>>
    where
        T: Structured,
    {
        Json::<T>::output_schema()
    }
}
