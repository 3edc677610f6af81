//! Letters and marks outside strings: white space of all kinds, comments, quotation marks, brackets, separators.

/// The pairs of quotation marks that enclose strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Quote {
    Straight,
    Single,
    Tick,
    /// “ ” and their relatives; a straight one may end it.
    Curly,
    /// ‘ ’ and their relatives; a straight one may end it.
    CurlySingle,
    Guillemet,
    Corner,
}

impl Quote {
    /// The mark that opens a string here, and its length.
    pub(super) fn at(text: &str, at: usize) -> Option<(Self, usize)> {
        match text.as_bytes().get(at)? {
            b'"' => Some((Self::Straight, 1)),
            b'\'' => Some((Self::Single, 1)),
            b'`' => Some((Self::Tick, 1)),
            0..=0x7f => None,
            _ => {
                let mark = text.get(at..)?.chars().next()?;
                Some((Self::of(mark)?, mark.len_utf8()))
            }
        }
    }

    /// The pair that a mark opens.
    pub(super) const fn of(mark: char) -> Option<Self> {
        Some(match mark {
            '"' => Self::Straight,
            '\'' => Self::Single,
            '`' => Self::Tick,
            '“' | '”' | '„' | '‟' | '＂' | '〝' => Self::Curly,
            '‘' | '’' | '‚' | '‛' | '＇' => Self::CurlySingle,
            '«' | '»' | '‹' | '›' => Self::Guillemet,
            '「' | '『' => Self::Corner,
            _ => return None,
        })
    }

    pub(super) const fn is_ended_by(self, mark: char) -> bool {
        match self {
            Self::Straight => mark == '"',
            Self::Single => mark == '\'',
            Self::Tick => mark == '`',
            Self::Curly => matches!(mark, '“' | '”' | '‟' | '＂' | '〞' | '〟' | '"'),
            Self::CurlySingle => matches!(mark, '‘' | '’' | '‛' | '＇' | '\''),
            Self::Guillemet => matches!(mark, '«' | '»' | '‹' | '›'),
            Self::Corner => matches!(mark, '」' | '』'),
        }
    }

    /// The next mark from here that could end the string, and its length. A backslash hides what follows it.
    pub(super) fn next_end(self, text: &str, mut at: usize) -> Option<(usize, usize)> {
        let bytes = text.as_bytes();
        let mark = match self {
            Self::Straight => b'"',
            Self::Single => b'\'',
            Self::Tick => b'`',
            _ => return self.next_wide_end(text, at),
        };
        loop {
            at += memchr::memchr2(mark, b'\\', bytes.get(at..)?)?;
            if bytes.get(at) != Some(&b'\\') {
                return Some((at, 1));
            }
            at += 2;
        }
    }

    /// How many of the marks that could end a string are in a text. Apostrophes inside words do not count.
    pub(super) fn count_in(self, text: &str) -> usize {
        let letter = |place: Option<usize>| {
            let byte = place.and_then(|place| text.as_bytes().get(place));
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte >= 0x80)
        };
        let (mut at, mut marks) = (0, 0);
        while let Some((place, length)) = self.next_end(text, at) {
            at = place + length;
            let in_word = letter(place.checked_sub(1)) && letter(Some(at));
            marks += usize::from(!in_word || self == Self::Straight);
        }
        marks
    }

    /// The next curly mark from here that could end a string with a straight beginning.
    pub(super) fn next_curly_end(text: &str, at: usize) -> Option<(usize, usize)> {
        let rest = text.get(at..)?;
        // A pair of curly marks inside is part of the text.
        let place = rest.find(['”', '“'])?;
        rest.get(place..)?.starts_with('”').then_some((at + place, '”'.len_utf8()))
    }

    fn next_wide_end(self, text: &str, at: usize) -> Option<(usize, usize)> {
        let mut hidden = false;
        for (offset, mark) in text.get(at..)?.char_indices() {
            if hidden {
                hidden = false;
            } else if mark == '\\' {
                hidden = true;
            } else if self.is_ended_by(mark) {
                return Some((at + offset, mark.len_utf8()));
            }
        }
        None
    }
}

/// White space that is not JSON's: other control spaces, no-break, zero-width and full-width ones, marks of direction.
pub(super) fn is_odd_blank(mark: char) -> bool {
    matches!(mark, '\u{b}' | '\u{c}' | '\u{feff}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}')
        || mark.is_whitespace()
}

