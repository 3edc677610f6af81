//! Which clients may call: virtual keys, stored only as hashes.
//!
//! A client sends its key as bearer, `x-api-key` or `x-goog-api-key`, whatever its SDK does. The key is hashed and compared with every known
//! hash in constant time, so that the time of a refusal reveals nothing. Without keys every caller on the loopback address
//! may call; the server refuses to listen elsewhere then.

use std::sync::{Arc, OnceLock};

use http::header::{AUTHORIZATION, HeaderName};
use koboshi::gate::Tenant;
use koboshi::spend::Budget;
use koboshi_config::gateway::{ClientKey, Named};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::observe::names;
use koboshi_wire::http1::Fields;

/// The tenant of callers without a key.
const LOCAL: &str = "local";

/// Longer keys are refused unread.
const MAX_KEY: usize = 512;

/// The keys that clients may use.
pub(crate) struct Keys {
    known: Vec<KnownKey>,
    /// The tenant of all callers where no key is needed, and the name that they are counted by.
    local: Tenant,
    local_name: Arc<str>,
}

/// A key that a client may use.
struct KnownKey {
    hash: [u8; 32],
    name: Arc<str>,
    tenant: Tenant,
}

/// The name by which the agents of the same process are counted. No key of a config can have it.
const OWN_AGENTS: &str = "koboshi up";

/// The key of the agents that this process keeps, as its hash. It is made when it starts, and known to no one else.
#[derive(Default)]
pub(crate) struct AgentsKey(OnceLock<[u8; 32]>);

impl AgentsKey {
    /// Makes the key; the first one counts. None where the machine gives no random numbers.
    pub(crate) fn make(&self) -> Option<String> {
        let (key, hash) = new_client_key()?;
        self.0.set(hash_of_hex(&hash)?).ok()?;
        Some(key)
    }

    /// The caller, where one that the config does not know is an agent of this process.
    pub(crate) fn recognise(&self, caller: Caller, headers: &Fields) -> Caller {
        let (Caller::UnknownKey, Some(known)) = (&caller, self.0.get()) else { return caller };
        let Some(key) = presented(headers).filter(|key| key.len() <= MAX_KEY) else { return caller };
        let hash: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let is_ours = bool::from(known.ct_eq(&hash));
        if is_ours { Caller::Tenant(Tenant::new(OWN_AGENTS), OWN_AGENTS.into()) } else { caller }
    }
}

/// The name by which callers are counted who bring a vendor's key.
pub(crate) const PASSTHROUGH: &str = "passthrough";

/// The limits of a client's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyLimits {
    pub(crate) budget: Budget,
    /// Requests in a minute.
    pub(crate) rate: Option<u32>,
}

/// The result of checking a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A known key, or none is needed: its tenant and its name.
    Tenant(Tenant, Arc<str>),
    /// The client sent no key.
    NoKey,
    /// The client sent an unknown key.
    UnknownKey,
}

impl Keys {
    /// The keys of the config, which has refused invalid hashes.
    pub(crate) fn of(config: &Named<ClientKey>) -> Self {
        let known = config.iter().filter_map(|(name, key)| {
            let tenant = Tenant::new(key.tenant.as_deref().unwrap_or(name));
            Some(KnownKey { hash: hash_of_hex(&key.sha256)?, name: name.as_str().into(), tenant })
        });
        Self { known: known.collect(), local: Tenant::new(LOCAL), local_name: LOCAL.into() }
    }

    /// Whether callers need a key at all.
    pub(crate) fn are_needed(&self) -> bool {
        !self.known.is_empty()
    }

    /// The name by which callers without a key are counted.
    pub(crate) fn local_name(&self) -> Arc<str> {
        Arc::clone(&self.local_name)
    }

    /// Whether a session may go on that began with this key: where keys are needed, one that was revoked ends it.
    pub(crate) fn still_admit(&self, key: Option<&str>) -> bool {
        !self.are_needed() || key.is_some_and(|key| self.known.iter().any(|known| &*known.name == key))
    }

    /// The tenant of callers without a key.
    pub(crate) fn local(&self) -> Tenant {
        self.local.clone()
    }

    /// Identifies the caller by these headers.
    pub(crate) fn caller(&self, headers: &Fields, in_query: Option<&str>) -> Caller {
        if !self.are_needed() {
            return Caller::Tenant(self.local(), self.local_name());
        }
        let Some(key) = presented(headers).or(in_query) else { return Caller::NoKey };
        if key.len() > MAX_KEY {
            return Caller::UnknownKey;
        }
        let hash: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let mut found = None;
        for known in &self.known {
            if bool::from(known.hash.ct_eq(&hash)) {
                found = Some(known);
            }
        }
        found.map_or(Caller::UnknownKey, |key| Caller::Tenant(key.tenant.clone(), Arc::clone(&key.name)))
    }
}

