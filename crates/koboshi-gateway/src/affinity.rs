//! Who served a conversation last, so that its prompt cache is used again.
//!
//! A preference for as long as a turn lasts: among the keys of one model always, among models only while the agent is in the middle of
//! a tool loop. With the next message of the user the chain's own order holds again, so that a primary that has recovered is used. The
//! conversation is known by a hash of its opening and its tenant; nothing of it is kept.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

/// Conversations that are remembered; at twice as many the older half is forgotten.
const MOST: usize = 20_000;

/// Who served which conversation.
#[derive(Default)]
pub(crate) struct Affinity {
    hasher: RandomState,
    /// Two generations: what is used moves to the younger one.
    kept: Mutex<(Known, Known)>,
}

type Known = HashMap<u64, Arc<str>>;

impl Affinity {
    /// The number of a conversation.
    pub(crate) fn conversation(&self, tenant: &str, opening: &[u8]) -> u64 {
        self.hasher.hash_one((tenant, opening))
    }

    /// Who served it last.
    pub(crate) fn served_by(&self, conversation: u64) -> Option<Arc<str>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.get(&conversation).or_else(|| kept.1.get(&conversation)).cloned()
    }

    /// It was served by this target.
    pub(crate) fn note(&self, conversation: u64, target: &Arc<str>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.0.insert(conversation, Arc::clone(target));
        if kept.0.len() >= MOST {
            kept.1 = std::mem::take(&mut kept.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversations_are_told_apart_and_memory_is_bounded() {
        let affinity = Affinity::default();
        let mine = affinity.conversation("a", b"hello");
        assert_ne!(mine, affinity.conversation("b", b"hello"), "tenants are apart");
        affinity.note(mine, &"sim/ok".into());
        assert_eq!(affinity.served_by(mine).as_deref(), Some("sim/ok"));
        for other in 0..3 * MOST as u64 {
            affinity.note(other, &"x/y".into());
        }
        assert_eq!(affinity.served_by(mine), None);
        let kept = affinity.kept.lock().unwrap();
        assert!(kept.0.len() + kept.1.len() <= 2 * MOST);
    }
}
