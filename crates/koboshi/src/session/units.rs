//! Positions in an answer are counted in UTF-16 units, as JavaScript's `length` does: a page can check every piece for nothing.

/// The length of a text in UTF-16 units.
#[must_use]
pub fn units(text: &str) -> u64 {
    text.chars().map(|one| one.len_utf16() as u64).sum()
}

/// The text before this position; none if the position is behind its end or inside of a character.
#[must_use]
pub fn cut(text: &str, at: u64) -> Option<&str> {
    let mut seen = 0_u64;
    for (index, one) in text.char_indices() {
        if seen == at {
            return text.get(..index);
        }
        seen += one.len_utf16() as u64;
    }
    (seen == at).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_those_of_javascript() {
        assert_eq!(units("富士山🗻a"), 6);
        assert_eq!(cut("富士山🗻a", 3), Some("富士山"));
        assert_eq!(cut("富士山🗻a", 4), None, "inside of a surrogate pair");
        assert_eq!(cut("富士山🗻a", 6), Some("富士山🗻a"));
        assert_eq!(cut("", 0), Some(""));
        assert_eq!(cut("a", 2), None);
    }
}
