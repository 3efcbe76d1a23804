//! Requests begin and end here, and nowhere else.
//!
//! Both directions are in one module, since they follow the same rules. The first caller of `end_…`
//! decides how a request ended; later callers get `None` and must do nothing (**one-end**). The
//! ledger is updated in the same functions, so it cannot disagree with the tables (**ledger**).

use crate::jsonrpc::{ErrorObject, RawJson, RequestId};
use crate::types::{Era, ProgressToken, ProtocolVersion};

use super::deadline::CallClocks;
use super::ids::Ids;
use super::table::Table;
use super::{CallId, End, ExchangeId, Ledger, RequestKey, Sent, Time};

/// Every request that has begun and has not ended.
#[derive(Clone, Debug)]
pub(super) struct Requests<C> {
    calls: Table<CallId, Call<C>>,
    serving: Table<RequestKey, Serving>,
    ids: Ids,
    last_call: i64,
    last_key: u64,
    pub(super) ledger: Ledger,
}

/// An outgoing call, from the moment it is made to its end.
#[derive(Clone, Debug)]
pub(super) struct Call<C = ()> {
    /// The application's data for the call: its caller.
    pub(super) caller: C,
    pub(super) kind: Kind,
    /// The exchange that it is written on.
    pub(super) exchange: ExchangeId,
    /// The incoming request on whose behalf it is made.
    pub(super) serves: Option<RequestKey>,
    /// The era whose rules it follows.
    pub(super) era: Era,
    /// Its answer may ask for input.
    pub(super) may_ask: bool,
    pub(super) sent: Sent,
    pub(super) delivery: Delivery,
    pub(super) clocks: CallClocks,
    pub(super) progress: Option<f64>,
}

/// How far the POST of a call has come, which decides when the peer would understand its cancel. On
/// a pipe nothing depends on this, because frames arrive in the order in which they are written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Delivery {
    /// Its last byte has not been handed over to the operating system.
    Incomplete,
    /// Its last byte was handed over at this moment.
    Written(Time),
    /// The response head came at this moment. Some servers send it before they read the request.
    Acknowledged(Time),
    /// The peer has referred to the call, so it knows it.
    Known,
}

/// An incoming request, from the moment it is admitted until the write of its answer begins.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    pub(super) id: RequestId,
    pub(super) kind: Kind,
    /// The exchange that it arrived on.
    pub(super) exchange: ExchangeId,
    /// The lane on which a client on HTTP sends its answer and notifications.
    pub(super) lane: Option<ExchangeId>,
    pub(super) version: ProtocolVersion,
    pub(super) stage: Stage,
    /// The progress token, if the caller asked for progress.
    pub(super) token: Option<ProgressToken>,
    pub(super) progress: Option<f64>,
    /// The handler's deadline, and the answer that is sent when it passes.
    pub(super) deadline: Option<(Time, RawJson)>,
    /// Outgoing calls made on its behalf.
    pub(super) children: Vec<CallId>,
}

/// The kinds of request that the engine treats differently.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Kind {
    Ordinary,
    /// A modern server may end it with a cancel.
    Listen,
    /// Never cancelled on the wire (**never-initialize**).
    Initialize,
    /// Never cancelled on the wire (**never-initialize**).
    Probe,
}

/// How far an incoming request has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    /// The application does not know of it yet, so a cancel can still keep it from starting.
    Admitted,
    /// Its handler runs.
    Running,
    /// Its answer waits to be written, and can still be withdrawn.
    Answering(End),
}

impl Stage {
    /// Whether it waits for a handler, not for the wire.
    pub(super) fn is_working(self) -> bool {
        matches!(self, Self::Admitted | Self::Running)
    }

    /// The end of a request with this answer.
    pub(super) fn end_of(answer: &Result<RawJson, ErrorObject>) -> End {
        match answer {
            Ok(_) => End::Answered,
            Err(_) => End::Refused,
        }
    }
}

