//! Invariants that hold in every state, checked from inside the engine.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::super::exchange::Abandoned;
use super::super::handlers::HandlerState;
use super::super::queue::Owner;
use super::*;

/// A rule that was broken, and how.
#[derive(Clone, Debug)]
pub(super) struct Broken {
    pub(super) rule: &'static str,
    pub(super) how: String,
}

pub(super) fn broken<T>(rule: &'static str, how: impl Into<String>) -> Result<T, Broken> {
    let how = how.into();
    Err(Broken { rule, how })
}

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.rule, self.how)
    }
}

impl Engine {
    /// Checks the invariants of the module's documentation, and their consequences.
    pub(super) fn check(&self) -> Result<(), Broken> {
        if !self.requests.is_balanced() {
            return broken("ledger", format!("{:?}", self.requests.ledger));
        }
        self.check_timers()?;
        self.check_frames()?;
        self.check_handlers_and_children()?;
        self.check_exchanges()?;
        if self.is_idle() {
            self.check_holds_nothing()?;
        }
        Ok(())
    }

    /// Invariant 1: there is no timer for something that is over.
    fn check_timers(&self) -> Result<(), Broken> {
        for timer in self.timers.all() {
            let alive = match timer {
                Timer::Call(id) => self.requests.call(id).is_some(),
                Timer::Request(key) => self
                    .requests
                    .serving(key)
                    .is_some_and(|serving| serving.deadline.is_some()),
                Timer::Handler(key) => self.handlers.iter().any(|(known, handler)| {
                    known == key && matches!(handler.state, HandlerState::Stopping { .. })
                }),
                Timer::Exchange(id) => self
                    .exchanges
                    .get(id)
                    .is_some_and(|exchange| exchange.timer.is_some()),
                Timer::EarlyCancel => self.early_cancels.len() > 0,
                Timer::Closing => !self.is_closed(),
            };
            if !alive {
                return broken("nothing is kept after the end", format!("{timer:?}"));
            }
        }
        self.check_due()
    }

    /// Conversely, everything with a deadline has a timer.
    fn check_due(&self) -> Result<(), Broken> {
        let calls = self.requests.calls().iter();
        let calls = calls.map(|(id, call)| (Timer::Call(id), call.clocks.next()));
        let requests = self.requests.all_serving().iter().map(|(key, serving)| {
            let until = serving.deadline.as_ref().map(|(until, _)| *until);
            (Timer::Request(key), until)
        });
        let exchanges = self.exchanges.iter();
        let exchanges = exchanges.map(|(id, exchange)| (Timer::Exchange(id), exchange.timer));
        for (timer, due) in calls.chain(requests).chain(exchanges) {
            if due.is_some_and(|due| !self.timers.is_set(timer, due)) {
                return broken("deadline-covers-all", format!("{timer:?} is never due"));
            }
        }
        Ok(())
    }

    /// Invariants 1, 3 and 4: every frame in a queue belongs to something that is not over.
    fn check_frames(&self) -> Result<(), Broken> {
        for (id, exchange) in self.exchanges.iter() {
            for (begun, owner) in exchange.queue.owners() {
                let alive = match owner {
                    Owner::Call(call) => begun || self.requests.call(call).is_some(),
                    Owner::Answer(key) | Owner::Word(key) => {
                        begun || self.requests.serving(key).is_some()
                    }
                    Owner::Cancel(_) | Owner::Refusal | Owner::Nobody => true,
                };
                if !alive {
                    return broken("silence", format!("{owner:?} still waits on {id:?}"));
                }
            }
        }
        // Conversely, every answer is in a queue.
        for (key, serving) in self.requests.all_serving().iter() {
            let waits = |exchange: &Exchange| {
                let mut owners = exchange.queue.owners();
                owners.any(|waiting| waiting == (false, Owner::Answer(key)))
            };
            let answered = matches!(serving.stage, Stage::Answering(_));
            if answered && !self.exchanges.iter().any(|(_, exchange)| waits(exchange)) {
                return broken("answered-or-gone", format!("the answer to {key:?} is lost"));
            }
        }
        Ok(())
    }

    /// **stop-is-real** and **tree**: no handler runs and no call is in flight for a request that
    /// is over.
    fn check_handlers_and_children(&self) -> Result<(), Broken> {
        for (key, handler) in self.handlers.iter() {
            let waited_for = self
                .requests
                .serving(key)
                .is_some_and(|serving| !matches!(serving.stage, Stage::Answering(_)));
            if handler.state == HandlerState::Running && !waited_for {
                return broken("stop-is-real", format!("{key:?} runs for nobody"));
            }
        }
        for (id, call) in self.requests.calls().iter() {
            let orphan = call.serves.is_some_and(|parent| {
                let parent = self.requests.serving(parent);
                parent.is_none_or(|parent| matches!(parent.stage, Stage::Answering(_)))
            });
            if orphan {
                return broken("tree", format!("{id:?} outlives what it was made for"));
            }
        }
        Ok(())
    }

