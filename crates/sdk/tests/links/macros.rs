//! What `#[belay::server]` makes of an `impl` block.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use belay::client::Mode;
use belay::types::CallToolResult;
use belay::{Context, Server, ToolError};
use belay_testkit::pair;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// An order, by its number.
#[derive(Deserialize, JsonSchema)]
struct OrderId(u64);

#[derive(Serialize, JsonSchema)]
struct Receipt {
    order: u64,
    rush: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Arguments {
    output: u32,
    #[serde(default, skip_serializing)]
    #[allow(dead_code)]
    secret: u32,
}

#[derive(Default)]
struct Orders {
    shipped: AtomicU64,
}

/// Ships orders.
#[belay::server(name = "orders", version = "1.2.3")]
impl Orders {
    /// Ships an order.
    ///
    /// It cannot be called back.
    #[tool(grace = "1s", destructive, idempotent = false, title = "Ship it")]
    async fn ship(
        &self,
        cx: &Context,
        /// Which one.
        order: OrderId,
        rush: Option<bool>,
    ) -> Result<Receipt, ToolError> {
        cx.progress(1.0, 2.0, "packing").await;
        if order.0 == 0 {
            return Err(ToolError::new("there is no order 0"));
        }
        self.shipped.fetch_add(1, Ordering::SeqCst);
        Ok(Receipt {
            order: order.0,
            rush: rush.unwrap_or_default(),
        })
    }

    #[tool(name = "shipped-so-far", read_only)]
    async fn shipped(&self) -> u64 {
        self.shipped.load(Ordering::SeqCst)
    }

    #[tool(blocking, concurrency = 2)]
    fn label(&self, cx: Context, #[serde(default)] copies: u8) -> String {
        format!("{copies} labels for {}", cx.id())
    }

    #[tool(timeout = "20ms")]
    async fn slow() {
        tokio::time::sleep(Duration::from_secs(60)).await;
    }

    #[tool]
    async fn raw(&self, parts: Vec<String>) -> CallToolResult {
        CallToolResult::text(parts.concat())
    }

    #[tool]
    async fn parse(&self, text: String) -> Result<String, ToolError> {
        let number: u32 = text.parse()?;
        Ok(format!("{number:b}"))
    }

    /// Words that the expansion uses, too.
    #[tool]
    async fn r#match(&self, arguments: Arguments, this: u8, cx: &Context, server: u8) -> Arguments {
        let _ = cx.id();
        Arguments {
            output: arguments.output + u32::from(this) + u32::from(server),
            secret: 0,
        }
    }

    #[cfg(not(test))]
    #[tool]
    async fn not_here(&self) {}

    #[cfg(test)]
    #[tool]
    async fn not_there(&self) {}

    /// Not a tool.
    fn helper(&self) -> u64 {
        self.shipped.load(Ordering::SeqCst)
    }
}

