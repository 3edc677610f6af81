//! Ids and names as this dialect wants them: letters, digits, `_` and `-`.
//!
//! The rule is fixed, so that a call and its result are changed alike and a history reads the same each time it is sent. What is changed gets
//! a mark of what it was, so that two different ids stay different.

use std::borrow::Cow;

use crate::hash;

/// A name has at most this many bytes.
const MAX_NAME: usize = 128;

fn fits(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Whether this can be the name of a tool.
pub(super) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(fits)
}

/// An id that fits.
pub(super) fn fitted(id: &str) -> Cow<'_, str> {
    if !id.is_empty() && id.bytes().all(fits) {
        Cow::Borrowed(id)
    } else {
        Cow::Owned(marked(id, usize::MAX))
    }
}

/// A name that fits.
pub(super) fn fitted_name(name: &str) -> Cow<'_, str> {
    if is_name(name) { Cow::Borrowed(name) } else { Cow::Owned(marked(name, MAX_NAME)) }
}

fn marked(text: &str, max: usize) -> String {
    let mark = format!("_{:08x}", hash::short(text));
    let room = max.saturating_sub(mark.len());
    let plain = text.bytes().map(|byte| if fits(byte) { char::from(byte) } else { '_' });
    let mut fitted: String = plain.take(room).collect();
    fitted.push_str(&mark);
    fitted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays_and_what_does_not_stays_different() {
        assert_eq!(fitted("toolu_01-A"), "toolu_01-A");
        let odd = ["a.b", "a:b", "a_b ", "", "日本"];
        let fitted: Vec<_> = odd.iter().map(|id| fitted(id)).collect();
        assert!(fitted.iter().all(|id| is_name(id)), "{fitted:?}");
        for (place, id) in fitted.iter().enumerate() {
            assert!(!fitted[..place].contains(id), "{fitted:?}");
        }
        let long = "x".repeat(300);
        assert_eq!(fitted_name(&long).len(), 128);
        assert_ne!(fitted_name(&long), fitted_name(&"x".repeat(301)));
    }
}
