//! Short names for the rows, so that the table is readable.

use std::path::PathBuf;
use std::time::Duration;

use super::super::range::ENDLESS;
use super::super::{Field, Form, Key, Range, Shape};
use crate::secret::Secret;
use crate::words::{Words, words};

/// The text for an unset key without a replacement.
pub(super) const NONE: Words = words("none", "なし");
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest length of time.
pub(super) const YEAR: Duration = DAY.saturating_mul(365);
/// The shortest length above zero: the file uses milliseconds.
pub(super) const INSTANT: Duration = Duration::from_millis(1);
pub(super) const ANY_LENGTH: Range<Duration> = Range::of(Duration::ZERO, YEAR);
pub(super) const SOME_LENGTH: Range<Duration> = Range::of(INSTANT, YEAR);
/// The range for times of one request.
pub(super) const UP_TO_A_DAY: Range<Duration> = Range::of(INSTANT, DAY);
pub(super) const AT_MOST_A_DAY: Range<Duration> = Range::of(Duration::ZERO, DAY);
pub(super) const ANY_COUNT: Range<u64> = Range::of(0, u32::MAX as u64);
pub(super) const SOME_COUNT: Range<u64> = Range::of(1, u32::MAX as u64);
pub(super) const GROWTH: Range<f64> = Range::of(1.0, ENDLESS);
pub(super) const SHARE: Range<f64> = Range::of(0.0, 1.0);
pub(super) const RATE: Range<f64> = Range::above(0.0, 1.0);

/// A field by its name.
macro_rules! at {
    ($($name:ident).+) => {
        $crate::schema::Field {
            get: |c, _| Some(c.$($name).+),
            set: |c, _, value| {
                if let Some(value) = value {
                    c.$($name).+ = value;
                }
            },
        }
    };
}

/// A 32-bit count by its name.
macro_rules! count_at {
    ($($name:ident).+) => {
        $crate::schema::Field {
            get: |c, _| Some(u64::from(c.$($name).+)),
            set: |c, _, value| {
                if let Some(value) = value {
                    c.$($name).+ = $crate::schema::keys::build::narrow(value);
                }
            },
        }
    };
}

/// A 32-bit count that may be off.
macro_rules! optional_count_at {
    ($($name:ident).+) => {
        $crate::schema::Field {
            get: |c, _| c.$($name).+.map(u64::from),
            set: |c, _, value| c.$($name).+ = value.map($crate::schema::keys::build::narrow),
        }
    };
}

/// A word of an enum by the name of its field.
macro_rules! word_at {
    ($type:ident, $($name:ident).+) => {
        $crate::schema::Field {
            get: |c, _| Some(c.$($name).+.name()),
            set: |c, _, word| {
                if let Some(value) = word.and_then($type::from_name) {
                    c.$($name).+ = value;
                }
            },
        }
    };
}

/// An optional field of an entry.
macro_rules! of_entry {
    ($map:ident, $($name:ident).+) => {
        $crate::schema::Field {
            get: |c, entry| c.$map.get(entry).and_then(|one| one.$($name).+.clone()),
            set: |c, entry, value| {
                if let Some(one) = c.$map.get_mut(entry) {
                    one.$($name).+ = value;
                }
            },
        }
    };
}

/// A required field of an entry.
macro_rules! always_of_entry {
    ($map:ident, $($name:ident).+) => {
        $crate::schema::Field {
            get: |c, entry| c.$map.get(entry).map(|one| one.$($name).+.clone()),
            set: |c, entry, value| {
                if let (Some(one), Some(value)) = (c.$map.get_mut(entry), value) {
                    one.$($name).+ = value;
                }
            },
        }
    };
}

/// The names of entries, and how one is added.
macro_rules! entries {
    ($map:ident, $empty:expr, $form:expr, required: $required:expr, short: $short:expr) => {
        $crate::schema::Shape::Entry($crate::schema::Entries {
            name: $form,
            required: $required,
            short: $short,
            names: |c| c.$map.keys().cloned().collect(),
            add: |c, name| {
                c.$map.entry(name.to_owned()).or_insert_with(|| $empty);
            },
        })
    };
}

