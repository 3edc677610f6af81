//! Rows of labels and texts that stay in line, on a screen of any width.
//!
//! Wide characters count double, a label never runs into its text, and lines are broken at blanks, in Japanese between characters
//! and never before a sign that must not begin a line. A word that is too long for its column (a link, a path) is left whole, so
//! that it can be copied.

use std::io::IsTerminal;

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Lines are no longer than this, however wide the terminal is: longer ones are hard to read.
const WIDEST: usize = 120;
/// On anything narrower the text has no room beside its label.
const NARROWEST: usize = 40;
/// A terminal that does not say how wide it is.
const USUAL: usize = 80;

/// How wide a line may be: what `COLUMNS` says, else the width of the terminal. What goes into a file or a pipe is not broken, so that
/// it can be searched.
pub(super) fn line_width() -> Option<usize> {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
    let terminal = || {
        let out = std::io::stdout();
        out.is_terminal()
            .then(|| terminal_size::terminal_size_of(out).map_or(USUAL, |(width, _)| usize::from(width.0)))
    };
    set.filter(|columns| *columns > 0).or_else(terminal).map(|columns| columns.clamp(NARROWEST, WIDEST))
}

/// Where labels end and texts begin, and where lines end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Layout {
    column: usize,
    width: Option<usize>,
}

impl Layout {
    /// Room for the longest of these labels.
    pub(super) fn of<'l>(labels: impl Iterator<Item = &'l str>, width: Option<usize>) -> Self {
        Self { column: labels.map(UnicodeWidthStr::width).max().unwrap_or(0) + 2, width }
    }

    /// The label, filled up to where its text begins.
    pub(super) fn label(self, label: &str) -> String {
        format!("{label}{}", " ".repeat(self.column.saturating_sub(label.width())))
    }

    /// What stands before the further lines of a text.
    pub(super) fn indent(self) -> String {
        " ".repeat(self.column)
    }

    /// The lines of a text beside its label.
    pub(super) fn lines(self, text: &str) -> Vec<String> {
        self.broken(text, self.column)
    }

    /// The lines of a text behind a margin of its own.
    pub(super) fn broken(self, text: &str, margin: usize) -> Vec<String> {
        match self.width {
            Some(width) => {
                let width = width.saturating_sub(margin).max(NARROWEST / 2);
                // A quoted line of JSON may have no blank to break it at.
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

/// A line in parts of at most this many columns, wherever that cuts it.
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

/// The pieces of a text that must not be broken, each with the blanks behind it.
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
    /// Signs that end something.
    const NEVER_FIRST: &str = "、。，．）」』】〕！？：；ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ・…,.)!?:;%";
    /// Signs that begin something.
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
