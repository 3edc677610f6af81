//! Text in the plain form that rules are written in.
//!
//! The same failure is spelled `RateLimitError`, `rate_limit_error`, `rate-limit error`, `Rate\nlimit error`
//! and `Rate limit Error’s`; rules should not have to know. Plain text is lower case, words are split at
//! case changes, `_` and `-` and line ends, brackets, quotes, escapes and box drawing are single spaces,
//! full-width forms are ASCII, and web addresses are gone: the words in a link to a documentation page
//! (`…/rate-limits`) say nothing about the failure.
//!
//! What is kept: digits, sentence punctuation, apostrophes inside words, a minus before a number, and
//! every letter outside ASCII as it came. Offsets are not kept: evidence names the line, not the byte.

/// Appends the plain form of `text` to `out`, with one space on either side.
pub(crate) fn push_plain(out: &mut String, text: &str) {
    space(out);
    let mut before = Class::Other;
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = rest.get(c.len_utf8()..).unwrap_or_default();
        if c == 'h' && !before.is_word() && is_link(rest) {
            space(out);
            rest = after_link(rest);
            before = Class::Other;
            continue;
        }
        let letters = rest.bytes().take_while(u8::is_ascii_lowercase).count();
        if letters > 0 {
            out.push_str(rest.get(..letters).unwrap_or_default());
            rest = rest.get(letters..).unwrap_or_default();
            before = Class::Lower;
            continue;
        }
        before = push_char(out, c, before, after);
        rest = if c == '\\' { skip_escape(after) } else { after };
    }
    space(out);
}

/// The plain form of `text`.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    push_plain(&mut out, text);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Lower,
    Upper,
    Digit,
    Wide,
    Other,
}

impl Class {
    fn is_word(self) -> bool {
        self != Self::Other
    }
}

fn push_char(out: &mut String, c: char, before: Class, after: &str) -> Class {
    match c {
        'A'..='Z' => {
            let word_begins = match before {
                Class::Lower | Class::Digit => true,
                Class::Upper => after.starts_with(|next: char| next.is_ascii_lowercase()),
                Class::Wide | Class::Other => false,
            };
            if word_begins {
                space(out);
            }
            out.push(c.to_ascii_lowercase());
            Class::Upper
        }
        // Only full-width letters come this way in lower case.
        'a'..='z' => {
            out.push(c);
            Class::Lower
        }
        '0'..='9' => {
            out.push(c);
            Class::Digit
        }
        '.' | ',' | ':' | ';' | '/' | '%' | '$' | '+' | '>' | '<' | '=' | '#' | '@' | '*' | '&' | '!'
        | '?' => {
            out.push(c);
            Class::Other
        }
        '-' if !before.is_word() && after.starts_with(|next: char| next.is_ascii_digit()) => {
            out.push('-');
            Class::Other
        }
        '\'' | '\u{2019}' if before.is_word() && after.starts_with(char::is_alphabetic) => {
            out.push('\'');
            Class::Other
        }
        '\u{ff01}'..='\u{ff5e}' => {
            let ascii = u32::from(c) - 0xff01 + 0x21;
            char::from_u32(ascii).map_or(Class::Other, |ascii| push_char(out, ascii, before, after))
        }
        _ if c.is_ascii() || is_gap(c) => {
            space(out);
            Class::Other
        }
        _ => {
            out.extend(c.to_lowercase());
            Class::Wide
        }
    }
}

/// Spaces, dashes, quotes, box drawing and symbols outside ASCII.
fn is_gap(c: char) -> bool {
    c.is_whitespace()
        || matches!(c, '\u{00a0}'..='\u{00b9}' | '\u{00bb}' | '\u{00bf}' | '\u{2000}'..='\u{206f}'
            | '\u{2190}'..='\u{2bff}' | '\u{3000}'..='\u{3003}' | '\u{3008}'..='\u{3011}'
            | '\u{fe0f}' | '\u{feff}' | '\u{1f300}'..='\u{1faff}')
}

fn space(out: &mut String) {
    if !out.ends_with(' ') {
        out.push(' ');
    }
}

/// A backslash hides one letter: `\n` in a quoted text is a line end, not an n.
fn skip_escape(after: &str) -> &str {
    after.strip_prefix(['n', 'r', 't', '"', '\'', '\\']).unwrap_or(after)
}

fn is_link(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

fn after_link(text: &str) -> &str {
    let ends = |c: char| {
        c.is_whitespace()
            || matches!(c, '"' | '\'' | '`' | ')' | ']' | '>' | '<' | ',' | '\\' | '。' | '，' | '）')
    };
    text.find(ends).and_then(|at| text.get(at..)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_word_become_one() {
        for text in [
            "RateLimitError", "rate_limit_error", "rate-limit error", "Rate\nlimit   error",
            "RATE_LIMIT_ERROR", "«RateLimitError»",
        ] {
            assert_eq!(plain(text), " rate limit error ", "{text}");
        }
    }

    #[test]
    fn runs_of_capitals_end_before_the_next_word() {
        assert_eq!(plain("APIError"), " api error ");
        assert_eq!(plain("SSLCertVerificationError"), " ssl cert verification error ");
    }

    #[test]
    fn links_are_not_words() {
        assert_eq!(plain("see https://docs.example.com/rate-limits, then retry"), " see , then retry ");
        assert_eq!(plain("http"), " http ");
    }

    #[test]
    fn quotes_brackets_and_escapes_are_gaps() {
        assert_eq!(plain(r#"{"error":{"code":429}}"#), " error : code :429 ");
        assert_eq!(plain(r#"b'{\n  \"a\"'"#), " b a ");
    }

    #[test]
    fn what_carries_meaning_stays() {
        assert_eq!(plain("Don’t exceed 1,000 (os error -32601)"), " don't exceed 1,000 os error -32601 ");
        assert_eq!(plain("請求過於頻繁 ４２９"), " 請求過於頻繁 429 ");
    }
}
