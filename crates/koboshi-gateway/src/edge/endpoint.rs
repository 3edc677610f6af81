//! Which endpoint a request is for, by its method and path, with and without a version.

use std::borrow::Cow;

use http::Method;
use koboshi_wire::Dialect;
use koboshi_wire::http1::Fields;
use koboshi_wire::http1::head::Head;
use memchr::memmem;
use percent_encoding::percent_decode_str;

use crate::admin::paths::ROOT;
use crate::edge::{chat, dashboard};
use crate::reply::endpoints::Vendor;

/// An endpoint of the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A generation, in this dialect.
    Generate(Dialect),
    /// A token count of a request.
    Count(Dialect),
    Embeddings,
    /// A conversation over WebSocket.
    Session,
    /// A ticket for one.
    SessionTicket,
    /// The list of models.
    Models(Dialect),
    /// One model.
    Model(Dialect),
    Health,
    Ready,
    Metrics,
    Admin,
    /// The preflight request of a web page.
    Preflight,
    /// A page about the gateway, for people who open its address.
    Root,
    /// A file of the chat page.
    ChatPage,
    /// A file of the dashboard.
    Dashboard,
    /// The path exists, but not with this method; these are allowed.
    WrongMethod(&'static str),
    Nothing,
}

impl Endpoint {
    /// The dialect of the endpoint.
    pub(crate) const fn dialect(self) -> Dialect {
        match self {
            Self::Generate(dialect) | Self::Count(dialect) | Self::Models(dialect) | Self::Model(dialect) => {
                dialect
            }
            _ => Dialect::Chat,
        }
    }

    /// The endpoint as its vendor calls it, for the log.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Embeddings => "embeddings",
            Self::Count(dialect) => match dialect {
                Dialect::Messages => "messages.count_tokens",
                Dialect::Gemini => "countTokens",
                Dialect::Chat | Dialect::Responses => "responses.input_tokens",
            },
            Self::Generate(dialect) => match dialect {
                Dialect::Chat => "chat.completions",
                Dialect::Messages => "messages",
                Dialect::Responses => "responses",
                Dialect::Gemini => "generateContent",
            },
            _ => Self::Generate(Dialect::Chat).method(),
        }
    }

    /// The operation name in traces.
    pub(crate) const fn operation(self) -> &'static str {
        match self {
            Self::Embeddings => "embeddings",
            Self::Generate(dialect) => match dialect {
                Dialect::Gemini => "generate_content",
                Dialect::Chat | Dialect::Responses | Dialect::Messages => "chat",
            },
            _ => Self::Generate(Dialect::Chat).operation(),
        }
    }
}

