//! What is said about the arguments of a call: valid, repaired, or refused.
//!
//! Names of changes and defects are stable: they are logged, counted and sent to models. A refusal says where and why
//! in a bounded excerpt, so that it can be sent back. The excerpt itself is not redacted: a caller that shows one takes
//! [`Refusal::redacted_excerpt`], which also knows what the excerpt has cut in half.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use crate::redact::Redactor;

/// The longest excerpt, in bytes.
pub const MAX_EXCERPT_BYTES: usize = 80;

/// The most places that a refusal by the schema names.
pub const MAX_MISSES: usize = 8;

/// What is to be done with the text of a call's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub enum Verdict {
    /// Strict JSON, an object, no key twice, and the schema is satisfied: pass the text on unchanged, byte for byte.
    Valid,
    /// Exactly one reading existed.
    Repaired {
        /// The arguments as strict JSON.
        json: String,
        /// What was changed, in the order of the text.
        changes: Vec<Change>,
    },
    /// Nothing may be called with this.
    Refused(Refusal),
}

impl Verdict {
    /// The JSON to call the tool with, if it may be called.
    #[must_use]
    pub fn json<'a>(&'a self, text: &'a str) -> Option<&'a str> {
        match self {
            Self::Valid => Some(text),
            Self::Repaired { json, .. } => Some(json),
            Self::Refused(_) => None,
        }
    }

    /// The refusal, if it is one.
    #[must_use]
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// One change that made the text readable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What was done.
    pub what: ChangeKind,
    /// Where, in bytes of the text as it came. What was inside an encoded string has the place of that string.
    pub span: Range<usize>,
}

macro_rules! named {
    ($(#[$outer:meta])* $name:ident { $($(#[$meta:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$outer])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum $name { $($(#[$meta])* $variant),* }

        impl $name {
            /// Every one.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Stable name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

named! {
    /// What was done to make a text readable. None of them guesses: each has one outcome.
    ChangeKind {
        /// Text around the object was left out: prose, a fence, special tokens, a closed `<think>` block.
        OutsideDropped = "outside_dropped",
        /// White space that JSON does not know, or a literal `\n` between tokens.
        BlankDropped = "blank_dropped",
        /// A comment was left out.
        CommentDropped = "comment_dropped",
        /// A key without quotation marks.
        KeyQuoted = "key_quoted",
        /// A value of one word without quotation marks.
        WordQuoted = "word_quoted",
        /// Other quotation marks were read as `"`.
        QuotesChanged = "quotes_changed",
        /// Quotation marks inside a string were escaped.
        QuotesEscaped = "quotes_escaped",
        /// Raw control characters inside a string were escaped.
        ControlsEscaped = "controls_escaped",
        /// `\'` was read as an apostrophe.
        ApostropheUnescaped = "apostrophe_unescaped",
        /// Backslashes that begin no escape were kept as backslashes.
        BackslashesEscaped = "backslashes_escaped",
        /// A triple-quoted, raw or back-tick string.
        StringFormRead = "string_form_read",
        /// `"a" + "b"` became one string.
        StringsJoined = "strings_joined",
        /// Another separator was read as `:` or `,`.
        SeparatorRead = "separator_read",
        /// Another bracket, such as a full-width one, was read as one of JSON.
        BracketRead = "bracket_read",
        /// A missing colon between a key and a string was added.
        ColonAdded = "colon_added",
        /// A missing comma was added.
        CommaAdded = "comma_added",
        /// A comma too many was left out.
        CommaDropped = "comma_dropped",
        /// A literal of Python was read: `True`, `False`, `None`.
        LiteralRead = "literal_read",
        /// A tuple was read as an array.
        TupleRead = "tuple_read",
        /// A number in another notation: `+5`, `.5`, `5.`, `0x1F`, `1_000`.
        NumberRead = "number_read",
        /// A key that came twice with equal values was kept once.
        DuplicateDropped = "duplicate_dropped",
        /// The end of an object was added: everything that the schema declares was there.
        ObjectClosed = "object_closed",
        /// A closing bracket too many was left out.
        CloserDropped = "closer_dropped",
        /// A mark that was missing was added.
        MarkAdded = "mark_added",
        /// A mark too many was left out.
        MarkDropped = "mark_dropped",
        /// A mark was read as a related one: `]` as `}`, `=` as `:`.
        MarkExchanged = "mark_exchanged",
        /// The arguments were encoded in a string.
        StringUnwrapped = "string_unwrapped",
        /// The arguments were the one element of a list.
        ListUnwrapped = "list_unwrapped",
        /// The arguments were inside an envelope with name and arguments.
        EnvelopeUnwrapped = "envelope_unwrapped",
        /// The arguments were written as tags.
        MarkupRead = "markup_read",
        /// The arguments were written as a call, `f(key=1)`.
        CallRead = "call_read",
        /// Of several objects, the only one that satisfies the schema was kept.
        OthersDropped = "others_dropped",
        /// No text stands for no arguments.
        EmptyRead = "empty_read",
        /// Text became a number, as the schema demands.
        ToNumber = "to_number",
        /// Text became a boolean, as the schema demands.
        ToBoolean = "to_boolean",
        /// A number became text, as the schema demands.
        ToText = "to_text",
        /// One value became an array of one, as the schema demands.
        ToArray = "to_array",
        /// An array or object that was encoded in a string.
        Decoded = "decoded",
        /// The one value of an enum that differs only in case.
        EnumCase = "enum_case",
        /// A `null` of an optional property that may not be null was left out.
        NullDropped = "null_dropped",
    }
}

impl ChangeKind {
    /// Whether a mistake was mended; all others read a notation, or what the schema leaves no choice about.
    pub(super) const fn is_mend(self) -> bool {
        matches!(
            self,
            Self::QuotesEscaped
                | Self::ColonAdded
                | Self::CommaAdded
                | Self::ObjectClosed
                | Self::CloserDropped
                | Self::OthersDropped
                | Self::DuplicateDropped
                | Self::MarkAdded
                | Self::MarkDropped
                | Self::MarkExchanged
        )
    }

    /// Whether the schema demanded it; all others are about notation only.
    #[must_use]
    pub const fn is_typed(self) -> bool {
        matches!(
            self,
            Self::ToNumber
                | Self::ToBoolean
                | Self::ToText
                | Self::ToArray
                | Self::Decoded
                | Self::EnumCase
                | Self::NullDropped
        )
    }
}

named! {
    /// Why a text is refused.
    Defect {
        /// Not JSON, and no known notation either.
        Unreadable = "unreadable",
        /// It ends in the middle.
        Cut = "cut",
        /// The output limit ended it: ask for less, or for smaller pieces.
        CutByLimit = "cut_by_limit",
        /// It can be read in more than one way.
        Ambiguous = "ambiguous",
        /// A backslash that no single reading explains.
        BadEscape = "bad_escape",
        /// A number in a notation that has no single reading.
        BadNumber = "bad_number",
        /// A value is missing.
        MissingValue = "missing_value",
        /// A key comes twice with different values.
        DuplicateKey = "duplicate_key",
        /// Several objects follow each other.
        SeveralObjects = "several_objects",
        /// The arguments are no object.
        NotAnObject = "not_an_object",
        /// No text, where arguments are due.
        Empty = "empty",
        /// They are the arguments of another tool.
        OtherTool = "other_tool",
        /// The schema is not satisfied.
        Schema = "schema",
        /// Nested too deeply.
        TooDeep = "too_deep",
        /// Longer than allowed.
        TooLong = "too_long",
    }
}

/// Where in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Bytes before it.
    pub byte: usize,
    /// Line, from 1.
    pub line: usize,
    /// Character of the line, from 1.
    pub column: usize,
}

impl Position {
    /// The place of a byte.
    #[must_use]
    pub fn of(text: &str, byte: usize) -> Self {
        let byte = text.floor_char_boundary(byte);
        let before = text.get(..byte).unwrap_or_default();
        let line = memchr::memchr_iter(b'\n', before.as_bytes()).count() + 1;
        let last = before.rsplit('\n').next().unwrap_or_default();
        Self { byte, line, column: last.chars().count() + 1 }
    }
}

/// A place of the arguments that does not satisfy the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Miss {
    /// Pointer to the value, `/items/0/name`; empty for the arguments as a whole.
    pub path: String,
    /// What the schema demands there. Values of the arguments are not repeated.
    pub demand: String,
}

/// Why nothing may be called with a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What is wrong.
    pub defect: Defect,
    /// Where it was noticed.
    pub position: Position,
    /// The text around that place, at most [`MAX_EXCERPT_BYTES`] bytes. Not redacted, and it may hold half a secret that
    /// no redactor recognises: show [`Refusal::redacted_excerpt`].
    pub excerpt: String,
    /// What was expected, in words.
    pub reason: String,
    /// The places that do not satisfy the schema, at most [`MAX_MISSES`].
    pub misses: Vec<Miss>,
}

impl Refusal {
    /// The excerpt, fit to be shown: secrets are looked for in the whole text, not in the excerpt alone. `text` is what
    /// was refused.
    #[must_use]
    pub fn redacted_excerpt(&self, text: &str, redactor: &Redactor) -> String {
        redactor.excerpt_of(text, around(text, self.position.byte))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column, .. } = self.position;
        write!(formatter, "{}: {} (line {line}, column {column})", self.defect, self.reason)
    }
}

