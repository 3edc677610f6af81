//! Bytes to try readers with: arbitrary ones, and ones made of what the readers know, which reach further than noise does.

#![allow(clippy::indexing_slicing, reason = "shared by several tests")]

use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;

/// This many cases, which leave no file behind.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

/// Pieces in any order, or any bytes.
pub(crate) fn made_of<P: AsRef<[u8]> + Clone + Debug>(
    pieces: &'static [P],
) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(prop::sample::select(pieces), 0..40)
            .prop_map(|all| all.iter().flat_map(|piece| piece.as_ref().to_vec()).collect()),
        vec(any::<u8>(), 0..200)
    ]
}

/// A sound text with one place changed: nearly sound, which reaches further than pieces do.
pub(crate) fn edited<P: AsRef<[u8]> + Clone + Debug>(
    sound: &'static [&'static str],
    pieces: &'static [P],
) -> impl Strategy<Value = Vec<u8>> {
    (prop::sample::select(sound), any::<usize>(), prop::sample::select(pieces), 0..3_usize).prop_map(
        |(text, at, piece, cut)| {
            let text = text.as_bytes();
            let at = at % text.len();
            [&text[..at], piece.as_ref(), &text[(at + cut).min(text.len())..]].concat()
        },
    )
}
