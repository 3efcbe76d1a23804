//! 2026-07-28: every request says in its `_meta` who sends it, and what that client can do and wants.

use belay_protocol::types::meta_key::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL};
use belay_protocol::types::{ClientCapabilities, Implementation, LoggingLevel, error_code};

use super::EraRules;
use crate::context::Context;

pub(super) struct Modern;

impl EraRules for Modern {
    fn caller_info(&self, cx: &Context) -> Option<Implementation> {
        cx.meta().get(CLIENT_INFO).ok().flatten()
    }

    fn client_capabilities(&self, cx: &Context) -> Option<ClientCapabilities> {
        cx.meta().get(CLIENT_CAPABILITIES).ok().flatten()
    }

    /// Without a level in the request, its caller wants no log messages.
    fn wants_log(&self, cx: &Context, level: LoggingLevel) -> bool {
        let wanted: Option<LoggingLevel> = cx.meta().get(LOG_LEVEL).ok().flatten();
        wanted.is_some_and(|wanted| level >= wanted)
    }

    fn missing_capability(&self) -> i64 {
        error_code::MISSING_REQUIRED_CLIENT_CAPABILITY
    }

    fn resource_not_found(&self) -> i64 {
        error_code::INVALID_PARAMS
    }
}
