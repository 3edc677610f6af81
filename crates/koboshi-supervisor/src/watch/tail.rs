//! The end of what an agent wrote, as evidence for its end: as much as the classifier reads, and no more.

use koboshi::classify::TAIL_BYTES;

/// The last lines of a run.
#[derive(Debug, Default)]
pub struct Tail {
    kept: Vec<u8>,
}

impl Tail {
    /// One more line.
    pub fn add(&mut self, line: &[u8]) {
        self.kept.extend_from_slice(line);
        self.kept.push(b'\n');
        // Twice the size before anything is moved: each byte is moved once.
        if self.kept.len() > 2 * TAIL_BYTES {
            let from = self.kept.len() - TAIL_BYTES;
            self.kept.drain(..from);
        }
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
            tail.add(format!("line {number}").as_bytes());
            assert!(tail.kept.len() <= 2 * TAIL_BYTES);
        }
        assert!(tail.text().ends_with("line 199998\nline 199999\n"));
    }
}
