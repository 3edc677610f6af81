//! Strings as values: where they end, in which forms they come, and what may follow them.
//!
//! A string ends at the first quotation mark that is followed by structure. Where a mark inside is not, the string is
//! dirty: each later mark that is followed by structure is a possible end (`choice`).

use super::choice::{Choice, UncertainString};
use super::lexis::{Mark, Quote, bare_key_end, blank_end, comment, mark};
use super::reader::{Enclosure, NextPart, Reader, stop};
use super::strict::{Escape, escape, special};
use super::tape::{Form, Kind};
use super::verdict::{ChangeKind, Defect, Stop};

/// How many bytes ahead the reader looks for the end of a comment or a key.
const LOOKAHEAD: usize = 256;

impl Reader<'_> {
    pub(super) fn string(&mut self, quote: Quote, length: usize) -> Result<(), Stop> {
        if let Some(close) = self.plain_end(quote) {
            // The usual case: strict JSON, and structure right behind it.
            let by = self.frames.last().map(|frame| frame.by);
            let ends = match self.bytes.get(close + 1) {
                Some(b',') => true,
                Some(b'}') => by == Some(Enclosure::Object),
                Some(b']') => by == Some(Enclosure::Array),
                _ => false,
            };
            if ends {
                self.tape.push(Kind::Text, Form::Plain, self.at + 1, close);
                self.at = close + 1;
                self.want = NextPart::Next;
                return Ok(());
            }
        }
        if let Some(three) = self.triple() {
            let end = self.triple_end(three);
            if let Some(end) = end {
                return self.finish_triple(quote, end);
            }
        }
        self.string_from(quote, self.at + length, false)
    }

    /// The next quotation mark, if everything before it is strict JSON.
    pub(super) fn plain_end(&self, quote: Quote) -> Option<usize> {
        if quote != Quote::Straight {
            return None;
        }
        let mut at = self.at + 1;
        loop {
            at = special(self.bytes, at);
            match self.bytes.get(at)? {
                b'"' => return Some(at),
                b'\\' => match escape(self.bytes, at) {
                    Escape::Legal(length) => at += length,
                    _ => return None,
                },
                _ => return None,
            }
        }
    }

    /// Looks for an end from this place on. `again`: an earlier end was tried already.
    pub(super) fn string_from(&mut self, quote: Quote, from: usize, again: bool) -> Result<(), Stop> {
        let start = self.at;
        let open = start + Quote::at(self.text, start).map_or(1, |(_, length)| length);
        let mut dirty = again;
        let mut place = from;
        // The one curly mark that could end it, if straight ones do not.
        let mut curly = None;
        loop {
            let straight = quote.next_end(self.text, place);
            if quote == Quote::Straight && self.has_curly && (dirty || straight.is_none()) && curly.is_none()
            {
                curly = Some(self.curly_end(open));
            }
            let curled = curly.flatten().filter(|(close, _)| *close >= place);
            let Some((close, closing)) = [straight, curled].into_iter().flatten().min() else { break };
            let end = close + closing;
            // Curly marks inside and a straight one at the end: was the beginning lost?
            let mixed = dirty && closing == 1 && matches!(quote, Quote::Curly | Quote::CurlySingle);
            if !mixed && self.is_structure(end, quote, dirty) {
                if dirty {
                    self.work += end - from;
                    self.try_end(Choice::before(self, start, quote, end))?;
                    let in_list = self.frames.last().is_some_and(|frame| frame.by != Enclosure::Object);
                    // Its inside is read once it is clear that it ends here.
                    let item = self.tape.len();
                    self.dirty.push(UncertainString {
                        span: open..close,
                        quote,
                        in_list,
                        item,
                        whole: start..end,
                    });
                    self.tape.push(Kind::Text, Form::Plain, open, close);
                } else {
                    self.body(Kind::Text, quote, start..end, open..close)?;
                }
                if closing > 1 && quote == Quote::Straight {
                    self.note(ChangeKind::QuotesChanged, start..end);
                }
                self.at = end;
                self.want = NextPart::Next;
                return Ok(());
            }
            // Once it is dirty, marks that were passed over before count as well.
            place = if dirty { end } else { open };
            dirty = true;
        }
        if dirty {
            let why = "this string has quotation marks inside that are not escaped, and no clear end";
            return Err(stop(Defect::Ambiguous, start, why));
        }
        Err(stop(Defect::Cut, self.text.len(), "the text ends inside a string"))
    }

    /// Whether a string with a clear end stands here, behind a key in quotation marks.
    pub(super) fn is_clean_string(&self) -> bool {
        let quoted = self.tape.last().is_some_and(|key| {
            key.start.checked_sub(1).is_some_and(|before| Quote::at(self.text, before).is_some())
        });
        let end = Quote::at(self.text, self.at).and_then(|(quote, length)| {
            let (close, closing) = quote.next_end(self.text, self.at + length)?;
            Some((quote, close + closing))
        });
        // The end of the text is none: what follows could be the value.
        quoted && end.is_some_and(|(quote, end)| self.is_structure(end, quote, true))
    }

    fn curly_end(&mut self, open: usize) -> Option<(usize, usize)> {
        let found = Quote::next_curly_end(self.text, open);
        self.work += found.map_or(self.text.len(), |(close, _)| close) - open;
        found
    }

    /// `"""` or `'''`, if it stands here.
    fn triple(&self) -> Option<&'static str> {
        let rest = self.text.get(self.at..)?;
        ["\"\"\"", "'''"].into_iter().find(|three| rest.starts_with(three))
    }

    /// Where the three marks begin that end the string.
    fn triple_end(&self, three: &str) -> Option<usize> {
        let finder = memchr::memmem::Finder::new(three);
        let mut from = self.at + 3;
        loop {
            let mut close = from + finder.find(self.bytes.get(from..)?)?;
            // Of four marks in a row the last three end it.
            while self.bytes.get(close + 3) == three.as_bytes().first() {
                close += 1;
            }
            let quote = if three.starts_with('"') { Quote::Straight } else { Quote::Single };
            if self.is_structure(close + 3, quote, false) {
                return Some(close);
            }
            from = close + 3;
        }
    }

    fn finish_triple(&mut self, quote: Quote, close: usize) -> Result<(), Stop> {
        let span = self.at..close + 3;
        self.note(ChangeKind::StringFormRead, span.clone());
        self.body(Kind::Text, quote, span.clone(), self.at + 3..close)?;
        self.at = span.end;
        self.want = NextPart::Next;
        Ok(())
    }

    /// A string with a letter before it: raw or Unicode, as in Python.
    pub(super) fn prefixed(
        &mut self,
        prefix: &str,
        open: usize,
        quote: Quote,
        length: usize,
    ) -> Result<(), Stop> {
        let start = self.at;
        let raw = match prefix {
            "r" | "R" => true,
            "u" | "U" => false,
            _ => return Err(stop(Defect::Unreadable, start, "this is no string of JSON")),
        };
        self.note(ChangeKind::StringFormRead, start..open + length);
        self.at = open;
        if !raw {
            return self.string(quote, length);
        }
        let body = open + length;
        let mut place = body;
        while let Some((close, closing)) = quote.next_end(self.text, place) {
            if self.is_structure(close + closing, quote, false) {
                let text = self.text.get(body..close).unwrap_or_default();
                let made = self.tape.make(text.to_owned());
                self.tape.push(Kind::Text, Form::Made(made), open, close + closing);
                self.at = close + closing;
                self.want = NextPart::Next;
                return Ok(());
            }
            place = close + closing;
        }
        Err(stop(Defect::Cut, self.text.len(), "the text ends inside a string"))
    }

    /// Whether a `+` here puts two strings together.
    pub(super) fn joins_text(&self) -> bool {
        let text_before = self.tape.last().is_some_and(|item| item.kind == Kind::Text);
        let (after, _) = blank_end(self.text, self.at + 1);
        text_before
            && self.tape.last().is_some_and(|item| item.form != Form::Word)
            && Quote::at(self.text, after).is_some()
    }

    pub(super) fn join(&mut self) -> Result<(), Stop> {
        let plus = self.at;
        let dirty = self.dirty.len();
        let (after, _) = blank_end(self.text, plus + 1);
        let Some((quote, length)) = Quote::at(self.text, after) else {
            return Err(self.unexpected("a string is expected here"));
        };
        self.at = after;
        self.string(quote, length)?;
        if self.dirty.len() != dirty {
            return Err(stop(Defect::Ambiguous, after, "quotation marks inside that are not escaped"));
        }
        let (Some(second), Some(first)) = (self.tape.pop(), self.tape.pop()) else { return Ok(()) };
        let whole = [self.tape.text(first, self.text), self.tape.text(second, self.text)].concat();
        let made = self.tape.make(whole);
        self.tape.push(Kind::Text, Form::Made(made), first.start, second.end);
        self.note(ChangeKind::StringsJoined, first.start..second.end);
        Ok(())
    }

    /// Whether what stands here can follow a string that is a value.
    fn is_structure(&self, at: usize, quote: Quote, dirty: bool) -> bool {
        let by = self.frames.last().map(|frame| frame.by);
        // The usual case.
        match (self.bytes.get(at), by) {
            (Some(b','), _)
            | (Some(b'}'), Some(Enclosure::Object))
            | (Some(b']'), Some(Enclosure::Array)) => {
                return true;
            }
            _ => {}
        }
        let Some(after) = self.over_blanks(at, quote) else { return false };
        if let Some((found, ..)) = mark(self.text, after) {
            return match found {
                Mark::Comma => true,
                Mark::Semicolon => matches!(by, Some(Enclosure::Object | Enclosure::Call)),
                Mark::CloseObject => by == Some(Enclosure::Object),
                Mark::CloseArray => by == Some(Enclosure::Array),
                Mark::CloseTuple => matches!(by, Some(Enclosure::Tuple | Enclosure::Call)),
                _ => false,
            };
        }
        if self.bytes.get(after) == Some(&b'+') {
            let (next, _) = blank_end(self.text, after + 1);
            let apart = self.is_apart(at, after) && self.is_apart(after + 1, next);
            return !dirty && apart && Quote::at(self.text, next).is_some();
        }
        // A text that was cut cannot be distinguished from a string that continues.
        let over = !dirty && self.ends_text(after) && !self.goes_on(at, quote);
        over || (by == Some(Enclosure::Object) && self.is_apart(at, after) && self.begins_member(after, at))
    }

    /// Whether the mark that ends here looks like the beginning of a quotation: `<a href="`, `echo "`; or like an
    /// apostrophe: `'don'`. If the text ends there, the string may have been cut.
    fn goes_on(&self, end: usize, quote: Quote) -> bool {
        let before = self.text.get(..end).unwrap_or_default().chars().rev().nth(1);
        let single = matches!(quote, Quote::Single | Quote::CurlySingle);
        before.is_some_and(|before| opens_quotation(before) || (single && before.is_alphabetic()))
    }

    /// Past white space and comments that end soon. One that holds a mark of the string may be a part of it.
    fn over_blanks(&self, mut at: usize, quote: Quote) -> Option<usize> {
        for _ in 0..4 {
            at = blank_end(self.text, at).0;
            let near = self.text.floor_char_boundary(at.saturating_add(LOOKAHEAD));
            match comment(self.text.get(..near)?, at) {
                None => return Some(at),
                Some(None) => return None,
                Some(Some(end)) => {
                    if quote.next_end(self.text.get(..end)?, at).is_some() {
                        return None;
                    }
                    at = end;
                }
            }
        }
        None
    }

    /// Whether there is white space between, and nothing else; after other values than texts anything will do.
    pub(super) fn is_apart(&self, from: usize, to: usize) -> bool {
        let gap = self.text.get(from..to).unwrap_or_default();
        let blank = !gap.is_empty() && gap.bytes().all(|byte| byte.is_ascii_whitespace());
        blank || (self.want == NextPart::Next && self.tape.last().is_some_and(|item| item.kind != Kind::Text))
    }

    /// Whether a key and its colon stand here, apart from what is before. A key without quotation marks must begin a line.
    pub(super) fn begins_member(&self, at: usize, before: usize) -> bool {
        let near = self.text.floor_char_boundary(at.saturating_add(LOOKAHEAD));
        let Some(text) = self.text.get(..near) else { return false };
        let end = match Quote::at(text, at) {
            Some((quote, length)) => match quote.next_end(text, at + length) {
                Some((close, closing)) if close > at + length => close + closing,
                _ => return false,
            },
            None => {
                let new_line = self.text.get(before..at).is_some_and(|gap| gap.contains('\n'));
                let end = bare_key_end(text, at);
                if end == at || !new_line {
                    return false;
                }
                end
            }
        };
        let (after, _) = blank_end(text, end);
        matches!(mark(text, after), Some((Mark::Colon | Mark::Arrow, ..)))
    }
}

/// Whether a quotation mark after this letter begins a quotation, if anything.
pub(super) fn opens_quotation(before: char) -> bool {
    before.is_whitespace() || matches!(before, '=' | '(' | '[' | '{' | ',' | ':' | '+')
}
