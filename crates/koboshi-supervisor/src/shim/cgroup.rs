//! A cgroup of its own for an agent with limits, where the machine has version 2 and lets us make one.
//!
//! The kernel then holds the limit of memory at every moment, and kills all processes in one step, also those that start others as fast as
//! they can. Where it is not there, or its controllers are not handed to us, what is measured from `/proc` and the adoption of orphans do the
//! same job a moment later. So nothing here is an error: a part that is refused is left out.
//!
//! A group with processes of its own cannot pass controllers on. So a supervisor that is alone in its group, as in a service with `Delegate=`,
//! moves into one below it, and the groups of runs are made beside that one; otherwise they are made below the group of the shim.

use std::fs;
use std::path::{Path, PathBuf};

use crate::folder::{Folder, TreeLimits};
use crate::identity::Identity;

/// The file of a run with the place of its group.
const PLACE: &str = "cgroup";
/// What names of groups begin with.
const PREFIX: &str = "koboshi-run-";
/// The group that a supervisor moves into.
const OF_SUPERVISOR: &str = "supervisor";
/// Threads count for the kernel, and the limit is one of processes: it is held by counting them, and this only bounds what starts between two looks.
const THREADS_OF_A_PROCESS: u32 = 64;

/// The group of one run.
#[derive(Debug)]
pub(super) struct Cgroup(PathBuf);

impl Cgroup {
    /// Makes a group for a run with limits, and notes it in the run's folder.
    pub(super) fn make(limits: &TreeLimits, folder: &Folder) -> Option<Self> {
        let read = |name| fs::read_to_string(name).unwrap_or_default();
        let base = base(&read("/proc/self/mounts"), &read("/proc/self/cgroup"))?;
        remove_left_over(&base);
        Self::make_in(&base, limits, folder)
    }

    fn make_in(base: &Path, limits: &TreeLimits, folder: &Folder) -> Option<Self> {
        let own = Identity::own()?;
        let group = Self(base.join(format!("{PREFIX}{}-{}", own.pid, own.start)));
        fs::create_dir(&group.0).ok()?;
        // Refused where they were not handed to us, or are there already.
        for controller in ["+memory", "+pids"] {
            let _ = fs::write(base.join("cgroup.subtree_control"), controller);
        }
        if let Some(memory) = limits.memory {
            group.set("memory.max", &memory.to_string());
            group.set("memory.swap.max", "0");
            group.set("memory.oom.group", "1");
        }
        if let Some(pids) = limits.pids {
            group.set("pids.max", &pids.saturating_mul(THREADS_OF_A_PROCESS).to_string());
        }
        fs::write(folder.file(PLACE), group.0.to_string_lossy().as_bytes()).ok()?;
        Some(group)
    }

    fn set(&self, name: &str, value: &str) {
        let _ = fs::write(self.0.join(name), value);
    }

    /// Kills everything in it.
    pub(super) fn kill(&self) {
        self.set("cgroup.kill", "1");
    }

