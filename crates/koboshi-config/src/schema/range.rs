//! From and to, for anything that can be compared and said.

use std::time::Duration;

use crate::config::Language;
use crate::words::tr;

/// What a value must be at least and at most.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Range<T> {
    /// At least this.
    pub least: T,
    /// `least` itself is too little.
    pub above: bool,
    /// At most this.
    pub most: T,
    /// `most` itself is too much.
    pub below: bool,
}

impl<T: PartialOrd + Copy> Range<T> {
    /// From one to the other, both included.
    pub const fn of(least: T, most: T) -> Self {
        Self { least, above: false, most, below: false }
    }

    /// Without the lower end.
    pub const fn above(least: T, most: T) -> Self {
        Self { least, above: true, most, below: false }
    }

    /// Without the upper end.
    pub const fn below(least: T, most: T) -> Self {
        Self { least, above: false, most, below: true }
    }

    /// Whether a value is in it.
    pub fn has(&self, value: T) -> bool {
        let enough = if self.above { value > self.least } else { value >= self.least };
        let not_too_much = if self.below { value < self.most } else { value <= self.most };
        enough && not_too_much
    }
}

/// Beyond any real value: a range that ends here has no end worth saying.
pub(crate) const ENDLESS: f64 = f64::MAX;

impl Range<u64> {
    /// Whether it ends only where numbers do.
    #[must_use]
    pub fn is_endless(&self) -> bool {
        self.most >= u64::from(u32::MAX)
    }
}

impl Range<u64> {
    /// In words.
    #[must_use]
    pub fn say(&self, language: Language) -> String {
        let Self { least, most, .. } = self;
        if self.is_endless() {
            tr!(language, "{least} or more", "{least} 以上")
        } else {
            tr!(language, "{least} to {most}", "{least} 以上 {most} 以下")
        }
    }
}

impl Range<f64> {
    /// In words.
    #[must_use]
    pub fn say(&self, language: Language) -> String {
        let Self { least, most, .. } = self;
        if *most >= ENDLESS {
            return tr!(language, "{least} or more", "{least} 以上");
        }
        match (self.above, self.below) {
            (true, _) => tr!(language, "above {least} and at most {most}", "{least} より大きく {most} 以下"),
            (_, true) => tr!(language, "at least {least} and below {most}", "{least} 以上 {most} 未満"),
            _ => tr!(language, "{least} to {most}", "{least} 以上 {most} 以下"),
        }
    }
}

impl Range<Duration> {
    /// In words.
    #[must_use]
    pub fn say(&self, language: Language) -> String {
        let (least, most) = (super::print_length(self.least), super::print_length(self.most));
        tr!(language, "{least} to {most}", "{least} 以上 {most} 以下")
    }
}