#[tokio::test]
async fn methods_become_tools_with_what_they_say_about_themselves() {
    assert_eq!(Orders::default().helper(), 0);
    let server = Server::from(Orders::default());
    let (client, _serving) = pair(&server, Mode::Legacy).await.unwrap();
    let introduction = client.introduction().as_str().to_owned();
    assert!(
        introduction.contains(r#""name":"orders","version":"1.2.3""#),
        "{introduction}"
    );
    assert!(
        introduction.contains(r#""instructions":"Ships orders.""#),
        "{introduction}"
    );

    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ship",
            "shipped-so-far",
            "label",
            "slow",
            "raw",
            "parse",
            "match",
            "not_there"
        ]
    );
    let ship = tools.iter().find(|tool| tool.name == "ship").unwrap();
    let description = "Ships an order.\n\nIt cannot be called back.";
    assert_eq!(ship.description.as_deref(), Some(description));
    assert_eq!(ship.title.as_deref(), Some("Ship it"));
    let hints = ship.annotations.as_ref().unwrap();
    assert_eq!(hints.destructive_hint, Some(true));
    assert_eq!(hints.idempotent_hint, Some(false));
    assert_eq!(ship.input_schema["required"], json!(["order"]));
    let order = &ship.input_schema["properties"]["order"];
    assert_eq!(order["description"], "Which one.", "{order}");
    let output = ship.output_schema.as_ref().unwrap();
    assert_eq!(output["required"], json!(["order", "rush"]));
    let schema = |name: &str| {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        tool.output_schema.as_ref()
    };
    assert_eq!(
        schema("shipped-so-far"),
        None,
        "a number is no object, in the legacy era"
    );
    assert_eq!(schema("raw"), None);
    // The schema is that of what is written.
    let properties = schema("match").unwrap()["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["output"]);
}

#[tokio::test]
async fn tools_are_called_with_typed_arguments_and_give_typed_results() {
    for mode in [Mode::Legacy, Mode::Modern] {
        let server = Server::from(Orders::default());
        let (client, _serving) = pair(&server, mode).await.unwrap();
        let call = |tool: &str, arguments| client.call_tool(tool, arguments);
        let shipped = call("ship", json!({ "order": 7, "rush": true }))
            .await
            .unwrap();
        let receipt = json!({ "order": 7, "rush": true });
        assert_eq!(shipped.structured_content, Some(receipt));
        let failed = call("ship", json!({ "order": 0 })).await.unwrap();
        assert_eq!(failed.is_error, Some(true));
        assert_eq!(failed.content[0].as_text(), Some("there is no order 0"));
        let wrong = call("ship", json!({ "order": "seven" })).await.unwrap();
        assert!(wrong.content[0].as_text().unwrap().contains("`order`"));
        let count = call("shipped-so-far", json!({})).await.unwrap();
        assert_eq!(count.content[0].as_text(), Some("1"));
        let structured = (mode == Mode::Modern).then(|| json!(1));
        assert_eq!(count.structured_content, structured);
        let label = call("label", json!({ "copies": 3 })).await.unwrap();
        assert!(
            label.content[0]
                .as_text()
                .unwrap()
                .starts_with("3 labels for ")
        );
        let slow = call("slow", json!({})).await.unwrap();
        assert_eq!(slow.content[0].as_text(), Some("timed out after 20ms"));
        let raw = call("raw", json!({ "parts": ["a", "b"] })).await.unwrap();
        assert_eq!(raw.content[0].as_text(), Some("ab"));
        let words = json!({ "arguments": { "output": 1 }, "this": 2, "server": 3 });
        let sum = call("match", words).await.unwrap();
        assert_eq!(sum.structured_content, Some(json!({ "output": 6 })));
        let bad = call("parse", json!({ "text": "x" })).await.unwrap();
        assert!(bad.content[0].as_text().unwrap().contains("invalid digit"));
    }
}

struct Library;

#[belay::server]
impl Library {
    /// Asks for a summary.
    #[prompt(title = "Summarise")]
    async fn summary(&self, cx: &Context, book: String, words: Option<u32>) -> String {
        format!("{}: {book} in {} words", cx.method(), words.unwrap_or(50))
    }

    /// The list of books.
    #[resource(uri = "books://all", mime_type = "text/plain")]
    async fn all() -> &'static str {
        "one, two"
    }

    #[resource(uri = "books://{shelf}/{number}{?lines}", name = "book")]
    async fn book(&self, shelf: String, number: u8, lines: Option<u32>) -> Option<String> {
        let lines = lines.unwrap_or_default();
        (number < 3).then(|| format!("{shelf} {number} {lines}"))
    }
}

#[tokio::test]
async fn methods_become_prompts_and_resources() {
    let (client, _serving) = pair(&Library.into(), Mode::Auto).await.unwrap();
    let prompts = client.list_all_prompts().await.unwrap();
    assert_eq!(
        prompts[0].description.as_deref(),
        Some("Asks for a summary.")
    );
    assert_eq!(prompts[0].title.as_deref(), Some("Summarise"));
    let filled = client.get_prompt("summary", [("book", "Dune"), ("words", "9")]);
    let filled = filled.await.unwrap();
    let text = filled.messages[0].content.as_text();
    assert_eq!(text, Some("prompts/get: Dune in 9 words"));

    let resources = client.list_all_resources().await.unwrap();
    assert_eq!((resources.len(), resources[0].name.as_str()), (1, "all"));
    let templates = client.list_all_resource_templates().await.unwrap();
    assert_eq!(templates[0].name, "book");
    let read = |uri: &'static str| async {
        let read = client.read_resource(uri).await.ok()?;
        read.contents[0].text.clone()
    };
    assert_eq!(read("books://all").await.as_deref(), Some("one, two"));
    let book = read("books://top/2?lines=7").await;
    assert_eq!(book.as_deref(), Some("top 2 7"));
    assert_eq!(read("books://top/3").await, None);
    assert!(client.list_tools().await.unwrap_err().is_refused());
}
