//! Cuts a text into numbers, words and signs.
//!
//! All the grammars of this module read these tokens instead of characters, so none of them has to think
//! about white space (any kind is one gap), letter case, accents, full-width digits or escaped line ends.
//! Words are folded once, into one shared buffer, and compared as plain `&str` from then on.
//!
//! Languages that write without spaces are cut by the longest known word ([`super::words::CJK`]); what is
//! not known becomes one token per character.
//!
//! It does not judge: `1.2.3` is five tokens, `v5` is two. One pass, a fixed amount of memory per token.

use std::ops::Range;

use super::words;

/// What stands before a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// Nothing: the token is glued to the one before.
    None,
    /// White space within a line.
    Space,
    /// White space with a line end, or the beginning of the text.
    Line,
}

/// A number without a sign: saturated, never wrong by overflow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    /// The part before the point.
    pub whole: u64,
    /// How many digits that part was written with: `05` has two.
    pub digits: usize,
    /// The part after the point, in billionths.
    pub nanos: u32,
    /// Whether there was a point.
    pub point: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Number(Number),
    Word,
    Sign(char),
}

#[derive(Debug, Clone)]
pub(super) struct Token {
    pub kind: Kind,
    pub gap: Gap,
    /// Where it stands in the text, in bytes.
    pub span: Range<usize>,
    folded: Range<usize>,
}

/// A text and its tokens.
#[derive(Debug)]
pub(super) struct Tokens<'t> {
    pub text: &'t str,
    list: Vec<Token>,
    folded: String,
}

impl<'t> Tokens<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let (list, folded) = (Vec::with_capacity(text.len() / 4), String::with_capacity(text.len()));
        let mut cutter = Cutter { text, at: 0, gap: Gap::Line, list, folded };
        while cutter.step() {}
        Self { text, list: cutter.list, folded: cutter.folded }
    }

    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    pub(super) fn get(&self, at: usize) -> Option<&Token> {
        self.list.get(at)
    }

    /// The folded word at `at`; empty if there is none, so that it equals no word.
    pub(super) fn word(&self, at: usize) -> &str {
        match self.list.get(at) {
            Some(token) if token.kind == Kind::Word => self.folded.get(token.folded.clone()).unwrap_or(""),
            _ => "",
        }
    }

    /// The folded word before `at`.
    pub(super) fn word_before(&self, at: usize) -> &str {
        at.checked_sub(1).map_or("", |before| self.word(before))
    }

    pub(super) fn number(&self, at: usize) -> Option<Number> {
        match self.list.get(at)?.kind {
            Kind::Number(number) => Some(number),
            _ => None,
        }
    }

    /// The number at `at`, if it is written as `digits` digits and no point.
    pub(super) fn whole(&self, at: usize, digits: std::ops::RangeInclusive<usize>) -> Option<u64> {
        self.number(at).filter(|n| !n.point && digits.contains(&n.digits)).map(|n| n.whole)
    }

    pub(super) fn sign(&self, at: usize) -> Option<char> {
        match self.list.get(at)?.kind {
            Kind::Sign(sign) => Some(sign),
            _ => None,
        }
    }

    pub(super) fn is_sign(&self, at: usize, sign: char) -> bool {
        self.sign(at) == Some(sign)
    }

    /// Whether the token at `at` exists and has no space before it.
    pub(super) fn glued(&self, at: usize) -> bool {
        self.list.get(at).is_some_and(|token| token.gap == Gap::None)
    }

    pub(super) fn gap(&self, at: usize) -> Gap {
        self.list.get(at).map_or(Gap::Line, |token| token.gap)
    }

    /// The text of a token as it was written.
    pub(super) fn written(&self, at: usize) -> &'t str {
        self.list.get(at).and_then(|token| self.text.get(token.span.clone())).unwrap_or("")
    }

    /// The bytes from token `first` up to, not including, token `end`.
    pub(super) fn span(&self, first: usize, end: usize) -> Range<usize> {
        let start = self.list.get(first).map_or(self.text.len(), |token| token.span.start);
        let stop =
            end.checked_sub(1).and_then(|last| self.list.get(last)).map_or(start, |token| token.span.end);
        start..stop.max(start)
    }

    /// Whether a sentence ends with the token at `at`.
    pub(super) fn ends_sentence(&self, at: usize) -> bool {
        match self.sign(at) {
            Some('.') => !self.glued(at + 1),
            Some(sign) => matches!(sign, '!' | '?' | ';' | '。' | '…' | '{' | '}'),
            None => false,
        }
    }
}

