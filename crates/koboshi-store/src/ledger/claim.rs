//! Leases that are kept in the background, so that callers only read a flag.
//!
//! Whoever wants to do something alone in the fleet says so once; the keeper takes the lease when it is free and renews
//! it well before it ends. The flag goes off by the caller's own clock when it was not renewed in time, so a node that is
//! cut off stops acting before somebody else may begin.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use koboshi::time::Moment;

use crate::store::Lease;

/// A lease is renewed, or asked for again, after this share of its length.
const AFTER: u32 = 3;

pub(super) struct Claim {
    ttl: Duration,
    lease: Option<HeldLease>,
    /// When to ask the store again.
    next: Moment,
    given_up: bool,
}

#[derive(Clone)]
struct HeldLease {
    lease: Lease,
    until: Moment,
}

/// What the keeper has to do for a claim.
pub(super) enum Errand {
    Take { name: String, ttl: Duration },
    Renew { lease: Lease, ttl: Duration },
    Release { lease: Lease },
}

#[derive(Default)]
pub(super) struct Claims {
    claims: Mutex<HashMap<String, Claim>>,
}

impl Claims {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, Claim>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wants a lease from now on.
    pub(super) fn claim(&self, name: &str, ttl: Duration, now: Moment) {
        let fresh = Claim { ttl, lease: None, next: now, given_up: false };
        let mut claims = self.lock();
        let claim = claims.entry(name.to_owned()).or_insert(fresh);
        claim.ttl = ttl;
        claim.given_up = false;
    }

    /// No longer wants it.
    pub(super) fn give_up(&self, name: &str, now: Moment) {
        if let Some(claim) = self.lock().get_mut(name) {
            claim.given_up = true;
            claim.next = now;
        }
    }

    /// The fence of a lease that is held now.
    pub(super) fn held(&self, name: &str, now: Moment) -> Option<u64> {
        let claims = self.lock();
        let claim = claims.get(name).filter(|claim| !claim.given_up)?;
        claim.lease.as_ref().filter(|held| held.until > now).map(|held| held.lease.fence)
    }

    /// What there is to do now; `closing` gives everything back.
    pub(super) fn errands(&self, now: Moment, closing: bool) -> Vec<Errand> {
        let mut errands = Vec::new();
        self.lock().retain(|name, claim| {
            match &claim.lease {
                Some(held) if claim.given_up || closing => {
                    errands.push(Errand::Release { lease: held.lease.clone() });
                    return false;
                }
                None if claim.given_up || closing => return false,
                _ if claim.next > now => {}
                Some(held) => errands.push(Errand::Renew { lease: held.lease.clone(), ttl: claim.ttl }),
                None => errands.push(Errand::Take { name: name.clone(), ttl: claim.ttl }),
            }
            true
        });
        errands
    }

    /// What the store said to an errand of this length. `asked` is when it was asked: the lease began no earlier.
    pub(super) fn settle(&self, name: &str, lease: Option<Lease>, ttl: Duration, asked: Moment) {
        if let Some(claim) = self.lock().get_mut(name) {
            // Not the claim's length: it may have changed while the store was asked.
            claim.next = asked.after(ttl.min(claim.ttl) / AFTER);
            claim.lease = lease.map(|lease| HeldLease { lease, until: asked.after(ttl) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    const TTL: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Moment {
        Moment::START.after(Duration::from_secs(seconds))
    }

    fn lease(fence: u64) -> Option<Lease> {
        Some(Lease { name: "probe".to_owned(), fence, until: Timestamp::UNIX_EPOCH })
    }

    #[test]
    fn a_lease_is_taken_renewed_and_off_when_the_store_stays_away() {
        let claims = Claims::default();
        claims.claim("probe", TTL, at(0));
        assert!(matches!(claims.errands(at(0), false)[..], [Errand::Take { .. }]));
        claims.settle("probe", lease(7), TTL, at(0));
        assert_eq!(claims.held("probe", at(1)), Some(7));
        assert!(claims.errands(at(9), false).is_empty(), "not yet");
        assert!(matches!(claims.errands(at(10), false)[..], [Errand::Renew { .. }]));
        // The store is away: nothing is settled.
        assert_eq!(claims.held("probe", at(29)), Some(7));
        assert_eq!(claims.held("probe", at(30)), None, "somebody else may have it now");
    }

    #[test]
    fn a_lease_lasts_as_long_as_the_store_was_asked_for() {
        let claims = Claims::default();
        claims.claim("probe", TTL, at(0));
        let [Errand::Take { ttl, .. }] = claims.errands(at(0), false)[..] else { panic!("one errand") };
        // While the store is being asked, the caller wants it for longer.
        claims.claim("probe", TTL * 10, at(0));
        claims.settle("probe", lease(7), ttl, at(0));
        assert_eq!(claims.held("probe", at(29)), Some(7));
        assert_eq!(claims.held("probe", at(30)), None, "somebody else may have it now");
        assert!(matches!(claims.errands(at(10), false)[..], [Errand::Renew { ttl, .. }] if ttl == TTL * 10));
        claims.settle("probe", lease(7), TTL * 10, at(10));
        assert_eq!(claims.held("probe", at(309)), Some(7));
        assert_eq!(claims.held("probe", at(310)), None);
    }

    #[test]
    fn what_is_given_up_is_given_back() {
        let claims = Claims::default();
        claims.claim("probe", TTL, at(0));
        claims.settle("probe", lease(7), TTL, at(0));
        claims.give_up("probe", at(1));
        assert_eq!(claims.held("probe", at(1)), None, "at once");
        assert!(matches!(claims.errands(at(1), false)[..], [Errand::Release { .. }]));
        assert!(claims.errands(at(100), false).is_empty());
    }
}
