//! JSON as an automaton whose state is one small value, so that the search can go on from any place of a text, after any edit.
//!
//! It knows the structure only: what stands between the marks is checked on the whole result, by `strict` or by the readers. In the notation
//! [`Notation::Any`] it takes what the readers take as well, and somewhat more: other quotation marks, words without them, a comma before the
//! end, full-width marks, text around the object. What it takes too much is refused by the readers, so it needs to be no reader itself.

use super::lexis::{Quote, is_odd_blank};

/// The deepest nesting: one bit for each open bracket.
const MAX_DEPTH: u8 = 127;

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Expect {
    Value,
    /// A value, or the end of an array that has none yet.
    FirstValue,
    Key,
    /// A key, or the end of an object that has none yet.
    FirstKey,
    Colon,
    /// A comma, or the end of what is open.
    Separator,
    /// Inside a string; whether it is a key.
    Text {
        is_key: bool,
    },
    /// Behind the backslash of an escape.
    Escape {
        is_key: bool,
    },
    /// Inside a number or a word such as `true`; whether it is a key.
    Scalar {
        is_key: bool,
    },
    /// Behind the end of the object.
    Nothing,
}

/// Which texts are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Notation {
    Json,
    /// What the readers may understand.
    Any,
}

/// The state between two letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) expect: Expect,
    notation: Notation,
    /// What encloses the string that is open.
    quote: Quote,
    /// A bit for each open bracket: set for an object.
    open: u128,
    depth: u8,
}

impl State {
    pub(super) const fn start(notation: Notation) -> Self {
        Self { expect: Expect::Value, notation, quote: Quote::Straight, open: 0, depth: 0 }
    }

    pub(super) const fn is_over(self) -> bool {
        matches!(self.expect, Expect::Nothing)
    }

    pub(super) const fn is_in_string(self) -> bool {
        matches!(self.expect, Expect::Text { .. } | Expect::Escape { .. })
    }

    /// Whether the object has begun.
    pub(super) const fn is_inside(self) -> bool {
        self.depth > 0
    }

    /// Whether this mark ends the string that is open.
    pub(super) fn is_ended_by(self, mark: char) -> bool {
        self.is_in_string() && self.quote.is_ended_by(mark)
    }

    /// Whether the innermost open bracket is an array's.
    pub(super) const fn is_in_array(self) -> bool {
        self.depth > 0 && self.open & 1 == 0
    }

    const fn then(self, expect: Expect) -> Self {
        Self { expect, ..self }
    }

    fn opened(self, is_object: bool) -> Option<Self> {
        // The arguments of a call are one object.
        if self.depth >= MAX_DEPTH || (self.depth == 0 && !is_object) {
            return None;
        }
        let expect = if is_object { Expect::FirstKey } else { Expect::FirstValue };
        Some(Self { expect, open: self.open << 1 | u128::from(is_object), depth: self.depth + 1, ..self })
    }

    fn closed(self, is_object: bool) -> Option<Self> {
        if self.depth == 0 || self.is_in_array() == is_object {
            return None;
        }
        let depth = self.depth - 1;
        let expect = if depth == 0 { Expect::Nothing } else { Expect::Separator };
        Some(Self { expect, open: self.open >> 1, depth, ..self })
    }

    fn string(self, quote: Quote, is_key: bool) -> Self {
        Self { quote, ..self.then(Expect::Text { is_key }) }
    }

    /// The quotation mark that a letter is here.
    fn quote(self, letter: char) -> Option<Quote> {
        match self.notation {
            Notation::Json => (letter == '"').then_some(Quote::Straight),
            Notation::Any => Quote::of(letter),
        }
    }

