//! What a path asks for: which dialect, and which operation.
//!
//! The paths of the vendors themselves, and those under which Azure and Vertex offer the same: they are recognised by their ends, so that the
//! prefix before them does not matter.

use std::borrow::Cow;

use koboshi_wire::Dialect;

/// The endpoint of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint<'a> {
    /// Its dialect.
    pub dialect: Dialect,
    /// The operation.
    pub what: Operation,
    /// Whether a stream is wanted, where the path says it.
    pub stream: Option<bool>,
    /// Gemini without `alt=sse`: a stream is one JSON list.
    pub list: bool,
    /// The model, where the path names it; else the body does.
    pub model: Option<Cow<'a, str>>,
}

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// An answer: [`play`](crate::play).
    Answer,
    /// A count of tokens: [`count`](crate::count).
    Count,
    /// Vectors: [`embed`](crate::embed).
    Embed,
}

/// What this path, with its query, asks for; none where no endpoint is.
///
/// ```
/// use koboshi_sim::{Operation, endpoint};
/// use koboshi_wire::Dialect;
///
/// let found = endpoint("/v1beta/models/cut%3Fafter=3:streamGenerateContent?alt=sse").unwrap();
/// assert_eq!((found.dialect, found.what, found.stream), (Dialect::Gemini, Operation::Answer, Some(true)));
/// assert_eq!(found.model.as_deref(), Some("cut?after=3"));
/// assert_eq!(endpoint("/v1/messages/count_tokens?beta=true").unwrap().what, Operation::Count);
/// assert!(endpoint("/v1/models").is_none());
/// ```
#[must_use]
pub fn endpoint(path: &str) -> Option<Endpoint<'_>> {
    if let Some(endpoint) = by_verb(path) {
        return Some(endpoint);
    }
    let path = path.split('?').next().unwrap_or_default();
    let (dialect, what) =
        ENDS.iter().find_map(|(end, dialect, what)| path.ends_with(end).then_some((*dialect, *what)))?;
    Some(Endpoint { dialect, what, stream: None, list: false, model: deployment(path) })
}

/// The ends of paths; one that is the end of another stands behind it.
const ENDS: [(&str, Dialect, Operation); 6] = [
    ("/chat/completions", Dialect::Chat, Operation::Answer),
    ("/embeddings", Dialect::Chat, Operation::Embed),
    ("/responses/input_tokens", Dialect::Responses, Operation::Count),
    ("/responses", Dialect::Responses, Operation::Answer),
    ("/messages/count_tokens", Dialect::Messages, Operation::Count),
    ("/messages", Dialect::Messages, Operation::Answer),
];

/// Verbs behind a model in the path: Google's own, and Anthropic's models at Google.
const VERBS: [(&str, Dialect, Operation, bool); 5] = [
    (":generateContent", Dialect::Gemini, Operation::Answer, false),
    (":streamGenerateContent", Dialect::Gemini, Operation::Answer, true),
    (":countTokens", Dialect::Gemini, Operation::Count, false),
    (":rawPredict", Dialect::Messages, Operation::Answer, false),
    (":streamRawPredict", Dialect::Messages, Operation::Answer, true),
];

/// A name of ours may have a query of its own, so the verb is looked for first and what stands before it is the name.
fn by_verb(path: &str) -> Option<Endpoint<'_>> {
    let places = VERBS.iter().filter_map(|verb| Some((path.rfind(verb.0)?, verb)));
    let (at, (verb, dialect, what, streams)) = places.max_by_key(|(at, _)| *at)?;
    let rest = path.get(at + verb.len()..)?;
    let query = match rest.strip_prefix('?') {
        Some(query) => query,
        None if rest.is_empty() => "",
        None => return None,
    };
    let before = path.get(..at)?;
    let model = match before.rsplit_once("/models/") {
        Some((_, model)) => model,
        // A verb alone leaves it to the body.
        None => before.rsplit_once('/').map_or(before, |(_, model)| model),
    };
    let counts = dialect.counts_by_model_name() && model == "count-tokens";
    let is_sse = query.split('&').any(|pair| pair == "alt=sse");
    Some(Endpoint {
        dialect: *dialect,
        what: if counts { Operation::Count } else { *what },
        // Anthropic states it in the body too.
        stream: dialect.has_model_in_path().then_some(*streams),
        list: dialect.has_list_streams() && *streams && !is_sse,
        model: Some(model).filter(|model| !counts && !model.is_empty()).map(decoded),
    })
}

