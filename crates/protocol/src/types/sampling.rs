//! `sampling/createMessage`: the client's language model, on behalf of the server.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{AudioContent, ContentBlock, Extra, ImageContent, Request, Role, TextContent, Tool};

record! {
    /// What the model is asked.
    ///
    /// ```
    /// use belay_protocol::types::{CreateMessageParams, SamplingMessage};
    /// let params = CreateMessageParams::new([SamplingMessage::user("Why?")], 100_u64);
    /// assert_eq!(params.messages[0].content.as_text(), Some("Why?"));
    /// ```
    pub struct CreateMessageParams {
        required {
            /// The conversation so far.
            messages: Vec<SamplingMessage> = "messages",
            /// How long the answer may be.
            max_tokens: u64 = "maxTokens",
        }
        optional {
            /// Which model would be good.
            model_preferences: ModelPreferences = "modelPreferences",
            /// What the model is told first. The client may change it.
            system_prompt: String = "systemPrompt",
            /// What else the model should see. Not to be used in new programs.
            include_context: IncludeContext = "includeContext",
            /// From predictable to wild.
            temperature: f64 = "temperature",
            /// Where the model stops.
            stop_sequences: Vec<String> = "stopSequences",
            /// For the model's provider.
            metadata: Extra = "metadata",
            /// What the model may use. Only for clients that have `sampling.tools`.
            tools: Vec<Tool> = "tools",
            /// Whether it must.
            tool_choice: ToolChoice = "toolChoice",
        }
    }
}

impl CreateMessageParams {
    /// Whether tools are used in good order: each use has its result in the next message, and a message
    /// with results has nothing else. What is wrong is told.
    ///
    /// ```
    /// use belay_protocol::types::{CreateMessageParams, SamplingMessage, SamplingBlock, ToolUseContent};
    ///
    /// let using = ToolUseContent::new("use-1", "clock", serde_json::Map::new());
    /// let using = SamplingMessage::assistant(SamplingBlock::ToolUse(using));
    /// let params = CreateMessageParams::new([SamplingMessage::user("Late?"), using], 100_u64);
    /// assert!(params.check_tool_use().unwrap_err().contains("use-1"));
    /// ```
    pub fn check_tool_use(&self) -> Result<(), String> {
        let mut open: Vec<&str> = Vec::new();
        for message in &self.messages {
            let blocks = message.content.blocks();
            let results = || {
                blocks.iter().filter_map(|block| match block {
                    SamplingBlock::ToolResult(result) => Some(result.tool_use_id.as_str()),
                    _ => None,
                })
            };
            let count = results().count();
            if count > 0 && (count < blocks.len() || message.role != Role::User) {
                return Err("a message with results of tools has something else in it".into());
            }
            for result in results() {
                match open.iter().position(|known| *known == result) {
                    Some(at) => _ = open.swap_remove(at),
                    None => return Err(format!("a result is for {result:?}, which was not used")),
                }
            }
            if let Some(unanswered) = open.first() {
                return Err(format!("the use {unanswered:?} of a tool has no result"));
            }
            let uses = blocks.iter().filter_map(|block| match block {
                SamplingBlock::ToolUse(using) => Some(using.id.as_str()),
                _ => None,
            });
            open.extend(uses);
        }
        match open.first() {
            Some(unanswered) => Err(format!("the use {unanswered:?} of a tool has no result")),
            None => Ok(()),
        }
    }
}

record! {
    /// One message of a conversation with a model.
    pub struct SamplingMessage {
        required {
            /// Who says it.
            role: Role = "role",
            /// What is said.
            content: SamplingContent = "content",
        }
    }
}

impl SamplingMessage {
    /// What the person says.
    pub fn user(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::User, content)
    }

    /// What the model says.
    pub fn assistant(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

/// One piece of content, or several.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SamplingContent {
    /// Several.
    Many(Vec<SamplingBlock>),
    /// One.
    One(Box<SamplingBlock>),
}

impl SamplingContent {
    /// The pieces.
    pub fn blocks(&self) -> &[SamplingBlock] {
        match self {
            Self::Many(blocks) => blocks,
            Self::One(block) => std::slice::from_ref(block),
        }
    }

    /// The first text in it.
    pub fn as_text(&self) -> Option<&str> {
        self.blocks().iter().find_map(|block| match block {
            SamplingBlock::Text(content) => Some(content.text.as_str()),
            _ => None,
        })
    }
}

impl From<&str> for SamplingContent {
    fn from(text: &str) -> Self {
        SamplingBlock::Text(TextContent::new(text)).into()
    }
}

impl From<String> for SamplingContent {
    fn from(text: String) -> Self {
        SamplingBlock::Text(TextContent::new(text)).into()
    }
}

impl From<SamplingBlock> for SamplingContent {
    fn from(block: SamplingBlock) -> Self {
        Self::One(Box::new(block))
    }
}

impl From<Vec<SamplingBlock>> for SamplingContent {
    fn from(blocks: Vec<SamplingBlock>) -> Self {
        Self::Many(blocks)
    }
}

