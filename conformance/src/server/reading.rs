//! Resources, prompts, and completions of their arguments.

use belay::types::{ContentBlock, ImageContent, PromptMessage, ResourceContents};
use belay::{Context, Prompt, Resource, ResourceTemplate, Server};
use belay_protocol::base64;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::PNG;

pub(super) fn offer(server: Server) -> Server {
    resources(prompts(server))
}

fn resources(server: Server) -> Server {
    let picture = base64::decode(PNG).expect("it is base64");
    server
        .resource(
            Resource::text(
                "test://static-text",
                "Static text",
                "This is the content of the static text resource.",
            )
            .description("A text."),
        )
        .resource(
            Resource::bytes("test://static-binary", "Static picture", picture)
                .description("A picture.")
                .mime_type("image/png"),
        )
        .resource(
            Resource::text("test://watched-resource", "Watched text", "Nothing new.")
                .description("A text to subscribe to."),
        )
        .resource_template(
            ResourceTemplate::new(
                "test://template/{id}/data",
                "Data",
                |_: Context, Which { id }: Which| async move {
                    let data = format!("Data for ID: {id}");
                    json!({ "id": id, "templateTest": true, "data": data }).to_string()
                },
            )
            .description("Data, by id.")
            .mime_type("application/json"),
        )
}

#[derive(Deserialize)]
struct Which {
    id: String,
}

fn prompts(server: Server) -> Server {
    server
        .prompt(
            Prompt::new("test_simple_prompt", |_: Context, (): ()| async {
                "This is a simple prompt for testing."
            })
            .description("Says one thing."),
        )
        .prompt(
            Prompt::new(
                "test_prompt_with_arguments",
                |_: Context, it: Two| async move {
                    let Two { arg1, arg2 } = it;
                    format!("Prompt with arguments: arg1='{arg1}', arg2='{arg2}'")
                },
            )
            .description("Says what it is told.")
            .complete("arg1", |_, typed| async move {
                let known = ["test", "testing", "tested"].into_iter();
                known.filter(move |known| known.starts_with(&typed.value))
            }),
        )
        .prompt(
            Prompt::new(
                "test_prompt_with_embedded_resource",
                |_: Context, it: Embedded| async move {
                    let text = "Embedded resource content for testing.";
                    let resource = ResourceContents::new(it.resource_uri).text(text);
                    let resource = ContentBlock::resource(resource.mime_type("text/plain"));
                    let ask = "Please process the embedded resource above.";
                    [PromptMessage::user(resource), PromptMessage::user(ask)]
                },
            )
            .description("Shows a resource."),
        )
        .prompt(
            Prompt::new("test_prompt_with_image", |_: Context, (): ()| async {
                let image = ImageContent::new(PNG, "image/png");
                let ask = "Please analyze the image above.";
                [PromptMessage::user(image), PromptMessage::user(ask)]
            })
            .description("Shows a picture."),
        )
}

#[derive(Deserialize, JsonSchema)]
struct Two {
    /// The first one.
    arg1: String,
    /// The second one.
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Embedded {
    /// Which resource to show.
    resource_uri: String,
}
