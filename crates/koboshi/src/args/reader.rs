//! The tolerant reader: one object in other notations than JSON's, if it has exactly one reading.
//!
//! A state machine with an explicit stack that walks the text once and writes a [`Tape`]. It knows each notation by
//! name and notes every one that it met. What it does not know is refused at its place: it never skips, closes or
//! completes on a guess.
//!
//! Only one thing can be read in several ways without being refused at once: a string with quotation marks inside
//! (`dirty`). The reader tries its ends one after the other, from the state before the string, and keeps looking
//! after it has found a reading: a second one means refusal. All these tries together may cost a fixed multiple of
//! the text, so time stays linear.

use std::ops::Range;

use super::body::{self, Body};
use super::choice::{Choice, UncertainString};
use super::lexis::{Mark, Quote, blank_end, comment, mark};
use super::schema::ToolSchema;
use super::tape::{Form, Kind, Tape};
use super::verdict::{Change, ChangeKind, Defect, Stop};

/// What kind of brackets enclose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Enclosure {
    Object,
    Array,
    /// `(1, 2)`
    Tuple,
    /// `f(key=1)`
    Call,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Frame {
    pub(super) open: usize,
    pub(super) by: Enclosure,
    commas: usize,
}

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NextPart {
    FirstKey,
    Key,
    Value,
    FirstElement,
    Element,
    Next,
}

/// One object as it was read.
#[derive(Debug)]
pub(super) struct ReadObject {
    pub(super) tape: Tape,
    pub(super) changes: Vec<Change>,
    /// Where the object ends.
    pub(super) end: usize,
}

pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) schema: Option<&'a ToolSchema>,
    pub(super) max_depth: usize,
    pub(super) at: usize,
    pub(super) want: NextPart,
    pub(super) frames: Vec<Frame>,
    pub(super) tape: Tape,
    pub(super) changes: Vec<Change>,
    pub(super) dirty: Vec<UncertainString>,
    pub(super) choices: Vec<Choice>,
    /// What the tries have cost, in bytes.
    pub(super) work: usize,
    /// There are curly quotation marks somewhere.
    pub(super) has_curly: bool,
    /// Where the last comma of a list is.
    pub(super) comma: Range<usize>,
    /// The last value was a word without quotation marks: what follows it could belong to it.
    pub(super) worded: bool,
}

