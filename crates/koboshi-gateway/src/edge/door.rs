//! What a request is for, read from its method and path; with and without a version before it.

use std::borrow::Cow;

use http::Method;
use koboshi_wire::Dialect;
use koboshi_wire::http1::Fields;
use koboshi_wire::http1::head::Head;
use memchr::memmem;
use percent_encoding::percent_decode_str;

use crate::reply::endpoints::Vendor;

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// Words, in this dialect.
    Talk(Dialect),
    /// How many tokens a request has.
    Count(Dialect),
    Embeddings,
    /// The models that can be asked for.
    Models(Dialect),
    /// One of them.
    Model(Dialect),
    Health,
    Ready,
    Metrics,
    Admin,
    /// A page asks whether it may call.
    Preflight,
    /// What the gateway is, for people who open its address.
    Root,
    /// There is something here, but not for this method: these are served.
    WrongMethod(&'static str),
    Nothing,
}

impl Door {
    /// What is spoken there.
    pub(crate) const fn dialect(self) -> Dialect {
        match self {
            Self::Talk(dialect) | Self::Count(dialect) | Self::Models(dialect) | Self::Model(dialect) => {
                dialect
            }
            _ => Dialect::Chat,
        }
    }

    /// Which interface is asked, as its vendor calls it: for the log.
    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Embeddings => "embeddings",
            Self::Count(Dialect::Messages) => "messages.count_tokens",
            Self::Count(Dialect::Gemini) => "countTokens",
            Self::Count(_) => "responses.input_tokens",
            Self::Talk(Dialect::Messages) => "messages",
            Self::Talk(Dialect::Responses) => "responses",
            Self::Talk(Dialect::Gemini) => "generateContent",
            _ => "chat.completions",
        }
    }

    /// What it is called in traces.
    pub(crate) const fn operation(self) -> &'static str {
        match self {
            Self::Embeddings => "embeddings",
            Self::Talk(Dialect::Gemini) => "generate_content",
            _ => "chat",
        }
    }
}

/// The door that a request comes to.
pub(crate) fn door(method: &Method, path: &str, headers: &Fields) -> Door {
    if path == "/koboshi" || path.starts_with("/koboshi/") {
        return Door::Admin;
    }
    let is_gemini = path.starts_with("/v1beta");
    let versions = ["/v1beta1", "/v1beta", "/v1"];
    let bare =
        versions.iter().find_map(|version| path.strip_prefix(version).filter(|rest| rest.starts_with('/')));
    // Only the bare root is one: `/v1/` is not.
    let (wanted, door) = match bare.filter(|rest| *rest != "/").unwrap_or(path).trim_end_matches('/') {
        "/chat/completions" => (Method::POST, Door::Talk(Dialect::Chat)),
        "/messages" => (Method::POST, Door::Talk(Dialect::Messages)),
        "/messages/count_tokens" => (Method::POST, Door::Count(Dialect::Messages)),
        "/responses" => (Method::POST, Door::Talk(Dialect::Responses)),
        "/responses/input_tokens" => (Method::POST, Door::Count(Dialect::Responses)),
        "/embeddings" => (Method::POST, Door::Embeddings),
        "/models" if is_gemini => (Method::GET, Door::Models(Dialect::Gemini)),
        "/models" => (Method::GET, Door::Models(lister(headers))),
        "" => (Method::GET, Door::Root),
        "/health" => (Method::GET, Door::Health),
        "/ready" => (Method::GET, Door::Ready),
        "/metrics" => (Method::GET, Door::Metrics),
        rest => match verb_of(rest) {
            Some("generateContent" | "streamGenerateContent") => (Method::POST, Door::Talk(Dialect::Gemini)),
            Some("countTokens") => (Method::POST, Door::Count(Dialect::Gemini)),
            // A name may have a colon in it, like those of Ollama; nobody gets with a verb.
            verb if rest.starts_with("/models/") && (verb.is_none() || *method != Method::POST) => {
                let dialect = if is_gemini { Dialect::Gemini } else { lister(headers) };
                (Method::GET, Door::Model(dialect))
            }
            _ => return Door::Nothing,
        },
    };
    if *method == wanted || (wanted == Method::GET && *method == Method::HEAD) {
        door
    } else if *method == Method::OPTIONS {
        Door::Preflight
    } else if wanted == Method::GET {
        Door::WrongMethod("GET, HEAD")
    } else {
        Door::WrongMethod("POST")
    }
}

