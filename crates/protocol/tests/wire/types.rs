//! Types: what is decoded and written back is still all there, and errors name their field.

use belay_protocol::jsonrpc::{self, Message};
use belay_protocol::types::legacy::tasks::{CreateTaskResult, ListTasksResult, Task, TaskIdParams};
use belay_protocol::types::legacy::{
    ElicitationCompleteParams, InitializeParams, InitializeResult, PingParams,
    RootsListChangedParams, SetLevelParams, SubscribeParams, UrlElicitationRequiredData,
};
use belay_protocol::types::modern::{
    AcknowledgedParams, DiscoverParams, DiscoverResult, InputRequest, InputRequiredResult,
    InputResponses, ListenParams, ListenResult, MissingCapabilityData, SubscriptionFilter,
    UnsupportedVersionData,
};
use belay_protocol::types::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Decodes, writes back and compares; then the same with `_meta` and fields nobody knows.
fn survives<T: Serialize + DeserializeOwned>(json: Value) {
    let mut more = json.clone();
    let object = more.as_object_mut().unwrap();
    object.insert(
        "_meta".into(),
        json!({ "com.example/key": [1, { "deep": null }] }),
    );
    object.insert("x-unknown".into(), json!({ "a": [true, 1.5, "é"] }));
    for value in [json, more] {
        let text = value.to_string();
        let decoded: T =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(serde_json::to_value(&decoded).unwrap(), value);
        let from_value: T = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(serde_json::to_value(&from_value).unwrap(), value);
    }
}

#[test]
fn everything_survives_a_round_trip() {
    let icon =
        json!({ "src": "data:,", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark" });
    let implementation = json!({
        "name": "n", "version": "1", "title": "N", "description": "d",
        "websiteUrl": "https://example.com", "icons": [icon]
    });
    survives::<Implementation>(implementation.clone());
    survives::<Icon>(icon.clone());
    survives::<ClientCapabilities>(json!({
        "experimental": { "a": {} }, "roots": { "listChanged": true },
        "sampling": { "context": {}, "tools": {} }, "elicitation": { "form": {}, "url": {} },
        "extensions": { "io.modelcontextprotocol/ui": { "mimeTypes": ["text/html"] } },
        "tasks": { "list": {} }
    }));
    survives::<ServerCapabilities>(json!({
        "experimental": {}, "logging": {}, "completions": {}, "prompts": { "listChanged": true },
        "resources": { "subscribe": true, "listChanged": false }, "tools": { "listChanged": true },
        "extensions": {}
    }));
    survives::<InitializeParams>(json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": implementation
    }));
    survives::<InitializeResult>(json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": implementation,
        "instructions": "carefully"
    }));
    survives::<DiscoverResult>(json!({
        "supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete",
        "instructions": "carefully", "ttlMs": 1000, "cacheScope": "public"
    }));
    survives::<UnsupportedVersionData>(json!({ "supported": ["2026-07-28"], "requested": "1" }));
    survives::<MissingCapabilityData>(json!({ "requiredCapabilities": { "elicitation": {} } }));
    survives::<PingParams>(json!({}));
    survives::<CancelledParams>(json!({ "requestId": "7", "reason": "r" }));
    survives::<CancelledParams>(json!({ "requestId": 7 }));
    survives::<ProgressParams>(json!({
        "progressToken": "t", "progress": 0.5, "total": 1.5, "message": "m"
    }));
    survives::<ProgressParams>(json!({ "progressToken": 7, "progress": 3, "total": 10 }));
    survives::<LoggingMessageParams>(json!({ "level": "emergency", "data": [1], "logger": "l" }));
    survives::<EmptyResult>(json!({ "resultType": "task" }));
    survives::<ToolDefinition>(json!({
        "name": "t", "inputSchema": { "type": "object", "$defs": { "a": true } }, "title": "T",
        "description": "d", "outputSchema": { "anyOf": [] },
        "annotations": {
            "title": "t", "readOnlyHint": true, "destructiveHint": false,
            "idempotentHint": true, "openWorldHint": false
        },
        "icons": [icon]
    }));
    survives::<ListToolsResult>(json!({
        "tools": [{ "name": "t", "inputSchema": {}, "x": 1 }], "nextCursor": "c",
        "resultType": "complete", "ttlMs": 0, "cacheScope": "private"
    }));
    survives::<PaginatedParams>(json!({ "cursor": "c" }));
    survives::<CallToolParams>(json!({
        "name": "t", "arguments": { "a": null }, "inputResponses": { "k": {} }, "requestState": "s"
    }));
    for structured in [
        json!(null),
        json!(1),
        json!("s"),
        json!([{}]),
        json!({ "a": 1 }),
    ] {
        survives::<CallToolResult>(json!({
            "content": [], "structuredContent": structured, "isError": true, "resultType": "complete"
        }));
    }
    let annotations = json!({
        "audience": ["user", "assistant"], "priority": 0.5, "lastModified": "2025-01-12T15:00:58Z"
    });
    survives::<CallToolResult>(json!({ "content": [
        { "type": "text", "text": "t", "annotations": annotations, "_meta": { "a": 1 }, "x": 1 },
        { "type": "image", "data": "AA==", "mimeType": "image/png" },
        { "type": "audio", "data": "AA==", "mimeType": "audio/wav" },
        { "type": "resource_link", "uri": "file:///a", "name": "a", "title": "A", "size": 3,
          "description": "d", "mimeType": "text/plain", "icons": [icon] },
        { "type": "resource", "resource": { "uri": "file:///a", "text": "t", "mimeType": "m" } },
        { "type": "resource", "resource": { "uri": "file:///a", "blob": "AA==" } },
        { "type": "hologram", "light": [1] }
    ]}));
}

