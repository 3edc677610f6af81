//! The lines of source code that Python prints in a traceback.
//!
//! They are code that ran, and no words about what failed: `opener.open(url, data, timeout)` is no timeout. They are blanked out, not
//! removed, so that places in the text stay the same.

use std::borrow::Cow;

/// The text with the source lines of its tracebacks blanked out. The code of a syntax error is kept: it is what failed.
pub(super) fn without_code(text: &str) -> Cow<'_, str> {
    if !text.contains("\nTraceback (most recent call last):") && !text.starts_with("Traceback ") {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut below_a_place = false;
    for line in text.split_inclusive('\n') {
        let is_place = line.starts_with("  File \"");
        let is_code = below_a_place && line.starts_with("    ");
        if is_code {
            out.extend(line.chars().flat_map(|c| {
                let blank = if c == '\n' { c } else { ' ' };
                std::iter::repeat_n(blank, c.len_utf8())
            }));
        } else {
            out.push_str(line);
        }
        below_a_place = is_place || is_code;
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_blanked_and_places_stay_the_same() {
        let text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    open(url, timeout) # 日\n    ^^^^\nURLError: refused\n    kept\n";
        let read = without_code(text);
        assert_eq!(read.len(), text.len());
        assert!(!read.contains("timeout") && read.contains("URLError") && read.contains("kept"), "{read}");
        assert!(matches!(without_code("    open(url, timeout)\n"), Cow::Borrowed(_)));
    }
}
