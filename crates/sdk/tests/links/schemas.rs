//! What large values and unusual patterns become under the schemas of tools.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use belay::server::ServerConnection;
use belay::types::CallToolResult;
use belay::{Client, Context, Json, Server, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id, Record};

/// A client and a server, joined by pipes of the operating system.
async fn piped(
    server: &Server,
    client: belay::client::ClientBuilder,
) -> (Client, ServerConnection) {
    let (to_server, from_client) = tokio::net::unix::pipe::pipe().unwrap();
    let (to_client, from_server) = tokio::net::unix::pipe::pipe().unwrap();
    let serving = server.serve(from_client, to_client);
    let client = client.connect(from_server, to_server).await.unwrap();
    (client, serving)
}

fn builder() -> belay::client::ClientBuilder {
    Client::builder("test", "1")
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Row {
    id: u64,
    name: String,
    price: f64,
    in_stock: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Table {
    rows: Vec<Row>,
}

#[tokio::test]
async fn a_large_result_that_fits_is_passed_on() {
    let table = Tool::new("table", |_: Context, (): ()| async {
        let row = |id| Row {
            id,
            name: format!("article {id}"),
            price: 9.5,
            in_stock: id % 2 == 0,
        };
        Json(Table {
            rows: (0..60_000).map(row).collect(),
        })
    });
    let server = Server::new("test", "1").tool(table);
    let (client, _serving) = piped(&server, builder().check_results()).await;
    client.list_tools().await.unwrap();
    let result = client.call_tool("table", json!({})).await.unwrap();
    let content = result.structured_content.unwrap();
    assert_eq!(content["rows"].as_array().unwrap().len(), 60_000);
}

#[derive(Deserialize, JsonSchema)]
struct Numbers {
    numbers: Vec<i64>,
}

#[tokio::test]
async fn a_long_list_of_arguments_is_checked() {
    let sum = Tool::new("sum", |_: Context, it: Numbers| async move {
        it.numbers.iter().sum::<i64>().to_string()
    });
    let server = Server::new("test", "1").tool(sum);
    let (client, _serving) = piped(&server, builder()).await;
    let mut numbers: Vec<Value> = vec![json!(100_001); 400_000];
    let call = client.call_tool("sum", json!({ "numbers": numbers }));
    let said = call.await.unwrap();
    assert_eq!(said.content[0].as_text(), Some("40000400000"));
    numbers[399_999] = json!("one");
    let call = client.call_tool("sum", json!({ "numbers": numbers }));
    let said = call.await.unwrap();
    let problem = "invalid arguments: `numbers.399999`: \"one\" is not an integer";
    assert_eq!(said.content[0].as_text(), Some(problem));
}

/// Lists of lists, which take many times their text once they are decoded.
#[tokio::test]
async fn bounded_arguments_with_too_many_values_are_refused_before_they_are_decoded() {
    let count = Tool::new("count", |_: Context, it: Lists| async move {
        it.lists.len().to_string()
    });
    let server = Server::new("test", "1").limits(|limits| limits.received_bytes = 1 << 20);
    let (client, _serving) = piped(&server.tool(count.clone()), builder()).await;
    let lists = |many: usize| json!({ "lists": vec![json!([]); many] });
    let said = client.call_tool("count", lists(200_000)).await.unwrap();
    assert_eq!(said.content[0].as_text(), Some("200000"));
    let error = client.call_tool("count", lists(300_000)).await;
    let error = error.unwrap_err();
    let refusal = error.refusal().unwrap();
    assert_eq!(refusal.code, -32602, "{error}");
    let problem = "tools/call: `arguments` has too many values";
    assert!(refusal.message.starts_with(problem), "{error}");
    assert!(refusal.message.ends_with("send fewer at once"), "{error}");
    // The bound grows with what a message may have.
    let server = Server::new("test", "1").limits(|limits| limits.received_bytes = 2 << 20);
    let (client, _serving) = piped(&server.tool(count), builder()).await;
    let said = client.call_tool("count", lists(300_000)).await.unwrap();
    assert_eq!(said.content[0].as_text(), Some("300000"));
}

#[derive(Deserialize, JsonSchema)]
struct Lists {
    lists: Vec<[u8; 0]>,
}

/// A schema that multiplies the work: so many times each item is looked at.
fn multiplying(times: usize) -> serde_json::Map<String, Value> {
    let each = json!({ "properties": { "numbers": { "items": { "minimum": 0 } } } });
    let schema = json!({ "type": "object", "allOf": vec![each; times] });
    schema.as_object().unwrap().clone()
}

#[tokio::test]
async fn arguments_that_take_too_much_work_are_not_passed_on() {
    let sum = Tool::new("sum", |_: Context, it: Numbers| async move {
        it.numbers.iter().sum::<i64>().to_string()
    });
    let server = Server::new("test", "1").tool(sum.input_schema(multiplying(100)));
    let (client, _serving) = piped(&server, builder()).await;
    let numbers = |many: usize| json!({ "numbers": vec![1; many] });
    let said = client.call_tool("sum", numbers(1000)).await.unwrap();
    assert_eq!(said.content[0].as_text(), Some("1000"));
    let said = client.call_tool("sum", numbers(100_000)).await.unwrap();
    let problem = "not called, since the arguments cannot be checked: the value takes too much \
                   work to validate; make it smaller";
    assert_eq!(said.content[0].as_text(), Some(problem));
    assert_eq!(said.is_error, Some(true));
}

/// A server's own result under its own schema: that it is not checked says nothing against it.
#[tokio::test]
async fn a_result_that_takes_too_much_work_is_passed_on_with_a_warning() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let gives = |last: Value| {
        let mut numbers = vec![json!(1); 100_000];
        numbers.push(last);
        let mut result = CallToolResult::text("numbers");
        result.structured_content = Some(json!({ "numbers": numbers }));
        move |_: Context, (): ()| std::future::ready(result.clone())
    };
    let much = Tool::new("much", gives(json!(1))).output_schema(multiplying(100));
    let wrong = Tool::new("wrong", gives(json!(-1))).output_schema(multiplying(1));
    let server = Server::new("test", "1").tool(much).tool(wrong);
    let (client, _serving) = piped(&server, builder().check_results()).await;
    client.list_tools().await.unwrap();
    client.call_tool("much", json!({})).await.unwrap();
    // The server says so, and so does the client that was to check it, too.
    let warnings = logged.about("much");
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for warning in warnings {
        assert!(
            warning.contains("is not checked against its output schema"),
            "{warning}"
        );
        assert!(warning.contains("too much work"), "{warning}");
    }
    let error = client.call_tool("wrong", json!({})).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32603, "{error}");
    assert!(error.to_string().contains("-1 is less than 0"), "{error}");
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Contact {
    /// As zod 4 writes it.
    #[schemars(regex(
        pattern = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
    ))]
    email: String,
    #[schemars(regex(pattern = r"^(?!\s*$).+"), length(max = 5))]
    name: String,
}

