//! What passed on one connection, seen from outside.

use std::collections::HashMap;

use serde_json::Value;

/// The requests that were sent to one side, against the answers that came back from it
/// (**answered-or-gone**).
///
/// A ledger can be balanced while an answer is missing; this looks at the frames themselves. Record
/// every frame of a connection, then [`check`](Self::check).
///
/// ```
/// use belay_testkit::Transcript;
///
/// let mut transcript = Transcript::default();
/// transcript.sent(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
/// assert!(transcript.check().is_err(), "1 got no answer");
/// transcript.received(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
/// assert!(transcript.check().is_ok());
/// ```
#[derive(Clone, Default, Debug)]
pub struct Transcript {
    /// By id, as it is written in JSON: `7` is not `"7"`.
    requests: HashMap<String, Seen>,
    /// Answers to requests that were never sent.
    strays: Vec<String>,
}

#[derive(Clone, Default, Debug)]
struct Seen {
    sent: usize,
    cancelled: bool,
    answers: usize,
    refusals: usize,
}

impl Transcript {
    /// A frame went to the side that is looked at. What is no JSON is passed over.
    pub fn sent(&mut self, frame: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(frame) else {
            return;
        };
        let (id, method) = (message.get("id"), message["method"].as_str());
        match (id, method) {
            (Some(id), Some(_)) => self.request(id).sent += 1,
            (None, Some("notifications/cancelled")) => {
                self.request(&message["params"]["requestId"]).cancelled = true;
            }
            _ => {}
        }
    }

    /// A frame came from the side that is looked at.
    pub fn received(&mut self, frame: &[u8]) {
        let Ok(message) = serde_json::from_slice::<Value>(frame) else {
            return;
        };
        let Some(id) = message.get("id").filter(|id| !id.is_null()) else {
            return;
        };
        if message.get("method").is_some() {
            return;
        }
        let is_error = message.get("error").is_some();
        match self.requests.get_mut(&id.to_string()) {
            Some(seen) => {
                seen.answers += 1;
                seen.refusals += usize::from(is_error);
            }
            None => self.strays.push(id.to_string()),
        }
    }

    /// How many requests were sent.
    pub fn requests(&self) -> usize {
        self.requests.values().map(|seen| seen.sent).sum()
    }

    /// How many answers came, errors included.
    pub fn answers(&self) -> usize {
        self.requests.values().map(|seen| seen.answers).sum()
    }

    /// How many of the answers were errors.
    pub fn refusals(&self) -> usize {
        self.requests.values().map(|seen| seen.refusals).sum()
    }

    /// Whether every request has exactly one answer; at most one, if it was cancelled. Tells what is
    /// wrong. If the connection is gone, there is nothing to check.
    pub fn check(&self) -> Result<(), String> {
        if let Some(id) = self.strays.first() {
            return Err(format!("answered-or-gone: nobody asked for {id}"));
        }
        let wrong = |seen: &&Seen| match seen.cancelled {
            true => seen.answers > seen.sent,
            false => seen.answers != seen.sent,
        };
        let count = self.requests.values().filter(wrong).count();
        let first = self.requests.iter().find(|(_, seen)| wrong(seen));
        match first {
            None => Ok(()),
            Some((id, seen)) => Err(format!(
                "answered-or-gone: {count} of {} requests, {id} among them: sent {}, answered {}",
                self.requests(),
                seen.sent,
                seen.answers
            )),
        }
    }

    fn request(&mut self, id: &Value) -> &mut Seen {
        self.requests.entry(id.to_string()).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(sent: &[&str], received: &[&str]) -> Result<(), String> {
        let mut transcript = Transcript::default();
        for frame in sent {
            transcript.sent(frame.as_bytes());
        }
        for frame in received {
            transcript.received(frame.as_bytes());
        }
        transcript.check()
    }

    #[test]
    fn each_request_wants_one_answer() {
        let (ping, answer) = (r#"{"id":7,"method":"ping"}"#, r#"{"id":7,"result":{}}"#);
        let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
        for (sent, received, right) in [
            (&[ping][..], &[answer][..], true),
            (&[ping], &[], false),
            (&[ping], &[answer, answer], false),
            (&[ping], &[r#"{"id":"7","result":{}}"#], false),
            (&[ping], &[r#"{"id":null,"error":{}}"#], false),
            (&[ping, cancel], &[], true),
            (&[ping, cancel], &[answer], true),
            (&[ping, cancel], &[answer, answer], false),
            (&[], &[answer], false),
            (&[], &[ping], true),
        ] {
            assert_eq!(of(sent, received).is_ok(), right, "{sent:?} {received:?}");
        }
    }
}
