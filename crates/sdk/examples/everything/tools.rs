//! Tools that answer by themselves.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use belay::types::{CallToolResult, ContentBlock, Icon, LoggingLevel, ResourceContents};
use belay::{Context, Json, Prompt, Resource, Server, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Text;

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Stars {
    #[schemars(range(min = 1, max = 5))]
    stars: u8,
}

#[derive(Deserialize, JsonSchema)]
struct Order {
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

/// Tools that answer by themselves.
pub(crate) fn tools(server: Server) -> Server {
    let (tools, resources, prompts) = (server.tools(), server.resources(), server.prompts());
    let (touched, stats) = (server.resources(), server.stats());
    let moves = Arc::new(AtomicUsize::new(0));
    let count = moves.clone();
    let orders = AtomicUsize::new(0);
    server
        .on_notification(move |told| {
            if told.method == "notifications/roots/list_changed" {
                count.fetch_add(1, Ordering::SeqCst);
            }
        })
        .tool(
            Tool::new("echo", |_: Context, it: Text| async move { it.text })
                .title("Echo")
                .description("Says what it is told.")
                .icon(Icon::new("data:image/png;base64,AA=="))
                .annotations(|hints| hints.read_only_hint = Some(true)),
        )
        .tool(Tool::new(
            "add",
            |_: Context, Add { a, b }: Add| async move {
                let sum = a.checked_add(b).ok_or("that is too much")?;
                Ok::<_, &str>(Json(Sum { sum }))
            },
        ))
        // With the feature `validate` the arguments are held against what the schema says.
        .tool(Tool::new("rate", |_: Context, it: Stars| async move {
            "*".repeat(it.stars.into())
        }))
        // On HTTP the argument is in a header, too, for whoever stands in between.
        .tool(Tool::new("order", move |_: Context, it: Order| {
            let number = orders.fetch_add(1, Ordering::SeqCst) + 1;
            async move { format!("order {number}, to {}", it.region) }
        }))
        .tool(Tool::new("trace", |cx: Context, (): ()| async move {
            let trace = cx.trace_context().ok_or("nobody traces this")?;
            let parts = [trace.tracestate.as_deref(), trace.baggage.as_deref()];
            let parts = parts.map(Option::unwrap_or_default).join(" ");
            Ok::<_, &str>(format!("{} {parts}", trace.trace_id()))
        }))
        .tool(Tool::new("mixed", |_: Context, (): ()| async {
            let mut result = CallToolResult::text("a picture, a sound, a link and a resource");
            result
                .content
                .push(ContentBlock::image(b"png", "image/png"));
            result
                .content
                .push(ContentBlock::audio(b"wav", "audio/wav"));
            result.content.push(ContentBlock::link("memo://1", "first"));
            let text = ResourceContents::new("memo://1").text("a memo");
            result.content.push(ContentBlock::resource(text));
            result
        }))
        .tool(Tool::new("steps", |cx: Context, (): ()| async move {
            for step in 1..=3 {
                cx.progress(step.into(), 3.0, "step").await;
                cx.log(LoggingLevel::Info, format!("step {step}")).await;
                cx.log(LoggingLevel::Debug, "and some detail").await;
            }
            "done"
        }))
        // Runs until its caller is gone.
        .tool(Tool::new("hang", |_: Context, (): ()| pending::<()>()))
        .tool(Tool::new("running", move |_: Context, (): ()| {
            let others = stats.handlers().saturating_sub(1);
            async move { others.to_string() }
        }))
        // What it offers can change while it runs.
        .tool(Tool::new("grow", move |_: Context, it: Text| {
            match it.text.as_str() {
                "prompts" => {
                    prompts.add(Prompt::new("grown", |_: Context, (): ()| async { "new" }))
                }
                "resources" => resources.add(Resource::text("memo://grown", "grown", "new")),
                _ => tools.add(Tool::new("grown", |_: Context, (): ()| async { "new" })),
            }
            async { "there is a new one" }
        }))
        // How often a client said that its folders have changed.
        .tool(Tool::new("moves", move |_: Context, (): ()| {
            let moves = moves.load(Ordering::SeqCst);
            async move { moves.to_string() }
        }))
        .tool(Tool::new("touch", move |_: Context, it: Text| {
            touched.updated(&it.text);
            async { "touched" }
        }))
}