    fn check_exchanges(&self) -> Result<(), Broken> {
        for (id, exchange) in self.exchanges.iter() {
            let serving = self.requests.all_serving();
            let unanswered = serving.keys_where(|serving| serving.exchange == id).len();
            if unanswered != exchange.unanswered {
                let how = format!(
                    "{id:?}: {} counted, {unanswered} there",
                    exchange.unanswered
                );
                return broken("ledger", how);
            }
            let working = serving
                .keys_where(|serving| {
                    serving.exchange == id && !matches!(serving.stage, Stage::Answering(_))
                })
                .len();
            if working != exchange.working {
                let how = format!("{id:?}: {} work, {working} there", exchange.working);
                return broken("ledger", how);
            }
        }
        for (id, exchange) in self.exchanges.iter() {
            let theirs = matches!(exchange.purpose, Purpose::Theirs { .. });
            let waited_for = exchange.unanswered > 0;
            if theirs && exchange.broken && waited_for && exchange.timer.is_none() {
                let how = format!("{id:?} is broken, and its requests run for ever");
                return broken("stops-with-its-caller", how);
            }
        }
        for (id, call) in self.requests.calls().iter() {
            let there = self.exchanges.get(call.exchange).is_some();
            if !there {
                return broken(
                    "no-hang",
                    format!("{id:?} waits on an exchange that is gone"),
                );
            }
        }
        Ok(())
    }