struct Cutter<'t> {
    text: &'t str,
    at: usize,
    gap: Gap,
    list: Vec<Token>,
    folded: String,
}

impl Cutter<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// The digit `skip` bytes ahead.
    fn digit(&self, skip: usize) -> Option<(u32, usize)> {
        let c = self.text.get(self.at + skip..)?.chars().next()?;
        plain(c).to_digit(10).map(|digit| (digit, c.len_utf8()))
    }

    /// Takes one token or one piece of white space; false at the end.
    fn step(&mut self) -> bool {
        // Most of a text is ASCII letters and spaces: the long way round is for the rest.
        match self.text.as_bytes().get(self.at) {
            Some(b' ') => {
                self.space(1, false);
                return true;
            }
            Some(byte) if byte.is_ascii_alphabetic() => {
                self.take_word();
                return true;
            }
            _ => {}
        }
        let Some(c) = self.peek() else { return false };
        if let Some(length) = self.escape() {
            self.space(length, true);
        } else if c.is_whitespace() || is_invisible(c) {
            self.space(c.len_utf8(), matches!(c, '\n' | '\r'));
        } else if plain(c).is_ascii_digit() {
            self.take_number();
        } else if is_cjk(c) {
            self.take_cjk();
        } else if c.is_alphabetic() {
            self.take_word();
        } else {
            self.push(Kind::Sign(plain(c)), c.len_utf8(), self.folded.len());
        }
        true
    }

    /// Line ends and no-break spaces that a JSON writer has escaped.
    fn escape(&self) -> Option<usize> {
        let tail = self.rest().strip_prefix('\\')?;
        if tail.starts_with(['n', 'r', 't']) {
            return Some(2);
        }
        let code = tail.strip_prefix('u')?.get(..4)?;
        ["202f", "00a0", "2009"].iter().any(|known| code.eq_ignore_ascii_case(known)).then_some(6)
    }

    fn space(&mut self, length: usize, line: bool) {
        self.at += length;
        if line {
            self.gap = Gap::Line;
        } else if self.gap == Gap::None {
            self.gap = Gap::Space;
        }
    }

    fn push(&mut self, kind: Kind, length: usize, folded_from: usize) {
        let span = self.at..self.at + length;
        self.list.push(Token { kind, gap: self.gap, span, folded: folded_from..self.folded.len() });
        self.gap = Gap::None;
        self.at += length;
    }

    fn take_number(&mut self) {
        let mut number = Number { whole: 0, digits: 0, nanos: 0, point: false };
        let mut length = 0;
        while let Some((digit, bytes)) = self.digit(length) {
            number.whole = number.whole.saturating_mul(10).saturating_add(u64::from(digit));
            number.digits += 1;
            length += bytes;
        }
        if let Some((nanos, bytes)) = self.fraction(length) {
            number.nanos = nanos;
            number.point = true;
            length += bytes;
        }
        self.push(Kind::Number(number), length, self.folded.len());
    }

    /// The point and the digits behind it, unless they belong to a dotted row such as `3.2.2026`.
    fn fraction(&self, skip: usize) -> Option<(u32, usize)> {
        let in_row = self.gap == Gap::None && self.list.last().is_some_and(|t| t.kind == Kind::Sign('.'));
        if in_row || !self.dot(skip) {
            return None;
        }
        let (mut nanos, mut scale, mut length) = (0, 100_000_000, 1);
        while let Some((digit, bytes)) = self.digit(skip + length) {
            nanos += digit * scale;
            scale /= 10;
            length += bytes;
        }
        let row_goes_on = self.dot(skip + length) && self.digit(skip + length + 1).is_some();
        (length > 1 && !row_goes_on).then_some((nanos, length))
    }

    fn dot(&self, skip: usize) -> bool {
        self.text.as_bytes().get(self.at + skip) == Some(&b'.')
    }

    fn take_word(&mut self) {
        let from = self.folded.len();
        let rest = self.text.get(self.at..).unwrap_or("");
        // Most words are plain ASCII and need no folding but the case.
        let mut length = rest.bytes().take_while(u8::is_ascii_alphabetic).count();
        self.folded.extend(rest.bytes().take(length).map(|byte| char::from(byte.to_ascii_lowercase())));
        for c in rest
            .get(length..)
            .unwrap_or("")
            .chars()
            .take_while(|&c| !is_cjk(c) && (c.is_alphabetic() || is_accent(c)))
        {
            fold_into(&mut self.folded, c);
            length += c.len_utf8();
        }
        self.push(Kind::Word, length, from);
    }

    fn take_cjk(&mut self) {
        let from = self.folded.len();
        let rest = self.text.get(self.at..).unwrap_or("");
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let length = words::cjk_word_length(rest).unwrap_or(first);
        self.folded.push_str(rest.get(..length).unwrap_or(""));
        self.push(Kind::Word, length, from);
    }
}

