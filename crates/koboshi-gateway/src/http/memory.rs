//! Limits the memory that the bodies of all requests take together.
//!
//! Every body that is being read or served has a [`MemoryShare`] of the budget. One that does not fit is refused before it is read, and may be
//! sent again a moment later: a process that runs out of memory would cut all streams. A body counts three times, because its
//! translation for another dialect and the bytes on their way to the provider may exist beside it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many copies of a body may exist at the same time.
const COPIES: u64 = 3;
/// The assumed memory where the machine does not report it.
const UNKNOWN_MACHINE: u64 = 4 << 30;

/// What all requests have taken.
#[derive(Debug, Default)]
pub(crate) struct MemoryBudget {
    used: AtomicU64,
}

/// What one request has taken; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryShare {
    budget: Arc<MemoryBudget>,
    bytes: u64,
}

impl MemoryBudget {
    /// An empty share, for one request.
    pub(crate) fn share(self: &Arc<Self>) -> MemoryShare {
        MemoryShare { budget: Arc::clone(self), bytes: 0 }
    }
}

impl MemoryShare {
    /// Resizes it for a body of this length. False, and unchanged, if that exceeds the limit.
    pub(crate) fn fit(&mut self, body: usize, limit: u64) -> bool {
        let wanted = COPIES.saturating_mul(body as u64);
        let more = wanted.saturating_sub(self.bytes);
        let taken = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|sum| *sum <= limit)
        });
        if taken.is_ok() {
            self.bytes += more;
        }
        taken.is_ok()
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The limit where none is configured: a quarter of the memory of the machine, or of the container.
pub(crate) fn default_limit() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let container = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok();
    let container = container.and_then(|text| text.trim().parse().ok());
    let smaller = machine.into_iter().chain(container).min();
    smaller.unwrap_or(UNKNOWN_MACHINE) / 4
}

/// `MemTotal:       24538012 kB`.
fn total_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_given_back_and_never_more_than_the_limit() {
        let budget = Arc::new(MemoryBudget::default());
        let (mut first, mut second) = (budget.share(), budget.share());
        assert!(first.fit(100, 1000) && first.fit(200, 1000), "it grows with what comes");
        assert_eq!(budget.used.load(Ordering::Relaxed), 600);
        assert!(!second.fit(200, 1000), "only 400 are left");
        assert!(second.fit(100, 1000));
        drop(first);
        assert!(second.fit(300, 1000));
        drop(second);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn the_memory_of_a_machine_is_read() {
        assert_eq!(total_of("MemTotal:       24538012 kB\nMemFree: 1 kB\n"), Some(24_538_012 * 1024));
        assert_eq!(total_of("nothing"), None);
        assert!(default_limit() > 0);
    }
}
