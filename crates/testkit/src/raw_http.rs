//! HTTP/1.1 by hand, for requests that a well-behaved client does not send.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use belay_protocol::framing::SseDecoder;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// No operation of a test takes longer than this.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection on which a test writes HTTP/1.1 itself, byte by byte if it wants to.
///
/// ```no_run
/// # async fn example(address: std::net::SocketAddr) {
/// use belay_testkit::RawHttp;
/// use serde_json::json;
///
/// let mut http = RawHttp::connect(address).await;
/// http.call(1, "echo", json!({ "text": "hi" })).await;
/// let answer = http.answer().await;
/// assert_eq!(answer.status, 200);
/// # }
/// ```
pub struct RawHttp {
    stream: TcpStream,
    read: Vec<u8>,
    chunked: bool,
    events: SseDecoder,
    /// Headers that are sent with every request.
    pub headers: Vec<(String, String)>,
    /// The path of requests.
    pub path: String,
}

/// The head of a response, and its body if the body has a length.
#[derive(Clone, Debug)]
pub struct RawAnswer {
    /// The status code.
    pub status: u16,
    /// The headers. Names are in lower case.
    pub headers: Vec<(String, String)>,
    /// The body; empty if it is a stream.
    pub body: Vec<u8>,
}

impl RawAnswer {
    /// The value of a header. The name must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Whether the body is an event stream.
    pub fn is_stream(&self) -> bool {
        self.header("content-type") == Some("text/event-stream")
    }

