//! Tools and a prompt that ask their client in round trips: modern era.

use std::future::IntoFuture;

use belay::input::InputError;
use belay::types::{CreateMessageParams, SamplingMessage};
use belay::{Context, Prompt, RequestError, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;

pub(super) fn offer(server: Server) -> Server {
    let tool = |name: &str| format!("test_input_required_result_{name}");
    server
        .tool(Tool::new(tool("elicitation"), name).description("Asks for a name."))
        .tool(Tool::new(tool("sampling"), model).description("Asks the model."))
        .tool(Tool::new(tool("list_roots"), roots).description("Asks for folders."))
        .tool(Tool::new(tool("request_state"), confirm).description("Asks for a yes."))
        .tool(Tool::new(tool("multiple_inputs"), everything).description("Asks for everything."))
        .tool(Tool::new(tool("multi_round"), twice).description("Asks, and asks again."))
        .tool(Tool::new(tool("tampered_state"), confirm).description("Asks for a yes."))
        .tool(Tool::new(tool("capabilities"), what_it_can).description("Asks what can be asked."))
        .prompt(
            Prompt::new(tool("prompt"), |cx: Context, (): ()| async move {
                let ask = cx.elicit::<Background>("What is this about?");
                let about = ask.named("user_context").await?;
                Ok::<_, RequestError>(format!("Consider this: {}", about.context))
            })
            .description("Asks what it is about."),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

#[derive(Deserialize, JsonSchema)]
struct Colour {
    color: String,
}

#[derive(Deserialize, JsonSchema)]
struct Confirmed {
    ok: bool,
}

#[derive(Deserialize, JsonSchema)]
struct Background {
    context: String,
}

async fn name(cx: Context, (): ()) -> Result<String, InputError> {
    let ask = cx.elicit::<Name>("What is your name?");
    let Name { name } = ask.named("user_name").await?;
    Ok(format!("Hello, {name}!"))
}

fn capital() -> CreateMessageParams {
    let question = SamplingMessage::user("What is the capital of France?");
    CreateMessageParams::new([question], 100_u64)
}

async fn model(cx: Context, (): ()) -> Result<String, InputError> {
    let said = cx.sample(capital()).named("capital_question").await?;
    Ok(said.content.as_text().unwrap_or_default().to_owned())
}

async fn roots(cx: Context, (): ()) -> Result<String, InputError> {
    let roots = cx.roots().named("client_roots").await?;
    Ok(format!("{} roots", roots.len()))
}

async fn confirm(cx: Context, (): ()) -> Result<String, InputError> {
    let Confirmed { ok } = cx.elicit("Is that all right?").named("confirm").await?;
    Ok(format!("state-ok: {ok}"))
}

async fn everything(cx: Context, (): ()) -> Result<String, InputError> {
    let name = cx.elicit::<Name>("What is your name?").named("user_name");
    let said = cx.sample(capital()).named("capital_question");
    let roots = cx.roots().named("client_roots");
    let (name, said, roots) =
        tokio::try_join!(name.into_future(), said.into_future(), roots.into_future())?;
    let said = said.content.as_text().unwrap_or_default().to_owned();
    Ok(format!("{}, {said}, {} roots", name.name, roots.len()))
}

async fn twice(cx: Context, (): ()) -> Result<String, InputError> {
    let Name { name } = cx.elicit("What is your name?").named("step1").await?;
    let Colour { color } = cx
        .elicit("And your favourite color?")
        .named("step2")
        .await?;
    Ok(format!("{name} likes {color}"))
}

async fn what_it_can(cx: Context, (): ()) -> Result<String, InputError> {
    let client = cx.client_capabilities();
    match (client.elicitation, client.sampling) {
        (Some(_), _) => name(cx, ()).await,
        (None, Some(_)) => model(cx, ()).await,
        (None, None) => roots(cx, ()).await,
    }
}
