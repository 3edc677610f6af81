//! The credential for a provider: a key in the header of its kind, or a bearer token that expires.
//!
//! Header values are made once and marked as sensitive; nothing here prints one.

use std::fmt;
use std::sync::Arc;

use http::HeaderValue;
use http::header::{AUTHORIZATION, HeaderName};
use koboshi_config::gateway::ProviderKind;

use crate::http::upstream::Writer;
use crate::http::upstream::interface::Interface;
use crate::observe::names;
use crate::route::token::{IssuedToken, Token};

/// The credential for a provider.
#[derive(Clone)]
pub(crate) enum Credential {
    /// None: local servers need no key.
    None,
    /// A key.
    Key(Key),
    /// A token that must be fetched and expires.
    Token(Arc<Token>),
}

/// A key and its header.
#[derive(Clone)]
pub(crate) struct Key {
    /// The header it goes into.
    header: &'static HeaderName,
    value: HeaderValue,
    /// The same as a bearer, for the provider's OpenAI-compatible endpoints; none where it is a bearer anyway.
    bearer: Option<HeaderValue>,
}

impl Credential {
    /// A key of ours for a provider of this kind; none if it cannot be a header value.
    pub(crate) fn key(kind: ProviderKind, key: &str) -> Option<Self> {
        if key.is_empty() {
            return None;
        }
        let bearer = bearer(key)?;
        let header = match kind {
            ProviderKind::Anthropic => &names::API_KEY,
            ProviderKind::Gemini => &names::GOOGLE_KEY,
            ProviderKind::Azure => &names::AZURE_KEY,
            _ => return Some(Self::Key(Key { header: &AUTHORIZATION, value: bearer, bearer: None })),
        };
        let mut value = HeaderValue::from_str(key).ok()?;
        value.set_sensitive(true);
        // Only this vendor has OpenAI-compatible endpoints beside its own.
        let bearer = (kind == ProviderKind::Gemini).then_some(bearer);
        Some(Self::Key(Key { header, value, bearer }))
    }

    /// A client's own key, `Bearer …`, for the vendor it was meant for. A token stays a bearer.
    pub(crate) fn borrowed(kind: ProviderKind, own: &HeaderValue) -> Self {
        let as_it_came = || Self::Key(Key { header: &AUTHORIZATION, value: own.clone(), bearer: None });
        let text = own.to_str().ok().and_then(|own| own.strip_prefix("Bearer "));
        match text {
            Some(key) if !is_token(key) => Self::key(kind, key).unwrap_or_else(as_it_came),
            _ => as_it_came(),
        }
    }

    /// Whether it is sent as a bearer, also where the kind has a header of its own for keys.
    pub(crate) fn is_bearer(&self) -> bool {
        match self {
            Self::None => false,
            Self::Key(key) => *key.header == AUTHORIZATION,
            Self::Token(_) => true,
        }
    }

    /// Writes the header for a request.
    pub(crate) fn write_header(
        &self,
        interface: Interface,
        issued: Option<&IssuedToken>,
        write_header: &mut Writer<'_>,
    ) {
        match (self, interface, issued) {
            (Self::Key(Key { bearer: Some(bearer), .. }), Interface::Embeddings, _) => {
                write_header(&AUTHORIZATION, bearer);
            }
            (Self::Key(key), ..) => write_header(key.header, &key.value),
            (Self::Token(_), _, Some(issued)) => write_header(&AUTHORIZATION, issued.bearer()),
            (Self::None | Self::Token(_), ..) => {}
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Key(_) => "Key(..)",
            Self::Token(_) => "Token(..)",
        })
    }
}

/// `Bearer …`, marked as sensitive.
pub(crate) fn bearer(token: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("Bearer {token}")).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// Whether a client's key is a login token of its vendor: Anthropic's, Google's, or a signed one like Microsoft's.
fn is_token(key: &str) -> bool {
    ["sk-ant-oat", "ya29.", "eyJ"].iter().any(|start| key.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi_wire::Dialect;

    fn header_of(credential: &Credential, interface: Interface) -> Option<(String, String)> {
        let mut found = None;
        credential.write_header(interface, None, &mut |name, value| {
            assert!(value.is_sensitive(), "{name}");
            found = Some((name.to_string(), value.to_str().unwrap().to_owned()));
        });
        found
    }

    const GENERATE: Interface = Interface::Generate(Dialect::Chat);

    #[test]
    fn every_kind_has_its_header() {
        for (kind, header, value) in [
            (ProviderKind::Openai, "authorization", "Bearer k"),
            (ProviderKind::Deepseek, "authorization", "Bearer k"),
            (ProviderKind::Ollama, "authorization", "Bearer k"),
            (ProviderKind::Azure, "api-key", "k"),
            (ProviderKind::Anthropic, "x-api-key", "k"),
            (ProviderKind::Gemini, "x-goog-api-key", "k"),
        ] {
            let credential = Credential::key(kind, "k").unwrap();
            assert_eq!(
                header_of(&credential, GENERATE),
                Some((header.to_owned(), value.to_owned())),
                "{kind:?}"
            );
            assert!(!format!("{credential:?}").contains('k'));
        }
        assert!(Credential::key(ProviderKind::Openai, "").is_none());
        assert!(Credential::key(ProviderKind::Openai, "a\nb").is_none());
        assert_eq!(header_of(&Credential::None, GENERATE), None);
    }

    #[test]
    fn geminis_copy_of_openai_wants_a_bearer() {
        let gemini = Credential::key(ProviderKind::Gemini, "k").unwrap();
        assert_eq!(header_of(&gemini, Interface::Embeddings).unwrap().1, "Bearer k");
        let azure = Credential::key(ProviderKind::Azure, "k").unwrap();
        assert_eq!(header_of(&azure, Interface::Embeddings).unwrap().0, "api-key");
    }

    #[test]
    fn a_clients_token_stays_a_bearer() {
        let header = |kind, key: &str| {
            header_of(&Credential::borrowed(kind, &bearer(key).unwrap()), GENERATE).unwrap()
        };
        assert_eq!(header(ProviderKind::Anthropic, "sk-ant-api03-x").0, "x-api-key");
        for (kind, token) in [
            (ProviderKind::Anthropic, "sk-ant-oat01-x"),
            (ProviderKind::Vertex, "ya29.x"),
            (ProviderKind::Gemini, "ya29.x"),
            (ProviderKind::Azure, "eyJhbGciOi.x.y"),
            (ProviderKind::Openai, "sk-x"),
        ] {
            let wanted = ("authorization".to_owned(), format!("Bearer {token}"));
            assert_eq!(header(kind, token), wanted, "{kind:?}");
        }
        assert_eq!(header(ProviderKind::Gemini, "AIza-x").0, "x-goog-api-key");
    }
}
