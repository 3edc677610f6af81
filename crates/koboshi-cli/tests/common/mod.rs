//! Runs the real binary.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests")]

pub(crate) mod pages;
pub(crate) mod served;
pub(crate) mod supervised;

use std::io::{Read, Write};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;

/// Signals that end a process, with their numbers.
#[rustfmt::skip]
pub(crate) const FATAL_SIGNALS: [(&str, i32); 15] = [
    ("HUP", 1), ("INT", 2), ("QUIT", 3), ("ILL", 4), ("TRAP", 5), ("ABRT", 6), ("BUS", 7), ("FPE", 8),
    ("KILL", 9), ("USR1", 10), ("SEGV", 11), ("USR2", 12), ("PIPE", 13), ("ALRM", 14), ("TERM", 15),
];

/// The result of a run.
pub(crate) struct Out {
    pub(crate) status: i32,
    pub(crate) text: String,
    pub(crate) error: String,
}

/// A process that ends with the test, also with one that fails: a gateway that stays would keep the test's output open.
pub(crate) struct Running(Child);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(command.spawn().unwrap())
    }
}

impl Deref for Running {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Running {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The command, with no language, rules, config, store or terminal from the environment of the test, in the zone UTC.
pub(crate) fn koboshi(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_koboshi"));
    for name in [
        "LC_ALL", "LC_MESSAGES", "LANG", "KOBOSHI_RULES", "KOBOSHI_CONFIG", "KOBOSHI_STORE", "KOBOSHI_URL",
        "KOBOSHI_ADMIN_KEY", "COLUMNS",
    ] {
        command.env_remove(name);
    }
    command.env("XDG_CONFIG_HOME", "/there/is/none").env("TZ", "UTC").args(args);
    command
}

pub(crate) fn run(args: &[&str]) -> Out {
    run_with(args, &[], "")
}

pub(crate) fn run_with(args: &[&str], environment: &[(&str, &str)], input: &str) -> Out {
    let mut command = koboshi(args);
    command
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    // A command that does not read its input closes the pipe: that is its right.
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    Out {
        status: output.status.code().unwrap(),
        text: String::from_utf8(output.stdout).unwrap(),
        error: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn json(out: &Out) -> Value {
    serde_json::from_str(&out.text).unwrap_or_else(|error| panic!("{error}: {}\n{}", out.text, out.error))
}

/// A file of this test run.
pub(crate) fn scratch(name: &str, text: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Runs the command with both outputs on one terminal, as a person sees it.
pub(crate) fn on_terminal(command: Command) -> String {
    on_a_terminal(command, false)
}

/// The same with its input on the terminal too.
pub(crate) fn on_terminal_whole(command: Command) -> String {
    on_a_terminal(command, true)
}

fn on_a_terminal(mut command: Command, input: bool) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
    let side = || std::fs::OpenOptions::new().read(true).write(true).open(&name).unwrap();
    let stdin = if input { Stdio::from(side()) } else { Stdio::null() };
    let mut child = command.stdin(stdin).stdout(side()).stderr(side()).spawn().unwrap();
    // The other side must have no owner but the child: its end is the end of what there is to read.
    drop(command);
    let mut said = Vec::new();
    let mut screen = std::fs::File::from(terminal);
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = screen.read(&mut buffer) {
        said.extend_from_slice(buffer.get(..count).unwrap());
    }
    child.wait().unwrap();
    String::from_utf8(said).unwrap()
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}
