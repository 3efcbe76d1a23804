//! Tools that ask their client something.

use std::future::IntoFuture;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use belay::input::{InputError, InputRequests, RoundTrip, Step};
use belay::types::{
    BooleanField, ChoiceField, ChoicesField, ContentBlock, CreateMessageParams, ElicitParams,
    Field, FormSchema, NumberField, SamplingBlock, SamplingMessage, TextField, TitledChoiceField,
    TitledChoicesField, ToolResultContent,
};
use belay::{Context, Server, Tool, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Text, number};

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
pub(crate) struct Name {
    pub(crate) name: String,
}

/// Tools that ask their client something. Each works on both wires.
pub(crate) fn asking(server: Server) -> Server {
    let rolls = Arc::new(AtomicUsize::new(0));
    server
        .tool(Tool::new("meet", |cx: Context, it: Text| async move {
            let person = cx.elicit::<Person>(it.text).await?;
            Ok::<_, ToolError>(format!("{} is {:?}", person.name, person.size))
        }))
        .tool(Tool::new("survey", |cx: Context, (): ()| async move {
            let asked = ElicitParams::form("All kinds of fields", all_fields());
            let answer = cx.elicit_by_hand(asked).await?;
            let content = Value::Object(answer.content.unwrap_or_default());
            Ok::<_, InputError>(content.to_string())
        }))
        .tool(Tool::new("visit", |cx: Context, it: Text| async move {
            let visit = format!("everything-{}-{}", std::process::id(), number());
            let ask = cx.elicit_url("Please log in.", it.text);
            ask.elicitation_id(&visit).await?;
            // Here it would wait until they have logged in.
            cx.elicitation_complete(visit).await;
            Ok::<_, ToolError>("they agreed")
        }))
        .tool(Tool::new("ask", |cx: Context, it: Text| async move {
            let question = [SamplingMessage::user(it.text)];
            let said = cx
                .sample(CreateMessageParams::new(question, 100_u64))
                .await?;
            Ok::<_, ToolError>(said.content.as_text().unwrap_or_default().to_owned())
        }))
        .tool(Tool::new("plan", |cx: Context, it: Text| async move {
            plan(&cx, it.text).await
        }))
        .tool(Tool::new("folders", |cx: Context, (): ()| async move {
            let roots = cx.roots().await?;
            let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
            Ok::<_, ToolError>(uris.join(" "))
        }))
        // Two questions one after the other, and something that is done once.
        .tool(Tool::new("twice", move |cx: Context, (): ()| {
            let rolls = rolls.clone();
            async move {
                let first: Name = cx.elicit("Who is first?").await?;
                let roll = || async { rolls.fetch_add(1, Ordering::SeqCst) };
                cx.once("dice", roll).await?;
                let second: Name = cx.elicit("Who is second?").await?;
                let rolls = rolls.load(Ordering::SeqCst);
                let names = format!("{} and {}", first.name, second.name);
                Ok::<_, ToolError>(format!("{names}, rolled {rolls} times"))
            }
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
struct Guess {
    /// Asks something that is answered badly.
    #[serde(default)]
    wrong: bool,
    /// Asks them to go to a page.
    #[serde(default)]
    online: bool,
}

#[derive(Serialize, Deserialize)]
struct Guesses {
    tries: u32,
    names: Vec<String>,
}

async fn guess(
    _: Context,
    guess: Guess,
    round: RoundTrip<Guesses>,
) -> Result<Step<String, Guesses>, ToolError> {
    if let Some(agreed) = round.agreed("page") {
        return Ok(Step::Done(agreed.map(|()| "they guess online".to_owned())?));
    }
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
        1 if guess.wrong => "wrong",
        1 if guess.online => {
            let url = "https://example.com/guess";
            let ask = InputRequests::new(guesses).elicit_url("page", "Guess there.", url);
            return Ok(Step::Ask(ask));
        }
        1 => "Who is first?",
        2 => "Who is second?",
        _ => return Ok(Step::Done(guesses.names.join(" and "))),
    };
    let ask = InputRequests::new(guesses).elicit::<Name>("name", question);
    Ok(Step::Ask(ask))
}

/// Fields of all kinds, each with a proposal.
fn all_fields() -> FormSchema {
    let titled = [("s", "Small"), ("l", "Large")];
    let named = ChoiceField::of(["s", "l"]);
    let named = named.names(["Small", "Large"].map(str::to_owned));
    let many = ChoicesField::of(["red", "blue"]);
    let many_titled = TitledChoicesField::of(titled);
    FormSchema::new()
        .field("text", TextField::new().default("Ada"))
        .field("number", NumberField::new().default(0.5))
        .field("whole", Field::Integer(NumberField::new().default(7.0)))
        .field("yes", BooleanField::new().default(true))
        .field("one", ChoiceField::of(["red", "blue"]).default("blue"))
        .field("one_titled", TitledChoiceField::of(titled).default("l"))
        .field("one_named", named.default("s"))
        .field("many", many.default(vec!["red".to_owned()]))
        .field("many_titled", many_titled.default(vec!["s".to_owned()]))
}

/// A model that may use a tool of the handler's own.
async fn plan(cx: &Context, text: String) -> Result<String, ToolError> {
    let clock = belay::types::ToolDefinition::new(
        "clock",
        Map::from_iter([("type".into(), "object".into())]),
    );
    let mut said = vec![SamplingMessage::user(text)];
    loop {
        let ask = CreateMessageParams::new(said.clone(), 100_u64).tools([clock.clone()]);
        let answer = cx.sample(ask).await?;
        let uses = answer
            .content
            .blocks()
            .iter()
            .filter_map(|block| match block {
                SamplingBlock::ToolUse(using) => Some(using),
                _ => None,
            });
        let results = uses.map(|using| {
            let noon = [ContentBlock::text("It is noon.")];
            SamplingBlock::ToolResult(ToolResultContent::new(&using.id, noon))
        });
        let results: Vec<SamplingBlock> = results.collect();
        if results.is_empty() {
            return Ok(answer.content.as_text().unwrap_or_default().to_owned());
        }
        said.push(SamplingMessage::assistant(answer.content));
        said.push(SamplingMessage::user(results));
    }
}