    /// Whether the engine is idle.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.calls().is_empty()
            && self.requests.all_serving().is_empty()
            && self.handlers() == 0
            && self.exchanges.iter().all(|(_, exchange)| {
                let given_up = matches!(exchange.purpose, Purpose::Abandoned(_) | Purpose::Lane);
                exchange.queue.is_empty() && !given_up
            })
            && self.events.is_empty()
            && self.transmits.is_empty()
            && self.early_cancels.len() == 0
            && !self.closing.refuses_requests()
    }

    fn check_holds_nothing(&self) -> Result<(), Broken> {
        if let Some(timer) = self.timers.all().next() {
            return broken("an idle engine holds nothing", format!("{timer:?}"));
        }
        let left = self.exchanges.iter().find(|(id, exchange)| {
            let unread = matches!(exchange.purpose, Purpose::Theirs { read: false, .. });
            *id != LINK && !unread
        });
        match left {
            Some((id, exchange)) => broken(
                "an idle engine holds nothing",
                format!("{id:?} is {:?}", exchange.purpose),
            ),
            None => Ok(()),
        }
    }

    /// Whether the cancel of a call is queued, or is being written.
    pub(super) fn announcement_waits(&self, call: CallId) -> bool {
        let mut exchanges = self.exchanges.iter();
        exchanges.any(|(id, _)| self.carries_cancel(id, call)) || self.cancel_is_held(call)
    }

    /// Whether the cancel of a call is held back until its request has arrived.
    pub(super) fn cancel_is_held(&self, call: CallId) -> bool {
        let mut exchanges = self.exchanges.iter();
        exchanges.any(|(_, exchange)| {
            matches!(
                &exchange.purpose,
                Purpose::Abandoned(Abandoned::Unannounced { cancel, .. })
                    if cancel.owner == Owner::Cancel(call)
            )
        })
    }

    /// Whether the cancel of a call is queued on this exchange.
    pub(super) fn carries_cancel(&self, exchange: ExchangeId, call: CallId) -> bool {
        let exchange = self.exchanges.get(exchange);
        exchange.is_some_and(|exchange| {
            let mut owners = exchange.queue.owners();
            owners.any(|(_, owner)| owner == Owner::Cancel(call))
        })
    }

    /// A hash of everything that decides the engine's future behaviour. The time and the ledger are
    /// left out, and exchanges count by their contents, not by their ids.
    pub(super) fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        let h = &mut hasher;
        (
            &self.handshake,
            self.closing.fingerprint(),
            self.early_cancels.len(),
        )
            .hash(h);
        for (id, call) in self.requests.calls().iter() {
            let clocks = [Clock::Idle, Clock::Total].map(|clock| call.clocks.is_armed(clock));
            let progress = call.progress.map(f64::to_bits);
            (
                id,
                call.kind,
                call.serves,
                self.exchange_print(call.exchange),
            )
                .hash(h);
            (call.sent, call.delivery, clocks, progress).hash(h);
        }
        for (key, serving) in self.requests.all_serving().iter() {
            let progress = serving.progress.map(f64::to_bits);
            let exchange = self.exchange_print(serving.exchange);
            (key, exchange, serving.stage, progress).hash(h);
            serving.deadline.is_some().hash(h);
        }
        for (key, handler) in self.handlers.iter() {
            (key, handler.grace, std::mem::discriminant(&handler.state)).hash(h);
        }
        let exchanges = self.exchanges.iter();
        let mut exchanges: Vec<u64> = exchanges.map(|(id, _)| self.exchange_print(id)).collect();
        exchanges.sort_unstable();
        exchanges.hash(h);
        for event in &self.events {
            std::mem::discriminant(event).hash(h);
            match event {
                Event::Ended { call, outcome, .. } => (call, outcome.end()).hash(h),
                Event::Progress { call, .. } => call.hash(h),
                Event::Request(incoming) => incoming.key.hash(h),
                Event::Stop { request, .. } | Event::Abort { request } => request.hash(h),
                _ => {}
            }
        }
        self.transmits.len().hash(h);
        hasher.finish()
    }

    /// A hash of one incoming request with its own exchange, independent of its key.
    pub(super) fn request_print(&self, key: RequestKey) -> u64 {
        let mut hasher = DefaultHasher::new();
        let h = &mut hasher;
        if let Some(serving) = self.requests.serving(key) {
            (serving.stage, serving.progress.map(f64::to_bits)).hash(h);
            serving.deadline.is_some().hash(h);
        }
        if let Some((_, handler)) = self.handlers.iter().find(|(known, _)| *known == key) {
            (handler.grace, std::mem::discriminant(&handler.state)).hash(h);
        }
        let speaks_of = |owner| matches!(owner, Owner::Word(of) | Owner::Answer(of) if of == key);
        let exchange = self.exchanges.iter().find(|(id, exchange)| {
            let serving = self.requests.serving(key);
            serving.is_some_and(|serving| serving.exchange == *id)
                || exchange.queue.owners().any(|(_, owner)| speaks_of(owner))
        });
        if let Some((_, exchange)) = exchange {
            (&exchange.purpose, self.queue_print(exchange)).hash(h);
        }
        hasher.finish()
    }

    /// A hash of one outgoing call with its own exchange, independent of its id.
    pub(super) fn call_print(&self, id: CallId, on: ExchangeId) -> u64 {
        let mut hasher = DefaultHasher::new();
        let h = &mut hasher;
        if let Some(call) = self.requests.call(id) {
            let clocks = [Clock::Idle, Clock::Total].map(|clock| call.clocks.is_armed(clock));
            let progress = call.progress.map(f64::to_bits);
            (call.sent, call.delivery, clocks, progress).hash(h);
        }
        let mut on = Some(on);
        while let Some(exchange) = on.take().and_then(|on| self.exchanges.get(on)) {
            std::mem::discriminant(&exchange.purpose).hash(h);
            match &exchange.purpose {
                Purpose::Abandoned(Abandoned::Announced(cancel)) => on = Some(*cancel),
                Purpose::Abandoned(Abandoned::Unannounced { until, .. }) => {
                    (exchange.timer == Some(*until)).hash(h);
                }
                _ => {}
            }
            self.queue_print(exchange).hash(h);
        }
        hasher.finish()
    }

    /// A hash of the frames on an exchange, independent of their owners.
    fn queue_print(&self, exchange: &Exchange) -> u64 {
        let mut hasher = DefaultHasher::new();
        (exchange.broken, exchange.timer.is_some()).hash(&mut hasher);
        for (begun, owner) in exchange.queue.owners() {
            (begun, std::mem::discriminant(&owner)).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// A hash of an exchange: its purpose and its contents.
    fn exchange_print(&self, id: ExchangeId) -> u64 {
        let mut hasher = DefaultHasher::new();
        let h = &mut hasher;
        let Some(exchange) = self.exchanges.get(id) else {
            return 0;
        };
        match &exchange.purpose {
            Purpose::Abandoned(Abandoned::Announced(cancel)) => {
                self.exchange_print(*cancel).hash(h)
            }
            Purpose::Abandoned(Abandoned::Unannounced { cancel, until }) => {
                (cancel, exchange.timer == Some(*until)).hash(h);
            }
            purpose => purpose.hash(h),
        }
        for key in self
            .requests
            .all_serving()
            .keys_where(|serving| serving.exchange == id)
        {
            key.hash(h);
        }
        (id == LINK, exchange.broken, exchange.timer.is_some()).hash(h);
        for owner in exchange.queue.owners() {
            owner.hash(h);
        }
        hasher.finish()
    }
}
