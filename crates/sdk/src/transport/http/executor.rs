//! An executor for hyper whose tasks are tracked.

use std::future::Future;

use tokio_util::task::TaskTracker;

use crate::sync::count_task;

/// Spawns tasks in a tracker.
#[derive(Clone, Debug)]
pub(crate) struct Tracked(pub(crate) TaskTracker);

impl<F> hyper::rt::Executor<F> for Tracked
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        count_task();
        self.0.spawn(task);
    }
}
