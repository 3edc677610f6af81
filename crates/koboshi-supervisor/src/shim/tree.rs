//! Everything that descends from the shim, in whatever session.
//!
//! The shim is the parent of orphans below it, so nothing gets away: a process whose own parent ends becomes a child of the shim. A process is
//! signalled by a descriptor that was opened before its start time was compared, never by a bare number.

use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use crate::identity::{Identity, Stat};

/// No tree is deeper or larger than this; what is beyond is found once the rest is gone.
const MOST: usize = 100_000;

/// Buries children that are not the agent: orphans that were adopted. The agent's own end is left for its owner.
pub(super) fn reap_strangers(agent: i32) {
    let dead = children(own()).into_iter().filter(|pid| *pid != agent && is_dead(*pid));
    for dead in dead.filter_map(Pid::from_raw) {
        let _ = waitpid(Some(dead), WaitOptions::NOHANG);
    }
}

/// Sends a signal to every descendant; says how many there were.
pub(super) fn send_to_all(signal: Signal) -> u32 {
    let mut count = 0;
    for pid in descendants() {
        let sent = Identity::of(pid).is_some_and(|process| !is_dead(pid) && process.signal(signal));
        count += u32::from(sent);
    }
    count
}

/// Whether anything is left that lives.
pub(super) fn any_left() -> bool {
    descendants().into_iter().any(|pid| !is_dead(pid))
}

fn is_dead(pid: i32) -> bool {
    Stat::read(pid).is_none_or(Stat::is_dead)
}

fn own() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

fn descendants() -> Vec<i32> {
    let mut found = children(own());
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        if found.len() < MOST {
            found.extend(children(pid));
        }
    }
    found
}

/// The children of a process, of all its threads.
fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let of_thread = |thread: fs::DirEntry| fs::read_to_string(thread.path().join("children"));
    let lists: Result<Vec<String>, _> = threads.flatten().map(of_thread).collect();
    match lists {
        Ok(lists) => lists
            .iter()
            .flat_map(|list| list.split_ascii_whitespace())
            .filter_map(|pid| pid.parse().ok())
            .collect(),
        // A kernel without these lists: every process is asked for its parent.
        Err(_) => all().filter(|other| Stat::read(*other).is_some_and(|stat| stat.parent == pid)).collect(),
    }
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
