//! For the macros: turns the return value of a method into a tool result.
//!
//! A method may return a type with [`IntoToolResult`], or a value with `Serialize` and
//! `JsonSchema`, which becomes structured content. Autoref decides between the two: the compiler
//! tries `ViaContent` first, then `ViaResult`, then `ViaStructured`, by the number of references.

use std::cell::Cell;
use std::fmt::Display;

use belay_protocol::types::CallToolResult;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::server::reply::{IntoToolResult, Json};

/// The return value of a method, or its type alone.
#[allow(
    missing_debug_implementations,
    reason = "it exists for a moment, in expansions"
)]
pub struct Produced<T>(Cell<Option<T>>);

impl<T> Produced<T> {
    /// With the return value.
    pub fn new(output: T) -> Self {
        Self(Cell::new(Some(output)))
    }

    /// With the type alone.
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

/// First choice: a type with [`IntoToolResult`].
pub trait ViaContent {
    /// The tool result.
    fn produce(&self) -> CallToolResult;
    /// The schema of the structured content.
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

/// Second choice: a `Result` with a serializable value. Every `Result` ends here, so that the
/// compiler reports an error type without `Display`.
pub trait ViaResult<T, E> {
    /// The tool result.
    fn produce(&self) -> CallToolResult
    where
        T: Structured,
        E: Display;
    /// The schema of the structured content.
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

/// Last choice: a serializable value. For other types the compiler prints a hint.
pub trait ViaStructured<T> {
    /// The tool result.
    fn produce(&self) -> CallToolResult
    where
        T: Structured;
    /// The schema of the structured content.
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
