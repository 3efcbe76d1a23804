//! On HTTP: POSTs that are pipelined on one connection, and batches of 2025-03-26.

use std::time::Duration;

use belay::client::Mode;
use belay_protocol::framing::SseDecoder;
use belay_testkit::{RawHttp, Transcript};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpSocket;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::timeout;

use super::Reads;
use crate::http::HttpServer;
use crate::support::{memory, request};

/// So many messages may come in one batch.
const BATCH: usize = 100;

/// Nothing takes longer, not even beside other tests.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn answered_or_gone_pipelined_modern_posts_are_answered_in_order() {
    pipelines(Mode::Modern).await;
}

#[tokio::test]
async fn answered_or_gone_pipelined_legacy_posts_are_answered_in_order() {
    pipelines(Mode::Legacy).await;
}

async fn pipelines(mode: Mode) {
    let server = HttpServer::start().await;
    for (count, reads) in [
        (1, Reads::AtOnce),
        (1000, Reads::AtOnce),
        (10_000, Reads::AtOnce),
        (1000, Reads::Slowly),
        (10_000, Reads::AfterAStop),
    ] {
        pipeline(&server, mode, count, reads).await;
    }
}

/// Writes so many POSTs in one go, and reads one response after the other.
async fn pipeline(server: &HttpServer, mode: Mode, count: usize, reads: Reads) {
    let what = format!("{mode:?}, {count}, {reads:?}");
    let headers = headers(server, mode, "echo").await;
    let before = memory(server.pid());
    // If nobody reads for a while, there is more than the kernel keeps.
    let width = match reads {
        Reads::AfterAStop => 1000,
        _ => 0,
    };
    let text = |id: usize| format!("{id:width$}");
    let posts: Vec<u8> = (1..=count)
        .flat_map(|id| {
            let echo = json!({ "name": "echo", "arguments": { "text": text(id) } });
            post(&headers, &request(mode, id, "tools/call", echo).to_string())
        })
        .collect();
    let (mut responses, mut writer) = Responses::connect(server).await;
    let (wrote, written) = tokio::sync::oneshot::channel();
    let writing = tokio::spawn(async move {
        writer.write_all(&posts).await.unwrap();
        let _ = wrote.send(());
        writer
    });
    if reads == Reads::AfterAStop {
        // Until all is written, or nothing moves any more because nobody reads. That stays below
        // the 10 s after which the server gives such a connection up.
        let all = timeout(Duration::from_millis(500), written).await;
        assert!(all.is_err(), "{what}: it takes everything");
    }
    let mut most = memory(server.pid()).saturating_sub(before);
    for id in 1..=count {
        let response = responses
            .next()
            .await
            .unwrap_or_else(|| panic!("{what}: {id} of {count} got no response"));
        assert_eq!(response.status, 200, "{what}, {id}");
        assert_eq!(response.messages.len(), 1, "{what}, {id}");
        let answer = &response.messages[0];
        assert_eq!(answer["id"], id, "{what}: out of order");
        assert_eq!(answer["result"]["content"][0]["text"], text(id));
        if id % 100 == 0 {
            most = most.max(memory(server.pid()).saturating_sub(before));
            if reads == Reads::Slowly {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
    assert!(most < 64 << 20, "{what}: the server grew by {most} bytes");
    // Nothing comes after the last but the end of the connection.
    drop(writing.await.unwrap());
    assert_eq!(responses.rest().await, b"", "{what}");
}

#[tokio::test]
async fn answered_or_gone_batches_on_several_connections() {
    let server = HttpServer::start().await;
    let before = memory(server.pid());
    let (transcript, _) = post_batches(&server, full("echo"), 4).await.unwrap();
    assert_eq!(transcript.check(), Ok(()));
    assert_eq!(transcript.requests(), 10_000);
    assert!(transcript.answers() > transcript.refusals());
    let growth = memory(server.pid()).saturating_sub(before);
    assert!(growth < 64 << 20, "the server grew by {growth} bytes");
}

/// Cancels, notifications and members that are no messages stand among the requests.
#[tokio::test]
async fn answered_or_gone_batches_of_all_kinds_of_members() {
    let server = HttpServer::start().await;
    let batches: Vec<Batch> = (0..40).map(mixed).collect();
    let malformed = |member: &Value| !member.is_object() || *member == json!({});
    let nameless = batches.iter().flatten().filter(|it| malformed(it)).count();
    let (transcript, errors) = post_batches(&server, batches, 4).await.unwrap();
    assert_eq!(transcript.check(), Ok(()));
    assert_eq!(errors, nameless, "each of them is told of");
    // What was cancelled has stopped, and nothing else waits.
    let (mut responses, mut writer) = Responses::connect(&server).await;
    let active = json!({ "name": "active", "arguments": {} });
    let headers = headers(&server, Mode::Modern, "active").await;
    let active = request(Mode::Modern, 1, "tools/call", active).to_string();
    writer.write_all(&post(&headers, &active)).await.unwrap();
    let active = responses.next().await.unwrap();
    assert_eq!(active.messages[0]["result"]["content"][0]["text"], "0");
}

/// The oracle is worth something: it finds what was planted in a real server.
#[cfg(belay_planted)]
#[tokio::test]
async fn every_planted_bug_is_caught_at_the_wire_of_http() {
    for (bug, tool) in [
        ("RefusalDropped", "echo"),
        ("RefusedTwice", "echo"),
        ("PanicAnswersNobody", "panic"),
    ] {
        let server = HttpServer::planted(bug).await;
        let posted = post_batches(&server, full(tool), 4).await;
        let found = posted.and_then(|(transcript, _)| transcript.check());
        println!("{bug}: {found:?}");
        assert!(found.is_err(), "{bug} was not caught");
    }
}

type Batch = Vec<Value>;

/// A hundred batches of a hundred calls.
fn full(tool: &str) -> Vec<Batch> {
    let call = |id: usize| {
        let params = json!({ "name": tool, "arguments": { "text": "hi" } });
        request(Mode::Legacy, id, "tools/call", params)
    };
    let batch = |number: usize| (0..BATCH).map(|at| call(number * BATCH + at)).collect();
    (0..100).map(batch).collect()
}

/// A batch of a hundred members, of which the ids begin with its number.
fn mixed(number: usize) -> Batch {
    let echo = || json!({ "name": "echo", "arguments": { "text": "hi" } });
    let hang = || json!({ "name": "hang", "arguments": {} });
    let ask = |id: usize, method: &str, params: Value| request(Mode::Legacy, id, method, params);
    let mut members = Vec::new();
    for at in (0..BATCH).step_by(10) {
        let id = number * BATCH + at;
        let cancel = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id }
        });
        members.extend([
            ask(id, "tools/call", hang()),
            ask(id + 1, "tools/call", echo()),
            cancel,
            ask(id + 2, "ping", json!({})),
            json!({ "jsonrpc": "2.0", "method": "notifications/roots/list_changed" }),
            json!(7),
            json!({}),
            // The same id twice, a method that nobody knows, and one that is none.
            ask(id + 2, "tools/call", echo()),
            ask(id + 3, "no/such/method", json!({})),
            json!({ "jsonrpc": "1.0", "id": id + 4, "method": "ping" }),
        ]);
    }
    members
}