#[test]
fn everything_that_is_read_and_told_survives_a_round_trip() {
    let icons = json!([{ "src": "data:," }]);
    let annotations = json!({ "audience": ["user"], "priority": 1.0 });
    let page = |name: &str, items: Value| {
        json!({
            name: items, "nextCursor": "", "resultType": "complete", "ttlMs": 5,
            "cacheScope": "public"
        })
    };
    let resource = json!({
        "uri": "file:///a", "name": "a", "title": "A", "description": "d", "mimeType": "text/plain",
        "annotations": annotations, "size": 3, "icons": icons
    });
    survives::<ResourceDefinition>(resource.clone());
    survives::<ListResourcesResult>(page("resources", json!([resource])));
    let template = json!({
        "uriTemplate": "file:///{path}", "name": "a", "title": "A", "description": "d",
        "mimeType": "text/plain", "annotations": annotations, "icons": icons
    });
    survives::<ResourceTemplateDefinition>(template.clone());
    survives::<ListResourceTemplatesResult>(page("resourceTemplates", json!([template])));
    survives::<ReadResourceParams>(json!({
        "uri": "file:///a", "inputResponses": { "k": { "action": "accept" } }, "requestState": "s"
    }));
    survives::<ReadResourceResult>(json!({
        "contents": [{ "uri": "file:///a", "text": "" }, { "uri": "file:///b", "blob": "AA==" }],
        "resultType": "complete", "ttlMs": 0, "cacheScope": "galactic"
    }));
    survives::<ResourceNotFoundData>(json!({ "uri": "file:///a" }));
    survives::<ResourceListChangedParams>(json!({}));
    survives::<ResourceUpdatedParams>(json!({ "uri": "file:///a" }));
    survives::<SubscribeParams>(json!({ "uri": "file:///a" }));

    let prompt = json!({
        "name": "p", "title": "P", "description": "d", "icons": icons,
        "arguments": [{ "name": "a", "title": "A", "description": "d", "required": true }]
    });
    survives::<PromptDefinition>(prompt.clone());
    survives::<ListPromptsResult>(page("prompts", json!([prompt])));
    survives::<GetPromptParams>(json!({
        "name": "p", "arguments": { "a": "b" }, "inputResponses": {}, "requestState": ""
    }));
    survives::<GetPromptResult>(json!({
        "messages": [
            { "role": "user", "content": { "type": "text", "text": "t" } },
            { "role": "assistant", "content": { "type": "hologram" }, "x": 1 }
        ],
        "resultType": "complete", "description": "d"
    }));
    survives::<PromptListChangedParams>(json!({}));
    survives::<ToolListChangedParams>(json!({}));
    survives::<SetLevelParams>(json!({ "level": "notice" }));

    for reference in [
        json!({ "type": "ref/prompt", "name": "p", "title": "P" }),
        json!({ "type": "ref/resource", "uri": "file:///{path}" }),
        json!({ "type": "ref/tool", "name": "t" }),
    ] {
        survives::<CompleteParams>(json!({
            "ref": reference, "argument": { "name": "a", "value": "v" },
            "context": { "arguments": { "b": "c" } }
        }));
    }
    survives::<CompleteResult>(json!({
        "completion": { "values": ["a"], "total": 7, "hasMore": true }, "resultType": "complete"
    }));
}

