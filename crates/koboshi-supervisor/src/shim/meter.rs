//! Measures what an agent and everything that it started take together: memory and processes.
//!
//! It reads `/proc` several times a second, because that works on every machine and for every user. Memory is what belongs to a process alone
//! or is shared memory; programs and libraries, which are mapped from files and exist once for all, are not counted. Between two
//! measurements a tree can exceed its limit, unless the run has a cgroup: there the kernel holds the limit of memory at every moment.

use std::fs;
use std::time::Duration;

use crate::folder::{Excess, TreeLimits};

use super::tree;

/// How often a tree is measured.
pub(super) const EVERY: Duration = Duration::from_millis(100);

/// Whether there is anything to measure.
pub(super) const fn is_needed(limits: &TreeLimits) -> bool {
    limits.memory.is_some() || limits.pids.is_some()
}

/// The limit that the tree exceeds, if any.
pub(super) fn excess(limits: &TreeLimits) -> Option<Excess> {
    if !is_needed(limits) {
        return None;
    }
    let (mut memory, mut count) = (0_u64, 0_u32);
    for taken in tree::descendants().into_iter().filter_map(taken_by) {
        memory = memory.saturating_add(taken);
        count = count.saturating_add(1);
    }
    if limits.memory.is_some_and(|limit| memory > limit) {
        Some(Excess::Memory)
    } else {
        limits.pids.is_some_and(|limit| count > limit).then_some(Excess::Processes)
    }
}

/// Bytes that one process takes; none for one that is gone.
fn taken_by(pid: i32) -> Option<u64> {
    bytes_of(&fs::read_to_string(format!("/proc/{pid}/status")).ok()?)
}

/// A dead process has only its name left, without these lines.
fn bytes_of(status: &str) -> Option<u64> {
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    // Old kernels do not report the private part.
    let own = kib("RssAnon:").or_else(|| kib("VmRSS:"))?;
    Some(own.saturating_add(kib("RssShmem:").unwrap_or(0)).saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_what_belongs_to_a_process_and_what_it_shares_on_purpose() {
        let status = "Name:\tnode\nRssAnon:\t    1000 kB\nRssFile:\t   90000 kB\nRssShmem:\t      24 kB\nThreads:\t9\n";
        assert_eq!(bytes_of(status), Some(1024 * 1024));
        assert_eq!(bytes_of("Name:\tsh\nState:\tZ (zombie)\n"), None, "the dead take nothing");
    }

    #[test]
    fn without_limits_nothing_is_measured() {
        assert_eq!(excess(&TreeLimits::default()), None);
        assert!(!is_needed(&TreeLimits::default()));
    }
}
