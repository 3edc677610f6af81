//! The step between the shim and the agent: it makes itself ready and becomes the agent.
//!
//! A session of its own with the agent as its leader, so that a signal to the group reaches it and none of ours does; the terminal, if there
//! is one, becomes the agent's own; inherited descriptors are closed by the change of program. Nothing of this needs `unsafe`, because a
//! whole process does it to itself.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{Signal, ioctl_tiocsctty, set_parent_process_death_signal, setsid};

use crate::folder::{Folder, Refusal, write_whole};

/// Why the agent could not be run.
const FAILURE: &str = "failure";

pub(super) fn become_agent(path: &Path, command: &[OsString]) -> u8 {
    let folder = Folder::at(path);
    let error = prepared(&folder, command).err().unwrap_or_else(|| io::ErrorKind::Other.into());
    let why = Refusal::of(&error);
    let said = serde_json::to_vec(&(why, error.to_string())).unwrap_or_default();
    // Without the file the exit code tells.
    let _ = write_whole(&folder.file(FAILURE), &said);
    if why == Refusal::Missing { 127 } else { 126 }
}

/// Comes back only with an error.
fn prepared(folder: &Folder, command: &[OsString]) -> io::Result<()> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let _ = setsid();
    if folder.spec()?.terminal {
        ioctl_tiocsctty(rustix::stdio::stdin())?;
    }
    // A shim that is killed cannot stop the agent any more.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    close_fds::set_fds_cloexec(3, &[]);
    Err(Command::new(program).args(arguments).exec())
}

/// Why the agent could not be run, if it could not.
pub(super) fn failure(folder: &Folder) -> Option<(Refusal, String)> {
    serde_json::from_slice(&std::fs::read(folder.file(FAILURE)).ok()?).ok()
}
