//! What our own frames and answers are made of, in every dialect.

/// What all frames of one answer have in common.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// Id of the answer.
    pub id: String,
    /// The model that answers.
    pub model: String,
    /// When it began, in seconds since 1970.
    pub created: i64,
    /// The upstream's fingerprint, where it has one.
    pub fingerprint: Option<String>,
}

/// A tool call with all its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WholeCall<'a> {
    /// Its id.
    pub id: &'a str,
    /// Name of the tool.
    pub name: &'a str,
    /// The group that the tool stands in, for dialects that have groups.
    pub namespace: Option<&'a str>,
    /// The text of the arguments.
    pub arguments: &'a str,
    /// The tool takes free text: the arguments are that text, and no JSON.
    pub free_text: bool,
    /// The provider's signature of this call.
    pub signature: Option<&'a str>,
}
