//! The reading of a log in which no line and no event decided.

use super::near::NEAR;
use super::{Findings, Line, Reader, keep_wait};
use crate::classify::answer::ErrorText;
use crate::classify::tool::ToolOutput;
use crate::fault::{Confidence, Fault, Kind, Sub};

/// The rule that evidence names where nothing but the exit code decided.
pub const EXIT_CODE: &str = "log.exit_code";
/// The rule that evidence names where a build tool says that its run failed, and nothing says why.
const FAILED_RUN: &str = "log.run_failed";
/// Signals that a process brings upon itself, as exit codes: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
const CRASHES: &[i32] = &[132, 134, 135, 136, 139];

/// What timeout(1) exits with when it ended the command.
const TIME_LIMIT: i32 = 124;

/// How far from the end the shell's line about a command may stand.
const SHELL_LINES: usize = 5;

impl Reader<'_> {
    /// Nothing decided on the way up.
    pub(super) fn leftover(&self, findings: Findings, exit_code: Option<i32>) -> Option<Fault> {
        if !findings.rejected.is_empty() {
            return Some(self.event_fault(self.last_line(), ErrorText::default(), &findings.rejected));
        }
        if let Some((index, error)) = &findings.pause
            && findings.unknown.is_none()
            && let (fault, true) = self.classifier.judge(error, self.own_wait(*index, error), true)
        {
            return Some(self.seen_at(*index, keep_wait(fault)));
        }
        if findings.status.is_some() {
            return findings.status;
        }
        if let Some(fault) = exit_code.and_then(|code| self.by_exit_code(code)) {
            return Some(fault);
        }
        if let Some(index) = findings.failed_run {
            return Some(self.failed_run(index));
        }
        let failure = findings.unknown.or(findings.bare);
        if exit_code.is_none() && failure.is_none() {
            return None;
        }
        Some(match failure {
            Some(line) if self.is_of_program(line) => self.tool_line(line),
            Some(line) => self.own_fault(line, "log.unknown", Confidence::Low),
            // The last line may well report a success: that the run failed is known from the exit code alone.
            None => only_the_exit_code(Fault::of(Kind::AgentError, EXIT_CODE)),
        })
    }

    /// `make: *** [all] Error 1`: that a run failed is said, and the lines above may say why.
    fn failed_run(&self, index: usize) -> Fault {
        let mut fault = self.tool_line(index);
        if fault.category.as_deref() == Some("other") && !is_reason(&fault) {
            // npm says in several lines that it failed, and the one with the reason may be a later one.
            let below = self.tool_lines(index, index..(index + NEAR).min(self.lines.len()));
            fault = if is_reason(&below) { below } else { fault };
        }
        if fault.category.as_deref() == Some("other") && !is_reason(&fault) {
            fault.evidence.rule = FAILED_RUN.into();
        }
        fault
    }

    /// Whether a program that agents call wrote this line: the agent did not fail.
    fn is_of_program(&self, index: usize) -> bool {
        let concepts = &self.classifier.log_concepts;
        let words = self.words(&Line::read(self.lines.get(index).copied().unwrap_or_default()).text);
        self.holds(&words, concepts.foreign) || self.holds(&words, concepts.program)
    }

    /// The last line with something in it.
    fn last_line(&self) -> usize {
        self.lines.iter().rposition(|line| !line.trim().is_empty()).unwrap_or_default()
    }

    /// What is left to read when the log says nothing. No line of it is evidence.
    fn by_exit_code(&self, code: i32) -> Option<Fault> {
        self.of_exit_code(code).map(only_the_exit_code)
    }

    /// The shell's line about a command that is missing or may not be run, beside its exit code.
    pub(super) fn not_started(&self, code: i32) -> Option<Fault> {
        let category = match code {
            126 => "permission",
            127 => "missing_command",
            _ => return None,
        };
        let from = self.lines.len().saturating_sub(SHELL_LINES);
        let index = (from..self.lines.len()).rev().find(|at| {
            let text = self.lines.get(*at).copied().unwrap_or_default();
            let output = ToolOutput { text, is_error: Some(true) };
            let fault = self.classifier.tool(&output, self.now);
            fault.is_some_and(|fault| fault.category.as_deref() == Some(category))
                || (code == 127 && is_of_env(text))
        })?;
        let mut fault = Fault::of(Kind::SpawnFailed, "log.not_started");
        fault.sub = (code == 127).then_some(Sub::Command);
        Some(self.seen_at(index, fault))
    }

    fn of_exit_code(&self, code: i32) -> Option<Fault> {
        // One agent exits with the HTTP status modulo 256; these values would be no usual signals.
        const STATUSES: &[u16] = &[400, 401, 402, 403, 404, 413, 429, 500, 503];
        let status = STATUSES.iter().find(|status| i32::from(**status % 256) == code);
        if let Some(status) = status.filter(|_| self.lines.iter().any(|line| line.contains("gemini"))) {
            let error = ErrorText { status: Some(*status), ..ErrorText::default() };
            return Some(self.classifier.judge(&error, None, true).0);
        }
        if matches!(code, 126 | 127) {
            // The shell's own words for "cannot be run" and "not found".
            return Some(Fault::of(Kind::SpawnFailed, EXIT_CODE));
        }
        if code == TIME_LIMIT {
            let mut fault = Fault::of(Kind::ProcessFailed, EXIT_CODE);
            fault.sub = Some(Sub::TimeLimit);
            return Some(fault);
        }
        (code > 128).then(|| {
            let mut fault = Fault::of(Kind::ProcessFailed, EXIT_CODE);
            fault.sub = Some(if CRASHES.contains(&code) { Sub::Crash } else { Sub::Signal });
            fault
        })
    }
}

/// What git and npm say of themselves is a reason, also where it belongs to no category.
pub(super) fn is_reason(fault: &Fault) -> bool {
    ["tool.git.", "tool.npm."].iter().any(|rules| fault.evidence.rule.starts_with(rules))
}

/// `env: 'node': No such file or directory`: the interpreter that a script names is missing.
fn is_of_env(line: &str) -> bool {
    let line = line.trim();
    (line.starts_with("env: ") || line.starts_with("/usr/bin/env: "))
        && line.ends_with("No such file or directory")
}

fn only_the_exit_code(mut fault: Fault) -> Fault {
    fault.evidence.rule = EXIT_CODE.into();
    fault.confidence = Confidence::Low;
    fault
}
