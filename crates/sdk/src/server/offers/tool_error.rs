//! `ToolError`: why a tool failed.

use std::fmt;

/// Why a tool failed, in a message that the model can read.
///
/// Any error that is `Send + Sync + 'static` becomes one, and so does a text, so `?` works. For other
/// errors, such as that of a standard mutex, write `.map_err(|error| ToolError::new(error.to_string()))`.
/// The message is shown to the caller, so it should not hold secrets.
///
/// ```
/// use belay::ToolError;
///
/// fn parse(text: &str) -> Result<i32, ToolError> {
///     let number: i32 = text.parse()?;
///     match number {
///         0 => Err("zero is not allowed")?,
///         number => Ok(number),
///     }
/// }
/// assert_eq!(parse("0").unwrap_err().to_string(), "zero is not allowed");
/// assert!(parse("x").unwrap_err().to_string().contains("invalid digit"));
/// ```
pub struct ToolError(String);

impl ToolError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

/// From a text, or from any error: then its message is followed by those of its sources.
impl<E: Into<Box<dyn std::error::Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        Self(chain(&*error.into()))
    }
}

/// The message of an error, followed by those of its sources.
pub(in crate::server) fn chain(error: &dyn std::error::Error) -> String {
    let mut message = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(": ");
        message.push_str(&error.to_string());
        cause = error.source();
    }
    message
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}
