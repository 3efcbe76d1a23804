//! Frames waiting to be written, the exchange each one goes to, and the effect of writing it.
//!
//! Every frame goes out through [`Engine::push`] or [`Engine::push_cancel`], into the queue of one
//! exchange. The transport takes frames from there; it has no queue of its own.

use bytes::Bytes;

use super::exchange::Purpose;
use super::queue::{Frame, Owner};
use super::requests::Delivery;
use super::{
    CallId, Closing, Engine, ExchangeId, Rejection, RequestKey, Sent, Time, Transmit, Waiting,
    Wire, planted,
};

impl<C: Clone + Default, H: Default, X: Default> Engine<C, H, X> {
    /// The frames waiting to be written on this exchange, in order. None of them has begun.
    ///
    /// A frame that was not written stays in the queue, and may be gone the next time because its
    /// request was given up. A transport that writes several frames at once must report each of
    /// them, in order, before it gives the engine any other input. A transport that cannot do that
    /// takes them one by one, with [`Engine::begin_write`].
    pub fn queued(&self, exchange: ExchangeId) -> impl Iterator<Item = &Bytes> {
        let exchange = self.exchanges.get(exchange);
        exchange
            .into_iter()
            .flat_map(|exchange| exchange.queue.waiting())
            .map(|frame| &frame.bytes)
    }

    /// The kind of the first waiting frame, for a transport that has to choose a response head.
    pub fn first_waiting(&self, exchange: ExchangeId) -> Option<Waiting> {
        let frame = self.exchanges.get(exchange)?.queue.waiting().next()?;
        Some(frame.kind())
    }

    /// The kind of the last waiting frame. If it is an answer, and the exchange carries one
    /// request, everything that will be sent on the exchange is in its queue.
    pub fn last_waiting(&self, exchange: ExchangeId) -> Option<Waiting> {
        let frame = self.exchanges.get(exchange)?.queue.waiting().next_back()?;
        Some(frame.kind())
    }

    /// Begins to write the first waiting frame and returns its bytes. From now on the frame counts
    /// as handed to the operating system, and is not withdrawn any more.
    pub fn begin_write(&mut self, now: Time, exchange: ExchangeId) -> Option<Bytes> {
        let known = self.exchanges.get_mut(exchange)?;
        let Frame { bytes, owner, .. } = known.queue.begin()?;
        match owner {
            Owner::Call(call) => {
                if let Some(call) = self.requests.call_mut(call) {
                    call.sent = call.sent.max(Sent::Maybe);
                }
            }
            Owner::Answer(key) => self.answer_begun(now, key),
            _ => {}
        }
        self.settle(now);
        Some(bytes)
    }

    /// Like [`begin_write`](Self::begin_write), but only if the first waiting frame is this one. A
    /// POST is made for one frame, sends its length, and may have to wait for a connection. If the
    /// frame was withdrawn meanwhile, no other frame goes out in its place.
    pub fn begin_write_of(
        &mut self,
        now: Time,
        exchange: ExchangeId,
        frame: &Bytes,
    ) -> Option<Bytes> {
        let first = self.queued(exchange).next()?;
        let same = first.as_ptr() == frame.as_ptr() && first.len() == frame.len();
        same.then(|| self.begin_write(now, exchange)).flatten()
    }

    /// The last byte of the first frame that has begun was handed to the operating system. A
    /// message that gets no answer is a POST on HTTP as well: there this means that its POST has
    /// ended, whatever the response was.
    pub fn handle_write_done(&mut self, now: Time, exchange: ExchangeId) {
        let Some(known) = self.exchanges.get_mut(exchange) else {
            return;
        };
        let is_lane = known.purpose == Purpose::Lane;
        match known.queue.finish() {
            Some(Owner::Call(id)) => self.call_delivered(now, id, exchange, Delivery::Written(now)),
            // Each POST has its own timeout.
            Some(_) if is_lane => {
                self.set_timer(exchange, Some(now + self.config.timeouts.other_post))
            }
            _ => {}
        }
        self.settle(now);
    }

