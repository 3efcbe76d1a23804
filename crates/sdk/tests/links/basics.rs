//! A client and a server speak to each other.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use belay::client::Mode;
use belay::server::ServerConnection;
use belay::types::Era;
use belay::{Client, Context, Json, Server, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::Notify;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    text: String,
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

/// Counts the handlers that exist.
#[derive(Clone, Default)]
pub(crate) struct Active(Arc<AtomicUsize>);

impl Active {
    fn enter(&self) -> Inside {
        self.0.fetch_add(1, Ordering::SeqCst);
        Inside(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

struct Inside(Active);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(crate) fn server(active: &Active) -> Server {
    let active = active.clone();
    Server::new("test", "1")
        .tool(Tool::new("echo", |_: Context, echo: Echo| async move {
            echo.text
        }))
        .tool(Tool::new("fail", |_: Context, _: Nothing| async move {
            Err::<(), _>("it broke")
        }))
        .tool(Tool::new("json", |_: Context, _: Nothing| async move {
            Json([1, 2])
        }))
        .tool(Tool::new("panic", |_: Context, _: Nothing| async move {
            panic!("on purpose");
            #[allow(unreachable_code)]
            ()
        }))
        .tool(Tool::new("count", |cx: Context, _: Nothing| async move {
            for step in 1..=200 {
                cx.progress(f64::from(step), 200.0, "").await;
            }
        }))
        .tool(Tool::new("hang", move |_: Context, _: Nothing| {
            let inside = active.enter();
            async move {
                let _inside = inside;
                pending::<()>().await;
            }
        }))
}

async fn pair(mode: Mode) -> (Client, ServerConnection, Active) {
    let active = Active::default();
    let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
    let serving = server(&active).serve(server_in, server_out);
    let client = Client::builder("test", "1")
        .mode(mode)
        .connect(client_in, client_out)
        .await
        .unwrap();
    (client, serving, active)
}

const MODES: [Mode; 2] = [Mode::Auto, Mode::Legacy];

/// Waits until something is so, without sleeping for real.
async fn until(what: impl Fn() -> bool) {
    for _ in 0..10_000 {
        if what() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("it never came to be");
}

#[tokio::test]
async fn tools_are_listed_and_called_in_both_eras() {
    for mode in MODES {
        let (client, _serving, _) = pair(mode).await;
        let expected = if mode == Mode::Auto {
            Era::Modern
        } else {
            Era::Legacy
        };
        assert_eq!(client.era(), expected);
        let tools = client.list_tools().await.unwrap().tools;
        assert_eq!(tools.len(), 6);
        let echo = tools.iter().find(|tool| tool.name == "echo").unwrap();
        assert_eq!(echo.input_schema["required"], json!(["text"]));
        let result = client
            .call_tool("echo", json!({ "text": "hi" }))
            .await
            .unwrap();
        assert_eq!(result.content[0].as_text(), Some("hi"));
        let result = client.call_tool("json", json!({})).await.unwrap();
        // On the legacy wire structured content is an object, or is not there.
        let structured = (mode != Mode::Legacy).then(|| json!([1, 2]));
        assert_eq!(result.structured_content, structured);
        assert_eq!(result.content[0].as_text(), Some("[1,2]"));
    }
}

#[tokio::test]
async fn a_tool_that_failed_is_a_result_and_a_request_that_failed_is_an_error() {
    let (client, _serving, _) = pair(Mode::Auto).await;
    let failed = client.call_tool("fail", json!({})).await.unwrap();
    assert_eq!(failed.is_error, Some(true));
    assert_eq!(failed.content[0].as_text(), Some("it broke"));
    for (arguments, named) in [(json!({}), "text"), (json!({ "text": 7 }), "`text`")] {
        let wrong = client.call_tool("echo", arguments).await.unwrap();
        assert_eq!(wrong.is_error, Some(true));
        assert!(
            wrong.content[0].as_text().unwrap().contains(named),
            "{wrong:?}"
        );
    }
    let unknown = client.call_tool("nothing", json!({})).await.unwrap_err();
    assert_eq!(unknown.refusal().unwrap().code, -32602);
    let unknown: Result<serde_json::Value, _> = client.request_raw("no/such", &()).await;
    assert_eq!(unknown.unwrap_err().refusal().unwrap().code, -32601);
}

#[tokio::test]
async fn a_panicking_handler_ends_its_request_and_nothing_else() {
    let (client, _serving, _) = pair(Mode::Auto).await;
    let error = client.call_tool("panic", json!({})).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32603);
    assert_eq!(error.refusal().unwrap().message, "internal error");
    assert!(
        client
            .call_tool("echo", json!({ "text": "hi" }))
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn progress_comes_in_order_and_before_the_answer() {
    for mode in MODES {
        let (client, _serving, _) = pair(mode).await;
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let told = seen.clone();
        client
            .call_tool("count", json!({}))
            .on_progress(move |progress| told.lock().unwrap().push(progress.progress.0))
            .await
            .unwrap();
        let expected: Vec<f64> = (1..=200).map(f64::from).collect();
        assert_eq!(*seen.lock().unwrap(), expected);
    }
}

#[tokio::test]
async fn whatever_drops_a_call_stops_its_handler() {
    for mode in MODES {
        let (client, serving, active) = pair(mode).await;
        let hang = || client.call_tool("hang", json!({}));

        // `tokio::time::timeout`
        let call = hang().start();
        until(|| active.count() == 1).await;
        assert!(
            tokio::time::timeout(Duration::from_millis(1), call)
                .await
                .is_err()
        );
        until(|| active.count() == 0).await;

        // `select!`
        tokio::select! {
            _ = hang().into_future() => panic!("it hangs"),
            () = until(|| active.count() == 1) => {}
        }
        until(|| active.count() == 0).await;

        // a task that is aborted
        let task = tokio::spawn(hang().into_future());
        until(|| active.count() == 1).await;
        task.abort();
        until(|| active.count() == 0).await;

        // the canceller
        let call = hang();
        let canceller = call.canceller();
        let call = call.start();
        until(|| active.count() == 1).await;
        canceller.cancel_because("no longer needed");
        let error = call.await.unwrap_err();
        assert!(error.is_cancelled() && !error.is_lost());
        assert_eq!(
            error.to_string(),
            "cancelled by the caller: no longer needed"
        );
        until(|| active.count() == 0).await;

        // a deadline
        let error = hang().timeout(Duration::from_millis(20)).await.unwrap_err();
        assert!(error.is_timeout());
        until(|| active.count() == 0).await;

        until(|| serving.handlers() == 0).await;
        let ledger = serving.ledger();
        assert_eq!(ledger.requests.ended_as(belay::outcome::End::Cancelled), 5);
        assert_eq!(ledger.stray_cancels, 0);
    }
}

#[tokio::test]
async fn a_call_that_was_cancelled_before_it_started_is_never_sent() {
    let (client, serving, _) = pair(Mode::Auto).await;
    let call = client.call_tool("hang", json!({}));
    call.canceller().cancel();
    let error = call.await.unwrap_err();
    assert!(error.is_cancelled() && error.safe_to_retry());
    client
        .call_tool("echo", json!({ "text": "hi" }))
        .await
        .unwrap();
    assert_eq!(serving.ledger().requests.started(), 2, "discover and echo");
}

#[tokio::test]
async fn the_death_of_a_server_is_lost_and_not_cancelled() {
    for mode in MODES {
        let (client, serving, active) = pair(mode).await;
        let calls: Vec<_> = (0..20)
            .map(|_| client.call_tool("hang", json!({})).start())
            .collect();
        until(|| active.count() == 20).await;
        drop(serving);
        for call in calls {
            let error = call.await.unwrap_err();
            assert!(error.is_lost() && !error.is_cancelled(), "{error:?}");
        }
        until(|| active.count() == 0).await;
        client.closed().await;
        let error = client.list_tools().await.unwrap_err();
        assert!(error.is_lost() && error.safe_to_retry());
    }
}

#[tokio::test]
async fn the_end_of_a_client_stops_its_handlers() {
    for mode in MODES {
        let (client, serving, active) = pair(mode).await;
        let call = client.call_tool("hang", json!({})).start();
        until(|| active.count() == 1).await;
        drop(client);
        drop(call);
        serving.await;
        assert_eq!(active.count(), 0);
    }
}

#[test]
fn a_call_whose_runtime_is_gone_is_lost_and_does_not_hang() {
    let runtime = || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
    };
    let driving = runtime();
    let (client, _serving, _) = driving.block_on(pair(Mode::Auto));
    let call = client.call_tool("hang", json!({})).start();
    drop(driving);
    let waiting = runtime();
    let error = waiting.block_on(call).unwrap_err();
    assert!(error.is_lost(), "{error:?}");
    let error = waiting
        .block_on(client.list_tools().into_future())
        .unwrap_err();
    assert!(
        error.is_lost() && error.safe_to_retry(),
        "closed-is-known: {error:?}"
    );
    waiting.block_on(client.closed());
}

/// A server in the same process cleans up before its client's `close` returns, as a child process does.
#[tokio::test(start_paused = true)]
async fn orderly_close_an_in_process_server_has_cleaned_up() {
    let cleaned = Arc::new(AtomicBool::new(false));
    let begun = Arc::new(Notify::new());
    let (is_cleaned, has_begun) = (cleaned.clone(), begun.clone());
    let hold = move |cx: Context, (): ()| {
        let (cleaned, begun) = (is_cleaned.clone(), has_begun.clone());
        async move {
            begun.notify_one();
            cx.stopped().await;
            tokio::time::sleep(Duration::from_millis(500)).await;
            cleaned.store(true, Ordering::SeqCst);
        }
    };
    let server = Server::new("example", "1").tool(Tool::new("hold", hold));
    let stats = server.stats();
    let client = Client::in_process(server).await.unwrap();
    let call = client.call_tool("hold", ()).start();
    begun.notified().await;
    client.close().await;
    assert!(cleaned.load(Ordering::SeqCst), "the handler had its grace");
    assert_eq!(stats.handlers(), 0);
    assert!(call.await.unwrap_err().is_cancelled());
}
