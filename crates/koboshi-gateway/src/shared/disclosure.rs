//! What a client is told about its answer beside the answer itself.

use std::sync::Arc;

use koboshi::key::ScopeKey;
use koboshi_wire::http1::{Fields, HeaderLines};
use serde::Serialize;

use crate::route::target::Target;

/// So many headers of a provider's limits are handed on.
const MOST_LIMITS: usize = 32;

/// Facts about an answer for its headers.
#[derive(Debug, Clone, Default)]
pub(crate) struct Disclosure {
    pub(crate) target: Option<Arc<str>>,
    /// It is the simulated provider: the answer is made up.
    pub(crate) simulated: bool,
    /// The target with its key.
    pub(crate) served: Option<ScopeKey>,
    /// `cache`, `simple` or `static`.
    pub(crate) degraded: Option<&'static str>,
    /// A kept answer that is still fresh, given before anybody was asked: as good as a new one.
    pub(crate) hit: bool,
    /// The kind of the last fault on the way.
    pub(crate) fault: Option<&'static str>,
    /// What the loop guard did or would have done.
    pub(crate) guard: Option<String>,
    /// How often the model was asked to mend a tool call.
    pub(crate) reasks: u32,
    /// How many calls were mended without asking.
    pub(crate) repaired: u32,
    /// About how many tokens the conversation had, and has after it was shortened.
    pub(crate) trimmed: Option<(u64, u64)>,
    /// The dialect of the target that answers, where it is another one than the client's.
    pub(crate) translated: Option<&'static str>,
    /// What could not be said in the dialect of a target, and so kept the request from it.
    pub(crate) lacks: Vec<Lack>,
    /// What the provider said of its limits, where it is of the client's dialect: only then does the client know the words.
    pub(crate) limits: HeaderLines,
}

/// A part of a request that a target cannot get.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Lack {
    pub(crate) target: String,
    /// The rule by which it is refused.
    pub(crate) rule: &'static str,
    /// Where it stands.
    pub(crate) at: String,
}

impl Disclosure {
    /// This target answers.
    pub(crate) fn served_by(&mut self, target: &Target) {
        self.target = Some(Arc::clone(&target.name));
        self.simulated = target.is_simulated();
        self.served.clone_from(&target.scopes.target);
    }

    /// What the head of its answer says of limits; as many as any vendor has.
    pub(crate) fn limited(&mut self, head: &Fields) {
        self.limits.clear();
        let mut said = Vec::new();
        for (name, value) in head.pairs_of(is_of_limits).take(MOST_LIMITS) {
            // Two lines of one name become one value in some clients, and no number any more.
            if !said.contains(&name) {
                said.push(name);
                self.limits.add(name, value);
            }
        }
    }
}

/// Whether a header says how much a vendor allows, in the words that its clients read.
fn is_of_limits(name: &[u8]) -> bool {
    name.starts_with(b"x-ratelimit-") || name.starts_with(b"anthropic-ratelimit-")
}
