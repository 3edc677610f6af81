//! Keys of open objects, to notice one that comes twice.
//!
//! A few keys are compared as hashes, one with each other; many go through a map whose hashing no outsider can
//! foresee, so that a flood of chosen keys costs no more than others.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::body::unescape;

/// Up to this many keys are compared one with each other.
const MAX_COMPARED_KEYS: usize = 16;

#[derive(Debug, Clone)]
struct Mark {
    mix: u64,
    /// Where the key stands in the text, without its quotation marks.
    span: Range<usize>,
    escaped: bool,
}

/// The keys of all open objects, innermost last.
#[derive(Debug, Default)]
pub(super) struct Keys {
    marks: Vec<Mark>,
}

impl Keys {
    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Notes a key. For an escaped key the value of `mix` does not matter.
    pub(super) fn push(&mut self, mix: u64, span: Range<usize>, escaped: bool) {
        self.marks.push(Mark { mix, span, escaped });
    }

    pub(super) fn forget(&mut self, from: usize) {
        self.marks.truncate(from);
    }

    /// The place of a key that was noted before, since `from`.
    pub(super) fn first_twice(&self, from: usize, text: &str) -> Option<usize> {
        let marks = self.marks.get(from..).unwrap_or_default();
        let plain = |mark: &Mark| {
            let raw = text.get(mark.span.clone()).unwrap_or_default();
            if mark.escaped { unescape(raw) } else { Cow::Borrowed(raw) }
        };
        if marks.len() <= MAX_COMPARED_KEYS && !marks.iter().any(|mark| mark.escaped) {
            for (index, mark) in marks.iter().enumerate() {
                let earlier = marks.iter().take(index);
                if earlier.filter(|other| other.mix == mark.mix).any(|other| plain(other) == plain(mark)) {
                    return Some(mark.span.start);
                }
            }
            return None;
        }
        let mut seen = HashMap::with_capacity(marks.len());
        marks.iter().find(|mark| seen.insert(plain(mark), ()).is_some()).map(|mark| mark.span.start)
    }
}

/// A quick hash. Equal keys have equal ones; different keys usually have not.
pub(super) fn mix(key: &[u8]) -> u64 {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mut hash = key.len() as u64;
    let mut chunks = key.chunks_exact(8);
    for chunk in &mut chunks {
        if let Ok(chunk) = <[u8; 8]>::try_from(chunk) {
            hash = (hash.rotate_left(23) ^ u64::from_le_bytes(chunk)).wrapping_mul(ODD);
        }
    }
    let rest = chunks.remainder().iter().fold(0, |word, byte| (word << 8) | u64::from(*byte));
    (hash.rotate_left(23) ^ rest).wrapping_mul(ODD)
}
