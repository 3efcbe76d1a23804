//! The wires: pipes to a process and HTTP, in both eras.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::Client;
use belay::client::ClientBuilder;
use belay::client::Mode;
use belay::http::{Endpoint, ServerHandle};
use belay::jsonrpc::ErrorObject;
use belay::types::legacy::ElicitationCompleteParams;
use belay::types::{
    CreateMessageParams, CreateMessageResult, ElicitFormParams, ElicitResult, Era,
    LoggingMessageParams, Notification, Role, Root, SamplingBlock, SamplingContent, ToolUseContent,
};
use serde_json::{Map, json};

use super::{Connected, everything};
use crate::examples::built;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Wire {
    StdioLegacy,
    StdioModern,
    HttpLegacy,
    HttpModern,
}

/// What serves, while a case runs.
pub(super) enum Serving {
    /// A child of the client's.
    Process,
    Http(ServerHandle),
}

impl Wire {
    pub(super) const ALL: [Self; 4] = [
        Self::StdioLegacy,
        Self::StdioModern,
        Self::HttpLegacy,
        Self::HttpModern,
    ];

    pub(super) fn era(self) -> Era {
        match self {
            Self::StdioLegacy | Self::HttpLegacy => Era::Legacy,
            Self::StdioModern | Self::HttpModern => Era::Modern,
        }
    }

    pub(super) async fn connect(self) -> (Connected, Serving) {
        let guests = Guests::default();
        let builder = guests.answer_for(Client::builder("test", "1"));
        let (client, serving) = self.connect_with(builder).await;
        let connected = Connected {
            wire: self,
            client,
            guests,
        };
        (connected, serving)
    }

    /// A client with other settings.
    pub(super) async fn connect_with(self, builder: ClientBuilder) -> (Client, Serving) {
        let builder = builder.mode(match self.era() {
            Era::Legacy => Mode::Legacy,
            Era::Modern => Mode::Modern,
        });
        match self {
            Self::StdioLegacy | Self::StdioModern => {
                let client = builder
                    .spawn(std::process::Command::new(built("everything")))
                    .await
                    .unwrap();
                (client, Serving::Process)
            }
            Self::HttpLegacy | Self::HttpModern => {
                let endpoint = Endpoint::new(everything::server());
                let listening = endpoint.bind("127.0.0.1:0").await.unwrap();
                let url = format!("http://{}/mcp", listening.address());
                let client = builder.http(&url).await.unwrap();
                (client, Serving::Http(listening))
            }
        }
    }
}

/// What the client does when it is asked; and what it was told.
#[derive(Clone, Default)]
pub(super) struct Guests {
    /// Questions that nobody answers yet.
    open: Arc<AtomicUsize>,
    asked: Arc<AtomicUsize>,
    pub(super) logs: Arc<std::sync::Mutex<Vec<LoggingMessageParams>>>,
    /// What the pages were called, when they were shown and when the person was done.
    pub(super) visits: Arc<std::sync::Mutex<Vec<Option<String>>>>,
}

/// A question that nobody answers.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Guests {
    pub(super) fn answer_for(&self, builder: ClientBuilder) -> ClientBuilder {
        let (form, url, model) = (self.clone(), self.clone(), self.clone());
        let (logs, visits) = (self.logs.clone(), self.visits.clone());
        builder
            .capabilities(|can| {
                let sampling = can
                    .sampling
                    .get_or_insert_with(belay::types::SamplingCapability::new);
                sampling.tools = Some(Default::default());
            })
            .on_elicit(move |params| {
                let guests = form.clone();
                async move { guests.fill_in(params).await }
            })
            .on_elicit_url(move |params| {
                url.asked.fetch_add(1, Ordering::SeqCst);
                let id = params.elicitation_id.clone();
                url.visits.lock().unwrap().push(id);
                async move {
                    Ok(match params.url.starts_with("https:") {
                        true => ElicitResult::consent(),
                        false => ElicitResult::decline(),
                    })
                }
            })
            .on_sample(move |params| {
                let guests = model.clone();
                async move {
                    if params.tools.is_some() {
                        return Ok(use_tools(&params));
                    }
                    let asked = params.messages[0].content.as_text().unwrap_or_default();
                    let asked = asked.to_owned();
                    guests.wait_if(&asked).await;
                    let said = format!("{asked}? Certainly.");
                    Ok(CreateMessageResult::new(Role::Assistant, said, "parrot"))
                }
            })
            .roots([Root::new("file:///a"), Root::new("file:///b")])
            .on_log(move |message| logs.lock().unwrap().push(message))
            .on_notification(move |told| {
                if told.method == ElicitationCompleteParams::METHOD {
                    let done = told.params.unwrap().decode::<ElicitationCompleteParams>();
                    visits
                        .lock()
                        .unwrap()
                        .push(Some(done.unwrap().elicitation_id));
                }
            })
    }

    /// By what is asked.
    async fn fill_in(&self, form: ElicitFormParams) -> Result<ElicitResult, ErrorObject> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.wait_if(&form.message).await;
        let filled = match form.message.as_str() {
            "no" => return Ok(ElicitResult::decline()),
            "gone" => return Ok(ElicitResult::cancel()),
            "broken" => return Err(ErrorObject::new(-31000, "the form fell apart")),
            "panic" => panic!("on purpose"),
            "wrong" => json!({ "name": 7 }),
            "All kinds of fields" => form.requested_schema.defaults().into(),
            "Who is first?" | "Who is left?" => json!({ "name": "Ada" }),
            "Who is second?" | "Who is right?" => json!({ "name": "Alan" }),
            _ => json!({ "name": "Grace", "size": "large" }),
        };
        Ok(ElicitResult::accept(filled.as_object().unwrap().clone()))
    }

    /// Some questions are never answered.
    async fn wait_if(&self, question: &str) {
        if question.contains("wait") {
            self.open.fetch_add(1, Ordering::SeqCst);
            let _open = Open(self.open.clone());
            pending::<()>().await;
        }
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(super) async fn open(&self, count: usize) {
        belay_testkit::until("questions are open", || {
            self.open.load(Ordering::SeqCst) == count
        })
        .await;
    }

    pub(super) async fn until_logged(&self, count: usize) -> Vec<LoggingMessageParams> {
        belay_testkit::until("it was logged", || self.logs.lock().unwrap().len() >= count).await;
        // If there were more, they would come about now.
        tokio::time::sleep(Duration::from_millis(20)).await;
        std::mem::take(&mut *self.logs.lock().unwrap())
    }
}

/// Uses the first tool, and says what it gave.
fn use_tools(params: &CreateMessageParams) -> CreateMessageResult {
    let tool = &params.tools.as_ref().unwrap()[0].name;
    let last = params.messages.last().unwrap().content.blocks();
    let content: SamplingContent = match &last[0] {
        SamplingBlock::ToolResult(result) => {
            let said = result.content[0].as_text().unwrap();
            format!("{tool} said: {said}").into()
        }
        _ => SamplingBlock::ToolUse(ToolUseContent::new("use-1", tool, Map::new())).into(),
    };
    CreateMessageResult::new(Role::Assistant, content, "parrot")
}
