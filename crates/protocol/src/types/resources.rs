//! `resources/list`, `resources/templates/list` and `resources/read`.

use super::{
    Annotations, CacheScope, Extra, Icon, Millis, Notification, PaginatedParams, Request,
    ResourceContents, ResultType,
};

record! {
    /// Something that can be read.
    ///
    /// ```
    /// use belay_protocol::types::Resource;
    /// let readme = Resource::new("file:///README.md", "readme");
    /// let json = serde_json::to_string(&readme).unwrap();
    /// assert_eq!(json, r#"{"uri":"file:///README.md","name":"readme"}"#);
    /// ```
    pub struct Resource {
        required {
            /// Where it is.
            uri: String = "uri",
            /// Its name, for programs.
            name: String = "name",
        }
        optional {
            /// Its name, for people.
            title: String = "title",
            /// What is in it, for the model.
            description: String = "description",
            /// Its type.
            mime_type: String = "mimeType",
            /// For whom, and how much it matters.
            annotations: Annotations = "annotations",
            /// How many bytes it has.
            size: u64 = "size",
            /// What it looks like.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// Many things that can be read, by one pattern.
    pub struct ResourceTemplate {
        required {
            /// The pattern of their URIs, after RFC 6570: `file:///{path}`.
            uri_template: String = "uriTemplate",
            /// Its name, for programs.
            name: String = "name",
        }
        optional {
            /// Its name, for people.
            title: String = "title",
            /// What is in them, for the model.
            description: String = "description",
            /// Their type, if all have the same.
            mime_type: String = "mimeType",
            /// For whom, and how much they matter.
            annotations: Annotations = "annotations",
            /// What they look like.
            icons: Vec<Icon> = "icons",
        }
    }
}

record! {
    /// One page of resources.
    pub struct ListResourcesResult {
        required {
            /// The resources.
            resources: Vec<Resource> = "resources",
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
    /// One page of templates.
    pub struct ListResourceTemplatesResult {
        required {
            /// The templates.
            resource_templates: Vec<ResourceTemplate> = "resourceTemplates",
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
    /// Which resource to read.
    pub struct ReadResourceParams {
        required {
            /// Where it is.
            uri: String = "uri",
        }
        optional {
            /// Answers to what the server asked for in the round before; modern only.
            input_responses: Extra = "inputResponses",
            /// What the server wants back with those answers; modern only.
            request_state: String = "requestState",
        }
    }
}

record! {
    /// What a resource holds. A folder may hold several things.
    pub struct ReadResourceResult {
        required {
            /// What it holds.
            contents: Vec<ResourceContents> = "contents",
        }
        optional {
            /// What kind of result it is; absent on the legacy wire.
            result_type: ResultType = "resultType",
            /// For how many milliseconds it may be kept; modern only.
            ttl_ms: Millis = "ttlMs",
            /// Who may share it; modern only.
            cache_scope: CacheScope = "cacheScope",
        }
    }
}

record! {
    /// With the error that says that there is no such resource.
    pub struct ResourceNotFoundData {
        required {
            /// Where it was looked for.
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
    /// The list of resources is not what it was.
    pub struct ResourceListChangedParams {
    }
}

impl Notification for ResourceListChangedParams {
    const METHOD: &'static str = "notifications/resources/list_changed";
}

record! {
    /// A resource is not what it was.
    pub struct ResourceUpdatedParams {
        required {
            /// Where it is; perhaps a part of what was asked for.
            uri: String = "uri",
        }
    }
}

impl Notification for ResourceUpdatedParams {
    const METHOD: &'static str = "notifications/resources/updated";
}
