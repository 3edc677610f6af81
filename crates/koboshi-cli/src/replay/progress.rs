//! Shows the progress of a long replay on a terminal. Nothing is shown in pipes and files.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::clock::tick;
use crate::say::Say;

/// A short replay shows no progress, and a terminal gets no more than a few lines a second.
const QUIET: Duration = Duration::from_millis(700);
const EVERY: Duration = Duration::from_millis(250);

pub(super) struct Progress<'s> {
    say: &'s Say,
    is_shown: bool,
    next: Instant,
    runs: usize,
    bytes: usize,
    is_dirty: bool,
}

impl<'s> Progress<'s> {
    pub(super) fn new(say: &'s Say) -> Self {
        let is_shown = std::io::stderr().is_terminal();
        Self { say, is_shown, next: tick() + QUIET, runs: 0, bytes: 0, is_dirty: false }
    }

    /// Counts a run that was read.
    pub(super) fn step(&mut self, bytes: usize, calls: usize) {
        self.runs += 1;
        self.bytes += bytes;
        if !self.is_shown || tick() < self.next {
            return;
        }
        self.next = tick() + EVERY;
        self.is_dirty = true;
        let (runs, calls) = (self.runs.to_string(), calls.to_string());
        let megabytes = (self.bytes / 1_000_000).to_string();
        let args = [("runs", runs.as_str()), ("calls", &calls), ("megabytes", &megabytes)];
        // A failure to show progress does not matter.
        let _ = write!(std::io::stderr(), "\r\u{1b}[K{}", self.say.text("guard-replay-progress", &args));
    }

    /// Clears the line, before other output.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}
