//! Who may call: virtual keys, known only by their hash.
//!
//! A key comes as bearer, `x-api-key` or `x-goog-api-key`, whatever the client's SDK does. It is hashed and compared with every known
//! hash in constant time, so that nothing is learned from how long a refusal takes. Without keys everybody on the loopback address
//! may call; the server refuses to listen elsewhere then.

use http::header::{AUTHORIZATION, HeaderName};
use koboshi::gate::Tenant;
use koboshi_config::gateway::{ClientKey, Named};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::observe::names;
use koboshi_wire::http1::Fields;

/// The longest key that is looked at.
const LONGEST_KEY: usize = 512;

/// The keys that clients may use.
pub(crate) struct Keys {
    known: Vec<([u8; 32], Tenant)>,
    /// Everybody, where nobody needs a key.
    local: Tenant,
}

/// What came of looking at a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Caller {
    /// One of ours, or nobody needs one.
    Tenant(Tenant),
    /// No key came.
    Nobody,
    /// A key came that is not known.
    Stranger,
}

impl Keys {
    /// Keys from the config; hashes that are no hashes were refused there.
    pub(crate) fn of(config: &Named<ClientKey>) -> Self {
        let known = config.iter().filter_map(|(name, key)| {
            let tenant = Tenant::new(key.tenant.as_deref().unwrap_or(name));
            Some((hash_of_hex(&key.sha256)?, tenant))
        });
        Self { known: known.collect(), local: Tenant::new("local") }
    }

    /// Whether callers need a key at all.
    pub(crate) fn are_needed(&self) -> bool {
        !self.known.is_empty()
    }

    /// Whoever calls without a key.
    pub(crate) fn local(&self) -> Tenant {
        self.local.clone()
    }

    /// Who calls with these headers.
    pub(crate) fn caller(&self, headers: &Fields, in_query: Option<&str>) -> Caller {
        if !self.are_needed() {
            return Caller::Tenant(self.local());
        }
        let Some(key) = presented(headers).or(in_query) else { return Caller::Nobody };
        if key.len() > LONGEST_KEY {
            return Caller::Stranger;
        }
        let hash: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        let mut found = None;
        for (known, tenant) in &self.known {
            if bool::from(known.ct_eq(&hash)) {
                found = Some(tenant);
            }
        }
        found.map_or(Caller::Stranger, |tenant| Caller::Tenant(tenant.clone()))
    }
}

const SCHEME: &str = "bearer ";

/// The key that a client sent, whichever way.
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

/// The tenant of a client that brings its own vendor key: nobody else shares its cache, its affinity or its place in a queue.
pub(crate) fn borrowed_tenant(key: &str) -> Tenant {
    let hash = Sha256::digest(key.as_bytes());
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Tenant::new(&format!("passthrough:{digits}"))
}

/// Whether a key is the one with this hash.
pub(crate) fn is_key(hex: &str, key: &str) -> bool {
    let hash: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    hash_of_hex(hex).is_some_and(|known| known.ct_eq(&hash).into())
}

/// A few digits that tell keys apart and say nothing about them.
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
        Keys::of(&Named::from([("laptop".to_owned(), ClientKey { sha256: hex, tenant: None })]))
    }

    fn with(name: &str, value: &str) -> Fields {
        Fields::of([(name, value.as_bytes())])
    }

    #[test]
    fn a_key_may_come_in_three_ways() {
        let tenant = Caller::Tenant(Tenant::new("laptop"));
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
    fn strangers_and_nobody_are_told_apart() {
        assert_eq!(keys().caller(&Fields::default(), None), Caller::Nobody);
        assert_eq!(keys().caller(&with("authorization", "Basic abc"), None), Caller::Nobody);
        assert_eq!(keys().caller(&with("x-api-key", "kbs-other"), None), Caller::Stranger);
        assert_eq!(keys().caller(&with("x-api-key", &"k".repeat(10_000)), None), Caller::Stranger);
    }

    #[test]
    fn a_key_may_stand_in_the_address() {
        assert_eq!(
            keys().caller(&Fields::default(), Some("kbs-secret")),
            Caller::Tenant(Tenant::new("laptop"))
        );
        let other = with("x-goog-api-key", "kbs-other");
        assert_eq!(keys().caller(&other, Some("kbs-secret")), Caller::Stranger, "the header counts");
    }

    #[test]
    fn without_keys_everybody_is_local() {
        let open = Keys::of(&Named::new());
        assert_eq!(open.caller(&Fields::default(), None), Caller::Tenant(Tenant::new("local")));
    }
}