kinds! {
    /// A piece of a conversation with a model.
    pub enum SamplingBlock {
        /// Text.
        Text(TextContent) = "text",
        /// A picture.
        Image(ImageContent) = "image",
        /// A sound.
        Audio(AudioContent) = "audio",
        /// The model wants to use a tool.
        ToolUse(ToolUseContent) = "tool_use",
        /// What the tool gave.
        ToolResult(ToolResultContent) = "tool_result",
    }
}

record! {
    /// The model wants to use a tool.
    pub struct ToolUseContent {
        required {
            /// What this use is called.
            id: String = "id",
            /// Which tool.
            name: String = "name",
            /// With what.
            input: Map<String, Value> = "input",
        }
    }
}

record! {
    /// What a tool gave. A message has only these, or none.
    pub struct ToolResultContent {
        required {
            /// Which use it belongs to.
            tool_use_id: String = "toolUseId",
            /// For the model.
            content: Vec<ContentBlock> = "content",
        }
        optional {
            /// Whether the tool failed.
            is_error: bool = "isError",
        }
        anything {
            /// For programs.
            structured_content = "structuredContent",
        }
    }
}

record! {
    /// Which model would be good. The client decides.
    pub struct ModelPreferences {
        optional {
            /// Parts of names, the best first.
            hints: Vec<ModelHint> = "hints",
            /// How much a low price matters, from 0 to 1.
            cost_priority: f64 = "costPriority",
            /// How much speed matters, from 0 to 1.
            speed_priority: f64 = "speedPriority",
            /// How much ability matters, from 0 to 1.
            intelligence_priority: f64 = "intelligencePriority",
        }
    }
}

record! {
    /// A hint at a model.
    pub struct ModelHint {
        optional {
            /// A part of its name.
            name: String = "name",
        }
    }
}

words! {
    /// What else a model should see.
    pub enum IncludeContext {
        /// Nothing.
        None = "none",
        /// What came from this server.
        ThisServer = "thisServer",
        /// What came from all servers.
        AllServers = "allServers",
    }
}

record! {
    /// Whether a model must use tools.
    pub struct ToolChoice {
        optional {
            /// Whether it must.
            mode: ToolChoiceMode = "mode",
        }
    }
}

words! {
    /// Whether a model must use tools.
    pub enum ToolChoiceMode {
        /// As it likes.
        Auto = "auto",
        /// At least one.
        Required = "required",
        /// None.
        None = "none",
    }
}

record! {
    /// What the model said.
    pub struct CreateMessageResult {
        required {
            /// Who says it: the model.
            role: Role = "role",
            /// What it says.
            content: SamplingContent = "content",
            /// Which model.
            model: String = "model",
        }
        optional {
            /// Why it stopped.
            stop_reason: StopReason = "stopReason",
        }
    }
}

words! {
    /// Why a model stopped.
    pub enum StopReason {
        /// It was done.
        EndTurn = "endTurn",
        /// It came to where it was to stop.
        StopSequence = "stopSequence",
        /// The answer is as long as it may be.
        MaxTokens = "maxTokens",
        /// It wants to use a tool.
        ToolUse = "toolUse",
    }
}

/// `sampling/createMessage`: a request in the legacy era, a question of a round in the modern one.
#[derive(Clone, Copy, Debug)]
pub enum CreateMessage {}

impl Request for CreateMessage {
    const METHOD: &'static str = "sampling/createMessage";
    type Params = CreateMessageParams;
    type Result = CreateMessageResult;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_are_used_in_good_order() {
        let text = json!({ "type": "text", "text": "hm" });
        let using = |id: &str| json!({ "type": "tool_use", "id": id, "name": "t", "input": {} });
        let result = |id: &str| json!({ "type": "tool_result", "toolUseId": id, "content": [] });
        let user = |content: Value| json!({ "role": "user", "content": content });
        let model = |content: Value| json!({ "role": "assistant", "content": content });
        for (messages, problem) in [
            (json!([user(text.clone())]), None),
            (
                json!([
                    model(json!([text, using("1"), using("2")])),
                    user(json!([result("2"), result("1")]))
                ]),
                None,
            ),
            (
                json!([
                    model(using("1")),
                    user(result("1")),
                    model(using("1")),
                    user(result("1"))
                ]),
                None,
            ),
            (
                json!([model(using("1")), user(json!([result("1"), text]))]),
                Some("something else"),
            ),
            (
                json!([model(using("1")), model(result("1"))]),
                Some("something else"),
            ),
            (
                json!([model(using("1")), user(text)]),
                Some("\"1\" of a tool has no result"),
            ),
            (
                json!([model(using("1"))]),
                Some("\"1\" of a tool has no result"),
            ),
            (
                json!([model(json!([using("1"), using("2")])), user(result("1"))]),
                Some("\"2\""),
            ),
            (json!([user(result("1"))]), Some("which was not used")),
        ] {
            let params = json!({ "messages": messages, "maxTokens": 5 });
            let params: CreateMessageParams = serde_json::from_value(params).expect("params");
            match (params.check_tool_use(), problem) {
                (Ok(()), None) => {}
                (Err(found), Some(problem)) => assert!(found.contains(problem), "{found}"),
                (found, _) => panic!("{found:?}: {messages}"),
            }
        }
    }
}
