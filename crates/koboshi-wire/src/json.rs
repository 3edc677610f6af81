//! Reads good JSON quickly, and leaves everything else to `serde_json`.
//!
//! Every answer and every frame of a stream is read once, only to be looked at; that is most of what a gateway computes. This reader
//! knows its whole input, borrows every text without an escape and searches strings many bytes at a time. What it does not know (broken JSON,
//! fractions that somebody asks for, deep nesting) it gives up, and the text is read again by `serde_json`, whose word counts.
//! So it may refuse what is good, but it must never take what `serde_json` refuses, nor read it differently.

use std::borrow::Cow;
use std::fmt;

use memchr::memchr2;
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::forward_to_deserialize_any;

/// Lists and objects in each other; deeper ones are rare and left to `serde_json`.
const DEEPEST: u32 = 64;
/// Strings that are shorter are searched byte by byte.
const SHORT: usize = 24;
/// How `serde_json` asks for a value as it is written.
const RAW: &str = "$serde_json::private::RawValue";

/// What a text says that must be one JSON value and nothing else.
pub(crate) fn read<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, serde_json::Error> {
    quickly(text, |reader| T::deserialize(reader)).or_else(|_| serde_json::from_str(text))
}

/// Reads a whole text with this reader alone.
pub(crate) fn quickly<'a, T>(
    text: &'a str,
    take: impl FnOnce(&mut Reader<'a>) -> Result<T, GivenUp>,
) -> Result<T, GivenUp> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = take(&mut reader)?;
    reader.spaces();
    if reader.at == text.len() { Ok(value) } else { Err(GivenUp) }
}

/// It is not JSON, or not of the kind that is read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GivenUp;

impl fmt::Display for GivenUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("left to another reader")
    }
}

impl std::error::Error for GivenUp {}

impl Error for GivenUp {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self
    }
}

