//! Code that is not ours: callbacks, destructors, handlers that hold on. It may panic, block and
//! come back at the worst time; nobody else notices.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use belay::client::Mode;
use belay::server::Tools;
use belay::{Client, Context, Server, Tool};
use belay_testkit::{Peer, pair, until};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

fn steps() -> Tool {
    Tool::new("steps", |cx: Context, (): ()| async move {
        cx.log(belay::types::LoggingLevel::Info, "hello").await;
        for step in 1..=3 {
            cx.progress(f64::from(step), None, "").await;
        }
        "done"
    })
}

#[tokio::test]
async fn panic_fence_a_callback_that_panics_harms_no_call() {
    let server = Server::new("test", "1").tool(steps());
    let ((server_in, server_out), (client_in, client_out)) = belay::transport::memory();
    let _serving = server.serve(server_in, server_out);
    let client = Client::builder("test", "1")
        .mode(Mode::Legacy)
        .on_notification(|_| panic!("on purpose"))
        .on_request("roots/list", |_, _| async { panic!("on purpose") })
        .connect(client_in, client_out)
        .await
        .unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let count = told.clone();
    let call = client.call_tool("steps", json!({})).on_progress(move |_| {
        count.fetch_add(1, Ordering::SeqCst);
        panic!("on purpose");
    });
    assert_eq!(call.await.unwrap().content[0].as_text(), Some("done"));
    assert_eq!(told.load(Ordering::SeqCst), 1, "it is not called again");
    assert!(client.call_tool("steps", json!({})).await.is_ok());
}

/// A callback goes with its call, also if nobody has looked at the end of that yet.
#[tokio::test]
async fn a_callback_is_gone_when_its_call_has_ended() {
    let server = Server::new("test", "1").tool(steps());
    let (client, _serving) = pair(&server, Mode::Legacy).await.unwrap();
    let (told, mut steps) = tokio::sync::mpsc::unbounded_channel();
    let call = client
        .call_tool("steps", json!({}))
        .on_progress(move |progress| {
            let _ = told.send(progress);
        });
    let call = call.start();
    let mut count = 0;
    while steps.recv().await.is_some() {
        count += 1;
    }
    assert_eq!(count, 3);
    assert!(call.await.is_ok());
}

/// What a callback holds may panic when it is dropped: whoever else waits is told nevertheless.
#[tokio::test]
async fn panic_fence_what_a_callback_holds_harms_no_other_call() {
    struct PanicsWhenDropped;
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            panic!("on purpose");
        }
    }
    let server = Server::new("test", "1").tool(steps());
    let (client, _serving) = pair(&server, Mode::Legacy).await.unwrap();
    let calls = (0..20).map(|number| {
        let call = client.call_tool("steps", json!({}));
        let held = (number % 2 == 0).then(|| PanicsWhenDropped);
        let call = call.on_progress(move |_| _ = &held);
        let started = call.start();
        // Some of them are given up, and their callbacks go with the driver's next turn.
        (number % 4 != 0).then_some(started)
    });
    let calls: Vec<_> = calls.collect();
    for call in calls.into_iter().flatten() {
        assert!(call.await.is_ok());
    }
    assert!(client.call_tool("steps", json!({})).await.is_ok());
}

