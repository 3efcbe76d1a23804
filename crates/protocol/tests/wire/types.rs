//! Types: what is decoded and written back is still all there, and errors name their field.

use belay_protocol::types::legacy::{InitializeParams, InitializeResult, PingParams};
use belay_protocol::types::modern::{
    DiscoverResult, MissingCapabilityData, UnsupportedVersionData,
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
    survives::<Tool>(json!({
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

fn error_of<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
    serde_json::from_str::<T>(json).unwrap_err().to_string()
}

#[test]
fn wrong_types_are_told_with_the_name_of_their_field() {
    let starts = |error: String, with: &str| assert!(error.starts_with(with), "{error}");
    starts(
        error_of::<Tool>(r#"{"inputSchema":{}}"#),
        "missing field `name`",
    );
    starts(
        error_of::<Tool>(r#"{"name":7,"inputSchema":{}}"#),
        "`name`: invalid type: integer `7`, expected a string",
    );
    starts(
        error_of::<Tool>(r#"{"name":"t","inputSchema":[]}"#),
        "`inputSchema`: invalid type",
    );
    starts(
        error_of::<Tool>(r#"{"name":"t","inputSchema":{},"annotations":{"readOnlyHint":"yes"}}"#),
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
        error_of::<Tool>(r#"{"name":"t","inputSchema":{},"_meta":[]}"#),
        "`_meta`: invalid type",
    );
    starts(
        error_of::<Tool>("7"),
        "invalid type: integer `7`, expected an object",
    );
}

#[test]
fn errors_still_say_where() {
    let error = error_of::<Tool>("{\n  \"name\": 7 }");
    assert!(error.ends_with("at line 2 column 11"), "{error}");
}

#[test]
fn a_field_that_stands_twice_is_refused() {
    assert!(
        error_of::<Tool>(r#"{"name":"a","name":"b","inputSchema":{}}"#)
            .contains("duplicate field `name`")
    );
    assert!(
        error_of::<Tool>(r#"{"name":"a","x":1,"x":2,"inputSchema":{}}"#)
            .contains("duplicate field `x`")
    );
    assert!(
        error_of::<Tool>(r#"{"name":"a","inputSchema":{},"_meta":{"k":1,"k":2}}"#)
            .contains("duplicate field `k`")
    );
    assert!(
        error_of::<CallToolResult>(r#"{"content":[{"type":"text","text":"a","text":"b"}]}"#)
            .contains("duplicate field `text`")
    );
}

#[test]
fn null_is_forgiven_where_something_may_be_missing() {
    let tool: Tool =
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

/// The specification's own examples, where somebody has them: `BELAY_EXAMPLES` names the folder.
#[test]
fn the_specifications_examples_survive_a_round_trip() {
    let Ok(folder) = std::env::var("BELAY_EXAMPLES") else {
        return;
    };
    let mut count = 0;
    let mut check = |kind: &str, survives: fn(Value)| {
        for entry in std::fs::read_dir(format!("{folder}/{kind}")).unwrap() {
            let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
            survives(serde_json::from_str(&text).unwrap());
            count += 1;
        }
    };
    check("Tool", survives::<Tool>);
    check("ListToolsResult", survives::<ListToolsResult>);
    check("CallToolResult", survives::<CallToolResult>);
    check("CallToolRequestParams", survives::<CallToolParams>);
    check("ClientCapabilities", survives::<ClientCapabilities>);
    check("ServerCapabilities", survives::<ServerCapabilities>);
    check("DiscoverResult", survives::<DiscoverResult>);
    check("CancelledNotificationParams", survives::<CancelledParams>);
    check("ProgressNotificationParams", survives::<ProgressParams>);
    check(
        "LoggingMessageNotificationParams",
        survives::<LoggingMessageParams>,
    );
    for kind in [
        "TextContent",
        "ImageContent",
        "AudioContent",
        "ResourceLink",
        "EmbeddedResource",
    ] {
        check(kind, |value| {
            survives::<CallToolResult>(json!({ "content": [value] }))
        });
    }
    println!("{count} examples");
}
