//! The types of messages, one subject per file, named as in the modern revision (2026-07-28).
//!
//! [`legacy`] and [`modern`] hold what only one era has. Every record keeps its `_meta` and its
//! unknown fields, so that decoding and encoding loses nothing. A decoding error names the invalid
//! field.
//!
//! ```
//! use belay_protocol::types::ToolDefinition;
//!
//! let json = r#"{"name":"echo","inputSchema":{"type":"object"},"x-vendor":true}"#;
//! let tool: ToolDefinition = serde_json::from_str(json).unwrap();
//! assert_eq!(serde_json::to_string(&tool).unwrap(), json);
//!
//! let wrong = serde_json::from_str::<ToolDefinition>(r#"{"name":7}"#).unwrap_err();
//! assert!(wrong.to_string().starts_with("`name`: invalid type: integer `7`"));
//! ```

#[macro_use]
mod record;
#[macro_use]
mod words;
#[macro_use]
mod kinds;

mod cancel;
mod capabilities;
mod completion;
mod content;
mod elicitation;
pub mod error_code;
mod form;
mod implementation;
pub mod legacy;
mod logging;
mod meta;
pub mod modern;
mod named;
mod page;
mod progress;
mod prompts;
mod resources;
mod result;
mod roots;
mod sampling;
mod tools;
mod version;

pub use cancel::CancelledParams;
pub use capabilities::{
    ClientCapabilities, ElicitationCapability, ListCapability, ResourcesCapability,
    SamplingCapability, ServerCapabilities,
};
pub use completion::{
    Complete, CompleteParams, CompleteResult, CompletedArgument, Completion, CompletionContext,
    PromptReference, Reference, ResourceReference,
};
pub use content::{
    Annotations, AudioContent, ContentBlock, EmbeddedResource, ImageContent, ResourceContents,
    ResourceLink, Role, TextContent,
};
pub use elicitation::{
    Elicit, ElicitAction, ElicitFormParams, ElicitMode, ElicitParams, ElicitResult, ElicitUrlParams,
};
pub use form::{
    BooleanField, ChoiceField, ChoicesField, Field, FormSchema, NumberField, ObjectType, Options,
    StringType, TextField, TextFormat, TitledChoiceField, TitledChoicesField, TitledOption,
    TitledOptions,
};
pub use implementation::{Icon, Implementation};
pub use logging::{LoggingLevel, LoggingMessageParams};
pub use meta::{Meta, is_extension_identifier, meta_key};
pub use named::Named;
pub use page::{CacheScope, Millis, PaginatedParams};
pub use progress::{Amount, ProgressParams, ProgressToken};
pub use prompts::{
    GetPrompt, GetPromptParams, GetPromptResult, ListPrompts, ListPromptsResult, PromptArgument,
    PromptDefinition, PromptListChangedParams, PromptMessage,
};
pub use resources::{
    ListResourceTemplates, ListResourceTemplatesResult, ListResources, ListResourcesResult,
    ReadResource, ReadResourceParams, ReadResourceResult, ResourceDefinition,
    ResourceListChangedParams, ResourceNotFoundData, ResourceTemplateDefinition,
    ResourceUpdatedParams,
};
pub use result::{EmptyResult, ResultType};
pub use roots::{ListRoots, ListRootsParams, ListRootsResult, Root};
pub use sampling::{
    CreateMessage, CreateMessageParams, CreateMessageResult, IncludeContext, ModelHint,
    ModelPreferences, SamplingBlock, SamplingContent, SamplingMessage, StopReason, ToolChoice,
    ToolChoiceMode, ToolResultContent, ToolUseContent,
};
pub use tools::{
    CallTool, CallToolParams, CallToolResult, ListTools, ListToolsResult, ToolAnnotations,
    ToolDefinition, ToolExecution, ToolListChangedParams,
};
pub use version::{Era, ProtocolVersion, UnknownVersion};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A request as a type: its method name, its parameters and its result.
///
/// ```
/// use belay_protocol::types::{CallTool, Request};
/// assert_eq!(CallTool::METHOD, "tools/call");
/// ```
pub trait Request {
    /// The method's name.
    const METHOD: &'static str;
    /// The parameters.
    type Params: Serialize + DeserializeOwned;
    /// The result.
    type Result: Serialize + DeserializeOwned;
}

/// A notification as a type: its method name and its parameters.
///
/// ```
/// use belay_protocol::types::{CancelledParams, Notification};
/// assert_eq!(CancelledParams::METHOD, "notifications/cancelled");
/// ```
pub trait Notification: Serialize + DeserializeOwned {
    /// The method's name.
    const METHOD: &'static str;
}

/// Unknown fields of a record, kept so that they survive a round trip.
pub type Extra = serde_json::Map<String, serde_json::Value>;