    /// The body as JSON, or null.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

impl RawHttp {
    /// Connects, with the headers that every request needs.
    ///
    /// # Panics
    ///
    /// All methods panic on an error, which fails the test.
    pub async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.expect("a server"))
    }

    /// Uses an existing connection, for example from another address or with small buffers.
    pub fn over(stream: TcpStream) -> Self {
        stream.set_nodelay(true).expect("a socket");
        let address = stream.peer_addr().expect("a connection");
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        Self {
            stream,
            read: Vec::new(),
            chunked: false,
            events: SseDecoder::new(1 << 24),
            headers: vec![
                header("Host", &format!("localhost:{}", address.port())),
                header("Content-Type", "application/json"),
                header("Accept", "application/json, text/event-stream"),
            ],
            path: "/mcp".into(),
        }
    }

    /// Replaces a header, or removes it.
    pub fn set<'a>(&mut self, name: &str, value: impl Into<Option<&'a str>>) {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        if let Some(value) = value.into() {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Opens a legacy session. Later requests belong to it.
    pub async fn initialize(&mut self, version: &str) {
        let params = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "raw", "version": "1" }
        });
        let body =
            json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params });
        self.post(&body).await;
        let answer = self.answer().await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let session = answer.header("mcp-session-id").map(str::to_owned);
        self.set("Mcp-Session-Id", session.as_deref());
        self.set("MCP-Protocol-Version", version);
        self.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
            .await;
        assert_eq!(self.answer().await.status, 202);
    }

    /// Calls a tool: within the session if there is one, otherwise in the modern era.
    pub async fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        let id: Value = id.into();
        let in_session = self
            .headers
            .iter()
            .any(|(name, _)| name == "Mcp-Session-Id");
        let mut meta = json!({ "progressToken": id });
        if !in_session {
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            self.set("MCP-Protocol-Version", "2026-07-28");
            self.set("Mcp-Method", "tools/call");
            self.set("Mcp-Name", tool);
        }
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }))
            .await;
    }

    /// Posts a message.
    pub async fn post(&mut self, message: &Value) {
        self.send("POST", message.to_string().as_bytes()).await;
    }

    /// Sends a request with any HTTP method.
    pub async fn send(&mut self, method: &str, body: &[u8]) {
        let request = self.encoded(method, body);
        self.bytes(&request).await;
    }

    /// The bytes of a request, for tests that send several at once.
    pub fn encoded(&self, method: &str, body: &[u8]) -> Vec<u8> {
        let mut head = format!("{method} {} HTTP/1.1\r\n", self.path);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", body.len()));
        let mut request = head.into_bytes();
        request.extend_from_slice(body);
        request
    }

    /// Sends arbitrary bytes.
    pub async fn bytes(&mut self, bytes: &[u8]) {
        self.try_bytes(bytes).await.expect("an open socket");
    }

    /// The same, but returns an error if the connection ends.
    pub async fn try_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Closes the sending direction, and leaves the other open.
    pub async fn half_close(&mut self) {
        let _ = self.stream.shutdown().await;
    }

    /// Reads the next response: the head of a stream, or the whole response.
    pub async fn answer(&mut self) -> RawAnswer {
        let answer = timeout(PATIENCE, self.try_answer()).await;
        answer.expect("an answer in time").expect("an answer")
    }

    /// The same without a timeout; returns an error if the connection ends.
    pub async fn try_answer(&mut self) -> io::Result<RawAnswer> {
        let end = loop {
            let end = self
                .read
                .windows(4)
                .position(|window| window == b"\r\n\r\n");
            match end {
                Some(end) => break end,
                None => self.read_more().await?,
            }
        };
        let rest = self.read.split_off(end + 4);
        let head = std::mem::replace(&mut self.read, rest);
        let head = String::from_utf8(head).expect("a head in ASCII");
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let status = status
            .and_then(|status| status.parse().ok())
            .expect("a status");
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
        let mut answer = RawAnswer {
            status,
            headers: headers.collect(),
            body: Vec::new(),
        };
        self.chunked = answer.header("transfer-encoding") == Some("chunked");
        self.events = SseDecoder::new(1 << 24);
        let length = answer.header("content-length");
        if let Some(length) = length.and_then(|length| length.parse::<usize>().ok()) {
            while self.read.len() < length {
                self.read_more().await?;
            }
            let rest = self.read.split_off(length);
            answer.body = std::mem::replace(&mut self.read, rest);
        }
        Ok(answer)
    }

    /// The next message on a stream; `None` if the stream is over. Comments and empty events are
    /// skipped.
    pub async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            if !event.1.is_null() {
                return Some(event.1);
            }
        }
    }

    /// The next event on a stream: its id and its message, if it has them. Data that is not JSON
    /// becomes a string.
    pub async fn event(&mut self) -> Option<(Option<String>, Value)> {
        let event = timeout(PATIENCE, self.try_event()).await;
        event.expect("an event in time").ok().flatten()
    }

    /// The same without a timeout; returns an error if the stream breaks off.
    pub async fn try_event(&mut self) -> io::Result<Option<(Option<String>, Value)>> {
        loop {
            if let Some(event) = self.events.next_event() {
                let event = event.expect("an event of a reasonable size");
                let message = match serde_json::from_slice(&event.data) {
                    Ok(message) => message,
                    Err(_) if event.data.is_empty() => Value::Null,
                    Err(_) => String::from_utf8_lossy(&event.data).into(),
                };
                return Ok(Some((event.id, message)));
            }
            match self.chunk().await? {
                Some(chunk) => self.events.push(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// The next chunk of a body; `None` at its end.
    async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        if !self.chunked {
            while self.read.is_empty() {
                match self.read_more().await {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                    read => read?,
                }
            }
            return Ok(Some(std::mem::take(&mut self.read)));
        }
        loop {
            if let Some(end) = self.read.windows(2).position(|window| window == b"\r\n") {
                let size = std::str::from_utf8(&self.read[..end]).expect("a size");
                let size = usize::from_str_radix(size, 16).expect("a size in hexadecimal");
                if self.read.len() >= end + 2 + size + 2 {
                    let chunk = self.read[end + 2..end + 2 + size].to_vec();
                    self.read.drain(..end + 2 + size + 2);
                    return Ok((size > 0).then_some(chunk));
                }
            }
            self.read_more().await?;
        }
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.read).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for RawHttp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RawHttp")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
