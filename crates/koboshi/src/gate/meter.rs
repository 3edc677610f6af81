//! The four counted limits together, and what of the live reservations the provider has not counted yet.
//!
//! A reservation is taken off every level at once. Later it is either in the level (we took it off) or in the number
//! that the provider stated since (it took it off), never in both and never in neither:
//!
//! - Until its answer begins it is *unseen*: every statement is lowered by it, so it stays in the level.
//! - When its answer begins the provider has counted it. The next statement contains it, so from then on it is no longer
//!   ours to give back. A generation per limit, raised by every statement, tells whether that statement has come.
//! - Output tokens are unseen until the end: a provider that states them apart counts them as they are made.

use crate::time::Moment;

use super::bucket::{Allowance, Bucket, Circumstances, Refreshed};
use super::{Cost, GatePolicy, Level, Limit};

const COUNTED: [Limit; 4] = [Limit::Requests, Limit::Tokens, Limit::InputTokens, Limit::OutputTokens];

/// Which statement each limit had heard when an answer began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp([u64; COUNTED.len()]);

/// How a reservation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// Nothing was sent: all of it comes back.
    Returned,
    /// Something was sent and nobody knows what it cost: the estimate stays.
    Kept,
    /// It cost this.
    Cost(Cost),
}

#[derive(Debug)]
struct Slot {
    limit: Limit,
    bucket: Option<Bucket>,
    /// Raised by every statement and every new window.
    generation: u64,
    unseen: u128,
    /// Until then nobody is warned again.
    warned_until: Moment,
}

#[derive(Debug)]
pub(super) struct Meter {
    slots: [Slot; COUNTED.len()],
}

impl Meter {
    pub(super) fn new() -> Self {
        let slot =
            |limit| Slot { limit, bucket: None, generation: 0, unseen: 0, warned_until: Moment::START };
        Self { slots: COUNTED.map(slot) }
    }

    /// Brings every level up to this moment; says whether one was let go all at once.
    pub(super) fn refresh(&mut self, now: Moment) -> bool {
        let mut let_go = false;
        for slot in &mut self.slots {
            let Some(bucket) = &mut slot.bucket else { continue };
            match bucket.refresh(slot.unseen, now) {
                Refreshed::Same => continue,
                Refreshed::Reset => slot.generation += 1,
                Refreshed::Forgotten => slot.bucket = None,
            }
            let_go = true;
        }
        let_go
    }

    pub(super) fn learn(&mut self, limit: Limit, allowance: Allowance, policy: &GatePolicy, now: Moment) {
        let Some(slot) = self.slots.iter_mut().find(|slot| slot.limit == limit) else { return };
        let about = Circumstances {
            headroom: policy.headroom,
            forget_after: policy.forget_after,
            unseen: slot.unseen,
        };
        slot.bucket = Some(Bucket::learned(allowance, slot.bucket.as_ref(), about, now));
        slot.generation += 1;
    }

    pub(super) fn forget(&mut self) {
        for slot in &mut self.slots {
            slot.bucket = None;
        }
    }

    /// The limit that keeps this cost back longest, and until when at least.
    pub(super) fn wait(&self, cost: Cost) -> Option<(Moment, Limit)> {
        let waits = self.slots.iter().filter_map(|slot| Some((slot.ready(cost)?, slot.limit)));
        waits.max_by_key(|(until, _)| *until)
    }

    pub(super) fn take(&mut self, cost: Cost) {
        for slot in &mut self.slots {
            let units = slot.units(cost);
            slot.unseen = slot.unseen.saturating_add(u128::from(units));
            slot.change(-i128::from(units));
        }
    }

    /// The answer to a reservation has begun.
    pub(super) fn seen(&mut self, cost: Cost) -> Stamp {
        for slot in self.slots.iter_mut().filter(|slot| slot.is_counted_at_once()) {
            slot.unseen = slot.unseen.saturating_sub(u128::from(slot.units(cost)));
        }
        let mut stamp = Stamp([0; COUNTED.len()]);
        for (mark, slot) in stamp.0.iter_mut().zip(&self.slots) {
            *mark = slot.generation;
        }
        stamp
    }

    /// A reservation has ended. The levels must be fresh if it may cost more than was reserved.
    pub(super) fn end(&mut self, cost: Cost, stamp: Option<Stamp>, end: End) {
        for (index, slot) in self.slots.iter_mut().enumerate() {
            let reserved = slot.units(cost);
            let heard =
                stamp.filter(|_| slot.is_counted_at_once()).and_then(|stamp| stamp.0.get(index).copied());
            if heard.is_none() {
                slot.unseen = slot.unseen.saturating_sub(u128::from(reserved));
            }
            let is_stated = heard.is_some_and(|generation| slot.generation > generation);
            let change = match end {
                End::Kept => 0,
                End::Returned => i128::from(reserved),
                End::Cost(actual) => i128::from(reserved) - i128::from(slot.units(actual)),
            };
            // The provider counts what it expected at first; only what went beyond the estimate is surely new to it.
            slot.change(if is_stated { change.min(0) } else { change });
        }
    }

    /// Limits that are nearly used up and were not told of in this window.
    pub(super) fn warnings(&mut self, now: Moment) -> impl Iterator<Item = (Limit, u8)> {
        self.slots.iter_mut().filter(move |slot| now >= slot.warned_until).filter_map(|slot| {
            let (percent, over) = slot.bucket.as_ref()?.nearly()?;
            slot.warned_until = over;
            Some((slot.limit, percent))
        })
    }

    pub(super) fn levels(&self) -> Vec<Level> {
        let known = self.slots.iter().filter_map(|slot| Some((slot.limit, slot.bucket.as_ref()?)));
        known.map(|(limit, bucket)| Level { limit, left: bucket.left(), most: bucket.most() }).collect()
    }
}

impl Slot {
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
