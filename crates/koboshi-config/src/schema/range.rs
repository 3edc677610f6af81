//! From and to, for anything that can be compared and said.

use std::fmt;
use std::time::Duration;

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

impl fmt::Display for Range<u64> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_endless() {
            write!(f, "{} or more", self.least)
        } else {
            write!(f, "{} to {}", self.least, self.most)
        }
    }
}

impl fmt::Display for Range<f64> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.most >= ENDLESS {
            return write!(f, "{} or more", self.least);
        }
        match (self.above, self.below) {
            (true, _) => write!(f, "above {} and at most {}", self.least, self.most),
            (_, true) => write!(f, "at least {} and below {}", self.least, self.most),
            _ => write!(f, "{} to {}", self.least, self.most),
        }
    }
}

impl fmt::Display for Range<Duration> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (least, most) = (super::print_length(self.least), super::print_length(self.most));
        write!(f, "{least} to {most}")
    }
}
