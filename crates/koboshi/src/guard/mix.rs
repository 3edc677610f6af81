//! The one hash of the guard: many bytes at a time, and the same on every machine.
//!
//! What was logged yesterday can be compared today, because the seeds of [`hash`] are constants and the bytes are read in
//! one order everywhere. Nothing is secured by that one. A [`Mixer`] with secret seeds also withstands texts that
//! were chosen to collide: each step multiplies by something that depends on the seed, and keeps both halves of the product.

/// Hashes with its own seeds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mixer {
    seeds: [u64; 2],
}

/// The seeds of what is logged.
const STABLE: Mixer = Mixer { seeds: [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03] };

/// One number for parts; their boundaries and their order count.
pub(super) fn hash<'a>(parts: impl IntoIterator<Item = &'a str>) -> u64 {
    STABLE.hash(parts.into_iter().map(str::as_bytes))
}

/// One number for a row of numbers.
pub(super) fn hash_numbers(first: u64, all: impl IntoIterator<Item = u64>) -> u64 {
    let [one, two] = STABLE.seeds;
    all.into_iter().fold(first ^ one, |state, number| fold(state ^ number, two))
}

/// One number for a set of numbers, whatever their order.
pub(super) fn hash_set(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    hash_numbers(0, all)
}

impl Mixer {
    /// With these seeds.
    pub(super) const fn new(seeds: [u64; 2]) -> Self {
        Self { seeds }
    }

    /// One number for parts; their boundaries and their order count.
    pub(super) fn hash<'a>(self, parts: impl IntoIterator<Item = &'a [u8]>) -> u64 {
        let [one, two] = self.seeds;
        let state = parts.into_iter().fold(one, |state, part| self.part(state, part));
        fold(state ^ two, one)
    }

    fn part(self, state: u64, bytes: &[u8]) -> u64 {
        let [one, two] = self.seeds;
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let mut state = fold(state ^ length, two);
        let (blocks, rest) = bytes.as_chunks::<32>();
        if !blocks.is_empty() {
            // Two lanes: the second multiplies while the first is still busy.
            let mut other = state ^ one;
            for block in blocks {
                let [a, b, c, d] = numbers(block);
                state = fold(a ^ state, b ^ two);
                other = fold(c ^ other, d ^ one);
            }
            state = fold(state ^ other, two);
        }
        let mut last = [0; 32];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        let [a, b, c, d] = numbers(&last);
        if rest.len() > 16 {
            state = fold(c ^ state, d ^ one);
        }
        if rest.is_empty() { state } else { fold(a ^ state, b ^ two) }
    }
}

fn numbers(block: &[u8; 32]) -> [u64; 4] {
    let mut numbers = [0; 4];
    for (number, bytes) in numbers.iter_mut().zip(block.as_chunks::<8>().0) {
        *number = u64::from_le_bytes(*bytes);
    }
    numbers
}

/// Both halves of the product, one upon the other.
#[expect(clippy::cast_possible_truncation, reason = "the two halves of a number")]
fn fold(one: u64, other: u64) -> u64 {
    let product = u128::from(one) * u128::from(other);
    (product as u64) ^ ((product >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn boundaries_and_order_count_where_they_should() {
        assert_ne!(hash(["ab", "c"]), hash(["a", "bc"]));
        assert_ne!(hash(["a", "b"]), hash(["b", "a"]));
        assert_ne!(hash(["a", ""]), hash(["a"]));
        assert_eq!(hash_set(vec![1, 2, 3]), hash_set(vec![3, 1, 2]));
        assert_ne!(hash_set(vec![1, 2]), hash_set(vec![1, 2, 2]));
    }

    /// Any length, any byte of it, any seed: another text has another number.
    #[test]
    fn every_byte_of_every_length_counts() {
        let mut seen = HashSet::new();
        for length in 0..200 {
            let mut text = vec![b'a'; length];
            assert!(seen.insert(STABLE.hash([&*text])), "{length}");
            for at in 0..length {
                text[at] = b'b';
                assert!(seen.insert(STABLE.hash([&*text])), "{length} {at}");
                text[at] = b'a';
            }
        }
        let seeded = Mixer::new([1, 2]).hash([&b"a"[..]]);
        assert_ne!(seeded, Mixer::new([1, 3]).hash([&b"a"[..]]));
        assert_ne!(seeded, Mixer::new([3, 2]).hash([&b"a"[..]]));
    }

    /// The numbers are written to logs: another version must find the same.
    #[test]
    fn the_numbers_stay() {
        const NUMBERS: [u64; 3] =
            [1_058_779_358_242_518_953, 2_187_473_688_263_916_727, 7_143_994_681_756_029_901];
        let text = "0123456789abcdef".repeat(5);
        assert_eq!([hash([]), hash(["a"]), hash([text.as_str(), "x"])], NUMBERS);
    }
}
