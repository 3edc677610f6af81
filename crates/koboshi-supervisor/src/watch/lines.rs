//! Joins pieces of output into whole lines.
//!
//! Complete lines are handed on together, because most readers search all of them for a word at once. A line that is too long is cut: agents
//! print whole files as one line, and no decision needs more. Half a character at the end of a piece is completed by the next piece.

/// A line that comes in several pieces is cut here.
const MAX_LINE: usize = 64 * 1024;

/// Joins lines.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// The rest of a line that is too long is skipped.
    cut: bool,
    passed_over: u64,
}

impl Lines {
    /// Takes bytes, and gives the lines that are complete, each with its end.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        let (mut whole, rest) = bytes.split_at(memchr::memrchr(b'\n', bytes).map_or(0, |last| last + 1));
        if !whole.is_empty() && (self.cut || !self.begun.is_empty()) {
            let first = memchr::memchr(b'\n', whole).unwrap_or_default();
            let (piece, more) = whole.split_at(first);
            self.add(piece);
            self.begun.push(b'\n');
            each(&self.begun);
            self.begun.clear();
            self.cut = false;
            whole = more.get(1..).unwrap_or_default();
        }
        if !whole.is_empty() {
            each(whole);
        }
        self.add(rest);
    }

    /// Gives the last line, which has no end.
    pub fn finish(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            self.begun.push(b'\n');
            each(&self.begun);
        }
        // A quiet run holds no memory for lines.
        self.begun = Vec::new();
    }

    /// Bytes of lines that were too long.
    #[must_use]
    pub const fn passed_over(&self) -> u64 {
        self.passed_over
    }

    fn add(&mut self, piece: &[u8]) {
        let room = if self.cut { 0 } else { MAX_LINE.saturating_sub(self.begun.len()) };
        let fits = piece.len().min(room);
        self.begun.extend_from_slice(piece.get(..fits).unwrap_or_default());
        self.cut |= fits < piece.len();
        self.passed_over = self.passed_over.saturating_add((piece.len() - fits) as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(pieces: &[&[u8]]) -> Vec<u8> {
        let mut found = Vec::new();
        let mut lines = Lines::default();
        for piece in pieces {
            lines.feed(piece, |block| {
                assert_eq!(block.last(), Some(&b'\n'), "only whole lines");
                found.extend_from_slice(block);
            });
        }
        lines.finish(|block| found.extend_from_slice(block));
        found
    }

    #[test]
    fn lines_are_the_same_whatever_pieces_they_come_in() {
        let written = "eins\n\n起き上がり\nlast".as_bytes();
        let whole = text(&[written]);
        assert_eq!(whole, [written, b"\n"].concat());
        for cut in 0..written.len() {
            for next in cut..written.len() {
                let pieces = [&written[..cut], &written[cut..next], &written[next..]];
                assert_eq!(text(&pieces), whole, "{cut} {next}");
            }
        }
    }

    #[test]
    fn a_line_without_end_is_cut_and_the_next_one_is_whole() {
        let long = vec![b'x'; 10 * MAX_LINE];
        let mut pieces: Vec<&[u8]> = long.chunks(1000).collect();
        pieces.push(b"y\nnext\n");
        let mut lines = Lines::default();
        pieces.iter().for_each(|piece| lines.feed(piece, |_| ()));
        assert_eq!(lines.passed_over(), 9 * MAX_LINE as u64 + 1, "what is cut off is counted");
        let found = text(&pieces);
        let lines: Vec<&[u8]> = found.split(|byte| *byte == b'\n').collect();
        assert_eq!((lines[0].len(), lines[1]), (MAX_LINE, b"next".as_slice()));
    }
}
