//! The pieces of a body, made one by one, and where they go wrong.
//!
//! A stream is healthy acts, each written as the dialect writes it, with one thing done to them. Every fall of a stream happens before its finish at the
//! latest, however long it was told to wait: a fall that never comes would be no fall.

use std::time::Duration;

use bytes::Bytes;

use crate::acts::{Act, Acts};
use crate::play::Beat;
use crate::writer::Writer;

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

/// Acts, who writes them, and what is done to them.
#[derive(Debug)]
struct Stream {
    acts: Acts,
    writer: Writer,
    spoil: Spoil,
    /// A frame that comes after a broken one.
    held: Option<String>,
    /// Acts so far, whether the dialect has anything to say to them or not.
    played: u64,
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

    pub(crate) fn stream(acts: Acts, writer: Writer, spoil: Spoil, first: Duration, gap: Duration) -> Self {
        let stream = Stream { acts, writer, spoil, held: None, played: 0, sent: 0, first, gap, over: false };
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
                // A piece of nothing would end a body that is sent in chunks.
                let bytes = std::iter::from_fn(|| stream.next_frame()).find(|bytes| !bytes.is_empty())?;
                let after = if stream.sent == 0 { stream.first } else { stream.gap };
                stream.sent = stream.sent.saturating_add(1);
                Some(Beat { after, bytes })
            }
        }
    }
}

impl Stream {
    /// What is sent for the next act; perhaps nothing.
    fn next_frame(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        if let Some(held) = self.held.take() {
            return Some(Bytes::from(held));
        }
        let act = self.acts.next()?;
        let is_last = matches!(act, Act::Finish { .. });
        let is_due = |after: u64| act.counts() && self.played >= after || is_last;
        match self.spoil {
            Spoil::Break { after, bytes } if is_due(after) => {
                self.over = true;
                let text = self.writer.write(act);
                let most = usize::try_from(bytes).unwrap_or(usize::MAX).min(text.len().saturating_sub(1));
                let mut opening = Bytes::from(text);
                opening.truncate(most);
                Some(opening)
            }
            Spoil::BreakCall { pieces: 0 } if matches!(act, Act::Piece(_) | Act::CallEnd) || is_last => {
                self.over = true;
                Some(Bytes::from(self.writer.opening()))
            }
            Spoil::BreakCall { pieces } if matches!(act, Act::Piece(_)) => {
                self.spoil = Spoil::BreakCall { pieces: pieces.saturating_sub(1) };
                Some(self.write(act))
            }
            Spoil::BreakCall { .. } if is_last => {
                self.over = true;
                None
            }
            Spoil::Frame { after, extra } if is_due(after) => {
                self.spoil = Spoil::Nothing;
                self.played = self.played.saturating_add(1);
                let text = self.writer.write(act);
                let broken = broken(&text);
                self.held = (extra || is_last).then_some(text);
                Some(Bytes::from(broken))
            }
            Spoil::Error { after } if is_due(after) => {
                self.over = true;
                Some(Bytes::from(self.writer.error()))
            }
            Spoil::Filter { after } if is_due(after) => {
                self.spoil = Spoil::Nothing;
                let finish = self.acts.finish_as("content_filter");
                Some(self.write(finish))
            }
            Spoil::NoDone if act == Act::Done => None,
            _ => Some(self.write(act)),
        }
    }

    fn write(&mut self, act: Act) -> Bytes {
        self.played = self.played.saturating_add(u64::from(act.counts()));
        Bytes::from(self.writer.write(act))
    }
}

/// The same with its last frame broken in the middle.
fn broken(text: &str) -> String {
    if text.is_empty() {
        return "data: {\"candidates\": [{\"content\": {\"parts\": [{\"te\n\n".to_owned();
    }
    let from = text.trim_end().rfind("\n\n").map_or(0, |at| at + 2);
    let (before, last) = text.split_at(from);
    let opening = last.get(..last.floor_char_boundary(last.len() * 3 / 5)).unwrap_or("data: {");
    format!("{before}{opening}\n\n")
}
