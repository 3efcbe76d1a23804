//! All legacy sessions of a server, by id.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Weak};
use std::time::Duration;

use http::{HeaderMap, StatusCode};

use super::super::headers;
use super::refusal::Refusal;
use super::session::Session;
use super::shared::{Caller, Shared};
use crate::Principal;
use crate::driver::{Permit, Pool};
use crate::sync::{Mutex, MutexGuard};

/// A session id: 128 random bits, which are kept out of logs.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct SessionId(Arc<str>);

impl SessionId {
    pub(super) fn random() -> Result<Self, Refusal> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(|error| {
            tracing::error!(%error, "no randomness, no sessions");
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, "no sessions can be opened")
        })?;
        let digits: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self(digits.into()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Allows a lookup by the text of the header.
impl Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionId(…)")
    }
}

/// All sessions of a server.
#[derive(Default)]
pub(super) struct Sessions {
    open: Mutex<HashMap<SessionId, Kept>>,
    /// Sessions that may never have been used, oldest first.
    unused: Mutex<VecDeque<Weak<Session>>>,
}

/// An open session, with what it uses of its peer's share.
struct Kept {
    session: Arc<Session>,
    _place: Permit,
    /// The size of the client's introduction.
    introduction: Permit,
}

/// A session that was opened and never used may be closed for another one after this time.
const HELLO_GRACE: Duration = Duration::from_secs(1);

/// How many sessions are examined to find one that may be closed.
const LOOKED_AT: usize = 100;

impl Sessions {
    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Kept>> {
        self.open.lock()
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    /// A permit for another session. If the limit is reached, the oldest session that was never
    /// used is closed; if the peer has used its share, one of its own.
    pub(super) fn place(&self, shared: &Shared, caller: &Caller) -> Result<Permit, Refusal> {
        let peer = &caller.peer;
        let pool = Pool::Sessions;
        if !peer.could_take(pool, 1) {
            if peer.could_take_from_others(pool) {
                self.make_room(shared, |_| true);
            } else if peer.could_take_for_its_own(pool) {
                self.make_room(shared, |session| Arc::ptr_eq(session.peer(), peer));
            }
        }
        let place = peer.take(Pool::Sessions, 1);
        place.ok_or_else(|| {
            let problem = "too many sessions are open; come back later";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, problem)
        })
    }

    /// Closes the oldest session that was opened and never used, and that `may_go`. A flood of such
    /// sessions must not close those in use.
    fn make_room(&self, shared: &Shared, may_go: impl Fn(&Session) -> bool) {
        let mut unused = self.unused();
        drop_used(&mut unused);
        // A session that was just opened may be about to be used.
        let old = |session: &Session| session.used().elapsed() >= HELLO_GRACE;
        let oldest = unused.iter().take(LOOKED_AT).position(|session| {
            let session = session.upgrade();
            session.is_some_and(|it| it.is_unused() && may_go(&it) && old(&it))
        });
        let session = oldest.and_then(|at| unused.remove(at)?.upgrade());
        drop(unused);
        if let Some(session) = session {
            session.end(shared);
        }
    }

    /// Registers an open session.
    pub(super) fn add(&self, session: &Arc<Session>, place: Permit, introduction: Permit) {
        let kept = Kept {
            session: session.clone(),
            _place: place,
            introduction,
        };
        self.lock().insert(session.id().clone(), kept);
        let open = self.len();
        let mut unused = self.unused();
        drop_used(&mut unused);
        // Behind an old unused session the list may be full of closed ones.
        if unused.len() > 2 * open + LOOKED_AT {
            unused.retain(|session| session.strong_count() > 0);
        }
        unused.push_back(Arc::downgrade(session));
    }

    /// Removes a session, which releases its share.
    pub(super) fn remove(&self, id: &SessionId) {
        self.lock().remove(id);
    }

    /// Counts the client's introduction against its share while the session is open.
    /// Returns false if that has no room.
    pub(super) fn weigh_introduction(&self, id: &SessionId, bytes: usize) -> bool {
        let mut open = self.lock();
        let kept = open.get_mut(id);
        kept.is_none_or(|kept| kept.introduction.resize(0, bytes))
    }

    fn unused(&self) -> MutexGuard<'_, VecDeque<Weak<Session>>> {
        self.unused.lock()
    }

    pub(super) fn all(&self) -> Vec<Arc<Session>> {
        let open = self.lock();
        open.values().map(|kept| kept.session.clone()).collect()
    }

    /// The session that a request names. For other principals it does not exist.
    pub(super) fn find(
        &self,
        headers: &HeaderMap,
        principal: Option<&Principal>,
    ) -> Result<Arc<Session>, Refusal> {
        let named = headers::single(headers, &headers::SESSION_ID);
        let Ok(Some(named)) = named else {
            let problem = "send `Mcp-Session-Id` as `initialize` gave it, once";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, problem));
        };
        let open = self.lock();
        let found = open.get(named).map(|kept| &kept.session);
        let own = found.filter(|session| session.belongs_to(principal));
        own.cloned().ok_or_else(|| {
            let problem = "this session is not known, or not any more; begin a new one";
            Refusal::new(StatusCode::NOT_FOUND, problem)
        })
    }
}

/// Removes sessions from the front that are closed or in use.
fn drop_used(unused: &mut VecDeque<Weak<Session>>) {
    let is_used = |session: &Weak<Session>| session.upgrade().is_none_or(|it| !it.is_unused());
    while unused.front().is_some_and(is_used) {
        unused.pop_front();
    }
}
