//! The beginning of a member: its key, in quotation marks or bare, and the mark before its value.
//!
//! A missing colon is added only before a string that cannot be anything else. What stands between two members is the
//! reader's own business.

use super::lexis::{Mark, Quote, bare_key_end};
use super::reader::{Enclosure, NextPart, Reader, stop};
use super::tape::{Form, Kind};
use super::verdict::{ChangeKind, Defect, Stop};

impl Reader<'_> {
    /// A key and what stands between it and its value, or the end of the object.
    pub(super) fn key(&mut self) -> Result<(), Stop> {
        self.gap()?;
        let first = self.want == NextPart::FirstKey;
        let call = self.frames.last().is_some_and(|frame| frame.by == Enclosure::Call);
        let end = if call { Mark::CloseTuple } else { Mark::CloseObject };
        if let Some((found, length, _)) = self.mark() {
            if found == end {
                if !first {
                    self.note(ChangeKind::CommaDropped, self.comma.clone());
                }
                return self.close(length);
            }
            if matches!(found, Mark::Comma | Mark::Semicolon) && !call {
                self.note(ChangeKind::CommaDropped, self.at..self.at + length);
                self.at += length;
                return Ok(());
            }
        }
        if let Some((quote, length)) = Quote::at(self.text, self.at).filter(|_| !call) {
            self.quoted_key(quote, length)?;
        } else {
            let end = bare_key_end(self.text, self.at);
            if end == self.at {
                return Err(self.unexpected("a key is expected here"));
            }
            self.tape.push(Kind::Key, Form::Plain, self.at, end);
            if !call {
                self.note(ChangeKind::KeyQuoted, self.at..end);
            }
            self.at = end;
        }
        self.separator(call)
    }

    fn quoted_key(&mut self, quote: Quote, length: usize) -> Result<(), Stop> {
        let open = self.at + length;
        if let Some(close) = self.plain_end(quote) {
            self.tape.push(Kind::Key, Form::Plain, open, close);
            self.at = close + 1;
            return Ok(());
        }
        let Some((close, closing)) = quote.next_end(self.text, open) else {
            return Err(stop(Defect::Cut, self.text.len(), "the text ends inside a key"));
        };
        let end = close + closing;
        self.body(Kind::Key, quote, self.at..end, open..close)?;
        self.at = end;
        Ok(())
    }

    fn separator(&mut self, call: bool) -> Result<(), Stop> {
        let before = self.at;
        self.gap()?;
        match self.mark() {
            Some((Mark::Colon, length, true)) if !call => self.at += length,
            Some((Mark::Equals, length, _)) if call => self.at += length,
            Some((Mark::Colon | Mark::Equals | Mark::Arrow, length, _)) if !call => {
                self.note(ChangeKind::SeparatorRead, self.at..self.at + length);
                self.at += length;
            }
            _ if self.at >= self.text.len() => {
                return Err(self.unexpected("a colon is expected after the key"));
            }
            None if !call && self.at > before && self.is_clean_string() => {
                self.note(ChangeKind::ColonAdded, self.at..self.at);
            }
            _ => {
                return Err(stop(
                    Defect::MissingValue,
                    self.at,
                    "a colon and a value are expected after the key",
                ));
            }
        }
        self.want = NextPart::Value;
        Ok(())
    }
}
