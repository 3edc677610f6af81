//! Marks on disk which ends were judged, so that no later supervisor judges them again.
//!
//! A mark is written only when the store has what was learned from the end: a supervisor that is killed between the two judges the end
//! once more, which is better than never.

use std::path::PathBuf;
use std::time::Duration;

use crate::folder::write_whole;
use crate::knowledge::Knowledge;

/// How long to wait for the store.
const STORE_TIMEOUT: Duration = Duration::from_millis(200);
/// With more unwritten marks than this, the supervisor stops waiting for an absent store.
const MAX_WAITING: usize = 1000;

/// Ends whose judgement is not known to be in the store yet.
#[derive(Debug, Default)]
pub(crate) struct JudgedEnds(Vec<(PathBuf, String)>);

impl JudgedEnds {
    /// Adds an end; `text` is the content of its mark.
    pub(super) fn add(&mut self, file: PathBuf, text: String) {
        self.0.push((file, text));
    }

    /// Writes the marks, once the store has what was learned.
    pub(super) fn write(&mut self, knowledge: &Knowledge) {
        if self.0.is_empty() || (!knowledge.ledger().flush(STORE_TIMEOUT) && self.0.len() < MAX_WAITING) {
            return;
        }
        for (file, text) in self.0.drain(..) {
            // A run that was removed needs no mark.
            let _ = write_whole(&file, text.as_bytes());
        }
    }
}
