//! Resources and prompts.

use std::future::pending;
use std::time::Duration;

use belay::types::CacheScope;
use belay::{Context, Prompt, RequestError, Resource, ResourceTemplate, Server};
use schemars::JsonSchema;
use serde::Deserialize;

use super::asking::Name;
use super::number;

#[derive(Deserialize)]
struct Which {
    number: u32,
}

/// Resources and prompts.
pub(crate) fn reading(server: Server) -> Server {
    prompts(resources(server))
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
                Ok::<_, RequestError>(format!("for {}", reader.name))
            },
        ))
        .resource(
            Resource::new("memo://kept", "kept", |_: Context| async {
                number().to_string()
            })
            .cache(Duration::from_secs(3600), CacheScope::Private),
        )
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
            Ok::<_, RequestError>(format!("Ask {} three questions.", guest.name))
        }))
        .prompt(Prompt::new("slow", |_: Context, (): ()| async {
            tokio::time::sleep(Duration::from_secs(3600)).await;
            "at last"
        }))
}
