//! The endpoints of the gateway, as clients see them, and the vendor of a client.
//!
//! One list for the error of an unknown path, for `GET /` and for the test that compares it with what is really served
//! ([`endpoint`](crate::edge::endpoint::endpoint)). It does not affect requests that are served.

use http::header::USER_AGENT;
use koboshi_report::phrase::Lang;
use koboshi_wire::Dialect;
use koboshi_wire::http1::Fields;

use crate::observe::names;

/// The vendor for whose API a client was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Vendor {
    OpenAi,
    Anthropic,
    Gemini,
}

impl Vendor {
    pub(crate) const ALL: [Self; 3] = [Self::OpenAi, Self::Anthropic, Self::Gemini];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "OpenAI",
            Self::Anthropic => "Anthropic",
            Self::Gemini => "Gemini",
        }
    }

    /// The dialect of its errors.
    pub(crate) const fn dialect(self) -> Dialect {
        match self {
            Self::OpenAi => Dialect::Chat,
            Self::Anthropic => Dialect::Messages,
            Self::Gemini => Dialect::Gemini,
        }
    }

    /// The vendor of a client, if its path or headers show it. The path comes first: it is what the client relies on.
    pub(crate) fn of_client(path: &str, headers: &Fields) -> Option<Self> {
        Self::of_path(path).or_else(|| Self::of_headers(headers))
    }

    fn of_path(path: &str) -> Option<Self> {
        let path = path.strip_prefix("/upload").unwrap_or(path);
        if path.starts_with("/v1beta") {
            return Some(Self::Gemini);
        }
        let bare = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
        let first = bare.trim_start_matches('/').split('/').next().unwrap_or_default();
        match first {
            "messages" | "complete" => Some(Self::Anthropic),
            "chat" | "completions" | "responses" | "conversations" | "embeddings" | "images" | "audio"
            | "moderations" | "fine_tuning" | "assistants" | "threads" | "vector_stores" | "realtime"
            | "uploads" => Some(Self::OpenAi),
            _ => None,
        }
    }

    /// Only Anthropic's clients send a version, and only Google's have these headers. Keys alone say less: Anthropic's clients send
    /// `x-api-key`, and others a bearer token.
    pub(crate) fn of_headers(headers: &Fields) -> Option<Self> {
        let agent = headers.text(USER_AGENT).unwrap_or_default();
        let is =
            |known: &str| agent.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known));
        if headers.has(&names::ANTHROPIC_VERSION)
            || headers.has(&names::ANTHROPIC_BETA)
            || is("anthropic")
            || is("asyncanthropic")
            || is("claude-cli/")
        {
            Some(Self::Anthropic)
        } else if headers.has(&names::GOOGLE_KEY)
            || headers.has("x-goog-api-client")
            || is("google-genai-sdk/")
            || is("geminicli")
        {
            Some(Self::Gemini)
        } else if is("openai/") || is("asyncopenai/") || is("codex") {
            Some(Self::OpenAi)
        } else if headers.has(&names::API_KEY) {
            Some(Self::Anthropic)
        } else {
            None
        }
    }
}

/// The endpoints for clients of each vendor.
pub(crate) const SERVED: &[(Vendor, &str, &str)] = &[
    (Vendor::OpenAi, "POST", "/v1/chat/completions"),
    (Vendor::OpenAi, "POST", "/v1/responses"),
    (Vendor::OpenAi, "POST", "/v1/responses/input_tokens"),
    (Vendor::OpenAi, "POST", "/v1/embeddings"),
    (Vendor::OpenAi, "GET", "/v1/models"),
    (Vendor::Anthropic, "POST", "/v1/messages"),
    (Vendor::Anthropic, "POST", "/v1/messages/count_tokens"),
    (Vendor::Anthropic, "GET", "/v1/models"),
    (Vendor::Gemini, "POST", "/v1beta/models/MODEL:generateContent"),
    (Vendor::Gemini, "POST", "/v1beta/models/MODEL:streamGenerateContent"),
    (Vendor::Gemini, "POST", "/v1beta/models/MODEL:countTokens"),
    (Vendor::Gemini, "GET", "/v1beta/models"),
];