impl std::error::Error for Refusal {}

/// A refusal before it knows its text: what the readers return.
#[derive(Debug, Clone)]
pub(super) struct Stop {
    pub(super) defect: Defect,
    pub(super) at: usize,
    pub(super) why: Cow<'static, str>,
    pub(super) misses: Vec<Miss>,
}

impl Stop {
    pub(super) const fn new(defect: Defect, at: usize, why: &'static str) -> Self {
        Self { defect, at, why: Cow::Borrowed(why), misses: Vec::new() }
    }

    /// The same, for a reader of the text around this one.
    pub(super) fn inside(self, at: usize) -> Self {
        Self { at, ..self }
    }

    pub(super) fn refuse(self, text: &str) -> Refusal {
        Refusal {
            defect: self.defect,
            position: Position::of(text, self.at),
            excerpt: excerpt(text, self.at),
            reason: self.why.into_owned(),
            misses: self.misses,
        }
    }
}

fn excerpt(text: &str, at: usize) -> String {
    text.get(around(text, at)).unwrap_or_default().to_owned()
}

/// Half before the place, half after it.
fn around(text: &str, at: usize) -> Range<usize> {
    let half = MAX_EXCERPT_BYTES / 2;
    let from = text.ceil_char_boundary(at.min(text.len()).saturating_sub(half));
    from..text.floor_char_boundary(at.saturating_add(half)).max(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_stable_and_different() {
        let mut names: Vec<_> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
        names.extend(Defect::ALL.iter().map(|defect| defect.name()));
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn positions_count_lines_and_characters() {
        let text = "a\nあいb";
        assert_eq!(Position::of(text, 8), Position { byte: 8, line: 2, column: 3 });
        assert_eq!(Position::of(text, 3).byte, 2, "never inside a character");
        assert_eq!(Position::of(text, 99).byte, text.len());
    }

    #[test]
    fn excerpts_are_bounded() {
        let text = "あ".repeat(500);
        for at in 0..1500 {
            assert!(excerpt(&text, at).len() <= MAX_EXCERPT_BYTES);
        }
    }
}
