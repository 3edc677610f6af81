//! Non-standard header names, made once: building a name from text parses and copies it each time.

use http::HeaderName;
use koboshi::remedy::Remedy;

pub(crate) static ANTHROPIC_BETA: HeaderName = HeaderName::from_static("anthropic-beta");
pub(crate) static ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
pub(crate) static AZURE_KEY: HeaderName = HeaderName::from_static("api-key");
pub(crate) static API_KEY: HeaderName = HeaderName::from_static("x-api-key");
pub(crate) static GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");
pub(crate) static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
pub(crate) static SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");
pub(crate) static BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

pub(crate) static AGENT: HeaderName = HeaderName::from_static("x-koboshi-agent");
pub(crate) static ATTEMPTS: HeaderName = HeaderName::from_static("x-koboshi-attempts");
pub(crate) static CACHE: HeaderName = HeaderName::from_static("x-koboshi-cache");
pub(crate) static DEADLINE: HeaderName = HeaderName::from_static("x-koboshi-deadline");
pub(crate) static DEGRADED: HeaderName = HeaderName::from_static("x-koboshi-degraded");
pub(crate) static FAULT: HeaderName = HeaderName::from_static("x-koboshi-fault");
pub(crate) static GUARD: HeaderName = HeaderName::from_static("x-koboshi-guard");
pub(crate) static MODE: HeaderName = HeaderName::from_static("x-koboshi-mode");
pub(crate) static REASK: HeaderName = HeaderName::from_static("x-koboshi-reask");
pub(crate) static REPAIRED: HeaderName = HeaderName::from_static("x-koboshi-repaired");
pub(crate) static SCREEN: HeaderName = HeaderName::from_static("x-koboshi-screen");
pub(crate) static SENDS: HeaderName = HeaderName::from_static("x-koboshi-sends");
pub(crate) static SIMULATED: HeaderName = HeaderName::from_static("x-koboshi-simulated");
pub(crate) static TARGET: HeaderName = HeaderName::from_static("x-koboshi-target");
pub(crate) static TRIMMED: HeaderName = HeaderName::from_static("x-koboshi-trimmed");
pub(crate) static TRANSLATED: HeaderName = HeaderName::from_static("x-koboshi-translated");
/// The request id header of Anthropic's clients.
pub(crate) static ANTHROPIC_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// The name of a remedy in journal, metrics and traces.
pub(crate) fn remedy_name(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::Again { .. } => "again",
        Remedy::Wait { .. } => "wait",
        Remedy::Elsewhere => "elsewhere",
        Remedy::Trim => "trim",
        Remedy::Reask => "reask",
        Remedy::Degrade => "degrade",
        _ => "stop",
    }
}