/// A place in a text.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn spaces(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// The next byte that is no space; it is not passed.
    fn next_kind(&mut self) -> Result<u8, GivenUp> {
        self.spaces();
        self.peek().ok_or(GivenUp)
    }

    fn pass(&mut self, byte: u8) -> Result<(), GivenUp> {
        if self.next_kind()? != byte {
            return Err(GivenUp);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), GivenUp> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(GivenUp);
        }
        self.at += word.len();
        Ok(())
    }

    /// The inside of a string as it is written, and whether there are escapes in it.
    fn quoted(&mut self) -> Result<(&'a str, bool), GivenUp> {
        self.pass(b'"')?;
        let start = self.at;
        let mut escapes = false;
        loop {
            let end = self.quote_or_escape()?;
            match self.text.as_bytes().get(end) {
                Some(b'"') => {
                    self.at = end + 1;
                    return Ok((self.text.get(start..end).ok_or(GivenUp)?, escapes));
                }
                _ => {
                    escapes = true;
                    self.at = end;
                    self.escape()?;
                }
            }
        }
    }

    /// Where the next quote or backslash is. There is no control character before it.
    fn quote_or_escape(&self) -> Result<usize, GivenUp> {
        let rest = self.text.as_bytes().get(self.at..).ok_or(GivenUp)?;
        for (place, byte) in rest.iter().enumerate().take(SHORT) {
            match byte {
                b'"' | b'\\' => return Ok(self.at + place),
                0..0x20 => return Err(GivenUp),
                _ => {}
            }
        }
        let long = rest.get(SHORT..).ok_or(GivenUp)?;
        let found = memchr2(b'"', b'\\', long).ok_or(GivenUp)?;
        let before = long.get(..found).unwrap_or_default();
        // Without a branch per byte, so that many are compared at once.
        if before.iter().fold(false, |any, byte| any | (*byte < 0x20)) {
            return Err(GivenUp);
        }
        Ok(self.at + SHORT + found)
    }

    /// Passes an escape, which stands here. Gives the character; halves of characters are left to another reader.
    fn escape(&mut self) -> Result<char, GivenUp> {
        self.at += 1;
        let byte = self.peek().ok_or(GivenUp)?;
        self.at += 1;
        Ok(match byte {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.four_digits()?;
                if !(0xd800..0xdc00).contains(&first) {
                    return char::from_u32(first).ok_or(GivenUp);
                }
                self.word("\\u")?;
                let second = self.four_digits()?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(GivenUp);
                }
                char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00)).ok_or(GivenUp)?
            }
            _ => return Err(GivenUp),
        })
    }

    fn four_digits(&mut self) -> Result<u32, GivenUp> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or(GivenUp)?;
        self.at += 4;
        digits.iter().try_fold(0, |number, digit| {
            let digit = char::from(*digit).to_digit(16).ok_or(GivenUp)?;
            Ok(number * 16 + digit)
        })
    }

    /// A string.
    fn string(&mut self) -> Result<Cow<'a, str>, GivenUp> {
        let (inside, escapes) = self.quoted()?;
        if escapes { unescaped(inside).map(Cow::Owned) } else { Ok(Cow::Borrowed(inside)) }
    }

    /// Passes a number, which stands here. Says how it is written, and whether it is a whole one.
    fn number(&mut self) -> Result<(&'a str, bool), GivenUp> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(GivenUp),
        }
        let mut whole = true;
        if self.peek() == Some(b'.') {
            whole = false;
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            whole = false;
            self.at += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok((self.text.get(start..self.at).ok_or(GivenUp)?, whole))
    }

    fn digits(&mut self) -> Result<(), GivenUp> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { Err(GivenUp) } else { Ok(()) }
    }

    /// Passes a value, whatever it is. What lies open is held as bits: one for an object, zero for a list.
    fn skip(&mut self) -> Result<(), GivenUp> {
        let mut open = 0_u64;
        let mut depth = 0_u32;
        loop {
            match self.next_kind()? {
                b'{' => {
                    self.at += 1;
                    if self.next_kind()? == b'}' {
                        self.at += 1;
                    } else {
                        (open, depth) = (open << 1 | 1, deeper(depth)?);
                        self.key()?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if self.next_kind()? == b']' {
                        self.at += 1;
                    } else {
                        (open, depth) = (open << 1, deeper(depth)?);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // A value has ended: so may what is around it.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let in_object = open & 1 == 1;
                match (self.next_kind()?, in_object) {
                    (b',', true) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (b',', false) => {
                        self.at += 1;
                        break;
                    }
                    (b'}', true) | (b']', false) => {
                        self.at += 1;
                        (open, depth) = (open >> 1, depth - 1);
                    }
                    _ => return Err(GivenUp),
                }
            }
        }
    }

    fn key(&mut self) -> Result<(), GivenUp> {
        self.quoted()?;
        self.pass(b':')
    }

    fn scalar(&mut self) -> Result<(), GivenUp> {
        match self.next_kind()? {
            b'"' => self.quoted().map(|_| ()),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number().map(|_| ()),
        }
    }
}

fn deeper(depth: u32) -> Result<u32, GivenUp> {
    if depth < DEEPEST { Ok(depth + 1) } else { Err(GivenUp) }
}

/// A string's text: its escapes are good ones.
fn unescaped(inside: &str) -> Result<String, GivenUp> {
    let mut text = String::with_capacity(inside.len());
    let mut reader = Reader { text: inside, at: 0, depth: 0 };
    while let Some(found) = inside.as_bytes().get(reader.at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        let end = reader.at + found;
        text.push_str(inside.get(reader.at..end).ok_or(GivenUp)?);
        reader.at = end;
        text.push(reader.escape()?);
    }
    text.push_str(inside.get(reader.at..).ok_or(GivenUp)?);
    Ok(text)
}

impl<'a> Deserializer<'a> for &mut Reader<'a> {
    type Error = GivenUp;

    #[inline]
    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        match self.next_kind()? {
            b'"' => match self.string()? {
                Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
                Cow::Owned(text) => visitor.visit_string(text),
            },
            b'{' => {
                self.at += 1;
                self.depth = deeper(self.depth)?;
                let value = visitor.visit_map(Members { reader: self, first: true })?;
                self.depth -= 1;
                self.pass(b'}')?;
                Ok(value)
            }
            b'[' => {
                self.at += 1;
                self.depth = deeper(self.depth)?;
                let value = visitor.visit_seq(Members { reader: self, first: true })?;
                self.depth -= 1;
                self.pass(b']')?;
                Ok(value)
            }
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            _ => match self.number()? {
                (text, true) if text.starts_with('-') => text
                    .parse()
                    .ok()
                    .filter(|number| *number < 0)
                    .ok_or(GivenUp)
                    .and_then(|n| visitor.visit_i64(n)),
                (text, true) => text.parse().map_err(|_| GivenUp).and_then(|n| visitor.visit_u64(n)),
                (_, false) => Err(GivenUp),
            },
        }
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        self.skip()?;
        visitor.visit_unit()
    }

    #[inline]
    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, GivenUp> {
        if name != RAW {
            return visitor.visit_newtype_struct(self);
        }
        self.next_kind()?;
        let start = self.at;
        self.skip()?;
        visitor.visit_map(AsWritten(Some(self.text.get(start..self.at).ok_or(GivenUp)?)))
    }

    #[inline]
    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, GivenUp> {
        if self.next_kind()? == b'n' {
            self.word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

/// What stands in a list or an object.
struct Members<'r, 'a> {
    reader: &'r mut Reader<'a>,
    first: bool,
}

impl Members<'_, '_> {
    /// Whether there is one more.
    #[inline]
    fn has_next(&mut self, end: u8) -> Result<bool, GivenUp> {
        let next = self.reader.next_kind()?;
        if next == end {
            return Ok(false);
        }
        if !std::mem::take(&mut self.first) {
            self.reader.pass(b',')?;
        }
        Ok(true)
    }
}

impl<'a> MapAccess<'a> for Members<'_, 'a> {
    type Error = GivenUp;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, GivenUp> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        if self.reader.next_kind()? != b'"' {
            return Err(GivenUp);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, GivenUp> {
        self.reader.pass(b':')?;
        seed.deserialize(&mut *self.reader)
    }
}

impl<'a> SeqAccess<'a> for Members<'_, 'a> {
    type Error = GivenUp;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, GivenUp> {
        if !self.has_next(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.reader).map(Some)
    }
}

/// A value as it is written, in the form in which `serde_json` takes it.
struct AsWritten<'a>(Option<&'a str>);

impl<'a> MapAccess<'a> for AsWritten<'a> {
    type Error = GivenUp;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, GivenUp> {
        if self.0.is_none() {
            return Ok(None);
        }
        seed.deserialize(RAW.into_deserializer()).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, GivenUp> {
        let text = self.0.take().ok_or(GivenUp)?;
        seed.deserialize(serde::de::value::BorrowedStrDeserializer::new(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde::de::IgnoredAny;
    use serde_json::Value;
    use serde_json::value::RawValue;

    fn value(text: &str) -> Option<Value> {
        quickly(text, |reader| Value::deserialize(reader)).ok()
    }

    fn skipped(text: &str) -> bool {
        quickly(text, |reader| IgnoredAny::deserialize(reader)).is_ok()
    }

    fn raw(text: &str) -> Option<&str> {
        quickly(text, |reader| <&RawValue>::deserialize(reader)).ok().map(RawValue::get)
    }

    /// Whatever it takes, `serde_json` takes, and reads the same in it.
    fn agrees(text: &str) {
        let other: Option<Value> = serde_json::from_str(text).ok();
        if let Some(quick) = value(text) {
            assert_eq!(Some(&quick), other.as_ref(), "{text:?}");
        }
        if skipped(text) {
            assert!(serde_json::from_str::<IgnoredAny>(text).is_ok(), "{text:?}");
        }
        if let Some(quick) = raw(text) {
            let other = serde_json::from_str::<&RawValue>(text).unwrap();
            assert_eq!(quick, other.get(), "{text:?}");
        }
    }

    #[test]
    fn what_dialects_are_made_of_is_read_here() {
        for text in [
            r#"{"id":"c-1","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}],"usage":{}}"#,
            " [ ] ",
            "{ \"a\" : [ 1 , -2 , true , false , null , \"\" , { } ] }",
            r#""a long text without any escape that is searched many bytes at a time, to its end""#,
            r#""line\nline \u00e9 \ud83d\ude00 \" \\ \/ and much more text behind it, beyond the short part""#,
            "18446744073709551615",
            "-9223372036854775808",
        ] {
            assert!(value(text).is_some() && skipped(text) && raw(text).is_some(), "{text}");
            agrees(text);
        }
        assert!(skipped("[0.5, 1e9, -1.25E-3]"), "fractions are passed over");
    }

    #[test]
    fn what_is_not_json_is_never_taken() {
        for text in [
            "",
            " ",
            "{",
            "[",
            "[1,]",
            "[,1]",
            "{,}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{1:1}",
            "[1 2]",
            "[1]]",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "nul",
            "truex",
            "\"a",
            "\"\u{1}\"",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\\ud83d\"",
            "\"\\ude00\"",
            "\"\\ud83d\\n\"",
            "[1}",
            "{\"a\":1]",
            "{\"a\" 1}",
            "'a'",
            "1 1",
            "[\"a\" \"b\"]",
            "\"a text that is longer than the short part and has a \n in it\"",
        ] {
            assert!(value(text).is_none() && !skipped(text) && raw(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn what_it_does_not_know_it_leaves_to_the_other() {
        let deep = format!("{}1{}", "[".repeat(100), "]".repeat(100));
        for text in ["0.5", "1e3", "99999999999999999999", "-0", deep.as_str()] {
            assert_eq!(value(text), None, "{text}");
            assert_eq!(read::<Value>(text).unwrap(), serde_json::from_str::<Value>(text).unwrap());
        }
        assert!(read::<Value>("[1,]").is_err());
        assert_eq!(raw(" {\"a\": [1 , 2]}\n"), Some("{\"a\": [1 , 2]}"));
    }

    #[test]
    fn it_never_passes_the_end_nor_a_bound() {
        for open in ["[", "{\"a\":", "[[{\"b\":["] {
            agrees(&open.repeat(10_000));
        }
        let list = format!("[{}1]", "1,".repeat(100_000));
        assert!(skipped(&list));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".{0,60}".prop_map(Value::from),
            "[\\\\\"a\u{1f600}\n\t]{0,40}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(".{0,8}", inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn good_json_is_read_like_the_other_reads_it(value in json(), pretty in any::<bool>()) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            prop_assert!(skipped(&text), "{text}");
            agrees(&text);
        }

        #[test]
        fn changed_json_is_taken_only_if_the_other_takes_it(
            value in json(), at in any::<prop::sample::Index>(), put in "[\\[\\]{}\",:0-9eE.+\\-a-z\\\\ \u{1}]{0,3}", take in 0usize..3,
        ) {
            let mut text: Vec<char> = serde_json::to_string(&value).unwrap().chars().collect();
            let from = at.index(text.len() + 1);
            let to = (from + take).min(text.len());
            text.splice(from..to, put.chars());
            agrees(&text.into_iter().collect::<String>());
        }
    }
}
