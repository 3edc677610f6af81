//! Lengths of time as the file writes them: `500ms`, `30s`, `1h30m`.
//!
//! The core accepts some forty spellings, `5-10 minutes` and `half an hour` among them: right for texts of others, wrong for
//! a setting, which must be unambiguous. So only amounts with the units ms, s, m, h and d are accepted.

use std::time::Duration;

/// The form of a length, for editors.
pub(super) const LENGTH: &str = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h|d)( ?[0-9]+(\.[0-9]+)?(ms|s|m|h|d))*$";

/// Whether a text matches [`LENGTH`]: amounts with the units of the file, and nothing else.
/// [`koboshi::wait::parse_duration`] checks their order.
fn is_length(text: &str) -> bool {
    let mut rest = text;
    while !rest.is_empty() {
        let Some(after) = after_amount(rest) else { return false };
        let Some(unit) = ["ms", "s", "m", "h", "d"].iter().find(|unit| after.starts_with(**unit)) else {
            return false;
        };
        let next = after.get(unit.len()..).unwrap_or_default();
        rest = match next.strip_prefix(' ') {
            Some("") => return false,
            Some(next) => next,
            None => next,
        };
    }
    !text.is_empty()
}

/// The text after digits and an optional fraction.
fn after_amount(text: &str) -> Option<&str> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let whole = digits(text);
    let after = text.get(whole..)?;
    if whole == 0 {
        return None;
    }
    match after.strip_prefix('.') {
        Some(fraction) => match digits(fraction) {
            0 => None,
            length => fraction.get(length..),
        },
        None => Some(after),
    }
}

/// A length as the file writes it.
pub(crate) fn parse_length(text: &str) -> Option<Duration> {
    if is_length(text) { koboshi::wait::parse_duration(text) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_have_a_unit_and_nothing_else() {
        for (text, millis) in
            [("500ms", 500), ("1.5h", 5_400_000), ("1h30m", 5_400_000), ("1m 30s", 90_000), ("0s", 0)]
        {
            assert_eq!(parse_length(text), Some(Duration::from_millis(millis)), "{text}");
        }
        for text in [
            "", "30", "s", "5 m", "1 hour", "5-10m", "-5s", "1.s", ".5s", "1h ", "1h  5m", "30S", "05:12:30",
            "5m1h",
        ] {
            assert_eq!(parse_length(text), None, "{text}");
        }
    }
}
