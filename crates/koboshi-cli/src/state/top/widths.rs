//! Text in columns of a terminal: how wide it is, where it is cut, how columns share a line.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Columns between two cells.
pub(super) const GAP: usize = 2;

/// The text in this many columns at most; an ellipsis shows that some is missing.
pub(super) fn cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut left = room.saturating_sub(1);
    for c in text.chars() {
        let width = c.width().unwrap_or(0);
        if width > left {
            break;
        }
        left -= width;
        out.push(c);
    }
    if room > 0 {
        out.push('…');
    }
    out
}

/// The text in exactly this many columns.
pub(super) fn fill(text: &str, room: usize) -> String {
    let mut out = cut(text, room);
    out.extend(std::iter::repeat_n(' ', room.saturating_sub(out.width())));
    out
}

/// Left and right on one line; the right one stays whole.
pub(super) fn between(left: &str, right: &str, room: usize) -> String {
    let right = cut(right, room);
    let space = room.saturating_sub(right.width());
    format!("{}{right}", fill(&cut(left, space.saturating_sub(1)), space))
}

/// How wide each column becomes, given how wide its cells are and how narrow it may get. What is missing is taken from the columns at the end
/// first, and a column that would be narrower than that vanishes. What is left over goes to the last one.
pub(super) fn share(natural: &[usize], least: &[usize], room: usize) -> Vec<usize> {
    let mut widths = natural.to_vec();
    let used = |widths: &[usize]| {
        let shown = widths.iter().filter(|width| **width > 0).count();
        widths.iter().sum::<usize>() + GAP * shown.saturating_sub(1)
    };
    for (at, least) in least.iter().enumerate().rev() {
        let over = used(&widths).saturating_sub(room);
        let Some(width) = widths.get_mut(at).filter(|_| over > 0) else { break };
        *width = width.saturating_sub(over).max((*least).min(*width));
    }
    for at in (1..widths.len()).rev() {
        if used(&widths) <= room {
            break;
        }
        if let Some(width) = widths.get_mut(at) {
            *width = 0;
        }
    }
    let left = room.saturating_sub(used(&widths));
    if let Some(last) = widths.iter_mut().rfind(|width| **width > 0) {
        *last += left;
    }
    widths
}

/// The text on lines of this width, broken at spaces where there are any; no more than `most` lines.
pub(super) fn wrap(text: &str, room: usize, most: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text.trim();
    while !rest.is_empty() && lines.len() < most {
        if lines.len() + 1 == most || rest.width() <= room {
            lines.push(cut(rest, room));
            break;
        }
        let mut width = 0;
        let mut end = 0;
        let mut space = None;
        for (at, c) in rest.char_indices() {
            width += c.width().unwrap_or(0);
            if width > room {
                break;
            }
            end = at + c.len_utf8();
            if c == ' ' {
                space = Some(at);
            }
        }
        let end = space.filter(|space| *space > 0).unwrap_or(end);
        let (line, behind) = rest.split_at_checked(end).filter(|_| end > 0).unwrap_or((rest, ""));
        lines.push(cut(line.trim_end(), room));
        rest = behind.trim_start();
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_text_never_takes_more_columns_than_it_may() {
        assert_eq!(cut("openai/gpt-4o", 20), "openai/gpt-4o");
        assert_eq!(cut("openai/gpt-4o", 8), "openai/…");
        assert_eq!(cut("クールダウン中", 8), "クール…", "a Japanese letter takes two columns");
        for room in 0..20 {
            assert!(cut("a クールダウン中 b", room).width() <= room);
            assert_eq!(fill("クールダウン", room).width(), room);
            assert_eq!(between("left クール", "右", room).width(), room);
        }
    }

    #[test]
    fn columns_share_a_line_and_the_last_ones_give_first() {
        assert_eq!(share(&[10, 8, 5], &[8, 4, 0], 40), [10, 8, 18], "what is left goes to the last");
        assert_eq!(share(&[10, 8, 30], &[8, 4, 6], 40), [10, 8, 18]);
        assert_eq!(
            share(&[10, 8, 30], &[8, 4, 6], 26),
            [10, 6, 6],
            "the middle one gives only what is missing"
        );
        assert_eq!(share(&[10, 8, 30], &[8, 4, 6], 16), [8, 6, 0], "the last one vanishes");
        for room in 1..60 {
            let widths = share(&[20, 12, 8, 50], &[10, 6, 6, 8], room);
            let shown = widths.iter().filter(|width| **width > 0).count();
            let used = widths.iter().sum::<usize>() + GAP * shown.saturating_sub(1);
            assert!(used <= room.max(10), "{room}: {widths:?}");
        }
    }

    #[test]
    fn lines_break_at_spaces_and_the_last_one_shows_that_more_is_missing() {
        assert_eq!(wrap("one two three", 8, 3), ["one two", "three"]);
        assert_eq!(wrap("one two three four", 8, 2), ["one two", "three f…"]);
        assert_eq!(wrap("クールダウン中です", 6, 9), ["クール", "ダウン", "中です"]);
        assert!(wrap("", 8, 2).is_empty());
        assert!(wrap("word", 0, 2).len() <= 2);
    }
}