#[test]
fn everything_that_is_asked_back_survives_a_round_trip() {
    survives::<ListRootsParams>(json!({}));
    survives::<ListRootsResult>(json!({ "roots": [{ "uri": "file:///a", "name": "a" }] }));
    survives::<RootsListChangedParams>(json!({}));

    let text = json!({ "type": "text", "text": "t" });
    let tool_use = json!({ "type": "tool_use", "id": "1", "name": "t", "input": { "a": 1 } });
    let tool_result = json!({
        "type": "tool_result", "toolUseId": "1", "content": [text], "isError": false,
        "structuredContent": null
    });
    survives::<CreateMessageParams>(json!({
        "messages": [
            { "role": "user", "content": text },
            { "role": "assistant", "content": [tool_use, { "type": "hologram" }] },
            { "role": "user", "content": [tool_result], "x": 1 }
        ],
        "maxTokens": 100,
        "modelPreferences": {
            "hints": [{ "name": "m" }, {}], "costPriority": 0.5, "speedPriority": 0.25,
            "intelligencePriority": 1.0
        },
        "systemPrompt": "s", "includeContext": "thisServer", "temperature": 0.5,
        "stopSequences": ["."], "metadata": { "a": 1 },
        "tools": [{ "name": "t", "inputSchema": { "type": "object" } }],
        "toolChoice": { "mode": "required" }
    }));
    survives::<CreateMessageResult>(json!({
        "role": "assistant", "content": tool_use, "model": "m", "stopReason": "toolUse"
    }));

    let field = json!({ "title": "T", "description": "d" });
    let with = |more: Value| {
        let mut field = field.as_object().unwrap().clone();
        field.extend(more.as_object().unwrap().clone());
        Value::Object(field)
    };
    let titled = json!([{ "const": "a", "title": "A" }]);
    survives::<ElicitParams>(json!({
        "mode": "form", "message": "m",
        "requestedSchema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "required": ["text"],
            "properties": {
                "text": with(json!({
                    "type": "string", "minLength": 1, "maxLength": 9, "format": "date-time",
                    "default": "d"
                })),
                "number": with(json!({
                    "type": "number", "minimum": 0.5, "maximum": 9, "default": 1.5
                })),
                "integer": with(json!({ "type": "integer", "default": 30 })),
                "boolean": with(json!({ "type": "boolean", "default": true })),
                "choice": with(json!({
                    "type": "string", "enum": ["a"], "enumNames": ["A"], "default": "a"
                })),
                "titled": with(json!({ "type": "string", "oneOf": titled, "default": "a" })),
                "choices": with(json!({
                    "type": "array", "items": { "type": "string", "enum": ["a"] },
                    "minItems": 1, "maxItems": 2, "default": ["a"]
                })),
                "titled_choices": with(json!({ "type": "array", "items": { "anyOf": titled } })),
                "other": { "type": "hologram" }
            }
        }
    }));
    survives::<ElicitParams>(json!({
        "mode": "url", "message": "m", "url": "https://example.com", "elicitationId": "e",
        "type": "kept"
    }));
    survives::<ElicitResult>(json!({ "action": "accept", "content": { "a": ["b"], "c": 1 } }));
    survives::<ElicitResult>(json!({ "action": "decline" }));
    survives::<ElicitationCompleteParams>(json!({ "elicitationId": "e" }));
    survives::<UrlElicitationRequiredData>(json!({ "elicitations": [
        { "mode": "url", "message": "m", "url": "https://example.com", "elicitationId": "e" }
    ]}));

    let filter = json!({
        "toolsListChanged": true, "promptsListChanged": false, "resourcesListChanged": true,
        "resourceSubscriptions": ["file:///a"]
    });
    survives::<SubscriptionFilter>(filter.clone());
    survives::<ListenParams>(json!({ "notifications": filter }));
    survives::<AcknowledgedParams>(json!({ "notifications": filter }));
    survives::<ListenResult>(json!({ "resultType": "complete" }));
    survives::<InputRequiredResult>(json!({
        "resultType": "input_required", "requestState": "s",
        "inputRequests": {
            "b": { "method": "roots/list" },
            "a": { "method": "elicitation/create", "params": { "message": "m" } }
        }
    }));

    let task = json!({
        "taskId": "t", "status": "working", "createdAt": "c", "lastUpdatedAt": "l", "ttl": null,
        "statusMessage": "m", "pollInterval": 5
    });
    survives::<Task>(task.clone());
    survives::<CreateTaskResult>(json!({ "task": task }));
    survives::<ListTasksResult>(json!({ "tasks": [task], "nextCursor": "c" }));
    survives::<TaskIdParams>(json!({ "taskId": "t" }));
}