#[tokio::test]
async fn panic_fence_blocking_handlers_and_destructors() {
    struct PanicsWhenDropped(Arc<AtomicUsize>);
    impl Drop for PanicsWhenDropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
            panic!("on purpose");
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let count = dropped.clone();
    let blocking = Tool::blocking("blocking", |_: Context, _: Nothing| -> String {
        panic!("on purpose")
    });
    let hang = Tool::new("hang", move |_: Context, _: Nothing| {
        let held = PanicsWhenDropped(count.clone());
        async move {
            let _held = held;
            pending::<()>().await;
        }
    });
    let server = Server::new("test", "1")
        .tool(blocking)
        .tool(hang)
        .tool(steps());
    let (client, serving) = pair(&server, Mode::Auto).await.unwrap();
    let error = client.call_tool("blocking", json!({})).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32603);
    let call = client.call_tool("hang", json!({})).start();
    client.call_tool("steps", json!({})).await.unwrap();
    drop(call);
    until("it is dropped", || dropped.load(Ordering::SeqCst) == 1).await;
    until("it is not counted", || serving.handlers() == 0).await;
    assert!(client.call_tool("steps", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_deadline_that_is_never_reached_is_no_deadline() {
    let server = Server::new("test", "1").tool(steps().timeout(Duration::MAX));
    let (client, _serving) = pair(&server, Mode::Auto).await.unwrap();
    let call = client
        .call_tool("steps", json!({}))
        .idle_timeout(Duration::MAX)
        .timeout(Duration::MAX);
    assert!(call.await.is_ok());
    assert!(client.list_tools().no_timeout().await.is_ok());
}

#[test]
fn a_call_whose_driver_never_ran_is_told_so() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().build().unwrap()
    };
    let driving = runtime();
    let server = Server::new("test", "1").tool(steps());
    let (client, _serving) = driving.block_on(pair(&server, Mode::Auto)).unwrap();
    // Nothing runs between these lines: the call is withdrawn before it was written.
    let call = client.call_tool("steps", json!({})).start();
    drop(client);
    drop(driving);
    let waiting = runtime();
    let waited =
        waiting.block_on(async { tokio::time::timeout(Duration::from_secs(10), call).await });
    let error = waited.expect("it must not hang").unwrap_err();
    assert!(error.safe_to_retry(), "never sent: {error:?}");
}

#[tokio::test]
async fn order_progress_that_had_to_wait_for_room_is_not_lost() {
    let count = Tool::new("count", |cx: Context, _: Nothing| async move {
        for step in 1..=3000 {
            cx.progress(f64::from(step), None, "").await;
        }
    });
    let server = Server::new("test", "1")
        .tool(count)
        .limits(|limits| limits.queued_bytes = 1000);
    let (mut peer, (reader, writer)) = Peer::pipe();
    let _serving = server.serve(reader, writer);
    peer.initialize().await;
    // Nobody reads, so the pipe and the queue fill, and the handler waits.
    let call = json!({ "name": "count", "arguments": {}, "_meta": { "progressToken": 1 } });
    peer.ask(1, "tools/call", call).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    for step in 1..=3000 {
        let progress = peer.expect("notifications/progress").await;
        assert_eq!(progress["params"]["progress"], step);
    }
    peer.expect_answer(1).await;
}

#[tokio::test]
async fn stop_is_real_for_a_handler_that_waits_for_room() {
    let cleaned = Arc::new(AtomicUsize::new(0));
    let count = cleaned.clone();
    let chatty = Tool::new("chatty", move |cx: Context, _: Nothing| {
        let count = count.clone();
        async move {
            let token = cx.token();
            for step in 1.. {
                cx.progress(f64::from(step), None, "").await;
                if token.is_cancelled() {
                    count.fetch_add(1, Ordering::SeqCst);
                    return;
                }
            }
        }
    });
    let server = Server::new("test", "1")
        .tool(chatty)
        .limits(|limits| limits.queued_bytes = 1000);
    let (mut peer, (reader, writer)) = Peer::pipe();
    let serving = server.serve(reader, writer);
    peer.initialize().await;
    let call = json!({ "name": "chatty", "arguments": {}, "_meta": { "progressToken": 1 } });
    peer.ask(1, "tools/call", call).await;
    until("it runs", || serving.handlers() == 1).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    peer.tell("notifications/cancelled", json!({ "requestId": 1 }))
        .await;
    until("it is gone", || serving.handlers() == 0).await;
    assert_eq!(cleaned.load(Ordering::SeqCst), 1, "woken, not dropped");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_says_the_same_again_and_again_starves_nobody() {
    let stubborn = Tool::new("stubborn", |cx: Context, _: Nothing| async move {
        let _token = cx.token();
        while cx.stop_cause().is_none() {
            cx.progress(1.0, None, "").await;
        }
    });
    let server = Server::new("test", "1").tool(stubborn).tool(steps());
    let (client, serving) = pair(&server, Mode::Auto).await.unwrap();
    let call = client.call_tool("stubborn", json!({})).start();
    client.call_tool("steps", json!({})).await.unwrap();
    drop(call);
    until("it has heard", || serving.handlers() == 0).await;
}

#[tokio::test]
async fn a_blocking_tool_counts_until_its_thread_is_done() {
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let block = Tool::blocking("block", move |_: Context, _: Nothing| {
        let _ = wait.lock().unwrap().recv();
    })
    .concurrency(1);
    let server = Server::new("test", "1").tool(block).tool(steps());
    let (client, serving) = pair(&server, Mode::Auto).await.unwrap();
    let first = client.call_tool("block", json!({})).start();
    client.call_tool("steps", json!({})).await.unwrap();
    drop(first);
    client.call_tool("steps", json!({})).await.unwrap();
    let error = client.call_tool("block", json!({})).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -31001, "it is still inside");
    go.send(()).unwrap();
    until("it is outside", || serving.handlers() == 0).await;
    go.send(()).unwrap();
    assert!(client.call_tool("block", json!({})).await.is_ok());
}

