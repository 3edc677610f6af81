//! The endpoints of a target and their paths: made once per target, so that no request builds one.
//!
//! Model names come from clients and become part of paths here, so every special character is encoded. Where a provider does not have an
//! endpoint, there is no path, and it is not asked.

use http::uri::PathAndQuery;
use koboshi_wire::Dialect;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::http::upstream::Origin;

/// The characters that are encoded in a path.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a request asks of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interface {
    /// An answer, in this dialect.
    Generate(Dialect),
    /// Embeddings, as OpenAI has them.
    Embeddings,
    /// How many tokens a request in this dialect has.
    Count(Dialect),
}

impl Interface {
    /// The dialect of the request; embeddings have none.
    pub(crate) const fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Generate(dialect) | Self::Count(dialect) => Some(dialect),
            Self::Embeddings => None,
        }
    }
}

/// How a provider arranges its paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Layout {
    /// OpenAI's: everything under one address.
    Plain,
    /// The same without embeddings.
    Anthropic,
    /// Models are part of the path; the OpenAI-compatible paths are apart.
    Gemini,
    /// Under `/openai`; with a dated version, deployments are part of the path.
    Azure { version: Option<String> },
    /// Models are part of a project's path.
    Vertex { project: String, location: String },
}

/// The paths of one target; none where the provider has no such interface.
#[derive(Debug, Default)]
pub(crate) struct Paths {
    chat: Option<PathAndQuery>,
    responses: Option<PathAndQuery>,
    messages: Option<PathAndQuery>,
    gemini: Option<PathAndQuery>,
    /// The only dialect whose path differs for streams.
    gemini_stream: Option<PathAndQuery>,
    count_messages: Option<PathAndQuery>,
    count_responses: Option<PathAndQuery>,
    count_gemini: Option<PathAndQuery>,
    embeddings: Option<PathAndQuery>,
}

impl Paths {
    /// The paths of a model at a provider that speaks these dialects.
    pub(crate) fn of(origin: &Origin, layout: &Layout, dialects: &[Dialect], model: &str) -> Self {
        let Some(model) = in_path(model) else { return Self::default() };
        let made = |dialect: Dialect, path: String| {
            dialects.contains(&dialect).then(|| origin.path(&path)).flatten()
        };
        let openai = |interface: &str, by_deployment: bool| layout.openai(interface, &model, by_deployment);
        let gemini = |method: &str| layout.gemini(&model, method);
        Self {
            chat: made(Dialect::Chat, openai("/chat/completions", true)),
            responses: made(Dialect::Responses, openai("/responses", false)),
            count_responses: made(Dialect::Responses, openai("/responses/input_tokens", false)),
            messages: made(Dialect::Messages, "/messages".to_owned()),
            count_messages: made(Dialect::Messages, "/messages/count_tokens".to_owned()),
            gemini: made(Dialect::Gemini, gemini("generateContent")),
            gemini_stream: made(Dialect::Gemini, gemini("streamGenerateContent?alt=sse")),
            count_gemini: made(Dialect::Gemini, gemini("countTokens")),
            embeddings: match layout {
                Layout::Plain | Layout::Azure { .. } => origin.path(&openai("/embeddings", true)),
                Layout::Gemini => origin.path("/openai/embeddings"),
                Layout::Anthropic | Layout::Vertex { .. } => None,
            },
        }
    }

    /// The path of an endpoint, in the provider's own dialect.
    pub(crate) fn path(&self, interface: Interface, streams: bool) -> Option<&PathAndQuery> {
        match (interface, streams) {
            (Interface::Generate(Dialect::Chat), _) => self.chat.as_ref(),
            (Interface::Generate(Dialect::Responses), _) => self.responses.as_ref(),
            (Interface::Generate(Dialect::Messages), _) => self.messages.as_ref(),
            (Interface::Generate(Dialect::Gemini), false) => self.gemini.as_ref(),
            (Interface::Generate(Dialect::Gemini), true) => self.gemini_stream.as_ref(),
            (Interface::Count(Dialect::Messages), _) => self.count_messages.as_ref(),
            (Interface::Count(Dialect::Gemini), _) => self.count_gemini.as_ref(),
            (Interface::Count(Dialect::Responses), _) => self.count_responses.as_ref(),
            // This dialect has no token count.
            (Interface::Count(Dialect::Chat), _) => None,
            (Interface::Embeddings, _) => self.embeddings.as_ref(),
        }
    }
}

impl Layout {
    fn openai(&self, interface: &str, model: &str, by_deployment: bool) -> String {
        match self {
            Self::Azure { version: None } => format!("/openai/v1{interface}"),
            Self::Azure { version: Some(version) } if !is_dated(version) => {
                format!("/openai/v1{interface}?api-version={version}")
            }
            Self::Azure { version: Some(version) } if by_deployment => {
                format!("/openai/deployments/{model}{interface}?api-version={version}")
            }
            Self::Azure { version: Some(version) } => format!("/openai{interface}?api-version={version}"),
            _ => interface.to_owned(),
        }
    }

    fn gemini(&self, model: &str, method: &str) -> String {
        match self {
            Self::Vertex { project, location } => {
                format!("/projects/{project}/locations/{location}/publishers/google/models/{model}:{method}")
            }
            _ => format!("/models/{model}:{method}"),
        }
    }
}

/// `2024-10-21`, and not `preview` or `v1`, which are undated versions of the API.
fn is_dated(version: &str) -> bool {
    version.starts_with(|first: char| first.is_ascii_digit())
}

