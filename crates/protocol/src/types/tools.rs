//! `tools/list` and `tools/call`.

use serde_json::{Map, Value};

use super::{
    CacheScope, ContentBlock, Extra, Icon, Millis, Notification, PaginatedParams, Request,
    ResultType,
};

record! {
    /// Something a server can do for a client.
    ///
    /// ```
    /// use belay_protocol::types::Tool;
    /// let schema = serde_json::json!({ "type": "object", "properties": { "text": {} } });
    /// let tool = Tool::new("echo", schema.as_object().unwrap().clone());
    /// assert_eq!(tool.name, "echo");
    /// ```
    pub struct Tool {
        required {
            /// What it is called by.
            name: String = "name",
            /// The JSON Schema of its arguments; its root is of type `object`.
            input_schema: Extra = "inputSchema",
        }
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it does, for the model.
            description: String = "description",
            /// The JSON Schema of its structured result.
            output_schema: Extra = "outputSchema",
            /// How it behaves, as far as it says.
            annotations: ToolAnnotations = "annotations",
            /// What it looks like.
            icons: Vec<Icon> = "icons",
            /// How it is run; 2025-11-25 only.
            execution: ToolExecution = "execution",
        }
    }
}

record! {
    /// How a tool is run; 2025-11-25 only.
    pub struct ToolExecution {
        optional {
            /// Whether it may, must or must not become a task.
            task_support: String = "taskSupport",
        }
    }
}

record! {
    /// How a tool behaves. These are hints: a server may be wrong, or lie.
    pub struct ToolAnnotations {
        optional {
            /// Its title for people; `Tool::title` goes before it.
            title: String = "title",
            /// It changes nothing. Assumed false.
            read_only_hint: bool = "readOnlyHint",
            /// It may destroy something. Assumed true.
            destructive_hint: bool = "destructiveHint",
            /// Calling it again with the same arguments changes nothing more. Assumed false.
            idempotent_hint: bool = "idempotentHint",
            /// It deals with the world outside. Assumed true.
            open_world_hint: bool = "openWorldHint",
        }
    }
}

record! {
    /// One page of tools.
    pub struct ListToolsResult {
        required {
            /// The tools.
            tools: Vec<Tool> = "tools",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
            /// Where the next page begins, if there is one.
            next_cursor: String = "nextCursor",
            /// For how many milliseconds it may be kept; modern only.
            ttl_ms: Millis = "ttlMs",
            /// Who may share it; modern only.
            cache_scope: CacheScope = "cacheScope",
        }
    }
}

record! {
    /// Which tool to call, and with what.
    pub struct CallToolParams {
        required {
            /// The tool's name.
            name: String = "name",
        }
        optional {
            /// Its arguments.
            arguments: Map<String, Value> = "arguments",
            /// Answers to what the server asked for in the round before; modern only.
            input_responses: Extra = "inputResponses",
            /// What the server wants back with those answers; modern only.
            request_state: String = "requestState",
        }
    }
}

record! {
    /// What a tool gave.
    ///
    /// ```
    /// use belay_protocol::types::CallToolResult;
    /// let result = CallToolResult::text("hello");
    /// let json = serde_json::to_string(&result).unwrap();
    /// assert_eq!(json, r#"{"content":[{"type":"text","text":"hello"}]}"#);
    /// ```
    pub struct CallToolResult {
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
            /// Whether the tool failed. Such a result is still an answer: the model is to see it.
            is_error: bool = "isError",
        }
        default {
            /// For people and models.
            content: Vec<ContentBlock> = "content",
        }
        anything {
            /// For programs; fits the tool's output schema.
            structured_content = "structuredContent",
        }
    }
}

impl CallToolResult {
    /// A result of one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            ..Self::new()
        }
    }

    /// A failure, told in one text.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: Some(true),
            ..Self::text(text)
        }
    }
}

/// `tools/list`.
#[derive(Clone, Copy, Debug)]
pub enum ListTools {}

impl Request for ListTools {
    const METHOD: &'static str = "tools/list";
    type Params = PaginatedParams;
    type Result = ListToolsResult;
}

/// `tools/call`.
#[derive(Clone, Copy, Debug)]
pub enum CallTool {}

impl Request for CallTool {
    const METHOD: &'static str = "tools/call";
    type Params = CallToolParams;
    type Result = CallToolResult;
}

record! {
    /// The list of tools is not what it was.
    pub struct ToolListChangedParams {
    }
}

impl Notification for ToolListChangedParams {
    const METHOD: &'static str = "notifications/tools/list_changed";
}
