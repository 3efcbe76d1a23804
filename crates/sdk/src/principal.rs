//! Who makes a request.

use std::fmt;
use std::sync::Arc;

/// Who makes a request, as somebody in front of this server has found out. On HTTP it is put into the
/// request's extensions; a legacy session can only be used by whoever opened it, and the state of a
/// round only by whoever was asked.
///
/// ```
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(belay::Principal::new("alice"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// Somebody, by a name that nobody else has.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

/// Names stay out of logs.
impl fmt::Debug for Principal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Principal(…)")
    }
}