const SCHEME: &str = "bearer ";

/// The key that a client sent, in whichever header.
pub(crate) fn presented(headers: &Fields) -> Option<&str> {
    let text = |name: &HeaderName| headers.text(name);
    let bearer = text(&AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.split_at_checked(SCHEME.len())?;
        scheme.eq_ignore_ascii_case(SCHEME).then(|| key.trim_ascii())
    });
    bearer
        .or_else(|| text(&names::API_KEY))
        .or_else(|| text(&names::GOOGLE_KEY))
        .filter(|key| !key.is_empty())
}

/// The tenant of a client that brings its own vendor key: it shares no cache, affinity or place in a queue with others.
pub(crate) fn borrowed_tenant(key: &str) -> Tenant {
    let hash = Sha256::digest(key.as_bytes());
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Tenant::new(&format!("passthrough:{digits}"))
}

/// A new key for a client, and its hash for the config. None where the machine gives no random numbers.
#[must_use]
pub fn new_client_key() -> Option<(String, String)> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).ok()?;
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let key = format!("kbs-{}", hex(&bytes));
    let hash = hex(&Sha256::digest(key.as_bytes()));
    Some((key, hash))
}

/// Whether a key is the one with this hash.
pub(crate) fn is_key(hex: &str, key: &str) -> bool {
    let hash: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    hash_of_hex(hex).is_some_and(|known| known.ct_eq(&hash).into())
}

/// A few digits that distinguish keys and reveal nothing about them.
pub(crate) fn fingerprint(key: &str) -> String {
    Sha256::digest(key.as_bytes()).iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn hash_of_hex(hex: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(hex.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        let hex: String = Sha256::digest(b"kbs-secret").iter().map(|byte| format!("{byte:02x}")).collect();
        Keys::of(&Named::from([("laptop".to_owned(), ClientKey { sha256: hex, ..ClientKey::default() })]))
    }

    fn with(name: &str, value: &str) -> Fields {
        Fields::of([(name, value.as_bytes())])
    }

    #[test]
    fn a_key_may_come_in_three_ways() {
        let tenant = Caller::Tenant(Tenant::new("laptop"), "laptop".into());
        for headers in [
            with("authorization", "Bearer kbs-secret"),
            with("authorization", "bearer kbs-secret"),
            with("x-api-key", "kbs-secret"),
            with("x-goog-api-key", "kbs-secret"),
        ] {
            assert_eq!(keys().caller(&headers, None), tenant);
        }
    }

    #[test]
    fn an_unknown_key_differs_from_no_key() {
        assert_eq!(keys().caller(&Fields::default(), None), Caller::NoKey);
        assert_eq!(keys().caller(&with("authorization", "Basic abc"), None), Caller::NoKey);
        assert_eq!(keys().caller(&with("x-api-key", "kbs-other"), None), Caller::UnknownKey);
        assert_eq!(keys().caller(&with("x-api-key", &"k".repeat(10_000)), None), Caller::UnknownKey);
    }

    #[test]
    fn a_key_may_be_in_the_address() {
        assert_eq!(
            keys().caller(&Fields::default(), Some("kbs-secret")),
            Caller::Tenant(Tenant::new("laptop"), "laptop".into())
        );
        let other = with("x-goog-api-key", "kbs-other");
        assert_eq!(keys().caller(&other, Some("kbs-secret")), Caller::UnknownKey, "the header counts");
    }

    #[test]
    fn the_agents_of_this_process_have_a_key_of_their_own() {
        let agents = AgentsKey::default();
        let asked = |key: &str| {
            let headers = with("authorization", &format!("Bearer {key}"));
            agents.recognise(keys().caller(&headers, None), &headers)
        };
        assert_eq!(asked("kbs-other"), Caller::UnknownKey, "before there is one");
        let key = agents.make().unwrap();
        assert_eq!(asked(&key), Caller::Tenant(Tenant::new(OWN_AGENTS), OWN_AGENTS.into()));
        assert_eq!(asked("kbs-other"), Caller::UnknownKey);
        assert_eq!(asked("kbs-secret"), Caller::Tenant(Tenant::new("laptop"), "laptop".into()));
        assert_eq!(agents.recognise(Caller::NoKey, &Fields::default()), Caller::NoKey);
        assert!(agents.make().is_none(), "there is one for the life of the process");
    }

    #[test]
    fn without_keys_every_caller_is_local() {
        let open = Keys::of(&Named::new());
        assert_eq!(
            open.caller(&Fields::default(), None),
            Caller::Tenant(Tenant::new("local"), "local".into())
        );
    }
}
