//! Everything that descends from the shim, in whatever session.
//!
//! The shim is the subreaper of its tree, so nothing escapes: a process whose own parent ends becomes a child of the shim. Signals go to a
//! descriptor that was opened before the start time was compared, never to a bare number.

use std::fs;

use rustix::process::{Pid, Signal, WaitOptions, waitpid};

use crate::identity::{Identity, Stat};

/// At most this many processes are listed at once; further ones are found when these are gone.
const MAX_PROCESSES: usize = 100_000;

/// How often to look for processes that were started while the others were being stopped.
const ROUNDS: usize = 20;

/// Reaps children other than the agent: adopted orphans. The agent itself is reaped elsewhere.
pub(super) fn reap_strangers(agent: i32) {
    let dead = children(own()).into_iter().filter(|pid| *pid != agent && is_dead(*pid));
    for dead in dead.filter_map(Pid::from_raw) {
        let _ = waitpid(Some(dead), WaitOptions::NOHANG);
    }
}

/// Sends a signal to every descendant; returns how many there were.
pub(super) fn send_to_all(signal: Signal) -> u32 {
    let mut count = 0;
    for pid in descendants() {
        let sent = Identity::of(pid).is_some_and(|process| !is_dead(pid) && process.signal(signal));
        count += u32::from(sent);
    }
    count
}

/// Kills every descendant, also those that fork as fast as they can: all are stopped first, so that none starts another one meanwhile.
pub(super) fn kill_all() {
    let mut stopped = 0;
    for _ in 0..ROUNDS {
        let now = send_to_all(Signal::STOP);
        if now <= stopped {
            break;
        }
        stopped = now;
    }
    send_to_all(Signal::KILL);
}

/// Whether a living descendant is left.
pub(super) fn any_left() -> bool {
    descendants().into_iter().any(|pid| !is_dead(pid))
}

fn is_dead(pid: i32) -> bool {
    Stat::read(pid).is_none_or(Stat::is_dead)
}

fn own() -> i32 {
    i32::try_from(std::process::id()).unwrap_or(0)
}

/// Every process below the shim, zombies included.
pub(super) fn descendants() -> Vec<i32> {
    let mut found = children(own());
    let mut next = 0;
    while let Some(pid) = found.get(next).copied() {
        next += 1;
        if found.len() < MAX_PROCESSES {
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
        // A kernel without these lists: read the parent of every process.
        Err(_) => all().filter(|other| Stat::read(*other).is_some_and(|stat| stat.parent == pid)).collect(),
    }
}

fn all() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}
