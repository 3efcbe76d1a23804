//! A server with one of everything that the protocol offers.
//!
//! ```text
//! cargo run --example everything
//! ```

use std::future::{IntoFuture, pending};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::types::{
    CallToolResult, ContentBlock, CreateMessageParams, Icon, LoggingLevel, SamplingMessage,
};
use belay::{
    Context, Failure, InputError, Json, Prompt, Questions, Resource, ResourceTemplate, Round,
    Server, Step, Tool, ToolError,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    belay::serve_stdio(server()).await.map(drop)
}

/// All of it.
pub(crate) fn server() -> Server {
    let server = Server::new("everything", "1.0.0")
        .title("Everything")
        .icon(Icon::new("data:image/png;base64,AA=="))
        .instructions("Ask it anything.")
        .page_size(4);
    let server = tools(server);
    let server = asking(server);
    let server = resources(server);
    prompts(server)
}

#[derive(Deserialize, JsonSchema)]
struct Text {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Serialize, JsonSchema)]
struct Sum {
    sum: i64,
}

/// Tools that answer by themselves.
fn tools(server: Server) -> Server {
    let (tools, resources, books) = (server.tools(), server.resources(), server.books());
    let moves = Arc::new(AtomicUsize::new(0));
    let count = moves.clone();
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
        .tool(Tool::new("mixed", |_: Context, (): ()| async {
            let mut result = CallToolResult::text("a picture, a sound and a resource");
            result
                .content
                .push(ContentBlock::image(b"png", "image/png"));
            result
                .content
                .push(ContentBlock::audio(b"wav", "audio/wav"));
            let text = belay::types::ResourceContents::text("memo://1", "a memo");
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
            let others = books.handlers().saturating_sub(1);
            async move { others.to_string() }
        }))
        .tool(Tool::new("grow", move |_: Context, (): ()| {
            tools.add(Tool::new("grown", |_: Context, (): ()| async { "new" }));
            async { "there is a new tool" }
        }))
        // How often a client said that its folders have changed.
        .tool(Tool::new("moves", move |_: Context, (): ()| {
            let moves = moves.load(Ordering::SeqCst);
            async move { moves.to_string() }
        }))
        .tool(Tool::new("touch", move |_: Context, it: Text| {
            resources.updated(&it.text);
            async { "touched" }
        }))
}

#[derive(Deserialize, Serialize, JsonSchema)]
struct Person {
    /// What people call them.
    name: String,
    age: Option<u8>,
    size: Size,
}

#[derive(Deserialize, Serialize, JsonSchema, Clone, Copy, Debug)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

/// Tools that ask their client something. Each works on both wires.
fn asking(server: Server) -> Server {
    server
        .tool(Tool::new("meet", |cx: Context, it: Text| async move {
            let person = cx.elicit::<Person>(it.text).await?;
            Ok::<_, ToolError>(format!("{} is {:?}", person.name, person.size))
        }))
        .tool(Tool::new("visit", |cx: Context, it: Text| async move {
            let ask = cx.elicit_url("Please log in.", it.text);
            ask.elicitation_id("login").await?;
            cx.visited("login").await;
            Ok::<_, ToolError>("they agreed")
        }))
        .tool(Tool::new("ask", |cx: Context, it: Text| async move {
            let question = [SamplingMessage::user(it.text)];
            let said = cx
                .sample(CreateMessageParams::new(question, 100_u64))
                .await?;
            Ok::<_, ToolError>(said.content.as_text().unwrap_or_default().to_owned())
        }))
        .tool(Tool::new("folders", |cx: Context, (): ()| async move {
            let roots = cx.roots().await?;
            let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
            Ok::<_, ToolError>(uris.join(" "))
        }))
        // Two questions one after the other, and something that is done once.
        .tool(Tool::new("twice", |cx: Context, (): ()| async move {
            let first: Name = cx.elicit("Who is first?").await?;
            let dice = cx.once("dice", || async { random() }).await?;
            let second: Name = cx.elicit("Who is second?").await?;
            let again = cx.once("dice", || async { random() }).await?;
            let fair = if dice == again { "fair" } else { "loaded" };
            Ok::<_, ToolError>(format!("{} and {}, {fair}", first.name, second.name))
        }))
        // Two questions at once.
        .tool(Tool::new("both", |cx: Context, (): ()| async move {
            let left = cx.elicit::<Name>("Who is left?").into_future();
            let right = cx.elicit::<Name>("Who is right?").into_future();
            let (left, right) = tokio::try_join!(left, right)?;
            Ok::<_, InputError>(format!("{} and {}", left.name, right.name))
        }))
        // The same, with rounds that can be seen.
        .tool(Tool::in_steps("guess", guess))
        .tool(Tool::new("refuse", |cx: Context, (): ()| async move {
            let error = belay::jsonrpc::ErrorObject::new(-31999, "not today");
            Err::<String, _>(cx.refuse(error).await)
        }))
}

