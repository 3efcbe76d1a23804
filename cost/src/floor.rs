//! The floor, which is the least that any implementation does: a server that parses a message with
//! `serde_json` and writes an answer, and a client that does the opposite.

use std::borrow::Cow;
use std::convert::Infallible;
use std::io::{BufRead, Write};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// Serves stdin and stdout: one line for each line, each in its own write.
pub fn serve_stdio() {
    let mut input = std::io::BufReader::with_capacity(1 << 16, std::io::stdin());
    let mut output = std::io::stdout().lock();
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line).expect("a pipe") > 0 {
        if let Some(mut answer) = answer(&line) {
            answer.push(b'\n');
            output.write_all(&answer).expect("a reader");
            output.flush().expect("a reader");
        }
        line.clear();
    }
}

/// The parts of a message that are read.
#[derive(Deserialize)]
struct Message<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(default, borrow)]
    params: Params<'a>,
}

#[derive(Default, Deserialize)]
struct Params<'a> {
    #[serde(default, borrow)]
    name: Cow<'a, str>,
    #[serde(default)]
    arguments: Echo,
    #[serde(default, borrow, rename = "_meta")]
    meta: Meta<'a>,
}

#[derive(Default, Deserialize)]
struct Echo {
    text: String,
}

#[derive(Default, Deserialize)]
struct Meta<'a> {
    #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<Cow<'a, str>>,
    #[serde(rename = "io.modelcontextprotocol/clientCapabilities")]
    _capabilities: Option<IgnoredAny>,
}

/// The result that is written.
#[derive(Serialize)]
struct CallResult<'a> {
    content: [Content<'a>; 1],
    #[serde(flatten)]
    modern: Option<Modern>,
}

#[derive(Serialize)]
struct Content<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct Modern {
    #[serde(rename = "resultType")]
    result_type: &'static str,
    #[serde(rename = "_meta")]
    meta: Signature,
}

#[derive(Serialize)]
struct Signature {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    info: Info,
}

#[derive(Serialize)]
struct Info {
    name: &'static str,
    version: &'static str,
}

/// The answer to a message, if it needs one.
fn answer(message: &[u8]) -> Option<Vec<u8>> {
    let message: Message<'_> = serde_json::from_slice(message).expect("JSON");
    let mut answer = Vec::with_capacity(256);
    write!(
        answer,
        r#"{{"jsonrpc":"2.0","id":{},"result":"#,
        message.id?
    )
    .expect("memory");
    match &*message.method {
        "initialize" => answer.extend_from_slice(
            br#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"floor","version":"1"}}"#,
        ),
        "server/discover" => answer.extend_from_slice(
            br#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"floor","version":"1"}}}"#,
        ),
        // A hang is never answered.
        _ if message.params.name == "hang" => return None,
        _ => {
            let r#type = "text";
            let text = &message.params.arguments.text;
            let info = Info { name: "floor", version: "1" };
            let result = CallResult {
                content: [Content { r#type, text }],
                modern: message.params.meta.version.map(|_| Modern {
                    result_type: "complete",
                    meta: Signature { info },
                }),
            };
            serde_json::to_writer(&mut answer, &result).expect("memory");
        }
    }
    answer.push(b'}');
    Some(answer)
}

/// Serves HTTP/1.1.
pub async fn serve_http(listener: TcpListener) {
    loop {
        let (stream, _) = listener.accept().await.expect("a connection");
        stream.set_nodelay(true).expect("a socket");
        tokio::spawn(async move {
            let http = hyper::server::conn::http1::Builder::new();
            let _ = http
                .serve_connection(TokioIo::new(stream), service_fn(respond))
                .await;
        });
    }
}

type Body = http_body_util::combinators::BoxBody<Bytes, Infallible>;

async fn respond(request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    let says_something = request
        .headers()
        .get("mcp-name")
        .is_some_and(|name| name == "count");
    let message = request.into_body().collect().await?.to_bytes();
    if message.is_empty() {
        return Ok(status(405));
    }
    let Some(answer) = answer(&message) else {
        let asks = contains(&message, b"\"hang\"");
        if asks {
            std::future::pending::<()>().await;
        }
        return Ok(status(202));
    };
    let (kind, body) = match says_something {
        false => ("application/json", Full::new(answer.into()).boxed()),
        true => ("text/event-stream", events(&answer)),
    };
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    Ok(response)
}

/// Whether a message contains these bytes.
fn contains(message: &[u8], part: &[u8]) -> bool {
    message.windows(part.len()).any(|window| window == part)
}

fn status(code: u16) -> Response<Body> {
    let mut response = Response::new(Full::default().boxed());
    *response.status_mut() = code.try_into().expect("a status");
    response
}

/// A body with a progress notification and the answer.
fn events(answer: &[u8]) -> Body {
    let progress = br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}"#;
    let event = |data: &[u8]| {
        let event = [b"data: ", data, b"\n\n"].concat();
        Ok(Frame::data(Bytes::from(event)))
    };
    let events = [event(progress), event(answer)].into_iter();
    BodyExt::boxed(StreamBody::new(Events(events)))
}

/// A body stream of events that exist already.
struct Events<I>(I);

impl<I: Iterator + Unpin> futures_core::Stream for Events<I> {
    type Item = I::Item;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<I::Item>> {
        std::task::Poll::Ready(self.0.next())
    }
}
