//! Values that are kept with a request, by type.

use std::any::{Any, TypeId};
use std::fmt;
use std::sync::Arc;

use crate::sync::Mutex;

/// Values that are kept with a request, by type, for the layers and the handler that come later.
///
/// ```
/// # async fn example(cx: belay::Context) {
/// struct User(String);
///
/// cx.extensions().insert(User("ann".into()));
/// let user = cx.extensions().get::<User>();
/// # }
/// ```
#[derive(Default)]
pub struct Extensions(Mutex<Vec<(TypeId, Arc<dyn Any + Send + Sync>)>>);

impl Extensions {
    /// Keeps a value. One of the same type is replaced.
    pub fn insert<T: Send + Sync + 'static>(&self, value: T) {
        let (key, value) = (TypeId::of::<T>(), Arc::new(value));
        let mut values = self.0.lock();
        let known = values.iter().position(|(known, _)| *known == key);
        let before = known.map(|at| values.swap_remove(at));
        values.push((key, value));
        drop(values);
        // Outside the lock: its destructor is the application's.
        drop(before);
    }

    /// The value of this type, if one was inserted.
    pub fn get<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let values = self.0.lock();
        let known = values.iter().find(|(key, _)| *key == TypeId::of::<T>());
        known?.1.clone().downcast().ok()
    }
}

impl fmt::Debug for Extensions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.lock().len();
        f.debug_struct("Extensions").field("count", &count).finish()
    }
}
