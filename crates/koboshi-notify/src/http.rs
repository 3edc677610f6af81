//! What is needed of an HTTP client. The program hands one in, so that notices take the same way out as everything else: proxies,
//! certificates, limits.

use std::pin::Pin;
use std::time::Duration;

/// A future on the thread of the notifications.
pub type LocalFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// A POST.
#[derive(Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// Where to; it is often a secret and must not be shown.
    pub url: String,
    /// Headers besides the usual ones.
    pub headers: Vec<(&'static str, String)>,
    /// JSON.
    pub body: Vec<u8>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    /// What `Retry-After` says, in seconds.
    pub retry_after: Option<Duration>,
    /// The beginning of the body.
    pub body: String,
}

/// Sends one request and follows no redirect.
pub trait Http: Send + Sync {
    /// The answer, or why there is none; the reason must not show the address.
    fn post(&self, request: HttpRequest) -> LocalFuture<Result<HttpAnswer, String>>;
}
