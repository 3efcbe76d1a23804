//! Tests of the engine. They are synchronous, and advance the time by hand.

mod announcing;
mod answered;
mod answers;
mod closing;
mod conversations;
mod deadlines;
mod exchanges;
mod explore;
mod handshake;
mod invariants;
mod kept;
mod limits;
mod monitor;
#[cfg(belay_planted)]
mod planted;
mod polling;
mod races;
mod requests;

use std::time::Duration;

use bytes::Bytes;

use crate::jsonrpc::{self, Message, RawJson};
use crate::types::{ClientCapabilities, Era, Implementation, ProtocolVersion, ServerCapabilities};

use super::*;

const LINK: ExchangeId = ExchangeId::LINK;

/// An engine, the time, and a peer whose messages are plain text.
#[derive(Clone)]
struct Harness {
    engine: Engine,
    now: Time,
}

impl Harness {
    fn new(config: Config) -> Self {
        Self {
            engine: Engine::new(config),
            now: Time::START,
        }
    }

    /// A client after the handshake.
    fn client(era: Era, wire: Wire) -> Self {
        let mut harness = Self::new(client_config(wire));
        harness.connect(era);
        harness
    }

    /// A server after the handshake.
    fn server(era: Era, wire: Wire) -> Self {
        let mut harness = Self::new(server_config(wire));
        if era == Era::Legacy {
            harness.be_initialized();
        }
        harness
    }

    /// Completes a client's handshake without leaving a frame in its queue.
    fn connect(&mut self, era: Era) {
        let (handshake, version) = match era {
            Era::Legacy => {
                let version = ProtocolVersion::LATEST_LEGACY;
                (Handshake::Legacy(version), version)
            }
            Era::Modern => {
                let version = ProtocolVersion::LATEST;
                (Handshake::Modern(version), version)
            }
        };
        self.engine.handshake = handshake;
        if era == Era::Modern {
            let meta = encode::ClientMeta::new(&self.engine.config.identity, version);
            self.engine.client_meta = Some(meta);
        }
    }

    fn be_initialized(&mut self) {
        self.engine.handshake = Handshake::Legacy(ProtocolVersion::LATEST_LEGACY);
    }

    fn pass(&mut self, span: Duration) {
        self.now = self.now + span;
        self.engine.handle_timeout(self.now);
    }

    fn call(&mut self, method: &str) -> CallId {
        self.ask(Ask::new(method, RawJson::empty_object()))
    }

    fn ask(&mut self, ask: Ask) -> CallId {
        self.engine
            .request(self.now, ask)
            .expect("the call should begin")
    }

    /// Receives a message on the link.
    fn hear(&mut self, json: &str) {
        self.hear_on(LINK, json);
    }

    fn hear_on(&mut self, exchange: ExchangeId, json: &str) {
        let frame = Bytes::copy_from_slice(json.as_bytes());
        match jsonrpc::decode(&frame, 64) {
            Ok(message) => self.engine.handle_message(self.now, exchange, message),
            Err(error) => self.engine.handle_malformed(self.now, exchange, &error),
        }
    }

    /// Receives a POST.
    fn post(&mut self, json: &str) -> ExchangeId {
        let exchange = self.engine.handle_exchange_opened();
        self.hear_on(exchange, json);
        self.engine.handle_input_ended(self.now, exchange);
        exchange
    }

    /// Receives a request on the link, and starts its handler.
    fn start(&mut self, id: &str) -> RequestKey {
        self.hear(&tool_call(id));
        self.started()
    }

    fn started(&mut self) -> RequestKey {
        match self.engine.poll_event() {
            Some(Event::Request(incoming)) => incoming.key,
            other => panic!("a request should start, not {other:?}"),
        }
    }

    fn respond(&mut self, key: RequestKey) {
        self.engine.respond(self.now, key, Ok(done()));
    }

    fn cancel(&mut self, call: CallId) {
        self.engine.cancel(self.now, call, None);
    }

    fn begin(&mut self) {
        self.engine.begin_write(self.now, LINK);
    }

    fn finish(&mut self) {
        self.engine.handle_write_done(self.now, LINK);
    }

    /// Writes all frames that wait on the link, and returns them.
    fn written(&mut self) -> Vec<String> {
        self.written_on(LINK)
    }

    fn written_on(&mut self, exchange: ExchangeId) -> Vec<String> {
        let mut frames = Vec::new();
        loop {
            let next = self.engine.queued(exchange).next().cloned();
            let Some(frame) = next else { break };
            frames.push(String::from_utf8(frame.to_vec()).unwrap());
            self.engine.begin_write(self.now, exchange);
            self.engine.handle_write_done(self.now, exchange);
        }
        frames
    }

    fn events(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.engine.poll_event()).collect()
    }

    fn transmits(&mut self) -> Vec<Transmit> {
        std::iter::from_fn(|| self.engine.poll_transmit()).collect()
    }

    /// The exchange that the transport has to open next.
    fn opened(&mut self) -> ExchangeId {
        match self.engine.poll_transmit() {
            Some(Transmit::Write(exchange)) => exchange,
            other => panic!("an exchange should be opened, not {other:?}"),
        }
    }

    /// The ends of calls among the events.
    fn ends(&mut self) -> Vec<(CallId, Outcome)> {
        self.events()
            .into_iter()
            .filter_map(|event| match event {
                Event::Ended { call, outcome, .. } => Some((call, outcome)),
                _ => None,
            })
            .collect()
    }

    fn only_end(&mut self) -> Outcome {
        let mut ends = self.ends();
        assert_eq!(ends.len(), 1, "one-end: {ends:?}");
        ends.remove(0).1
    }

    fn lose_link(&mut self) {
        let cause = LossKind::Io.into();
        self.engine
            .handle_exchange_lost(self.now, LINK, cause, false);
    }
}

fn client_config(wire: Wire) -> Config {
    let info = Implementation::new("client", "1");
    Config::client(info, ClientCapabilities::new(), wire)
}

fn server_config(wire: Wire) -> Config {
    let info = Implementation::new("server", "1");
    Config::server(info, ServerCapabilities::new(), wire)
}

fn done() -> RawJson {
    RawJson::parse(r#"{"content":[]}"#).unwrap()
}

/// A legacy `tools/call` whose progress token is its id.
fn tool_call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","_meta":{{"progressToken":{id}}}}}}}"#
    )
}

fn modern_tool_call(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"t","_meta":{{"progressToken":{id},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

fn tool_call_of(era: Era, id: &str) -> String {
    match era {
        Era::Legacy => tool_call(id),
        Era::Modern => modern_tool_call(id),
    }
}

fn answer_to(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

fn error_for(id: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32000,"message":"no"}}}}"#)
}

fn progress_of(token: &str, value: u32) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{value}}}}}"#
    )
}

fn cancel_of(id: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id},"reason":"tired"}}}}"#
    )
}

const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];
