//! A scripted peer.

use std::time::Duration;

use belay::transport::MemoryEnd;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines};
use tokio::time::timeout;

/// How long a test waits for an expected message. It is generous, so that a busy machine does not
/// fail a test.
const PATIENCE: Duration = Duration::from_secs(10);

/// One side of a connection, which a test plays message by message. It knows no rules, so it can
/// break them.
///
/// For tests only: methods panic if the expected message does not come.
pub struct Peer {
    lines: Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>>,
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
}

impl Peer {
    /// Creates a peer on a pair of byte streams.
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let reader: Box<dyn AsyncRead + Send + Unpin> = Box::new(reader);
        Self {
            lines: BufReader::new(reader).lines(),
            writer: Some(Box::new(writer)),
        }
    }

    /// Creates a peer, and the other end of the pipe to it.
    pub fn pipe() -> (Self, MemoryEnd) {
        let ((reader, writer), other) = belay::transport::memory();
        (Self::new(reader, writer), other)
    }

    /// Receives the next message. `None` if the other side has closed its end.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub async fn hear(&mut self) -> Option<Value> {
        let line = timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.expect("nothing came for ten seconds");
        let line = line.expect("the pipe should be readable")?;
        Some(serde_json::from_str(&line).expect("every line is JSON"))
    }

    /// Receives the next message, which must have this method.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub async fn expect(&mut self, method: &str) -> Value {
        let message = self.hear().await;
        let message = message.unwrap_or_else(|| panic!("expected {method}, but the pipe ended"));
        assert_eq!(message["method"], method, "{message}");
        message
    }

    /// Receives the next message, which must be the answer to our request with this id.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub async fn expect_answer(&mut self, id: impl Into<Value>) -> Value {
        let message = self
            .hear()
            .await
            .expect("expected an answer, but the pipe ended");
        assert_eq!(message["id"], id.into(), "{message}");
        assert_eq!(message.get("method"), None, "{message}");
        message
    }

    /// Expects that no message comes for this long. Use it with paused time, or sparingly.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no message.
    pub async fn expect_silence(&mut self, span: Duration) {
        if let Ok(line) = timeout(span, self.lines.next_line()).await {
            panic!("expected silence, and heard {line:?}");
        }
    }

    /// Sends a message.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a part of the message may have been sent.
    pub async fn say(&mut self, message: Value) {
        self.say_raw(&format!("{message}\n")).await;
    }

    /// Sends arbitrary bytes.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a part of the bytes may have been sent.
    pub async fn say_raw(&mut self, text: impl AsRef<[u8]>) {
        let writer = self.writer.as_mut().expect("it has not hung up");
        let said = timeout(PATIENCE, writer.write_all(text.as_ref())).await;
        said.expect("nobody reads")
            .expect("the pipe should be writable");
        let _ = writer.flush().await;
    }

    /// Sends a request.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a part of the message may have been sent.
    pub async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        let id: Value = id.into();
        self.say(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
    }

    /// Sends a notification.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a part of the message may have been sent.
    pub async fn tell(&mut self, method: &str, params: Value) {
        self.say(json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Answers a request.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, a part of the message may have been sent.
    pub async fn answer(&mut self, request: &Value, result: Value) {
        let id = &request["id"];
        self.say(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
            .await;
    }

    /// Closes the sending direction. Messages can still be received.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the direction is closed all the same.
    pub async fn hang_up(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            // An explicit shutdown, since the writer may be one half of a stream whose other half
            // stays open.
            let _ = writer.shutdown().await;
        }
    }

    /// Plays the handshake of a modern server with a client that has just connected.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the handshake stays incomplete.
    pub async fn open_modern(&mut self) {
        let probe = self.expect("server/discover").await;
        let introduction = json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": { "tools": {} }
        });
        self.answer(&probe, introduction).await;
    }

    /// Plays the handshake of a legacy server, with or without an era probe before it.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the handshake stays incomplete.
    pub async fn open_legacy(&mut self) {
        let mut asked = self.hear().await.expect("expected a handshake");
        if asked["method"] == "server/discover" {
            let id = &asked["id"];
            let error = json!({ "code": -32601, "message": "no such method" });
            self.say(json!({ "jsonrpc": "2.0", "id": id, "error": error }))
                .await;
            asked = self.expect("initialize").await;
        }
        let introduction = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {}, "resources": { "subscribe": true } },
            "serverInfo": { "name": "scripted", "version": "1" }
        });
        self.answer(&asked, introduction).await;
        self.expect("notifications/initialized").await;
    }

    /// Plays the handshake of a legacy client that has just connected.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the handshake stays incomplete.
    pub async fn initialize(&mut self) {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": { "elicitation": {} },
            "clientInfo": { "name": "scripted", "version": "1" }
        });
        self.ask("initialize", "initialize", params).await;
        self.expect_answer("initialize").await;
        self.tell("notifications/initialized", json!({})).await;
    }
}

impl std::fmt::Debug for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Peer")
    }
}
