//! Short names for the rows, so that a section of the table reads like one.

use std::time::Duration;

use super::super::range::ENDLESS;
use super::super::{Field, Key, Range, Shape};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Nothing waits longer than a year.
pub(super) const YEAR: Duration = DAY.saturating_mul(365);
/// The shortest length that is more than nothing: the file speaks in milliseconds.
pub(super) const INSTANT: Duration = Duration::from_millis(1);
pub(super) const ANY_LENGTH: Range<Duration> = Range::of(Duration::ZERO, YEAR);
pub(super) const SOME_LENGTH: Range<Duration> = Range::of(INSTANT, YEAR);
pub(super) const ANY_COUNT: Range<u64> = Range::of(0, u32::MAX as u64);
pub(super) const SOME_COUNT: Range<u64> = Range::of(1, u32::MAX as u64);
pub(super) const GROWTH: Range<f64> = Range::of(1.0, ENDLESS);
pub(super) const SHARE: Range<f64> = Range::of(0.0, 1.0);
pub(super) const RATE: Range<f64> = Range::above(0.0, 1.0);

/// A field by its name.
macro_rules! at {
    ($($name:ident).+) => {
        $crate::schema::Field {
            get: |c| Some(c.$($name).+),
            set: |c, value| {
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
            get: |c| Some(u64::from(c.$($name).+)),
            set: |c, value| {
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
            get: |c| c.$($name).+.map(u64::from),
            set: |c, value| c.$($name).+ = value.map($crate::schema::keys::build::narrow),
        }
    };
}

pub(super) use {at, count_at, optional_count_at};

/// Ranges end before this matters.
pub(super) fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(super) const fn section(path: &'static str, meaning: &'static str) -> Key {
    Key { path, shape: Shape::Section { word: None }, meaning }
}

pub(super) const fn length(
    path: &'static str,
    range: Range<Duration>,
    field: Field<Duration>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Length { range, off: false, field }, meaning }
}

pub(super) const fn optional_length(
    path: &'static str,
    range: Range<Duration>,
    field: Field<Duration>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Length { range, off: true, field }, meaning }
}

pub(super) const fn seconds(path: &'static str, field: Field<Duration>, meaning: &'static str) -> Key {
    Key { path, shape: Shape::Seconds { range: Range::of(Duration::from_secs(1), YEAR), field }, meaning }
}

pub(super) const fn count(
    path: &'static str,
    range: Range<u64>,
    field: Field<u64>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Count { range, off: false, field }, meaning }
}

pub(super) const fn optional_count(
    path: &'static str,
    range: Range<u64>,
    field: Field<u64>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Count { range, off: true, field }, meaning }
}

pub(super) const fn number(
    path: &'static str,
    range: Range<f64>,
    field: Field<f64>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Number { range, field }, meaning }
}

pub(super) const fn flag(path: &'static str, field: Field<bool>, meaning: &'static str) -> Key {
    Key { path, shape: Shape::Flag { field }, meaning }
}

pub(super) const fn word(
    path: &'static str,
    words: &'static [&'static str],
    field: Field<&'static str>,
    meaning: &'static str,
) -> Key {
    Key { path, shape: Shape::Word { words, field }, meaning }
}
