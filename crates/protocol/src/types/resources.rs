//! `resources/list`, `resources/templates/list` and `resources/read`.

use super::{
    Annotations, CacheScope, Extra, Icon, Millis, Notification, PaginatedParams, Request,
    ResourceContents, ResultType,
};

record! {
    /// Data that a client can read.
    ///
    /// ```
    /// use belay_protocol::types::ResourceDefinition;
    /// let readme = ResourceDefinition::new("file:///README.md", "readme");
    /// let json = serde_json::to_string(&readme).unwrap();
    /// assert_eq!(json, r#"{"uri":"file:///README.md","name":"readme"}"#);
    /// ```
    pub struct ResourceDefinition {
        required {
            /// The URI.
            uri: String = "uri",
            /// The programmatic name.
            name: String = "name",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description, for the model.
            description: String = "description",
            /// The MIME type.
            mime_type: String = "mimeType",
            /// Hints about audience, priority and last change.
            annotations: Annotations = "annotations",
            /// The size in bytes.
            size: u64 = "size",
            /// Icons for display.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// A family of resources whose URIs match one template.
    pub struct ResourceTemplateDefinition {
        required {
            /// The URI template, after RFC 6570: `file:///{path}`.
            uri_template: String = "uriTemplate",
            /// The programmatic name.
            name: String = "name",
        }
        optional {
            /// The display name.
            title: String = "title",
            /// The description, for the model.
            description: String = "description",
            /// The MIME type, if all of them have the same.
            mime_type: String = "mimeType",
            /// Hints about audience, priority and last change.
            annotations: Annotations = "annotations",
            /// Icons for display.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// One page of resources.
    pub struct ListResourcesResult {
        required {
            /// The resources.
            resources: Vec<ResourceDefinition> = "resources",
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
    /// One page of resource templates.
    pub struct ListResourceTemplatesResult {
        required {
            /// The resource templates.
            resource_templates: Vec<ResourceTemplateDefinition> = "resourceTemplates",
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
    /// The parameters of `resources/read`.
    pub struct ReadResourceParams {
        required {
            /// The URI.
            uri: String = "uri",
        }
        optional {
            /// Answers to the questions of the previous round; modern only.
            input_responses: Extra = "inputResponses",
            /// The state that the server wants back with those answers; modern only.
            request_state: String = "requestState",
        }
    }
}

record! {
    /// The contents of a resource. A folder may have several.
    pub struct ReadResourceResult {
        required {
            /// The contents.
            contents: Vec<ResourceContents> = "contents",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
            /// For how many milliseconds the result may be cached; modern only.
            ttl_ms: Millis = "ttlMs",
            /// Who may share the cached result; modern only.
            cache_scope: CacheScope = "cacheScope",
        }
    }
}

record! {
    /// The data of the error "resource not found".
    pub struct ResourceNotFoundData {
        required {
            /// The URI that was requested.
            uri: String = "uri",
        }
    }
}

/// `resources/list`.
#[derive(Clone, Copy, Debug)]
pub enum ListResources {}

impl Request for ListResources {
    const METHOD: &'static str = "resources/list";
    type Params = PaginatedParams;
    type Result = ListResourcesResult;
}

/// `resources/templates/list`.
#[derive(Clone, Copy, Debug)]
pub enum ListResourceTemplates {}

impl Request for ListResourceTemplates {
    const METHOD: &'static str = "resources/templates/list";
    type Params = PaginatedParams;
    type Result = ListResourceTemplatesResult;
}

/// `resources/read`.
#[derive(Clone, Copy, Debug)]
pub enum ReadResource {}

impl Request for ReadResource {
    const METHOD: &'static str = "resources/read";
    type Params = ReadResourceParams;
    type Result = ReadResourceResult;
}

record! {
    /// The list of resources has changed.
    pub struct ResourceListChangedParams {
    }
}

impl Notification for ResourceListChangedParams {
    const METHOD: &'static str = "notifications/resources/list_changed";
}

record! {
    /// A resource has changed.
    pub struct ResourceUpdatedParams {
        required {
            /// The URI; it may be a part of the resource that was subscribed to.
            uri: String = "uri",
        }
    }
}

impl Notification for ResourceUpdatedParams {
    const METHOD: &'static str = "notifications/resources/updated";
}
