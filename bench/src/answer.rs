//! The answer: the same words under every name of a model, so that a fallback can go on where a primary was cut.
//!
//! A client that knows how many pieces it is owed can say whether it got the whole answer, half of it, or two of them mixed.

/// Nothing in here needs an escape in JSON.
const WORDS: [&str; 24] = [
    "A ", "doll ", "that ", "is ", "pushed ", "over ", "rises ", "again, ", "since ", "its ", "weight ",
    "lies ", "low: ", "so ", "must ", "a ", "gateway ", "stand ", "up, ", "whoever ", "has ", "pushed ",
    "it ", "down. ",
];

/// How many pieces an answer has if nothing else is said.
pub const USUAL: usize = 48;

/// The piece at a place.
pub fn piece(at: usize) -> &'static str {
    WORDS.get(at % WORDS.len()).copied().unwrap_or_default()
}

/// The first pieces, up to this number, as one text.
pub fn text(pieces: usize) -> String {
    (0..pieces).map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_longer_answer_begins_with_the_shorter_one() {
        assert!(text(USUAL).starts_with(&text(3)));
        assert!(!text(USUAL).contains(['"', '\\']));
    }
}