#[test]
fn the_order_of_fields_and_questions_is_kept() {
    let text = r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"boolean"}}}"#;
    let form: FormSchema = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&form).unwrap(), text);
    let names: Vec<&str> = form.properties.iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["z", "a"]);
    let twice = r#"{"properties":{"a":{"type":"string"},"a":{"type":"string"}}}"#;
    assert!(error_of::<FormSchema>(twice).contains("duplicate field `a`"));
    let wrong = r#"{"properties":{"age":{"type":"integer","minimum":"x"}}}"#;
    let error = error_of::<FormSchema>(wrong);
    assert!(
        error.starts_with("`properties`: `age`: `minimum`: invalid type"),
        "{error}"
    );
}

#[test]
fn a_form_knows_its_defaults() {
    let mut age = NumberField::new();
    age.default = Some(30.0.into());
    let mut size = ChoicesField::of(["s", "l"]);
    size.default = Some(vec!["l".into()]);
    let form = FormSchema::new()
        .field("name", TextField::new())
        .field("age", Field::Integer(age))
        .optional("size", size);
    assert_eq!(
        Value::from(form.defaults()),
        json!({ "age": 30, "size": ["l"] })
    );
    assert!(form.requires("name") && !form.requires("size"));
}

#[test]
fn completions_are_cut_at_a_hundred() {
    let completion = Completion::of((0..101).map(|number| number.to_string()));
    assert_eq!(completion.values.len(), 100);
    assert_eq!(completion.total, Some(101));
    assert_eq!(completion.has_more, Some(true));
    assert_eq!(Completion::of(["a"]).total, None);
}

fn error_of<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
    serde_json::from_str::<T>(json).unwrap_err().to_string()
}

