//! The words for how hard a model thinks, and which of them a model knows.

use serde::de::{self, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// An effort, from the least to the most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effort {
    /// No thinking at all.
    None,
    /// As little as there is.
    Minimal,
    /// Little.
    Low,
    /// The usual.
    Medium,
    /// Much.
    High,
    /// As much as there is.
    Xhigh,
}

impl Effort {
    /// All of them, the least first.
    pub const ALL: [Self; 6] = [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh];
    /// Their words.
    pub const NAMES: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh"];

    /// The word for it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }

    /// The effort with this word.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// The efforts that a model knows; at least one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Efforts(u8);

impl Efforts {
    /// `low`, `medium` and `high`: what every model with efforts knows.
    pub const USUAL: Self = Self(Effort::Low.bit() | Effort::Medium.bit() | Effort::High.bit());
    /// The usual ones and `minimal`.
    pub const WITH_MINIMAL: Self = Self(Self::USUAL.0 | Effort::Minimal.bit());

    /// These efforts; none of an empty list.
    #[must_use]
    pub fn of(efforts: impl IntoIterator<Item = Effort>) -> Option<Self> {
        let bits = efforts.into_iter().fold(0, |bits, effort| bits | effort.bit());
        (bits != 0).then_some(Self(bits))
    }

    /// The efforts with these words; none where a word is unknown or there is none.
    #[must_use]
    pub fn from_names<'n>(names: impl IntoIterator<Item = &'n str>) -> Option<Self> {
        let efforts: Option<Vec<Effort>> = names.into_iter().map(Effort::from_name).collect();
        Self::of(efforts?)
    }

    /// Whether this one is known.
    #[must_use]
    pub const fn knows(self, effort: Effort) -> bool {
        self.0 & effort.bit() != 0
    }

    /// Those that are known, the least first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Effort> {
        Effort::ALL.into_iter().filter(move |effort| self.knows(*effort))
    }

    /// The effort that comes nearest: this one, else the next higher one, else the highest.
    #[must_use]
    pub fn nearest(self, wanted: Effort) -> Effort {
        let higher = self.iter().find(|effort| *effort >= wanted);
        higher.or_else(|| self.iter().next_back()).unwrap_or(wanted)
    }

    /// The least that is known.
    #[must_use]
    pub fn lowest(self) -> Effort {
        self.nearest(Effort::None)
    }
}

impl Serialize for Efforts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for effort in self.iter() {
            list.serialize_element(effort.name())?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Efforts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(Words)
    }
}

struct Words;

impl<'de> Visitor<'de> for Words {
    type Value = Efforts;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of efforts: {}", Effort::NAMES.join(", "))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Efforts, A::Error> {
        let mut known = Vec::new();
        while let Some(word) = list.next_element::<String>()? {
            let effort = Effort::from_name(&word);
            known.push(effort.ok_or_else(|| de::Error::unknown_variant(&word, Effort::NAMES))?);
        }
        Efforts::of(known).ok_or_else(|| de::Error::invalid_length(0, &"at least one effort"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_higher_effort_stands_for_one_that_is_not_known() {
        let of = |names: &[&str]| Efforts::from_names(names.iter().copied()).unwrap();
        for (known, wanted, nearest) in [
            (&["low", "medium", "high"][..], Effort::Minimal, "low"),
            (&["low", "medium", "high"], Effort::Xhigh, "high"),
            (&["low", "high"], Effort::Medium, "high"),
            (&["none", "low"], Effort::Minimal, "low"),
            (&["none", "low"], Effort::None, "none"),
            (&["high"], Effort::None, "high"),
        ] {
            assert_eq!(of(known).nearest(wanted).name(), nearest, "{known:?} {wanted:?}");
        }
        assert_eq!(Efforts::from_names([]), None);
        assert_eq!(Efforts::from_names(["much"]), None);
    }
}
