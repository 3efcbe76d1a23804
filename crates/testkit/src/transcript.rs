//! The messages of one connection, recorded from outside.

use std::collections::HashMap;

use serde_json::Value;

/// Records the requests sent to one side and the answers that came back, and checks that they match
/// (**answered-or-gone**).
///
/// A ledger can be balanced although an answer is missing; this type looks at the frames
/// themselves. Record every frame of a connection, then call [`check`](Self::check). A batch counts
/// as the frames in it.
///
/// Progress is checked against **order** and **silence**. Progress for a token that no request
/// named is an error.
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
    /// By id as JSON text, so that `7` is not `"7"`.
    requests: HashMap<String, Seen>,
    /// The id of the request that named each progress token.
    tokens: HashMap<String, String>,
    /// How many requests wait for an answer.
    open: usize,
    /// The first frame that must not have come.
    broken: Option<String>,
}

#[derive(Clone, Default, Debug)]
struct Seen {
    sent: usize,
    cancelled: bool,
    cut: bool,
    /// Its cancel was certainly read, so nothing may come for it any more.
    silent: bool,
    answers: usize,
    refusals: usize,
    progress: Option<f64>,
}

impl Seen {
    fn is_excused(&self) -> bool {
        self.cancelled || self.cut
    }

    fn is_open(&self) -> bool {
        !self.is_excused() && self.answers < self.sent
    }

    fn is_wrong(&self) -> bool {
        match self.is_excused() {
            true => self.answers > self.sent,
            false => self.answers != self.sent,
        }
    }

    fn unanswered(&self) -> usize {
        self.sent.saturating_sub(self.answers)
    }
}

impl Transcript {
    /// Records a frame sent to the observed side. Frames that are not JSON are skipped.
    pub fn sent(&mut self, frame: &[u8]) {
        for message in messages(frame) {
            let (id, method) = (message.get("id"), message["method"].as_str());
            match (id, method) {
                (Some(id), Some(_)) => {
                    if let Some(token) = message.pointer("/params/_meta/progressToken") {
                        self.tokens.insert(token.to_string(), id.to_string());
                    }
                    self.change(id.to_string(), |seen| seen.sent += 1);
                }
                (None, Some("notifications/cancelled")) => {
                    let id = message["params"]["requestId"].to_string();
                    self.change(id, |seen| seen.cancelled = true);
                }
                _ => {}
            }
        }
    }

    /// Records a frame from the observed side.
    pub fn received(&mut self, frame: &[u8]) {
        for message in messages(frame) {
            if message["method"] == "notifications/progress" {
                self.progress(&message["params"]);
            }
            let id = message.get("id").filter(|id| !id.is_null());
            if let (Some(id), None) = (id, message.get("method")) {
                self.answer(id.to_string(), message.get("error").is_some());
            }
        }
    }

    /// The requesting side has cut the connection: open requests need no answer any more.
    pub fn cut(&mut self) {
        for seen in self.requests.values_mut().filter(|seen| seen.is_open()) {
            seen.cut = true;
        }
        self.open = 0;
    }

    /// The same for one request, whose own stream was cut.
    pub fn cut_request(&mut self, id: &Value) {
        self.change(id.to_string(), |seen| seen.cut = true);
    }

    /// The observed side has read every cancel sent so far, because it has answered a later message
    /// on the same pipe. From here on nothing may come for the cancelled requests (**silence**).
    pub fn cancels_were_read(&mut self) {
        for seen in self.requests.values_mut().filter(|seen| seen.cancelled) {
            seen.silent = true;
        }
    }

    /// How many requests were sent.
    pub fn requests(&self) -> usize {
        self.requests.values().map(|seen| seen.sent).sum()
    }

    /// How many answers came, including errors.
    pub fn answers(&self) -> usize {
        self.requests.values().map(|seen| seen.answers).sum()
    }

    /// How many of the answers were errors.
    pub fn refusals(&self) -> usize {
        self.requests.values().map(|seen| seen.refusals).sum()
    }

    /// How many requests were cancelled and got no answer.
    pub fn cancelled(&self) -> usize {
        let cancelled = self.requests.values().filter(|seen| seen.cancelled);
        cancelled.map(Seen::unanswered).sum()
    }

    /// How many requests were cut off and got no answer.
    pub fn cut_off(&self) -> usize {
        let cut = self.requests.values();
        let cut = cut.filter(|seen| seen.cut && !seen.cancelled);
        cut.map(Seen::unanswered).sum()
    }

    /// How many requests wait for an answer.
    pub fn open(&self) -> usize {
        self.open
    }

