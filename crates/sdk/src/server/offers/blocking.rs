//! Handlers that block, on threads of their own.
//!
//! A tokio runtime waits for its blocking pool when it is dropped, so one stuck handler would keep
//! the process alive. These threads are detached: nobody waits for them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;

use belay_protocol::jsonrpc::ErrorObject;
use belay_protocol::types::{CallToolResult, error_code};
use tokio::sync::oneshot;

use crate::context::Context;
use crate::driver::{BoxFuture, Presence};

/// Runs `work` on a thread. The handler counts as existing until the thread is done, whether or not
/// somebody still waits. There are only so many of these threads: one too many is refused, so that
/// what cannot be stopped takes nothing from the rest (**bounded**).
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
    // So that it can spawn tasks through its context.
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
            // The fence around the handler is where panics end.
            Ok(Err(panic)) => resume_unwind(panic),
            Err(_) => CallToolResult::error("the thread of a blocking tool is gone"),
        }
    })
}
