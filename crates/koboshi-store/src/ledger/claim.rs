//! Leases that are kept in the background, so that callers only read a flag.
//!
//! A caller that must be the only one in the fleet to do something claims a lease once; the keeper takes it when it is
//! free and renews it well before it ends. By the caller's own clock the flag goes off when the lease was not renewed
//! in time, so a node that is cut off stops acting before another one may begin.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::time::Moment;

use crate::store::Lease;

/// A lease is renewed, or asked for again, after this share of its length.
const AFTER: u32 = 3;

pub(super) struct Claim {
    ttl: Duration,
    lease: Option<HeldLease>,
    /// When the store answered last; before its first answer, when the lease was claimed.
    heard: Moment,
    /// The store has answered at least once.
    is_answered: bool,
    /// When to ask the store again.
    next: Moment,
    given_up: bool,
}

#[derive(Clone)]
struct HeldLease {
    lease: Lease,
    until: Moment,
}

/// What is known of a claimed lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClaimState {
    /// This node holds it.
    Held,
    /// Another node holds it, as the store said within the length of the lease.
    Elsewhere,
    /// The store has not said for this long who holds it.
    Unanswered(Duration),
}

/// What the keeper has to do for a claim.
pub(super) enum LeaseWork {
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

    /// Claims a lease from now on.
    pub(super) fn claim(&self, name: &str, ttl: Duration, now: Moment) {
        let fresh = Claim { ttl, lease: None, heard: now, is_answered: false, next: now, given_up: false };
        let mut claims = self.lock();
        let claim = claims.entry(name.to_owned()).or_insert(fresh);
        claim.ttl = ttl;
        claim.given_up = false;
    }

    /// Gives the claim up.
    pub(super) fn give_up(&self, name: &str, now: Moment) {
        if let Some(claim) = self.lock().get_mut(name) {
            claim.given_up = true;
            claim.next = now;
        }
    }

    /// Wants a lease from now on that an earlier process of this node took: it is ours if the store still has it with this fence.
    pub(super) fn resume(&self, name: &str, fence: u64, ttl: Duration, now: Moment) {
        let lease = Lease { name: name.to_owned(), fence, until: Timestamp::UNIX_EPOCH };
        // It is not held before the store has said so.
        let lease = Some(HeldLease { lease, until: now });
        let claim = Claim { ttl, lease, heard: now, is_answered: false, next: now, given_up: false };
        self.lock().insert(name.to_owned(), claim);
    }

    /// No longer renews a lease, and does not give it back: the lease holds until its end.
    pub(super) fn leave(&self, name: &str) {
        self.lock().remove(name);
    }

    /// The fence of a lease that is held now, and until when.
    pub(super) fn held(&self, name: &str, now: Moment) -> Option<(u64, Moment)> {
        let claims = self.lock();
        let claim = claims.get(name).filter(|claim| !claim.given_up)?;
        let held = claim.lease.as_ref().filter(|held| held.until > now)?;
        Some((held.lease.fence, held.until))
    }

    /// What is known of a lease; none where it is not claimed.
    pub(super) fn state(&self, name: &str, now: Moment) -> Option<ClaimState> {
        let claims = self.lock();
        let claim = claims.get(name).filter(|claim| !claim.given_up)?;
        let silent = now.since(claim.heard);
        Some(match &claim.lease {
            Some(held) if held.until > now => ClaimState::Held,
            None if claim.is_answered && silent < claim.ttl => ClaimState::Elsewhere,
            _ => ClaimState::Unanswered(silent),
        })
    }

    /// What there is to do now; `closing` gives everything back.
    pub(super) fn due_work(&self, now: Moment, closing: bool) -> Vec<LeaseWork> {
        let mut due_work = Vec::new();
        self.lock().retain(|name, claim| {
            match &claim.lease {
                Some(held) if claim.given_up || closing => {
                    due_work.push(LeaseWork::Release { lease: held.lease.clone() });
                    return false;
                }
                None if claim.given_up || closing => return false,
                _ if claim.next > now => {}
                Some(held) => due_work.push(LeaseWork::Renew { lease: held.lease.clone(), ttl: claim.ttl }),
                None => due_work.push(LeaseWork::Take { name: name.clone(), ttl: claim.ttl }),
            }
            true
        });
        due_work
    }

