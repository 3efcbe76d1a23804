//! Counts allocations, locks and tasks in this process.

use std::ops::{Div, Sub};

#[cfg(belay_counted)]
#[global_allocator]
static COUNTING: &stats_alloc::StatsAlloc<std::alloc::System> = &stats_alloc::INSTRUMENTED_SYSTEM;

#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub(crate) allocations: f64,
    pub(crate) locks: f64,
    pub(crate) tasks: f64,
}

impl Counts {
    /// The counts so far.
    #[cfg(belay_counted)]
    fn now() -> Self {
        let stats = COUNTING.stats();
        let (locks, tasks) = belay::locks_and_tasks();
        Self {
            allocations: (stats.allocations + stats.reallocations) as f64,
            locks: locks as f64,
            tasks: tasks as f64,
        }
    }

    /// This build does not count.
    #[cfg(not(belay_counted))]
    fn now() -> Self {
        Self::default()
    }

    /// Prints the counts for the parent process. Called last.
    pub(crate) fn report() {
        let Self {
            allocations,
            locks,
            tasks,
        } = Self::now();
        eprintln!("counts {allocations} {locks} {tasks}");
    }

    /// Parses the counts that a process has reported.
    pub(crate) fn read(stderr: &str) -> Option<Self> {
        let line = stderr
            .lines()
            .find_map(|line| line.strip_prefix("counts "))?;
        let mut numbers = line.split(' ').map(|number| number.parse().ok());
        let mut next = || numbers.next().flatten();
        Some(Self {
            allocations: next()?,
            locks: next()?,
            tasks: next()?,
        })
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            allocations: self.allocations - other.allocations,
            locks: self.locks - other.locks,
            tasks: self.tasks - other.tasks,
        }
    }
}

impl Div<f64> for Counts {
    type Output = Self;

    fn div(self, by: f64) -> Self {
        Self {
            allocations: self.allocations / by,
            locks: self.locks / by,
            tasks: self.tasks / by,
        }
    }
}
