//! Explores every interleaving of three requests on the engine itself.
//!
//! A *plan* lists the requests, with their role, era and wire. There are three of them, except in
//! plans that would be too large. From the empty state every possible action is tried, in every
//! order; equal states are visited once. Actions are not counted: an action may be repeated as long
//! as it changes anything, so "at most twice" is included.
//!
//! The application and the transport may be late. So each of these is an action of its own: the
//! application learns of a request, a write begins, a write ends, a handler ends, a timer fires.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::super::exchange::Abandoned;
use super::super::handlers::HandlerState;
use super::super::requests::Delivery;
use super::invariants::{Broken, broken};
use super::monitor::Monitor;
use super::*;
use crate::jsonrpc::RequestId;

/// The requests of one exploration.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) name: &'static str,
    role: Role,
    era: Era,
    wire: Wire,
    requests: &'static [What],
    /// Limits are tiny: one handler may run, and no answer may wait when the next request is taken.
    narrow: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum What {
    /// An outgoing call.
    Call,
    /// An outgoing listen.
    Listen,
    /// The handshake of a client.
    Opening,
    /// An incoming request.
    Served,
    /// An incoming listen.
    Listened,
    /// An outgoing call on behalf of the first incoming request.
    Child,
}

use Era::{Legacy, Modern};
use Role::{Client, Server};
use What::{Call, Child, Listen, Listened, Opening, Served};
use Wire::{EventStream, Http, Pipe};

#[rustfmt::skip]
pub(super) const PLANS: [Plan; 18] = [
    plan("client legacy pipe", Client, Legacy, Pipe, &[Call, Call, Call]),
    plan("client modern pipe", Client, Modern, Pipe, &[Call, Call, Listen]),
    plan("client legacy http", Client, Legacy, Http, &[Call, Call, Call]),
    plan("client modern http", Client, Modern, Http, &[Call, Call, Listen]),
    plan("client legacy pipe, opening", Client, Legacy, Pipe, &[Opening, Call, Call]),
    plan("client modern pipe, opening", Client, Modern, Pipe, &[Opening, Call, Call]),
    plan("client legacy pipe, asked back", Client, Legacy, Pipe, &[Call, Served, Call]),
    plan("client legacy http, asked back", Client, Legacy, Http, &[Call, Served]),
    plan("server legacy pipe", Server, Legacy, Pipe, &[Served, Served, Served]),
    plan("server modern pipe", Server, Modern, Pipe, &[Served, Served, Served]),
    plan("server legacy http", Server, Legacy, Http, &[Served, Served, Served]),
    plan("server modern http", Server, Modern, Http, &[Served, Served, Listened]),
    plan("server legacy pipe, asking back", Server, Legacy, Pipe, &[Served, Child, Served]),
    narrow("server legacy pipe, narrow", Server, Legacy, Pipe, &[Served, Served, Served]),
    narrow("server modern pipe, narrow", Server, Modern, Pipe, &[Served, Served, Listened]),
    narrow("server legacy http, narrow", Server, Legacy, Http, &[Served, Served]),
    narrow("client legacy pipe, narrow", Client, Legacy, Pipe, &[Served, Served, Call]),
    plan("client event stream", Client, Legacy, EventStream, &[Call, Call, Call]),
];

const fn plan(
    name: &'static str,
    role: Role,
    era: Era,
    wire: Wire,
    requests: &'static [What],
) -> Plan {
    Plan {
        name,
        role,
        era,
        wire,
        requests,
        narrow: false,
    }
}

const fn narrow(
    name: &'static str,
    role: Role,
    era: Era,
    wire: Wire,
    requests: &'static [What],
) -> Plan {
    Plan {
        narrow: true,
        ..plan(name, role, era, wire, requests)
    }
}

