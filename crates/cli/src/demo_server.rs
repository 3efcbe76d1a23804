//! The demo server of `belay serve`. Its tools show how requests end.

use std::fs::OpenOptions;
use std::future::pending;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::server::ServerStats;
use belay::types::{CallToolResult, ElicitParams, FormSchema, TextField};
use belay::{Context, Json, Prompt, Resource, ResourceTemplate, Server, Tool};
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
    /// Name to greet
    name: String,
}

/// Number of `hang` calls that are running in this process.
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
            .description("Returns the text in its URI.")
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
            .description("Sends a notification that a resource was updated."),
        )
        .instructions("Tools that show how requests end.")
        .tool(
            Tool::new("echo", |_: Context, echo: Echo| async move { echo.text })
                .description("Returns its text."),
        )
        .tool(Tool::new("count", count).description("Counts up to `to` and reports progress."))
        .tool(
            Tool::new("hang", hang)
                .description("Runs until it is cancelled; ignores its cancellation token."),
        )
        .tool(
            Tool::new("active", |_: Context, _: Nothing| async {
                ACTIVE.load(Ordering::SeqCst).to_string()
            })
            .description("Returns the number of `hang` calls that are running."),
        )
        .tool(
            Tool::new("rollback", rollback)
                .description("Runs until it is cancelled, then cleans up for `ms` milliseconds.")
                .grace(Duration::from_secs(5)),
        )
        .tool(
            Tool::blocking("block", |_: Context, block: Millis| {
                std::thread::sleep(Duration::from_millis(block.ms));
            })
            .description("Blocks its thread for `ms` milliseconds."),
        )
        .tool(Tool::new("panic", panic).description("Panics."))
        .tool(Tool::new("ask", ask).description("Asks the user a question (elicitation)."))
        .tool(
            Tool::new("once", execute)
                .description("Records its key. Not idempotent: call it once for each key."),
        )
        .tool(
            Tool::new("idempotent", execute)
                .description("Records its key. Idempotent: it can be called again.")
                .annotations(|hints| hints.idempotent_hint = Some(true)),
        )
        .tool(
            Tool::new("ledger", move |_: Context, _: Nothing| {
                ledger(stats.clone())
            })
            .description("Returns how many requests started, ended and are running."),
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
    // Tells a test that the handler is running, so that there is something to clean up.
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

/// Appends its key to a log file that tests read, then takes 2 ms.
async fn execute(_: Context, execute: Key) -> String {
    note("BELAY_DEMO_EXECUTION_LOG", &execute.key);
    tokio::time::sleep(Duration::from_millis(2)).await;
    execute.key
}

/// Counts the requests of the whole process, without this one.
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

/// Appends a line to the file that an environment variable names. Tests read it.
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
