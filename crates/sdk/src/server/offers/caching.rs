//! Cache hints in results: the time to live and the scope. Modern only.

use std::time::Duration;

use belay_protocol::types::{CacheScope, Millis};

/// How long a client may cache a result, and with whom it may share it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheHint {
    span: Duration,
    scope: CacheScope,
}

impl CacheHint {
    /// A result that may be cached for this long, in this scope.
    pub fn new(span: Duration, scope: CacheScope) -> Self {
        Self { span, scope }
    }

    /// A result that must not be cached.
    pub fn none() -> Self {
        Self::new(Duration::ZERO, CacheScope::Private)
    }

    /// A result that is the same for every user, so that shared caches may keep it.
    pub fn public(span: Duration) -> Self {
        Self::new(span, CacheScope::Public)
    }

    /// A result that only the user who asked may reuse.
    pub fn private(span: Duration) -> Self {
        Self::new(span, CacheScope::Private)
    }

    pub(in crate::server) fn millis(&self) -> u64 {
        self.span.as_millis().try_into().unwrap_or(u64::MAX)
    }

    pub(in crate::server) fn scope(&self) -> &CacheScope {
        &self.scope
    }

    /// Adds the hint to a result that has none.
    pub(in crate::server) fn mark(
        &self,
        millis: &mut Option<Millis>,
        scope: &mut Option<CacheScope>,
    ) {
        if millis.is_none() && scope.is_none() {
            *millis = Some(self.millis().into());
            *scope = Some(self.scope.clone());
        }
        millis.get_or_insert(Millis(0));
        scope.get_or_insert(CacheScope::Private);
    }
}

/// For how long the results of a server may be kept, unless they say so themselves.
///
/// A client that listens for changes learns of them at once; others may see a list that is as old as
/// this says.
///
/// ```
/// use belay::server::CacheHint;
/// use belay::Server;
/// use std::time::Duration;
///
/// let server = Server::new("example", "1.0.0")
///     .caching(|caching| caching.lists = CacheHint::public(Duration::from_secs(300)));
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Caching {
    /// Lists of tools, resources, templates and prompts. Default: 30 s, private.
    pub lists: CacheHint,
    /// Contents of resources. Default: not cached.
    pub reads: CacheHint,
    /// The result of `server/discover`. Default: one hour, public.
    pub discovery: CacheHint,
}

impl Default for Caching {
    fn default() -> Self {
        Self {
            lists: CacheHint::private(Duration::from_secs(30)),
            reads: CacheHint::none(),
            discovery: CacheHint::public(Duration::from_secs(3600)),
        }
    }
}
