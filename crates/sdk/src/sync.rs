//! Locks that are not poisoned by a panic: to go on with the value is better than
//! to fail every later request.
//!
//! With `--cfg belay_counted`, each acquisition is counted, for `cargo xtask cost`.

use std::sync::{PoisonError, RwLockReadGuard, RwLockWriteGuard};

pub(crate) use std::sync::MutexGuard;

/// [`std::sync::Mutex`], not poisoned by panics.
#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(std::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        counted::lock();
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// [`std::sync::RwLock`], not poisoned by panics.
#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(std::sync::RwLock<T>);

impl<T> RwLock<T> {
    #[cfg(feature = "server")]
    pub(crate) const fn new(value: T) -> Self {
        Self(std::sync::RwLock::new(value))
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        counted::lock();
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        counted::lock();
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Counters for `cargo xtask cost`.
#[cfg(belay_counted)]
pub(crate) mod counted {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    static LOCKS: AtomicU64 = AtomicU64::new(0);
    static TASKS: AtomicU64 = AtomicU64::new(0);

    pub(crate) fn lock() {
        LOCKS.fetch_add(1, Relaxed);
    }

    pub(crate) fn task() {
        TASKS.fetch_add(1, Relaxed);
    }

    /// The number of locks taken and of tasks spawned, since the process began.
    pub fn locks_and_tasks() -> (u64, u64) {
        (LOCKS.load(Relaxed), TASKS.load(Relaxed))
    }
}

#[cfg(not(belay_counted))]
mod counted {
    pub(crate) fn lock() {}

    pub(crate) fn task() {}
}

pub(crate) use counted::task as count_task;