/// A pattern that cannot be matched is passed over, and everything else is checked, on both sides.
#[tokio::test]
async fn a_pattern_that_looks_ahead_does_not_make_a_tool_unusable() {
    let logged = Logged::default();
    let _guard = tracing::subscriber::set_default(logged.clone());
    let save = Tool::new("save", |_: Context, it: Contact| async move { Json(it) });
    let server = Server::new("test", "1").tool(save);
    let warnings = logged.about("save");
    assert_eq!(warnings.len(), 2, "one for each schema: {warnings:?}");
    for (warning, schema) in warnings.iter().zip(["inputSchema", "outputSchema"]) {
        assert!(warning.contains(schema), "{warning}");
        assert!(warning.contains("(?!"), "{warning}");
    }
    let (client, _serving) = piped(&server, builder().check_results()).await;
    client.list_tools().await.unwrap();
    for _ in 0..2 {
        let contact = json!({ "email": "ada@example.com", "name": "Ada" });
        let result = client.call_tool("save", contact.clone()).await.unwrap();
        assert_eq!(result.structured_content, Some(contact));
    }
    let long = json!({ "email": "ada@example.com", "name": "Ada Lovelace" });
    let said = client.call_tool("save", long).await.unwrap();
    let problem = r#"invalid arguments: `name`: "Ada Lovelace" is longer than 5 characters"#;
    assert_eq!(said.content[0].as_text(), Some(problem));
    // The client has read one of them, when it was first needed.
    assert_eq!(logged.about("save").len(), 3, "{:?}", logged.about("save"));
}

/// What was logged as a warning.
#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<String>>>);

impl Logged {
    /// The warnings about one tool.
    fn about(&self, tool: &str) -> Vec<String> {
        let all = self.0.lock().unwrap();
        let tool = format!("tool={tool:?}");
        all.iter()
            .filter(|line| line.contains(&tool))
            .cloned()
            .collect()
    }
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.push_str(&format!("{field}={value:?} "));
    }
}

impl tracing::Subscriber for Logged {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::WARN
    }

    fn event(&self, event: &tracing::Event<'_>) {
        if *event.metadata().level() == tracing::Level::WARN {
            let mut line = Line(String::new());
            event.record(&mut line);
            self.0.lock().unwrap().push(line.0);
        }
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
