//! Listening on HTTP: streams that are cut, sessions that do not listen, and how many may.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use belay::client::Mode;
use belay::client::{Change, Subscription};
use belay::http::{Endpoint, ServerHandle};
use belay::types::modern::SubscriptionFilter;
use belay::{Client, Context, Principal, Resource, Server, Tool};
use belay_testkit::{RawHttp, until};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A server with something that changes.
fn server() -> Server {
    Server::new("test", "1")
        .resource(Resource::text("memo://1", "memo", "text"))
        .resource(Resource::text("memo://2", "other", "text"))
        .tool(Tool::new("echo", |_: Context, (): ()| async { "hi" }))
}

async fn listening(server: Server) -> ServerHandle {
    Endpoint::new(server).bind("127.0.0.1:0").await.unwrap()
}

/// Connections to a server, which can be cut.
struct Relay {
    address: SocketAddr,
    open: Arc<Mutex<Vec<JoinHandle<()>>>>,
    accepting: JoinHandle<()>,
}

impl Relay {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let open: Arc<Mutex<Vec<JoinHandle<()>>>> = Arc::default();
        let opened = open.clone();
        let accepting = tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let relaying = tokio::spawn(async move {
                    let mut server = TcpStream::connect(server).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
                });
                opened.lock().unwrap().push(relaying);
            }
        });
        Self {
            address,
            open,
            accepting,
        }
    }

    /// Cuts all connections there are.
    fn cut(&self) {
        for relaying in self.open.lock().unwrap().drain(..) {
            relaying.abort();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.accepting.abort();
        self.cut();
    }
}

async fn next(changes: &mut Subscription) -> Change {
    let next = tokio::time::timeout(Duration::from_secs(20), changes.next()).await;
    next.expect("a change").expect("it goes on")
}

/// Whatever is lost is opened again, and said to be. A caller that looks now and then sees it, too.
#[tokio::test]
async fn a_stream_that_is_cut_is_restored() {
    for mode in [Mode::Modern, Mode::Legacy] {
        let server = server();
        let resources = server.resources();
        let listening = listening(server).await;
        let relay = Relay::to(listening.address()).await;
        let client = Client::builder("test", "1").mode(mode);
        let client = client
            .http(&format!("http://{}/mcp", relay.address))
            .await
            .unwrap();
        let filter = SubscriptionFilter::new().resource("memo://1");
        let mut changes = client.listen(filter).await.unwrap();
        let uri = "memo://1".to_owned();
        for _ in 0..2 {
            resources.updated("memo://1");
            assert_eq!(
                next(&mut changes).await,
                Change::Updated { uri: uri.clone() }
            );
            relay.cut();
            if mode == Mode::Legacy {
                // There the session goes on, and so does what it has subscribed to: its stream is
                // asked for again by itself.
                continue;
            }
            // Dropping what waits for the next one changes nothing.
            let mut looks = 0;
            let restored = loop {
                looks += 1;
                assert!(looks < 2000, "it never came back");
                let look = tokio::time::timeout(Duration::from_millis(10), changes.next());
                if let Ok(change) = look.await {
                    break change;
                }
            };
            assert_eq!(restored, Some(Change::Restored));
        }
        drop(changes);
        until("nobody listens", || listening.service().handlers() == 0).await;
    }
}

/// What happens while a session does not listen waits once, however often it happens.
#[tokio::test]
async fn a_session_that_does_not_listen_piles_nothing_up() {
    let server = server();
    let resources = server.resources();
    let listening = listening(server).await;
    let mut http = RawHttp::connect(listening.address()).await;
    http.initialize("2025-11-25").await;
    let mut ask = async |id: u32, method: &str, params: serde_json::Value| {
        http.post(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        assert_eq!(http.answer().await.json()["result"], json!({}));
    };
    for (id, uri) in [(5, "memo://1"), (6, "memo://2")] {
        ask(id, "resources/subscribe", json!({ "uri": uri })).await;
    }
    for id in 10..20 {
        resources.updated("memo://1");
        // Whoever writes what happened has its turn here.
        ask(id, "ping", json!({})).await;
    }
    let mut stream = RawHttp::connect(listening.address()).await;
    stream.headers.clone_from(&http.headers);
    stream.send("GET", b"").await;
    assert!(stream.answer().await.is_stream());
    let told = stream.message().await.unwrap();
    assert_eq!(told["params"]["uri"], "memo://1");
    // From now on each change is told.
    for uri in ["memo://2", "memo://1"] {
        resources.updated(uri);
        let told = stream.message().await.unwrap();
        assert_eq!(told["params"]["uri"], uri);
    }
}

/// Streams of news are counted by themselves: they take no place from requests, and there is an end
/// to them.
#[tokio::test]
async fn listens_are_bounded_by_themselves() {
    let server = server().limits(|limits| limits.listens = 2);
    let endpoint = Endpoint::new(server).in_flight(1);
    let listening = endpoint.bind("127.0.0.1:0").await.unwrap();
    let client = Client::http(&format!("http://{}/mcp", listening.address()))
        .await
        .unwrap();
    let listen = || client.listen(SubscriptionFilter::new().tools());
    let (first, _second) = (listen().await.unwrap(), listen().await.unwrap());
    let error = listen().await.unwrap_err();
    assert_eq!(error.refusal().unwrap().code, -31001, "{error:?}");
    // There is room for one request, and it is not taken by those who listen.
    assert!(client.call_tool("echo", json!({})).await.is_ok());
    drop(first);
    let again = async { while listen().await.is_err() {} };
    tokio::time::timeout(Duration::from_secs(10), again)
        .await
        .unwrap();
}

/// What was sealed for Alice is nothing to Mallory.
#[tokio::test]
async fn the_state_of_a_round_is_its_callers_own() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Name {
        name: String,
    }
    let ask = Tool::new("ask", |cx: Context, (): ()| async move {
        let name: Name = cx.elicit("Who?").await?;
        Ok::<_, belay::input::InputError>(name.name)
    });
    let service = belay::http::service(Server::new("test", "1").tool(ask));
    let send = async |who: Option<&str>, params: Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = http::Request::post("/mcp")
            .header("Host", "localhost")
            .header("Content-Type", "application/json")
            .header("Accept", "application/json, text/event-stream")
            .header("MCP-Protocol-Version", "2026-07-28")
            .header("Mcp-Method", "tools/call")
            .header("Mcp-Name", "ask");
        let body: Full<bytes::Bytes> = Full::new(body.to_string().into_bytes().into());
        let mut request = request.body(body).unwrap();
        if let Some(who) = who {
            request.extensions_mut().insert(Principal::new(who));
        }
        let response = service.answer(request).await;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let call = |state: Option<&Value>| {
        let mut params = json!({
            "name": "ask",
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} }
            }
        });
        if let Some(state) = state {
            params["requestState"] = state.clone();
            let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
            params["inputResponses"] = json!({ "input": answer });
        }
        params
    };
    let (_, asked) = send(Some("alice"), call(None)).await;
    let state = &asked["result"]["requestState"];
    for who in [Some("mallory"), None, Some("")] {
        let (_, refused) = send(who, call(Some(state))).await;
        assert_eq!(refused["error"]["code"], -32602, "{who:?}");
    }
    let (status, done) = send(Some("alice"), call(Some(state))).await;
    assert_eq!(
        (status, &done["result"]["content"][0]["text"]),
        (200, &json!("Ada"))
    );
}
