//! What is left to say when no line and no event of a log decided.

use super::{Findings, Reader, keep_wait};
use crate::classify::answer::ErrorText;
use crate::fault::{Confidence, Fault, Kind, Sub};

/// The rule that evidence names where nothing but the exit code decided.
pub const EXIT_CODE: &str = "log.exit_code";
/// Signals that a process brings upon itself, as exit codes: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
const CRASHES: &[i32] = &[132, 134, 135, 136, 139];

impl Reader<'_> {
    /// Nothing decided on the way up.
    pub(super) fn leftover(&self, findings: Findings, exit_code: Option<i32>) -> Option<Fault> {
        if !findings.rejected.is_empty() {
            return Some(self.event_fault(self.last_line(), ErrorText::default(), &findings.rejected));
        }
        if let Some((index, error)) = &findings.pause
            && findings.unknown.is_none()
            && let (fault, true) = self.classifier.judge(error, self.own_wait(error), true)
        {
            return Some(self.seen_at(*index, keep_wait(fault)));
        }
        if findings.status.is_some() {
            return findings.status;
        }
        let failure = findings.unknown.or(findings.bare);
        if exit_code.is_none() && failure.is_none() {
            return None;
        }
        if let Some(fault) = exit_code.and_then(|code| self.by_exit_code(code)) {
            return Some(fault);
        }
        Some(self.own_fault(failure.unwrap_or_else(|| self.last_line()), "log.unknown", Confidence::Low))
    }

    /// The last line with something in it.
    fn last_line(&self) -> usize {
        self.lines.iter().rposition(|line| !line.trim().is_empty()).unwrap_or_default()
    }

    /// What is left to read when the log says nothing. No line of it is evidence.
    fn by_exit_code(&self, code: i32) -> Option<Fault> {
        let mut fault = self.of_exit_code(code)?;
        fault.evidence.rule = EXIT_CODE.into();
        fault.confidence = Confidence::Low;
        Some(fault)
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
        (code > 128).then(|| {
            let mut fault = Fault::of(Kind::ProcessFailed, EXIT_CODE);
            fault.sub = Some(if CRASHES.contains(&code) { Sub::Crash } else { Sub::Signal });
            fault
        })
    }
}
