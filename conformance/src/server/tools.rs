//! Tools that answer without asking their client.

use std::time::Duration;

use belay::types::{AudioContent, CallToolResult, ContentBlock, ImageContent, LoggingLevel};
use belay::types::{CreateMessageParams, ResourceContents, SamplingMessage};
use belay::{Context, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::PNG;

/// The smallest WAV sound, in base64.
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

pub(super) fn offer(server: Server) -> Server {
    let (tools, prompts) = (server.tools(), server.prompts());
    server
        .tool(plain("test_simple_text", "Says one thing.", || {
            vec!["This is a simple text response for testing.".into()]
        }))
        .tool(plain("test_image_content", "Shows an image.", || {
            vec![image()]
        }))
        .tool(plain("test_audio_content", "Plays a sound.", || {
            vec![AudioContent::new(WAV, "audio/wav").into()]
        }))
        .tool(plain("test_embedded_resource", "Gives a resource.", || {
            let text = "This is an embedded resource content.";
            vec![resource("test://embedded-resource", "text/plain", text)]
        }))
        .tool(plain(
            "test_multiple_content_types",
            "Gives one of each.",
            || {
                let data = r#"{"test":"data","value":123}"#;
                vec![
                    "Multiple content types test:".into(),
                    image(),
                    resource("test://mixed-content-resource", "application/json", data),
                ]
            },
        ))
        .tool(
            Tool::new("test_error_handling", |_: Context, (): ()| async {
                CallToolResult::error("This tool intentionally returns an error for testing")
            })
            .description("Fails."),
        )
        .tool(Tool::new("test_tool_with_progress", progress).description("Tells how far it is."))
        .tool(Tool::new("test_tool_with_logging", logging).description("Tells what it does."))
        .tool(Tool::new("test_logging_tool", logging).description("Tells whoever wants to know."))
        .tool(Tool::new("test_reconnection", reconnection).description("Lets go meanwhile."))
        .tool(Tool::new("test_missing_capability", asks_model).description("Needs a model."))
        .tool(plain(
            "test_streaming_elicitation",
            "Asks nothing while it answers.",
            || vec!["Done".into()],
        ))
        .tool(
            Tool::new("test_trigger_tool_change", move |_: Context, (): ()| {
                tools.changed();
                async { "Done" }
            })
            .description("Tells that the list of tools changed."),
        )
        .tool(
            Tool::new("test_trigger_prompt_change", move |_: Context, (): ()| {
                prompts.changed();
                async { "Done" }
            })
            .description("Tells that the list of prompts changed."),
        )
        .tool(
            Tool::new(
                "test_custom_header",
                |_: Context, it: InHeader| async move { it.value },
            )
            .description("Is told in a header, too."),
        )
        .tool(
            Tool::new(
                "json_schema_2020_12_tool",
                |_: Context, it: Map<String, Value>| async move { Value::from(it).to_string() },
            )
            .description("Has a schema with everything.")
            .input_schema(everything()),
        )
}

/// A tool that always gives the same answer.
fn plain(name: &str, description: &str, answer: fn() -> Vec<ContentBlock>) -> Tool {
    Tool::new(name, move |_: Context, (): ()| async move { answer() }).description(description)
}

fn image() -> ContentBlock {
    ImageContent::new(PNG, "image/png").into()
}

fn resource(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    ContentBlock::resource(ResourceContents::new(uri).text(text).mime_type(mime_type))
}

async fn progress(cx: Context, (): ()) -> String {
    for (step, percent) in [0.0, 50.0, 100.0].into_iter().enumerate() {
        if step > 0 {
            pause().await;
        }
        cx.progress(percent, 100.0, "").await;
    }
    "Done".to_owned()
}

async fn logging(cx: Context, (): ()) -> String {
    for message in [
        "Tool execution started",
        "Tool processing data",
        "Tool execution completed",
    ] {
        cx.log(LoggingLevel::Info, message).await;
        pause().await;
    }
    "Done".to_owned()
}

async fn reconnection(cx: Context, (): ()) -> String {
    cx.close_sse_stream(Duration::from_millis(500));
    pause().await;
    "Done".to_owned()
}

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

async fn asks_model(cx: Context, (): ()) -> Result<String, ToolError> {
    let ask = CreateMessageParams::new([SamplingMessage::user("Hello")], 10_u64);
    let said = cx.sample(ask).await?;
    Ok(said.content.as_text().unwrap_or_default().to_owned())
}

#[derive(Deserialize, JsonSchema)]
struct InHeader {
    #[serde(default)]
    #[schemars(extend("x-mcp-header" = "Value"))]
    value: String,
}

/// The schema that the suite expects back, literally.
fn everything() -> Map<String, Value> {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } }
            }
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" }
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"]
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false
    });
    match schema {
        Value::Object(schema) => schema,
        _ => unreachable!("it is an object"),
    }
}