/// A model's name as a segment of a path; none for a name that a path would change.
fn in_path(model: &str) -> Option<String> {
    // As Google's own lists write it.
    let bare = model.strip_prefix("models/").unwrap_or(model);
    let moves = matches!(bare, "" | "." | "..");
    (!moves).then(|| utf8_percent_encode(bare, RESERVED).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(layout: &Layout, base: &str, model: &str, interface: Interface, streams: bool) -> Option<String> {
        let origin = Origin::parse(base).unwrap();
        let paths = Paths::of(&origin, layout, &Dialect::ALL, model);
        paths.path(interface, streams).map(ToString::to_string)
    }

    #[test]
    fn openais_paths_follow_the_base() {
        let at = |interface| path(&Layout::Plain, "https://h/v1/", "gpt/4o", interface, false);
        let talk = |dialect| at(Interface::Generate(dialect));
        assert_eq!(talk(Dialect::Chat).as_deref(), Some("/v1/chat/completions"));
        assert_eq!(talk(Dialect::Responses).as_deref(), Some("/v1/responses"));
        assert_eq!(talk(Dialect::Messages).as_deref(), Some("/v1/messages"));
        assert_eq!(at(Interface::Count(Dialect::Messages)).as_deref(), Some("/v1/messages/count_tokens"));
        assert_eq!(at(Interface::Count(Dialect::Responses)).as_deref(), Some("/v1/responses/input_tokens"));
        assert_eq!(at(Interface::Embeddings).as_deref(), Some("/v1/embeddings"));
        assert_eq!(at(Interface::Count(Dialect::Chat)), None, "this dialect has no token count");
    }

    #[test]
    fn geminis_paths_hold_the_model() {
        let base = "https://generativelanguage.googleapis.com/v1beta";
        let talk = Interface::Generate(Dialect::Gemini);
        for (model, streams, interface, wanted) in [
            ("gemini-2.5-pro", false, talk, "/v1beta/models/gemini-2.5-pro:generateContent"),
            ("gemini-2.5-pro", true, talk, "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"),
            (
                "models/gemini-3",
                false,
                Interface::Count(Dialect::Gemini),
                "/v1beta/models/gemini-3:countTokens",
            ),
            ("a/../b?c#d:e é", false, talk, "/v1beta/models/a%2F..%2Fb%3Fc%23d%3Ae%20%C3%A9:generateContent"),
            ("x", false, Interface::Embeddings, "/v1beta/openai/embeddings"),
        ] {
            let found = path(&Layout::Gemini, base, model, interface, streams);
            assert_eq!(found.as_deref(), Some(wanted), "{model}");
        }
    }

    #[test]
    fn azures_paths_hold_deployments_where_the_version_is_dated() {
        let at = |version: Option<&str>, interface, model: &str| {
            let layout = Layout::Azure { version: version.map(str::to_owned) };
            path(&layout, "https://r.openai.azure.com", model, interface, true).unwrap()
        };
        let (chat, responses) = (Interface::Generate(Dialect::Chat), Interface::Generate(Dialect::Responses));
        assert_eq!(at(None, chat, "mine"), "/openai/v1/chat/completions");
        assert_eq!(at(None, responses, "mine"), "/openai/v1/responses");
        assert_eq!(at(Some("preview"), responses, "mine"), "/openai/v1/responses?api-version=preview");
        let dated = Some("2024-10-21");
        assert_eq!(
            at(dated, chat, "my one"),
            "/openai/deployments/my%20one/chat/completions?api-version=2024-10-21"
        );
        assert_eq!(at(dated, responses, "mine"), "/openai/responses?api-version=2024-10-21");
        assert_eq!(
            at(dated, Interface::Embeddings, "e"),
            "/openai/deployments/e/embeddings?api-version=2024-10-21"
        );
    }

    #[test]
    fn vertexs_paths_hold_project_and_place() {
        let layout = Layout::Vertex { project: "p-1".to_owned(), location: "europe-west1".to_owned() };
        let at = |interface, streams| path(&layout, "https://h/v1", "gemini-3", interface, streams);
        let models = "/v1/projects/p-1/locations/europe-west1/publishers/google/models/gemini-3";
        let talk = Interface::Generate(Dialect::Gemini);
        assert_eq!(at(talk, false), Some(format!("{models}:generateContent")));
        assert_eq!(at(talk, true), Some(format!("{models}:streamGenerateContent?alt=sse")));
        assert_eq!(at(Interface::Count(Dialect::Gemini), false), Some(format!("{models}:countTokens")));
        assert_eq!(at(Interface::Embeddings, false), None);
    }

    #[test]
    fn a_name_cannot_lead_elsewhere() {
        let layout = Layout::Azure { version: Some("2024-10-21".to_owned()) };
        for model in ["", ".", "..", "models/.."] {
            assert_eq!(
                path(&layout, "https://h", model, Interface::Generate(Dialect::Chat), false),
                None,
                "{model}"
            );
        }
    }

    #[test]
    fn what_is_not_spoken_has_no_path() {
        let origin = Origin::parse("https://h/v1").unwrap();
        let paths = Paths::of(&origin, &Layout::Anthropic, &[Dialect::Messages], "claude");
        for (interface, there) in [
            (Interface::Generate(Dialect::Messages), true),
            (Interface::Generate(Dialect::Chat), false),
            (Interface::Generate(Dialect::Gemini), false),
            (Interface::Embeddings, false),
        ] {
            assert_eq!(paths.path(interface, false).is_some(), there, "{interface:?}");
        }
    }
}
