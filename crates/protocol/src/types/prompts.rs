//! `prompts/list` and `prompts/get`.

use std::collections::BTreeMap;

use super::{
    CacheScope, ContentBlock, Extra, Icon, Millis, Notification, PaginatedParams, Request,
    ResultType, Role,
};

record! {
    /// A template of messages for a model, which the user chooses and fills in.
    ///
    /// ```
    /// use belay_protocol::types::{PromptDefinition, PromptArgument};
    /// let mut review = PromptDefinition::new("review");
    /// review.arguments = Some(vec![PromptArgument::new("code")]);
    /// let json = serde_json::to_string(&review).unwrap();
    /// assert_eq!(json, r#"{"name":"review","arguments":[{"name":"code"}]}"#);
    /// ```
    pub struct PromptDefinition {
        required {
            /// The programmatic name.
            name: String = "name",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// The arguments that the user can fill in.
            arguments: Vec<PromptArgument> = "arguments",
            /// Icons for display.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// An argument of a prompt.
    pub struct PromptArgument {
        required {
            /// The programmatic name.
            name: String = "name",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description.
            description: String = "description",
            /// Whether the argument must be given.
            required: bool = "required",
        }
    }
}

record! {
    /// One page of prompts.
    pub struct ListPromptsResult {
        required {
            /// The prompts.
            prompts: Vec<PromptDefinition> = "prompts",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
            /// The cursor of the next page, if there is one.
            next_cursor: String = "nextCursor",
            /// For how many milliseconds the result may be cached; modern only.
            ttl_ms: Millis = "ttlMs",
            /// Who may share the cached result; modern only.
            cache_scope: CacheScope = "cacheScope",
        }
    }
}

record! {
    /// The parameters of `prompts/get`: which prompt, and its arguments.
    pub struct GetPromptParams {
        required {
            /// The prompt's name.
            name: String = "name",
        }
        optional {
            /// The values of the arguments.
            arguments: BTreeMap<String, String> = "arguments",
            /// Answers to the questions of the previous round; modern only.
            input_responses: Extra = "inputResponses",
            /// The state that the server wants back with those answers; modern only.
            request_state: String = "requestState",
        }
    }
}

record! {
    /// A prompt with its arguments filled in.
    pub struct GetPromptResult {
        required {
            /// The messages for the model.
            messages: Vec<PromptMessage> = "messages",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
            /// The description.
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
            /// Who speaks.
            role: Role = "role",
            /// The content of the message.
            content: ContentBlock = "content",
        }
    }
}

impl PromptMessage {
    /// A message of the user.
    pub fn user(content: impl Into<ContentBlock>) -> Self {
        Self::new(Role::User, content)
    }

    /// A message of the model.
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
    /// The list of prompts has changed.
    pub struct PromptListChangedParams {
    }
}

impl Notification for PromptListChangedParams {
    const METHOD: &'static str = "notifications/prompts/list_changed";
}
