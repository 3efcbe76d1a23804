//! HTTP/2 frame by frame, for what no well-behaved client does.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than that nothing takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
pub(super) const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

const INITIAL_WINDOW_SIZE: u16 = 4;

/// `CANCEL`, as the code of a reset.
pub(super) const CANCEL: u32 = 8;

/// A connection on which a test writes and reads frames itself. Settings are acknowledged, pings are
/// answered; windows are opened by nobody but the test.
pub(super) struct Frames {
    stream: TcpStream,
    read: Vec<u8>,
    authority: String,
    /// Pings stay without an answer.
    pub(super) ignores_pings: bool,
}

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) kind: u8,
    flags: u8,
    pub(super) stream: u32,
    pub(super) payload: Vec<u8>,
}

impl Frame {
    pub(super) fn ends_its_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// The code of a reset, or of a GOAWAY after the stream that it names.
    pub(super) fn code(&self) -> u32 {
        let (_, code) = self.payload.split_last_chunk().unwrap();
        u32::from_be_bytes(*code)
    }
}

impl Frames {
    /// Connects. Each stream may be sent `window` bytes, and all of them together two gigabytes.
    pub(super) async fn connect(address: SocketAddr, window: u32) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut frames = Self {
            stream,
            read: Vec::new(),
            authority: address.to_string(),
            ignores_pings: false,
        };
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        frames.stream.write_all(preface).await.unwrap();
        let mut settings = INITIAL_WINDOW_SIZE.to_be_bytes().to_vec();
        settings.extend(window.to_be_bytes());
        frames.write(SETTINGS, 0, 0, &settings).await;
        frames.open_window(0, i32::MAX as u32 - 65_535).await;
        // From here on the server takes as much as it says in its settings.
        while frames.take().await.unwrap().kind != SETTINGS {}
        frames.write(SETTINGS, ACK, 0, &[]).await;
        frames
    }

    async fn write(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend(payload);
        // Whether the other side is gone, reading tells.
        let _ = self.stream.write_all(&frame).await;
    }

    /// Lets so many more bytes come; on all streams together if the stream is 0.
    pub(super) async fn open_window(&mut self, stream: u32, bytes: u32) {
        let bytes = bytes.to_be_bytes();
        self.write(WINDOW_UPDATE, 0, stream, &bytes).await;
    }

    pub(super) async fn reset(&mut self, stream: u32) {
        let code = CANCEL.to_be_bytes();
        self.write(RST_STREAM, 0, stream, &code).await;
    }

    /// Calls a tool, in the modern era unless the headers name a session.
    pub(super) async fn call(
        &mut self,
        stream: u32,
        tool: &str,
        arguments: Value,
        headers: &[(String, String)],
    ) {
        let modern = headers.is_empty();
        let mut meta = json!({ "progressToken": stream });
        let mut named = vec![
            (":method", "POST"),
            (":scheme", "http"),
            (":path", "/mcp"),
            ("content-type", "application/json"),
            ("accept", "application/json, text/event-stream"),
        ];
        if modern {
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            named.extend([
                ("mcp-protocol-version", "2026-07-28"),
                ("mcp-method", "tools/call"),
                ("mcp-name", tool),
            ]);
        }
        let authority = self.authority.clone();
        named.insert(1, (":authority", &authority));
        let session = headers.iter().map(|(name, value)| (&**name, &**value));
        named.extend(
            session.filter(|(name, _)| name.starts_with("Mcp-") || *name == "MCP-Protocol-Version"),
        );
        let mut block = Vec::new();
        for (name, value) in named {
            // A literal that is not indexed, without Huffman's code.
            block.push(0);
            text(&mut block, &name.to_ascii_lowercase());
            text(&mut block, value);
        }
        self.write(HEADERS, END_HEADERS, stream, &block).await;
        let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
        let body =
            json!({ "jsonrpc": "2.0", "id": stream, "method": "tools/call", "params": params });
        let body = body.to_string().into_bytes();
        let mut pieces = body.chunks(16_384).peekable();
        while let Some(piece) = pieces.next() {
            let flags = if pieces.peek().is_none() {
                END_STREAM
            } else {
                0
            };
            self.write(DATA, flags, stream, piece).await;
        }
    }

    /// The next frame; `None` at the end of the connection.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        let next = tokio::time::timeout(PATIENCE, self.next_ever());
        next.await.expect("a frame in time")
    }

    async fn next_ever(&mut self) -> Option<Frame> {
        loop {
            let frame = self.take().await?;
            match frame.kind {
                SETTINGS if frame.flags & ACK == 0 => self.write(SETTINGS, ACK, 0, &[]).await,
                PING if frame.flags & ACK == 0 && !self.ignores_pings => {
                    self.write(PING, ACK, 0, &frame.payload).await;
                }
                SETTINGS | PING | WINDOW_UPDATE => {}
                _ => return Some(frame),
            }
        }
    }

    async fn take(&mut self) -> Option<Frame> {
        loop {
            if self.read.len() >= 9 {
                let length = u32::from_be_bytes([0, self.read[0], self.read[1], self.read[2]]);
                let end = 9 + length as usize;
                if self.read.len() >= end {
                    let rest = self.read.split_off(end);
                    let frame = std::mem::replace(&mut self.read, rest);
                    let stream = <[u8; 4]>::try_from(&frame[5..9]).unwrap();
                    return Some(Frame {
                        kind: frame[3],
                        flags: frame[4],
                        stream: u32::from_be_bytes(stream),
                        payload: frame[9..].to_vec(),
                    });
                }
            }
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// The next frame of this kind.
    pub(super) async fn until(&mut self, kind: u8) -> Frame {
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let frame = self.next().await.expect("the connection should be open");
                if frame.kind == kind {
                    return frame;
                }
            }
        });
        found.await.expect("this kind of frame in time")
    }

    /// The data of a stream until it ends.
    pub(super) async fn body(&mut self, stream: u32) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let frame = self.next().await.expect("the connection should be open");
            if frame.stream != stream {
                continue;
            }
            assert_ne!(frame.kind, RST_STREAM, "stream {stream} was reset");
            if frame.kind == DATA {
                body.extend(&frame.payload);
            }
            if frame.ends_its_stream() {
                return body;
            }
        }
    }

    /// Waits for the end of the connection, after whatever is still on its way.
    pub(super) async fn ends(&mut self) {
        let ended = tokio::time::timeout(PATIENCE, async { while self.next().await.is_some() {} });
        ended.await.expect("it should be closed in time");
    }
}

/// A text of HPACK, its length first.
fn text(block: &mut Vec<u8>, text: &str) {
    let length = text.len();
    match u8::try_from(length) {
        Ok(length) if length < 127 => block.push(length),
        _ => {
            block.push(127);
            let mut rest = length - 127;
            while rest >= 128 {
                block.push((rest % 128) as u8 | 128);
                rest /= 128;
            }
            block.push(rest as u8);
        }
    }
    block.extend(text.bytes());
}
