//! The server of the official conformance suite: `conformance-server --addr HOST:PORT`, at `/mcp`.
//!
//! The suite calls tools by name and checks what comes back; what each of them does is its contract,
//! not ours.

use std::time::Duration;

use belay::types::{CallToolResult, ContentBlock, LoggingLevel};
use belay::{Context, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// The smallest of its kind, in base64.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAAAAA==";

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let address = match (arguments.next().as_deref(), arguments.next()) {
        (Some("--addr"), Some(address)) => address,
        _ => {
            eprintln!("conformance-server --addr HOST:PORT");
            std::process::exit(1);
        }
    };
    belay::http::serve(address, server()).await
}

fn server() -> Server {
    Server::new("belay-conformance", env!("CARGO_PKG_VERSION"))
        .tool(plain("test_simple_text", "Says one thing.", || {
            vec![ContentBlock::text(
                "This is a simple text response for testing.",
            )]
        }))
        .tool(plain("test_image_content", "Shows an image.", || {
            vec![image()]
        }))
        .tool(plain("test_audio_content", "Plays a sound.", || {
            vec![block(
                json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" }),
            )]
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
                    ContentBlock::text("Multiple content types test:"),
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
        .tool(Tool::new("test_sampling", sampling).description("Asks the model."))
        .tool(Tool::new("test_elicitation", elicitation).description("Asks the user."))
        .tool(
            Tool::new(
                "test_elicitation_sep1034_defaults",
                |cx: Context, (): ()| {
                    elicit(
                        cx,
                        "Please review and update the form fields with defaults",
                        defaults(),
                    )
                },
            )
            .description("Asks with answers proposed."),
        )
        .tool(
            Tool::new("test_elicitation_sep1330_enums", |cx: Context, (): ()| {
                elicit(cx, "Please select options from the enum fields", enums())
            })
            .description("Asks to choose."),
        )
}

/// A tool that always answers the same.
fn plain(name: &str, description: &str, answer: fn() -> Vec<ContentBlock>) -> Tool {
    Tool::new(name, move |_: Context, (): ()| async move { answer() }).description(description)
}

fn image() -> ContentBlock {
    block(json!({ "type": "image", "data": PNG, "mimeType": "image/png" }))
}

fn resource(uri: &str, mime_type: &str, text: &str) -> ContentBlock {
    let resource = json!({ "uri": uri, "mimeType": mime_type, "text": text });
    block(json!({ "type": "resource", "resource": resource }))
}

fn block(json: Value) -> ContentBlock {
    serde_json::from_value(json).expect("a block as the specification has it")
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

async fn pause() {
    tokio::time::sleep(Duration::from_millis(50)).await;
}

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    prompt: String,
}

async fn sampling(cx: Context, it: Prompt) -> CallToolResult {
    let content = json!({ "type": "text", "text": it.prompt });
    let params = json!({
        "messages": [{ "role": "user", "content": content }],
        "maxTokens": 100
    });
    match cx
        .request_raw::<Value>("sampling/createMessage", &params)
        .await
    {
        Ok(answer) => {
            let text = answer["content"]["text"].as_str().unwrap_or_default();
            CallToolResult::text(format!("LLM response: {text}"))
        }
        Err(error) => CallToolResult::error(error.to_string()),
    }
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

async fn elicitation(cx: Context, it: Message) -> CallToolResult {
    let schema = json!({
        "type": "object",
        "properties": { "username": { "type": "string" }, "email": { "type": "string" } },
        "required": ["username", "email"]
    });
    let params = json!({ "message": it.message, "requestedSchema": schema });
    match cx.request_raw::<Value>("elicitation/create", &params).await {
        Ok(answer) => CallToolResult::text(format!("User response: {answer}")),
        Err(error) => CallToolResult::error(error.to_string()),
    }
}

async fn elicit(cx: Context, message: &'static str, properties: Value) -> CallToolResult {
    let schema = json!({ "type": "object", "properties": properties });
    let params = json!({ "message": message, "requestedSchema": schema });
    match cx.request_raw::<Value>("elicitation/create", &params).await {
        Ok(answer) => {
            let (action, content) = (&answer["action"], &answer["content"]);
            let action = action.as_str().unwrap_or_default();
            let text = format!("Elicitation completed: action={action}, content={content}");
            CallToolResult::text(text)
        }
        Err(error) => CallToolResult::error(error.to_string()),
    }
}

fn defaults() -> Value {
    json!({
        "name": { "type": "string", "default": "John Doe" },
        "age": { "type": "integer", "default": 30 },
        "score": { "type": "number", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "default": true }
    })
}

fn enums() -> Value {
    let titled = |values: [&str; 3]| -> Vec<Value> {
        let titled = values.map(|value| json!({ "const": value, "title": value.to_uppercase() }));
        titled.into()
    };
    let options = ["option1", "option2", "option3"];
    let values = ["value1", "value2", "value3"];
    json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled(values) },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"]
        },
        "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "items": { "anyOf": titled(values) } }
    })
}
