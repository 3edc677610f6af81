//! The inside of a string: what its backslashes, quotation marks and control characters mean.
//!
//! A backslash has one reading only if all of its string agree: all escapes that JSON knows, or none. A Windows path
//! with one `\n` in it can mean two things, so it is refused.

use std::borrow::Cow;

use super::strict::{Escape, escape, hex4, special};
use super::verdict::{ChangeKind, Defect, Stop};

/// A string body as it was read.
pub(super) enum Body {
    /// Strict JSON as it stands.
    Plain,
    /// Another text, decoded; and what had to be done.
    Made(String, Vec<ChangeKind>),
}

#[derive(Default)]
struct StringMarks {
    legal: bool,
    /// The first backslash that begins no escape of JSON.
    illegal: Option<usize>,
    apostrophe: bool,
    control: bool,
    quote: bool,
}

/// Reads a body. `at` is where it begins in the text, `tick` whether back-ticks enclose it.
pub(super) fn read(raw: &str, at: usize, tick: bool) -> Result<Body, Stop> {
    let seen = scan(raw, at, tick)?;
    if seen.illegal.is_none() && !seen.apostrophe && !seen.control && !seen.quote {
        return Ok(Body::Plain);
    }
    if let Some(place) = seen.illegal.filter(|_| seen.legal || seen.apostrophe) {
        let why =
            "some backslashes of this string begin escapes and others do not: double those that are meant";
        return Err(Stop::new(Defect::BadEscape, at + place, why));
    }
    let mut changes = Vec::new();
    let text = match seen.illegal {
        Some(_) => {
            changes.push(ChangeKind::BackslashesEscaped);
            raw.to_owned()
        }
        None => unescape(raw).into_owned(),
    };
    for (happened, what) in [
        (seen.quote, ChangeKind::QuotesEscaped),
        (seen.control, ChangeKind::ControlsEscaped),
        (seen.apostrophe, ChangeKind::ApostropheUnescaped),
    ] {
        if happened {
            changes.push(what);
        }
    }
    Ok(Body::Made(text, changes))
}

fn scan(raw: &str, at: usize, tick: bool) -> Result<StringMarks, Stop> {
    let bytes = raw.as_bytes();
    let bad = |place: usize, why| Err(Stop::new(Defect::BadEscape, at + place, why));
    let mut seen = StringMarks::default();
    let mut place = 0;
    loop {
        place = special(bytes, place);
        match bytes.get(place) {
            None => return Ok(seen),
            Some(b'"') => {
                seen.quote = true;
                place += 1;
            }
            Some(b'\\') => match escape(bytes, place) {
                Escape::Legal(length) => {
                    seen.legal = true;
                    place += length;
                }
                Escape::Surrogate => return bad(place, "an escape of half a surrogate pair is no character"),
                Escape::Cut => return bad(place, "an escape is not complete"),
                Escape::Illegal => {
                    match bytes.get(place + 1) {
                        Some(b'\'') => seen.apostrophe = true,
                        Some(b'`') if tick => seen.apostrophe = true,
                        Some(b'U') if is_hexadecimal(bytes.get(place + 2..place + 10)) => {
                            return bad(
                                place,
                                "write \\u and four hexadecimal digits, as a pair beyond FFFF",
                            );
                        }
                        Some(b'x' | b'u') => return bad(place, "write \\u and four hexadecimal digits"),
                        Some(
                            b'a'..=b'z'
                            | b'A'..=b'Z'
                            | b'0'..=b'9'
                            | b'.'
                            | b'('
                            | b')'
                            | b'['
                            | b']'
                            | b'{'
                            | b'}'
                            | b'+'
                            | b'?'
                            | b'^'
                            | b'|',
                        ) => {
                            seen.illegal.get_or_insert(place);
                        }
                        _ => return bad(place, "this backslash begins no escape that JSON knows"),
                    }
                    place += 2;
                }
            },
            Some(_) => {
                seen.control = true;
                place += 1;
            }
        }
    }
}

fn is_hexadecimal(digits: Option<&[u8]>) -> bool {
    digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
}

/// Resolves the escapes of a body that was found to have none but legal ones (and `\'`).
pub(super) fn unescape(raw: &str) -> Cow<'_, str> {
    let Some(first) = memchr::memchr(b'\\', raw.as_bytes()) else { return Cow::Borrowed(raw) };
    let bytes = raw.as_bytes();
    let mut out = String::with_capacity(raw.len());
    let mut from = 0;
    let mut next = Some(first);
    while let Some(place) = next {
        out.push_str(raw.get(from..place).unwrap_or_default());
        let (plain, length) = one_escape(bytes, place);
        out.push(plain);
        from = place + length;
        let rest = bytes.get(from..).unwrap_or_default();
        next = memchr::memchr(b'\\', rest).map(|offset| from + offset);
    }
    out.push_str(raw.get(from..).unwrap_or_default());
    Cow::Owned(out)
}

fn one_escape(bytes: &[u8], at: usize) -> (char, usize) {
    let letter = bytes.get(at + 1).copied().unwrap_or(b'\\');
    let plain = match letter {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => {
            let high = hex4(bytes, at + 2).unwrap_or(0xFFFD);
            if let (0xD800..=0xDBFF, Ok(low @ 0xDC00..=0xDFFF)) = (high, hex4(bytes, at + 8)) {
                let code = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                return (char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), 12);
            }
            return (char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER), 6);
        }
        other => char::from(other),
    };
    (plain, 2)
}

/// Writes a text as a JSON string.
pub(super) fn write_text(text: &str, out: &mut String) {
    out.push('"');
    let bytes = text.as_bytes();
    let mut from = 0;
    loop {
        let place = special(bytes, from);
        out.push_str(text.get(from..place).unwrap_or_default());
        match bytes.get(place) {
            None => break,
            Some(b'"') => out.push_str("\\\""),
            Some(b'\\') => out.push_str("\\\\"),
            Some(b'\n') => out.push_str("\\n"),
            Some(b'\r') => out.push_str("\\r"),
            Some(b'\t') => out.push_str("\\t"),
            Some(byte) => {
                let digit = |value: u8| char::from_digit(u32::from(value), 16).unwrap_or('0');
                out.push_str("\\u00");
                out.push(digit(byte >> 4));
                out.push(digit(byte & 15));
            }
        }
        from = place + 1;
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["", "plain", "a\"b\\c\n\r\t\u{1}\u{1f}", "あ😀\u{7f}", "\\\\\"\""] {
            let mut json = String::new();
            write_text(text, &mut json);
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
            assert_eq!(unescape(&json[1..json.len() - 1]), text);
        }
        assert_eq!(unescape("\\ud83d\\ude00\\u0041\\/"), "😀A/");
    }
}
