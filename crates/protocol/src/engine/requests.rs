//! Where a request begins and where it ends: here, and nowhere else.
//!
//! Both directions are in one place, since they are one life seen from two sides. Whoever calls
//! `end_…` first decides how a request ended; everyone later gets `None` and must do nothing
//! (**one-end**). The books are kept in the same breath, so they cannot disagree with the tables
//! (**ledger**).

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

/// A request of ours, from the moment it is asked for to its end.
#[derive(Clone, Debug)]
pub(super) struct Call<C = ()> {
    /// What the application keeps for it: who waits.
    pub(super) caller: C,
    pub(super) kind: Kind,
    /// Where it is written.
    pub(super) exchange: ExchangeId,
    /// The peer's request on whose behalf it is made.
    pub(super) serves: Option<RequestKey>,
    /// The era whose rules it follows.
    pub(super) era: Era,
    /// It can be answered with questions.
    pub(super) may_ask: bool,
    pub(super) sent: Sent,
    pub(super) delivery: Delivery,
    pub(super) clocks: CallClocks,
    pub(super) progress: Option<f64>,
}

/// How far the POST of a call has come, and when a cancel of it would be understood. On a pipe the order of writes is the order of arrival, so
/// there nothing depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Delivery {
    /// Its last byte has not been handed over.
    Incomplete,
    /// It has, at this moment.
    Written(Time),
    /// The response head has come, at this moment. Some servers send it before they look at what
    /// was posted.
    Acknowledged(Time),
    /// The peer has spoken of it: it is known there.
    Known,
}

/// A request of the peer's, from the moment it is admitted until its answer begins to be written.
#[derive(Clone, Debug)]
pub(super) struct Serving {
    pub(super) id: RequestId,
    pub(super) kind: Kind,
    /// Where it came from.
    pub(super) exchange: ExchangeId,
    /// Where a client on HTTP speaks of it.
    pub(super) lane: Option<ExchangeId>,
    pub(super) version: ProtocolVersion,
    pub(super) stage: Stage,
    /// What its progress is called, if it wants any.
    pub(super) token: Option<ProgressToken>,
    pub(super) progress: Option<f64>,
    /// When it is answered in its handler's stead, and with what.
    pub(super) deadline: Option<(Time, RawJson)>,
    /// Calls of ours that are made on its behalf.
    pub(super) children: Vec<CallId>,
}

/// What the engine has to know of what is asked.
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

/// How far a request of the peer's has come.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Stage {
    /// The application has not been told of it: it can still never have started.
    Admitted,
    /// Its handler runs.
    Running,
    /// Its answer waits to be written: it can still be withdrawn.
    Answering(End),
}

impl Stage {
    /// Whether it waits for a handler, and not for the wire.
    pub(super) fn is_working(self) -> bool {
        matches!(self, Self::Admitted | Self::Running)
    }

    /// How a request ends whose answer this is.
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

    /// The id that the next call will have. Ids are never used again (**late-is-inert**).
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
            // They are in the order of their ids.
            if let Ok(at) = parent.children.binary_search(&id) {
                parent.children.remove(at);
            }
        }
        self.ledger.calls.end(end);
        debug_assert!(self.is_balanced());
        Some(call)
    }

    /// A call that is over before it began: a limit, or a link that is closed.
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

    /// A request of the peer's that is over before it began.
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

    /// Gives back the memory that is not needed now.
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

    /// The requests of the peer's with this id.
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
