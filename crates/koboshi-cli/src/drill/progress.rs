//! Shows on a terminal how far a drill is. Nothing is shown in pipes and files.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use crate::clock::tick;
use crate::say::Say;

/// A short drill shows no progress, and a terminal gets no more than a few lines a second.
const QUIET: Duration = Duration::from_millis(500);
const EVERY: Duration = Duration::from_millis(200);

pub(super) struct Progress<'s> {
    say: &'s Say,
    is_shown: bool,
    next: Instant,
    done: usize,
    total: usize,
    is_dirty: bool,
}

impl<'s> Progress<'s> {
    pub(super) fn new(say: &'s Say, total: usize) -> Self {
        let is_shown = std::io::stderr().is_terminal();
        Self { say, is_shown, next: tick() + QUIET, done: 0, total, is_dirty: false }
    }

    /// Counts a scenario that was played.
    pub(super) fn step(&mut self) {
        self.done += 1;
        if !self.is_shown || tick() < self.next {
            return;
        }
        (self.next, self.is_dirty) = (tick() + EVERY, true);
        let (done, total) = (self.done.to_string(), self.total.to_string());
        let text = self.say.text("drill-progress", &[("done", &done), ("total", &total)]);
        // A failure to show progress does not matter.
        let _ = write!(std::io::stderr(), "\r\u{1b}[K{text}");
    }

    /// Clears the line, before other output.
    pub(super) fn clear(&mut self) {
        if std::mem::take(&mut self.is_dirty) {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}