/// An action. Numbers are positions in the plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    Next,
    TellApplication,
    WriteBegun(ExchangeId),
    WriteDone(ExchangeId),
    Acknowledged(ExchangeId),
    Answer(usize),
    ErrorAnswer(usize),
    LateProbeAnswer,
    Progress(usize),
    StaleProgress(usize),
    CancelByCaller(usize),
    CancelByPeer(usize),
    EarlyCancel,
    EarlyCancelForgotten,
    IdleDeadline(usize),
    TotalDeadline(usize),
    HandlerDone(usize),
    HandlerFails(usize),
    HandlerProgress(usize),
    HandlerGone(usize),
    HandlerDeadline(usize),
    GraceOver(usize),
    ExchangeLost(ExchangeId, bool),
    ExchangeResumed(ExchangeId),
    ExchangeTimeUp(ExchangeId),
    LinkLost,
    InputEnds,
    HungUp,
    Close,
    CloseTimeUp,
}

#[derive(Clone)]
struct World {
    plan: Plan,
    harness: Harness,
    monitor: Monitor,
    requests: Vec<Begun>,
    /// The call of the era probe, after `initialize` has replaced it in the plan.
    probe: Option<CallId>,
}

/// What the engine made of a request of the plan.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Begun {
    Call {
        id: CallId,
        on: ExchangeId,
    },
    Served {
        key: RequestKey,
    },
    /// It ended before it began.
    Never,
}

/// Visits every state of a plan. Returns the number of states, or the first broken rule with the
/// actions that led to it.
pub(super) fn explore(plan: Plan) -> Result<usize, (Broken, String)> {
    let mut seen = HashSet::new();
    let first = World::new(plan);
    seen.insert(first.fingerprint());
    // Each entry is a state, the actions to be tried in it, and the action that led to it.
    let mut path: Vec<(World, Vec<Action>, Option<Action>)> = Vec::new();
    let actions = first.actions();
    path.push((first, actions, None));
    while let Some((world, actions, _)) = path.last_mut() {
        let Some(action) = actions.pop() else {
            path.pop();
            continue;
        };
        let mut next = world.clone();
        if let Err(broken) = next.take(action) {
            let steps = path.iter().filter_map(|(_, _, action)| *action);
            let trace = steps.chain([action]).map(|step| format!("{step:?}"));
            return Err((broken, trace.collect::<Vec<_>>().join(", ")));
        }
        if seen.insert(next.fingerprint()) {
            let actions = next.actions();
            path.push((next, actions, Some(action)));
        }
    }
    Ok(seen.len())
}

impl World {
    fn new(plan: Plan) -> Self {
        let mut config = match plan.role {
            Client => client_config(plan.wire),
            Server => server_config(plan.wire),
        };
        if plan.narrow {
            config.limits.handlers = 1;
            config.limits.queued_answers = 0;
        }
        let mut harness = Harness::new(config);
        let opens = plan.requests.contains(&Opening);
        match plan.role {
            Client if !opens => harness.connect(plan.era),
            Server if plan.era == Legacy => harness.be_initialized(),
            _ => {}
        }
        Self {
            plan,
            harness,
            monitor: Monitor::default(),
            requests: Vec::new(),
            probe: None,
        }
    }

    /// Whether all requests of the plan are alike and share nothing. Then states that differ only
    /// in the order of the requests count as equal.
    fn is_symmetric(&self) -> bool {
        let all = |what| self.plan.requests.iter().all(|it| *it == what);
        match self.plan.role {
            Client => self.plan.wire != Pipe && self.plan.era == Legacy && all(Call),
            Server => self.remembers_cancels() && !self.plan.narrow,
        }
    }

