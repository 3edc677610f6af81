//! The strict layer: exactly RFC 8259, and whether any object has a key twice.
//!
//! First and fastest, since nearly all arguments are valid: one pass, no tree, nothing is allocated per value. String
//! bodies are searched eight bytes at a time. The keys of open objects are kept as hashes and compared when their
//! object ends. An explicit stack bounds the depth.
//!
//! Two things that the grammar allows are refused here, because nothing behind us could hold them: escapes of lone
//! surrogates (no text has them) and nesting beyond the limit. A byte order mark is no part of JSON.

use super::keys::{Keys, mix};
use super::verdict::{Defect, Stop};

/// What the text is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Top {
    Object,
    Array,
    Text,
    Other,
}

/// A text that is strict JSON.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanResult {
    pub(super) top: Top,
    /// Where a key stands that was there before.
    pub(super) duplicate: Option<usize>,
}

/// Reads a text as strict JSON.
pub(super) fn scan(text: &str, max_depth: usize) -> Result<ScanResult, Stop> {
    let mut scanner = Scanner {
        text,
        bytes: text.as_bytes(),
        at: 0,
        frames: Vec::with_capacity(16),
        keys: Keys::default(),
        duplicate: None,
        max_depth,
    };
    let top = scanner.whole()?;
    Ok(ScanResult { top, duplicate: scanner.duplicate })
}

struct Frame {
    /// Where the keys of this object begin; none for an array.
    keys: Option<usize>,
}

struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    frames: Vec<Frame>,
    keys: Keys,
    duplicate: Option<usize>,
    max_depth: usize,
}

const WHITE: &str = "white space that JSON does not allow, or no JSON at all";

