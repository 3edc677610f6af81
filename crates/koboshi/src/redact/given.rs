//! Secrets that have no shape, but are known: the values that a config hands to a program.
//!
//! They are looked for as bytes, before anything else reads a text: what is cut, classified or stored afterwards has no part of them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;

use regex::bytes::{NoExpand, Regex};

/// Stands for a value that was given.
const GIVEN: &str = "[redacted:value]";

/// Shorter values are words, numbers and switches, which every text has.
const MIN_BYTES: usize = 8;

/// Values that are taken out of text. They are never printed.
#[derive(Clone, Default)]
pub struct GivenValues {
    /// None without any value.
    any: Option<Regex>,
}

impl fmt::Debug for GivenValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GivenValues(..)")
    }
}

impl GivenValues {
    /// These values, where they are long enough. One with several lines is known by each of them, because text is read in lines.
    #[must_use]
    pub fn new<'v>(values: impl IntoIterator<Item = &'v str>) -> Self {
        let lines = values.into_iter().flat_map(str::lines).map(str::trim);
        let known: BTreeSet<&str> =
            lines.filter(|line| line.len() >= MIN_BYTES && !GIVEN.contains(line)).collect();
        let mut known: Vec<&str> = known.into_iter().collect();
        // Of two that begin alike the longer one is meant.
        known.sort_by_key(|value| std::cmp::Reverse(value.len()));
        let pattern = known.iter().map(|value| regex::escape(value)).collect::<Vec<_>>().join("|");
        let any = if known.is_empty() { None } else { Regex::new(&format!("(?-u){pattern}")).ok() };
        Self { any }
    }

    /// The text without them.
    #[must_use]
    pub fn mask<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        match &self.any {
            Some(any) => any.replace_all(text, NoExpand(GIVEN.as_bytes())),
            None => Cow::Borrowed(text),
        }
    }

    /// The text without them.
    #[must_use]
    pub fn mask_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.mask(text.as_bytes())).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_values_are_taken_out_wherever_they_stand() {
        let given =
            GivenValues::new(["correct horse", "correct horse battery", "short", "line one\nline two!"]);
        for (text, expected) in [
            ("it is correct horse battery.", "it is [redacted:value]."),
            ("correct horsecorrect horse", "[redacted:value][redacted:value]"),
            ("a short word stays", "a short word stays"),
            ("line one", "[redacted:value]"),
            ("{\"x\":\"line two!\"}", "{\"x\":\"[redacted:value]\"}"),
        ] {
            assert_eq!(given.mask_text(text), expected);
        }
        assert_eq!(given.mask(b"\xff correct horse \xfe").as_ref(), b"\xff [redacted:value] \xfe");
        assert!(!format!("{given:?}").contains("horse"));
    }

    #[test]
    fn masking_twice_changes_nothing() {
        let given = GivenValues::new(["redacted:value", "[redacted:", "a.*b(c)[d"]);
        let once = given.mask_text("a.*b(c)[d and [redacted:value]");
        assert_eq!(once, "[redacted:value] and [redacted:value]");
        assert_eq!(given.mask_text(&once), once);
    }

    #[test]
    fn without_values_nothing_is_copied() {
        assert!(matches!(GivenValues::default().mask(b"text"), Cow::Borrowed(_)));
        assert!(matches!(GivenValues::new(["1234567"]).mask(b"1234567"), Cow::Borrowed(_)));
    }
}
