//! `prompts/list` and `prompts/get`.

use std::collections::BTreeMap;

use super::{
    CacheScope, ContentBlock, Extra, Icon, Millis, Notification, PaginatedParams, Request,
    ResultType, Role,
};

record! {
    /// Words for a model, which a person chooses and fills in.
    ///
    /// ```
    /// use belay_protocol::types::{Prompt, PromptArgument};
    /// let mut review = Prompt::new("review");
    /// review.arguments = Some(vec![PromptArgument::new("code")]);
    /// let json = serde_json::to_string(&review).unwrap();
    /// assert_eq!(json, r#"{"name":"review","arguments":[{"name":"code"}]}"#);
    /// ```
    pub struct Prompt {
        required {
            /// What it is called by.
            name: String = "name",
        }
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it is for.
            description: String = "description",
            /// What can be filled in.
            arguments: Vec<PromptArgument> = "arguments",
            /// What it looks like.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// Something that can be filled in.
    pub struct PromptArgument {
        required {
            /// What it is called by.
            name: String = "name",
        }
        optional {
            /// What it is called for people.
            title: String = "title",
            /// What it means.
            description: String = "description",
            /// Whether it must be given.
            required: bool = "required",
        }
    }
}

record! {
    /// One page of prompts.
    pub struct ListPromptsResult {
        required {
            /// The prompts.
            prompts: Vec<Prompt> = "prompts",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
            /// Where the next page begins, if there is one.
            next_cursor: String = "nextCursor",
            /// For how many milliseconds it may be kept; modern only.
            ttl_ms: Millis = "ttlMs",
            /// Who may share it; modern only.
            cache_scope: CacheScope = "cacheScope",
        }
    }
}

record! {
    /// Which prompt, and what is filled in.
    pub struct GetPromptParams {
        required {
            /// The prompt's name.
            name: String = "name",
        }
        optional {
            /// What is filled in.
            arguments: BTreeMap<String, String> = "arguments",
            /// Answers to what the server asked for in the round before; modern only.
            input_responses: Extra = "inputResponses",
            /// What the server wants back with those answers; modern only.
            request_state: String = "requestState",
        }
    }
}

record! {
    /// A prompt, filled in.
    pub struct GetPromptResult {
        required {
            /// What to tell the model.
            messages: Vec<PromptMessage> = "messages",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
            /// What it is for.
            description: String = "description",
        }
    }
}

record! {
    /// One message of a prompt.
    ///
    /// ```
    /// use belay_protocol::types::{PromptMessage, Role};
    /// let message = PromptMessage::user("Review this.");
    /// assert_eq!((message.role, message.content.as_text()), (Role::User, Some("Review this.")));
    /// ```
    pub struct PromptMessage {
        required {
            /// Who says it.
            role: Role = "role",
            /// What is said.
            content: ContentBlock = "content",
        }
    }
}

impl PromptMessage {
    /// What the person says.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// What the model says.
    pub fn assistant(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::Assistant, content)
    }
}

/// `prompts/list`.
#[derive(Clone, Copy, Debug)]
pub enum ListPrompts {}

impl Request for ListPrompts {
    const METHOD: &'static str = "prompts/list";
    type Params = PaginatedParams;
    type Result = ListPromptsResult;
}

/// `prompts/get`.
#[derive(Clone, Copy, Debug)]
pub enum GetPrompt {}

impl Request for GetPrompt {
    const METHOD: &'static str = "prompts/get";
    type Params = GetPromptParams;
    type Result = GetPromptResult;
}

record! {
    /// The list of prompts is not what it was.
    pub struct PromptListChangedParams {
    }
}

impl Notification for PromptListChangedParams {
    const METHOD: &'static str = "notifications/prompts/list_changed";
}
