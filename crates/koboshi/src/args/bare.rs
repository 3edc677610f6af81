//! Values without quotation marks: literals of JSON and Python, numbers in several notations, single words.
//!
//! A word stands for itself. What another language would take for a value (`undefined`, `NaN`) is refused, and what could
//! be a boolean or a number is left for the schema to say.

use super::lexis::{Quote, is_word, token_end};
use super::number::{self, NumberReading};
use super::reader::{Enclosure, NextPart, Reader, stop};
use super::tape::{Form, Kind};
use super::verdict::{ChangeKind, Defect, Stop};

impl Reader<'_> {
    /// A value without quotation marks or brackets.
    pub(super) fn bare(&mut self) -> Result<(), Stop> {
        let end = token_end(self.text, self.at);
        let token = self.text.get(self.at..end).unwrap_or_default();
        if token.is_empty() {
            return Err(self.unexpected("a value is expected here"));
        }
        let whole = matches!(token, "true" | "false" | "null" | "True" | "False" | "None");
        if end >= self.text.len() && !whole {
            return Err(stop(Defect::Cut, end, "the text ends inside a value"));
        }
        if let Some((quote, length)) = Quote::at(self.text, end) {
            return self.prefixed(token, end, quote, length);
        }
        let span = self.at..end;
        let (kind, form, change) = self.token(token)?;
        self.tape.push(kind, form, span.start, span.end);
        if let Some(change) = change {
            self.worded = change == ChangeKind::WordQuoted;
            self.note(change, span);
        }
        self.at = end;
        self.want = NextPart::Next;
        Ok(())
    }

    fn token(&mut self, token: &str) -> Result<(Kind, Form, Option<ChangeKind>), Stop> {
        let literal = Some(ChangeKind::LiteralRead);
        Ok(match token {
            "true" => (Kind::True, Form::Plain, None),
            "false" => (Kind::False, Form::Plain, None),
            "null" => (Kind::Null, Form::Plain, None),
            "True" => (Kind::True, Form::Plain, literal),
            "False" => (Kind::False, Form::Plain, literal),
            "None" => (Kind::Null, Form::Plain, literal),
            _ if token.starts_with(|c: char| {
                c.is_numeric() || matches!(c, '+' | '-' | '.' | '－' | '−' | '．')
            }) =>
            {
                match number::read(token) {
                    NumberReading::Strict => (Kind::Number, Form::Plain, None),
                    NumberReading::Other(number) => {
                        let made = self.tape.make(number);
                        (Kind::Number, Form::Made(made), Some(ChangeKind::NumberRead))
                    }
                    NumberReading::Wide(number) => {
                        let made = self.tape.make(number);
                        (Kind::Number, Form::Wide(made), Some(ChangeKind::NumberRead))
                    }
                    NumberReading::Text => (Kind::Text, Form::Loose, Some(ChangeKind::WordQuoted)),
                    NumberReading::None => {
                        return Err(stop(Defect::BadNumber, self.at, "this is no number of JSON"));
                    }
                }
            }
            _ => {
                let called = self.frames.iter().any(|frame| frame.by == Enclosure::Call);
                if called || !is_word(token) || is_nothing(token) {
                    return Err(stop(Defect::Unreadable, self.at, "this word is no value of JSON"));
                }
                (Kind::Text, Form::Word, Some(ChangeKind::WordQuoted))
            }
        })
    }
}

/// Words that stand for a value in other languages, or for none.
pub(super) fn is_nothing(token: &str) -> bool {
    let lower = token.to_ascii_lowercase();
    matches!(
        lower.as_str(),
        "undefined" | "nan" | "infinity" | "inf" | "nil" | "none" | "null" | "na" | "n/a"
    )
}
