//! What a client learns about its answer beside the answer itself.

use std::sync::Arc;

use koboshi::key::ScopeKey;
use koboshi_wire::http1::{Fields, HeaderLines};
use serde::Serialize;

use crate::route::target::Target;

/// How many rate-limit headers of a provider are forwarded.
const MAX_LIMIT_HEADERS: usize = 32;

/// Facts about an answer for its headers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disclosure {
    pub(crate) target: Option<Arc<str>>,
    /// Whether the simulated provider made the answer up.
    pub(crate) simulated: bool,
    /// The target with its key.
    pub(crate) served: Option<ScopeKey>,
    /// Where the answer comes from, if it is a lesser one.
    pub(crate) degraded: Option<DegradeSource>,
    /// Whether it is a fresh cached answer, sent before a target was asked: as good as a new one.
    pub(crate) hit: bool,
    /// The kind of the last fault of the request.
    pub(crate) fault: Option<&'static str>,
    /// What the loop guard did, or would have done.
    pub(crate) guard: Option<String>,
    /// How often the model was asked to correct a tool call.
    pub(crate) reasks: u32,
    /// How many calls were repaired without asking.
    pub(crate) repaired: u32,
    /// About how many tokens the conversation had, and has after it was shortened.
    pub(crate) trimmed: Option<(u64, u64)>,
    /// The dialect of the target that answers, where it is another one than the client's.
    pub(crate) translated: Option<&'static str>,
    /// What cannot be expressed in the dialect of a target, so that the target was skipped.
    pub(crate) lacks: Vec<Lack>,
    /// The provider's rate-limit headers, where it speaks the client's dialect: only then does the client know them.
    pub(crate) limits: HeaderLines,
}

/// The sources with their names, in the order in which they are tried: one that is here is in all three.
macro_rules! sources {
    ($($source:ident = $name:literal,)+) => {
        /// Where a lesser answer comes from.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum DegradeSource {
            $($source,)+
        }

        impl DegradeSource {
            /// All of them, in the order in which they are tried.
            pub(crate) const ORDER: [Self; [$($name),+].len()] = [$(Self::$source),+];

            /// Its name in headers, bodies, journal, metrics and traces.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$source => $name),+
                }
            }
        }
    };
}

sources! {
    Cache = "cache",
    Simple = "simple",
    Static = "static",
}

/// A part of a request that a target cannot get.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Lack {
    pub(crate) target: String,
    /// The rule by which it is refused.
    pub(crate) rule: &'static str,
    /// Its place in the request.
    pub(crate) at: String,
}

impl Disclosure {
    /// Records the target that answers.
    pub(crate) fn served_by(&mut self, target: &Target) {
        self.target = Some(Arc::clone(&target.name));
        self.simulated = target.is_simulated();
        self.served.clone_from(&target.scopes.target);
    }

    /// Takes the rate-limit headers of its answer; as many as any vendor has.
    pub(crate) fn limited(&mut self, head: &Fields) {
        self.limits.clear();
        let mut seen = Vec::new();
        for (name, value) in head.pairs_of(is_of_limits).take(MAX_LIMIT_HEADERS) {
            // Some clients join two headers of one name, which is no number any more.
            if !seen.contains(&name) {
                seen.push(name);
                self.limits.add(name, value);
            }
        }
    }
}

/// Whether a header is a rate-limit header that the vendor's clients read.
fn is_of_limits(name: &[u8]) -> bool {
    name.starts_with(b"x-ratelimit-") || name.starts_with(b"anthropic-ratelimit-")
}