    /// The store's answer to a request for this length. `asked` is when it was asked: the lease began no earlier.
    pub(super) fn settle(&self, name: &str, lease: Option<Lease>, ttl: Duration, asked: Moment) {
        if let Some(claim) = self.lock().get_mut(name) {
            // Not the claim's length: it may have changed while the store was asked.
            claim.next = asked.after(ttl.min(claim.ttl) / AFTER);
            claim.lease = lease.map(|lease| HeldLease { lease, until: asked.after(ttl) });
            (claim.heard, claim.is_answered) = (asked, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    fn at(seconds: u64) -> Moment {
        Moment::START.after(Duration::from_secs(seconds))
    }

    fn lease(fence: u64) -> Option<Lease> {
        Some(Lease { name: "probe".to_owned(), fence, until: Timestamp::UNIX_EPOCH })
    }

    fn fence(claims: &Claims, seconds: u64) -> Option<u64> {
        claims.held("probe", at(seconds)).map(|(fence, _)| fence)
    }

    #[test]
    fn a_lease_of_an_earlier_process_is_ours_once_the_store_says_so() {
        let claims = Claims::default();
        claims.resume("probe", 7, TTL, at(5));
        assert_eq!(fence(&claims, 5), None, "nobody has said so yet");
        assert!(
            matches!(&claims.due_work(at(5), false)[..], [LeaseWork::Renew { lease, .. }] if lease.fence == 7)
        );
        claims.settle("probe", lease(7), TTL, at(5));
        assert_eq!(claims.held("probe", at(6)), Some((7, at(35))));
        // Another process has it: it is asked for like any other.
        claims.settle("probe", None, TTL, at(15));
        assert!(matches!(claims.due_work(at(25), false)[..], [LeaseWork::Take { .. }]));
    }

    #[test]
    fn a_lease_that_is_left_is_not_given_back() {
        let claims = Claims::default();
        claims.claim("probe", TTL, at(0));
        claims.settle("probe", lease(7), TTL, at(0));
        claims.leave("probe");
        assert!(claims.due_work(at(1), true).is_empty());
        assert_eq!(fence(&claims, 1), None);
    }

    #[test]
    fn a_lease_is_taken_renewed_and_off_when_the_store_stays_away() {
        let claims = Claims::default();
        claims.claim("probe", TTL, at(0));
        assert!(matches!(claims.due_work(at(0), false)[..], [LeaseWork::Take { .. }]));
        claims.settle("probe", lease(7), TTL, at(0));
        assert_eq!(fence(&claims, 1), Some(7));
        assert!(claims.due_work(at(9), false).is_empty(), "not yet");
        assert!(matches!(claims.due_work(at(10), false)[..], [LeaseWork::Renew { .. }]));
        // The store is away: nothing is settled.
        assert_eq!(fence(&claims, 29), Some(7));
        assert_eq!(fence(&claims, 30), None, "another node may have it now");
    }

    #[test]
    fn a_lease_lasts_as_long_as_the_store_was_asked_for() {
        let claims = Claims::default();
        claims.claim("probe", TTL, at(0));
        let [LeaseWork::Take { ttl, .. }] = claims.due_work(at(0), false)[..] else { panic!("one errand") };
        // While the store is being asked, the caller wants it for longer.
        claims.claim("probe", TTL * 10, at(0));
        claims.settle("probe", lease(7), ttl, at(0));
        assert_eq!(fence(&claims, 29), Some(7));
        assert_eq!(fence(&claims, 30), None, "another node may have it now");
        assert!(
            matches!(claims.due_work(at(10), false)[..], [LeaseWork::Renew { ttl, .. }] if ttl == TTL * 10)
        );
        claims.settle("probe", lease(7), TTL * 10, at(10));
        assert_eq!(fence(&claims, 309), Some(7));
        assert_eq!(fence(&claims, 310), None);
    }

    #[test]
    fn a_claim_says_whether_the_store_has_answered() {
        let claims = Claims::default();
        assert_eq!(claims.state("probe", at(0)), None);
        claims.claim("probe", TTL, at(0));
        assert_eq!(claims.state("probe", at(1)), Some(ClaimState::Unanswered(Duration::from_secs(1))));
        claims.settle("probe", None, TTL, at(2));
        assert_eq!(claims.state("probe", at(3)), Some(ClaimState::Elsewhere));
        assert_eq!(
            claims.state("probe", at(32)),
            Some(ClaimState::Unanswered(TTL)),
            "it has not answered since"
        );
        claims.settle("probe", lease(7), TTL, at(40));
        assert_eq!(claims.state("probe", at(41)), Some(ClaimState::Held));
        assert_eq!(claims.state("probe", at(70)), Some(ClaimState::Unanswered(TTL)));
        claims.give_up("probe", at(70));
        assert_eq!(claims.state("probe", at(70)), None);
    }

    #[test]
    fn what_is_given_up_is_given_back() {
        let claims = Claims::default();
        claims.claim("probe", TTL, at(0));
        claims.settle("probe", lease(7), TTL, at(0));
        claims.give_up("probe", at(1));
        assert_eq!(fence(&claims, 1), None, "at once");
        assert!(matches!(claims.due_work(at(1), false)[..], [LeaseWork::Release { .. }]));
        assert!(claims.due_work(at(100), false).is_empty());
    }
}