/// Whether a path belongs to operators.
pub(crate) fn is_operators(path: &str) -> bool {
    path.strip_prefix(ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The endpoint of a request.
pub(crate) fn endpoint(method: &Method, path: &str, headers: &Fields) -> Endpoint {
    if is_operators(path) {
        let is_page = dashboard::has(path) && matches!(*method, Method::GET | Method::HEAD);
        return if is_page { Endpoint::Dashboard } else { Endpoint::Admin };
    }
    if chat::has(path) {
        return if matches!(*method, Method::GET | Method::HEAD) {
            Endpoint::ChatPage
        } else {
            Endpoint::WrongMethod("GET, HEAD")
        };
    }
    let is_gemini = path.starts_with("/v1beta");
    let versions = ["/v1beta1", "/v1beta", "/v1"];
    let bare =
        versions.iter().find_map(|version| path.strip_prefix(version).filter(|rest| rest.starts_with('/')));
    // Only the bare root is an endpoint: `/v1/` is not.
    let (wanted, endpoint) = match bare.filter(|rest| *rest != "/").unwrap_or(path).trim_end_matches('/') {
        "/chat/completions" => (Method::POST, Endpoint::Generate(Dialect::Chat)),
        "/messages" => (Method::POST, Endpoint::Generate(Dialect::Messages)),
        "/messages/count_tokens" => (Method::POST, Endpoint::Count(Dialect::Messages)),
        "/responses" => (Method::POST, Endpoint::Generate(Dialect::Responses)),
        "/responses/input_tokens" => (Method::POST, Endpoint::Count(Dialect::Responses)),
        "/embeddings" => (Method::POST, Endpoint::Embeddings),
        "/session" | "/ws" => (Method::GET, Endpoint::Session),
        "/session/ticket" => (Method::POST, Endpoint::SessionTicket),
        "/models" if is_gemini => (Method::GET, Endpoint::Models(Dialect::Gemini)),
        "/models" => (Method::GET, Endpoint::Models(lister(headers))),
        "" => (Method::GET, Endpoint::Root),
        "/health" => (Method::GET, Endpoint::Health),
        "/ready" => (Method::GET, Endpoint::Ready),
        "/metrics" => (Method::GET, Endpoint::Metrics),
        rest => match verb_of(rest) {
            Some("generateContent" | "streamGenerateContent") => {
                (Method::POST, Endpoint::Generate(Dialect::Gemini))
            }
            Some("countTokens") => (Method::POST, Endpoint::Count(Dialect::Gemini)),
            // A name may contain a colon, as Ollama's do; a GET never has a verb.
            verb if rest.starts_with("/models/") && (verb.is_none() || *method != Method::POST) => {
                let dialect = if is_gemini { Dialect::Gemini } else { lister(headers) };
                (Method::GET, Endpoint::Model(dialect))
            }
            _ => return Endpoint::Nothing,
        },
    };
    if *method == wanted || (wanted == Method::GET && *method == Method::HEAD) {
        endpoint
    } else if *method == Method::OPTIONS {
        Endpoint::Preflight
    } else if wanted == Method::GET {
        Endpoint::WrongMethod("GET, HEAD")
    } else {
        Endpoint::WrongMethod("POST")
    }
}

/// Which vendor's list of models a client expects. Google's newer clients ask at `/v1`, as the others do.
fn lister(headers: &Fields) -> Dialect {
    Vendor::of_headers(headers).map_or(Dialect::Chat, Vendor::dialect)
}

/// The model that a path names: everything after `/models/`, because names may contain slashes.
pub(crate) fn model_in(path: &str) -> Option<String> {
    const BEFORE: &[u8] = b"/models/";
    let rest = path.get(memmem::find(path.as_bytes(), BEFORE)? + BEFORE.len()..)?;
    let rest = rest.trim_end_matches('/');
    let name = match memchr::memchr(b'%', rest.as_bytes()) {
        None => Cow::Borrowed(rest),
        Some(_) => percent_decode_str(rest).decode_utf8().ok()?,
    };
    (!name.is_empty()).then(|| name.into_owned())
}

/// The verb after the model that a path names.
fn verb_of(path: &str) -> Option<&str> {
    let colon = memchr::memrchr(b':', path.as_bytes())?;
    memmem::find(path.as_bytes(), b"/models/").filter(|at| *at < colon)?;
    path.get(colon + 1..)
}

/// The model and the verb of a path like `/v1beta/models/gemini-2.5-flash:generateContent`.
pub(crate) fn model_and_verb(path: &str) -> Option<(String, &str)> {
    let (name, verb) = path.rsplit_once(':')?;
    Some((model_in(name)?, verb))
}

/// Whether a stream is to be one JSON list: Gemini's API sends that unless the client asks for events.
pub(crate) fn wants_list(endpoint: Endpoint, head: &Head) -> bool {
    let has_list_streams = matches!(endpoint, Endpoint::Generate(dialect) if dialect.has_list_streams());
    has_list_streams
        && head.path().ends_with(":streamGenerateContent")
        && !form_urlencoded::parse(head.query().as_bytes())
            .any(|(name, value)| name == "alt" && value == "sse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_found_with_and_without_the_version() {
        for (method, path, wanted) in [
            (Method::POST, "/v1/chat/completions", Endpoint::Generate(Dialect::Chat)),
            (Method::POST, "/chat/completions", Endpoint::Generate(Dialect::Chat)),
            (Method::POST, "/v1/chat/completions/", Endpoint::Generate(Dialect::Chat)),
            (Method::GET, "/v1/models", Endpoint::Models(Dialect::Chat)),
            (Method::GET, "/chat/completions", Endpoint::WrongMethod("POST")),
            (Method::POST, "/v1/models", Endpoint::WrongMethod("GET, HEAD")),
            (Method::GET, "/", Endpoint::Root),
            (Method::GET, "/v1/", Endpoint::Nothing),
            (Method::HEAD, "/health", Endpoint::Health),
            (Method::OPTIONS, "/v1/chat/completions", Endpoint::Preflight),
            (Method::GET, "/koboshi/targets", Endpoint::Admin),
            (Method::GET, "/koboshi/", Endpoint::Dashboard),
            (Method::GET, "/koboshi", Endpoint::Dashboard),
            (Method::POST, "/koboshi/", Endpoint::Admin),
            (Method::GET, "/koboshi/dashboard.js", Endpoint::Dashboard),
            (Method::POST, "/v1/messages", Endpoint::Generate(Dialect::Messages)),
            (Method::POST, "/messages/count_tokens", Endpoint::Count(Dialect::Messages)),
            (Method::POST, "/v1/responses", Endpoint::Generate(Dialect::Responses)),
            (Method::POST, "/v1/responses/input_tokens", Endpoint::Count(Dialect::Responses)),
            (
                Method::POST,
                "/v1beta/models/gemini-2.5-flash:generateContent",
                Endpoint::Generate(Dialect::Gemini),
            ),
            (
                Method::POST,
                "/v1beta/models/sim/ok:streamGenerateContent",
                Endpoint::Generate(Dialect::Gemini),
            ),
            (Method::POST, "/v1/models/m:countTokens", Endpoint::Count(Dialect::Gemini)),
            (Method::GET, "/v1beta/models", Endpoint::Models(Dialect::Gemini)),
            (Method::GET, "/v1beta/models/gemini-2.5-flash", Endpoint::Model(Dialect::Gemini)),
            (Method::GET, "/v1/models/gpt-4o", Endpoint::Model(Dialect::Chat)),
            (Method::GET, "/v1/models/qwen3:8b", Endpoint::Model(Dialect::Chat)),
            (Method::POST, "/v1beta/models/m:embedContent", Endpoint::Nothing),
            (Method::GET, "/v1", Endpoint::Nothing),
            (Method::GET, "/koboshix", Endpoint::Nothing),
        ] {
            assert_eq!(endpoint(&method, path, &Fields::default()), wanted, "{method} {path}");
        }
    }
}
