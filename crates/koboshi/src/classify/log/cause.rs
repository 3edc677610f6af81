//! The cause of a failed connection, where the line that reports it names none.
//!
//! `APIConnectionError: Connection error.` is a client's wrapper: that the name could not be resolved, or that the certificate is
//! not trusted, stands in the next line or in the exception that the wrapper was raised from. Only the finer reason is looked for:
//! that the connection failed is decided already.

use super::Reader;
use super::line::Line;
use crate::classify::answer::ErrorText;
use crate::fault::{Fault, Kind};

/// How far from the wrapper its cause may stand.
const BESIDE: usize = 3;
/// How far above it, where the text says that the exceptions belong together.
const CHAINED: usize = 80;

impl Reader<'_> {
    /// The same fault with its cause, if a line near it names one.
    pub(super) fn with_cause(&self, index: usize, fault: Fault) -> Fault {
        if fault.kind != Kind::ConnectionFailed || fault.sub.is_some() {
            return fault;
        }
        let below = index + 1..(index + 1 + BESIDE).min(self.lines.len());
        let above = (index.saturating_sub(self.reach_above(index))..index).rev();
        below.chain(above).find_map(|at| self.cause_at(at)).unwrap_or(fault)
    }

    /// Exceptions that were raised from one another may stand far apart: each brings its own stack.
    fn reach_above(&self, index: usize) -> usize {
        const CHAINS: &[&str] =
            &["direct cause of the following exception", "During handling of the above exception"];
        let above = self.lines.get(index.saturating_sub(CHAINED)..index).unwrap_or_default();
        let chained = above.iter().any(|line| CHAINS.iter().any(|chain| line.contains(chain)));
        if chained { CHAINED } else { BESIDE }
    }

    fn cause_at(&self, index: usize) -> Option<Fault> {
        let line = Line::read(self.lines.get(index)?);
        let error = ErrorText { messages: vec![line.text.into_owned()], ..ErrorText::default() };
        let (fault, known) = self.classifier.judge(&error, None, true);
        let finer = match fault.kind {
            Kind::ConnectionFailed => fault.sub.is_some(),
            Kind::ConnectionRefused => true,
            _ => false,
        };
        (known && finer).then(|| self.seen_at(index, fault))
    }
}
