//! Draws from a [`Seed`], as counts and choices.

use std::time::Duration;

use koboshi::chance::Seed;

/// A number from 0 to `count - 1`; 0 if there is no such number.
pub(crate) fn below(seed: Seed, count: u64) -> u64 {
    // A length of `count` seconds, cut to whole ones: the core's draw without a cast from a float.
    let max = count.saturating_sub(1);
    seed.between(Duration::ZERO, Duration::from_secs(count.min(1 << 40))).as_secs().min(max)
}

/// One of these.
pub(crate) fn pick<T>(seed: Seed, these: &[T]) -> Option<&T> {
    let at = below(seed, u64::try_from(these.len()).unwrap_or(u64::MAX));
    these.get(usize::try_from(at).ok()?)
}

/// A fingerprint of parts of text, in order; where one part ends matters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// FNV-1a: short, well known, and no protection against chosen texts is needed here.
    pub(crate) fn add(mut self, part: &str) -> Self {
        for byte in part.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self
    }

    pub(crate) const fn seed(self) -> Seed {
        Seed::new(self.0)
    }

    pub(crate) const fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_is_drawn() {
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|n| below(Seed::new(n), 7)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
        assert_eq!((below(Seed::new(1), 0), pick::<u8>(Seed::new(1), &[])), (0, None));
    }

    #[test]
    fn where_a_part_ends_matters() {
        assert_ne!(
            Fingerprint::new().add("ab").add("c").value(),
            Fingerprint::new().add("a").add("bc").value()
        );
    }
}
