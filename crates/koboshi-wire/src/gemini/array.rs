//! Cuts a stream that is one JSON list into its elements, without changing a byte.
//!
//! Gemini streams in this form where `alt=sse` was not asked for. An element is given out as soon as it closes, with the bytes before it: the bracket that
//! opens the list, a comma, spaces. What closes the list is an empty frame of its own. Each byte is read once. The raw
//! bytes of all frames, and of what [`Framer::finish`] gives, are together the bytes that went in.
//!
//! An object that stands alone, as an error may, is an element too. What is no object is passed on as it is, and the reader of chunks refuses it.

use std::ops::Range;

use bytes::Bytes;
use memchr::memchr2;

use crate::Malformed;
use crate::blocks::{Blocks, End, RawFrame};
use crate::sse::FrameTooLong;

/// Cuts a list into elements.
///
/// ```
/// use bytes::Bytes;
/// use koboshi_wire::gemini::array::Framer;
///
/// let mut framer = Framer::new(1024);
/// framer.push(Bytes::from_static(b"[{\"a\":1}\n,\r\n{\"a\":"));
/// let frame = framer.next_frame().unwrap().unwrap();
/// assert_eq!(frame.data().unwrap(), Some("{\"a\":1}"));
/// assert!(framer.next_frame().is_none());
/// framer.push(Bytes::from_static(b"2}]"));
/// assert_eq!(&framer.next_frame().unwrap().unwrap().raw()[..], b"\n,\r\n{\"a\":2}");
/// assert_eq!(framer.next_frame().unwrap().unwrap().data().unwrap(), None);
/// ```
#[derive(Debug)]
pub struct Framer {
    blocks: Blocks,
    scan: Scan,
}

impl Framer {
    /// A framer for one stream, whose frames have at most this many bytes.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { blocks: Blocks::new(max_bytes), scan: Scan::default() }
    }

    /// The next block of the stream. Then call [`next_frame`](Self::next_frame) until it gives none.
    pub fn push(&mut self, block: Bytes) {
        self.blocks.push(block);
    }

    /// The next whole frame.
    ///
    /// # Errors
    /// A frame is too long; nothing comes after it.
    pub fn next_frame(&mut self) -> Option<Result<Frame, FrameTooLong>> {
        let scan = &mut self.scan;
        let end_of_frame = |block: &[u8], start, held| {
            scan.end_of_element(block, start, held).map(|at| End { at, counted: at })
        };
        let cut = self.blocks.next(end_of_frame)?;
        Some(cut.map(|RawFrame { raw, at }| Frame { raw, at, element: self.scan.element.take() }))
    }

    /// What is not closed, at the end of the stream. Ask when [`next_frame`](Self::next_frame) gives none.
    pub fn finish(&mut self) -> Option<Frame> {
        let element = std::mem::take(&mut self.scan).element;
        self.blocks.rest().map(|raw| Frame { raw, at: None, element })
    }

    /// Bytes of the unfinished frame.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.blocks.pending()
    }
}

/// What is known of the bytes that were read.
#[derive(Debug, Default)]
struct Scan {
    /// The list is open.
    listed: bool,
    /// Levels inside the element.
    depth: usize,
    in_text: bool,
    /// The next byte of a text is escaped.
    escaped: bool,
    /// Where the element begins in its frame.
    element: Option<usize>,
}

impl Scan {
    /// Reads on in the next block, or after the last frame in the same one. `held` bytes of the frame stood in earlier blocks.
    fn end_of_element(&mut self, block: &[u8], start: usize, held: usize) -> Option<usize> {
        let mut at = start;
        while let Some(byte) = block.get(at) {
            if self.in_text {
                at = self.after_text(block, at);
                continue;
            }
            at += 1;
            match byte {
                b'"' => self.in_text = true,
                b'[' if self.depth == 0 && !self.listed => self.listed = true,
                b'{' | b'[' => {
                    if self.depth == 0 {
                        self.element = Some(held + (at - 1 - start));
                    }
                    self.depth += 1;
                }
                b']' if self.depth == 0 => {
                    self.listed = false;
                    return Some(at);
                }
                b'}' | b']' if self.depth > 0 => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Behind the closing quote, or at the end of the block.
    fn after_text(&mut self, block: &[u8], mut at: usize) -> usize {
        if std::mem::take(&mut self.escaped) {
            at += 1;
        }
        let Some(found) = block.get(at..).and_then(|rest| memchr2(b'"', b'\\', rest)) else {
            return block.len();
        };
        at += found;
        if block.get(at) == Some(&b'"') {
            self.in_text = false;
        } else {
            self.escaped = true;
        }
        at + 1
    }
}

/// One element of a stream as it stood there, with what stood before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    raw: Bytes,
    at: Option<Range<usize>>,
    element: Option<usize>,
}

impl Frame {
    /// The bytes, with comma and spaces.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// Where it stands in the block that was pushed last, if it is wholly in it.
    #[must_use]
    pub fn at(&self) -> Option<Range<usize>> {
        self.at.clone()
    }

    /// The element. What stands in place of one is given as it is; commas, brackets and spaces alone are nothing.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn data(&self) -> Result<Option<&str>, Malformed> {
        let text = match self.element {
            Some(from) => self.raw.get(from..).unwrap_or_default().trim_ascii(),
            None => {
                let is_nothing = |byte: &u8| byte.is_ascii_whitespace() || b",[]".contains(byte);
                let raw = self.raw.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.raw);
                if raw.iter().all(is_nothing) {
                    return Ok(None);
                }
                raw.trim_ascii()
            }
        };
        Ok(Some(std::str::from_utf8(text)?))
    }
}
