//! The address of a provider: scheme, host, port and the path before every endpoint.

use std::fmt;
use std::sync::Arc;

use http::uri::{PathAndQuery, Scheme};
use http::{HeaderValue, Uri};

use super::trust::Trust;

/// The address of a provider, checked once.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    inner: Arc<Inner>,
}

impl PartialEq for Origin {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner) || self.inner == other.inner
    }
}

impl Eq for Origin {}

#[derive(Debug, PartialEq, Eq)]
struct Inner {
    secure: bool,
    host: String,
    port: u16,
    /// The value of `Host`.
    authority: HeaderValue,
    /// The path before every endpoint, without a trailing slash.
    prefix: String,
    /// The certificate authority of its own, if it has one.
    trust: Option<Trust>,
}

/// Why an address cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OriginError {
    #[error("{0:?} is no address: write it like https://api.example.com/v1")]
    NotAnAddress(String),
    #[error("{0:?} must not hold a user name or password: keys go to `keys`")]
    UserInfo(String),
    #[error("{0:?} must not hold a query")]
    Query(String),
}

impl Origin {
    /// Reads a base URL.
    pub(crate) fn parse(text: &str) -> Result<Self, OriginError> {
        let wrong = || OriginError::NotAnAddress(shown(text));
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let secure = match uri.scheme() {
            Some(scheme) if *scheme == Scheme::HTTPS => true,
            Some(scheme) if *scheme == Scheme::HTTP => false,
            _ => return Err(wrong()),
        };
        let authority = uri.authority().ok_or_else(wrong)?;
        if authority.as_str().contains('@') {
            return Err(OriginError::UserInfo(shown(text)));
        }
        if uri.query().is_some() {
            return Err(OriginError::Query(shown(text)));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(wrong());
        }
        let prefix = uri.path().trim_end_matches('/').to_owned();
        let inner = Inner {
            secure,
            host,
            port: authority.port_u16().unwrap_or(if secure { 443 } else { 80 }),
            authority: HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?,
            prefix,
            trust: None,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// The same address, with a certificate authority of its own.
    #[must_use]
    pub(crate) fn trusting(self, trust: Trust) -> Self {
        let Inner { secure, host, port, authority, prefix, .. } = &*self.inner;
        let inner = Inner {
            secure: *secure,
            host: host.clone(),
            port: *port,
            authority: authority.clone(),
            prefix: prefix.clone(),
            trust: Some(trust),
        };
        Self { inner: Arc::new(inner) }
    }

    pub(crate) fn trust(&self) -> Option<&Trust> {
        self.inner.trust.as_ref()
    }

    pub(crate) fn is_secure(&self) -> bool {
        self.inner.secure
    }

    pub(crate) fn host(&self) -> &str {
        &self.inner.host
    }

    pub(crate) fn port(&self) -> u16 {
        self.inner.port
    }

    pub(crate) fn authority(&self) -> &HeaderValue {
        &self.inner.authority
    }

    /// Whether it is this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        let host = self.host();
        host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }

    /// The path of an endpoint, such as `/chat/completions`. Built on each call: frequent callers keep it.
    pub(crate) fn path(&self, interface: &str) -> Option<PathAndQuery> {
        PathAndQuery::try_from(format!("{}{interface}", self.inner.prefix)).ok()
    }

    /// The same with scheme and host, as proxies need it.
    pub(crate) fn absolute(&self, path: &PathAndQuery) -> Option<Uri> {
        let scheme = if self.is_secure() { "https" } else { "http" };
        let authority = self.authority().to_str().ok()?;
        Uri::builder().scheme(scheme).authority(authority).path_and_query(path.clone()).build().ok()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure() { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.inner.authority.to_str().unwrap_or_default(), self.inner.prefix)
    }
}

/// An address as it may be shown: what precedes an `@` may be a password.
fn shown(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).take(200).collect();
    match text.rsplit_once('@') {
        Some((_, host)) => format!("***@{host}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let origin = Origin::parse("https://api.openai.com/v1/").unwrap();
        assert_eq!((origin.is_secure(), origin.host(), origin.port()), (true, "api.openai.com", 443));
        assert_eq!(origin.path("/chat/completions").unwrap(), "/v1/chat/completions");
        assert_eq!(origin.to_string(), "https://api.openai.com/v1");
        let local = Origin::parse("http://[::1]:11434").unwrap();
        assert_eq!((local.host(), local.port(), local.is_loopback()), ("::1", 11434, true));
        assert_eq!(local.path("/x").unwrap(), "/x");
    }

    #[test]
    fn an_invalid_address_is_shown_without_its_password() {
        for wrong in ["", "api.openai.com", "ftp://x", "https://", "http:///v1"] {
            assert!(matches!(Origin::parse(wrong), Err(OriginError::NotAnAddress(_))), "{wrong}");
        }
        let error = Origin::parse("https://me:hunter2@x/v1").unwrap_err();
        assert!(!error.to_string().contains("hunter2"), "{error}");
        assert!(matches!(Origin::parse("https://x/v1?a=b"), Err(OriginError::Query(_))));
    }
}