/// Whose list of models a client expects. Google's newer clients ask at `/v1`, as the others do.
fn lister(headers: &Fields) -> Dialect {
    Vendor::of_headers(headers).map_or(Dialect::Chat, Vendor::dialect)
}

/// The model that a path names: all behind `/models/`, because names may hold slashes.
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

/// What is to be done with the model that a path names.
fn verb_of(path: &str) -> Option<&str> {
    let colon = memchr::memrchr(b':', path.as_bytes())?;
    memmem::find(path.as_bytes(), b"/models/").filter(|at| *at < colon)?;
    path.get(colon + 1..)
}

/// The model and the verb of a path like `/v1beta/models/gemini-2.5-flash:generateContent`.
pub(crate) fn called(path: &str) -> Option<(String, &str)> {
    let (name, verb) = path.rsplit_once(':')?;
    Some((model_in(name)?, verb))
}

/// Whether a stream is to be one JSON list: what Gemini's interface gives unless it is asked for events.
pub(crate) fn wants_list(door: Door, head: &Head) -> bool {
    door == Door::Talk(Dialect::Gemini)
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
            (Method::POST, "/v1/chat/completions", Door::Talk(Dialect::Chat)),
            (Method::POST, "/chat/completions", Door::Talk(Dialect::Chat)),
            (Method::POST, "/v1/chat/completions/", Door::Talk(Dialect::Chat)),
            (Method::GET, "/v1/models", Door::Models(Dialect::Chat)),
            (Method::GET, "/chat/completions", Door::WrongMethod("POST")),
            (Method::POST, "/v1/models", Door::WrongMethod("GET, HEAD")),
            (Method::GET, "/", Door::Root),
            (Method::GET, "/v1/", Door::Nothing),
            (Method::HEAD, "/health", Door::Health),
            (Method::OPTIONS, "/v1/chat/completions", Door::Preflight),
            (Method::GET, "/koboshi/targets", Door::Admin),
            (Method::POST, "/v1/messages", Door::Talk(Dialect::Messages)),
            (Method::POST, "/messages/count_tokens", Door::Count(Dialect::Messages)),
            (Method::POST, "/v1/responses", Door::Talk(Dialect::Responses)),
            (Method::POST, "/v1/responses/input_tokens", Door::Count(Dialect::Responses)),
            (Method::POST, "/v1beta/models/gemini-2.5-flash:generateContent", Door::Talk(Dialect::Gemini)),
            (Method::POST, "/v1beta/models/sim/ok:streamGenerateContent", Door::Talk(Dialect::Gemini)),
            (Method::POST, "/v1/models/m:countTokens", Door::Count(Dialect::Gemini)),
            (Method::GET, "/v1beta/models", Door::Models(Dialect::Gemini)),
            (Method::GET, "/v1beta/models/gemini-2.5-flash", Door::Model(Dialect::Gemini)),
            (Method::GET, "/v1/models/gpt-4o", Door::Model(Dialect::Chat)),
            (Method::GET, "/v1/models/qwen3:8b", Door::Model(Dialect::Chat)),
            (Method::POST, "/v1beta/models/m:embedContent", Door::Nothing),
            (Method::GET, "/v1", Door::Nothing),
            (Method::GET, "/koboshix", Door::Nothing),
        ] {
            assert_eq!(door(&method, path, &Fields::default()), wanted, "{method} {path}");
        }
    }
}