    /// The head of the response to a POST has come, so the peer has the request. Clients only.
    pub fn handle_acknowledged(&mut self, now: Time, exchange: ExchangeId) {
        let known = self.exchanges.get(exchange);
        match known.map(|known| &known.purpose) {
            Some(Purpose::Call(id)) => {
                let id = *id;
                self.call_delivered(now, id, exchange, Delivery::Acknowledged(now));
            }
            Some(Purpose::Abandoned(_)) => {
                self.announce_when_delivered(now, exchange, Delivery::Acknowledged(now));
            }
            _ => {}
        }
        self.settle(now);
    }

    /// Records how far the POST of a call has come. The call may have been given up meanwhile.
    fn call_delivered(&mut self, now: Time, id: CallId, exchange: ExchangeId, how: Delivery) {
        match self.requests.call_mut(id) {
            None => self.announce_when_delivered(now, exchange, how),
            // The response head can come before the last byte of the request has left.
            Some(call) if matches!(call.delivery, Delivery::Incomplete | Delivery::Written(_)) => {
                call.delivery = how;
            }
            Some(_) => {}
        }
    }

    /// Whether the next message should be read from the transport. Ask before each one: every
    /// message that is read gets its answer (**answered-or-gone**), so a message that cannot be
    /// answered now has to stay in the transport.
    ///
    /// This is the backpressure: reading pauses only while more answers wait to be written than the
    /// limits allow. A client on a pipe never pauses, so that two full pipes cannot wait for each
    /// other (**bounded**).
    pub fn wants_input(&self) -> bool {
        self.always_reads() || !self.answers_pile_up()
    }

    fn always_reads(&self) -> bool {
        self.is_client() && self.config.wire == Wire::Pipe
    }

    /// Whether a server sends requests and reads no answers, on a pipe where a client must not
    /// pause.
    pub(super) fn is_flooded(&self) -> bool {
        let bytes = || self.exchanges.sums().answer_bytes;
        self.always_reads() && bytes() > self.config.limits.queued_bytes
    }

    /// Whether any answer waits to be written.
    pub(super) fn answers_wait(&self) -> bool {
        self.exchanges.sums().answers > 0
    }

    /// Whether more answers wait to be written than the limits allow.
    pub(super) fn answers_pile_up(&self) -> bool {
        let limits = &self.config.limits;
        let sums = self.exchanges.sums();
        sums.answers > limits.queued_answers || sums.answer_bytes > limits.queued_bytes
    }

    /// The exchange that a frame goes to. A pipe has one. A client that posts opens an exchange for
    /// each call, and a lane for notifications and answers. A server on HTTP uses the exchange of
    /// the request that the frame belongs to, otherwise the GET stream. A server on an event stream
    /// has only that stream.
    pub(super) fn outlet(
        &mut self,
        now: Time,
        serves: Option<RequestKey>,
        purpose: Purpose,
    ) -> ExchangeId {
        match (self.config.wire, self.is_client()) {
            (Wire::Pipe, _) | (Wire::EventStream, false) => ExchangeId::LINK,
            (Wire::Http | Wire::EventStream, true) => match purpose {
                Purpose::Lane => self.lane(now, serves),
                purpose => self.open_exchange(purpose),
            },
            (Wire::Http, false) => self.served_exchange(serves),
        }
    }

    /// The lane for a client's notifications and answers: that of the request they belong to,
    /// otherwise a new one. It has a timeout, since no caller waits for it.
    fn lane(&mut self, now: Time, serves: Option<RequestKey>) -> ExchangeId {
        let serving = serves.and_then(|key| self.requests.serving(key));
        let open = serving
            .and_then(|serving| serving.lane)
            .filter(|lane| self.exchanges.get(*lane).is_some());
        if let Some(lane) = open {
            return lane;
        }
        let lane = self.open_exchange(Purpose::Lane);
        self.set_timer(lane, Some(now + self.config.timeouts.other_post));
        if let Some(serving) = serves.and_then(|key| self.requests.serving_mut(key)) {
            serving.lane = Some(lane);
        }
        lane
    }

    fn served_exchange(&self, serves: Option<RequestKey>) -> ExchangeId {
        serves
            .and_then(|key| self.requests.serving(key))
            .map(|serving| serving.exchange)
            .filter(|exchange| self.exchanges.get(*exchange).is_some())
            .unwrap_or(ExchangeId::LINK)
    }

