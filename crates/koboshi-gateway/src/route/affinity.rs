//! Remembers which target served a conversation last, so that its prompt cache is used again.
//!
//! The cache belongs to a model *and* a key, so both are remembered. It is only a preference: among the keys of one model as long as the
//! conversation continues, among models only while the agent is in the middle of a tool loop. With the next message of the user the
//! chain's own order of models applies again, so that a primary that has recovered is used. The conversation is identified by a hash of its
//! opening and its tenant; none of its content is kept.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use koboshi::key::ScopeKey;

/// How many conversations are remembered; at twice as many the older half is forgotten.
const MAX_CONVERSATIONS: usize = 20_000;

/// Which target served which conversation.
#[derive(Default)]
pub(crate) struct Affinity {
    hasher: RandomState,
    /// Two generations: an entry that is used moves to the younger one.
    kept: Mutex<(ConversationTargets, ConversationTargets)>,
}

/// Conversations with the keys of their targets.
type ConversationTargets = HashMap<u64, ScopeKey>;

impl Affinity {
    /// The number of a conversation.
    pub(crate) fn conversation(&self, tenant: &str, opening: &[u8]) -> u64 {
        self.hasher.hash_one((tenant, opening))
    }

    /// The target that served it last.
    pub(crate) fn served_by(&self, conversation: u64) -> Option<ScopeKey> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.get(&conversation).or_else(|| kept.1.get(&conversation)).cloned()
    }

    /// Remembers the target that served it.
    pub(crate) fn note(&self, conversation: u64, target: ScopeKey) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.insert(conversation, target);
        if kept.0.len() >= MAX_CONVERSATIONS {
            kept.1 = std::mem::take(&mut kept.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi::key::ScopeLevel;

    #[test]
    fn conversations_are_distinguished_and_memory_is_bounded() {
        let affinity = Affinity::default();
        let mine = affinity.conversation("a", b"hello");
        assert_ne!(mine, affinity.conversation("b", b"hello"), "tenants are apart");
        let target = |name: &str| ScopeKey::new(ScopeLevel::Target, name).unwrap();
        affinity.note(mine, target("one/ok#a"));
        assert_eq!(affinity.served_by(mine), Some(target("one/ok#a")));
        for other in 0..3 * MAX_CONVERSATIONS as u64 {
            affinity.note(other, target("x/y#z"));
        }
        assert_eq!(affinity.served_by(mine), None);
        let kept = affinity.kept.lock().unwrap();
        assert!(kept.0.len() + kept.1.len() <= 2 * MAX_CONVERSATIONS);
    }
}
