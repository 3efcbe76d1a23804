//! `server/discover`.

use crate::types::{CacheScope, Millis, Request, ResultType, ServerCapabilities};

record! {
    /// The parameters, which have no fields except `_meta`.
    pub struct DiscoverParams {
    }
}

record! {
    /// The revisions and capabilities of a server.
    pub struct DiscoverResult {
        required {
            /// The revisions that the server supports, in order of preference.
            supported_versions: Vec<String> = "supportedVersions",
            /// The capabilities of the server.
            capabilities: ServerCapabilities = "capabilities",
        }
        optional {
            /// The type of the result.
            result_type: ResultType = "resultType",
            /// Instructions for the model on how to use the server.
            instructions: String = "instructions",
            /// For how many milliseconds the result may be cached.
            ttl_ms: Millis = "ttlMs",
            /// Who may share the cached result.
            cache_scope: CacheScope = "cacheScope",
        }
    }
}

/// `server/discover`. As the era probe it is never cancelled; later it is an ordinary call.
#[derive(Clone, Copy, Debug)]
pub enum Discover {}

impl Request for Discover {
    const METHOD: &'static str = "server/discover";
    type Params = DiscoverParams;
    type Result = DiscoverResult;
}
