//! `Principal`: the authenticated caller of a request.

use std::fmt;
use std::sync::Arc;

/// The authenticated caller of a request. On HTTP, middleware in front of this server puts it into
/// the request's extensions. A legacy session can only be used by the principal that opened it, and
/// the state of a round only by the principal that was asked.
///
/// ```
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(belay::Principal::new("alice"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// A principal with this name, which must be unique among principals.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The unique name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// The name is kept out of logs.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal(…)")
    }
}
