//! What a server offers: tools, prompts, resources, and how each is listed, called and completed.

pub(super) mod arguments;
pub(super) mod blocking;
pub(super) mod caching;
pub(super) mod catalogue;
pub(super) mod completion;
#[cfg(feature = "macros")]
mod macro_support;
mod prompts;
mod request_error;
mod resources;
#[cfg(feature = "validate")]
mod strict;
mod text_arguments;
pub(super) mod tool_error;
#[cfg(feature = "validate")]
mod tool_schemas;
mod tools;

pub use caching::{CacheHint, Caching};
pub use completion::CompletionRequest;
#[cfg(feature = "macros")]
pub use macro_support::{Produced, Structured, ViaContent, ViaResult, ViaStructured};
pub use prompts::{IntoPrompt, Prompt, Prompts};
pub use request_error::RequestError;
pub use resources::{
    Contents, IntoContents, Resource, ResourceTemplate, Resources, UriTemplate, UriTemplateError,
};
pub use tool_error::ToolError;
pub use tools::{Tool, Tools};
