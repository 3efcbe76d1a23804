//! The demo server: tools that show the contract.

use std::fs::OpenOptions;
use std::future::pending;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::types::{CallToolResult, ElicitParams, FormSchema, TextField};
use belay::{Context, Json, Prompt, Resource, ResourceTemplate, Server, ServerStats, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Count {
    to: u32,
    delay_ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Millis {
    ms: u64,
}

#[derive(Deserialize, JsonSchema)]
struct Question {
    question: String,
}

#[derive(Deserialize, JsonSchema)]
struct Key {
    key: String,
}

#[derive(Deserialize, JsonSchema)]
struct Touch {
    uri: String,
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Who is greeted.
    name: String,
}

/// How many `hang`s are running in this process.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);

pub(crate) fn server() -> Server {
    let server = Server::new("belay-demo", env!("CARGO_PKG_VERSION"));
    let stats = server.stats();
    let resources = server.resources();
    server
        .resource(
            Resource::text("demo://hello", "hello", "Hello from Belay.")
                .description("A text to read."),
        )
        .resource_template(
            ResourceTemplate::new(
                "demo://echo/{text}",
                "echo",
                |_: Context, echo: Echo| async move { echo.text },
            )
            .description("Says what its URI says.")
            .mime_type("text/plain"),
        )
        .prompt(
            Prompt::new("greet", |_: Context, greet: Greet| async move {
                format!("Greet {} warmly.", greet.name)
            })
            .description("Asks for a greeting."),
        )
        .tool(
            Tool::new("touch", move |_: Context, touch: Touch| {
                resources.updated(&touch.uri);
                async { "touched" }
            })
            .description("Tells whoever listens that a resource has changed."),
        )
        .instructions("Tools that show what becomes of requests.")
        .tool(
            Tool::new("echo", |_: Context, echo: Echo| async move { echo.text })
                .description("Says what it is told."),
        )
        .tool(Tool::new("count", count).description("Counts, with progress."))
        .tool(
            Tool::new("hang", hang)
                .description("Runs until it is stopped; never looks at its token."),
        )
        .tool(
            Tool::new("active", |_: Context, _: Nothing| async {
                ACTIVE.load(Ordering::SeqCst).to_string()
            })
            .description("How many hangs are running."),
        )
        .tool(
            Tool::new("rollback", rollback)
                .description("Runs until it is stopped, then cleans up for ms milliseconds.")
                .grace(Duration::from_secs(5)),
        )
        .tool(
            Tool::blocking("block", |_: Context, block: Millis| {
                std::thread::sleep(Duration::from_millis(block.ms));
            })
            .description("Blocks its thread for ms milliseconds."),
        )
        .tool(Tool::new("panic", panic).description("Panics."))
        .tool(Tool::new("ask", ask).description("Asks the user."))
        .tool(
            Tool::new("once", execute)
                .description("Notes that it was executed. Not to be called twice with one key."),
        )
        .tool(
            Tool::new("idempotent", execute)
                .description("The same, and calling it twice does no harm.")
                .annotations(|hints| hints.idempotent_hint = Some(true)),
        )
        .tool(
            Tool::new("ledger", move |_: Context, _: Nothing| {
                ledger(stats.clone())
            })
            .description("How many requests began, ended and run."),
        )
}

async fn count(cx: Context, count: Count) -> String {
    for step in 1..=count.to {
        tokio::time::sleep(Duration::from_millis(count.delay_ms)).await;
        cx.progress(f64::from(step), f64::from(count.to), "").await;
    }
    count.to.to_string()
}

async fn hang(_: Context, _: Nothing) {
    ACTIVE.fetch_add(1, Ordering::SeqCst);
    let _running = OnDrop(|| {
        ACTIVE.fetch_sub(1, Ordering::SeqCst);
        cleaned();
    });
    pending().await
}

async fn rollback(cx: Context, rollback: Millis) {
    // So that whoever wants to see it clean up knows that there is something to clean.
    cx.progress(1.0, None, "running").await;
    cx.stopped().await;
    tokio::time::sleep(Duration::from_millis(rollback.ms)).await;
    cleaned();
}

async fn panic(_: Context, _: Nothing) {
    panic!("the demo server was asked to panic");
}

async fn ask(cx: Context, ask: Question) -> CallToolResult {
    let form = FormSchema::new().optional("answer", TextField::new());
    let asked = cx.elicit_by_hand(ElicitParams::form(ask.question, form));
    match asked.await {
        Ok(answer) => CallToolResult::text(json!(answer).to_string()),
        Err(error) => CallToolResult::error(error.to_string()),
    }
}

/// Leaves its key where a test can find it, then takes a moment.
async fn execute(_: Context, execute: Key) -> String {
    note("BELAY_DEMO_EXECUTION_LOG", &execute.key);
    tokio::time::sleep(Duration::from_millis(2)).await;
    execute.key
}

/// Of the whole process, this request not counted.
async fn ledger(stats: ServerStats) -> Json<Value> {
    let requests = stats.ledger().requests;
    Json(json!({
        "started": requests.started() - 1,
        "ended": requests.ended(),
        "running": requests.in_flight() - 1,
    }))
}

fn cleaned() {
    note("BELAY_DEMO_CLEANUP_LOG", "cleaned");
}

/// Leaves a line where a test can find it.
fn note(variable: &str, line: &str) {
    if let Some(path) = std::env::var_os(variable) {
        let log = OpenOptions::new().create(true).append(true).open(path);
        if let Ok(mut log) = log {
            let _ = log.write_all(format!("{line}\n").as_bytes());
        }
    }
}

struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}
