//! The pieces of a body, made one by one, and where they go wrong.
//!
//! A stream is healthy acts, each written as the dialect writes it, with one thing done to them. Every fall of a stream happens before its finish at the
//! latest, whatever number its parameter has: a fall that never comes would be none.

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
    Given(std::vec::IntoIter<Beat>),
    Stream(Box<Stream>),
}

/// What is done to a stream.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Damage {
    Nothing,
    /// It goes no further than this.
    Break {
        after: u64,
        bytes: u64,
    },
    /// It goes no further than this many pieces of arguments.
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

/// Acts, their writer, and the fall.
#[derive(Debug)]
struct Stream {
    acts: Acts,
    writer: Writer,
    spoil: Damage,
    /// A frame that comes after a broken one.
    held: Option<String>,
    /// The number of acts up to now, whether the dialect sends something for them or not.
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

    pub(crate) fn stream(acts: Acts, writer: Writer, spoil: Damage, first: Duration, gap: Duration) -> Self {
        let stream = Stream { acts, writer, spoil, held: None, played: 0, sent: 0, first, gap, over: false };
        Self(Source::Stream(Box::new(stream)))
    }
}

/// Pieces made elsewhere, for plays of one's own.
impl From<Vec<Beat>> for Beats {
    fn from(beats: Vec<Beat>) -> Self {
        Self(Source::Given(beats.into_iter()))
    }
}

impl Iterator for Beats {
    type Item = Beat;

    fn next(&mut self) -> Option<Beat> {
        match &mut self.0 {
            Source::Given(beats) => beats.next(),
            Source::Stream(stream) => {
                // An empty piece would end a chunked body.
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
            Damage::Break { after, bytes } if is_due(after) => {
                self.over = true;
                let text = self.writer.write(act);
                let max = usize::try_from(bytes).unwrap_or(usize::MAX).min(text.len().saturating_sub(1));
                let mut opening = Bytes::from(text);
                opening.truncate(max);
                Some(opening)
            }
            Damage::BreakCall { pieces: 0 } if matches!(act, Act::Piece(_) | Act::CallEnd) || is_last => {
                self.over = true;
                Some(Bytes::from(self.writer.opening()))
            }
            Damage::BreakCall { pieces } if matches!(act, Act::Piece(_)) => {
                self.spoil = Damage::BreakCall { pieces: pieces.saturating_sub(1) };
                Some(self.write(act))
            }
            Damage::BreakCall { .. } if is_last => {
                self.over = true;
                None
            }
            Damage::Frame { after, extra } if is_due(after) => {
                self.spoil = Damage::Nothing;
                self.played = self.played.saturating_add(1);
                let text = self.writer.write(act);
                let broken = broken(&text);
                self.held = (extra || is_last).then_some(text);
                Some(Bytes::from(broken))
            }
            Damage::Error { after } if is_due(after) => {
                self.over = true;
                Some(Bytes::from(self.writer.error()))
            }
            Damage::Filter { after } if is_due(after) => {
                self.spoil = Damage::Nothing;
                let finish = self.acts.finish_as("content_filter");
                Some(self.write(finish))
            }
            Damage::NoDone if act == Act::Done => None,
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