/// Azure's name of a model.
fn deployment(path: &str) -> Option<Cow<'_, str>> {
    let (_, rest) = path.split_once("/deployments/")?;
    rest.split('/').next().filter(|name| !name.is_empty()).map(decoded)
}

/// A part of a path with its escapes undone; one that is none stays.
fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|two| std::str::from_utf8(two).ok()).filter(|_| *first == b'%');
        match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = behind.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    Cow::Owned(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_vendors_path_has_its_endpoint() {
        let found = |path: &'static str| {
            let endpoint = endpoint(path).unwrap_or_else(|| panic!("{path}"));
            (
                endpoint.dialect,
                endpoint.what,
                endpoint.stream,
                endpoint.list,
                endpoint.model.map(Cow::into_owned),
            )
        };
        let plain = |dialect, what| (dialect, what, None, false, None);
        let model = || Some("ok".to_owned());
        let google = |stream, list| (Dialect::Gemini, Operation::Answer, Some(stream), list, model());
        for (path, endpoint) in [
            ("/v1/chat/completions", plain(Dialect::Chat, Operation::Answer)),
            ("/v1/responses?x=1", plain(Dialect::Responses, Operation::Answer)),
            ("/openai/v1/responses", plain(Dialect::Responses, Operation::Answer)),
            ("/v1/responses/input_tokens", plain(Dialect::Responses, Operation::Count)),
            ("/v1/messages?beta=true", plain(Dialect::Messages, Operation::Answer)),
            ("/v1/messages/count_tokens", plain(Dialect::Messages, Operation::Count)),
            ("/v1/embeddings", plain(Dialect::Chat, Operation::Embed)),
            (
                "/openai/deployments/ok/chat/completions?api-version=2024-10-21",
                (Dialect::Chat, Operation::Answer, None, false, model()),
            ),
            ("/v1beta/models/ok:generateContent", google(false, false)),
            ("/v1beta/models/ok:streamGenerateContent", google(true, true)),
            ("/v1beta/models/ok:streamGenerateContent?alt=sse", google(true, false)),
            (
                "/v1/projects/p/locations/us/publishers/google/models/ok:streamGenerateContent?key=k&alt=sse",
                google(true, false),
            ),
            (":streamGenerateContent?alt=sse", (Dialect::Gemini, Operation::Answer, Some(true), false, None)),
            ("/v1/models/ok:countTokens", (Dialect::Gemini, Operation::Count, Some(false), false, model())),
            (
                "/v1/projects/p/locations/us/publishers/anthropic/models/ok:streamRawPredict",
                (Dialect::Messages, Operation::Answer, None, false, model()),
            ),
            (
                "/v1/projects/p/locations/us/publishers/anthropic/models/count-tokens:rawPredict",
                plain(Dialect::Messages, Operation::Count),
            ),
            (
                "/v1beta/models/cut?after=3:generateContent",
                (Dialect::Gemini, Operation::Answer, Some(false), false, Some("cut?after=3".to_owned())),
            ),
        ] {
            assert_eq!(found(path), endpoint, "{path}");
        }
        for path in ["/v1/models", "", "/v1beta/models/ok:generateContentX", "/v1/messagesx"] {
            assert_eq!(endpoint(path), None, "{path}");
        }
    }

    #[test]
    fn escapes_are_undone_and_what_is_none_stays() {
        assert_eq!(decoded("a%3Fb%3d%e5%BD%a2"), "a?b=形");
        assert_eq!(decoded("100%%zz%4"), "100%%zz%4");
    }
}
