//! The client of the official conformance suite: `conformance-client URL`.
//!
//! The suite says in the environment which scenario it expects. What each one does is its contract.

use std::process::ExitCode;

use belay::client::ClientBuilder;
use belay::client::Mode;
use belay::types::{ElicitResult, Field, FormSchema};
use belay::{Client, Error};
use serde_json::{Map, Value, json};

#[tokio::main]
async fn main() -> ExitCode {
    let Some(url) = std::env::args()
        .next_back()
        .filter(|url| url.contains("://"))
    else {
        eprintln!("conformance-client URL");
        return ExitCode::from(1);
    };
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let scenario = variable("MCP_CONFORMANCE_SCENARIO");
    let mode = match variable("MCP_CONFORMANCE_PROTOCOL_VERSION").as_str() {
        "2026-07-28" => Mode::Modern,
        _ => Mode::Legacy,
    };
    let context = serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT"));
    match run(&scenario, &url, mode, context.unwrap_or_default()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{scenario}: {error:?}");
            ExitCode::from(2)
        }
    }
}

async fn run(scenario: &str, url: &str, mode: Mode, context: Value) -> Result<(), Error> {
    let client = builder(mode).http(url).await?;
    match scenario {
        "tools_call" => call(&client, "add_numbers", json!({ "a": 5, "b": 3 })).await?,
        "elicitation-sep1034-client-defaults" => {
            call(&client, "test_client_elicitation_defaults", json!({})).await?;
        }
        "sse-retry" => call(&client, "test_reconnection", json!({})).await?,
        "sep-2322-client-request-state" => {
            for tool in ["echo_state", "no_state", "unrelated", "no_result_type"] {
                call(&client, &format!("test_mrtr_{tool}"), json!({})).await?;
            }
        }
        "http-standard-headers" => standard_headers(&client).await?,
        "http-custom-headers" => custom_headers(&client, &context).await?,
        "http-invalid-tool-headers" => {
            for tool in client.list_all_tools().await? {
                let region = json!({ "region": "us-west1" });
                client.call_tool(&tool.name, region).await?;
            }
        }
        "json-schema-2020-12-preservation" => preserve(&client).await?,
        // The other scenarios check what a client does without being asked.
        _ => drop(client.list_all_tools().await?),
    }
    client.close().await;
    Ok(())
}

fn builder(mode: Mode) -> ClientBuilder {
    Client::builder("belay-conformance", env!("CARGO_PKG_VERSION"))
        .mode(mode)
        .on_elicit(|form| async move {
            let filled = fill(&form.requested_schema);
            Ok(ElicitResult::accept(filled))
        })
}

/// Fills in a form like a user who agrees to everything.
fn fill(form: &FormSchema) -> Map<String, Value> {
    let filled = form.properties.iter().map(|(name, field)| {
        let filled = field.default().unwrap_or_else(|| match field {
            Field::Boolean(_) => true.into(),
            Field::Number(_) | Field::Integer(_) => 1.into(),
            Field::Choice(choice) => choice.options.first().cloned().into(),
            _ => "yes".into(),
        });
        (name.to_owned(), filled)
    });
    filled.collect()
}

/// Lists the tools, as a host would, and calls one.
async fn call(client: &Client, tool: &str, arguments: Value) -> Result<(), Error> {
    client.list_all_tools().await?;
    client.call_tool(tool, arguments).await.map(drop)
}

async fn standard_headers(client: &Client) -> Result<(), Error> {
    call(client, "test_headers", json!({})).await?;
    client.list_all_resources().await?;
    let resource = "file:///path/to/file%20name.txt";
    client.read_resource(resource).await?;
    client.list_all_prompts().await?;
    client.get_prompt("test_prompt", ()).await?;
    Ok(())
}

async fn custom_headers(client: &Client, context: &Value) -> Result<(), Error> {
    client.list_all_tools().await?;
    let calls = context["toolCalls"].as_array();
    for call in calls.into_iter().flatten() {
        let name = call["name"].as_str().unwrap_or_default();
        client.call_tool(name, &call["arguments"]).await?;
    }
    Ok(())
}

/// Sends a schema back unchanged.
async fn preserve(client: &Client) -> Result<(), Error> {
    let tools = client.list_all_tools().await?;
    let tool = tools
        .into_iter()
        .find(|tool| tool.name == "json_schema_2020_12_tool");
    let schema = tool.map(|tool| tool.input_schema).unwrap_or_default();
    let echo = json!({ "schema": schema });
    client.call_tool("json_schema_echo", echo).await.map(drop)
}