/// Where the white space that begins here ends, and whether all of it is JSON's. A literal `\n` counts as white space.
pub(super) fn blank_end(text: &str, mut at: usize) -> (usize, bool) {
    let bytes = text.as_bytes();
    let mut plain = true;
    loop {
        match bytes.get(at) {
            Some(b' ' | b'\n' | b'\t' | b'\r') => at += 1,
            Some(b'\\') if matches!(bytes.get(at + 1), Some(b'n' | b'r' | b't')) => {
                plain = false;
                at += 2;
            }
            Some(0xb | 0xc | 0x80..) => {
                let Some(mark) = text.get(at..).and_then(|rest| rest.chars().next()) else {
                    return (at, plain);
                };
                if !is_odd_blank(mark) {
                    return (at, plain);
                }
                plain = false;
                at += mark.len_utf8();
            }
            _ => return (at, plain),
        }
    }
}

/// A comment that begins here: where it ends. `None` inside if its end is missing.
pub(super) fn comment(text: &str, at: usize) -> Option<Option<usize>> {
    let rest = text.get(at..)?;
    let line = |skip: usize| {
        let body = rest.get(skip..).unwrap_or_default();
        memchr::memchr(b'\n', body.as_bytes()).map(|offset| at + skip + offset)
    };
    let block = |skip: usize, end: &str| {
        rest.get(skip..).and_then(|body| body.find(end)).map(|offset| at + skip + offset + end.len())
    };
    if rest.starts_with("//") {
        Some(line(2))
    } else if rest.starts_with('#') {
        Some(line(1))
    } else if rest.starts_with("/*") {
        Some(block(2, "*/"))
    } else if rest.starts_with("<!--") {
        Some(block(4, "-->"))
    } else {
        None
    }
}

/// A bracket or separator, in ASCII or full width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    OpenObject,
    CloseObject,
    OpenArray,
    CloseArray,
    OpenTuple,
    CloseTuple,
    Comma,
    Semicolon,
    Colon,
    Equals,
    Arrow,
}

/// The mark that stands here, its length, and whether it is JSON's own.
pub(super) fn mark(text: &str, at: usize) -> Option<(Mark, usize, bool)> {
    let bytes = text.as_bytes();
    let found = match bytes.get(at)? {
        b'{' => (Mark::OpenObject, 1, true),
        b'}' => (Mark::CloseObject, 1, true),
        b'[' => (Mark::OpenArray, 1, true),
        b']' => (Mark::CloseArray, 1, true),
        b',' => (Mark::Comma, 1, true),
        b':' => (Mark::Colon, 1, true),
        b'(' => (Mark::OpenTuple, 1, false),
        b')' => (Mark::CloseTuple, 1, false),
        b';' => (Mark::Semicolon, 1, false),
        b'=' if bytes.get(at + 1) == Some(&b'>') => (Mark::Arrow, 2, false),
        b'=' => (Mark::Equals, 1, false),
        0..=0x7f => return None,
        _ => {
            let mark = match text.get(at..)?.chars().next()? {
                '｛' => Mark::OpenObject,
                '｝' => Mark::CloseObject,
                '［' => Mark::OpenArray,
                '］' => Mark::CloseArray,
                '（' => Mark::OpenTuple,
                '）' => Mark::CloseTuple,
                '，' | '、' => Mark::Comma,
                '；' => Mark::Semicolon,
                '：' => Mark::Colon,
                '＝' => Mark::Equals,
                _ => return None,
            };
            (mark, 3, false)
        }
    };
    Some(found)
}

/// Where the bare key that begins here ends; the same place if none begins here.
pub(super) fn bare_key_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let letters = rest.bytes().take_while(|byte| byte.is_ascii_alphabetic() || *byte == b'_').count();
    if letters > 0 && rest.as_bytes().get(letters) == Some(&b':') {
        return at + letters;
    }
    let mut end = at;
    for (index, letter) in rest.chars().enumerate() {
        let fits = letter.is_alphabetic() || matches!(letter, '_' | '$') || (index > 0 && is_inner(letter));
        if !fits {
            break;
        }
        end += letter.len_utf8();
    }
    end
}

fn is_inner(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '-' | '.')
}

/// Where the bare token that begins here ends: at white space, a mark or a quotation mark.
pub(super) fn token_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let letters = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'.').count();
    if matches!(rest.as_bytes().get(letters), Some(b',' | b'}' | b']' | b' ' | b'\n')) {
        return at + letters;
    }
    for (offset, letter) in rest.char_indices() {
        let place = at + offset;
        let ends = match letter {
            '0'..='9' | 'a'..='z' | 'A'..='Z' | '.' | '-' | '+' | '_' => false,
            '<' | '>' | '#' | '\\' => true,
            _ => {
                is_odd_blank(letter)
                    || letter.is_control()
                    || mark(text, place).is_some()
                    || Quote::at(text, place).is_some()
            }
        };
        if ends {
            return place;
        }
    }
    text.len()
}

/// Whether a word without quotation marks can stand for itself.
pub(super) fn is_word(token: &str) -> bool {
    let first = token.chars().next().is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '/' | '~'));
    first
        && token.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '@' | '~' | 'ー'))
}