/// The time limits of a provider or a model: a section of an entry and its keys.
macro_rules! timeouts {
    ($map:ident, $section:literal, $unset:literal, $unset_ja:literal) => {
        $crate::schema::keys::build::timeouts! { @keys $map, $section, $unset, $unset_ja;
            connect "Time to open a connection",
            first_token "Time until the first token of a stream",
            idle "Time between two chunks of a stream",
            unary "Time until the response of a request without streaming begins",
            total "Time until the whole response is there",
        }
    };
    (@keys $map:ident, $section:literal, $unset:literal, $unset_ja:literal; $($key:ident $about:literal,)+) => {
        [
            $crate::schema::keys::build::section(concat!($section, ".timeouts"), "Timeouts of one attempt"),
            $($crate::schema::keys::build::length(
                concat!($section, ".timeouts.", stringify!($key)),
                $crate::schema::keys::build::UP_TO_A_DAY,
                $crate::schema::keys::build::of_entry!($map, timeouts.$key),
                $about,
            )
            .unset($unset, $unset_ja),)+
        ]
    };
}

pub(super) use {always_of_entry, at, count_at, entries, of_entry, optional_count_at, timeouts, word_at};

/// Narrows a count; ranges end before this matters.
pub(super) fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

impl Key {
    /// Sets the text for an unset key.
    pub(super) fn unset(self, en: &'static str, ja: &'static str) -> Self {
        Self { unset: words(en, ja), ..self }
    }
}

pub(super) const fn section(path: &'static str, meaning: &'static str) -> Key {
    Key { path, shape: Shape::Section { word: None, short: None }, meaning, unset: NONE }
}

pub(super) const fn length(
    path: &'static str,
    range: Range<Duration>,
    field: Field<Duration>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Length { range, off: false, field }, meaning, unset: NONE }
}

pub(super) const fn optional_length(
    path: &'static str,
    range: Range<Duration>,
    field: Field<Duration>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Length { range, off: true, field }, meaning, unset: NONE }
}

pub(super) const fn seconds(path: &'static str, field: Field<Duration>, meaning: &'static str) -> Key {
    Key {
        path,
        shape: Shape::Seconds { range: Range::of(Duration::from_secs(1), YEAR), field },
        meaning,
        unset: NONE,
    }
}

pub(super) const fn count(
    path: &'static str,
    range: Range<u64>,
    field: Field<u64>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Count { range, off: false, field }, meaning, unset: NONE }
}

pub(super) const fn optional_count(
    path: &'static str,
    range: Range<u64>,
    field: Field<u64>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Count { range, off: true, field }, meaning, unset: NONE }
}

pub(super) const fn number(
    path: &'static str,
    range: Range<f64>,
    field: Field<f64>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Number { range, field }, meaning, unset: NONE }
}

pub(super) const fn flag(path: &'static str, field: Field<bool>, meaning: &'static str) -> Key {
    Key { path, shape: Shape::Flag { words: false, field }, meaning, unset: NONE }
}

pub(super) const fn word(
    path: &'static str,
    words: &'static [&'static str],
    field: Field<&'static str>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Word { words, field }, meaning, unset: NONE }
}

pub(super) const fn text(path: &'static str, form: Form, field: Field<String>, meaning: &'static str) -> Key {
    Key { path, shape: Shape::Text { form, field }, meaning, unset: NONE }
}

pub(super) const fn path(path: &'static str, field: Field<PathBuf>, meaning: &'static str) -> Key {
    Key { path, shape: Shape::Path { field }, meaning, unset: NONE }
}

pub(super) const fn texts(
    path: &'static str,
    form: Form,
    range: Range<u64>,
    field: Field<Vec<String>>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Texts { form, range, single: false, field }, meaning, unset: NONE }
}

/// One text, or a list of them.
pub(super) const fn text_or_texts(
    path: &'static str,
    form: Form,
    range: Range<u64>,
    field: Field<Vec<String>>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Texts { form, range, single: true, field }, meaning, unset: NONE }
}

pub(super) const fn secret(
    path: &'static str,
    form: Form,
    field: Field<Secret>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Secret { form, field }, meaning, unset: NONE }
}
