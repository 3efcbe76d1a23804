//! `belay listen`

use belay::client::{Change, SubscriptionEnd};
use belay::types::modern::SubscriptionFilter;
use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;
use tokio::time::timeout;

use super::completions;
use crate::exit::{self, Code};
use crate::interrupt::Interrupt;
use crate::output;
use crate::target::{Connected, Target, which_server};

/// Print change notifications of a server, one per line, until Ctrl-C.
///
/// Without URIs or options, listens to the lists of tools, prompts and resources. A reconnection is
/// printed as well, because notifications may have been missed. `--max-time` limits how long to
/// listen.
#[derive(Args)]
#[command(
    override_usage = "belay listen [OPTIONS] <SERVER> [URI]...\n       belay listen [OPTIONS] [URI]... -- <COMMAND>...",
    after_help = "Examples:
  belay listen http://127.0.0.1:8000/mcp
  belay listen http://127.0.0.1:8000/mcp demo://hello --count 1"
)]
pub(crate) struct Listen {
    /// Server (unless its command follows `--`) and URIs of resources
    #[arg(value_name = "WORD", add = ArgValueCompleter::new(completions::servers))]
    words: Vec<String>,
    /// Listen to changes of the tool list
    #[arg(long)]
    tools: bool,
    /// Listen to changes of the prompt list
    #[arg(long)]
    prompts: bool,
    /// Listen to changes of the resource list
    #[arg(long)]
    resources: bool,
    /// Exit after this number of changes
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    #[command(flatten)]
    target: Target,
}

impl Listen {
    pub(crate) async fn run(self) -> Code {
        let (name, uris) = match (self.target.has_command(), self.words.as_slice()) {
            (true, uris) => (None, uris),
            (false, [server, uris @ ..]) => (Some(server.as_str()), uris),
            (false, []) => return output::usage(which_server(), self.target.json),
        };
        let interrupt = Interrupt::new();
        let server = match self.target.connect(name, &interrupt).await {
            Ok(server) => server,
            Err(code) => return code,
        };
        let listening = self.in_time(&server, self.listen(&server, self.filter(uris)));
        interrupt.stops(&server, listening).await
    }

    fn filter(&self, uris: &[String]) -> SubscriptionFilter {
        let lists = self.tools || self.prompts || self.resources;
        let all = !lists && uris.is_empty();
        let mut filter = SubscriptionFilter::new();
        if self.tools || all {
            filter = filter.tools();
        }
        if self.prompts || all {
            filter = filter.prompts();
        }
        if self.resources || all {
            filter = filter.resources();
        }
        uris.iter().fold(filter, |filter, uri| filter.resource(uri))
    }

    /// Listens for at most `--max-time`, if it was given. With `--count` the end of that time is a
    /// timeout, otherwise it is a success.
    async fn in_time(&self, server: &Connected<'_>, listening: impl Future<Output = Code>) -> Code {
        let Some(given) = self.target.max_time_given() else {
            return listening.await;
        };
        match (timeout(server.time_left(), listening).await, self.count) {
            (Ok(code), _) => code,
            (Err(_), None) => exit::OK,
            (Err(_), Some(count)) => {
                let what = format!("fewer changes than --count {count}");
                output::out_of_time(given, &what, self.target.json)
            }
        }
    }

    async fn listen(&self, server: &Connected<'_>, filter: SubscriptionFilter) -> Code {
        let json = self.target.json;
        let wanted = filter.clone();
        let mut changes = match server.client.listen(filter).await {
            Ok(changes) => changes,
            Err(error) => return output::fail(&error, json),
        };
        for missing in missing(&wanted, &changes.agreed()) {
            output::note(
                &format!("the server sends no notifications for {missing}"),
                json,
            );
        }
        let mut left = self.count;
        while left != Some(0) {
            let Some(change) = changes.next().await else {
                break;
            };
            let line = match json {
                true => as_json(&change).to_string(),
                false => as_text(&change),
            };
            if let Err(code) = output::put_on(line).await {
                return code;
            }
            left = left.map(|left| left - 1);
        }
        match changes.end() {
            None => exit::OK,
            Some(SubscriptionEnd::Failed(error)) => output::fail(error, json),
            Some(_) => {
                output::note("the server ended the subscription", json);
                exit::OK
            }
        }
    }
}

/// The notifications that were requested and that the server does not send.
fn missing(wanted: &SubscriptionFilter, agreed: &SubscriptionFilter) -> Vec<&'static str> {
    let lists = [
        (
            wanted.tools_list_changed,
            agreed.tools_list_changed,
            "its list of tools",
        ),
        (
            wanted.prompts_list_changed,
            agreed.prompts_list_changed,
            "its list of prompts",
        ),
        (
            wanted.resources_list_changed,
            agreed.resources_list_changed,
            "its list of resources",
        ),
    ];
    let lists = lists
        .into_iter()
        .filter(|(wanted, agreed, _)| wanted != agreed);
    let mut missing: Vec<&'static str> = lists.map(|(_, _, what)| what).collect();
    if wanted.uris().len() > agreed.uris().len() {
        missing.push("some of these resources");
    }
    missing
}

fn as_text(change: &Change) -> String {
    match change {
        Change::Tools => "tools".into(),
        Change::Prompts => "prompts".into(),
        Change::Resources => "resources".into(),
        Change::Updated { uri } => format!("updated {}", output::escaped(uri)),
        Change::Lagged { missed } => format!("lagged: {missed} changes were dropped"),
        Change::Restored => "restored: the connection was lost, changes may be missing".into(),
        _ => "unknown".into(),
    }
}

fn as_json(change: &Change) -> serde_json::Value {
    match change {
        Change::Tools => json!({ "change": "tools" }),
        Change::Prompts => json!({ "change": "prompts" }),
        Change::Resources => json!({ "change": "resources" }),
        Change::Updated { uri } => json!({ "change": "updated", "uri": uri }),
        Change::Lagged { missed } => json!({ "change": "lagged", "missed": missed }),
        Change::Restored => json!({ "change": "restored" }),
        _ => json!({ "change": "unknown" }),
    }
}
