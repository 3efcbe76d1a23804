//! The client, against a server that the test plays, and against our own.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use belay::client::Cache;
use belay::client::Mode;
use belay::jsonrpc::RawJson;
use belay::layers::{CallRequest, ClientLayer, LayerFuture, NextCall};
use belay::outcome::{End, LossKind, Sent};
use belay::transport::Direction;
use belay::types::{Era, Role};
use belay::{Client, Context, Error, Tool};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::Running;
use super::played::{Asked, EVENTS, MODES, Played, Reply, greeting, kind, lost, response, result};

#[tokio::test]
async fn no_hang_every_odd_answer_ends_the_call_at_once() {
    type Case = (&'static str, fn() -> Reply, LossKind, &'static str);
    let cases: Vec<Case> = vec![
        (
            "202 to a request",
            || Reply::Bytes("HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n".into()),
            LossKind::HttpStatus(202),
            "nothing in it",
        ),
        (
            "an empty body",
            || Reply::Bytes(response("200 OK", "application/json", "")),
            LossKind::HttpStatus(200),
            "nothing in it",
        ),
        (
            "a page",
            || Reply::Bytes(response("200 OK", "text/html", "<h1>Log in</h1>")),
            LossKind::HttpStatus(200),
            "text/html: <h1>Log in</h1>",
        ),
        (
            "a page of a gateway",
            || {
                Reply::Bytes(response(
                    "502 Bad Gateway",
                    "text/html",
                    "<h1>no upstream</h1>",
                ))
            },
            LossKind::HttpStatus(502),
            "no upstream",
        ),
        (
            "no content type",
            || Reply::Bytes("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".into()),
            LossKind::HttpStatus(200),
            "without a content type",
        ),
        (
            "a redirect",
            || {
                Reply::Bytes("HTTP/1.1 307 No\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n".into())
            },
            LossKind::HttpStatus(307),
            "http://evil.example/",
        ),
        (
            "nobody may",
            || {
                Reply::Bytes(response(
                    "401 No",
                    "application/json",
                    r#"{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"no"}}"#,
                ))
            },
            LossKind::HttpStatus(401),
            "",
        ),
        (
            "an error that is none of JSON-RPC's",
            || Reply::Bytes(response("400 No", "application/json", r#"{"error":"bad"}"#)),
            LossKind::HttpStatus(400),
            r#"{"error":"bad"}"#,
        ),
        (
            "a stream that ends without the answer",
            || {
                Reply::AndClose(format!(
                    "{EVENTS}data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}}\n\n"
                ))
            },
            LossKind::NoAnswer,
            "",
        ),
        (
            "an answer to something else",
            || {
                Reply::Bytes(response(
                    "200 OK",
                    "application/json",
                    r#"{"jsonrpc":"2.0","id":999,"result":{}}"#,
                ))
            },
            LossKind::NoAnswer,
            "",
        ),
        (
            "a message that is no answer",
            || {
                Reply::Bytes(response(
                    "200 OK",
                    "application/json",
                    r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
                ))
            },
            LossKind::NoAnswer,
            "",
        ),
        (
            "a body that breaks off",
            || {
                Reply::AndClose("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{".into())
            },
            LossKind::Io,
            "",
        ),
        (
            "a connection that breaks off before the head",
            || Reply::AndClose(String::new()),
            LossKind::Io,
            "",
        ),
    ];
    for (what, reply, expected, shows) in cases {
        for mode in MODES {
            let (error, after) = lost(mode, reply).await;
            assert!(error.is_lost(), "{what}: {error:?}");
            assert_eq!(kind(&error), expected, "{what}");
            assert!(format!("{error:?}").contains(shows), "{what}: {error:?}");
            assert!(after < Duration::from_secs(5), "{what}: {after:?}");
            assert_ne!(error.sent(), Some(Sent::Never), "{what}");
        }
    }
}

#[tokio::test]
async fn an_odd_answer_can_be_asked_what_it_was() {
    let page = || {
        Reply::Bytes(response(
            "503 No\r\nRetry-After: 7",
            "text/html; charset=utf-8",
            &"x".repeat(5000),
        ))
    };
    let (error, _) = lost(Mode::Modern, page).await;
    let answer = error.http_answer().expect("an HTTP response");
    assert_eq!(answer.status, 503);
    assert_eq!(answer.retry_after.as_deref(), Some("7"));
    assert_eq!(
        answer.content_type.as_deref(),
        Some("text/html; charset=utf-8")
    );
    assert_eq!(answer.body.len(), 200, "the start of the body");
}

/// The text of an error goes to terminals and logs, and this is the server's.
#[tokio::test]
async fn an_odd_answer_is_printed_once_and_without_control_characters() {
    let page = || {
        let body = "no\u{1b}[2Jtrace\r\nlevel=info all is well";
        Reply::Bytes(response("503 No", "text/plain", body))
    };
    let (error, _) = lost(Mode::Modern, page).await;
    let text = error.to_string();
    assert_eq!(text.matches("503").count(), 1, "{text}");
    assert!(!text.contains(char::is_control), "{text:?}");
    assert!(text.contains("trace\\r\\nlevel"), "{text}");
    assert!(!error.summary().contains("503"), "{}", error.summary());
    assert!(std::error::Error::source(&error).is_none(), "all is said");
}

#[tokio::test]
async fn a_refusal_is_a_refusal_whatever_its_status() {
    for status in [
        "200 OK",
        "400 Bad Request",
        "404 Not Found",
        "429 No",
        "503 No",
    ] {
        let server = Played::new(move |asked| {
            greeting(asked).unwrap_or_else(|| {
                let error = json!({ "code": -32601, "message": "no such thing" });
                let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
                Reply::Bytes(response(status, "application/json", &body.to_string()))
            })
        })
        .await;
        let client = server.client(Mode::Modern).await;
        let error = client.list_tools().await.unwrap_err();
        assert_eq!(error.refusal().unwrap().code, -32601, "{status}");
    }
}

#[tokio::test]
async fn a_half_open_connection_ends_with_the_deadline() {
    for mode in MODES {
        let server = Played::new(|asked| greeting(asked).unwrap_or(Reply::Nothing)).await;
        let client = server.client(mode).await;
        let call = client.list_tools().timeout(Duration::from_millis(200));
        let error = call.await.unwrap_err();
        assert!(error.is_timeout(), "{error:?}");
        assert_eq!(error.sent(), Some(Sent::Maybe));
    }
}

/// Whoever answers a server's question may ask the server something first.
#[tokio::test]
async fn a_guest_can_use_the_client_that_it_belongs_to() {
    use belay::types::{CreateMessageParams, CreateMessageResult, SamplingMessage};

    let ask = Tool::new("ask", |cx: Context, (): ()| async move {
        let question = SamplingMessage::user("what does it say?");
        let answer = cx
            .sample(CreateMessageParams::new(vec![question], 10_u64))
            .await?;
        Ok::<_, belay::input::InputError>(answer.content.as_text().unwrap_or_default().to_owned())
    });
    for sse in [false, true] {
        let server = Running::of(|server| server.tool(ask.clone()), |it| it).await;
        let itself: Arc<OnceLock<Client>> = Arc::default();
        let known = itself.clone();
        let builder = Client::builder("test", "1")
            .mode(Mode::Legacy)
            .on_sample(move |_| {
                let client = known.get().expect("it is connected").clone();
                async move {
                    let echo = client.call_tool("echo", json!({ "text": "hi" })).await;
                    let echo = echo.expect("an answer");
                    let text = echo.content[0].as_text().unwrap_or_default();
                    Ok(CreateMessageResult::new(Role::Assistant, text, "none"))
                }
            });
        let url = match sse {
            false => server.url(),
            true => server.url().replace("/mcp", "/sse"),
        };
        let client = builder.http(&url).await.unwrap();
        itself.set(client.clone()).unwrap();
        let answer = client
            .call_tool("ask", json!({}))
            .timeout(Duration::from_secs(20));
        assert_eq!(answer.await.unwrap().content[0].as_text(), Some("hi"));
    }
}

/// The driver sleeps until the first deadline that it knows of. One that is earlier wakes it, whether
/// the calls before it are over or not.
#[tokio::test]
async fn deadline_covers_all_an_earlier_deadline_is_kept_beside_a_later_one() {
    for mode in MODES {
        let server = Played::new(|asked| greeting(asked).unwrap_or(Reply::Nothing)).await;
        let client = server.client(mode).await;
        let later = client
            .list_prompts()
            .timeout(Duration::from_secs(60))
            .start();
        let begun = Instant::now();
        for _ in 0..2 {
            let earlier = client.list_tools().timeout(Duration::from_millis(200));
            assert!(earlier.await.unwrap_err().is_timeout());
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{mode:?}");
        drop(later);
        let last = client.list_tools().timeout(Duration::from_millis(200));
        assert!(last.await.unwrap_err().is_timeout());
        assert!(begun.elapsed() < Duration::from_secs(10), "{mode:?}");
    }
}

#[tokio::test]
async fn typed_end_nobody_there_is_lost_and_never_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let error = Client::http(&format!("http://{address}/mcp"))
        .await
        .unwrap_err();
    assert!(error.is_lost() && error.safe_to_retry(), "{error:?}");
    assert!(format!("{error:?}").contains("refused"), "{error:?}");
}

/// Only what says that a server does not know what it was asked says something about its era.
#[tokio::test]
async fn eras_are_found_out() {
    let error = |asked: &Asked, code: i64| {
        let error = json!({ "code": code, "message": "no" });
        // Some servers make an id up.
        let id = match code {
            0 => json!("server-error"),
            _ => asked.body["id"].clone(),
        };
        json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()
    };
    type Case = (&'static str, &'static str, Option<i64>, Option<Era>);
    let cases: &[Case] = &[
        ("400 Bad Request", "text/plain", None, Some(Era::Legacy)),
        ("404 Not Found", "text/html", None, Some(Era::Legacy)),
        ("405 No", "text/html", None, Some(Era::Legacy)),
        (
            "400 Bad Request",
            "application/json",
            Some(-32000),
            Some(Era::Legacy),
        ),
        (
            "200 OK",
            "application/json",
            Some(-32601),
            Some(Era::Legacy),
        ),
        (
            "400 Bad Request",
            "application/json",
            Some(0),
            Some(Era::Legacy),
        ),
        ("400 Bad Request", "application/json", Some(-32020), None),
        ("401 No", "text/html", None, None),
        ("403 No", "application/json", Some(-32000), None),
        ("500 No", "text/html", None, None),
        ("503 No", "application/json", Some(-32000), None),
    ];
    for (status, content_type, code, era) in cases.iter().copied() {
        let server = Played::new(move |asked| match asked.asks("server/discover") {
            true => {
                let body = code.map(|code| error(asked, code)).unwrap_or("x".into());
                Reply::Bytes(response(status, content_type, &body))
            }
            false => greeting(asked).unwrap(),
        })
        .await;
        let connected = Client::http(&server.url()).await;
        match era {
            Some(era) => assert_eq!(connected.unwrap().era(), era, "{status} {code:?}"),
            None => {
                assert!(connected.is_err(), "{status} {code:?}");
                assert_eq!(server.asked().len(), 1, "{status}: nothing else was tried");
            }
        }
    }
}

#[tokio::test]
async fn what_was_learnt_is_not_asked_again() {
    let server = Played::new(|asked| match asked.asks("server/discover") {
        true => Reply::Bytes(response("404 Not Found", "text/html", "x")),
        false => greeting(asked).unwrap(),
    })
    .await;
    for _ in 0..3 {
        let client = Client::http(&server.url()).await.unwrap();
        assert_eq!(client.era(), Era::Legacy);
        client.close().await;
    }
    let asked = server.asked();
    let probes = asked.iter().filter(|asked| asked.asks("server/discover"));
    assert_eq!(probes.count(), 1);
}

#[tokio::test]
async fn headers_say_what_the_body_says() {
    let server = Running::start().await;
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = seen.clone();
    let client = Client::builder("test", "1")
        .mode(Mode::Modern)
        .header("X-Tenant", "seven")
        .tap(move |way, frame| {
            if way == Direction::Out {
                told.lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(frame).into_owned());
            }
        })
        .http(&server.url())
        .await
        .unwrap();
    // The server compares; what does not match is refused with 400.
    let error = client.call_tool("größe", json!({})).await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -32602, "an unknown tool");
    assert!(client.list_tools().await.is_ok());
    assert_eq!(seen.lock().unwrap().len(), 3);

    let played = Played::new(|asked| greeting(asked).unwrap_or(Reply::Nothing)).await;
    let client = Client::builder("test", "1")
        .mode(Mode::Modern)
        .header("X-Tenant", "seven")
        .http(&played.url())
        .await
        .unwrap();
    let call = client.call_tool("größe", json!({})).start();
    belay_testkit::until("it is asked", || played.asked().len() == 2).await;
    drop(call);
    let asked = played.asked().pop().unwrap();
    assert_eq!(asked.header("x-tenant"), Some("seven"));
    assert_eq!(asked.header("mcp-method"), Some("tools/call"));
    assert_eq!(asked.header("mcp-name"), Some("=?base64?Z3LDtsOfZQ==?="));
    assert_eq!(asked.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(asked.header("mcp-session-id"), None);
}

#[tokio::test]
async fn legacy_requests_name_their_session_and_it_is_ended() {
    let server = Played::new(|asked| {
        greeting(asked).unwrap_or_else(|| Reply::Bytes(result(asked, json!({ "tools": [] }))))
    })
    .await;
    let client = server.client(Mode::Legacy).await;
    client.list_tools().await.unwrap();
    client.close().await;
    let asked = server.asked();
    for request in asked.iter().skip(1) {
        assert_eq!(request.header("mcp-session-id"), Some("s1"), "{request:?}");
        assert_eq!(request.header("mcp-protocol-version"), Some("2025-11-25"));
    }
    assert!(asked[0].header("mcp-session-id").is_none());
    assert_eq!(asked.last().unwrap().method, "DELETE");
}

#[tokio::test]
async fn a_session_that_was_forgotten_is_begun_again_and_calls_in_flight_are_lost() {
    let server = Running::start().await;
    let builder = Client::builder("test", "1").mode(Mode::Legacy);
    let client = builder.http(&server.url()).await.unwrap();
    let hang = client.call_tool("hang", json!({})).start();
    server.hanging.comes_to(1).await;
    // Somebody else ends it: the server forgets what it had.
    server.listening.service().forget_sessions();
    let error = hang.await.unwrap_err();
    assert!(error.is_lost() && !error.is_cancelled(), "{error:?}");
    server.hanging.comes_to(0).await;
    // Whoever calls next may be the one who finds out.
    let mut answers = 0;
    for _ in 0..3 {
        match client.list_tools().await {
            Ok(_) => answers += 1,
            Err(error) => assert!(error.is_lost(), "{error:?}"),
        }
    }
    assert!(answers >= 2, "a new session");
    assert_eq!(client.ledger().calls.in_flight(), 0);
}

#[tokio::test]
async fn a_broken_stream_is_asked_for_again_and_answers() {
    let server = Played::new(|asked| {
        if asked.asks("tools/list") {
            return Reply::AndClose(format!("{EVENTS}id: 5-1\ndata:\n\n"));
        }
        match asked.header("last-event-id") {
            Some("5-1") => {
                let answer = json!({ "jsonrpc": "2.0", "id": 2, "result": { "tools": [] } });
                Reply::AndClose(format!("{EVENTS}id: 5-2\ndata: {answer}\n\n"))
            }
            _ => greeting(asked).unwrap_or(Reply::Nothing),
        }
    })
    .await;
    let client = server.client(Mode::Legacy).await;
    assert!(client.list_tools().await.is_ok());
    let lists = server.asked();
    let lists = lists.iter().filter(|asked| asked.asks("tools/list"));
    assert_eq!(
        lists.count(),
        1,
        "retry-is-explicit: it was resumed, not repeated"
    );
}

#[tokio::test]
async fn a_broken_stream_waits_as_long_as_the_server_wants() {
    let server = Played::new(|asked| {
        if asked.asks("tools/list") {
            return Reply::AndClose(format!("{EVENTS}id: 5-1\nretry: 300\ndata:\n\n"));
        }
        match asked.header("last-event-id") {
            Some(_) => {
                let answer = json!({ "jsonrpc": "2.0", "id": 2, "result": { "tools": [] } });
                Reply::AndClose(format!("{EVENTS}data: {answer}\n\n"))
            }
            None => greeting(asked).unwrap_or(Reply::Nothing),
        }
    })
    .await;
    let client = server.client(Mode::Legacy).await;
    let called = Instant::now();
    assert!(client.list_tools().await.is_ok());
    assert!(called.elapsed() >= Duration::from_millis(300));
}

#[tokio::test]
async fn typed_end_a_broken_stream_is_lost_when_the_first_reconnect_is_refused() {
    let server = Played::new(|asked| match asked.asks("tools/list") {
        true => Reply::AndClose(format!("{EVENTS}id: 5-1\ndata:\n\n")),
        false if asked.header("last-event-id").is_some() => {
            Reply::Bytes(response("400 No", "text/plain", "gone"))
        }
        false => greeting(asked).unwrap_or(Reply::Nothing),
    })
    .await;
    let client = server.client(Mode::Legacy).await;
    let error = client.list_tools().await.unwrap_err();
    assert_eq!(kind(&error), LossKind::HttpStatus(400));
    let again = server.asked();
    let again = again
        .iter()
        .filter(|asked| asked.header("last-event-id").is_some());
    assert_eq!(again.count(), 1);
}

/// A server whose streams break after each event, with something new on each.
#[tokio::test(flavor = "current_thread")]
async fn bounded_nobody_is_asked_again_more_often_than_ten_times_a_second() {
    let count = AtomicUsize::new(0);
    let server = Played::new(move |asked| {
        let resumes = asked.header("last-event-id").is_some();
        match asked.asks("tools/list") || resumes {
            true => {
                let number = count.fetch_add(1, Ordering::SeqCst);
                Reply::AndClose(format!("{EVENTS}id: 5-{number}\ndata:\n\n"))
            }
            false => greeting(asked).unwrap_or(Reply::Nothing),
        }
    })
    .await;
    let client = server.client(Mode::Legacy).await;
    let call = client.list_tools().timeout(Duration::from_secs(1));
    assert!(call.await.unwrap_err().is_timeout());
    let asked = server.asked();
    let again = asked
        .iter()
        .filter(|it| it.header("last-event-id").is_some());
    let again = again.count();
    assert!((2..=11).contains(&again), "asked {again} times in a second");
}

#[tokio::test]
async fn bounded_a_list_of_too_many_items_is_an_error() {
    let server = Played::new(|asked| match asked.asks("tools/list") {
        true => {
            let tool = json!({ "name": "t", "inputSchema": {} });
            let page =
                json!({ "tools": vec![tool; 400], "nextCursor": "more", "resultType": "complete" });
            Reply::Bytes(result(asked, page))
        }
        false => greeting(asked).unwrap_or(Reply::Nothing),
    })
    .await;
    for mode in MODES {
        let client = server.client(mode).await;
        let pages = client
            .pages::<belay::types::ListTools>()
            .items_at_most(1000);
        let error = pages.all().await.unwrap_err();
        assert!(
            error.to_string().contains("more than 1000 items"),
            "{error}"
        );
        let error = client.list_all_tools().await.unwrap_err();
        assert!(
            error.to_string().contains("more than 10000 items"),
            "{error}"
        );
    }
}

/// A server that lets us come back for ever without a word does not hold a call for ever.
#[tokio::test(flavor = "current_thread")]
async fn no_hang_a_stream_that_is_resumed_in_vain_is_given_up() {
    let server = Played::new(|asked| {
        let resumes = asked.header("last-event-id").is_some();
        match asked.asks("tools/list") || resumes {
            true => Reply::AndClose(format!("{EVENTS}id: 5-1\ndata:\n\n")),
            false => greeting(asked).unwrap_or(Reply::Nothing),
        }
    })
    .await;
    let client = server.client(Mode::Legacy).await;
    let call = client.list_tools().no_timeout();
    let error = call.await.unwrap_err();
    assert!(error.is_lost(), "{error:?}");
}

#[tokio::test]
async fn announce_once_on_legacy_http_the_cancel_is_posted_after_the_request() {
    let server = Played::new(|asked| greeting(asked).unwrap_or(Reply::Nothing)).await;
    let client = server.client(Mode::Legacy).await;
    let call = client.list_tools().start();
    belay_testkit::until("it is asked", || {
        server.asked().iter().any(|asked| asked.asks("tools/list"))
    })
    .await;
    drop(call);
    belay_testkit::until("it is told", || {
        server
            .asked()
            .iter()
            .any(|asked| asked.asks("notifications/cancelled"))
    })
    .await;
    let asked = server.asked();
    let cancels: Vec<_> = asked
        .iter()
        .filter(|asked| asked.asks("notifications/cancelled"))
        .collect();
    assert_eq!(cancels.len(), 1);
    assert_eq!(cancels[0].body["params"]["requestId"], 2);
}

#[tokio::test]
async fn announce_once_on_modern_http_nothing_is_posted() {
    let server = Running::start().await;
    let builder = Client::builder("test", "1").mode(Mode::Modern);
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = told.clone();
    let client = builder
        .tap(move |way, frame| {
            if way == Direction::Out {
                log.lock()
                    .unwrap()
                    .push(String::from_utf8_lossy(frame).into_owned());
            }
        })
        .http(&server.url())
        .await
        .unwrap();
    for _ in 0..20 {
        let call = client.call_tool("hang", json!({})).start();
        server.hanging.comes_to(1).await;
        drop(call);
        server.hanging.comes_to(0).await;
    }
    client.close().await;
    let told = told.lock().unwrap();
    assert!(
        !told.iter().any(|frame| frame.contains("cancelled")),
        "{told:?}"
    );
    assert_eq!(client.ledger().calls.ended_as(End::Cancelled), 20);
}

#[tokio::test]
async fn event_streams_are_found_and_a_failed_post_loses_its_call_alone() {
    let server = Running::start().await;
    let url = format!("http://{}/sse", server.address());
    let client = Client::http(&url).await.unwrap();
    assert_eq!(client.era(), Era::Legacy);
    let text = "x".repeat(5 << 20);
    let error = client
        .call_tool("echo", json!({ "text": text }))
        .await
        .unwrap_err();
    assert_eq!(kind(&error), LossKind::HttpStatus(413), "{error:?}");
    let echo = client
        .call_tool("echo", json!({ "text": "hi" }))
        .await
        .unwrap();
    assert_eq!(echo.content[0].as_text(), Some("hi"));
    client.close().await;
}

/// A task that has done much already is held back by tokio; the calls that it starts are not.
#[tokio::test]
async fn every_call_that_is_started_has_begun() {
    let server = Running::start().await;
    let client = Client::builder("test", "1").mode(Mode::Legacy);
    let client = client.http(&server.url()).await.unwrap();
    let calls: Vec<_> = (0..1000)
        .map(|_| client.call_tool("hang", json!({})).start())
        .collect();
    let begun = calls.iter().filter(|call| call.id().is_some()).count();
    assert_eq!((begun, client.ledger().calls.in_flight()), (1000, 1000));
}

#[tokio::test]
async fn an_event_stream_that_sends_us_elsewhere_is_not_followed() {
    let server = Played::new(|asked| match asked.method.as_str() {
        "GET" => Reply::Bytes(format!(
            "{EVENTS}event: endpoint\ndata: http://evil.example/m\n\n"
        )),
        _ => Reply::Bytes(response("405 No", "text/plain", "")),
    })
    .await;
    let error = Client::http(&server.url()).await.unwrap_err();
    assert!(error.is_lost());
    let told = format!("{error:?}");
    assert!(told.contains("http://evil.example/m"), "{told}");
    assert!(
        server
            .asked()
            .iter()
            .all(|asked| asked.method == "POST" || asked.body.is_null())
    );
}

#[tokio::test]
async fn a_wrong_address_is_told_apart() {
    for (address, shows) in [
        ("ftp://example.com", "https:// or http://"),
        ("http://", "no address"),
        ("https://me:secret@example.com/mcp", "as a header"),
    ] {
        let error = Client::http(address).await.unwrap_err();
        assert!(error.to_string().contains(shows), "{error}");
    }
}

/// A handler says something and answers at once: both leave on one lane, in order and whole.
#[tokio::test]
async fn order_what_a_client_says_and_answers_on_behalf_of_a_request_arrives_whole() {
    use belay::{Context, Server, Tool};
    let server =
        Server::new("test", "1").tool(Tool::new("ask", |cx: Context, (): ()| async move {
            let form = json!({ "message": "?" });
            let answer = cx.request_raw::<Value>("elicitation/create", &form).await;
            answer
                .map(|answer| answer.to_string())
                .map_err(|error| error.to_string())
        }));
    let listening = belay::http::Endpoint::new(server)
        .bind("127.0.0.1:0")
        .await
        .unwrap();
    let client = Client::builder("test", "1")
        .mode(Mode::Legacy)
        .on_request("elicitation/create", |cx, _| async move {
            for step in 1..20 {
                cx.progress(
                    step.into(),
                    20.0,
                    "a person is typing, and it takes a while",
                )
                .await;
            }
            Ok(json!({ "action": "accept" }))
        })
        .http(&format!("http://{}/mcp", listening.address()))
        .await
        .unwrap();
    for _ in 0..20 {
        let answer = client
            .call_tool("ask", json!({}))
            .timeout(Duration::from_secs(10));
        let answer = answer.await.unwrap();
        assert_eq!(answer.content[0].as_text(), Some(r#"{"action":"accept"}"#));
    }
}

/// A stream on which nothing was said for a while is woken for a question as for anything else.
#[tokio::test]
async fn a_question_on_an_idle_stream_is_asked_at_once() {
    use belay::{Context, Server, Tool};
    let ask = Tool::new("ask", |cx: Context, (): ()| async move {
        // The stream is open, and has nothing more to say for now. It shows that it lives after one second
        // and after three, which would wake it as well.
        cx.progress(1.0, None, "").await;
        tokio::time::sleep(Duration::from_millis(1200)).await;
        let form =
            json!({ "message": "Who?", "requestedSchema": { "type": "object", "properties": {} } });
        let answer = cx.request_raw::<Value>("elicitation/create", &form).await;
        answer.map_or_else(|error| error.to_string(), |answer| answer.to_string())
    });
    let listening = belay::http::Endpoint::new(Server::new("test", "1").tool(ask))
        // Nothing else wakes it.
        .keep_alive(Duration::from_secs(3600))
        .bind("127.0.0.1:0")
        .await
        .unwrap();
    let client = Client::builder("test", "1")
        .mode(Mode::Legacy)
        .on_request("elicitation/create", |_, _| async {
            Ok(json!({ "action": "decline" }))
        })
        .http(&format!("http://{}/mcp", listening.address()))
        .await
        .unwrap();
    let call = client
        .call_tool("ask", json!({}))
        .timeout(Duration::from_secs(10));
    let begun = std::time::Instant::now();
    let answer = call.await.unwrap();
    assert_eq!(answer.content[0].as_text(), Some(r#"{"action":"decline"}"#));
    assert!(begun.elapsed() < Duration::from_millis(2500), "at once");
}

#[tokio::test]
async fn calls_that_are_lost_leave_no_task_behind() {
    let tasks = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    for mode in MODES {
        let server = Played::new(|asked| {
            let broken = || Reply::Bytes(response("502 No", "text/html", "<h1>no</h1>"));
            greeting(asked).unwrap_or_else(broken)
        })
        .await;
        let client = server.client(mode).await;
        assert!(client.list_tools().await.unwrap_err().is_lost());
        let before = tasks();
        for _ in 0..100 {
            assert!(client.list_tools().await.unwrap_err().is_lost());
        }
        belay_testkit::until("they are gone", || tasks() <= before + 10).await;
        client.close().await;
    }
}

#[tokio::test]
async fn a_server_that_knows_post_alone_keeps_its_session() {
    let server = Played::new(|asked| match asked.method.as_str() {
        "GET" => Reply::Bytes(response("404 Not Found", "text/html", "Cannot GET /mcp")),
        _ => greeting(asked).unwrap_or_else(|| Reply::Bytes(result(asked, json!({ "tools": [] })))),
    })
    .await;
    let client = server.client(Mode::Legacy).await;
    belay_testkit::until("it was asked", || {
        server.asked().iter().any(|asked| asked.method == "GET")
    })
    .await;
    for _ in 0..5 {
        client.list_tools().await.unwrap();
    }
    let asked = server.asked();
    let hellos = asked.iter().filter(|asked| asked.asks("initialize"));
    assert_eq!(hellos.count(), 1, "one session");
}

#[tokio::test]
async fn what_was_learnt_is_learnt_anew_when_it_is_not_so_any_more() {
    let modern = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let is_modern = modern.clone();
    let server = Played::new(move |asked| {
        let is_modern = is_modern.load(std::sync::atomic::Ordering::SeqCst);
        match (asked.asks("server/discover"), asked.asks("initialize")) {
            (true, _) if !is_modern => Reply::Bytes(response("404 Not Found", "text/html", "x")),
            (_, true) if is_modern => {
                let error = json!({ "code": -32020, "message": "no such header" });
                let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
                Reply::Bytes(response("400 No", "application/json", &body.to_string()))
            }
            _ => greeting(asked).unwrap(),
        }
    })
    .await;
    assert_eq!(
        Client::http(&server.url()).await.unwrap().era(),
        Era::Legacy
    );
    modern.store(true, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(
        Client::http(&server.url()).await.unwrap().era(),
        Era::Modern
    );
    modern.store(false, std::sync::atomic::Ordering::SeqCst);
    assert_eq!(
        Client::http(&server.url()).await.unwrap().era(),
        Era::Legacy
    );
}

/// Some servers hold no connection open, and ask to come back instead.
#[tokio::test]
async fn a_server_that_is_polled_answers_in_the_end() {
    let polls = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = polls.clone();
    let server = Played::new(move |asked| {
        if asked.asks("tools/list") {
            return Reply::AndClose(format!("{EVENTS}id: 5-1\nretry: 1\ndata:\n\n"));
        }
        if asked.header("last-event-id").is_none() {
            return greeting(asked).unwrap_or(Reply::Nothing);
        }
        match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0..15 => Reply::AndClose(EVENTS.to_owned()),
            _ => {
                let answer = json!({ "jsonrpc": "2.0", "id": 2, "result": { "tools": [] } });
                Reply::AndClose(format!("{EVENTS}data: {answer}\n\n"))
            }
        }
    })
    .await;
    let client = server.client(Mode::Legacy).await;
    assert!(client.list_tools().await.is_ok());
    assert_eq!(polls.load(std::sync::atomic::Ordering::SeqCst), 16);
}

#[tokio::test]
async fn no_hang_an_odd_answer_that_never_ends_is_not_heard_out() {
    for mode in MODES {
        let endless = || {
            let head = "HTTP/1.1 500 No\r\nContent-Type: text/html\r\nContent-Length: 9999\r\n\r\n";
            Reply::Bytes(format!("{head}<h1>and so on"))
        };
        let (error, after) = lost(mode, endless).await;
        assert_eq!(kind(&error), LossKind::HttpStatus(500));
        assert!(format!("{error:?}").contains("and so on"), "{error:?}");
        assert!(after < Duration::from_secs(10), "{after:?}");
    }
}

#[tokio::test]
async fn a_status_that_tells_nothing_of_eras_is_no_reason_to_try_another() {
    let server = Played::new(|asked| {
        let error = json!({ "code": -31001, "message": "too many requests" });
        let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
        Reply::Bytes(response(
            "429 Too Many",
            "application/json",
            &body.to_string(),
        ))
    })
    .await;
    let error = Client::http(&server.url()).await.unwrap_err();
    assert_eq!(kind(&error), LossKind::HttpStatus(429));
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn a_call_on_an_event_stream_whose_server_is_gone_was_never_sent() {
    let server = Running::start().await;
    let url = format!("http://{}/sse", server.address());
    let client = Client::http(&url).await.unwrap();
    drop(server.listening);
    let error = client.list_tools().await.unwrap_err();
    assert!(error.is_lost(), "{error:?}");
    client.closed().await;
    let error = client.list_tools().await.unwrap_err();
    assert!(error.is_lost() && error.safe_to_retry(), "{error:?}");
}

/// A cache that clients share gives nobody what was told to somebody else, but for what is public.
#[tokio::test]
async fn what_is_private_is_kept_for_the_same_credentials() {
    for (scope, asked) in [("private", 2), ("public", 1)] {
        let server = Played::new(move |asked| {
            greeting(asked).unwrap_or_else(|| {
                let list = json!({
                    "resultType": "complete", "tools": [], "ttlMs": 60_000, "cacheScope": scope
                });
                Reply::Bytes(result(asked, list))
            })
        })
        .await;
        let cache = Cache::new(10, 100_000);
        for who in ["ada", "alan", "ada"] {
            let builder = Client::builder("test", "1").mode(Mode::Modern);
            let builder = builder.cache(&cache).header("Authorization", who);
            let client = builder.http(&server.url()).await.unwrap();
            client.list_tools().await.unwrap();
        }
        let lists = server.asked();
        let lists = lists.iter().filter(|asked| asked.asks("tools/list"));
        assert_eq!(lists.count(), asked, "{scope}");
    }
}

/// A tool that wants its region in a header, if it is wanted.
fn tools_with_region(asked: &Asked, wanted: bool) -> Reply {
    let mut region = json!({ "type": "string" });
    if wanted {
        region["x-mcp-header"] = json!("Region");
    }
    let schema = json!({ "type": "object", "properties": { "region": region } });
    let tools = json!([{ "name": "order", "inputSchema": schema }]);
    let list = json!({
        "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private"
    });
    Reply::Bytes(result(asked, list))
}

/// What a server says to a call whose region is not in a header.
fn without_region(asked: &Asked) -> Reply {
    let error = json!({ "code": -32020, "message": "Mcp-Param-Region is missing" });
    let body = json!({ "jsonrpc": "2.0", "id": asked.body["id"], "error": error });
    let body = body.to_string();
    Reply::Bytes(response("400 Bad Request", "application/json", &body))
}

fn ordered(asked: &Asked) -> Reply {
    let done = json!({ "resultType": "complete", "content": [] });
    Reply::Bytes(result(asked, done))
}

/// The one call that is made twice by itself, for the specification asks for it (2026-07-28,
/// basic/transports/streamable-http: the server refuses it before anything is done).
#[tokio::test]
async fn retry_is_explicit_but_for_headers_that_were_not_known() {
    // Whether the server is content with the header, and whether the tool wants one at all.
    for (content, wanted, calls) in [(true, true, 2), (false, true, 2), (false, false, 1)] {
        let server = Played::new(move |asked| match greeting(asked) {
            Some(greeting) => greeting,
            None if asked.asks("tools/list") => tools_with_region(asked, wanted),
            None if content && asked.header("mcp-param-region") == Some("eu") => ordered(asked),
            None => without_region(asked),
        })
        .await;
        let client = server.client(Mode::Modern).await;
        let ordered = client.call_tool("order", json!({ "region": "eu" })).await;
        assert_eq!(ordered.is_ok(), content, "{ordered:?}");
        let asked = server.asked();
        let count = |method: &str| asked.iter().filter(|asked| asked.asks(method)).count();
        assert_eq!((count("tools/call"), count("tools/list")), (calls, 1));
        let ids = asked.iter().filter(|asked| asked.asks("tools/call"));
        let ids: HashSet<String> = ids.map(|asked| asked.body["id"].to_string()).collect();
        assert_eq!(ids.len(), calls, "each with an id of its own");
    }
}

/// What counts is what the call has said, not what the client knows by the time that it is refused, nor
/// what was to be said before the layers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_made_again_for_what_it_has_said_itself() {
    struct InEurope;

    impl ClientLayer for InEurope {
        fn call<'a>(
            &'a self,
            mut request: CallRequest,
            next: NextCall<'a>,
        ) -> LayerFuture<'a, Result<RawJson, Error>> {
            if request.method == *"tools/call" {
                let params = json!({ "name": "order", "arguments": { "region": "eu" } });
                request.params = RawJson::encode(&params).unwrap();
            }
            Box::pin(next.run(request))
        }
    }

    let (listed, listing) = std::sync::mpsc::channel::<()>();
    let (listed, listing) = (Mutex::new(listed), Mutex::new(listing));
    let server = Played::new(move |asked| match greeting(asked) {
        Some(greeting) => greeting,
        None if asked.asks("tools/list") => tools_with_region(asked, true),
        None if asked.header("mcp-param-region") == Some("eu") => ordered(asked),
        None => {
            // Its client has learnt of the header by now, from a list of its own.
            let _ = listing
                .lock()
                .unwrap()
                .recv_timeout(Duration::from_secs(10));
            without_region(asked)
        }
    })
    .await;
    let builder = Client::builder("test", "1").layer(InEurope);
    let builder = builder.mode(Mode::Modern);
    let client = builder.http(&server.url()).await.unwrap();
    let call = tokio::spawn(client.call_tool("order", json!({})).start());
    belay_testkit::until("it was sent", || {
        server.asked().iter().any(|asked| asked.asks("tools/call"))
    })
    .await;
    client.list_tools().await.unwrap();
    listed.lock().unwrap().send(()).unwrap();
    call.await.unwrap().unwrap();
}
