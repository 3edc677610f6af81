//! Cuts a stream of server-sent events into frames, without changing a byte.
//!
//! Blocks come as the network gives them. A frame that lies wholly in one block is a slice of it; only one that spans
//! blocks is copied, once. Each byte is read once, so a long frame that comes in tiny blocks costs no more than a
//! short one. All line ends of the standard are known (`\n`, `\r\n`, `\r`), wherever blocks are cut, and a frame is given out
//! as soon as its blank line is there. So a `\n` that comes a block later than its `\r` is an empty frame
//! of its own; waiting for it would hold back the event. Blank lines between frames are such frames too: some servers send them
//! as keep-alives.
//!
//! The raw bytes of all frames, and of what [`Framer::finish`] gives, are together the bytes that went in.
//!
//! *Not here*: `id:` and `retry:`, which no provider's stream needs; they pass with the raw bytes.

use std::borrow::Cow;
use std::ops::Range;

use bytes::Bytes;
use memchr::memchr2;

use crate::Malformed;
use crate::blocks::{Blocks, End, RawFrame};
use crate::step::join;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// A frame is longer than allowed. The stream cannot be read on: the framer drops what it holds and gives out nothing more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a frame of the stream is longer than {max_bytes} bytes")]
pub struct FrameTooLong {
    /// The most bytes a frame may have.
    pub max_bytes: usize,
}

/// Cuts a stream into frames.
///
/// ```
/// use bytes::Bytes;
/// use koboshi_wire::sse::Framer;
///
/// let mut framer = Framer::new(1024);
/// framer.push(Bytes::from_static(b": hello\n\ndata: {\"a\":1}\n\ndata: [DO"));
/// let comment = framer.next_frame().unwrap().unwrap();
/// assert!(comment.is_comment());
/// let frame = framer.next_frame().unwrap().unwrap();
/// assert_eq!(frame.data().unwrap().as_deref(), Some("{\"a\":1}"));
/// assert!(framer.next_frame().is_none());
/// assert_eq!(framer.pending(), 9);
/// // The end of the stream; what was begun has no blank line after it.
/// assert_eq!(&framer.finish().unwrap().raw()[..], b"data: [DO");
/// ```
#[derive(Debug)]
pub struct Framer {
    blocks: Blocks,
    lines: Lines,
    /// No frame has been given out yet.
    first: bool,
}

impl Framer {
    /// A framer for one stream, whose frames have at most this many bytes.
    #[must_use]
    pub fn new(max_bytes: usize) -> Self {
        Self { blocks: Blocks::new(max_bytes), lines: Lines::default(), first: true }
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
        let lines = &mut self.lines;
        let cut = self.blocks.next(|block, start, held| lines.end_of_frame(block, start, held))?;
        Some(cut.map(|cut| {
            let lines = std::mem::take(&mut self.lines);
            self.frame(cut, lines.only())
        }))
    }

    fn frame(&mut self, RawFrame { raw, at }: RawFrame, only: Option<usize>) -> Frame {
        let is_first = std::mem::take(&mut self.first);
        let mark = if is_first && raw.starts_with(BOM) { BOM.len() } else { 0 };
        Frame { raw, at, mark, only }
    }

    /// What has no blank line after it, at the end of the stream. Ask when [`next_frame`](Self::next_frame) gives none.
    pub fn finish(&mut self) -> Option<Frame> {
        self.lines = Lines::default();
        let raw = self.blocks.rest()?;
        Some(self.frame(RawFrame { raw, at: None }, None))
    }

    /// Bytes of the unfinished frame.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.blocks.pending()
    }
}

/// What is known of the unfinished frame's lines.
#[derive(Debug, Clone, Copy, Default)]
struct Lines {
    /// The line that is being read has bytes.
    begun: bool,
    /// The last byte was the `\r` of a line end: a `\n` now belongs to it.
    after_return: bool,
    /// Lines that have ended.
    ended: u32,
    /// Length of the first line without its end.
    first: usize,
}

