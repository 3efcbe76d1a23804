//! For how long results may be kept, and by whom. Modern only.

use std::time::Duration;

use belay_protocol::types::{CacheScope, Millis};

/// For how long a result may be kept, and by whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CacheHint {
    span: Duration,
    scope: CacheScope,
}

impl CacheHint {
    /// For so long, by these.
    pub fn new(span: Duration, scope: CacheScope) -> Self {
        Self { span, scope }
    }

    /// Not at all.
    pub fn none() -> Self {
        Self::new(Duration::ZERO, CacheScope::Private)
    }

    /// By anybody, for so long: the result is the same for all.
    pub fn public(span: Duration) -> Self {
        Self::new(span, CacheScope::Public)
    }

    /// By whoever asked, for so long.
    pub fn private(span: Duration) -> Self {
        Self::new(span, CacheScope::Private)
    }

    pub(in crate::server) fn millis(&self) -> u64 {
        self.span.as_millis().try_into().unwrap_or(u64::MAX)
    }

    pub(in crate::server) fn scope(&self) -> &CacheScope {
        &self.scope
    }

    /// Says so in a result that does not.
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
    /// Lists of tools, resources, templates and prompts: 30 s, by whoever asked.
    pub lists: CacheHint,
    /// What was read: not at all.
    pub reads: CacheHint,
    /// How the server introduced itself: an hour, by anybody.
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
