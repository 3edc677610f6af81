//! Digests that were read before: a gateway sees the whole conversation again in every request.
//!
//! Reading a call depends on its tool, arguments, output and error flag alone, so the same call has the same digest in every
//! request. It is found again by a hash of these four with seeds that no outsider knows. Two generations bound the
//! memory: new digests go to the young one; when that is full, it becomes the old one and what was the old one is
//! forgotten. Whatever is asked for stays.
//!
//! *Not here*: what the policy says about a tool. That is put on afterwards, so that a changed policy needs no new cache.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use super::digest::{Call, Digest};
use super::mix::Mixer;

/// Digests by what they were read from. Share one between all requests of one classifier; other rules need another one.
///
/// ```
/// # use jiff::tz::{TimeZone, TimeZoneDatabase};
/// # use koboshi::classify::{Classifier, Rules};
/// use koboshi::guard::{Call, DigestCache, Guard, GuardPolicy};
/// # let classifier = Classifier::new(Rules::builtin()?, TimeZoneDatabase::bundled());
/// # let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
/// let guard = Guard::new(GuardPolicy::default())?;
/// let cache = DigestCache::default();
/// let calls = [Call { tool: "read", args: "{}", output: "x", ..Call::default() }; 3];
/// let first = guard.judge_with(&cache, &calls, &classifier, &now);
/// assert_eq!(first, guard.judge_with(&cache, &calls, &classifier, &now)); // nothing is read again
/// assert_eq!(first, guard.judge(&calls, &classifier, &now));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DigestCache {
    /// The most digests of a generation.
    max: usize,
    /// Two numbers of 64 bits: two texts that share both by chance are not to be expected in the life of a machine.
    mixers: [Mixer; 2],
    kept: Mutex<Generations>,
}

type Key = [u64; 2];

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<Key, Digest>,
    old: HashMap<Key, Digest>,
}

impl Default for DigestCache {
    /// Keeps at most 8192, some ten megabytes.
    fn default() -> Self {
        Self::new(8192)
    }
}

impl DigestCache {
    /// Keeps at most this many digests of one or two kilobytes each.
    #[must_use]
    pub fn new(max: usize) -> Self {
        let random = RandomState::new();
        let seed = |number: u64| random.hash_one(number);
        Self {
            max: (max / 2).max(1),
            mixers: [Mixer::new([seed(0), seed(1)]), Mixer::new([seed(2), seed(3)])],
            kept: Mutex::default(),
        }
    }

    /// How many digests are kept.
    #[must_use]
    pub fn len(&self) -> usize {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.young.len() + kept.old.len()
    }

    /// Whether none is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The digest of this call, read if it is not known. Turn and batch are the call's own.
    pub(super) fn get(&self, call: &Call<'_>, read: impl FnOnce() -> Digest) -> Digest {
        let key = self.key(call);
        let known = self.find(key);
        // Read without the lock: another thread may do the same work, but none waits for it.
        let digest = known.unwrap_or_else(|| {
            let digest = read();
            self.keep(key, digest.clone());
            digest
        });
        Digest { turn: call.turn, batch: call.batch, ..digest }
    }

    fn key(&self, call: &Call<'_>) -> Key {
        let flag: &[u8] = match call.is_error {
            None => b"?",
            Some(false) => b"n",
            Some(true) => b"y",
        };
        let parts = [call.tool.as_bytes(), call.args.as_bytes(), call.output.as_bytes(), flag];
        self.mixers.map(|mixer| mixer.hash(parts))
    }

    fn find(&self, key: Key) -> Option<Digest> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(digest) = kept.young.get(&key) {
            return Some(digest.clone());
        }
        let digest = kept.old.remove(&key)?;
        kept.put(key, digest.clone(), self.max);
        Some(digest)
    }

    fn keep(&self, key: Key, digest: Digest) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).put(key, digest, self.max);
    }
}

impl Generations {
    fn put(&mut self, key: Key, digest: Digest, max: usize) {
        if self.young.len() >= max {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, digest);
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::{TimeZone, TimeZoneDatabase};

    use super::*;
    use crate::classify::{Classifier, Rules};
    use crate::guard::{Effect, Guard, GuardPolicy, ToolPolicy, Turn};

    fn call(output: &str) -> Call<'_> {
        Call { tool: "read", args: "{}", output, ..Call::default() }
    }

    fn digest(call: &Call<'_>) -> Digest {
        let classifier = Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::none());
        let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        Guard::new(GuardPolicy::default()).unwrap().read(call, &classifier, &now)
    }

    #[test]
    fn it_is_bounded_and_keeps_what_is_asked_for() {
        let cache = DigestCache::new(8);
        let one = digest(&call("x"));
        let read = |output: &str| {
            let mut was_read = false;
            cache.get(&call(output), || {
                was_read = true;
                one.clone()
            });
            was_read
        };
        assert!(read("kept") && !read("kept"));
        for n in 0..100 {
            assert!(read(&n.to_string()));
            assert!(!read("kept"), "asked for each time, never forgotten: {n}");
            assert!(cache.len() <= 8 && !cache.is_empty());
        }
        assert!(read("0"), "long ago");
    }

    #[test]
    fn every_part_of_a_call_counts_and_its_place_does_not() {
        let cache = DigestCache::default();
        let plain = call("x");
        let others = [
            Call { tool: "read2", ..plain },
            Call { args: "{} ", ..plain },
            Call { output: "y", ..plain },
            Call { is_error: Some(false), ..plain },
            Call { is_error: Some(true), ..plain },
            Call { tool: "rea", args: "d{}", ..plain },
        ];
        for other in &others {
            assert_ne!(cache.key(&plain), cache.key(other), "{other:?}");
        }
        assert_ne!(cache.key(&plain), DigestCache::default().key(&plain), "an outsider cannot foresee it");
        let one = digest(&plain);
        cache.get(&plain, || one.clone());
        let elsewhere = Call { turn: 7, batch: Some(3), ..plain };
        let found = cache.get(&elsewhere, || panic!("it is known"));
        assert_eq!((found.turn, found.batch), (7, Some(3)));
    }

    #[test]
    fn a_changed_policy_is_seen_at_once() {
        let classifier = Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::none());
        let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
        let cache = DigestCache::default();
        let effect = |policy: GuardPolicy| {
            let guard = Guard::new(policy).unwrap();
            let mut turn = Turn::new();
            turn.push(guard.read_with(&cache, &call("x"), &classifier, &now));
            turn.digests().next().unwrap().effect
        };
        assert_eq!(effect(GuardPolicy::default()), Effect::Looks);
        let own = ToolPolicy { effect: Some(Effect::Waits), ..ToolPolicy::default() };
        let policy = GuardPolicy { tools: [("read".to_owned(), own)].into(), ..GuardPolicy::default() };
        assert_eq!(effect(policy), Effect::Waits);
        assert_eq!(effect(GuardPolicy::default()), Effect::Looks);
    }

    #[test]
    fn it_can_be_shared_between_threads() {
        fn shared<T: Send + Sync>(_: &T) {}
        shared(&DigestCache::default());
    }
}
