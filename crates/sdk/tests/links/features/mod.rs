//! Every feature on every wire, from one table: one that works here and not there cannot hide.

#[path = "../../../examples/everything/main.rs"]
#[allow(dead_code)]
mod everything;

mod asking;
mod cancelling;
mod listening;
mod reading;
mod tools;
mod wires;

use std::future::{Future, poll_fn};
use std::pin::Pin;

use belay::types::CallToolResult;
use belay::{Client, Error};
use futures_core::Stream;
use wires::{Guests, Wire};

/// A case: what is to be seen, whatever the wire.
type Case = fn(Connected) -> Pin<Box<dyn Future<Output = ()> + Send>>;

/// A client, on one of the wires.
#[derive(Clone)]
struct Connected {
    wire: Wire,
    client: Client,
    guests: Guests,
}

impl Connected {
    /// What a tool says.
    async fn say(&self, tool: &str, arguments: serde_json::Value) -> Result<String, Error> {
        let result = self.client.call_tool(tool, arguments).await?;
        Ok(text(&result))
    }

    /// Until no handler runs but the one that is asked.
    async fn until_idle(&self) {
        for _ in 0..1000 {
            if self.say("running", serde_json::json!({})).await.unwrap() == "0" {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        panic!("{:?}: a handler is left", self.wire);
    }
}

/// The next item of a stream.
async fn next_of<S: Stream + Unpin>(stream: &mut S) -> Option<S::Item> {
    poll_fn(|task| Pin::new(&mut *stream).poll_next(task)).await
}

fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(|block| block.as_text());
    texts.collect::<Vec<_>>().join("\n")
}

macro_rules! cases {
    ($($module:ident: $($case:ident),+ $(,)?;)+) => {
        $(mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                super::super::on_every_wire(|connected| {
                    Box::pin(super::super::$module::$case(connected))
                })
                .await;
            })+
        })+
    };
}

/// The table.
mod on_all_wires {
    cases! {
        tools: introductions, lists_come_in_pages, text_and_structure, all_kinds_of_content,
            tool_errors_and_protocol_errors, arguments_are_held_against_their_schema,
            headers_repeat_arguments, what_macros_write, traces_go_along, progress_and_logs,
            tools_that_grow;
        reading: resources_are_listed_and_read, templates_are_matched, what_is_not_there,
            prompts_are_listed_and_filled_in, arguments_are_completed, what_is_known_is_not_asked_for;
        asking: forms_are_filled_in, all_kinds_of_fields, people_say_no_or_go_away,
            answers_that_do_not_fit, pages_are_visited,
            models_are_asked, models_use_tools, folders_are_told, two_rounds, rounds_that_can_be_seen, two_at_once,
            resources_and_prompts_ask, a_client_that_cannot_be_asked, a_request_is_refused,
            a_guest_that_fails;
        listening: lists_that_change, resources_that_change, what_nobody_asked_for,
            an_end_in_good_order;
        cancelling: during_a_form, during_sampling, during_a_read, during_a_prompt,
            between_two_rounds, while_listing_pages, while_listening, a_deadline_covers_all_rounds;
    }
}

async fn on_every_wire(case: Case) {
    for wire in Wire::ALL {
        // For whoever reads the output of one that failed.
        println!("on {wire:?}");
        let (connected, _serving) = wire.connect().await;
        case(connected).await;
    }
}
