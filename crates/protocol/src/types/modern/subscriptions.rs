//! `subscriptions/listen`: a request whose answer is a stream of news.

use crate::types::{Notification, Request, ResultType};

record! {
    /// What a client wants to hear of.
    pub struct ListenParams {
        required {
            /// What it wants to hear of.
            notifications: SubscriptionFilter = "notifications",
        }
    }
}

record! {
    /// Kinds of news. What is not named is not wanted.
    ///
    /// ```
    /// use belay_protocol::types::modern::SubscriptionFilter;
    /// let filter = SubscriptionFilter::new().tools().resource("file:///config.json");
    /// let json = serde_json::to_string(&filter).unwrap();
    /// assert_eq!(json, r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///config.json"]}"#);
    /// ```
    pub struct SubscriptionFilter {
        optional {
            /// The list of tools changed.
            tools_list_changed: bool = "toolsListChanged",
            /// The list of prompts changed.
            prompts_list_changed: bool = "promptsListChanged",
            /// The list of resources changed.
            resources_list_changed: bool = "resourcesListChanged",
            /// These resources changed.
            resource_subscriptions: Vec<String> = "resourceSubscriptions",
        }
    }
}

impl SubscriptionFilter {
    /// With changes of the list of tools.
    pub fn tools(mut self) -> Self {
        self.tools_list_changed = Some(true);
        self
    }

    /// With changes of the list of prompts.
    pub fn prompts(mut self) -> Self {
        self.prompts_list_changed = Some(true);
        self
    }

    /// With changes of the list of resources.
    pub fn resources(mut self) -> Self {
        self.resources_list_changed = Some(true);
        self
    }

    /// With changes of this resource.
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        let uris = self.resource_subscriptions.get_or_insert_default();
        uris.push(uri.into());
        self
    }

    /// The resources it names.
    pub fn uris(&self) -> &[String] {
        self.resource_subscriptions.as_deref().unwrap_or_default()
    }
}

impl Default for SubscriptionFilter {
    fn default() -> Self {
        Self::new()
    }
}

record! {
    /// What the server will tell of: the first thing it says.
    pub struct AcknowledgedParams {
        required {
            /// What it will tell of.
            notifications: SubscriptionFilter = "notifications",
        }
    }
}

impl Notification for AcknowledgedParams {
    const METHOD: &'static str = "notifications/subscriptions/acknowledged";
}

record! {
    /// There will be no more news, and nothing went wrong.
    pub struct ListenResult {
        optional {
            /// What kind of result it is.
            result_type: ResultType = "resultType",
        }
    }
}

/// `subscriptions/listen`.
#[derive(Clone, Copy, Debug)]
pub enum Listen {}

impl Request for Listen {
    const METHOD: &'static str = "subscriptions/listen";
    type Params = ListenParams;
    type Result = ListenResult;
}
