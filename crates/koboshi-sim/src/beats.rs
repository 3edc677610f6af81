//! The pieces of a body, made one by one, and where they go wrong.
//!
//! A stream is healthy frames with one thing done to them. Every fall of a stream happens before its finish at the
//! latest, however long it was told to wait: a fall that never comes would be no fall.

use std::time::Duration;

use bytes::Bytes;

use crate::error::in_band;
use crate::frames::{Frames, Part};
use crate::play::Beat;

/// The pieces of a body, made one by one.
#[derive(Debug)]
pub struct Beats(Source);

#[derive(Debug)]
enum Source {
    Made(std::vec::IntoIter<Beat>),
    Stream(Box<Stream>),
}

/// What is done to a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Spoil {
    Nothing,
    /// It goes no further than this.
    Break {
        after: u64,
        bytes: u64,
    },
    /// It goes no further than so many pieces of arguments.
    BreakCall {
        pieces: u64,
    },
    /// One frame is broken.
    Frame {
        after: u64,
        extra: bool,
    },
    /// An error, and then nothing more.
    Error {
        after: u64,
    },
    /// The filter ends it.
    Filter {
        after: u64,
    },
    /// No end mark.
    NoDone,
}

/// Frames, and what is done to them.
#[derive(Debug)]
struct Stream {
    frames: Frames,
    spoil: Spoil,
    /// A frame that comes after a broken one.
    held: Option<String>,
    sent: u64,
    first: Duration,
    gap: Duration,
    over: bool,
}

impl Beats {
    pub(crate) fn none() -> Self {
        Self::from(Vec::new())
    }

    pub(crate) fn whole(body: Bytes) -> Self {
        Self::from(vec![Beat { after: Duration::ZERO, bytes: body }])
    }

    pub(crate) fn stream(frames: Frames, spoil: Spoil, first: Duration, gap: Duration) -> Self {
        let stream = Stream { frames, spoil, held: None, sent: 0, first, gap, over: false };
        Self(Source::Stream(Box::new(stream)))
    }
}

/// Pieces made elsewhere, for plays of one's own.
impl From<Vec<Beat>> for Beats {
    fn from(beats: Vec<Beat>) -> Self {
        Self(Source::Made(beats.into_iter()))
    }
}

impl Iterator for Beats {
    type Item = Beat;

    fn next(&mut self) -> Option<Beat> {
        match &mut self.0 {
            Source::Made(beats) => beats.next(),
            Source::Stream(stream) => {
                let bytes = stream.next_frame().filter(|bytes| !bytes.is_empty())?;
                let after = if stream.sent == 0 { stream.first } else { stream.gap };
                stream.sent = stream.sent.saturating_add(1);
                Some(Beat { after, bytes })
            }
        }
    }
}

impl Stream {
    fn next_frame(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        if let Some(held) = self.held.take() {
            return Some(Bytes::from(held));
        }
        let (part, text) = self.frames.next()?;
        let is_due = |after: u64| self.sent >= after || part == Part::Finish;
        match self.spoil {
            Spoil::Break { after, bytes } if is_due(after) => {
                self.over = true;
                let most = usize::try_from(bytes).unwrap_or(usize::MAX).min(text.len().saturating_sub(1));
                let mut begun = Bytes::from(text);
                begun.truncate(most);
                Some(begun)
            }
            Spoil::BreakCall { pieces: 0 } if matches!(part, Part::CallPiece | Part::Finish) => {
                self.over = true;
                None
            }
            Spoil::BreakCall { pieces } if part == Part::CallPiece => {
                self.spoil = Spoil::BreakCall { pieces: pieces.saturating_sub(1) };
                Some(Bytes::from(text))
            }
            Spoil::BreakCall { .. } if part == Part::Finish => {
                self.over = true;
                None
            }
            Spoil::Frame { after, extra } if is_due(after) => {
                self.spoil = Spoil::Nothing;
                let broken = text.get(..text.floor_char_boundary(text.len() * 3 / 5)).unwrap_or("data: {");
                let broken = format!("{broken}\n\n");
                self.held = (extra || part == Part::Finish).then_some(text);
                Some(Bytes::from(broken))
            }
            Spoil::Error { after } if is_due(after) => {
                self.over = true;
                Some(Bytes::from(format!("data: {}\n\n", in_band())))
            }
            Spoil::Filter { after } if is_due(after) => {
                self.spoil = Spoil::Nothing;
                Some(Bytes::from(self.frames.finish_as("content_filter")))
            }
            Spoil::NoDone if part == Part::Done => None,
            _ => Some(Bytes::from(text)),
        }
    }
}