pub(super) fn stop(defect: Defect, at: usize, why: &'static str) -> Stop {
    Stop::new(defect, at, why)
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, at: usize, schema: Option<&'a ToolSchema>, max_depth: usize) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            schema,
            max_depth,
            at,
            want: NextPart::Value,
            frames: Vec::with_capacity(16),
            tape: Tape::default(),
            changes: Vec::new(),
            dirty: Vec::new(),
            choices: Vec::new(),
            work: 0,
            has_curly: memchr::memmem::find(text.as_bytes(), "”".as_bytes()).is_some(),
            comma: at..at,
            worded: false,
        }
    }

    /// Begins a call, right after its opening bracket.
    pub(super) fn begin_call(&mut self) -> Result<(), Stop> {
        self.open(Enclosure::Call, 0)
    }

    pub(super) fn step(&mut self) -> Result<(), Stop> {
        match self.want {
            NextPart::FirstKey | NextPart::Key => self.key(),
            NextPart::Value | NextPart::FirstElement | NextPart::Element => self.value(),
            NextPart::Next => self.next(),
        }
    }

    pub(super) fn note(&mut self, what: ChangeKind, span: Range<usize>) {
        self.changes.push(Change { what, span });
    }

    /// White space and comments.
    pub(super) fn gap(&mut self) -> Result<(), Stop> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\t' | b'\r') => self.at += 1,
                Some(b'\\' | 0xb | 0xc | 0x80..) => {
                    let (end, plain) = blank_end(self.text, self.at);
                    if end == self.at {
                        return Ok(());
                    }
                    if !plain {
                        self.note(ChangeKind::BlankDropped, self.at..end);
                    }
                    self.at = end;
                }
                Some(b'/' | b'#' | b'<') => match comment(self.text, self.at) {
                    None => return Ok(()),
                    Some(None) => {
                        return Err(stop(
                            Defect::Cut,
                            self.at,
                            "this comment does not end before the text does",
                        ));
                    }
                    Some(Some(end)) => {
                        let inside = self.text.get(self.at..end).unwrap_or_default();
                        let quotes = !self.dirty.is_empty() && inside.contains(['"', '\'']);
                        if quotes || is_half_a_string(inside) {
                            let why = "a comment, or a string that lost a quotation mark?";
                            return Err(stop(Defect::Ambiguous, self.at, why));
                        }
                        self.note(ChangeKind::CommentDropped, self.at..end);
                        self.at = end;
                    }
                },
                _ => return Ok(()),
            }
        }
    }

    pub(super) fn mark(&self) -> Option<(Mark, usize, bool)> {
        mark(self.text, self.at)
    }

    fn value(&mut self) -> Result<(), Stop> {
        self.gap()?;
        self.worded = false;
        if let Some((found, length, own)) = self.mark() {
            if !own && matches!(found, Mark::OpenObject | Mark::OpenArray) {
                self.note(ChangeKind::BracketRead, self.at..self.at + length);
            }
            return match (found, self.want) {
                (Mark::OpenObject, _) => self.open(Enclosure::Object, length),
                (Mark::OpenArray, _) => self.open(Enclosure::Array, length),
                (Mark::OpenTuple, _) => {
                    self.note(ChangeKind::TupleRead, self.at..self.at + length);
                    self.open(Enclosure::Tuple, length)
                }
                (Mark::CloseArray | Mark::CloseTuple, NextPart::FirstElement | NextPart::Element)
                    if self.ends(found) =>
                {
                    if self.want == NextPart::Element {
                        self.note(ChangeKind::CommaDropped, self.comma.clone());
                    }
                    self.close(length)
                }
                _ => Err(stop(Defect::MissingValue, self.at, "a value is expected here")),
            };
        }
        if let Some((quote, length)) = Quote::at(self.text, self.at) {
            return self.string(quote, length);
        }
        self.bare()
    }

    /// Whether this mark ends the innermost list.
    fn ends(&self, found: Mark) -> bool {
        matches!(
            (self.frames.last().map(|frame| frame.by), found),
            (Some(Enclosure::Object), Mark::CloseObject)
                | (Some(Enclosure::Array), Mark::CloseArray)
                | (Some(Enclosure::Tuple | Enclosure::Call), Mark::CloseTuple)
        )
    }

    fn next(&mut self) -> Result<(), Stop> {
        let before = self.at;
        self.gap()?;
        let Some(frame) = self.frames.last_mut() else { return Ok(()) };
        let object = matches!(frame.by, Enclosure::Object | Enclosure::Call);
        if let Some((found, length, own)) = mark(self.text, self.at) {
            if matches!(found, Mark::Comma | Mark::Semicolon) && (object || found == Mark::Comma) {
                frame.commas += 1;
                self.comma = self.at..self.at + length;
                if !own {
                    self.note(ChangeKind::SeparatorRead, self.at..self.at + length);
                }
                self.at += length;
                self.want = if object { NextPart::Key } else { NextPart::Element };
                return Ok(());
            }
            if self.ends(found) {
                return self.close(length);
            }
            let after_brackets = self.tape.last().is_some_and(|item| item.kind == Kind::End);
            if frame_is_array(self.frames.last()) && after_brackets && found == Mark::OpenObject {
                self.note(ChangeKind::CommaAdded, self.at..self.at);
                self.want = NextPart::Element;
                return Ok(());
            }
        }
        if self.bytes.get(self.at) == Some(&b'+') && self.joins_text() {
            return self.join();
        }
        let apart = !self.worded && self.is_apart(before, self.at);
        if object && apart && self.begins_member(self.at, before) {
            self.note(ChangeKind::CommaAdded, self.at..self.at);
            self.want = NextPart::Key;
            return Ok(());
        }
        if self.is_over() {
            return self.close_all();
        }
        Err(match self.mark() {
            Some((Mark::CloseObject | Mark::CloseArray | Mark::CloseTuple, ..)) => {
                stop(Defect::Unreadable, self.at, "this bracket does not close what was opened last")
            }
            _ => self.unexpected("a comma or the end of the list is expected here"),
        })
    }

    fn open(&mut self, by: Enclosure, length: usize) -> Result<(), Stop> {
        if self.frames.len() >= self.max_depth {
            return Err(stop(Defect::TooDeep, self.at, "nested too deeply"));
        }
        let list = matches!(by, Enclosure::Array | Enclosure::Tuple);
        self.frames.push(Frame { open: self.tape.len(), by, commas: 0 });
        let kind = if list { Kind::Array } else { Kind::Object };
        self.tape.push(kind, Form::Plain, self.at, self.at + length);
        self.at += length;
        self.want = if list { NextPart::FirstElement } else { NextPart::FirstKey };
        Ok(())
    }

    pub(super) fn close(&mut self, length: usize) -> Result<(), Stop> {
        if let Some(frame) = self.frames.pop() {
            if frame.by == Enclosure::Tuple && frame.commas == 0 && self.want == NextPart::Next {
                return Err(stop(
                    Defect::Ambiguous,
                    self.at,
                    "one value in round brackets, or a list of one?",
                ));
            }
            self.tape.close(frame.open, self.at, self.at + length);
            if length > 1 {
                self.note(ChangeKind::BracketRead, self.at..self.at + length);
            }
        }
        self.at += length;
        self.want = NextPart::Next;
        self.worded = false;
        Ok(())
    }

    pub(super) fn unexpected(&self, why: &'static str) -> Stop {
        if self.at >= self.text.len() {
            return stop(Defect::Cut, self.at, "the text ends before the object does");
        }
        stop(Defect::Unreadable, self.at, why)
    }

    /// Reads the inside of a string and puts it on the tape.
    pub(super) fn body(
        &mut self,
        kind: Kind,
        quote: Quote,
        whole: Range<usize>,
        inside: Range<usize>,
    ) -> Result<(), Stop> {
        let raw = self.text.get(inside.clone()).unwrap_or_default();
        if quote == Quote::Tick && raw.contains("${") {
            return Err(stop(Defect::Unreadable, inside.start, "a template is no text"));
        }
        if quote != Quote::Straight {
            self.note(ChangeKind::QuotesChanged, whole.clone());
        }
        match body::read(raw, inside.start, quote == Quote::Tick)? {
            Body::Plain => self.tape.push(kind, Form::Plain, inside.start, inside.end),
            Body::Made(text, changes) => {
                let made = self.tape.make(text);
                self.tape.push(kind, Form::Made(made), whole.start, whole.end);
                for what in changes {
                    // In other marks a straight one is nothing to mention.
                    if quote == Quote::Straight || what != ChangeKind::QuotesEscaped {
                        self.note(what, whole.clone());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether a comment holds an odd number of some quotation mark.
fn is_half_a_string(comment: &str) -> bool {
    let marks = [Quote::Straight, Quote::Single, Quote::Tick];
    marks.into_iter().any(|quote| !quote.count_in(comment).is_multiple_of(2))
}

fn frame_is_array(frame: Option<&Frame>) -> bool {
    frame.is_some_and(|frame| frame.by == Enclosure::Array)
}