/// Whatever comes with it, a record is decoded or refused, and what was decoded can be looked at.
#[test]
fn meta_of_any_peer_is_refused_or_readable() {
    let message = r#"{"role":"user","content":{"type":"text","text":"x","_meta":{"a":1}}}"#;
    let message: SamplingMessage = serde_json::from_str(message).expect("content with `_meta`");
    assert_eq!(message.content.as_text(), Some("x"));
    let long = "9".repeat(400);
    for odd in [
        r#"{"x":1e999}"#.to_owned(),
        format!(r#"{{"x":{long}}}"#),
        r#"{"a":{"$serde_json::private::RawValue":5}}"#.to_owned(),
        r#"{"a":1,"\u0061":2}"#.to_owned(),
        format!(r#"{{"a":{}{}}}"#, "[".repeat(200), "]".repeat(200)),
        "[]".to_owned(),
    ] {
        if let Ok(meta) = serde_json::from_str::<Meta>(&odd) {
            let _ = (format!("{meta:?}"), meta.get::<f64>("x"));
        }
    }
}

#[test]
fn wrong_types_are_told_with_the_name_of_their_field() {
    let starts = |error: String, with: &str| assert!(error.starts_with(with), "{error}");
    starts(
        error_of::<ToolDefinition>(r#"{"inputSchema":{}}"#),
        "missing field `name`",
    );
    starts(
        error_of::<ToolDefinition>(r#"{"name":7,"inputSchema":{}}"#),
        "`name`: invalid type: integer `7`, expected a string",
    );
    starts(
        error_of::<ToolDefinition>(r#"{"name":"t","inputSchema":[]}"#),
        "`inputSchema`: invalid type",
    );
    starts(
        error_of::<ToolDefinition>(
            r#"{"name":"t","inputSchema":{},"annotations":{"readOnlyHint":"yes"}}"#,
        ),
        "`annotations`: `readOnlyHint`: invalid type: string \"yes\", expected a boolean",
    );
    starts(
        error_of::<ListToolsResult>(r#"{"tools":[{"name":"t","inputSchema":{}},{"name":null}]}"#),
        "`tools`: `name`: invalid type: null",
    );
    starts(
        error_of::<CallToolResult>(r#"{"content":[{"type":"text","text":7}]}"#),
        "`content`: `text`: invalid type",
    );
    starts(
        error_of::<CallToolResult>(r#"{"content":[{"text":"t"}]}"#),
        "`content`: `type`: missing",
    );
    starts(
        error_of::<CancelledParams>(r#"{"requestId":1.5}"#),
        "`requestId`: invalid type: floating point",
    );
    starts(
        error_of::<CancelledParams>(r#"{"requestId":9223372036854775808}"#),
        "`requestId`: invalid value",
    );
    starts(
        error_of::<ProgressParams>(r#"{"progressToken":1,"progress":"half"}"#),
        "`progress`: invalid type",
    );
    starts(
        error_of::<InitializeParams>(r#"{"protocolVersion":"v","capabilities":{}}"#),
        "missing field `clientInfo`",
    );
    starts(
        error_of::<InitializeParams>(
            r#"{"protocolVersion":"v","capabilities":{},"clientInfo":{"name":"c"}}"#,
        ),
        "`clientInfo`: missing field `version`",
    );
    starts(
        error_of::<ToolDefinition>(r#"{"name":"t","inputSchema":{},"_meta":[]}"#),
        "`_meta`: invalid type",
    );
    starts(
        error_of::<ToolDefinition>("7"),
        "invalid type: integer `7`, expected an object",
    );
}

#[test]
fn errors_still_say_where() {
    let error = error_of::<ToolDefinition>("{\n  \"name\": 7 }");
    assert!(error.ends_with("at line 2 column 11"), "{error}");
}

#[test]
fn a_field_that_stands_twice_is_refused() {
    assert!(
        error_of::<ToolDefinition>(r#"{"name":"a","name":"b","inputSchema":{}}"#)
            .contains("duplicate field `name`")
    );
    assert!(
        error_of::<ToolDefinition>(r#"{"name":"a","x":1,"x":2,"inputSchema":{}}"#)
            .contains("duplicate field `x`")
    );
    assert!(
        error_of::<ToolDefinition>(r#"{"name":"a","inputSchema":{},"_meta":{"k":1,"k":2}}"#)
            .contains("duplicate field `k`")
    );
    assert!(
        error_of::<CallToolResult>(r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#)
            .contains("duplicate field `text`")
    );
}

#[test]
fn null_is_forgiven_where_something_may_be_missing() {
    let tool: ToolDefinition =
        serde_json::from_str(r#"{"name":"t","inputSchema":{},"title":null,"_meta":null}"#).unwrap();
    assert_eq!((tool.title, tool.meta), (None, None));
}

#[test]
fn the_keys_of_meta_are_typed_on_demand() {
    let meta: Meta = serde_json::from_str(r#"{"progressToken":"t","traceparent":7}"#).unwrap();
    assert_eq!(
        meta.get(meta_key::PROGRESS_TOKEN).unwrap(),
        Some(ProgressToken::from("t"))
    );
    let error = meta
        .get::<String>(meta_key::TRACEPARENT)
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("`_meta`: `traceparent`: invalid type"),
        "{error}"
    );
    assert_eq!(meta.get::<String>("nothing").unwrap(), None);
}

#[test]
fn versions_know_their_era() {
    for version in ProtocolVersion::ALL {
        assert_eq!(
            version.to_string().parse::<ProtocolVersion>().unwrap(),
            version
        );
        assert_eq!(
            version.era() == Era::Modern,
            version == ProtocolVersion::LATEST
        );
        assert_eq!(version.has_batches(), version.as_str() == "2025-03-26");
    }
    let error = "latest".parse::<ProtocolVersion>().unwrap_err();
    assert_eq!(error.to_string(), "unknown protocol version \"latest\"");
}

/// `BELAY_EXAMPLES` names the folder of the specification's own examples, which has a folder for each
/// type.
#[test]
#[ignore = "needs the specification's examples: BELAY_EXAMPLES names their folder"]
fn the_specifications_examples_survive_a_round_trip() {
    let folder = std::env::var("BELAY_EXAMPLES").expect("BELAY_EXAMPLES is set");
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_name().into_string().unwrap();
        let survives = survives_as(&kind).unwrap_or_else(|| panic!("no type for {kind}"));
        for example in std::fs::read_dir(entry.path()).unwrap() {
            let text = std::fs::read_to_string(example.unwrap().path()).unwrap();
            survives(serde_json::from_str(&text).unwrap());
            count += 1;
        }
    }
    println!("{count} examples");
    assert!(count > 100);
}

/// How an example of this type is read.
fn survives_as(kind: &str) -> Option<fn(Value)> {
    fn content(value: Value) {
        survives::<CallToolResult>(json!({ "content": [value] }));
    }
    fn block(value: Value) {
        survives::<SamplingMessage>(json!({ "role": "user", "content": [value] }));
    }
    fn field(value: Value) {
        survives::<FormSchema>(json!({ "type": "object", "properties": { "field": value } }));
    }
    Some(match kind {
        "AudioContent" | "EmbeddedResource" | "ImageContent" | "ResourceLink" | "TextContent" => {
            content
        }
        "ToolResultContent" | "ToolUseContent" => block,
        "BooleanSchema"
        | "NumberSchema"
        | "StringSchema"
        | "TitledMultiSelectEnumSchema"
        | "TitledSingleSelectEnumSchema"
        | "UntitledMultiSelectEnumSchema"
        | "UntitledSingleSelectEnumSchema" => field,
        "BlobResourceContents" | "TextResourceContents" => survives::<ResourceContents>,
        "CallToolRequest" => request::<CallToolParams>,
        "CompleteRequest" => request::<CompleteParams>,
        "DiscoverRequest" => request::<DiscoverParams>,
        "GetPromptRequest" => request::<GetPromptParams>,
        "ListPromptsRequest"
        | "ListResourceTemplatesRequest"
        | "ListResourcesRequest"
        | "ListToolsRequest" => request::<PaginatedParams>,
        "ReadResourceRequest" => request::<ReadResourceParams>,
        "SubscriptionsListenRequest" => request::<ListenParams>,
        "CreateMessageRequest" => question::<CreateMessageParams>,
        "ElicitRequest" => question::<ElicitParams>,
        "ListRootsRequest" => question::<ListRootsParams>,
        "CallToolResultResponse" => response::<CallToolResult>,
        "CompleteResultResponse" => response::<CompleteResult>,
        "DiscoverResultResponse" => response::<DiscoverResult>,
        "GetPromptResultResponse" => response::<GetPromptResult>,
        "ListPromptsResultResponse" => response::<ListPromptsResult>,
        "ListResourceTemplatesResultResponse" => response::<ListResourceTemplatesResult>,
        "ListResourcesResultResponse" => response::<ListResourcesResult>,
        "ListToolsResultResponse" => response::<ListToolsResult>,
        "ReadResourceResultResponse" => response::<ReadResourceResult>,
        "SubscriptionsListenResultResponse" => response::<ListenResult>,
        "CancelledNotification" => notification::<CancelledParams>,
        "LoggingMessageNotification" => notification::<LoggingMessageParams>,
        "ProgressNotification" => notification::<ProgressParams>,
        "PromptListChangedNotification" => notification::<PromptListChangedParams>,
        "ResourceListChangedNotification" => notification::<ResourceListChangedParams>,
        "ResourceUpdatedNotification" => notification::<ResourceUpdatedParams>,
        "SubscriptionsAcknowledgedNotification" => notification::<AcknowledgedParams>,
        "ToolListChangedNotification" => notification::<ToolListChangedParams>,
        "HeaderMismatchError" => |value| refusal(&value, None),
        "MissingRequiredClientCapabilityError" => {
            |value| refusal(&value, Some(survives::<MissingCapabilityData>))
        }
        "UnsupportedProtocolVersionError" => {
            |value| refusal(&value, Some(survives::<UnsupportedVersionData>))
        }
        "InternalError" | "InvalidParamsError" | "MethodNotFoundError" | "ParseError" => {
            |value| refusal(&json!({ "jsonrpc": "2.0", "id": 1, "error": value }), None)
        }
        "CallToolRequestParams" => survives::<CallToolParams>,
        "CallToolResult" => survives::<CallToolResult>,
        "CancelledNotificationParams" => survives::<CancelledParams>,
        "ClientCapabilities" => survives::<ClientCapabilities>,
        "CompleteRequestParams" => survives::<CompleteParams>,
        "CompleteResult" => survives::<CompleteResult>,
        "CreateMessageRequestParams" => survives::<CreateMessageParams>,
        "CreateMessageResult" => survives::<CreateMessageResult>,
        "DiscoverResult" => survives::<DiscoverResult>,
        "ElicitRequestFormParams" | "ElicitRequestURLParams" => survives::<ElicitParams>,
        "ElicitResult" => survives::<ElicitResult>,
        "GetPromptRequestParams" => survives::<GetPromptParams>,
        "GetPromptResult" => survives::<GetPromptResult>,
        "InputRequests" => |value| {
            let read: Named<InputRequest> = serde_json::from_value(value.clone()).unwrap();
            assert_eq!(serde_json::to_value(&read).unwrap(), value);
        },
        "InputRequiredResult" => survives::<InputRequiredResult>,
        "InputResponses" => survives::<InputResponses>,
        "ListPromptsResult" => survives::<ListPromptsResult>,
        "ListResourceTemplatesResult" => survives::<ListResourceTemplatesResult>,
        "ListResourcesResult" => survives::<ListResourcesResult>,
        "ListRootsResult" => survives::<ListRootsResult>,
        "ListToolsResult" => survives::<ListToolsResult>,
        "LoggingMessageNotificationParams" => survives::<LoggingMessageParams>,
        "ModelPreferences" => survives::<ModelPreferences>,
        "PaginatedRequestParams" => survives::<PaginatedParams>,
        "ProgressNotificationParams" => survives::<ProgressParams>,
        "ReadResourceResult" => survives::<ReadResourceResult>,
        "Resource" => survives::<ResourceDefinition>,
        "ResourceUpdatedNotificationParams" => survives::<ResourceUpdatedParams>,
        "Root" => survives::<Root>,
        "SamplingMessage" => survives::<SamplingMessage>,
        "ServerCapabilities" => survives::<ServerCapabilities>,
        "SubscriptionsListenResult" => survives::<ListenResult>,
        "Tool" => survives::<ToolDefinition>,
        _ => return None,
    })
}

/// A whole message, which is the same when it is written again.
fn message(value: &Value) -> Message {
    let read = jsonrpc::decode(&value.to_string().into(), 64).unwrap();
    let again: Value = serde_json::from_slice(&read.encode()).unwrap();
    assert_eq!(again, *value);
    read
}

/// A whole request: by the envelope, and what is in it.
fn request<T: Serialize + DeserializeOwned>(value: Value) {
    let read = message(&value);
    assert!(matches!(read, Message::Request(_)), "{read:?}");
    survives::<T>(value["params"].clone());
}

/// A request as it stands in a round, without an envelope.
fn question<T: Serialize + DeserializeOwned>(value: Value) {
    survives::<InputRequest>(value.clone());
    if let Some(params) = value.get("params") {
        survives::<T>(params.clone());
    }
}

fn response<T: Serialize + DeserializeOwned>(value: Value) {
    let read = message(&value);
    assert!(matches!(read, Message::Response(_)), "{read:?}");
    survives::<T>(value["result"].clone());
}

fn notification<T: Serialize + DeserializeOwned>(value: Value) {
    let read = message(&value);
    assert!(matches!(read, Message::Notification(_)), "{read:?}");
    if let Some(params) = value.get("params") {
        survives::<T>(params.clone());
    }
}

fn refusal(value: &Value, data: Option<fn(Value)>) {
    let read = message(value);
    assert!(matches!(read, Message::Response(_)), "{read:?}");
    if let Some(data) = data {
        data(value["error"]["data"].clone());
    }
}
