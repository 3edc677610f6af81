//! Marks the frames of the simulated provider as made up, before they are parsed.

use bytes::Bytes;
use koboshi_wire::Dialect;
use memchr::memmem;

/// The name of the mark.
pub(crate) const SIMULATED: &str = "simulated";

/// The field as it stands in a frame.
const FIELD: &[u8] = br#""koboshi":{"simulated":true},"#;

/// Marks the frames of one stream of the simulated provider.
pub(crate) struct StreamMark {
    /// The mark follows this text.
    behind: &'static [u8],
    /// Whether every frame with that text is marked, and not only the first one.
    every: bool,
    is_done: bool,
}

impl StreamMark {
    pub(crate) const fn of(dialect: Dialect) -> Self {
        let (behind, every): (&[u8], bool) = match dialect {
            Dialect::Chat | Dialect::Gemini => (b"{", false),
            Dialect::Messages => (br#""message":{"#, false),
            // Clients keep the last one.
            Dialect::Responses => (br#""response":{"#, true),
        };
        Self { behind, every, is_done: false }
    }

    /// Adds the mark to a piece of the stream.
    pub(crate) fn add(&mut self, piece: Bytes) -> Bytes {
        if self.is_done {
            return piece;
        }
        let Some(found) = memmem::find(&piece, self.behind) else { return piece };
        let (before, after) = piece.split_at(found + self.behind.len());
        // An object without fields, or a broken one, cannot take a field with a comma after it.
        if after.first() != Some(&b'"') {
            return piece;
        }
        self.is_done = !self.every;
        [before, FIELD, after].concat().into()
    }
}
