//! What is left of a run whose shim was killed.
//!
//! Every process of a run has the place of its folder in its environment. The agent itself dies with the shim, but what it started does not:
//! those processes are found by that mark, in whatever session they are, and by the cgroup of the run where it has one.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::event::{Timespec, poll};
use rustix::process::Signal;

use crate::folder::Folder;
use crate::identity::Identity;
use crate::shim;

/// The variable with the place of a run's folder.
pub(crate) const RUN: &str = "KOBOSHI_RUN";

/// How often to look for processes that were started while the others were being killed.
const ROUNDS: usize = 200;
/// How long a killed process may take to go.
const PAUSE: Timespec = Timespec { tv_sec: 0, tv_nsec: 10_000_000 };

/// The place as every process sees it, wherever it was started.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Kills every process of a run that has no shim; returns how many there were.
pub(crate) fn kill_left(folder: &Folder) -> u32 {
    shim::kill_group(folder);
    let mut killed = 0_u32;
    for _ in 0..ROUNDS {
        let left = processes(&absolute(folder.path()));
        if left.is_empty() {
            break;
        }
        for process in &left {
            killed = killed.saturating_add(u32::from(process.signal(Signal::KILL)));
        }
        let _ = poll(&mut [], Some(&PAUSE));
    }
    killed
}

/// The living processes with the mark of this run. Others than our user's cannot be read, and are never ours.
fn processes(run: &Path) -> Vec<Identity> {
    let wanted = [RUN.as_bytes(), b"=", run.as_os_str().as_encoded_bytes()].concat();
    let own = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| u32::try_from(*pid) != Ok(own))
        // Compared after it was named: a process that took the number meanwhile has another start time.
        .filter_map(|pid| Some((Identity::of(pid)?, fs::read(format!("/proc/{pid}/environ")).ok()?)))
        .filter(|(_, environment)| environment.split(|byte| *byte == 0).any(|one| one == wanted))
        .map(|(process, _)| process)
        .filter(Identity::is_alive)
        .collect()
}