    /// The state behind one more letter; none if it cannot stand here.
    pub(super) fn step(self, letter: char) -> Option<Self> {
        let any = self.notation == Notation::Any;
        match self.expect {
            Expect::Text { is_key } => match letter {
                '"' if self.quote == Quote::Straight => Some(self.after_text(is_key)),
                '\\' => Some(self.then(Expect::Escape { is_key })),
                '\0'..='\x1f' if !any => None,
                _ if self.quote != Quote::Straight && self.quote.is_ended_by(letter) => {
                    Some(self.after_text(is_key))
                }
                _ => Some(self),
            },
            Expect::Escape { is_key } => {
                let is_legal = matches!(letter, '"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't' | 'u');
                (any || is_legal).then(|| self.then(Expect::Text { is_key }))
            }
            Expect::Scalar { .. } if letter.is_ascii_alphanumeric() || matches!(letter, '+' | '-' | '.') => {
                Some(self)
            }
            Expect::Scalar { .. } if any && is_in_word(letter) => Some(self),
            Expect::Scalar { is_key } => self.after_text(is_key).step(letter),
            // Text before the object.
            Expect::Value if any && self.depth == 0 && letter != '{' => Some(self),
            Expect::Nothing if any => {
                let is_structure = matches!(letter, '{' | '[' | ':' | ',') || Quote::of(letter).is_some();
                (!is_structure || letter == '`').then_some(self)
            }
            _ if matches!(letter, ' ' | '\t' | '\r' | '\n') || any && is_odd_blank(letter) => Some(self),
            Expect::Value | Expect::FirstValue => match letter {
                '{' => self.opened(true),
                '[' => self.opened(false),
                ']' if any || self.expect == Expect::FirstValue => self.closed(false),
                _ if self.depth == 0 => None,
                '-' | '0'..='9' | 't' | 'f' | 'n' => Some(self.then(Expect::Scalar { is_key: false })),
                _ => match self.quote(letter) {
                    Some(quote) => Some(self.string(quote, false)),
                    None => (any && is_in_word(letter)).then(|| self.then(Expect::Scalar { is_key: false })),
                },
            },
            Expect::Key | Expect::FirstKey => match letter {
                '}' if any || self.expect == Expect::FirstKey => self.closed(true),
                _ => match self.quote(letter) {
                    Some(quote) => Some(self.string(quote, true)),
                    None => (any && is_in_word(letter)).then(|| self.then(Expect::Scalar { is_key: true })),
                },
            },
            Expect::Colon => match letter {
                ':' => Some(self.then(Expect::Value)),
                '=' | '＝' | '：' if any => Some(self.then(Expect::Value)),
                _ => None,
            },
            Expect::Separator => match letter {
                ',' => Some(self.after_comma()),
                '，' | '、' | ';' | '；' if any => Some(self.after_comma()),
                '}' => self.closed(true),
                ']' => self.closed(false),
                _ => None,
            },
            Expect::Nothing => None,
        }
    }

    const fn after_text(self, is_key: bool) -> Self {
        self.then(if is_key { Expect::Colon } else { Expect::Separator })
    }

    const fn after_comma(self) -> Self {
        self.then(if self.is_in_array() { Expect::Value } else { Expect::Key })
    }
}

/// Letters of words without quotation marks, of numbers in any notation and of names.
fn is_in_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '/' | '@' | '~' | '+' | '$')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(text: &str) -> Option<State> {
        text.chars().try_fold(State::start(Notation::Json), State::step)
    }

    #[test]
    fn whole_objects_end_and_others_do_not() {
        for text in [r#"{}"#, r#" {"a": [1, {"b": "}\"]"}], "c": true} "#, r#"{"a":[[],{}]}"#] {
            assert!(end(text).is_some_and(State::is_over), "{text}");
        }
        for text in ["[]", "1", "{]", r#"{"a" 1}"#, r#"{"a":1,}"#, r#"{"a":[1,]}"#, "{}}", r#"{"a":"\x"}"#] {
            assert!(end(text).is_none(), "{text}");
        }
        for text in ["{", r#"{"a"#, r#"{"a":[1]"#] {
            assert!(end(text).is_some_and(|state| !state.is_over()), "{text}");
        }
    }

    #[test]
    fn other_notations_are_taken_only_where_they_are_asked_for() {
        for text in [
            "{'a': True,}", "{a: b, c: [1, 2,]}", "Here: {“a”：‘x’； b = 1_000} done",
            "```json\n{\"a\": 1}\n```",
        ] {
            let any = text.chars().try_fold(State::start(Notation::Any), State::step);
            assert!(any.is_some_and(State::is_over), "{text}");
            assert!(!end(text).is_some_and(State::is_over), "{text}");
        }
    }

    #[test]
    fn nesting_has_an_end() {
        assert!(end(&format!("{{\"a\":{}", "[".repeat(126))).is_some());
        assert!(end(&format!("{{\"a\":{}", "[".repeat(127))).is_none());
    }
}
