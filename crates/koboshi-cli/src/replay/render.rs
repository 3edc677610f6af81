//! Prints a replay: a block for each run with a message, and a sum; or one JSON object per run.

use std::io::{self, Write};
use std::path::Path;

use anstream::{stderr, stdout};
use anstyle::{AnsiColor, Style};

use super::judge::{GuardMessage, RunReport};
use super::record::Wrong;
use crate::args::Format;
use crate::input::{name_of, why_unreadable};
use crate::say::Say;

const STOP: Style = AnsiColor::Red.on_default().bold();
const NOTE: Style = AnsiColor::Yellow.on_default();

pub(super) struct Output<'s> {
    format: Format,
    say: &'s Say,
    runs: usize,
    calls: usize,
    noted: usize,
    stopped: usize,
    is_wrong: bool,
}

impl<'s> Output<'s> {
    pub(super) fn new(format: Format, say: &'s Say) -> Self {
        Self { format, say, runs: 0, calls: 0, noted: 0, stopped: 0, is_wrong: false }
    }

    /// Calls that were judged.
    pub(super) fn calls(&self) -> usize {
        self.calls
    }

    /// Whether something could not be read.
    pub(super) fn is_wrong(&self) -> bool {
        self.is_wrong
    }

    pub(super) fn run(&mut self, judged: &RunReport) -> io::Result<()> {
        self.runs += 1;
        self.calls += judged.calls;
        self.noted += usize::from(!judged.notes.is_empty());
        self.stopped += usize::from(!judged.stops.is_empty());
        let mut out = stdout().lock();
        if self.format == Format::Json {
            let text = serde_json::to_string(judged).map_err(io::Error::other)?;
            return writeln!(out, "{text}");
        }
        if judged.notes.is_empty() && judged.stops.is_empty() {
            return Ok(());
        }
        let calls = judged.calls.to_string();
        let id: String = judged.id.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        writeln!(out, "{}", self.say.text("guard-replay-run", &[("id", &id), ("calls", &calls)]))?;
        let notes = judged.notes.iter().map(|said| (said, false));
        let mut all: Vec<(&GuardMessage, bool)> =
            notes.chain(judged.stops.iter().map(|said| (said, true))).collect();
        all.sort_by_key(|(said, _)| said.at);
        for (said, is_stop) in all {
            let (phrase, style) =
                if is_stop { ("guard-replay-stop", STOP) } else { ("guard-replay-note", NOTE) };
            let label = self.say.text(phrase, &[]);
            // People count from 1.
            let (at, turn) = ((said.at + 1).to_string(), said.turn.to_string());
            let args = [("at", at.as_str()), ("turn", &turn), ("rule", said.rule), ("why", &said.why)];
            writeln!(out, "  {style}{label}{style:#} {}", self.say.text("guard-replay-said", &args))?;
        }
        Ok(())
    }

    pub(super) fn wrong(&mut self, path: &Path, line: usize, why: &Wrong) -> io::Result<()> {
        self.is_wrong = true;
        let reason = self.say.text(why.phrase, &[("detail", &self.say.json_error(&why.detail))]);
        writeln!(stderr().lock(), "koboshi: {}:{line}: {reason}", path.display())
    }

    pub(super) fn unreadable(&mut self, path: &Path, error: &io::Error) -> io::Result<()> {
        self.is_wrong = true;
        let name = name_of(Some(path), self.say.lang).unwrap_or_else(|| self.say.text("input-stdin", &[]));
        let reason = error.to_string();
        let said = self.say.text(why_unreadable(error), &[("name", &name), ("why", &reason)]);
        writeln!(stderr().lock(), "koboshi: {said}")
    }

    /// Reports an empty input: most often the wrong file.
    pub(super) fn empty(&mut self, path: &Path) -> io::Result<()> {
        self.is_wrong = true;
        let said = self.say.text("guard-replay-empty", &[]);
        writeln!(stderr().lock(), "koboshi: {}: {said}", path.display())
    }

    pub(super) fn end(&self) -> io::Result<()> {
        if self.format == Format::Json {
            return Ok(());
        }
        let numbers = [self.runs, self.calls, self.noted, self.stopped].map(|number| number.to_string());
        let [runs, calls, noted, stopped] = &numbers;
        let args = [("runs", runs.as_str()), ("calls", calls), ("noted", noted), ("stopped", stopped)];
        let phrase = if self.runs == 1 { "guard-replay-sum-of-one" } else { "guard-replay-sum" };
        writeln!(stdout().lock(), "{}", self.say.text(phrase, &args))
    }
}