    /// Checks that every request has exactly one answer, or at most one if it was cancelled or cut
    /// off. The error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if let Some(broken) = &self.broken {
            return Err(broken.clone());
        }
        let wrong = |seen: &&Seen| seen.is_wrong();
        let count = self.requests.values().filter(wrong).count();
        let first = self.requests.iter().find(|(_, seen)| seen.is_wrong());
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

    fn answer(&mut self, id: String, is_error: bool) {
        match self.requests.get(&id) {
            None => self.broken(format!("answered-or-gone: nobody asked for {id}")),
            Some(seen) if seen.silent => {
                self.broken(format!("silence: an answer to {id} after its cancel"));
            }
            Some(_) => self.change(id, |seen| {
                seen.answers += 1;
                seen.refusals += usize::from(is_error);
            }),
        }
    }

    fn progress(&mut self, params: &Value) {
        let token = params["progressToken"].to_string();
        let Some(id) = self.tokens.get(&token) else {
            return self.broken(format!("order: nobody asked for progress {token}"));
        };
        let value = params["progress"].as_f64();
        let Some(seen) = self.requests.get_mut(id) else {
            return;
        };
        let last = std::mem::replace(&mut seen.progress, value);
        let wrong = if seen.silent {
            format!("silence: progress of {id} after its cancel")
        } else if seen.answers >= seen.sent {
            format!("order: progress of {id} after its answer")
        } else if value <= last {
            format!("order: progress of {id} is {value:?} after {last:?}")
        } else {
            return;
        };
        self.broken(wrong);
    }

    fn broken(&mut self, how: String) {
        self.broken.get_or_insert(how);
    }

    fn change(&mut self, id: String, change: impl FnOnce(&mut Seen)) {
        let seen = self.requests.entry(id).or_default();
        let before = usize::from(seen.is_open());
        change(seen);
        self.open = self.open - before + usize::from(seen.is_open());
    }
}

/// The messages in a frame: none if it is not JSON, several if it is a batch.
fn messages(frame: &[u8]) -> Vec<Value> {
    match serde_json::from_slice(frame) {
        Ok(Value::Array(batch)) => batch,
        Ok(message) => vec![message],
        Err(_) => Vec::new(),
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

    #[test]
    fn what_was_cut_off_needs_no_answer() {
        let mut transcript = Transcript::default();
        for id in 1..=3 {
            transcript.sent(format!(r#"{{"id":{id},"method":"ping"}}"#).as_bytes());
        }
        transcript.received(br#"{"id":1,"result":{}}"#);
        transcript.cut_request(&2.into());
        assert_eq!((transcript.open(), transcript.cut_off()), (1, 1));
        transcript.cut();
        assert_eq!((transcript.open(), transcript.cut_off()), (0, 2));
        assert_eq!(transcript.check(), Ok(()));
        transcript.received(br#"{"id":1,"result":{}}"#);
        assert!(transcript.check().is_err(), "1 was answered twice");
    }

    #[test]
    fn a_batch_is_the_messages_in_it() {
        let mut transcript = Transcript::default();
        transcript.sent(br#"[{"id":1,"method":"ping"},{"id":2,"method":"ping"}]"#);
        transcript.received(br#"[{"id":2,"result":{}}]"#);
        assert_eq!((transcript.requests(), transcript.open()), (2, 1));
    }

    #[test]
    fn progress_grows_and_ends_with_its_request() {
        let progress = |value: u32| {
            let params = format!(r#"{{"progressToken":"t","progress":{value}}}"#);
            format!(r#"{{"method":"notifications/progress","params":{params}}}"#)
        };
        let call = r#"{"id":7,"method":"m","params":{"_meta":{"progressToken":"t"}}}"#;
        let answer = r#"{"id":7,"result":{}}"#;
        let [one, two] = [progress(1), progress(2)];
        for (received, right) in [
            ([one.as_str(), two.as_str(), answer], true),
            ([two.as_str(), one.as_str(), answer], false),
            ([one.as_str(), one.as_str(), answer], false),
            ([one.as_str(), answer, two.as_str()], false),
        ] {
            assert_eq!(of(&[call], &received).is_ok(), right, "{received:?}");
        }
        assert!(of(&[], &[&one]).is_err());
    }

    #[test]
    fn nothing_comes_once_a_cancel_was_read() {
        let call = br#"{"id":7,"method":"m","params":{"_meta":{"progressToken":7}}}"#;
        let progress =
            br#"{"method":"notifications/progress","params":{"progressToken":7,"progress":1}}"#;
        for late in [&progress[..], br#"{"id":7,"result":{}}"#] {
            let mut transcript = Transcript::default();
            transcript.sent(call);
            transcript.sent(br#"{"method":"notifications/cancelled","params":{"requestId":7}}"#);
            let mut at_once = transcript.clone();
            at_once.received(late);
            assert_eq!(at_once.check(), Ok(()), "its write may have begun");
            transcript.cancels_were_read();
            assert_eq!((transcript.check(), transcript.cancelled()), (Ok(()), 1));
            transcript.received(late);
            assert!(transcript.check().is_err());
        }
    }
}
