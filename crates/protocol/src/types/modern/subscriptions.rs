//! `subscriptions/listen`: a request whose answer is a stream of notifications.

use crate::types::{Notification, Request, ResultType};

record! {
    /// The parameters of `subscriptions/listen`.
    pub struct ListenParams {
        required {
            /// The notifications that the client asks for.
            notifications: SubscriptionFilter = "notifications",
        }
    }
}

record! {
    /// A choice of notifications. Kinds that are not named are not sent.
    ///
    /// ```
    /// use belay_protocol::types::modern::SubscriptionFilter;
    /// let filter = SubscriptionFilter::new().tools().resource("file:///config.json");
    /// let json = serde_json::to_string(&filter).unwrap();
    /// assert_eq!(json, r#"{"toolsListChanged":true,"resourceSubscriptions":["file:///config.json"]}"#);
    /// ```
    pub struct SubscriptionFilter {
        optional {
            /// Changes of the list of tools.
            tools_list_changed: bool = "toolsListChanged",
            /// Changes of the list of prompts.
            prompts_list_changed: bool = "promptsListChanged",
            /// Changes of the list of resources.
            resources_list_changed: bool = "resourcesListChanged",
            /// Changes of the resources with these URIs.
            resource_subscriptions: Vec<String> = "resourceSubscriptions",
        }
    }
}

impl SubscriptionFilter {
    /// Adds changes of the list of tools.
    pub fn tools(mut self) -> Self {
        self.tools_list_changed = Some(true);
        self
    }

    /// Adds changes of the list of prompts.
    pub fn prompts(mut self) -> Self {
        self.prompts_list_changed = Some(true);
        self
    }

    /// Adds changes of the list of resources.
    pub fn resources(mut self) -> Self {
        self.resources_list_changed = Some(true);
        self
    }

    /// Adds changes of this resource.
    pub fn resource(mut self, uri: impl Into<String>) -> Self {
        let uris = self.resource_subscriptions.get_or_insert_default();
        uris.push(uri.into());
        self
    }

    /// The URIs of the resources in this filter.
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
    /// The first message of the stream: the notifications that the server will send.
    pub struct AcknowledgedParams {
        required {
            /// The notifications that the server will send.
            notifications: SubscriptionFilter = "notifications",
        }
    }
}

impl Notification for AcknowledgedParams {
    const METHOD: &'static str = "notifications/subscriptions/acknowledged";
}

record! {
    /// The graceful end of the stream.
    pub struct ListenResult {
        optional {
            /// The type of the result.
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
