//! The four counted limits together, and what of the live reservations the provider has not counted yet.
//!
//! A reservation is taken off every level at once. Later it is either in the level (we took it off) or in the number
//! that the provider stated since (it took it off), never in both and never in neither:
//!
//! - Until its answer begins it is *unseen*: every statement is lowered by it, so it stays in the level.
//! - When its answer begins the provider has counted it. The next statement contains it, so from then on it is no longer
//!   ours to give back. A count per limit, raised by every statement, tells whether that statement has come.
//! - Output tokens are unseen until the end: a provider that states them apart counts them as they are made.

use crate::cooldown::FleetPlace;
use crate::time::Moment;

use super::bucket::{Allowance, Bucket, BucketContext, WindowChange};
use super::{Cost, GatePolicy, Level, Limit};

const COUNTED: [Limit; 4] = [Limit::Requests, Limit::Tokens, Limit::InputTokens, Limit::OutputTokens];

/// The number of statements that each limit had had when an answer began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp([u64; COUNTED.len()]);

/// How a reservation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing was sent: all of it comes back.
    Returned,
    /// Something was sent and its cost is not known: the estimate stays.
    Kept,
    /// It cost this.
    Cost(Cost),
}

#[derive(Debug)]
struct MeteredLimit {
    limit: Limit,
    bucket: Option<Bucket>,
    /// Raised by every statement and every new window.
    statements: u64,
    unseen: u128,
    /// Until then no warning is repeated.
    warned_until: Moment,
}

#[derive(Debug)]
pub(super) struct Meter {
    metered: [MeteredLimit; COUNTED.len()],
}

impl Meter {
    pub(super) fn new() -> Self {
        let metered = |limit| MeteredLimit {
            limit,
            bucket: None,
            statements: 0,
            unseen: 0,
            warned_until: Moment::START,
        };
        Self { metered: COUNTED.map(metered) }
    }

    /// Brings every level up to this moment; says whether one was let go all at once.
    pub(super) fn refresh(&mut self, now: Moment) -> bool {
        let mut let_go = false;
        for metered in &mut self.metered {
            let Some(bucket) = &mut metered.bucket else { continue };
            match bucket.refresh(metered.unseen, now) {
                WindowChange::Same => continue,
                WindowChange::Reset => metered.statements += 1,
                WindowChange::Forgotten => metered.bucket = None,
            }
            let_go = true;
        }
        let_go
    }

    pub(super) fn learn(
        &mut self,
        limit: Limit,
        allowance: Allowance,
        place: FleetPlace,
        policy: &GatePolicy,
        now: Moment,
    ) {
        let Some(metered) = self.metered.iter_mut().find(|metered| metered.limit == limit) else { return };
        let about = BucketContext {
            headroom: policy.headroom,
            forget_after: policy.forget_after,
            unseen: metered.unseen,
        };
        let earlier = metered.bucket.as_ref();
        let learned = Bucket::learned(allowance.share_of(place), earlier, about, now);
        metered.bucket = Some(if place.nodes > 1 { learned.within_own_part(earlier) } else { learned });
        metered.statements += 1;
    }

    pub(super) fn forget(&mut self) {
        for metered in &mut self.metered {
            metered.bucket = None;
        }
    }

    /// The limit that keeps this cost back longest, and until when at least.
    pub(super) fn wait(&self, cost: Cost) -> Option<(Moment, Limit)> {
        let waits = self.metered.iter().filter_map(|metered| Some((metered.ready(cost)?, metered.limit)));
        waits.max_by_key(|(until, _)| *until)
    }

    pub(super) fn take(&mut self, cost: Cost) {
        for metered in &mut self.metered {
            let units = metered.units(cost);
            metered.unseen = metered.unseen.saturating_add(u128::from(units));
            metered.change(-i128::from(units));
        }
    }

    /// The answer to a reservation has begun.
    pub(super) fn seen(&mut self, cost: Cost) -> Stamp {
        for metered in self.metered.iter_mut().filter(|metered| metered.is_counted_at_once()) {
            metered.unseen = metered.unseen.saturating_sub(u128::from(metered.units(cost)));
        }
        let mut stamp = Stamp([0; COUNTED.len()]);
        for (mark, metered) in stamp.0.iter_mut().zip(&self.metered) {
            *mark = metered.statements;
        }
        stamp
    }

    /// A reservation has ended. The levels must be fresh if it may cost more than was reserved.
    pub(super) fn end(&mut self, cost: Cost, stamp: Option<Stamp>, end: End) {
        for (index, metered) in self.metered.iter_mut().enumerate() {
            let reserved = metered.units(cost);
            let heard =
                stamp.filter(|_| metered.is_counted_at_once()).and_then(|stamp| stamp.0.get(index).copied());
            if heard.is_none() {
                metered.unseen = metered.unseen.saturating_sub(u128::from(reserved));
            }
            let is_stated = heard.is_some_and(|statements| metered.statements > statements);
            let change = match end {
                End::Kept => 0,
                End::Returned => i128::from(reserved),
                End::Cost(actual) => i128::from(reserved) - i128::from(metered.units(actual)),
            };
            // The provider counts what it expected at first; only what went beyond the estimate is surely new to it.
            metered.change(if is_stated { change.min(0) } else { change });
        }
    }

    /// Limits that are nearly used up and were not reported in this window.
    pub(super) fn warnings(&mut self, now: Moment) -> impl Iterator<Item = (Limit, u8)> {
        self.metered.iter_mut().filter(move |metered| now >= metered.warned_until).filter_map(|metered| {
            let (percent, over) = metered.bucket.as_ref()?.nearly()?;
            metered.warned_until = over;
            Some((metered.limit, percent))
        })
    }

    pub(super) fn levels(&self) -> Vec<Level> {
        let known = self.metered.iter().filter_map(|metered| Some((metered.limit, metered.bucket.as_ref()?)));
        known.map(|(limit, bucket)| Level { limit, left: bucket.left(), max: bucket.max() }).collect()
    }
}

impl MeteredLimit {
    fn units(&self, cost: Cost) -> u64 {
        cost.against(self.limit).unwrap_or(0)
    }

    fn ready(&self, cost: Cost) -> Option<Moment> {
        self.bucket.as_ref()?.ready(self.units(cost))
    }

    fn change(&mut self, units: i128) {
        if let Some(bucket) = &mut self.bucket {
            bucket.change(units);
        }
    }

    fn is_counted_at_once(&self) -> bool {
        self.limit != Limit::OutputTokens
    }
}
