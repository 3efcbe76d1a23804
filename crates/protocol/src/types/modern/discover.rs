//! `server/discover`.

use crate::types::{CacheScope, Millis, Request, ResultType, ServerCapabilities};

record! {
    /// Nothing but `_meta`.
    pub struct DiscoverParams {
    }
}

record! {
    /// What a server speaks and can do.
    pub struct DiscoverResult {
        required {
            /// The revisions it speaks, its favourite first.
            supported_versions: Vec<String> = "supportedVersions",
            /// What it can do.
            capabilities: ServerCapabilities = "capabilities",
        }
        optional {
            /// What kind of result it is.
            result_type: ResultType = "resultType",
            /// How to make good use of it, for the model.
            instructions: String = "instructions",
            /// For how many milliseconds it may be kept.
            ttl_ms: Millis = "ttlMs",
            /// Who may share it.
            cache_scope: CacheScope = "cacheScope",
        }
    }
}

/// `server/discover`. As the probe for the era it is never cancelled; later it is a call like any
/// other.
#[derive(Clone, Copy, Debug)]
pub enum Discover {}

impl Request for Discover {
    const METHOD: &'static str = "server/discover";
    type Params = DiscoverParams;
    type Result = DiscoverResult;
}
