//! Runs what hyper wants run, where it is counted.

use std::future::Future;

use tokio_util::task::TaskTracker;

/// Spawns through a tracker.
#[derive(Clone, Debug)]
pub(crate) struct Tracked(pub(crate) TaskTracker);

impl<F> hyper::rt::Executor<F> for Tracked
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    fn execute(&self, task: F) {
        self.0.spawn(task);
    }
}