    /// Whether the kernel had to kill in it for want of memory.
    pub(super) fn ran_out_of_memory(&self) -> bool {
        oom_kills(&fs::read_to_string(self.0.join("memory.events")).unwrap_or_default()) > 0
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // What is not empty yet is removed by the next one.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Moves this process out of a group in which it is alone, so that groups with limits can be made there.
pub(crate) fn step_aside() {
    let read = |name: &Path| fs::read_to_string(name).unwrap_or_default();
    let own = read(Path::new("/proc/self/cgroup"));
    let Some(base) = base(&read(Path::new("/proc/self/mounts")), &own) else { return };
    if is_alone(&read(&base.join("cgroup.procs")), std::process::id()) {
        let group = base.join(OF_SUPERVISOR);
        // One of an earlier supervisor is used again; where it is refused, runs are measured.
        let _ = fs::create_dir(&group);
        let _ = fs::write(group.join("cgroup.procs"), "0");
    }
}

fn is_alone(processes: &str, pid: u32) -> bool {
    processes.trim() == pid.to_string()
}

/// Kills everything in the group of a run whose shim is gone, if it has one.
pub(crate) fn kill_group(folder: &Folder) {
    if let Ok(place) = fs::read_to_string(folder.file(PLACE)) {
        let _ = fs::write(Path::new(&place).join("cgroup.kill"), "1");
    }
}

/// Goes into the group of a run, if it has one.
pub(super) fn enter(folder: &Folder) {
    if let Ok(place) = fs::read_to_string(folder.file(PLACE)) {
        let _ = fs::write(Path::new(&place).join("cgroup.procs"), "0");
    }
}

/// Groups whose shim was killed.
fn remove_left_over(base: &Path) {
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(shim_of) else { continue };
        if Identity::of(pid)
            .is_none_or(|process| format!("{PREFIX}{}-{}", pid, process.start).as_str() != name)
        {
            // One that has processes stays.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn shim_of(name: &str) -> Option<i32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// Where groups may be made: where version 2 is mounted, at the place of this process.
fn base(mounts: &str, own: &str) -> Option<PathBuf> {
    let mounted = mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let (_, place, kind) = (fields.next()?, fields.next()?, fields.next()?);
        (kind == "cgroup2").then_some(place)
    })?;
    let path = Path::new(own.lines().find_map(|line| line.strip_prefix("0::/"))?);
    let path = if path.ends_with(OF_SUPERVISOR) { path.parent()? } else { path };
    // One that was moved out of sight of this process has no place here.
    (!path.starts_with("..")).then(|| Path::new(mounted).join(path))
}

fn oom_kills(events: &str) -> u64 {
    let count = events.lines().find_map(|line| line.strip_prefix("oom_kill "));
    count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIFIED: &str = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
    const HYBRID: &str =
        "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
    const OLD: &str = "cgroup /sys/fs/cgroup/memory cgroup rw,memory 0 0\n";

    #[test]
    fn groups_are_made_where_the_machine_has_version_2_and_nowhere_else() {
        let unit = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/koboshi-agents.service";
        let place =
            "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/koboshi-agents.service";
        assert_eq!(base(UNIFIED, &format!("{unit}\n")), Some(place.into()));
        assert_eq!(
            base(UNIFIED, &format!("{unit}/supervisor\n")),
            Some(place.into()),
            "beside the supervisor"
        );
        assert_eq!(base(HYBRID, "4:memory:/x\n0::/\n"), Some("/sys/fs/cgroup/unified".into()));
        assert_eq!(base(UNIFIED, "0::/../other\n"), None);
        assert_eq!(base(OLD, "4:memory:/x\n"), None);
        assert_eq!(base(UNIFIED, "4:memory:/x\n"), None);
    }

    /// A plain folder in place of the kernel's: what is written there is what the kernel would be asked for.
    #[test]
    fn a_group_asks_the_kernel_for_each_limit_and_is_killed_in_one_step() {
        let place = tempfile::tempdir().unwrap();
        let (base, run) = (place.path().join("base"), place.path().join("run"));
        [&base, &run].into_iter().for_each(|folder| fs::create_dir(folder).unwrap());
        let limits = TreeLimits { memory: Some(96 << 20), pids: Some(30) };
        let group = Cgroup::make_in(&base, &limits, &Folder::at(&run)).unwrap();
        let asked = |name: &str| fs::read_to_string(group.0.join(name)).unwrap_or_default();
        let wanted = [
            ("memory.max", "100663296"),
            ("memory.swap.max", "0"),
            ("memory.oom.group", "1"),
            ("pids.max", "1920"),
            ("cgroup.kill", ""),
        ];
        for (name, value) in wanted {
            assert_eq!(asked(name), value, "{name}");
        }
        assert_eq!(group.0.parent(), Some(base.as_path()));
        assert_eq!(fs::read_to_string(run.join(PLACE)).unwrap(), group.0.to_str().unwrap());
        group.kill();
        assert_eq!(asked("cgroup.kill"), "1");
        assert!(!group.ran_out_of_memory());
        fs::write(group.0.join("memory.events"), "low 0\nmax 9\noom 1\noom_kill 1\noom_group_kill 1\n")
            .unwrap();
        assert!(group.ran_out_of_memory());
        let free = Cgroup::make_in(&base, &TreeLimits { memory: None, pids: Some(1) }, &Folder::at(&run));
        assert!(free.is_none(), "a group of this process is there already");
    }

    #[test]
    fn a_supervisor_moves_only_out_of_a_group_of_its_own() {
        assert!(is_alone("42\n", 42));
        assert!(!is_alone("1\n42\n", 42) && !is_alone("", 42) && !is_alone("7\n", 42));
    }

    #[test]
    fn kills_for_want_of_memory_are_counted() {
        assert_eq!(oom_kills("low 0\nhigh 3\nmax 9\noom 1\noom_kill 2\noom_group_kill 1\n"), 2);
        assert_eq!(oom_kills("oom_kill 0\n"), 0);
        assert_eq!(oom_kills(""), 0);
    }

    #[test]
    fn a_group_of_a_shim_is_known_by_its_name() {
        assert_eq!(shim_of("koboshi-run-42-987"), Some(42));
        assert_eq!(shim_of("user.slice"), None);
    }
}