    fn fingerprint(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        if self.is_symmetric() {
            let prints = (0..self.requests.len()).map(|at| self.request_print(at));
            let mut prints: Vec<u64> = prints.collect();
            prints.sort_unstable();
            prints.hash(&mut hasher);
            self.harness.engine.closing.fingerprint().hash(&mut hasher);
            self.harness.engine.transmits.len().hash(&mut hasher);
            return hasher.finish();
        }
        self.harness.engine.fingerprint().hash(&mut hasher);
        self.monitor.hash(&mut hasher);
        self.requests.len().hash(&mut hasher);
        for begun in &self.requests {
            std::mem::discriminant(begun).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// A hash of the state of one request, which shares nothing with the others.
    fn request_print(&self, at: usize) -> u64 {
        let mut hasher = DefaultHasher::new();
        let engine = &self.harness.engine;
        match self.requests[at] {
            Begun::Served { key } => {
                engine.request_print(key).hash(&mut hasher);
                self.monitor.request_print(key).hash(&mut hasher);
                self.is_untold(key).hash(&mut hasher);
            }
            Begun::Call { id, on } => {
                engine.call_print(id, on).hash(&mut hasher);
                self.monitor.call_print(id).hash(&mut hasher);
            }
            Begun::Never => {}
        }
        let id = RequestId::from(at as i64 + 1);
        engine.early_cancels.memory(&id).hash(&mut hasher);
        self.monitor.answered.print(&id).hash(&mut hasher);
        hasher.finish()
    }

    /// All actions that are possible now.
    fn actions(&self) -> Vec<Action> {
        let engine = &self.harness.engine;
        let mut actions = vec![Action::Close];
        if self.requests.len() < self.plan.requests.len() && self.is_taken() {
            actions.push(Action::Next);
            if self.remembers_cancels() {
                actions.push(Action::EarlyCancel);
            }
        }
        if engine.early_cancels.len() > 0 {
            actions.push(Action::EarlyCancelForgotten);
        }
        if !engine.events.is_empty() {
            actions.push(Action::TellApplication);
        }
        if self.probe.is_some() {
            actions.push(Action::LateProbeAnswer);
        }
        for (at, begun) in self.requests.iter().enumerate() {
            match begun {
                Begun::Call { id, .. } => self.call_actions(at, *id, &mut actions),
                Begun::Served { key } => self.served_actions(at, *key, &mut actions),
                Begun::Never => {}
            }
        }
        for (id, exchange) in engine.exchanges.iter() {
            self.exchange_actions(id, exchange, &mut actions);
        }
        match self.plan.wire {
            Pipe => actions.extend([Action::LinkLost, Action::InputEnds]),
            EventStream => actions.push(Action::LinkLost),
            Http => {}
        }
        // A transport checks for this only while it does not read.
        if self.plan.wire == Pipe && !engine.wants_input() {
            actions.push(Action::HungUp);
        }
        if engine.timers.all().any(|timer| timer == Timer::Closing) {
            actions.push(Action::CloseTimeUp);
        }
        actions
    }

    /// Whether the transport hands over the next request. It asks the engine before each one.
    fn is_taken(&self) -> bool {
        let next = self.plan.requests[self.requests.len()];
        let engine = &self.harness.engine;
        self.plan.wire == Http || !matches!(next, Served | Listened) || engine.wants_input()
    }

    fn call_actions(&self, at: usize, id: CallId, actions: &mut Vec<Action>) {
        actions.extend([
            Action::Answer(at),
            Action::ErrorAnswer(at),
            Action::CancelByCaller(at),
            Action::CancelByPeer(at),
        ]);
        let Some(call) = self.harness.engine.requests.call(id) else {
            actions.push(Action::StaleProgress(at));
            return;
        };
        if call.progress.is_none_or(|value| value < 2.0) {
            actions.push(Action::Progress(at));
        } else {
            actions.push(Action::StaleProgress(at));
        }
        if call.clocks.is_armed(Clock::Idle) {
            actions.push(Action::IdleDeadline(at));
        }
        if call.clocks.is_armed(Clock::Total) {
            actions.push(Action::TotalDeadline(at));
        }
    }

    fn served_actions(&self, at: usize, key: RequestKey, actions: &mut Vec<Action>) {
        actions.push(Action::CancelByPeer(at));
        let engine = &self.harness.engine;
        if let Some(serving) = engine.requests.serving(key)
            && serving.deadline.is_some()
        {
            actions.push(Action::HandlerDeadline(at));
        }
        let Some((_, handler)) = engine.handlers.iter().find(|(known, _)| *known == key) else {
            return;
        };
        if self.is_untold(key) {
            return;
        }
        actions.extend([
            Action::HandlerDone(at),
            Action::HandlerFails(at),
            Action::HandlerGone(at),
        ]);
        let progress = engine
            .requests
            .serving(key)
            .and_then(|serving| serving.progress);
        if progress.is_none_or(|value| value < 2.0) && self.has_room(key) {
            actions.push(Action::HandlerProgress(at));
        }
        if matches!(handler.state, HandlerState::Stopping { .. }) {
            actions.push(Action::GraceOver(at));
        }
    }

    /// Whether a handler may send now. With a longer queue, the orders of the frames in it would be
    /// most of the states.
    fn has_room(&self, key: RequestKey) -> bool {
        let engine = &self.harness.engine;
        let exchange = engine.requests.serving(key).map(|serving| serving.exchange);
        let exchange = exchange.and_then(|exchange| engine.exchanges.get(exchange));
        let limit = if self.plan.wire == Http { 1 } else { 2 };
        exchange.is_none_or(|exchange| exchange.queue.owners().count() < limit)
    }

    /// Whether the application has not learned of this request yet, so that it cannot act on it.
    fn is_untold(&self, key: RequestKey) -> bool {
        let mut events = self.harness.engine.events.iter();
        events.any(|event| matches!(event, Event::Request(incoming) if incoming.key == key))
    }

    fn exchange_actions(&self, id: ExchangeId, exchange: &Exchange, actions: &mut Vec<Action>) {
        if exchange.queue.waiting().next().is_some() {
            actions.push(Action::WriteBegun(id));
        }
        if exchange.queue.has_begun() {
            actions.push(Action::WriteDone(id));
        }
        if id == LINK {
            return;
        }
        if self.can_be_acknowledged(exchange) {
            actions.push(Action::Acknowledged(id));
        }
        actions.push(Action::ExchangeLost(id, false));
        if matches!(exchange.purpose, Purpose::Call(_)) && self.plan.era == Legacy {
            actions.push(Action::ExchangeLost(id, true));
        }
        if exchange.broken {
            actions.push(Action::ExchangeResumed(id));
        }
        if exchange.timer.is_some() {
            actions.push(Action::ExchangeTimeUp(id));
        }
    }

    /// Whether a response head makes a difference now. It can come as soon as a part of the request
    /// was written, and matters only if a cancel waits for it.
    fn can_be_acknowledged(&self, exchange: &Exchange) -> bool {
        let waits = match &exchange.purpose {
            Purpose::Call(call) => {
                let call = self.harness.engine.requests.call(*call);
                call.is_some_and(|call| {
                    let waits =
                        matches!(call.delivery, Delivery::Incomplete | Delivery::Written(_));
                    call.sent != Sent::Never && waits
                })
            }
            purpose => matches!(purpose, Purpose::Abandoned(Abandoned::Unannounced { .. })),
        };
        waits && self.plan.era == Legacy
    }

    /// Performs an action, and checks every rule.
    fn take(&mut self, action: Action) -> Result<(), Broken> {
        let before = self.harness.engine.fingerprint();
        let inert = self.is_inert(action);
        self.act(action)?;
        self.carry_out();
        self.follow_opening();
        if inert && self.harness.engine.fingerprint() != before {
            let rule = match action {
                Action::CancelByPeer(_) => "strays-are-quiet",
                _ => "late-is-inert",
            };
            return broken(rule, format!("{action:?} changed something"));
        }
        if action == Action::TellApplication || !self.tells_late() {
            self.tell_application()?;
        }
        self.harness.engine.check()?;
        self.monitor.check(&self.harness.engine)
    }

    /// Whether a request waits in the events. Other events are delivered at once.
    fn tells_late(&self) -> bool {
        let mut events = self.harness.engine.events.iter();
        events.any(|event| matches!(event, Event::Request(_)))
    }

    fn tell_application(&mut self) -> Result<(), Broken> {
        for event in self.harness.events() {
            self.monitor.event(&event)?;
            match event {
                Event::Request(incoming) => self.handler_started(&incoming),
                Event::Connected(_) | Event::ConnectFailed(_) => {
                    let end = match event {
                        Event::Connected(_) => End::Answered,
                        _ => End::Cancelled,
                    };
                    if let Some(Begun::Call { id, .. }) = self.requests.first().copied() {
                        self.monitor.opening_ended(id, end);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The second handler takes a grace, the third has a deadline. In a symmetric plan all take a
    /// grace.
    fn handler_started(&mut self, incoming: &Incoming) {
        match incoming.id {
            _ if self.is_symmetric() => self.harness.engine.grant_grace(incoming.key, None),
            RequestId::Number(2) => self.harness.engine.grant_grace(incoming.key, None),
            RequestId::Number(3) => {
                let now = self.harness.now;
                let span = Duration::from_secs(5);
                self.harness
                    .engine
                    .set_deadline(now, incoming.key, span, done());
            }
            _ => {}
        }
    }

    /// Carries out the instructions for the transport.
    fn carry_out(&mut self) {
        for transmit in self.harness.transmits() {
            let Transmit::Close { exchange, .. } = transmit else {
                continue;
            };
            for begun in &self.requests {
                if let Begun::Call { id, on } = begun
                    && *on == exchange
                    && self.harness.engine.requests.call(*id).is_none()
                {
                    self.monitor.closed(*id);
                }
            }
        }
    }

    /// When a probe has failed, `initialize` replaces it in the plan.
    fn follow_opening(&mut self) {
        let Handshake::Initializing { call } = self.harness.engine.handshake else {
            return;
        };
        if let Some(Begun::Call { id, .. }) = self.requests.first().copied()
            && id != call
        {
            self.monitor.opening_ended(id, End::Refused);
            self.probe = Some(id);
            self.requests[0] = self.began(call, true);
        }
    }

    /// The peer's answer; for the handshake, one that completes it.
    fn answer(&self, at: usize) -> String {
        let id = self.wire_id(at);
        match self.plan.requests[at] {
            Opening => introduction(id),
            _ => answer_to(&id),
        }
    }

    /// Whether an action must not change the state.
    fn is_inert(&self, action: Action) -> bool {
        let engine = &self.harness.engine;
        match action {
            Action::Answer(at) | Action::ErrorAnswer(at) => match self.requests[at] {
                // The answer makes the waiting cancel unnecessary.
                Begun::Call { id, .. } if engine.cancel_is_held(id) => false,
                Begun::Call { id, .. } => engine
                    .requests
                    .call(id)
                    .is_none_or(|call| call.sent == Sent::Never && self.plan.wire != Http),
                _ => true,
            },
            Action::LateProbeAnswer => true,
            Action::StaleProgress(_) => self.plan.wire != Http,
            Action::CancelByPeer(at) => {
                let id = RequestId::from(at as i64 + 1);
                let listens = self.plan.requests[at] == Listen
                    && matches!(self.requests[at], Begun::Call { id, .. } if engine.requests.call(id).is_some());
                let mut serving = engine.requests.all_serving().iter();
                let names_request = serving.any(|(_, serving)| serving.id == id);
                let without_effect = self.plan.era == Modern && self.plan.wire == Http;
                (!names_request || (without_effect && self.plan.role == Server))
                    && !listens
                    && !self.remembers_cancels()
            }
            _ => false,
        }
    }

    /// Whether a cancel may arrive before its request, because the two are separate POSTs.
    fn remembers_cancels(&self) -> bool {
        self.plan.role == Server && self.plan.wire != Pipe && self.plan.era == Legacy
    }

    fn act(&mut self, action: Action) -> Result<(), Broken> {
        let now = self.harness.now;
        match action {
            Action::Next => self.begin_next(),
            Action::TellApplication => {}
            Action::WriteBegun(exchange) => return self.write_begun(exchange),
            Action::WriteDone(exchange) => self.harness.engine.handle_write_done(now, exchange),
            Action::Acknowledged(exchange) => {
                self.harness.engine.handle_acknowledged(now, exchange);
            }
            Action::Answer(at) => self.hear_of_call(at, &self.answer(at)),
            Action::LateProbeAnswer => {
                let text = introduction(self.wire_id_of(self.probe));
                self.harness.hear(&text);
            }
            Action::ErrorAnswer(at) => self.hear_of_call(at, &error_for(&self.wire_id(at))),
            Action::Progress(at) => {
                let last = self.call(at).and_then(|call| call.progress).unwrap_or(0.0);
                let text = progress_of(&self.wire_id(at), last as u32 + 1);
                self.hear_of_call(at, &text);
            }
            Action::StaleProgress(at) => {
                let text = progress_of(&self.wire_id(at), 1);
                self.hear_of_call(at, &text);
            }
            Action::CancelByCaller(at) => {
                if let Begun::Call { id, .. } = self.requests[at] {
                    self.harness.engine.cancel(now, id, None);
                }
            }
            Action::CancelByPeer(at) => self.hear_cancel(&cancel_of(&(at + 1).to_string())),
            Action::EarlyCancel => {
                let id = self.requests.len() + 1;
                self.hear_cancel(&cancel_of(&id.to_string()));
            }
            Action::EarlyCancelForgotten => self.harness.engine.forget_early_cancel(),
            Action::IdleDeadline(at) => self.time_out(at, Clock::Idle),
            Action::TotalDeadline(at) => self.time_out(at, Clock::Total),
            Action::HandlerDone(at) => {
                self.harness.engine.respond(now, self.key(at), Ok(done()));
            }
            Action::HandlerFails(at) => {
                let error = crate::jsonrpc::ErrorObject::new(1, "no");
                self.harness.engine.respond(now, self.key(at), Err(error));
            }
            Action::HandlerProgress(at) => {
                let key = self.key(at);
                let serving = self.harness.engine.requests.serving(key);
                let last = serving.and_then(|serving| serving.progress).unwrap_or(0.0);
                let said = self
                    .harness
                    .engine
                    .progress(now, key, last + 1.0, None, None);
                said.map_err(|how| Broken {
                    rule: "bounded",
                    how: how.to_string(),
                })?;
            }
            Action::HandlerGone(at) => {
                self.harness.engine.handler_gone(now, self.key(at));
            }
            Action::HandlerDeadline(at) => {
                self.harness.engine.request_due(now, self.key(at));
                self.harness.engine.settle(now);
            }
            Action::GraceOver(at) => {
                self.harness.engine.abort(self.key(at));
                self.harness.engine.settle(now);
            }
            Action::ExchangeLost(exchange, resumable) => {
                self.mark_lost(exchange, resumable);
                let answered = &mut self.monitor.answered;
                match (self.plan.role, self.plan.era) {
                    (Server, Legacy) => answered.broken_off(&self.harness.engine, exchange),
                    _ if resumable => {}
                    _ => answered.gone(&self.harness.engine, exchange),
                }
                let cause = LossKind::Io.into();
                let engine = &mut self.harness.engine;
                engine.handle_exchange_lost(now, exchange, cause, resumable);
            }
            Action::ExchangeResumed(exchange) => {
                self.harness.engine.handle_exchange_resumed(now, exchange);
            }
            Action::ExchangeTimeUp(exchange) => self.exchange_time_up(exchange),
            Action::LinkLost => {
                self.monitor.link_lost();
                self.harness.lose_link();
            }
            Action::InputEnds => self.harness.engine.handle_input_ended(now, LINK),
            Action::HungUp => self.harness.engine.handle_hung_up(now),
            Action::Close => self.harness.engine.shutdown(now, Shutdown::Drain),
            Action::CloseTimeUp => {
                if !self.harness.engine.closing.refuses_requests() {
                    // The writer of our input is gone and no peer reads, so the link is lost.
                    self.monitor.link_lost();
                }
                self.harness.engine.closing_due(now);
                self.harness.engine.settle(now);
            }
        }
        Ok(())
    }

    fn begin_next(&mut self) {
        let at = self.requests.len();
        let id = (at + 1).to_string();
        let begun = match self.plan.requests[at] {
            Call => self.ask("tools/call", None),
            Listen => self.ask("subscriptions/listen", None),
            Child => {
                let parent = self.requests.iter().find_map(|begun| match begun {
                    Begun::Served { key } => Some(*key),
                    _ => None,
                });
                self.ask("elicitation/create", parent)
            }
            Opening => {
                let mode = match self.plan.era {
                    Legacy => Mode::Legacy,
                    Modern => Mode::Auto,
                };
                let call = self.harness.engine.requests.next_call();
                self.harness.engine.connect(self.harness.now, mode);
                self.began(call, true)
            }
            Served => self.receive(tool_call_of(self.plan.era, &id), &id),
            Listened => {
                let text = tool_call_of(self.plan.era, &id);
                self.receive(text.replace("tools/call", "subscriptions/listen"), &id)
            }
        };
        self.requests.push(begun);
    }

    fn ask(&mut self, method: &str, serves: Option<RequestKey>) -> Begun {
        let ask = Ask {
            serves,
            ..Ask::new(method, RawJson::empty_object())
        };
        match self.harness.engine.request(self.harness.now, ask) {
            Ok(call) => self.began(call, false),
            Err(_) => Begun::Never,
        }
    }

    fn began(&mut self, id: CallId, is_opening: bool) -> Begun {
        match self.harness.engine.requests.call(id) {
            Some(call) => {
                let on = call.exchange;
                self.monitor.call_began(id, is_opening);
                Begun::Call { id, on }
            }
            None => Begun::Never,
        }
    }

    /// Receives a request: on the link, on a POST of its own, or on the stream of an outgoing call.
    fn receive(&mut self, text: String, id: &str) -> Begun {
        let exchange = match (self.plan.role, self.plan.wire) {
            (_, Pipe | EventStream) => LINK,
            (Server, Http) => self.harness.engine.handle_exchange_opened(),
            (Client, Http) => match self.requests.first() {
                Some(Begun::Call { on, .. })
                    if self.harness.engine.exchanges.get(*on).is_some() =>
                {
                    *on
                }
                _ => LINK,
            },
        };
        self.monitor
            .answered
            .taken(&self.harness.engine, exchange, &text);
        self.harness.hear_on(exchange, &text);
        if (self.plan.role, self.plan.wire) == (Server, Http) {
            self.harness
                .engine
                .handle_input_ended(self.harness.now, exchange);
        }
        let last = self.harness.engine.events.back();
        match last {
            Some(Event::Request(incoming)) if incoming.id.to_string() == id => {
                let (key, id) = (incoming.key, incoming.id.clone());
                self.monitor.request_began(key, id);
                Begun::Served { key }
            }
            _ => Begun::Never,
        }
    }

    fn write_begun(&mut self, exchange: ExchangeId) -> Result<(), Broken> {
        let known = self.harness.engine.exchanges.get(exchange);
        if let Some(frame) = known.and_then(|known| known.queue.waiting().next()) {
            let (owner, bytes) = (frame.owner, frame.bytes.clone());
            self.monitor
                .write_begun(&self.harness.engine, owner, &bytes)?;
        }
        self.harness.engine.begin_write(self.harness.now, exchange);
        Ok(())
    }

    fn hear_of_call(&mut self, at: usize, text: &str) {
        let on = match self.requests[at] {
            Begun::Call { on, .. } if self.plan.role == Client && self.plan.wire == Http => on,
            _ => LINK,
        };
        self.harness.hear_on(on, text);
    }

    fn hear_cancel(&mut self, text: &str) {
        self.monitor
            .answered
            .taken(&self.harness.engine, LINK, text);
        match (self.plan.role, self.plan.wire) {
            (Server, Http) => drop(self.harness.post(text)),
            _ => self.harness.hear(text),
        }
    }

    fn time_out(&mut self, at: usize, clock: Clock) {
        if let Begun::Call { id, .. } = self.requests[at] {
            let engine = &mut self.harness.engine;
            engine.time_out(self.harness.now, id, clock, Duration::from_secs(1));
            engine.settle(self.harness.now);
        }
    }

    /// Fires the timer of an exchange: its timeout, or the end of the wait for a response head.
    fn exchange_time_up(&mut self, id: ExchangeId) {
        let exchange = self.harness.engine.exchanges.get(id);
        let due = exchange.and_then(|exchange| exchange.timer);
        let due = due.expect("only what has a timer is due");
        let announces = exchange.is_some_and(|exchange| {
            let purpose = &exchange.purpose;
            matches!(purpose, Purpose::Abandoned(Abandoned::Unannounced { until, .. }) if due < *until)
        });
        if !announces {
            self.mark_lost(id, false);
            self.monitor.answered.gone(&self.harness.engine, id);
        }
        self.harness.engine.exchange_due(due, id);
        self.harness.engine.settle(due);
    }

    fn mark_lost(&mut self, exchange: ExchangeId, resumable: bool) {
        for begun in &self.requests {
            if let Begun::Call { id, on } = begun
                && !resumable
                && (*on == exchange || self.harness.engine.carries_cancel(exchange, *id))
            {
                self.monitor.exchange_lost(*id);
            }
        }
    }

    fn wire_id(&self, at: usize) -> String {
        match self.requests[at] {
            Begun::Call { id, .. } => id.request_id().to_string(),
            _ => (at + 1).to_string(),
        }
    }

    fn wire_id_of(&self, call: Option<CallId>) -> String {
        call.map_or("0".into(), |call| call.request_id().to_string())
    }

    fn call(&self, at: usize) -> Option<&super::super::requests::Call> {
        match self.requests[at] {
            Begun::Call { id, .. } => self.harness.engine.requests.call(id),
            _ => None,
        }
    }

    fn key(&self, at: usize) -> RequestKey {
        match self.requests[at] {
            Begun::Served { key } => key,
            other => panic!("{other:?} is not a request of the peer's"),
        }
    }
}

/// An introduction that fits both eras, for `initialize` and for `server/discover`.
fn introduction(id: String) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}},"supportedVersions":["2026-07-28"],"resultType":"complete"}}}}"#
    )
}

