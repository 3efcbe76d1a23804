//! `sampling/createMessage`: the server uses the client's language model.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    AudioContent, ContentBlock, Extra, ImageContent, Request, Role, TextContent, ToolDefinition,
};

record! {
    /// The parameters of `sampling/createMessage`.
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
            /// The maximum length of the answer in tokens.
            max_tokens: u64 = "maxTokens",
        }
        optional {
            /// Preferences for the choice of a model.
            model_preferences: ModelPreferences = "modelPreferences",
            /// The system prompt. The client may change it.
            system_prompt: String = "systemPrompt",
            /// What other context the model should see. Deprecated.
            include_context: IncludeContext = "includeContext",
            /// The sampling temperature.
            temperature: f64 = "temperature",
            /// Sequences at which the model stops.
            stop_sequences: Vec<String> = "stopSequences",
            /// Metadata for the model's provider.
            metadata: Extra = "metadata",
            /// The tools that the model may use. Only for clients with the `sampling.tools`
            /// capability.
            tools: Vec<ToolDefinition> = "tools",
            /// Whether the model must use tools.
            tool_choice: ToolChoice = "toolChoice",
        }
    }
}

impl CreateMessageParams {
    /// Checks the order of tool uses: each use has its result in the next message, and a message
    /// with results has no other content. The error says what is wrong.
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
    /// One message of the dialogue with a model.
    pub struct SamplingMessage {
        required {
            /// Who speaks.
            role: Role = "role",
            /// The content of the message.
            content: SamplingContent = "content",
        }
    }
}

impl SamplingMessage {
    /// A message of the user.
    pub fn user(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::User, content)
    }

    /// A message of the model.
    pub fn assistant(content: impl Into<SamplingContent>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

/// One block of content, or several.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SamplingContent {
    /// Several blocks.
    Many(Vec<SamplingBlock>),
    /// One block.
    One(Box<SamplingBlock>),
}

impl SamplingContent {
    /// The blocks.
    pub fn blocks(&self) -> &[SamplingBlock] {
        match self {
            Self::Many(blocks) => blocks,
            Self::One(block) => std::slice::from_ref(block),
        }
    }

    /// The first text among the blocks.
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
    /// A block of content in a dialogue with a model.
    pub enum SamplingBlock {
        /// A text.
        Text(TextContent) = "text",
        /// An image.
        Image(ImageContent) = "image",
        /// Audio.
        Audio(AudioContent) = "audio",
        /// The model wants to use a tool.
        ToolUse(ToolUseContent) = "tool_use",
        /// The result of a tool use.
        ToolResult(ToolResultContent) = "tool_result",
    }
}

record! {
    /// The model wants to use a tool.
    pub struct ToolUseContent {
        required {
            /// The id of this tool use.
            id: String = "id",
            /// The name of the tool.
            name: String = "name",
            /// The arguments.
            input: Map<String, Value> = "input",
        }
    }
}

record! {
    /// The result of a tool use. A message has only such blocks, or none.
    pub struct ToolResultContent {
        required {
            /// The id of the tool use.
            tool_use_id: String = "toolUseId",
            /// The result, for the model.
            content: Vec<ContentBlock> = "content",
        }
        optional {
            /// Whether the tool failed.
            is_error: bool = "isError",
        }
        anything {
            /// The result, for programs.
            structured_content = "structuredContent",
        }
    }
}

record! {
    /// Preferences for the choice of a model. The client decides.
    pub struct ModelPreferences {
        optional {
            /// Hints at model names, best first.
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
    /// A hint at a model name.
    pub struct ModelHint {
        optional {
            /// A part of the name.
            name: String = "name",
        }
    }
}

words! {
    /// Which context the model should see in addition.
    pub enum IncludeContext {
        /// No other context.
        None = "none",
        /// Context from this server.
        ThisServer = "thisServer",
        /// Context from all servers.
        AllServers = "allServers",
    }
}

record! {
    /// Whether a model must use tools.
    pub struct ToolChoice {
        optional {
            /// The mode.
            mode: ToolChoiceMode = "mode",
        }
    }
}

words! {
    /// Whether a model must use tools.
    pub enum ToolChoiceMode {
        /// The model decides.
        Auto = "auto",
        /// The model must use at least one tool.
        Required = "required",
        /// The model must not use tools.
        None = "none",
    }
}

record! {
    /// The model's answer.
    pub struct CreateMessageResult {
        required {
            /// Who speaks: the model.
            role: Role = "role",
            /// The content of the answer.
            content: SamplingContent = "content",
            /// The name of the model.
            model: String = "model",
        }
        optional {
            /// Why the model stopped.
            stop_reason: StopReason = "stopReason",
        }
    }
}

words! {
    /// Why a model stopped.
    pub enum StopReason {
        /// The answer is complete.
        EndTurn = "endTurn",
        /// A stop sequence was reached.
        StopSequence = "stopSequence",
        /// The maximum length was reached.
        MaxTokens = "maxTokens",
        /// The model wants to use a tool.
        ToolUse = "toolUse",
    }
}

/// `sampling/createMessage`: a request in the legacy era, an input request in the modern era.
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