/// The endpoints for people and health checks.
pub(crate) const OWN: &[&str] = &[DASHBOARD, "/health", "/ready", "/metrics", OPENAPI];

/// The page for operators.
pub(crate) const DASHBOARD: &str = "/koboshi/";

/// The description of the admin API.
pub(crate) const OPENAPI: &str = "/koboshi/openapi.json";

/// A sentence with the endpoints of a vendor; of all vendors where the client's is unknown.
pub(crate) fn sentence(vendor: Option<Vendor>, lang: Lang) -> String {
    let (comma, semicolon) = if lang == Lang::Ja { ("、", "、") } else { (", ", "; ") };
    let of = |vendor: Vendor| {
        let paths = SERVED.iter().filter(|(served, ..)| *served == vendor);
        paths.map(|(_, method, path)| format!("{method} {path}")).collect::<Vec<_>>().join(comma)
    };
    match vendor {
        Some(vendor) => of(vendor),
        None => {
            let all = Vendor::ALL.map(|vendor| format!("{}: {}", vendor.name(), of(vendor)));
            all.join(semicolon)
        }
    }
}

/// The path without its second version, where it has two and only that is wrong: `base_url` ends with the version, and the client adds it
/// again.
pub(crate) fn without_doubled_version(path: &str) -> Option<String> {
    let versions = ["/v1beta", "/v1"];
    let rest = versions.iter().find_map(|version| path.strip_prefix(version))?;
    versions.iter().any(|version| rest.starts_with(&format!("{version}/"))).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use http::Method;

    use super::*;
    use crate::edge::endpoint::{Endpoint, endpoint};

    #[test]
    fn every_listed_endpoint_is_served() {
        let own = OWN.iter().map(|path| ("GET", *path));
        for (method, path) in SERVED.iter().map(|(_, method, path)| (*method, *path)).chain(own) {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let found = endpoint(&method, path, &Fields::default());
            assert!(
                !matches!(found, Endpoint::Nothing | Endpoint::WrongMethod(_)),
                "{method} {path}: {found:?}"
            );
        }
    }

    #[test]
    fn the_vendor_of_a_client_is_known_by_its_path_or_its_headers() {
        let none: &[(&str, &[u8])] = &[];
        for (path, headers, vendor) in [
            ("/v1/messages/batches", none, Some(Vendor::Anthropic)),
            ("/v1beta/models/m:embedContent", none, Some(Vendor::Gemini)),
            ("/upload/v1beta/files", none, Some(Vendor::Gemini)),
            ("/v1/images/generations", none, Some(Vendor::OpenAi)),
            ("/v1/files", none, None),
            ("/v1/files", &[("anthropic-version", b"2023-06-01")], Some(Vendor::Anthropic)),
            ("/v1/files", &[("user-agent", b"OpenAI/Python 2.1")], Some(Vendor::OpenAi)),
            ("/v1/files", &[("user-agent", b"Anthropic/JS 0.9")], Some(Vendor::Anthropic)),
            ("/v1/files", &[("user-agent", b"google-genai-sdk/1.2 gl-python/3")], Some(Vendor::Gemini)),
            ("/v1/files", &[("x-api-key", b"k")], Some(Vendor::Anthropic)),
            ("/v1/files", &[("x-goog-api-key", b"k")], Some(Vendor::Gemini)),
            ("/etc/passwd", &[("user-agent", b"curl/8")], None),
        ] {
            let headers = Fields::of(headers.iter().copied());
            assert_eq!(Vendor::of_client(path, &headers), vendor, "{path} {headers:?}");
        }
    }

    #[test]
    fn a_doubled_version_is_seen() {
        let near = |path| without_doubled_version(path);
        assert_eq!(near("/v1/v1/messages").as_deref(), Some("/v1/messages"));
        assert_eq!(near("/v1/v1beta/models/m:x").as_deref(), Some("/v1beta/models/m:x"));
        assert_eq!((near("/v1/messages"), near("/v1/v1"), near("/x/v1/v1/m")), (None, None, None));
    }
}
