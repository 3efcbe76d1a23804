//! Blocking handlers, on threads of their own.
//!
//! A tokio runtime waits for its blocking pool when it is dropped, so a single stuck handler would
//! keep the process alive. These threads are detached and never joined.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::{CallToolResult, error_code};
use tokio::sync::oneshot;

use crate::context::Context;
use crate::driver::{BoxFuture, Presence};

/// Runs `work` on a thread. The handler is counted until the thread ends, even if its result is no
/// longer awaited. The number of these threads is limited and further calls are refused, so that
/// handlers that cannot be stopped do not take the capacity of others (**bounded**).
pub(in crate::server) fn run(
    cx: Context,
    work: impl FnOnce(Context) -> CallToolResult + Send + 'static,
) -> BoxFuture<CallToolResult> {
    let (done, result) = oneshot::channel();
    let presence = Presence::of(&cx);
    if !presence.as_ref().is_some_and(|presence| presence.blocks()) {
        return Box::pin(async move {
            let problem = "overloaded: too many blocking handlers are running; send it again later";
            cx.refuse(ErrorObject::new(error_code::OVERLOADED, problem))
                .await;
            CallToolResult::error(problem)
        });
    }
    // Entered on the thread, so that `work` can spawn tasks through its context.
    let runtime = tokio::runtime::Handle::current();
    let spawned = thread::Builder::new()
        .name("belay-blocking".into())
        .spawn(move || {
            let _entered = runtime.enter();
            let worked = catch_unwind(AssertUnwindSafe(|| work(cx)));
            let _ = done.send(worked);
            drop(presence);
        });
    Box::pin(async move {
        if let Err(error) = spawned {
            return CallToolResult::error(format!("no thread for a blocking tool: {error}"));
        }
        match result.await {
            Ok(Ok(result)) => result,
            // Panics are caught by the fence around the handler.
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => CallToolResult::error("the thread of a blocking tool is gone"),
        }
    })
}