impl Scanner<'_> {
    fn whole(&mut self) -> Result<Top, Stop> {
        self.blank();
        let top = match self.peek() {
            Some(b'{') => Top::Object,
            Some(b'[') => Top::Array,
            Some(b'"') => Top::Text,
            _ => Top::Other,
        };
        self.value()?;
        while let Some(frame) = self.frames.last() {
            if let Some(keys) = frame.keys { self.after_member(keys)? } else { self.after_element()? }
        }
        self.blank();
        match self.peek() {
            None => Ok(top),
            Some(_) => Err(self.unreadable("something follows the end of the JSON")),
        }
    }

    /// A value; one that holds others is only opened, up to its first scalar.
    fn value(&mut self) -> Result<(), Stop> {
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return self.string().map(drop);
                }
                Some(b'{') => {
                    self.open(true)?;
                    self.blank();
                    if self.peek() == Some(b'}') {
                        self.close();
                        return Ok(());
                    }
                    self.key()?;
                }
                Some(b'[') => {
                    self.open(false)?;
                    self.blank();
                    if self.peek() == Some(b']') {
                        self.close();
                        return Ok(());
                    }
                }
                Some(b'-' | b'0'..=b'9') => return self.number(),
                Some(b't') => return self.word(b"true"),
                Some(b'f') => return self.word(b"false"),
                Some(b'n') => return self.word(b"null"),
                Some(_) => return Err(self.unreadable("a JSON value is expected here")),
                None => return Err(self.cut()),
            }
        }
    }

    fn after_member(&mut self, keys: usize) -> Result<(), Stop> {
        self.blank();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.blank();
                self.key()?;
                self.value()
            }
            Some(b'}') => {
                if self.duplicate.is_none() {
                    self.duplicate = self.keys.first_twice(keys, self.text);
                }
                self.keys.forget(keys);
                self.close();
                Ok(())
            }
            Some(_) => Err(self.unreadable("a comma or the end of the object is expected here")),
            None => Err(self.cut()),
        }
    }

    fn after_element(&mut self) -> Result<(), Stop> {
        self.blank();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.blank();
                self.value()
            }
            Some(b']') => {
                self.close();
                Ok(())
            }
            Some(_) => Err(self.unreadable("a comma or the end of the array is expected here")),
            None => Err(self.cut()),
        }
    }

    /// A key and its colon, up to the value.
    fn key(&mut self) -> Result<(), Stop> {
        match self.peek() {
            Some(b'"') => self.at += 1,
            Some(_) => return Err(self.unreadable("a key in quotation marks is expected here")),
            None => return Err(self.cut()),
        }
        let from = self.at;
        let escaped = self.string()?;
        let to = self.at - 1;
        self.keys.push(mix(self.bytes.get(from..to).unwrap_or_default()), from..to, escaped);
        self.blank();
        match self.peek() {
            Some(b':') => self.at += 1,
            Some(_) => return Err(self.unreadable("a colon is expected after the key")),
            None => return Err(self.cut()),
        }
        self.blank();
        Ok(())
    }

    /// The body of a string and its end; whether it holds escapes.
    fn string(&mut self) -> Result<bool, Stop> {
        let mut escaped = false;
        loop {
            self.at = special(self.bytes, self.at);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(escaped);
                }
                Some(b'\\') => {
                    escaped = true;
                    match escape(self.bytes, self.at) {
                        Escape::Legal(length) => self.at += length,
                        Escape::Cut => return Err(self.cut()),
                        Escape::Surrogate => {
                            let why = "an escape of half a surrogate pair is no character";
                            return Err(Stop::new(Defect::BadEscape, self.at, why));
                        }
                        Escape::Illegal => {
                            let why = "this backslash begins no escape that JSON knows";
                            return Err(Stop::new(Defect::BadEscape, self.at, why));
                        }
                    }
                }
                Some(_) => {
                    return Err(self.unreadable("control characters in a string must be escaped"));
                }
                None => return Err(self.cut()),
            }
        }
    }

    fn number(&mut self) -> Result<(), Stop> {
        let end = number_end(self.bytes, self.at);
        let Some(end) = end else {
            let why = "a number has the form -1, 2.5 or 6e7";
            return Err(Stop::new(Defect::BadNumber, self.at, why));
        };
        self.at = end;
        Ok(())
    }

    fn word(&mut self, word: &'static [u8]) -> Result<(), Stop> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(word) {
            self.at += word.len();
            return Ok(());
        }
        if word.starts_with(rest) {
            Err(self.cut())
        } else {
            Err(self.unreadable("a JSON value is expected here"))
        }
    }

    fn open(&mut self, object: bool) -> Result<(), Stop> {
        if self.frames.len() >= self.max_depth {
            return Err(Stop::new(Defect::TooDeep, self.at, "nested too deeply"));
        }
        self.frames.push(Frame { keys: object.then(|| self.keys.len()) });
        self.at += 1;
        Ok(())
    }

    fn close(&mut self) {
        self.at += 1;
        self.frames.pop();
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blank(&mut self) {
        while let Some(b' ' | b'\n' | b'\t' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn cut(&self) -> Stop {
        if self.frames.is_empty() && self.text.trim().is_empty() {
            return Stop::new(Defect::Empty, self.at, "there is no text");
        }
        Stop::new(Defect::Cut, self.bytes.len(), "the text ends before the JSON does")
    }

    fn unreadable(&self, why: &'static str) -> Stop {
        let odd = self.peek().is_some_and(|byte| !byte.is_ascii_graphic());
        let why = if odd && !why.starts_with("control") { WHITE } else { why };
        Stop::new(Defect::Unreadable, self.at, why)
    }
}

/// The next byte of a string body that is not plain: quotation mark, backslash, control character, or the end.
pub(super) fn special(bytes: &[u8], mut at: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    const QUOTE: u64 = ONES * b'"' as u64;
    const BACK: u64 = ONES * b'\\' as u64;
    const SPACE: u64 = ONES * 0x20;
    let zero_in = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    while let Some(chunk) = bytes.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(SPACE) & !word & HIGH;
        // The lowest mark is exact: borrows only travel upwards.
        let marks = zero_in(word ^ QUOTE) | zero_in(word ^ BACK) | control;
        if marks != 0 {
            return at + (marks.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at) {
        if matches!(byte, b'"' | b'\\' | 0..=0x1f) {
            break;
        }
        at += 1;
    }
    at
}

/// What a backslash begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// An escape of JSON with this many bytes; a pair of surrogates counts as one.
    Legal(usize),
    Illegal,
    Surrogate,
    /// The text ends inside it.
    Cut,
}

/// The escape that begins with the backslash at this place.
pub(super) fn escape(bytes: &[u8], at: usize) -> Escape {
    match bytes.get(at + 1) {
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::Legal(2),
        Some(b'u') => match hex4(bytes, at + 2) {
            Ok(0xD800..=0xDBFF) => match (bytes.get(at + 6), bytes.get(at + 7), hex4(bytes, at + 8)) {
                (Some(b'\\'), Some(b'u'), Ok(0xDC00..=0xDFFF)) => Escape::Legal(12),
                (None, _, _) => Escape::Cut,
                _ => Escape::Surrogate,
            },
            Ok(0xDC00..=0xDFFF) => Escape::Surrogate,
            Ok(_) => Escape::Legal(6),
            Err(cut) => cut,
        },
        Some(_) => Escape::Illegal,
        None => Escape::Cut,
    }
}

pub(super) fn hex4(bytes: &[u8], at: usize) -> Result<u32, Escape> {
    let mut number = 0;
    for place in at..at + 4 {
        let byte = bytes.get(place).ok_or(Escape::Cut)?;
        let digit = char::from(*byte).to_digit(16).ok_or(Escape::Illegal)?;
        number = number * 16 + digit;
    }
    Ok(number)
}

/// Where the strict number that begins here ends.
pub(super) fn number_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let digits = |mut at: usize| {
        let from = at;
        while matches!(bytes.get(at), Some(b'0'..=b'9')) {
            at += 1;
        }
        (at > from).then_some(at)
    };
    if bytes.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if bytes.get(at) == Some(&b'0') { at + 1 } else { digits(at)? };
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1;
        if let Some(b'+' | b'-') = bytes.get(at) {
            at += 1;
        }
        at = digits(at)?;
    }
    Some(at)
}
