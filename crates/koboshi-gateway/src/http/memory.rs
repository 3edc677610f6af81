//! Limits the memory that the bodies of all requests take together.
//!
//! Every body that is being read or served has a [`MemoryShare`] of the budget. One that does not fit is refused before it is read, and may be
//! sent again a moment later: a process that runs out of memory would cut all streams. A body counts three times, because its
//! translation for another dialect and the bytes on their way to the provider may exist beside it. A large answer of a provider
//! counts as well.
//!
//! Small bodies have a reserve above the limit: a few clients with large ones must not shut out all the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many copies of a body may exist at the same time.
const COPIES: u64 = 3;
/// An answer up to this length does not count: those of all connections together are small, and counting costs time.
const UNCOUNTED: usize = 256 * 1024;
/// A body up to this length may use the reserve.
const SMALL: usize = 64 * 1024;
/// The part of the limit that the reserve has.
const RESERVE: u64 = 8;
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

    /// Resizes the share of an answer of this length, of which all copies count. One that is not large has none. False if that exceeds
    /// the limit.
    pub(crate) fn fit_answer(
        self: &Arc<Self>,
        share: &mut Option<MemoryShare>,
        answer: usize,
        limit: u64,
    ) -> bool {
        answer <= UNCOUNTED || share.get_or_insert_with(|| self.share()).fit(answer, limit)
    }

    /// The same for frames that wait to be sent, and have no copies.
    pub(crate) fn fit_frames(
        self: &Arc<Self>,
        share: &mut Option<MemoryShare>,
        frames: usize,
        limit: u64,
    ) -> bool {
        self.fit_answer(share, usize::try_from(frames as u64 / COPIES).unwrap_or(usize::MAX), limit)
    }
}

impl MemoryShare {
    /// Resizes it for a body of this length. False, and unchanged, if that exceeds the limit.
    pub(crate) fn fit(&mut self, body: usize, limit: u64) -> bool {
        let (more, limit) = (self.missing_for(body), limit_for(body, limit));
        if more == 0 {
            return true;
        }
        let taken = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(more).filter(|sum| *sum <= limit)
        });
        if taken.is_ok() {
            self.bytes += more;
        }
        taken.is_ok()
    }

    /// Whether a body of this length would fit now.
    pub(crate) fn could_fit(&self, body: usize, limit: u64) -> bool {
        let used = self.budget.used.load(Ordering::Relaxed);
        used.checked_add(self.missing_for(body)).is_some_and(|sum| sum <= limit_for(body, limit))
    }

    fn missing_for(&self, body: usize) -> u64 {
        COPIES.saturating_mul(body as u64).saturating_sub(self.bytes)
    }
}

/// The limit for a body of this length.
fn limit_for(body: usize, limit: u64) -> u64 {
    if body <= SMALL { limit.saturating_add(limit / RESERVE) } else { limit }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The limit where none is configured: a quarter of the memory of the machine, of the container, or of the service (`MemoryMax=` of systemd).
pub(crate) fn default_limit() -> u64 {
    let machine = std::fs::read_to_string("/proc/meminfo").ok().and_then(|text| total_of(&text));
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits = limit_files(&groups).into_iter().filter_map(|file| std::fs::read_to_string(file).ok());
    // Without a limit it is `max`, or a number that is larger than every machine.
    let smaller = machine.into_iter().chain(limits.filter_map(|text| text.trim().parse().ok())).min();
    smaller.unwrap_or(UNKNOWN_MACHINE) / 4
}

/// Where the memory limits of a process are, by its groups (`/proc/self/cgroup`): its own one, and those of all groups around it. In a container the
/// path of the group is often that of the host, and only the outermost file is there.
fn limit_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next()) else {
            continue;
        };
        let (root, name) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            _ if controllers.split(',').any(|one| one == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => continue,
        };
        let mut path = path.trim_end_matches('/');
        files.push(format!("{root}{path}/{name}"));
        while let Some((around, _)) = path.rsplit_once('/') {
            files.push(format!("{root}{around}/{name}"));
            path = around;
        }
    }
    files
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

    #[test]
    fn the_limits_of_all_groups_around_a_process_count() {
        let unified = limit_files("0::/system.slice/koboshi.service\n");
        assert_eq!(
            unified,
            [
                "/sys/fs/cgroup/system.slice/koboshi.service/memory.max",
                "/sys/fs/cgroup/system.slice/memory.max", "/sys/fs/cgroup/memory.max",
            ]
        );
        let old = limit_files("12:pids:/docker/1\n5:cpu,memory:/docker/1\n1:name=systemd:/docker/1\n");
        let root = "/sys/fs/cgroup/memory";
        assert_eq!(
            old,
            [format!("{root}/docker/1"), format!("{root}/docker"), root.to_owned()]
                .map(|folder| format!("{folder}/memory.limit_in_bytes"))
        );
        assert_eq!(limit_files("0::/\n"), ["/sys/fs/cgroup/memory.max"], "a container");
        assert!(limit_files("nothing").is_empty());
    }

    #[test]
    fn large_bodies_leave_a_reserve_for_small_ones() {
        let budget = Arc::new(MemoryBudget::default());
        let limit = 3 << 20;
        let mut large = budget.share();
        assert!(large.fit(1 << 20, limit), "exactly all");
        let mut more = budget.share();
        assert!(!more.could_fit(SMALL + 1, limit) && !more.fit(SMALL + 1, limit));
        assert!(more.could_fit(SMALL, limit) && more.fit(SMALL, limit));
        let mut others: Vec<_> = (0..10).map(|_| budget.share()).collect();
        let served = others.iter_mut().map(|share| share.fit(SMALL, limit)).filter(|fits| *fits).count();
        assert_eq!(served, 1, "the reserve has an end");
    }

    #[test]
    fn a_large_answer_counts_and_a_small_one_costs_nothing() {
        let budget = Arc::new(MemoryBudget::default());
        let mut share = None;
        assert!(budget.fit_answer(&mut share, UNCOUNTED, 0) && share.is_none());
        assert!(!budget.fit_answer(&mut share, UNCOUNTED + 1, UNCOUNTED as u64));
        assert!(budget.fit_answer(&mut share, 1 << 20, 3 << 20));
        assert!(!budget.fit_answer(&mut None, 1 << 20, 3 << 20), "the first one has all");
        drop(share);
        assert_eq!(budget.used.load(Ordering::Relaxed), 0);
    }
}