/// Makes each plan a separate test, so that they run in parallel.
macro_rules! explorations {
    ($($test:ident => $at:literal),* $(,)?) => {$(
        #[test]
        fn $test() {
            let plan = PLANS[$at];
            match explore(plan) {
                Ok(states) => println!("{}: {states} distinct states, no rule broken", plan.name),
                Err((broken, trace)) => panic!("{}: {broken}\nafter {trace}", plan.name),
            }
        }
    )*};
}

explorations! {
    every_order_of_three_calls_legacy_pipe => 0,
    every_order_of_three_calls_modern_pipe => 1,
    every_order_of_three_calls_legacy_http => 2,
    every_order_of_three_calls_modern_http => 3,
    every_order_of_an_opening_and_two_calls_legacy_pipe => 4,
    every_order_of_an_opening_and_two_calls_modern_pipe => 5,
    every_order_of_calls_and_a_request_back_legacy_pipe => 6,
    every_order_of_a_call_and_a_request_back_legacy_http => 7,
    every_order_of_three_requests_legacy_pipe => 8,
    every_order_of_three_requests_modern_pipe => 9,
    every_order_of_three_requests_legacy_http => 10,
    every_order_of_three_requests_modern_http => 11,
    every_order_of_requests_and_a_call_back_legacy_pipe => 12,
    every_order_of_one_request_too_many_legacy_pipe => 13,
    every_order_of_one_request_too_many_modern_pipe => 14,
    every_order_of_one_request_too_many_legacy_http => 15,
    every_order_of_one_request_back_too_many_legacy_pipe => 16,
    every_order_of_three_calls_event_stream => 17,
}