/// Posts batches to one session on so many connections, each with several on their way, and reads
/// all that comes back; tells how many errors were for nobody. An error if a response never ends.
async fn post_batches(
    server: &HttpServer,
    batches: Vec<Batch>,
    connections: usize,
) -> Result<(Transcript, usize), String> {
    let headers = session(server, "2025-03-26").await;
    let (mut transcript, mut nameless) = (Transcript::default(), 0);
    for member in batches.iter().flatten() {
        transcript.sent(member.to_string().as_bytes());
    }
    let each = batches.len().div_ceil(connections);
    let mut reading = tokio::task::JoinSet::new();
    for batches in batches.chunks(each) {
        let (mut responses, mut writer) = Responses::connect(server).await;
        let posts: Vec<Vec<u8>> = batches
            .iter()
            .map(|batch| post(&headers, &json!(batch).to_string()))
            .collect();
        let count = posts.len();
        reading.spawn(async move {
            let writing = tokio::spawn(async move {
                writer.write_all(&posts.concat()).await.unwrap();
                writer
            });
            let mut messages = Vec::new();
            for at in 0..count {
                let response = responses.next().await;
                let response = response.ok_or(format!("batch {at} got no whole response"))?;
                if response.status != 200 {
                    return Err(format!("batch {at} was answered with {}", response.status));
                }
                messages.extend(response.messages);
            }
            drop(writing.await.unwrap());
            Ok(messages)
        });
    }
    while let Some(messages) = reading.join_next().await {
        for message in messages.unwrap()? {
            transcript.received(message.to_string().as_bytes());
            nameless += usize::from(message["id"].is_null() && message["error"].is_object());
        }
    }
    Ok((transcript, nameless))
}