/// Full-width forms and look-alikes as their plain character.
fn plain(c: char) -> char {
    match c {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(c) - 0xFEE0).unwrap_or(c),
        '\u{2212}' | '\u{2010}' | '\u{2011}' => '-',
        '\u{2013}' | '\u{2014}' => '\u{2013}',
        '\u{301C}' => '~',
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201C}' | '\u{201D}' => '"',
        '、' => ',',
        _ => c,
    }
}

fn is_accent(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036F}')
}

/// Direction marks, joiners and the byte-order mark: they have no width and no meaning here.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200B}'..='\u{200F}' | '\u{2060}' | '\u{2066}'..='\u{2069}' | '\u{FEFF}')
}

fn is_cjk(c: char) -> bool {
    matches!(c, '\u{3005}' | '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{AC00}'..='\u{D7AF}')
}

/// Small letters without accents, so that `réessayez`, `Reessayez` and its decomposed form are one word.
fn fold_into(folded: &mut String, c: char) {
    match c {
        _ if is_accent(c) => {}
        'à'..='å' | 'À'..='Å' => folded.push('a'),
        'ç' | 'Ç' => folded.push('c'),
        'è'..='ë' | 'È'..='Ë' => folded.push('e'),
        'ì'..='ï' | 'Ì'..='Ï' => folded.push('i'),
        'ñ' | 'Ñ' => folded.push('n'),
        'ò'..='ö' | 'Ò'..='Ö' | 'º' => folded.push('o'),
        'ù'..='ü' | 'Ù'..='Ü' | 'µ' | 'μ' => folded.push('u'),
        'ß' => folded.push_str("ss"),
        _ => folded.extend(plain(c).to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Vec<String> {
        let tokens = Tokens::of(text);
        (0..tokens.len()).map(|at| tokens.written(at).to_owned()).collect()
    }

    #[test]
    fn numbers_words_and_signs_are_cut_apart() {
        assert_eq!(cut("22m55s"), ["22", "m", "55", "s"]);
        assert_eq!(cut("in 59.70s."), ["in", "59.70", "s", "."]);
        assert_eq!(cut("3.2.2026"), ["3", ".", "2", ".", "2026"]);
        assert_eq!(cut("2026年2月4日"), ["2026", "年", "2", "月", "4", "日"]);
        assert_eq!(cut("５時間後に"), ["５", "時間", "後", "に"]);
    }

    #[test]
    fn words_are_folded() {
        let tokens = Tokens::of("RÉESSAYEZ re\u{301}essayez 5µs Straße");
        assert_eq!(tokens.word(0), "reessayez");
        assert_eq!(tokens.word(1), "reessayez");
        assert_eq!(tokens.word(3), "us");
        assert_eq!(tokens.word(4), "strasse");
    }

    #[test]
    fn white_space_of_any_kind_is_one_gap() {
        let tokens = Tokens::of("a \u{202f}\t b\\n c\\u202fd\n\ne");
        let gaps: Vec<Gap> = (0..tokens.len()).map(|at| tokens.gap(at)).collect();
        assert_eq!(gaps, [Gap::Line, Gap::Space, Gap::Line, Gap::Line, Gap::Line]);
    }

    #[test]
    fn endless_digits_saturate() {
        let text = "9".repeat(100_000);
        let number = Tokens::of(&text).number(0).unwrap();
        assert_eq!((number.whole, number.digits), (u64::MAX, 100_000));
    }
}