impl Lines {
    /// Reads on in the next block, or after the last frame in the same one. `held` bytes of the frame stood in earlier blocks.
    fn end_of_frame(&mut self, block: &[u8], start: usize, held: usize) -> Option<End> {
        let mut at = start;
        if std::mem::take(&mut self.after_return) && block.get(at) == Some(&b'\n') {
            at += 1;
        }
        loop {
            let rest = block.get(at..).unwrap_or_default();
            let Some(length) = memchr2(b'\n', b'\r', rest) else {
                self.begun |= !rest.is_empty();
                return None;
            };
            let end = at + length;
            let is_return = block.get(end) == Some(&b'\r');
            let after = end + 1 + usize::from(is_return && block.get(end + 1) == Some(&b'\n'));
            if length == 0 && !self.begun {
                // Whether the `\n` of a last `\r\n` is there already is chance, and must decide nothing.
                return Some(End { at: after, counted: end + 1 });
            }
            if self.ended == 0 {
                self.first = held + (end - start);
            }
            self.ended = self.ended.saturating_add(1);
            self.begun = false;
            self.after_return = is_return && after == block.len() && after == end + 1;
            at = after;
        }
    }

    /// Length of the frame's only line, if it has just one.
    fn only(self) -> Option<usize> {
        (self.ended <= 1).then_some(self.first)
    }
}

/// One event of a stream as it stood there, with its blank line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    raw: Bytes,
    at: Option<Range<usize>>,
    /// Bytes of the byte order mark at the start of the stream.
    mark: usize,
    /// End of the only line, where there is just one: most frames need no second look for their lines.
    only: Option<usize>,
}

impl Frame {
    /// The bytes, blank line included.
    #[must_use]
    pub fn raw(&self) -> &Bytes {
        &self.raw
    }

    /// The same with its blank line, for what [`Framer::finish`] gives: without one parsers drop an event.
    #[must_use]
    pub fn closed(self) -> Self {
        // Behind a lone `\r` the first `\n` still belongs to that line end.
        let missing: &[u8] = if self.raw.ends_with(b"\n") { b"\n" } else { b"\n\n" };
        Self { raw: [&self.raw[..], missing].concat().into(), at: None, ..self }
    }

    /// Where it stands in the block that was pushed last, if it is wholly in it: neighbours can be passed on as one slice.
    #[must_use]
    pub fn at(&self) -> Option<Range<usize>> {
        self.at.clone()
    }

    /// The data, lines joined; `None` where there is none.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn data(&self) -> Result<Option<Cow<'_, str>>, Malformed> {
        let mut joined: Option<Cow<'_, str>> = None;
        for (name, value) in self.fields() {
            if name == b"data" {
                join(&mut joined, Cow::Borrowed(std::str::from_utf8(value)?), "\n");
            }
        }
        Ok(joined)
    }

    /// The event's name, where it has one that is text.
    #[must_use]
    pub fn event(&self) -> Option<&str> {
        let last = self.fields().filter(|(name, _)| *name == b"event").last();
        last.and_then(|(_, value)| std::str::from_utf8(value).ok()).filter(|name| !name.is_empty())
    }

    /// Whether it has no field: only comments and blank lines.
    #[must_use]
    pub fn is_comment(&self) -> bool {
        self.fields().next().is_none()
    }

    /// Names and values of all lines but comments.
    fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let end = self.only.unwrap_or(self.raw.len());
        let text = self.raw.get(self.mark..end).unwrap_or_default();
        let is_single = self.only.is_some();
        let mut rest = Some(text);
        // A single line is not searched again. Between `\r` and `\n` there is an empty line, which has no field.
        let lines = std::iter::from_fn(move || {
            let text = rest?;
            let end = if is_single { None } else { memchr2(b'\n', b'\r', text) };
            rest = end.and_then(|end| text.get(end + 1..));
            Some(end.and_then(|end| text.get(..end)).unwrap_or(text))
        });
        lines.filter(|line| !line.is_empty() && !line.starts_with(b":")).map(|line| {
            let Some(colon) = memchr::memchr(b':', line) else { return (line, &[][..]) };
            let (name, value) = line.split_at(colon);
            let value = value.strip_prefix(b":").unwrap_or_default();
            (name, value.strip_prefix(b" ").unwrap_or(value))
        })
    }
}
