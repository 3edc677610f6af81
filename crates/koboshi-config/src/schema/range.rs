//! Lower and upper limits of values, with their texts.

use std::time::Duration;

use crate::config::Language;
use crate::words::tr;

/// The lower and upper limit of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range<T> {
    /// The lower limit.
    pub min: T,
    /// The lower limit itself is not allowed.
    pub above: bool,
    /// The upper limit.
    pub max: T,
    /// The upper limit itself is not allowed.
    pub below: bool,
}

impl<T: PartialOrd + Copy> Range<T> {
    /// From one to the other, both included.
    pub const fn of(min: T, max: T) -> Self {
        Self { min, above: false, max, below: false }
    }

    /// Without the lower end.
    pub const fn above(min: T, max: T) -> Self {
        Self { min, above: true, max, below: false }
    }

    /// Without the upper end.
    pub const fn below(min: T, max: T) -> Self {
        Self { min, above: false, max, below: true }
    }

    /// Whether a value is in it.
    pub fn has(&self, value: T) -> bool {
        let enough = if self.above { value > self.min } else { value >= self.min };
        let not_too_much = if self.below { value < self.max } else { value <= self.max };
        enough && not_too_much
    }
}

/// Stands for no upper limit.
pub(crate) const ENDLESS: f64 = f64::MAX;

impl Range<u64> {
    /// Whether it has no upper limit.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.max >= u64::from(u32::MAX)
    }
}

impl Range<u64> {
    /// In words.
    #[must_use]
    pub fn say(&self, language: Language) -> String {
        let Self { min, max, .. } = self;
        if self.is_endless() {
            tr!(language, "{min} or more", "{min} 以上")
        } else {
            tr!(language, "{min} to {max}", "{min} 以上 {max} 以下")
        }
    }
}

impl Range<f64> {
    /// In words.
    #[must_use]
    pub fn say(&self, language: Language) -> String {
        let Self { min, max, .. } = self;
        if *max >= ENDLESS {
            return tr!(language, "{min} or more", "{min} 以上");
        }
        match (self.above, self.below) {
            (true, _) => tr!(language, "above {min} and at most {max}", "{min} より大きく {max} 以下"),
            (_, true) => tr!(language, "at least {min} and below {max}", "{min} 以上 {max} 未満"),
            _ => tr!(language, "{min} to {max}", "{min} 以上 {max} 以下"),
        }
    }
}

impl Range<Duration> {
    /// In words.
    #[must_use]
    pub fn say(&self, language: Language) -> String {
        let (min, max) = (super::print_length(self.min), super::print_length(self.max));
        tr!(language, "{min} to {max}", "{min} 以上 {max} 以下")
    }
}
