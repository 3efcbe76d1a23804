//! Checks what one raw worker wrote and read in one life against the rules.
//!
//! It knows frames, and nothing of the engine: the ids that were written, the answers that were
//! read, and what each answer has to contain.

use std::collections::HashMap;

use belay_testkit::Transcript;
use serde_json::{Value, json};

use crate::Done;
use crate::ask::Ask;

/// The era that a worker uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Era {
    Legacy,
    Modern,
}

pub(crate) struct Observer {
    /// Unique to this worker and this life, so that no other echo contains it.
    name: String,
    era: Era,
    last: u64,
    asked: HashMap<String, Ask>,
    transcript: Transcript,
    /// Malformed frames that were sent; each needs an error without an id.
    malformed: usize,
    unaddressed: usize,
    wrong: Option<String>,
}

impl Observer {
    pub(crate) fn new(name: String, era: Era) -> Self {
        Self {
            name,
            era,
            last: 0,
            asked: HashMap::new(),
            transcript: Transcript::default(),
            malformed: 0,
            unaddressed: 0,
            wrong: None,
        }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.era == Era::Modern
    }

    /// Creates a request. Its id is also its progress token. Every third id is a string.
    pub(crate) fn ask(&mut self, ask: Ask) -> Request {
        self.last += 1;
        let id = match self.last % 3 {
            0 => json!(format!("id {}", self.last)),
            _ => json!(self.last),
        };
        self.ask_as(id, ask)
    }

    /// Creates a request with a given id, which may be in use.
    pub(crate) fn ask_as(&mut self, id: Value, ask: Ask) -> Request {
        let (method, mut params) = ask.request(&self.tag(&id));
        let mut meta = json!({ "progressToken": id });
        if self.era == Era::Modern {
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        params["_meta"] = meta;
        self.asked.insert(id.to_string(), ask);
        Request {
            frame: json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
            id,
        }
    }

    /// Creates the handshake of a legacy session.
    pub(crate) fn initialize(&mut self, version: &str) -> Request {
        let mut request = self.ask(Ask::Initialize);
        request.frame["params"] = json!({
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": { "name": "soak", "version": "1" }
        });
        request
    }

    fn tag(&self, id: &Value) -> String {
        format!("{} {id}", self.name)
    }

    /// Records a frame that is about to be written.
    pub(crate) fn sent(&mut self, frame: &[u8]) {
        match serde_json::from_slice::<Value>(frame) {
            Ok(value) if value.get("method").is_some() || value.is_array() => {
                let malformed = value.get("id").is_some_and(Value::is_array);
                self.malformed += usize::from(malformed);
                if !malformed {
                    self.transcript.sent(frame);
                }
            }
            _ => self.malformed += 1,
        }
    }

    /// Records a frame that was read.
    pub(crate) fn received(&mut self, frame: &[u8]) {
        match serde_json::from_slice(frame) {
            Ok(Value::Array(_)) | Err(_) => {
                let shown = String::from_utf8_lossy(&frame[..frame.len().min(200)]);
                self.wrong(format!("this is no message: {shown}"));
            }
            Ok(message) => self.message(&message),
        }
    }

    /// Records a decoded message.
    pub(crate) fn message(&mut self, message: &Value) {
        self.transcript.received(message.to_string().as_bytes());
        if message.get("method").is_some() {
            return;
        }
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            self.unaddressed += 1;
            return;
        };
        let tag = self.tag(id);
        let asked = self.asked.get(&id.to_string());
        if let Some(ask) = asked
            && !ask.is_answered_by(&tag, message)
        {
            let said = message.to_string();
            let said: String = said.chars().take(300).collect();
            self.wrong(format!("{ask:?} as {tag:?} was answered with {said}"));
        }
    }

    /// Records that an HTTP status refused the one request that was posted, with a body that names
    /// no id.
    pub(crate) fn refused_by_status(&mut self, id: &Value) {
        let answer = json!({ "id": id, "error": {} });
        self.transcript.received(answer.to_string().as_bytes());
    }

    pub(crate) fn transcript(&mut self) -> &mut Transcript {
        &mut self.transcript
    }

    /// Whether everything has been answered.
    pub(crate) fn is_settled(&self) -> bool {
        self.transcript.open() == 0 && self.unaddressed >= self.malformed
    }

    /// The worker has cut the connection, so no more answers are expected.
    pub(crate) fn cut(&mut self) {
        self.transcript.cut();
        self.malformed = self.unaddressed;
    }

    /// The hangs ended with their process, so they need no answer.
    pub(crate) fn cut_hangs(&mut self) {
        let hangs = self.asked.iter().filter(|(_, ask)| **ask == Ask::Hang);
        for (id, _) in hangs {
            if let Ok(id) = serde_json::from_str(id) {
                self.transcript.cut_request(&id);
            }
        }
    }

    fn wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    pub(crate) fn counts(&self) -> Counts {
        let transcript = &self.transcript;
        Counts {
            requests: transcript.requests(),
            answered: transcript.answers() - transcript.refusals(),
            refused: transcript.refusals(),
            cancelled: transcript.cancelled(),
            cut: transcript.cut_off(),
        }
    }

    pub(crate) fn check(&self) -> Done {
        if let Some(wrong) = &self.wrong {
            return Err(wrong.clone());
        }
        self.transcript.check()?;
        match self.unaddressed == self.malformed {
            true => Ok(()),
            false => Err(format!(
                "answered-or-gone: {} malformed frames, {} errors about them",
                self.malformed, self.unaddressed
            )),
        }
    }
}

/// A request that has not been sent yet.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) id: Value,
    pub(crate) frame: Value,
}

impl Request {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.frame.to_string().into_bytes()
    }

    /// The notification that cancels it.
    pub(crate) fn cancel(&self) -> Vec<u8> {
        cancel(&self.id)
    }
}

pub(crate) fn cancel(id: &Value) -> Vec<u8> {
    let params = json!({ "requestId": id, "reason": "soak" });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
        .to_string()
        .into_bytes()
}

pub(crate) fn initialized() -> Vec<u8> {
    br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#.to_vec()
}

/// The outcomes of requests. Each request is counted in one of the fields after the first.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Counts {
    pub(crate) requests: usize,
    pub(crate) answered: usize,
    pub(crate) refused: usize,
    pub(crate) cancelled: usize,
    pub(crate) cut: usize,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.requests += other.requests;
        self.answered += other.answered;
        self.refused += other.refused;
        self.cancelled += other.cancelled;
        self.cut += other.cut;
    }
}
