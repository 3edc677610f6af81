//! The head of an answer: a status and header lines, kept as the bytes that are sent.
//!
//! No code looks a line up again once it is added, so there is no map: a line is added behind the others. Two lines of one name are two
//! lines; the caller that adds them knows. A value that could end its line early is left out, so that no text of elsewhere becomes a header.

use http::StatusCode;

/// Header lines, ready to be sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeaderLines(Vec<u8>);

impl HeaderLines {
    /// Adds a line; one whose value has control characters in it is left out.
    pub fn add(&mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        if is_one_line(value) {
            line(&mut self.0, name.as_ref(), value);
        }
    }

    /// Adds all lines of another list.
    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
    }

    /// Forgets them all.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// As they are sent.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The head of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading {
    /// Its status.
    pub status: StatusCode,
    /// The header lines.
    pub lines: HeaderLines,
}

impl Heading {
    /// A head with only a status; an invalid one becomes 500.
    #[must_use]
    pub fn of(status: u16) -> Self {
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        // Enough for nearly every answer.
        Self { status, lines: HeaderLines(Vec::with_capacity(256)) }
    }

    /// Adds a line, as [`HeaderLines::add`] does.
    pub fn add(&mut self, name: impl AsRef<str>, value: impl AsRef<[u8]>) {
        self.lines.add(name, value);
    }
}

/// Writes a line.
pub(super) fn line(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Whether nothing in this can end a line. Letters of all languages may stand in names of models.
fn is_one_line(value: &[u8]) -> bool {
    value.iter().fold(true, |fits, byte| fits & (*byte == b'\t' || (*byte >= b' ' && *byte != 0x7f)))
}

/// Whether this is ASCII without control characters. Every byte is checked, because a loop that may stop early cannot be vectorised.
pub(super) fn is_plain(value: &[u8]) -> bool {
    value.iter().fold(true, |plain, byte| plain & matches!(byte, b'\t' | b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_stand_in_the_order_in_which_they_were_added() {
        let mut heading = Heading::of(200);
        heading.add("a", "1");
        let mut more = HeaderLines::default();
        more.add("b", b"2");
        more.add("b", "3");
        heading.lines.extend(&more);
        assert_eq!(heading.lines.as_bytes(), b"a: 1\r\nb: 2\r\nb: 3\r\n");
        more.clear();
        assert_eq!(more, HeaderLines::default());
    }

    #[test]
    fn a_value_that_would_end_its_line_is_left_out() {
        let mut lines = HeaderLines::default();
        for value in ["a\r\nx: y", "a\nb", "\0", "\x7f"] {
            lines.add("x", value);
        }
        assert_eq!(lines.as_bytes(), b"");
        lines.add("x", "a\tb ~ 達磨");
        assert_eq!(lines.as_bytes(), "x: a\tb ~ 達磨\r\n".as_bytes());
    }

    #[test]
    fn a_status_that_is_none_is_our_own_mistake() {
        assert_eq!(Heading::of(7).status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(Heading::of(418).status.as_u16(), 418);
    }
}