#[derive(Clone, Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Serialize, Deserialize)]
struct Guesses {
    tries: u32,
    names: Vec<String>,
}

async fn guess(
    _: Context,
    _: Nothing,
    round: Round<Guesses>,
) -> Result<Step<String, Guesses>, InputError> {
    let answered = round.elicited::<Name>("name");
    let mut guesses = round.into_state().unwrap_or(Guesses {
        tries: 0,
        names: Vec::new(),
    });
    if let Some(answer) = answered {
        guesses.names.push(answer?.name);
    }
    guesses.tries += 1;
    let question = match guesses.tries {
        1 => "Who is first?",
        2 => "Who is second?",
        _ => return Ok(Step::Done(guesses.names.join(" and "))),
    };
    let ask = Questions::new(guesses).elicit::<Name>("name", question);
    Ok(Step::Ask(ask))
}

/// Something else each time.
fn random() -> u128 {
    let now = std::time::SystemTime::now();
    now.duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos())
}

#[derive(Deserialize)]
struct Which {
    number: u32,
}

fn resources(server: Server) -> Server {
    server
        .resource(Resource::text("memo://1", "first", "Buy milk.").title("First memo"))
        .resource(Resource::bytes("photo://1", "photo", *b"\x89PNG").mime_type("image/png"))
        .resource(Resource::new("memo://slow", "slow", |_: Context| {
            pending::<String>()
        }))
        .resource(Resource::new(
            "memo://secret",
            "secret",
            |cx: Context| async move {
                let reader: Name = cx.elicit("Who reads it?").await?;
                Ok::<_, Failure>(format!("for {}", reader.name))
            },
        ))
        .resource(Resource::text("memo://last", "last", "The last one."))
        .resource_template(
            ResourceTemplate::new(
                "square://{number}",
                "squares",
                |_: Context, Which { number }: Which| async move {
                    let square = number.checked_mul(number);
                    square.map(|square| square.to_string())
                },
            )
            .mime_type("text/plain")
            .complete("number", |_, typed| async move {
                (0..10).map(move |digit| format!("{}{digit}", typed.value))
            }),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Greet {
    /// Who is greeted.
    name: String,
    times: Option<u8>,
}

fn prompts(server: Server) -> Server {
    server
        .prompt(
            Prompt::new("greet", |_: Context, it: Greet| async move {
                let times = usize::from(it.times.unwrap_or(1));
                "Hello! ".repeat(times) + &it.name
            })
            .title("Greet")
            .description("Greets somebody.")
            .complete("name", |_, typed| async move {
                let known = ["Ada", "Alan", "Grace"].into_iter();
                known.filter(move |known| known.starts_with(&typed.value))
            }),
        )
        .prompt(Prompt::new("interview", |cx: Context, (): ()| async move {
            let guest: Name = cx.elicit("Who is the guest?").await?;
            Ok::<_, Failure>(format!("Ask {} three questions.", guest.name))
        }))
        .prompt(Prompt::new("slow", |_: Context, (): ()| async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            "at last"
        }))
}
