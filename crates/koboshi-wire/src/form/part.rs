//! The parts of a turn.

use std::borrow::Cow;

use crate::dialect::Dialect;
use crate::step::owned;

/// One part of a turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Part<'a> {
    /// Text.
    Text(Cow<'a, str>),
    /// An image.
    Image(Image<'a>),
    /// A file or audio, given as data.
    Media(Media<'a>),
    /// A tool call, made by the model.
    Call(Call<'a>),
    /// What came back from a tool, in a turn of the user.
    Outcome(Outcome<'a>),
    /// What the model thought.
    Thought(Thought<'a>),
    /// The model's words of refusal.
    Refusal(Cow<'a, str>),
}

/// An image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Image<'a> {
    /// Its bytes, base64.
    Data {
        /// `image/png` and so on.
        media_type: Cow<'a, str>,
        /// The base64 text.
        data: Cow<'a, str>,
    },
    /// Where it can be fetched; never a `data:` URL, readers take those apart.
    Url(Cow<'a, str>),
}

/// A file or audio, given as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Media<'a> {
    /// `application/pdf`, `audio/wav` and so on.
    pub media_type: Cow<'a, str>,
    /// The base64 text.
    pub data: Cow<'a, str>,
    /// Name of the file, where it has one.
    pub name: Option<Cow<'a, str>>,
}

/// A tool call.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Call<'a> {
    /// Its id. Where the dialect has none, the reader makes one that is the same each time: `call_<number of the call>`.
    pub id: Cow<'a, str>,
    /// Name of the tool.
    pub name: Cow<'a, str>,
    /// The arguments as JSON text, as the model wrote them; never empty, `{}` where there are none. Free text is as it is.
    pub arguments: Cow<'a, str>,
    /// The tool takes free text.
    pub free_text: bool,
    /// Gemini signs calls too.
    pub signature: Option<Signature<'a>>,
}

/// What came back from a tool.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome<'a> {
    /// Id of the call.
    pub id: Cow<'a, str>,
    /// Name of the tool, where it is known. Readers of dialects that do not state it take it from the call.
    pub name: Option<Cow<'a, str>>,
    /// What came back: texts, images, media. A JSON object is its text.
    pub parts: Vec<Part<'a>>,
    /// Whether the tool failed, where the dialect states it.
    pub failed: Option<bool>,
    /// The call was one of free text.
    pub free_text: bool,
}

/// What the model thought.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Thought<'a> {
    /// The words, or a summary of them; empty where only the signature is given.
    pub text: Cow<'a, str>,
    /// The provider's signature.
    pub signature: Option<Signature<'a>>,
    /// The words are withheld and only the signature holds them: Anthropic's `redacted_thinking`.
    pub hidden: bool,
}

/// A provider's signature of a thought or a call, or the encrypted thought. Only the vendor that made it can read it, so
/// it is written for that dialect alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature<'a> {
    /// Whose it is.
    pub of: Dialect,
    /// Id of the item it belongs to, where the dialect has one.
    pub id: Option<Cow<'a, str>>,
    /// The opaque text.
    pub data: Cow<'a, str>,
}

impl Signature<'_> {
    /// Whether the vendor of this dialect made it.
    pub(crate) fn is_of(&self, dialect: Dialect) -> bool {
        self.of == dialect
    }

    /// The same, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Signature<'static> {
        Signature { of: self.of, id: owned(self.id), data: Cow::Owned(self.data.into_owned()) }
    }
}

impl Thought<'_> {
    /// The same, borrowing nothing.
    #[must_use]
    pub fn into_owned(self) -> Thought<'static> {
        Thought {
            text: Cow::Owned(self.text.into_owned()),
            signature: self.signature.map(Signature::into_owned),
            hidden: self.hidden,
        }
    }
}
