//! An answer on its way, act by act, in no dialect.
//!
//! An act is one step of an answer: it begins, sends a piece, begins a call, ends. How it is written is up to the
//! [`Writer`](crate::writer::Writer). Falls are counted in acts, so that they come at the same word in every dialect.

use crate::answer::{Answer, InPieces, SpokenText};

/// One act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// The answer begins; whether it will call.
    Open { calls: bool },
    /// A piece of the thought.
    Thought(String),
    /// The signature of the thought, which ends it.
    Seal(String),
    /// A piece of the text.
    Text(String),
    /// A call begins.
    Call(Head),
    /// A piece of its arguments.
    Piece(String),
    /// The call is whole.
    CallEnd,
    /// The answer ends, for this reason.
    Finish { reason: &'static str, tokens: TokenCount },
    /// What it cost, where that is sent apart.
    Usage(TokenCount),
    /// The end mark.
    Done,
}

/// How a call begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its number in the answer.
    pub(crate) index: u64,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) free_text: bool,
}

/// What an answer has cost up to now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TokenCount {
    /// Pieces of text and arguments.
    pub(crate) given: u64,
    /// Pieces of thought.
    pub(crate) thought: u64,
}

impl TokenCount {
    /// Both.
    pub(crate) const fn output(self) -> u64 {
        self.given.saturating_add(self.thought)
    }
}

impl Act {
    /// Whether it is one of those that are counted until a fall comes.
    pub(crate) const fn counts(&self) -> bool {
        !matches!(self, Self::Seal(_) | Self::CallEnd)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NextAct {
    Open,
    Thought,
    Text,
    Call,
    Finish,
    Usage,
    Done,
    Over,
}

/// The acts of an answer, made one by one.
#[derive(Debug)]
pub(crate) struct Acts {
    answer: Answer,
    /// What is left of the thought, of the text, of the calls, and of the arguments of the current one.
    thought: Option<SpokenText>,
    speech: SpokenText,
    calls: std::vec::IntoIter<InPieces>,
    pieces: Option<std::vec::IntoIter<String>>,
    index: u64,
    tokens: TokenCount,
    usage: bool,
    next: NextAct,
}

impl Acts {
    /// With `usage` the cost is sent apart.
    pub(crate) fn new(mut answer: Answer, usage: bool) -> Self {
        let calls = answer.calls.clone().into_iter();
        // The calls themselves are sent once; that there are calls must be known to the end.
        answer.calls.iter_mut().for_each(|call| call.arguments.clear());
        Self {
            thought: answer.thought.as_ref().map(|thought| thought.words.clone()),
            speech: answer.speech.clone(),
            calls,
            pieces: None,
            index: 0,
            tokens: TokenCount::default(),
            usage,
            next: NextAct::Open,
            answer,
        }
    }

    /// Everything that is still to come is left out but the finish, which has this reason.
    pub(crate) fn finish_as(&mut self, reason: &'static str) -> Act {
        self.next = if self.usage { NextAct::Usage } else { NextAct::Done };
        Act::Finish { reason, tokens: self.tokens }
    }

    fn thought(&mut self) -> Option<Act> {
        let words = self.thought.as_mut()?;
        if let Some(piece) = words.next() {
            self.tokens.thought = self.tokens.thought.saturating_add(1);
            return Some(Act::Thought(piece));
        }
        self.thought = None;
        self.answer.thought.as_ref().map(|thought| Act::Seal(thought.signature.clone()))
    }

    fn call(&mut self) -> Option<Act> {
        if let Some(pieces) = &mut self.pieces {
            if let Some(piece) = pieces.next() {
                self.tokens.given = self.tokens.given.saturating_add(1);
                return Some(Act::Piece(piece));
            }
            self.pieces = None;
            return Some(Act::CallEnd);
        }
        let InPieces { id, name, arguments, free_text } = self.calls.next()?;
        self.pieces = Some(arguments.into_iter());
        let head = Head { index: self.index, id, name, free_text };
        self.index = self.index.saturating_add(1);
        Some(Act::Call(head))
    }
}

impl Iterator for Acts {
    type Item = Act;

    fn next(&mut self) -> Option<Act> {
        loop {
            let (act, then) = match self.next {
                NextAct::Open => {
                    self.next = NextAct::Thought;
                    return Some(Act::Open { calls: !self.answer.calls.is_empty() });
                }
                NextAct::Thought => (self.thought(), NextAct::Text),
                NextAct::Text => {
                    let piece = self.speech.next();
                    self.tokens.given = self.tokens.given.saturating_add(u64::from(piece.is_some()));
                    (piece.map(Act::Text), NextAct::Call)
                }
                NextAct::Call => (self.call(), NextAct::Finish),
                NextAct::Finish => {
                    let reason = self.answer.finish(&self.speech);
                    return Some(self.finish_as(reason));
                }
                NextAct::Usage => {
                    self.next = NextAct::Done;
                    return Some(Act::Usage(self.tokens));
                }
                NextAct::Done => {
                    self.next = NextAct::Over;
                    return Some(Act::Done);
                }
                NextAct::Over => return None,
            };
            if act.is_some() {
                return act;
            }
            self.next = then;
        }
    }
}