type Headers = Vec<(String, String)>;

/// The headers of a call of this tool, in a session if the era has some.
async fn headers(server: &HttpServer, mode: Mode, tool: &str) -> Headers {
    if mode == Mode::Legacy {
        return session(server, "2025-11-25").await;
    }
    let mut http = RawHttp::connect(server.address.parse().unwrap()).await;
    http.set("MCP-Protocol-Version", "2026-07-28");
    http.set("Mcp-Method", "tools/call");
    http.set("Mcp-Name", tool);
    http.headers
}

async fn session(server: &HttpServer, version: &str) -> Headers {
    let mut http = RawHttp::connect(server.address.parse().unwrap()).await;
    http.initialize(version).await;
    http.headers
}

fn post(headers: &Headers, body: &str) -> Vec<u8> {
    let mut post = "POST /mcp HTTP/1.1\r\n".to_owned();
    for (name, value) in headers {
        post += &format!("{name}: {value}\r\n");
    }
    post += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    post.into_bytes()
}

/// The responses on one connection, in order.
struct Responses(BufReader<OwnedReadHalf>);

struct Response {
    status: u16,
    messages: Vec<Value>,
}

impl Responses {
    async fn connect(server: &HttpServer) -> (Self, OwnedWriteHalf) {
        // Little is kept for whoever does not read.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(32 << 10).unwrap();
        let stream = socket
            .connect(server.address.parse().unwrap())
            .await
            .unwrap();
        let (reader, writer) = stream.into_split();
        (Self(BufReader::new(reader)), writer)
    }

    /// The next one, with all its messages; `None` if it does not come, or not to its end.
    async fn next(&mut self) -> Option<Response> {
        timeout(PATIENCE, self.read()).await.ok()?
    }

    async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let read = timeout(PATIENCE, self.0.read_to_end(&mut rest)).await;
        // It may have been closed in any way.
        let _ = read.expect("the connection should end");
        rest
    }

    async fn read(&mut self) -> Option<Response> {
        let status = self.line().await?;
        let status = status.split(' ').nth(1)?.parse().unwrap();
        let (mut length, mut is_stream) = (None, false);
        loop {
            let line = self.line().await?;
            match line.split_once(": ") {
                Some(("content-length", value)) => length = Some(value.parse().unwrap()),
                Some(("content-type", "text/event-stream")) => is_stream = true,
                Some(_) => {}
                None => break,
            }
        }
        let body = match length {
            Some(length) => self.exactly(length).await?,
            None => self.chunks().await?,
        };
        let messages = match is_stream {
            true => messages_of(&body),
            false => serde_json::from_slice(&body).into_iter().collect(),
        };
        Some(Response { status, messages })
    }

    async fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).await.ok()?;
        Some(line.strip_suffix("\r\n")?.to_owned())
    }

    async fn exactly(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).await.ok()?;
        Some(bytes)
    }

    async fn chunks(&mut self) -> Option<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = self.line().await?;
            let size = usize::from_str_radix(&size, 16).unwrap();
            body.extend(self.exactly(size).await?);
            self.line().await?;
            if size == 0 {
                return Some(body);
            }
        }
    }
}

fn messages_of(events: &[u8]) -> Vec<Value> {
    let mut decoder = SseDecoder::new(1 << 24);
    decoder.push(events);
    let events = std::iter::from_fn(|| decoder.next_event());
    let messages = events.map(|event| serde_json::from_slice(&event.unwrap().data).ok());
    messages.flatten().collect()
}
