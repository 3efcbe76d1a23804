//! 2024-11-05 to 2025-11-25: what the client said in its handshake holds for the whole connection.

use belay_protocol::types::{ClientCapabilities, Implementation, LoggingLevel, error_code};

use super::EraRules;
use crate::context::Context;

pub(super) struct Legacy;

impl EraRules for Legacy {
    fn caller_info(&self, cx: &Context) -> Option<Implementation> {
        let introduction = cx.inner.link.introduction()?;
        let info = introduction.field("clientInfo");
        // In a client the caller is the server.
        let info = info.or_else(|| introduction.field("serverInfo"));
        info?.decode().ok()
    }

    fn client_capabilities(&self, cx: &Context) -> Option<ClientCapabilities> {
        let introduction = cx.inner.link.introduction()?;
        introduction.field("capabilities")?.decode().ok()
    }

    #[cfg(feature = "server")]
    fn wants_log(&self, cx: &Context, level: LoggingLevel) -> bool {
        cx.legacy_session()
            .is_none_or(|session| level >= session.level())
    }

    #[cfg(not(feature = "server"))]
    fn wants_log(&self, _: &Context, _: LoggingLevel) -> bool {
        true
    }

    fn missing_capability(&self) -> i64 {
        error_code::INVALID_REQUEST
    }

    fn resource_not_found(&self) -> i64 {
        error_code::LEGACY_RESOURCE_NOT_FOUND
    }
}
