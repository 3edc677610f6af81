//! Real child processes without a program of their own: the test program starts itself with a part to play.
//!
//! A test program that uses this has a test named `child` that does nothing unless it was started with a part.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

const PART: &str = "KOBOSHI_TEST_PART";
const MARK: &str = "told: ";

/// The part that this process was started with, and its arguments.
pub(crate) fn part() -> Option<(String, Vec<String>)> {
    let mut words = std::env::var(PART).ok()?.split('\n').map(str::to_owned).collect::<Vec<_>>().into_iter();
    Some((words.next()?, words.collect()))
}

/// Tells the parent something, at once.
pub(crate) fn tell(line: impl std::fmt::Display) {
    let mut out = std::io::stdout().lock();
    // One write and the end of the line before it: the test harness writes to the same place.
    out.write_all(format!("\n{MARK}{line}\n").as_bytes()).unwrap();
    out.flush().unwrap();
}

/// A process that plays a part. It is killed when it is dropped.
pub(crate) struct Actor {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Actor {
    pub(crate) fn start(part: &str, words: &[&str]) -> Self {
        let part = [&[part], words].concat().join("\n");
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child", "--exact", "--nocapture", "--test-threads=1"])
            .env(PART, part)
            .env(crate::common::BEGINNING, crate::common::beginning().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next thing it tells; none when it has ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.unwrap();
            if let Some(told) = line.strip_prefix(MARK) {
                return Some(told.to_owned());
            }
        }
    }

    /// Everything it tells until it ends well.
    pub(crate) fn hear_out(mut self) -> Vec<String> {
        let told = std::iter::from_fn(|| self.hear()).collect();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
        told
    }

    /// Sends it a signal such as `-STOP`.
    pub(crate) fn signal(&self, name: &str) {
        koboshi_testkit::signal(&self.child, name);
    }

    /// Kills it as hard as can be, and gives what it had still told.
    pub(crate) fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::iter::from_fn(|| self.hear()).collect()
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
