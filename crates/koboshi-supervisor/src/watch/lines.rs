//! Bytes become lines, whatever pieces they come in.
//!
//! A line that is too long is cut: agents print whole files as one line, and nothing that decides needs more. Half a character at the end of a
//! piece is the beginning of the next one.

/// Lines longer than this are cut.
const LONGEST: usize = 64 * 1024;

/// Puts lines together.
#[derive(Debug, Default)]
pub struct Lines {
    begun: Vec<u8>,
    /// The rest of a line that is too long is passed over.
    cut: bool,
}

impl Lines {
    /// Takes bytes, and gives every line that is complete, without its end.
    pub fn feed(&mut self, bytes: &[u8], mut each: impl FnMut(&[u8])) {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        let last = pieces.next_back().unwrap_or_default();
        for piece in pieces {
            if self.begun.is_empty() && piece.len() <= LONGEST {
                each(piece);
            } else {
                self.add(piece);
                each(&self.begun);
                self.begun.clear();
            }
            self.cut = false;
        }
        self.add(last);
    }

    /// The line that has no end.
    pub fn finish(&mut self, mut each: impl FnMut(&[u8])) {
        if !self.begun.is_empty() {
            each(&self.begun);
            self.begun.clear();
        }
    }

    fn add(&mut self, piece: &[u8]) {
        let room = LONGEST.saturating_sub(self.begun.len());
        let fits = piece.len().min(if self.cut { 0 } else { room });
        self.begun.extend_from_slice(piece.get(..fits).unwrap_or_default());
        self.cut |= fits < piece.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let mut lines = Lines::default();
        for piece in pieces {
            lines.feed(piece, |line| found.push(line.to_vec()));
        }
        lines.finish(|line| found.push(line.to_vec()));
        found
    }

    #[test]
    fn lines_are_the_same_whatever_pieces_they_come_in() {
        let text = "eins\n\n起き上がり\nlast".as_bytes();
        let whole = lines(&[text]);
        assert_eq!(whole.len(), 4);
        for cut in 0..text.len() {
            assert_eq!(lines(&[&text[..cut], &text[cut..]]), whole, "{cut}");
        }
    }

    #[test]
    fn a_line_without_end_is_cut_and_the_next_one_is_whole() {
        let long = vec![b'x'; 10 * LONGEST];
        let mut pieces: Vec<&[u8]> = long.chunks(1000).collect();
        pieces.push(b"y\nnext\n");
        let found = lines(&pieces);
        assert_eq!((found[0].len(), found[1].as_slice()), (LONGEST, b"next".as_slice()));
    }
}
