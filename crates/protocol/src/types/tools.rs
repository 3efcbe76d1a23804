//! `tools/list` and `tools/call`.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{
    CacheScope, ContentBlock, Extra, Icon, Millis, Notification, PaginatedParams, Request,
    ResultType,
};

record! {
    /// A function that a server offers to clients and their models.
    ///
    /// ```
    /// use belay_protocol::types::ToolDefinition;
    /// let schema = serde_json::json!({ "type": "object", "properties": { "text": {} } });
    /// let tool = ToolDefinition::new("echo", schema.as_object().unwrap().clone());
    /// assert_eq!(tool.name, "echo");
    /// ```
    pub struct ToolDefinition {
        required {
            /// The programmatic name.
            name: String = "name",
            /// The JSON Schema of its arguments; its root is of type `object`.
            input_schema: Extra = "inputSchema",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description, for the model.
            description: String = "description",
            /// The JSON Schema of its structured result.
            output_schema: Extra = "outputSchema",
            /// Hints about the behaviour of the tool.
            annotations: ToolAnnotations = "annotations",
            /// Icons for display.
            icons: Vec<Icon> = "icons",
            /// How the tool is run; 2025-11-25 only.
            execution: ToolExecution = "execution",
        }
    }
}

record! {
    /// How a tool is run; 2025-11-25 only.
    pub struct ToolExecution {
        optional {
            /// Whether a call of the tool may, must or must not become a task.
            task_support: String = "taskSupport",
        }
    }
}

record! {
    /// Hints about the behaviour of a tool. They are not guaranteed: a server may be wrong, or lie.
    pub struct ToolAnnotations {
        optional {
            /// The display name. `ToolDefinition::title` takes precedence.
            title: String = "title",
            /// The tool changes nothing. The default is false.
            read_only_hint: bool = "readOnlyHint",
            /// The tool may make destructive changes. The default is true.
            destructive_hint: bool = "destructiveHint",
            /// Calling the tool again with the same arguments has no further effect. The default is
            /// false.
            idempotent_hint: bool = "idempotentHint",
            /// The tool interacts with the outside world. The default is true.
            open_world_hint: bool = "openWorldHint",
        }
    }
}

record! {
    /// One page of tools.
    pub struct ListToolsResult {
        required {
            /// The tools.
            tools: Vec<ToolDefinition> = "tools",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
            /// The cursor of the next page, if there is one.
            next_cursor: String = "nextCursor",
            /// For how many milliseconds the result may be cached; modern only.
            ttl_ms: Millis = "ttlMs",
            /// Who may share the cached result; modern only.
            cache_scope: CacheScope = "cacheScope",
        }
    }
}

record! {
    /// The parameters of `tools/call`: which tool, and its arguments.
    pub struct CallToolParams {
        required {
            /// The tool's name.
            name: String = "name",
        }
        optional {
            /// Its arguments.
            arguments: Map<String, Value> = "arguments",
            /// Answers to the questions of the previous round; modern only.
            input_responses: Extra = "inputResponses",
            /// The state that the server wants back with those answers; modern only.
            request_state: String = "requestState",
        }
    }
}

record! {
    /// The result of a tool.
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
            /// Whether the tool failed. A failure is still a result, so that the model can see it.
            is_error: bool = "isError",
        }
        default {
            /// The result for users and models.
            content: Vec<ContentBlock> = "content",
        }
        anything {
            /// The result for programs, which matches the tool's output schema.
            structured_content = "structuredContent",
        }
    }
}

impl CallToolResult {
    /// A result with a single text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            content: vec![ContentBlock::text(text)],
            ..Self::new()
        }
    }

    /// The text of the result: of its first block of text, if there is one.
    ///
    /// ```
    /// # use belay_protocol::types::CallToolResult;
    /// assert_eq!(CallToolResult::text("done").as_text(), Some("done"));
    /// ```
    pub fn as_text(&self) -> Option<&str> {
        self.content.iter().find_map(ContentBlock::as_text)
    }

    /// The structured content, decoded. `None` if the tool gave none.
    ///
    /// ```
    /// # use belay_protocol::types::CallToolResult;
    /// #[derive(serde::Deserialize)]
    /// struct Weather { celsius: f64 }
    ///
    /// let result: CallToolResult =
    ///     serde_json::from_str(r#"{"content":[],"structuredContent":{"celsius":21.5}}"#)?;
    /// let weather: Option<Weather> = result.structured()?;
    /// assert_eq!(weather.unwrap().celsius, 21.5);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn structured<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        let content = self.structured_content.as_ref();
        content.map(T::deserialize).transpose()
    }

    /// A failure with a single text.
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
    /// The list of tools has changed.
    pub struct ToolListChangedParams {
    }
}

impl Notification for ToolListChangedParams {
    const METHOD: &'static str = "notifications/tools/list_changed";
}
