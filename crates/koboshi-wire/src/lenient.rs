//! Reads JSON that is nearly what a dialect defines.
//!
//! Servers that call themselves compatible send `null` for lists, numbers for texts, a key twice. None of that is a reason to
//! drop an answer, so every reader here takes any JSON value and keeps what it knows; of a key that comes twice the last
//! counts, as it does for the official clients. Texts are borrowed wherever they hold no escape.
//!
//! Broken JSON stays broken: nothing is repaired here.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::value::RawValue;

use crate::Malformed;

/// Something that is filled from the fields of a JSON object, in any order.
pub(crate) trait Fields<'a>: Default {
    /// Takes the value of this field; of one that is not known, [`skip`]s it.
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error>;
}

/// Passes over a value.
pub(crate) fn skip<'a, A: MapAccess<'a>>(map: &mut A) -> Result<(), A::Error> {
    map.next_value::<IgnoredAny>().map(|_| ())
}

/// What a visitor does with values that it does not want.
macro_rules! otherwise {
    (texts) => {
        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (numbers) => {
        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (flags) => {
        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (null) => {
        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(Self::Value::default())
        }
    };
    (lists) => {
        fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            while list.next_element::<IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    (objects) => {
        fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(Self::Value::default())
        }
    };
    ($($kind:ident),+) => { $(otherwise!($kind);)+ };
}
pub(crate) use otherwise;

/// A text, or nothing.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(pub(crate) Option<Cow<'a, str>>);

impl<'a> Text<'a> {
    /// The text, unless it is empty.
    pub(crate) fn full(self) -> Option<Cow<'a, str>> {
        self.0.filter(|text| !text.is_empty())
    }
}

struct TextVisitor;

impl<'a> Visitor<'a> for TextVisitor {
    type Value = Text<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'a str) -> Result<Text<'a>, E> {
        Ok(Text(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'a>, E> {
        Ok(Text(Some(Cow::Owned(text.to_owned()))))
    }

    otherwise!(numbers, flags, null, lists, objects);
}

impl<'a> Deserialize<'a> for Text<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

/// A whole number that is not negative, or nothing.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Number(pub(crate) Option<u64>);

impl Number {
    /// As a small number.
    pub(crate) fn small(self) -> Option<u32> {
        self.0.and_then(|number| u32::try_from(number).ok())
    }
}

struct NumberVisitor;

impl<'a> Visitor<'a> for NumberVisitor {
    type Value = Number;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a number")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Number, E> {
        Ok(Number(Some(number)))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Number, E> {
        Ok(Number(u64::try_from(number).ok()))
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in range when cast")]
    fn visit_f64<E: Error>(self, number: f64) -> Result<Number, E> {
        // Exact up to 2^53, which no count of tokens reaches.
        Ok(Number((0.0..9e15).contains(&number).then_some(number as u64)))
    }

    otherwise!(texts, flags, null, lists, objects);
}

impl<'a> Deserialize<'a> for Number {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberVisitor)
    }
}

/// Whether a value means anything: not `null`, `false`, zero or empty. So the official clients test for an error.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Truthiness(pub(crate) bool);

struct TruthVisitor;

impl<'a> Visitor<'a> for TruthVisitor {
    type Value = Truthiness;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Truthiness, E> {
        Ok(Truthiness(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Truthiness, E> {
        Ok(Truthiness(number != 0))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Truthiness, E> {
        Ok(Truthiness(number != 0))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Truthiness, E> {
        Ok(Truthiness(number != 0.0))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Truthiness, E> {
        Ok(Truthiness(!text.is_empty()))
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Truthiness, A::Error> {
        let mut any = false;
        while list.next_element::<IgnoredAny>()?.is_some() {
            any = true;
        }
        Ok(Truthiness(any))
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Truthiness, A::Error> {
        let mut any = false;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            any = true;
        }
        Ok(Truthiness(any))
    }

    otherwise!(null);
}

impl<'a> Deserialize<'a> for Truthiness {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TruthVisitor)
    }
}

/// Reads the name of a field for `T`. It has a type of its own for each `T`, so that the compiler puts it where it is used: a name is then never
/// carried through memory, and an answer has many names.
pub(crate) struct Key<T>(PhantomData<T>);

impl<T> Key<T> {
    pub(crate) const fn of() -> Self {
        Self(PhantomData)
    }
}

impl<'a, T> Visitor<'a> for Key<T> {
    type Value = Cow<'a, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    #[inline]
    fn visit_borrowed_str<E: Error>(self, name: &'a str) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Borrowed(name))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Cow<'a, str>, E> {
        Ok(Cow::Owned(name.to_owned()))
    }
}

impl<'a, T> DeserializeSeed<'a> for Key<T> {
    type Value = Cow<'a, str>;

    #[inline]
    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<Cow<'a, str>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

/// Fills what is there from an object; any other value changes nothing. In place, because what is filled is large.
pub(crate) struct Fill<'s, T>(pub(crate) &'s mut T);

impl<'a, T: Fields<'a>> Visitor<'a> for Fill<'_, T> {
    /// Whether it was an object.
    type Value = bool;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<bool, A::Error> {
        while let Some(name) = map.next_key_seed(Key::<T>::of())? {
            self.0.field(&name, &mut map)?;
        }
        Ok(true)
    }

    otherwise!(texts, numbers, flags, null, lists);
}

impl<'a, T: Fields<'a>> DeserializeSeed<'a> for Fill<'_, T> {
    type Value = bool;

    fn deserialize<D: Deserializer<'a>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Reads a text that must be one JSON object.
pub(crate) fn filled<'a, T: Fields<'a>>(text: &'a str) -> Result<T, Malformed> {
    let mut whole = T::default();
    fill(text, &mut whole).map(|()| whole)
}

/// The same, into what is there.
pub(crate) fn fill<'a, T: Fields<'a>>(text: &'a str, whole: &mut T) -> Result<(), Malformed> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let is_object = Fill(whole).deserialize(&mut reader).map_err(|error| Malformed::of(&error))?;
    reader.end().map_err(|error| Malformed::of(&error))?;
    if is_object { Ok(()) } else { Err(Malformed::NotAnObject) }
}

/// An object, or nothing.
#[derive(Debug)]
pub(crate) struct OptionalObject<T>(pub(crate) Option<T>);

impl<'a, T: Fields<'a>> Deserialize<'a> for OptionalObject<T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let mut filled = T::default();
        let is_object = Fill(&mut filled).deserialize(deserializer)?;
        Ok(Self(is_object.then_some(filled)))
    }
}

/// An object; anything else counts as an empty one.
#[derive(Debug, Default)]
pub(crate) struct Object<T>(pub(crate) T);

impl<'a, T: Fields<'a>> Deserialize<'a> for Object<T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        let mut filled = T::default();
        Fill(&mut filled).deserialize(deserializer)?;
        Ok(Self(filled))
    }
}

/// A list of what can be read; anything else counts as an empty one.
#[derive(Debug)]
pub(crate) struct List<T>(pub(crate) Vec<T>);

impl<T> Default for List<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

/// Adds to a list. Many lists of the wire have one element, and a vector would make room for four.
pub(crate) fn add<T>(all: &mut Vec<T>, one: T) {
    if all.is_empty() {
        all.reserve_exact(1);
    }
    all.push(one);
}

struct ListVisitor<T>(PhantomData<T>);

impl<'a, T: Deserialize<'a>> Visitor<'a> for ListVisitor<T> {
    type Value = List<T>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<List<T>, A::Error> {
        let mut all = Vec::new();
        while let Some(one) = list.next_element()? {
            add(&mut all, one);
        }
        Ok(List(all))
    }

    otherwise!(texts, numbers, flags, null, objects);
}

impl<'a, T: Deserialize<'a>> Deserialize<'a> for List<T> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor(PhantomData))
    }
}

/// The text of a raw JSON string, `None` for any other value.
pub(crate) fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    // A raw value is good JSON: what begins with a quote is a text, and without an escape it is what stands between the quotes.
    let inside = raw.get().strip_prefix('"')?;
    if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
        return inside.strip_suffix('"').map(Cow::Borrowed);
    }
    match serde_json::from_str::<Text<'_>>(raw.get()) {
        Ok(Text(text)) => text,
        Err(_) => {
            let whole = without_halves(raw.get())?;
            serde_json::from_str::<Text<'_>>(&whole).ok()?.0.map(|text| Cow::Owned(text.into_owned()))
        }
    }
}

