//! The blocks of a stream as the network gives them, and the frame that is begun in them.
//!
//! What both framers share: each framer decides where a frame ends, and this module cuts it out. A frame that lies wholly in one
//! block is a slice of it; only one that spans blocks is copied, once. The bytes of all frames and of [`Blocks::rest`] are together the
//! bytes that went in.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use crate::sse::FrameTooLong;

/// What is not given out yet.
#[derive(Debug)]
pub(crate) struct Blocks {
    max_bytes: usize,
    /// Blocks that are not read to their end; the last pushed is at the back.
    blocks: VecDeque<Bytes>,
    /// Where the unfinished frame begins in the first block, or continues if it began in an earlier one.
    start: usize,
    /// The part of the unfinished frame that stood in earlier blocks.
    carry: BytesMut,
    over: bool,
}

/// Where a frame ends in a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct End {
    pub(crate) at: usize,
    /// How far the frame counts towards the maximum length.
    pub(crate) counted: usize,
}

/// The bytes of a frame.
#[derive(Debug)]
pub(crate) struct RawFrame {
    pub(crate) raw: Bytes,
    /// Where they stand in the block that was pushed last, if they are wholly in it.
    pub(crate) at: Option<Range<usize>>,
}

impl Blocks {
    /// Nothing yet; frames have at most this many bytes.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { max_bytes, blocks: VecDeque::new(), start: 0, carry: BytesMut::new(), over: false }
    }

    /// The next block of the stream.
    pub(crate) fn push(&mut self, block: Bytes) {
        if !self.over && !block.is_empty() {
            self.blocks.push_back(block);
        }
    }

    /// The next whole frame. `end_of_frame` reads on in a block from a place, knowing how many bytes of the frame stood in earlier blocks. After
    /// a frame that is too long nothing comes.
    pub(crate) fn next(
        &mut self,
        mut end_of_frame: impl FnMut(&[u8], usize, usize) -> Option<End>,
    ) -> Option<Result<RawFrame, FrameTooLong>> {
        while let Some(block) = self.blocks.front() {
            let held = self.carry.len();
            let end = end_of_frame(block, self.start, held);
            let counted = end.map_or(block.len(), |end| end.counted);
            if held + (counted - self.start) > self.max_bytes {
                self.give_up();
                return Some(Err(FrameTooLong { max_bytes: self.max_bytes }));
            }
            if let Some(end) = end {
                return self.cut(end.at).map(Ok);
            }
            self.carry.extend_from_slice(block.get(self.start..).unwrap_or_default());
            self.blocks.pop_front();
            self.start = 0;
        }
        None
    }

    /// Gives out what ends here in the first block.
    fn cut(&mut self, end: usize) -> Option<RawFrame> {
        let block = self.blocks.front()?;
        let within = self.start..end;
        let (raw, at) = if self.carry.is_empty() {
            (block.slice(within.clone()), (self.blocks.len() == 1).then_some(within))
        } else {
            self.carry.extend_from_slice(block.get(within).unwrap_or_default());
            (self.carry.split().freeze(), None)
        };
        self.start = end;
        if end == block.len() {
            self.blocks.pop_front();
            self.start = 0;
        }
        Some(RawFrame { raw, at })
    }

    /// Takes out what is left, at the end of the stream.
    pub(crate) fn rest(&mut self) -> Option<Bytes> {
        let mut rest = self.carry.split();
        for block in self.blocks.drain(..) {
            rest.extend_from_slice(block.get(self.start..).unwrap_or_default());
            self.start = 0;
        }
        (!rest.is_empty()).then(|| rest.freeze())
    }

    /// Bytes of the unfinished frame.
    pub(crate) fn pending(&self) -> usize {
        let unread: usize = self.blocks.iter().map(Bytes::len).sum();
        self.carry.len() + unread.saturating_sub(self.start)
    }

    fn give_up(&mut self) {
        self.over = true;
        self.blocks = VecDeque::new();
        self.carry = BytesMut::new();
        self.start = 0;
    }
}