#[tokio::test]
async fn a_blocking_tool_can_spawn_and_tell_progress() {
    let spawned = Arc::new(AtomicUsize::new(0));
    let count = spawned.clone();
    let tool = Tool::blocking("blocking", move |cx: Context, _: Nothing| {
        let count = count.clone();
        let (done, ran) = std::sync::mpsc::channel();
        cx.spawn(async move {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = done.send(());
        });
        cx.progress_now(1.0, 1.0, "half way");
        let _ = ran.recv();
    });
    let server = Server::new("test", "1").tool(tool);
    let (client, _serving) = pair(&server, Mode::Auto).await.unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let heard = told.clone();
    let call = client
        .call_tool("blocking", json!({}))
        .on_progress(move |_| {
            heard.fetch_add(1, Ordering::SeqCst);
        });
    call.await.unwrap();
    assert_eq!(spawned.load(Ordering::SeqCst), 1);
    assert_eq!(told.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_tool_may_look_at_the_tools_when_it_is_dropped() {
    struct Looks(Tools);
    impl Drop for Looks {
        fn drop(&mut self) {
            self.0.names();
        }
    }
    let server = Server::new("test", "1");
    let tools = server.tools();
    let looks = Looks(tools.clone());
    tools.add(Tool::new("looks", move |_: Context, _: Nothing| {
        let _held = &looks;
        async {}
    }));
    tools.add(steps());
    assert!(tools.remove("looks"));
    assert_eq!(tools.names(), ["steps"]);
}

#[tokio::test]
async fn arguments_that_are_none_are_never_sent() {
    let server = Server::new("test", "1").tool(steps());
    let (client, serving) = pair(&server, Mode::Auto).await.unwrap();
    let before = serving.ledger().requests.started();
    let error = client.call_tool("steps", [1, 2]).await.unwrap_err();
    assert!(error.safe_to_retry(), "{error:?}");
    assert!(format!("{error:?}").contains("are an object"), "{error:?}");
    assert_eq!(serving.ledger().requests.started(), before);
}

#[tokio::test]
async fn tools_are_listed_page_by_page() {
    let (mut peer, (reader, writer)) = Peer::pipe();
    let client = tokio::spawn(Client::connect(reader, writer));
    peer.open_modern().await;
    let client = client.await.unwrap().unwrap();
    let listing = tokio::spawn(async move { client.list_all_tools().await });
    let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
    let asked = peer.expect("tools/list").await;
    let page = json!({ "tools": [tool("a"), tool("b")], "nextCursor": "more" });
    peer.answer(&asked, page).await;
    let asked = peer.expect("tools/list").await;
    assert_eq!(asked["params"]["cursor"], "more");
    peer.answer(&asked, json!({ "tools": [tool("c")] })).await;
    let tools = listing.await.unwrap().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}
