//! Aligned rows of labels and texts, on a screen of any width.
//!
//! Wide characters count double, a label never overlaps its text, and lines are broken at spaces, in Japanese between characters
//! and never before a sign that must not begin a line. A word that is too long for its column (a link, a path) is not broken, so
//! that it can be copied.

use std::io::IsTerminal;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Longer lines are hard to read, however wide the terminal is.
const MAX_WIDTH: usize = 120;
/// On narrower screens the text does not fit beside its label.
const MIN_WIDTH: usize = 40;
/// The width of a terminal that does not report it.
const DEFAULT_WIDTH: usize = 80;

/// The maximum width of a line: from `COLUMNS`, else of the terminal. Output into a file or a pipe is not broken, so that
/// it can be searched.
pub(crate) fn line_width() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let terminal = || {
        let out = std::io::stdout();
        out.is_terminal().then(|| {
            terminal_size::terminal_size_of(out).map_or(DEFAULT_WIDTH, |(width, _)| usize::from(width.0))
        })
    };
    set.filter(|columns| *columns > 0).or_else(terminal).map(|columns| columns.clamp(MIN_WIDTH, MAX_WIDTH))
}

/// The column of texts, and the width of lines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    column: usize,
    width: Option<usize>,
}

impl Layout {
    /// A layout for the longest of these labels.
    pub(crate) fn of<'l>(labels: impl Iterator<Item = &'l str>, width: Option<usize>) -> Self {
        Self { column: labels.map(UnicodeWidthStr::width).max().unwrap_or(0) + 2, width }
    }

    /// The label, padded up to the column of its text.
    pub(crate) fn label(self, label: &str) -> String {
        format!("{label}{}", " ".repeat(self.column.saturating_sub(label.width())))
    }

    /// The indent of further lines of a text.
    pub(crate) fn indent(self) -> String {
        " ".repeat(self.column)
    }

    /// The lines of a text beside its label.
    pub(crate) fn lines(self, text: &str) -> Vec<String> {
        self.broken(text, self.column)
    }

    /// The lines of a text after a margin of its own.
    pub(crate) fn broken(self, text: &str, margin: usize) -> Vec<String> {
        match self.width {
            Some(width) => {
                let width = width.saturating_sub(margin).max(MIN_WIDTH / 2);
                // A quoted line of JSON may have no space to break it at.
                wrap(text, width).into_iter().flat_map(|line| cut(&line, width)).collect()
            }
            None => vec![text.to_owned()],
        }
    }
}

/// The text in lines of at most this many columns.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for piece in pieces(text) {
        if !line.is_empty() && line.width() + piece.trim_end().width() > width {
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
        line.push_str(piece);
    }
    if !line.trim_end().is_empty() || lines.is_empty() {
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// A line in parts of at most this many columns, cut anywhere.
fn cut(line: &str, width: usize) -> Vec<String> {
    let mut parts = vec![String::new()];
    for c in line.chars() {
        let is_full = parts.last().is_some_and(|part| part.width() + c.width().unwrap_or_default() > width);
        if is_full {
            parts.push(String::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
    }
    parts
}

/// The unbreakable pieces of a text, each with the spaces after it.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut before) = (0, None);
    for (at, c) in text.char_indices() {
        if before.is_some_and(|before| may_break(before, c)) {
            pieces.extend(text.get(start..at));
            start = at;
        }
        before = Some(c);
    }
    pieces.extend(text.get(start..).filter(|rest| !rest.is_empty()));
    pieces
}

fn may_break(before: char, after: char) -> bool {
    /// Closing signs.
    const NEVER_FIRST: &str = "、。，．）」』】〕！？：；ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ・…,.)!?:;%";
    /// Opening signs.
    const NEVER_LAST: &str = "（「『【〔([";
    let is_wide = |c: char| c.width().unwrap_or(0) > 1;
    if after == ' ' || NEVER_FIRST.contains(after) || NEVER_LAST.contains(before) {
        return false;
    }
    before == ' ' || is_wide(before) || is_wide(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_begin_in_one_column_however_wide_the_letters_are() {
        let layout = Layout::of(["次にすること", "What"].into_iter(), None);
        assert_eq!(layout.label("次にすること"), "次にすること  ");
        assert_eq!(layout.label("What").width(), layout.label("次にすること").width());
        assert_eq!(layout.indent().width(), 14);
    }

    #[test]
    fn lines_are_broken_at_blanks_and_between_wide_letters() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a https://example.com/long/link b", 8), ["a", "https://example.com/long/link", "b"]);
        assert_eq!(wrap("一二三四五六", 6), ["一二三", "四五六"]);
        assert_eq!(wrap("API キーが無効です。", 18), ["API キーが無効で", "す。"]);
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn no_line_begins_with_a_closing_or_ends_with_an_opening_sign() {
        for width in 4..30 {
            for line in wrap(
                "利用枠が更新されるまで待つか（タイムゾーンが異なる場合があります）、別のモデルを使ってください。",
                width,
            ) {
                assert!(!line.starts_with(['、', '。', '）', 'ー']), "{width}: {line}");
                assert!(!line.ends_with('（'), "{width}: {line}");
            }
        }
    }
}
