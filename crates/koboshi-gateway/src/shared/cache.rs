//! Caches answers in memory; the store behind it outlives a restart.
//!
//! The key is a hash of the tenant and of the normalised request, without the fields that only say how to send the answer. So a tenant
//! never gets another one's answer, and a stream and a whole answer to the same question share an entry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::time::Moment;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::http::upstream::mark::SIMULATED;

/// Longer texts are not cached.
const MAX_TEXT: usize = 256 * 1024;

/// A cached answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CachedAnswer {
    pub(crate) text: Arc<str>,
    pub(crate) model: Arc<str>,
    /// Whether the simulated provider made it up.
    pub(crate) simulated: bool,
    at: Moment,
}

impl CachedAnswer {
    pub(crate) fn new(text: &str, model: &str, at: Moment) -> Self {
        Self { text: text.into(), model: model.into(), simulated: false, at }
    }

    /// Marks it as made up or not.
    pub(crate) fn simulated(self, simulated: bool) -> Self {
        Self { simulated, ..self }
    }

    pub(crate) fn age(&self, now: Moment) -> Duration {
        now.since(self.at)
    }

    /// Serialises it for the store.
    pub(crate) fn write(&self, wall: Timestamp) -> Vec<u8> {
        let (text, model, at) = (&*self.text, &*self.model, wall.as_second());
        let mut kept = json!({"text": text, "model": model, "at": at});
        if let Some(kept) = kept.as_object_mut().filter(|_| self.simulated) {
            kept.insert(SIMULATED.to_owned(), true.into());
        }
        kept.to_string().into_bytes()
    }

    /// Deserialises it from the store.
    pub(crate) fn read(bytes: &[u8], wall: Timestamp, now: Moment) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let age = wall.as_second().saturating_sub(value.get("at")?.as_i64()?);
        let age = Duration::from_secs(u64::try_from(age).unwrap_or(0));
        let at =
            Moment::from_nanos(now.nanos().saturating_sub(u64::try_from(age.as_nanos()).unwrap_or(u64::MAX)));
        let simulated = value.get(SIMULATED).and_then(Value::as_bool).unwrap_or(false);
        let kept = Self::new(value.get("text")?.as_str()?, value.get("model")?.as_str()?, now);
        Some(Self { at, simulated, ..kept })
    }

    fn size(&self, key: &str) -> usize {
        self.text.len() + self.model.len() + key.len() + 100
    }
}

/// Answers in memory: two generations, each at most half of the limit.
#[derive(Default)]
pub(crate) struct Cache {
    generations: Mutex<Generations>,
}

#[derive(Default)]
struct Generations {
    young: HashMap<String, CachedAnswer>,
    old: HashMap<String, CachedAnswer>,
    young_bytes: usize,
}

impl Cache {
    /// The answer under this key, if it is not older than that.
    pub(crate) fn fresh(&self, key: &str, now: Moment, max_age: Duration) -> Option<CachedAnswer> {
        let kept = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.young.get(key).or_else(|| kept.old.get(key))?;
        (found.age(now) <= max_age).then(|| found.clone())
    }

    /// Caches an answer; all of them together stay below the limit.
    pub(crate) fn put(&self, key: String, answer: CachedAnswer, max_bytes: usize) {
        let size = answer.size(&key);
        if answer.text.len() > MAX_TEXT || size > max_bytes / 2 {
            return;
        }
        let mut kept = self.generations.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.young_bytes + size > max_bytes / 2 {
            kept.old = std::mem::take(&mut kept.young);
            kept.young_bytes = 0;
        }
        kept.young_bytes += size;
        kept.young.insert(key, answer);
    }
}

/// Fields that do not change the answer.
const IGNORED_FIELDS: [&str; 4] = ["stream", "stream_options", "metadata", "user"];

/// Larger requests are not cached: hashing one parses all of it into a tree, on a thread that serves other requests.
const MAX_BODY: usize = 256 * 1024;

/// The cache key of a request; none if it cannot be parsed or is too large.
pub(crate) fn key(tenant: &str, dialect: &str, model: &str, body: &[u8]) -> Option<String> {
    if body.len() > MAX_BODY {
        return None;
    }
    let mut request: Value = serde_json::from_slice(body).ok()?;
    let fields = request.as_object_mut()?;
    for field in IGNORED_FIELDS {
        fields.remove(field);
    }
    // Sorted, whatever order the map has.
    request.sort_all_objects();
    let mut hash = Sha256::new();
    // The path may name the model, and the same body may mean something else in another dialect.
    for part in [tenant, dialect, model] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.update(request.to_string().as_bytes());
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::START.after(Duration::from_secs(seconds))
    }

    #[test]
    fn a_large_request_has_no_key() {
        let body = |length| format!("{{\"messages\":\"{}\"}}", "x".repeat(length));
        assert!(key("t", "chat", "m", body(1000).as_bytes()).is_some());
        assert_eq!(key("t", "chat", "m", body(MAX_BODY).as_bytes()), None);
    }

    #[test]
    fn answers_age() {
        let cache = Cache::default();
        cache.put("k".to_owned(), CachedAnswer::new("hello", "m", at(10)), 10_000);
        assert!(cache.fresh("k", at(20), Duration::from_secs(10)).is_some());
        assert!(cache.fresh("k", at(21), Duration::from_secs(10)).is_none());
    }

    #[test]
    fn memory_is_bounded() {
        let cache = Cache::default();
        for number in 0..1000 {
            cache.put(format!("k{number}"), CachedAnswer::new(&"x".repeat(100), "m", at(0)), 10_000);
        }
        let kept = cache.generations.lock().unwrap();
        let bytes: usize = kept.young.iter().chain(&kept.old).map(|(key, answer)| answer.size(key)).sum();
        assert!(bytes <= 10_000, "{bytes}");
        assert!(kept.young.contains_key("k999"));
    }

    #[test]
    fn what_the_store_keeps_comes_back_with_its_age() {
        let wall = Timestamp::from_second(1_000_000).unwrap();
        let later = Timestamp::from_second(1_000_060).unwrap();
        let bytes = CachedAnswer::new("こんにちは", "m", at(0)).write(wall);
        let kept = CachedAnswer::read(&bytes, later, at(100)).unwrap();
        assert_eq!((&*kept.text, kept.age(at(100)).as_secs()), ("こんにちは", 60));
        assert!(!kept.simulated);
        let bytes = CachedAnswer::new("x", "ok", at(0)).simulated(true).write(wall);
        assert!(CachedAnswer::read(&bytes, later, at(100)).unwrap().simulated);
        assert_eq!(CachedAnswer::read(b"{}", later, at(100)), None);
    }

    #[test]
    fn tenants_and_questions_are_apart_and_spelling_is_not() {
        let of = |tenant: &str, body: &str| key(tenant, "chat", "m", body.as_bytes()).unwrap();
        let plain = r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#;
        let spelled = r#"{ "messages": [{"content": "hi", "role": "user"}], "stream": true, "model": "m" }"#;
        assert_eq!(of("a", plain), of("a", spelled));
        assert_ne!(of("a", plain), of("b", plain));
        assert_ne!(of("a", plain), of("a", &plain.replace("hi", "ho")));
    }
}