    /// Checks that the queue which these bytes would go to has room for them.
    pub(super) fn check_bytes(
        &self,
        bytes: usize,
        serves: Option<RequestKey>,
    ) -> Result<(), Rejection> {
        let limits = &self.config.limits;
        // A message larger than the whole queue would never find room.
        let limit = limits.message_bytes.min(limits.queued_bytes);
        if bytes > limit {
            return Err(Rejection::MessageTooLarge { limit });
        }
        let queued = match (self.config.wire, self.is_client()) {
            (Wire::Pipe, _) | (Wire::EventStream, false) => self.queued_bytes(ExchangeId::LINK),
            (Wire::Http | Wire::EventStream, true) => self.exchanges.sums().ordinary_bytes,
            (Wire::Http, false) => self.queued_bytes(self.served_exchange(serves)),
        };
        match queued + bytes <= limits.queued_bytes {
            true => Ok(()),
            false => Err(Rejection::QueueFull {
                limit: limits.queued_bytes,
            }),
        }
    }

    /// Bytes of all frames waiting to be written, on every exchange, plus
    /// [`Engine::FRAME_OVERHEAD`] for each: the memory that the peer costs by not reading. Frames
    /// whose write has begun are with the transport and do not count.
    pub fn output_bytes(&self) -> usize {
        self.exchanges.sums().output_bytes()
    }

    /// The same, for the exchange that carries messages on behalf of this request. Without a
    /// request that is the GET stream of an HTTP server.
    pub fn output_bytes_for(&self, serves: Option<RequestKey>) -> usize {
        let exchange = self.exchanges.get(self.served_exchange(serves));
        exchange.map_or(0, |exchange| exchange.queue.sums().output_bytes())
    }

    fn queued_bytes(&self, exchange: ExchangeId) -> usize {
        let exchange = self.exchanges.get(exchange);
        exchange.map_or(0, |exchange| exchange.queue.sums().ordinary_bytes)
    }

    pub(super) fn push(&mut self, exchange: ExchangeId, frame: Frame) {
        self.enqueue(exchange, frame, false);
    }

    /// Puts a cancel into its queue, ahead of all frames that have not begun. It stays there as
    /// long as the link lives (**cancel-never-waits**).
    pub(super) fn push_cancel(&mut self, exchange: ExchangeId, frame: Frame) {
        // A broken exchange may never be resumed, and the peer should learn of the cancel now.
        let exchange = match self.exchanges.get(exchange) {
            Some(known) if !known.broken => exchange,
            _ => ExchangeId::LINK,
        };
        self.enqueue(exchange, frame, true);
    }

    fn enqueue(&mut self, exchange: ExchangeId, frame: Frame, is_cancel: bool) {
        // Only planted bugs use this.
        let answers_wait = cfg!(belay_planted) && self.answers_wait();
        let Some(known) = self.exchanges.get_mut(exchange) else {
            return;
        };
        for frame in planted::written(frame, &known.queue, answers_wait) {
            match planted::is_ahead(is_cancel, frame.owner) {
                true => known.queue.push_cancel(frame),
                false => known.queue.push(frame),
            }
        }
        self.notice(exchange);
    }

    /// Sends a frame that belongs to no request.
    pub(super) fn send_notice(&mut self, now: Time, frame: Frame) -> ExchangeId {
        let exchange = self.outlet(now, None, Purpose::Lane);
        self.push(exchange, frame);
        exchange
    }

    /// Tells the transport to write on this exchange, unless it is broken or was told already.
    pub(super) fn notice(&mut self, exchange: ExchangeId) {
        if let Some(known) = self.exchanges.get_mut(exchange)
            && !known.broken
            && !known.queue.is_empty()
            && !std::mem::replace(&mut known.noticed, true)
        {
            self.transmits.push_back(Transmit::Write(exchange));
        }
    }

    /// Removes frames that have not begun from the queue of an exchange. An exchange that was
    /// opened only for them is closed.
    pub(super) fn withdraw(&mut self, from: ExchangeId, matches: impl Fn(Owner) -> bool) {
        let Some(exchange) = self.exchanges.get_mut(from) else {
            return;
        };
        let withdrawn = exchange
            .queue
            .withdraw(|owner| matches(owner) && planted::is_withdrawn(owner));
        let ours = matches!(exchange.purpose, Purpose::Call(_) | Purpose::Lane);
        if withdrawn > 0 && ours && exchange.queue.is_empty() {
            self.close_exchange(from, Closing::Abandoned);
        }
    }
}
