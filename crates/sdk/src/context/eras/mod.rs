//! What the eras do differently for a request that is being handled. A legacy client introduces itself
//! once, and the connection remembers that; a modern one says everything with each request.
//!
//! What a request says of its client, log levels and error codes fork here. Input requests fork where
//! they are made (`context/input/request.rs`, `server/input_required`), results in `Service::reply`.

mod legacy;
mod modern;

use belay_protocol::types::{ClientCapabilities, Era, Implementation, LoggingLevel};

use super::Context;

/// The differences between the eras, one method for each subject.
pub(crate) trait EraRules: Sync {
    /// The name and version that the caller states.
    fn caller_info(&self, cx: &Context) -> Option<Implementation>;

    /// The capabilities that the client declares.
    fn client_capabilities(&self, cx: &Context) -> Option<ClientCapabilities>;

    /// Whether the caller wants log messages of this level.
    fn wants_log(&self, cx: &Context, level: LoggingLevel) -> bool;

    /// The error code for a client without a capability that the request needs.
    fn missing_capability(&self) -> i64;

    /// The error code for a resource that does not exist.
    fn resource_not_found(&self) -> i64;
}

/// The rules of an era.
pub(crate) fn rules(era: Era) -> &'static dyn EraRules {
    match era {
        Era::Legacy => &legacy::Legacy,
        Era::Modern => &modern::Modern,
    }
}