impl Serving {
    pub(super) fn new(
        id: RequestId,
        kind: Kind,
        exchange: ExchangeId,
        version: ProtocolVersion,
        token: Option<ProgressToken>,
    ) -> Self {
        Self {
            id,
            kind,
            exchange,
            lane: None,
            version,
            stage: Stage::Admitted,
            token,
            progress: None,
            deadline: None,
            children: Vec::new(),
        }
    }
}

impl<C> Requests<C> {
    pub(super) fn new() -> Self {
        Self {
            calls: Table::new(),
            serving: Table::new(),
            ids: Ids::default(),
            last_call: 0,
            last_key: 0,
            ledger: Ledger::default(),
        }
    }

    /// The id of the next call. Ids are never used again (**late-is-inert**).
    pub(super) fn next_call(&self) -> CallId {
        CallId(self.last_call + 1)
    }

    pub(super) fn begin_call(&mut self, call: Call<C>) -> CallId {
        let id = self.next_call();
        self.last_call = id.0;
        self.ledger.calls.begin();
        if let Some(parent) = call.serves.and_then(|parent| self.serving.get_mut(parent)) {
            parent.children.push(id);
        }
        self.calls.insert(id, call);
        id
    }

    pub(super) fn end_call(&mut self, id: CallId, end: End) -> Option<Call<C>> {
        let call = self.calls.remove(id)?;
        if let Some(parent) = call.serves.and_then(|parent| self.serving.get_mut(parent)) {
            // Children are sorted by id.
            if let Ok(at) = parent.children.binary_search(&id) {
                parent.children.remove(at);
            }
        }
        self.ledger.calls.end(end);
        debug_assert!(self.is_balanced());
        Some(call)
    }

    /// Counts a call that ended before it began, because of a limit or a closed link.
    pub(super) fn refuse_call(&mut self, end: End) {
        self.ledger.calls.begin();
        self.ledger.calls.end(end);
    }

    pub(super) fn begin_serving(&mut self, serving: Serving) -> RequestKey {
        self.last_key += 1;
        let key = RequestKey(self.last_key);
        self.ledger.requests.begin();
        self.serving.insert(key, serving);
        self.ids.began(key, &self.serving);
        key
    }

    pub(super) fn end_serving(&mut self, key: RequestKey, end: End) -> Option<Serving> {
        let serving = self.serving.remove(key)?;
        self.ids.ended(key, &serving.id, self.serving.len());
        self.ledger.requests.end(end);
        debug_assert!(self.is_balanced());
        Some(serving)
    }

    /// Counts an incoming request that ended before it began.
    pub(super) fn refuse_serving(&mut self, end: End) {
        self.ledger.requests.begin();
        self.ledger.requests.end(end);
    }

    pub(super) fn call(&self, id: CallId) -> Option<&Call<C>> {
        self.calls.get(id)
    }

    pub(super) fn call_mut(&mut self, id: CallId) -> Option<&mut Call<C>> {
        self.calls.get_mut(id)
    }

    /// Frees spare memory.
    pub(super) fn shrink(&mut self) {
        self.calls.shrink();
        self.serving.shrink();
    }

    pub(super) fn calls(&self) -> &Table<CallId, Call<C>> {
        &self.calls
    }

    pub(super) fn calls_mut(&mut self) -> impl Iterator<Item = (CallId, &mut Call<C>)> {
        self.calls.iter_mut()
    }

    pub(super) fn serving(&self, key: RequestKey) -> Option<&Serving> {
        self.serving.get(key)
    }

    pub(super) fn serving_mut(&mut self, key: RequestKey) -> Option<&mut Serving> {
        self.serving.get_mut(key)
    }

    /// The incoming requests with this id.
    pub(super) fn serving_with_id<'a>(
        &'a self,
        id: &'a RequestId,
    ) -> impl Iterator<Item = (RequestKey, &'a Serving)> {
        self.ids.with_id(id, &self.serving)
    }

    pub(super) fn all_serving(&self) -> &Table<RequestKey, Serving> {
        &self.serving
    }

    pub(super) fn is_balanced(&self) -> bool {
        self.ledger.calls.in_flight() == self.calls.len() as u64
            && self.ledger.requests.in_flight() == self.serving.len() as u64
    }
}
