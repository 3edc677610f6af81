//! A body that comes in blocks, joined up to a limit. Most bodies are one block, and are not copied.

use bytes::{Bytes, BytesMut};

/// The joined blocks.
pub(crate) struct Blocks {
    max_bytes: usize,
    only: Option<Bytes>,
    joined: BytesMut,
}

impl Blocks {
    /// Accepts at most this many bytes.
    pub(crate) fn up_to(max_bytes: usize) -> Self {
        Self { max_bytes, only: None, joined: BytesMut::new() }
    }

    /// Adds a block. None if the limit is exceeded.
    pub(crate) fn push(&mut self, block: Bytes) -> Option<()> {
        let held = self.joined.len().saturating_add(self.only.as_ref().map_or(0, Bytes::len));
        if held.saturating_add(block.len()) > self.max_bytes {
            return None;
        }
        if held == 0 {
            self.only = Some(block);
            return Some(());
        }
        if let Some(only) = self.only.take() {
            self.joined.extend_from_slice(&only);
        }
        self.joined.extend_from_slice(&block);
        Some(())
    }

    /// All of it.
    pub(crate) fn whole(self) -> Bytes {
        self.only.unwrap_or_else(|| self.joined.freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_joined_in_order_up_to_the_limit_and_one_is_not_copied() {
        let mut blocks = Blocks::up_to(6);
        let first = Bytes::from_static(b"abc");
        assert_eq!(blocks.push(first.clone()), Some(()));
        assert_eq!(blocks.push(Bytes::from_static(b"def")), Some(()));
        assert_eq!(blocks.push(Bytes::from_static(b"g")), None);
        assert_eq!(blocks.whole(), "abcdef");
        let mut one = Blocks::up_to(6);
        one.push(first.clone()).unwrap();
        assert_eq!(one.whole().as_ptr(), first.as_ptr());
        assert_eq!(Blocks::up_to(2).push(first), None, "the first one counts too");
    }
}
