//! The end of an agent's output, as evidence for its end: as much as the classifier reads.

use koboshi::classify::TAIL_BYTES;

/// How far it may grow before the beginning is cut off.
const SLACK: usize = 64 * 1024;

/// The last lines of a run.
#[derive(Debug, Default)]
pub struct Tail {
    kept: Vec<u8>,
}

impl Tail {
    /// More lines, each with its end.
    pub fn add(&mut self, lines: &[u8]) {
        let lines = lines.get(lines.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
        let beyond = (self.kept.len() + lines.len()).saturating_sub(TAIL_BYTES);
        if self.kept.len() + lines.len() > TAIL_BYTES + SLACK {
            self.kept.drain(..beyond.min(self.kept.len()));
        }
        self.kept.extend_from_slice(lines);
    }

    /// All of it, as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.kept).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_stays_and_the_size_is_bounded() {
        let mut tail = Tail::default();
        for number in 0..200_000 {
            tail.add(format!("line {number}\n").as_bytes());
            assert!(tail.kept.len() <= TAIL_BYTES + SLACK);
        }
        assert!(tail.text().ends_with("line 199998\nline 199999\n"));
        let many = "another line\n".repeat(TAIL_BYTES);
        tail.add(many.as_bytes());
        assert!(tail.kept.len() <= TAIL_BYTES + SLACK && tail.text().ends_with("another line\n"));
    }
}
