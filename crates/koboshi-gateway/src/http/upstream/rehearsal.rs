//! What a rehearsal puts in place of the providers: a script, which is asked at every send what its provider does.
//!
//! With a script no request leaves this process, whichever provider it is for: there is no address to send it to.

use std::sync::{Arc, Mutex, PoisonError};

use koboshi::key::ScopeKey;

/// Who is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RehearsedTarget {
    /// Provider and model, as headers name them.
    pub name: Arc<str>,
    /// The provider; of the built-in one with its model, because each of its models stands for a provider of its own.
    pub provider: String,
    /// The key, where knowledge about it has one.
    pub key: Option<ScopeKey>,
    /// The account, where knowledge about it has one.
    pub account: Option<ScopeKey>,
}

/// What the provider does.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cue {
    /// It plays this name of the simulated provider.
    Play(String),
    /// The name of its server cannot be resolved.
    Unresolved,
    /// Its certificate is not trusted.
    Untrusted,
}

/// Says what a target does when it is asked.
pub type Script = Arc<dyn Fn(&RehearsedTarget) -> Cue + Send + Sync>;

/// A script, and the names of those that were asked, in order.
pub(crate) struct Stage {
    script: Script,
    asked: Mutex<Vec<Arc<str>>>,
}

impl Stage {
    pub(crate) fn new(script: Script) -> Self {
        Self { script, asked: Mutex::default() }
    }

    /// What this target does now.
    pub(super) fn ask(&self, target: &RehearsedTarget) -> Cue {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&target.name));
        (self.script)(target)
    }

    /// Those that were asked since the last call.
    pub(crate) fn take_asked(&self) -> Vec<Arc<str>> {
        std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
