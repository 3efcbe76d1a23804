//! Detects handlers that do not yield.
//!
//! A task that computes for long blocks its worker thread, and with it other work that tokio has
//! queued on the thread: polling sockets, or running the task that was woken last. No other worker
//! takes that over, unless it wakes up for another reason. So a thread beside the runtime checks
//! every few milliseconds, while handlers are being polled, whether one of them still is. If so,
//! it has another worker go on.
//!
//! ```text
//!   handler is polled ─── yields ───► nothing happens
//!          │
//!          └── for 5 ms and more ──► its link's driver is woken from outside, on another worker;
//!                                    handlers that wait for the same runner get another one
//! ```
//!
//! On a runtime with a single thread this cannot help: a handler that does not
//! yield blocks everything.

use std::cell::{Cell, OnceCell};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::runtime::Handle;

use super::Link;
use crate::sync::Mutex;

/// A handler that is polled for longer blocks others.
const TICK: Duration = Duration::from_millis(5);

/// The thread goes to sleep after this many checks without a handler being polled.
const IDLE_TICKS: u32 = 200;

/// What is being polled on one thread.
struct Slot {
    /// Odd while a handler is being polled. Only its own thread writes it.
    polls: AtomicU64,
    /// The link of the handler, and its address for a quick comparison.
    link: Mutex<Weak<Link>>,
    address: AtomicUsize,
    /// The runtime with the other workers.
    runtime: Option<Handle>,
}

struct Watchdog {
    slots: Mutex<Vec<Weak<Slot>>>,
    awake: AtomicBool,
    thread: Option<Thread>,
}

static WATCHDOG: LazyLock<Watchdog> = LazyLock::new(|| {
    let watching = thread::Builder::new()
        .name("belay-watchdog".into())
        .stack_size(64 << 10)
        .spawn(watch);
    Watchdog {
        slots: Mutex::default(),
        awake: AtomicBool::new(false),
        thread: watching.ok().map(|watching| watching.thread().clone()),
    }
});

thread_local! {
    static SLOT: OnceCell<Arc<Slot>> = const { OnceCell::new() };
    /// The address of the link whose handler is being polled on this thread, or zero.
    static POLLED: Cell<usize> = const { Cell::new(0) };
}

/// Whether a handler of this link is being polled on this thread. The wake-up of the link's driver
/// is then deferred until that is over, because the driver might be queued on this thread.
pub(super) fn is_polled_here(link: &Link) -> bool {
    POLLED.get() == std::ptr::from_ref(link).addr()
}

/// Polls a handler of a link under the watchdog.
pub(super) fn polled<T>(link: &Arc<Link>, poll: impl FnOnce() -> T) -> T {
    SLOT.with(|slot| {
        let slot = slot.get_or_init(register);
        let before = POLLED.replace(slot.enter(link));
        let _polling = Polling { slot, before };
        poll()
    })
}

/// Marks that a handler is being polled, until it is dropped; also when the handler panics.
struct Polling<'a> {
    slot: &'a Slot,
    before: usize,
}

impl Drop for Polling<'_> {
    fn drop(&mut self) {
        self.slot.leave();
        POLLED.set(self.before);
    }
}

fn register() -> Arc<Slot> {
    let slot = Arc::new(Slot {
        polls: AtomicU64::new(0),
        link: Mutex::default(),
        address: AtomicUsize::new(0),
        runtime: Handle::try_current().ok(),
    });
    let mut slots = WATCHDOG.slots.lock();
    slots.retain(|slot| slot.strong_count() > 0);
    slots.push(Arc::downgrade(&slot));
    slot
}

/// The watchdog's thread.
fn watch() {
    let mut seen: Vec<(Weak<Slot>, u64)> = Vec::new();
    let mut idle = 0;
    loop {
        match WATCHDOG.awake.load(Ordering::SeqCst) {
            true => thread::sleep(TICK),
            false => thread::park(),
        }
        let slots = WATCHDOG.slots.lock().clone();
        let mut busy = false;
        let looks = slots.into_iter().filter_map(|weak| {
            let slot = weak.upgrade()?;
            let polls = slot.polls.load(Ordering::SeqCst);
            let last = seen.iter().find(|(known, _)| known.ptr_eq(&weak));
            let is_same = last.is_some_and(|(_, last)| *last == polls);
            busy |= !is_same;
            if slot.is_polling() {
                busy = true;
                if is_same {
                    slot.relieve();
                }
            }
            Some((weak, polls))
        });
        seen = looks.collect();
        idle = if busy { 0 } else { idle + 1 };
        if idle == IDLE_TICKS {
            idle = 0;
            WATCHDOG.awake.store(false, Ordering::SeqCst);
            // A polling thread marks its slot first and checks `awake` then; here it is the
            // reverse. So at least one of the two sees the other.
            let slots = seen.iter().filter_map(|(slot, _)| slot.upgrade());
            if slots.into_iter().any(|slot| slot.is_polling()) {
                WATCHDOG.awake.store(true, Ordering::SeqCst);
            }
        }
    }
}

impl Slot {
    /// Marks that a handler of this link is about to be polled.
    fn enter(&self, link: &Arc<Link>) -> usize {
        let address = Arc::as_ptr(link).addr();
        // No other link can have the same address while the slot refers to this one.
        if self.address.load(Ordering::Relaxed) != address {
            *self.link.lock() = Arc::downgrade(link);
            self.address.store(address, Ordering::Relaxed);
        }
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls + 1, Ordering::SeqCst);
        if !WATCHDOG.awake.load(Ordering::SeqCst)
            && !WATCHDOG.awake.swap(true, Ordering::SeqCst)
            && let Some(thread) = &WATCHDOG.thread
        {
            thread.unpark();
        }
        address
    }

    fn leave(&self) {
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls + 1, Ordering::SeqCst);
    }

    fn is_polling(&self) -> bool {
        self.polls.load(Ordering::SeqCst) % 2 == 1
    }

    /// Has another worker go on with the link.
    fn relieve(&self) {
        let Some(link) = self.link.lock().upgrade() else {
            return;
        };
        match &self.runtime {
            // A task that is spawned from outside wakes a sleeping worker.
            Some(runtime) => drop(runtime.spawn(async move { link.relieve() })),
            None => link.relieve(),
        }
    }
}
