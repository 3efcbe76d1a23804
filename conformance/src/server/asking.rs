//! Tools that send requests to their client: legacy era.

use belay::input::InputError;
use belay::types::{
    BooleanField, ChoiceField, ChoicesField, CreateMessageParams, ElicitParams, Field, FormSchema,
    NumberField, SamplingMessage, TextField, TitledChoiceField, TitledChoicesField,
};
use belay::{Context, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub(super) fn offer(server: Server) -> Server {
    server
        .tool(Tool::new("test_sampling", sampling).description("Asks the model."))
        .tool(Tool::new("test_elicitation", elicitation).description("Asks the user."))
        .tool(
            Tool::new(
                "test_elicitation_sep1034_defaults",
                |cx: Context, (): ()| async move {
                    let message = "Please review and update the form fields with defaults";
                    elicit(&cx, message, defaults()).await
                },
            )
            .description("Asks with answers proposed."),
        )
        .tool(
            Tool::new(
                "test_elicitation_sep1330_enums",
                |cx: Context, (): ()| async move {
                    let message = "Please select options from the enum fields";
                    elicit(&cx, message, enums()).await
                },
            )
            .description("Asks to choose."),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Prompt {
    prompt: String,
}

async fn sampling(cx: Context, it: Prompt) -> Result<String, InputError> {
    let ask = CreateMessageParams::new([SamplingMessage::user(it.prompt)], 100_u64);
    let said = cx.sample(ask).await?;
    let text = said.content.as_text().unwrap_or_default();
    Ok(format!("LLM response: {text}"))
}

#[derive(Deserialize, JsonSchema)]
struct Message {
    message: String,
}

async fn elicitation(cx: Context, it: Message) -> Result<String, InputError> {
    let form = FormSchema::new()
        .field("username", TextField::new())
        .field("email", TextField::new());
    let answer = cx
        .elicit_by_hand(ElicitParams::form(it.message, form))
        .await?;
    let content = Value::from(answer.content.unwrap_or_default());
    Ok(format!("User response: {} {content}", answer.action))
}

async fn elicit(cx: &Context, message: &str, form: FormSchema) -> Result<String, InputError> {
    let answer = cx.elicit_by_hand(ElicitParams::form(message, form)).await?;
    let (action, content) = (answer.action, answer.content.unwrap_or_default());
    let content = Value::from(content);
    Ok(format!(
        "Elicitation completed: action={action}, content={content}"
    ))
}

fn defaults() -> FormSchema {
    let status = ChoiceField::of(["active", "inactive", "pending"]);
    FormSchema::new()
        .optional("name", TextField::new().default("John Doe"))
        .optional("age", Field::Integer(NumberField::new().default(30.0)))
        .optional("score", NumberField::new().default(95.5))
        .optional("status", status.default("active"))
        .optional("verified", BooleanField::new().default(true))
}

fn enums() -> FormSchema {
    let options = ["option1", "option2", "option3"];
    let titled = [
        ("value1", "First"),
        ("value2", "Second"),
        ("value3", "Third"),
    ];
    let names = ["Option One", "Option Two", "Option Three"].map(str::to_owned);
    let legacy = ChoiceField::of(["opt1", "opt2", "opt3"]).names(names);
    FormSchema::new()
        .optional("untitledSingle", ChoiceField::of(options))
        .optional("titledSingle", TitledChoiceField::of(titled))
        .optional("legacyEnum", legacy)
        .optional("untitledMulti", ChoicesField::of(options))
        .optional("titledMulti", TitledChoicesField::of(titled))
}
