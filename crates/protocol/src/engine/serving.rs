//! The answering side: an incoming request from its beginning to its end.
//!
//! ```text
//!   request ──► Admitted ── told to the application ──► Running ── respond ──► Answering
//!                  │                                       │                       │
//!                  │ cancelled, lost:                      │ cancelled, lost:      │ write begun
//!                  │ it never starts                       │ stop the handler      ▼
//!                  ▼                                       ▼                 Answered, Refused
//!              Cancelled, Lost ◄───── the answer is withdrawn ─── (until its write has begun)
//! ```
//!
//! The same state decides whether an answer may be written and whether a cancel ends the request.
//! So after a cancel nothing more is sent for that request, but a frame that is partly written is
//! finished (**silence**).

use std::time::Duration;

use bytes::Bytes;

use crate::jsonrpc::{ErrorObject, RawJson, RequestId, ResultFrame};
use crate::types::{EmptyResult, Meta, ResultType, error_code, meta_key};

use super::deadline::Timer;
use super::exchange::Purpose;
use super::queue::{Frame, Owner};
use super::requests::{Kind, Serving, Stage};
use super::{
    By, CallId, Closing, End, Engine, ExchangeId, Identity, Outcome, Rejection, RequestKey,
    StopCause, Time, encode,
};

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// A handler has returned an answer. The answer is written, unless its request is over
    /// (**silence**). Returns the application's data for the handler.
    pub fn respond(
        &mut self,
        now: Time,
        key: RequestKey,
        answer: Result<RawJson, ErrorObject>,
    ) -> Option<H> {
        let kept = self.handler_ended(key);
        if self.speaking(key).is_some() {
            self.answer(now, key, &answer);
        }
        self.settle(now);
        kept
    }

    /// The same for a result that was already encoded as a frame, with the id of its request.
    pub fn respond_with(&mut self, now: Time, key: RequestKey, result: ResultFrame) -> Option<H> {
        let kept = self.handler_ended(key);
        if self.speaking(key).is_some() {
            match self.check_length(result.result_len()) {
                Err(error) => self.answer(now, key, &Err(error)),
                Ok(()) => self.answer_with(now, key, End::Answered, None, |_| result.into_frame()),
            }
        }
        self.settle(now);
        kept
    }

    /// A handler is gone without an answer: it was dropped, or it panicked. If its request is not
    /// over, the caller gets an internal error without any detail (**panic-fence**). Returns the
    /// application's data for the handler.
    pub fn handler_gone(&mut self, now: Time, key: RequestKey) -> Option<H> {
        let kept = self.handler_ended(key);
        if let Some(Stage::Running) = self.requests.serving(key).map(|serving| serving.stage) {
            let error = ErrorObject::new(error_code::INTERNAL_ERROR, "internal error");
            self.answer(now, key, &Err(error));
        }
        self.settle(now);
        kept
    }

    /// Sends progress for a request, if its caller asked for progress. A value that does not grow,
    /// or that comes after the end, is dropped and counted (**order**, **silence**).
    pub fn progress(
        &mut self,
        now: Time,
        key: RequestKey,
        progress: f64,
        total: Option<f64>,
        message: Option<&str>,
    ) -> Result<(), Rejection> {
        let Some(serving) = self.speaking(key) else {
            return Ok(());
        };
        let grows = progress.is_finite() && serving.progress.is_none_or(|last| progress > last);
        if !grows {
            self.requests.ledger.stale_progress += 1;
            return Ok(());
        }
        if let Some(token) = serving.token.clone() {
            let bytes = encode::progress(&token, progress, total, message);
            self.say(now, Some(key), bytes)?;
        }
        // Only after it was queued: progress that found no room may be sent again.
        if let Some(serving) = self.speaking(key) {
            serving.progress = Some(progress);
        }
        Ok(())
    }

    /// Sends a notification to the peer, on behalf of an incoming request or of none. If that
    /// request is over, the notification is dropped and counted (**silence**).
    pub fn notify(
        &mut self,
        now: Time,
        serves: Option<RequestKey>,
        method: &str,
        params: Option<&RawJson>,
    ) -> Result<(), Rejection> {
        if let Some(key) = serves
            && self.speaking(key).is_none()
        {
            return Ok(());
        }
        self.say(now, serves, encode::notification(method, params))
    }

    /// Gives a handler a grace period to clean up in when it is stopped (**stop-is-real**): the
    /// given one, or the configured one because it took its token. A given grace stands, whether
    /// the handler takes its token before or after.
    pub fn grant_grace(&mut self, key: RequestKey, grace: Option<Duration>) {
        let configured = self.config.timeouts.handler_grace;
        if let Some(handler) = self.handlers.get_mut(key) {
            match grace {
                Some(said) => handler.grace = Some(said),
                None => _ = handler.grace.get_or_insert(configured),
            }
        }
    }

    /// Gives a handler a deadline. When it passes, `answer` is sent and the handler is stopped.
    pub fn set_deadline(&mut self, now: Time, key: RequestKey, after: Duration, answer: RawJson) {
        let until = now + after;
        let working = self.requests.serving_mut(key);
        if let Some(serving) = working.filter(|serving| serving.stage.is_working()) {
            let before = serving.deadline.replace((until, answer));
            let before = before.map(|(until, _)| until);
            self.timers.reset(Timer::Request(key), before, Some(until));
        }
    }

    /// Queues the answer to a request.
    fn answer(&mut self, now: Time, key: RequestKey, answer: &Result<RawJson, ErrorObject>) {
        let length = answer.as_ref().map_or(0, |result| result.as_bytes().len());
        if let Err(error) = self.check_length(length) {
            return self.answer(now, key, &Err(error));
        }
        let error = answer.as_ref().err().map(|error| error.code);
        self.answer_with(now, key, Stage::end_of(answer), error, |id| {
            encode::answer(id, answer)
        });
    }

    fn check_length(&self, bytes: usize) -> Result<(), ErrorObject> {
        let limit = self.config.limits.message_bytes;
        if bytes <= limit {
            return Ok(());
        }
        let problem = format!("the answer is larger than {limit} bytes");
        Err(ErrorObject::new(error_code::INTERNAL_ERROR, problem))
    }

    fn answer_with(
        &mut self,
        now: Time,
        key: RequestKey,
        end: End,
        error: Option<i64>,
        frame: impl FnOnce(&RequestId) -> Bytes,
    ) {
        self.give_up_children(now, key, By::Caller);
        let Some(serving) = self.requests.serving_mut(key) else {
            return;
        };
        serving.stage = Stage::Answering(end);
        let due = serving.deadline.take().map(|(until, _)| until);
        let (exchange, bytes) = (serving.exchange, frame(&serving.id));
        self.timers.reset(Timer::Request(key), due, None);
        self.work_ended(now, exchange);
        self.push_answer(now, key, bytes, error);
    }

    /// Queues an answer. Answers have reserved capacity, but no priority: an answer leaves after
    /// everything that was sent before it (**order**).
    pub(super) fn push_answer(
        &mut self,
        now: Time,
        key: RequestKey,
        bytes: Bytes,
        error: Option<i64>,
    ) {
        let exchange = self.outlet(now, Some(key), Purpose::Lane);
        let owner = Owner::Answer(key);
        let frame = Frame {
            bytes,
            owner,
            error,
        };
        self.push(exchange, frame);
    }

    /// The write of an answer has begun, so it cannot be withdrawn, and the request is over.
    pub(super) fn answer_begun(&mut self, now: Time, key: RequestKey) {
        if let Some(Stage::Answering(end)) = self.requests.serving(key).map(|serving| serving.stage)
            && let Some(serving) = self.end_serving(now, key, end)
        {
            self.mark_closing(serving.exchange, Closing::Finished);
        }
    }

    /// Ends an incoming request. This is the only place that does.
    fn end_serving(&mut self, now: Time, key: RequestKey, end: End) -> Option<Serving> {
        let serving = self.requests.end_serving(key, end)?;
        let due = serving.deadline.as_ref().map(|(until, _)| *until);
        self.timers.reset(Timer::Request(key), due, None);
        if let Some(exchange) = self.exchanges.get_mut(serving.exchange) {
            exchange.unanswered -= 1;
        }
        if serving.stage.is_working() {
            self.work_ended(now, serving.exchange);
        }
        self.remember_over(now, &serving.id);
        Some(serving)
    }

    /// Ends a request whose caller does not wait any more: frames on its behalf that have not left
    /// are withdrawn, calls on its behalf are given up (**tree**), and its handler is stopped.
    pub(super) fn stop(&mut self, now: Time, key: RequestKey, cause: StopCause) {
        let end = match cause {
            StopCause::Lost => End::Lost,
            _ => End::Cancelled,
        };
        let Some(serving) = self.end_serving(now, key, end) else {
            return;
        };
        let own = |owner| owner == Owner::Answer(key) || owner == Owner::Word(key);
        self.withdraw(serving.exchange, own);
        if let Some(lane) = serving.lane {
            self.withdraw(lane, own);
        }
        // Frames of a request whose own exchange is gone are queued on the link instead.
        if serving.exchange != ExchangeId::LINK {
            self.withdraw(ExchangeId::LINK, own);
        }
        let by = match cause {
            StopCause::Shutdown => By::Shutdown,
            _ => By::Peer,
        };
        self.give_up_all(now, serving.children, by);
        self.mark_closing(serving.exchange, Closing::Silent);
        match serving.stage {
            Stage::Admitted => drop(self.handlers.gone(key)),
            Stage::Running | Stage::Answering(_) => self.stop_handler(now, key, cause),
        }
    }

    /// Gives up the calls that were made on behalf of a request (**tree**).
    fn give_up_children(&mut self, now: Time, parent: RequestKey, by: By) {
        let children = self.requests.serving_mut(parent);
        let children = children.map(|serving| std::mem::take(&mut serving.children));
        self.give_up_all(now, children.unwrap_or_default(), by);
    }

    fn give_up_all(&mut self, now: Time, calls: Vec<CallId>, by: By) {
        for call in calls {
            let reason = "the request it was made for is over";
            let outcome = |sent| Outcome::Cancelled {
                by,
                reason: Some(reason.into()),
                sent,
            };
            self.give_up(now, call, outcome, reason);
        }
    }

    /// The deadline of a request has passed: the prepared answer is sent instead of the handler's.
    pub(super) fn request_due(&mut self, now: Time, key: RequestKey) {
        let answer = self
            .requests
            .serving(key)
            .and_then(|serving| serving.deadline.clone());
        if let Some((_, answer)) = answer {
            self.answer_instead(now, key, &answer, StopCause::Deadline);
        }
    }

    fn answer_instead(&mut self, now: Time, key: RequestKey, answer: &RawJson, cause: StopCause) {
        let stage = self.requests.serving(key).map(|serving| serving.stage);
        match stage {
            None | Some(Stage::Answering(_)) => {}
            Some(Stage::Admitted) => {
                self.answer(now, key, &Ok(answer.clone()));
                self.handlers.gone(key);
            }
            Some(Stage::Running) => {
                self.answer(now, key, &Ok(answer.clone()));
                self.stop_handler(now, key, cause);
            }
        }
    }

    /// A server ends its listens with a result before it closes, so that a client knows that no
    /// notification was lost.
    pub(super) fn end_listens(&mut self, now: Time) {
        let listens = self
            .requests
            .all_serving()
            .keys_where(|serving| serving.kind == Kind::Listen);
        for key in listens {
            let Some(serving) = self.requests.serving(key) else {
                continue;
            };
            let mut meta = Meta::default();
            meta.set(meta_key::SUBSCRIPTION_ID, &serving.id)
                .expect("an id is always valid JSON");
            if let Identity::Server { info, .. } = &self.config.identity {
                meta.set(meta_key::SERVER_INFO, info)
                    .expect("our own types are always valid JSON");
            }
            let mut result = EmptyResult::new();
            result.result_type = Some(ResultType::Complete);
            result.meta = Some(meta);
            let result = RawJson::encode(&result).expect("our own types are always valid JSON");
            self.answer_instead(now, key, &result, StopCause::Shutdown);
        }
    }

    /// Whether messages on behalf of this request are still sent (**silence**).
    pub fn is_working(&self, key: RequestKey) -> bool {
        let serving = self.requests.serving(key);
        serving.is_some_and(|serving| serving.stage.is_working())
    }

    /// Whether progress of this request is still sent: only if its caller asked for progress.
    pub fn wants_progress(&self, key: RequestKey) -> bool {
        let serving = self.requests.serving(key);
        serving.is_some_and(|serving| serving.stage.is_working() && serving.token.is_some())
    }

    /// The request, if messages on its behalf are still sent; otherwise counts a silenced one.
    fn speaking(&mut self, key: RequestKey) -> Option<&mut Serving> {
        if !self.is_working(key) {
            self.requests.ledger.silenced += 1;
            return None;
        }
        self.requests.serving_mut(key)
    }

    fn say(
        &mut self,
        now: Time,
        serves: Option<RequestKey>,
        bytes: Bytes,
    ) -> Result<(), Rejection> {
        if self.is_closed() {
            return Err(Rejection::Closed);
        }
        self.check_bytes(bytes.len(), serves)?;
        let exchange = self.outlet(now, serves, Purpose::Lane);
        let owner = serves.map_or(Owner::Nobody, Owner::Word);
        self.push(exchange, Frame::new(owner, bytes));
        Ok(())
    }
}