/// The text of a call's arguments. Some servers send the object where its text belongs, others its text where the object does: each is taken
/// as the text.
pub(crate) fn arguments_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    match raw.get().as_bytes().first() {
        Some(b'"') => text_of(raw),
        Some(b'n') => None,
        _ => Some(Cow::Borrowed(raw.get())),
    }
}

/// The same JSON with `\ufffd` in place of unpaired surrogates (`\ud83d` without its other half), if there are any; no place
/// moves. Servers that cut texts by UTF-16 length send such halves, and the clients of most languages take them.
pub(crate) fn without_halves(text: &str) -> Option<String> {
    let mut whole = text.as_bytes().to_vec();
    let mut at = 0;
    let mut any = false;
    while let Some(found) = whole.get(at..).and_then(|rest| memchr::memchr(b'\\', rest)) {
        at += found;
        let length = match (half(&whole, at), half(&whole, at + 6)) {
            (Some(true), Some(false)) => 12,
            (Some(_), _) => {
                if let Some(digits) = whole.get_mut(at + 2..at + 6) {
                    digits.copy_from_slice(b"fffd");
                    any = true;
                }
                6
            }
            // Whatever is escaped here, it is not the beginning of an escape.
            (None, _) => 2,
        };
        at += length;
    }
    if any { String::from_utf8(whole).ok() } else { None }
}

/// Whether half a character is written here: the first half or the second.
fn half(text: &[u8], at: usize) -> Option<bool> {
    let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
    let number = u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    match number {
        0xd800..0xdc00 => Some(true),
        0xdc00..0xe000 => Some(false),
        _ => None,
    }
}

/// Whether a raw value has anything in it.
pub(crate) fn is_full(raw: &RawValue) -> bool {
    serde_json::from_str::<Truthiness>(raw.get()).is_ok_and(|truth| truth.0)
}
