//! What cannot be used now: one row for each key that is in cooldown, parked, limited, or whose breaker is not closed.
//!
//! The rows are made here for all programs that show them, so that the command line says the same of a file and of a running
//! gateway. Words for people are not here: a row is data.

use std::borrow::Cow;
use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use koboshi::breaker::{BreakerSnapshot, Mode, Why};
use koboshi::cooldown::{Class, Rest, Standing};
use koboshi::fault::{Kind, Sub};
use koboshi::key::ScopeKey;
use serde::{Deserialize, Serialize};

use crate::error::StoreError;
use crate::journal::{EntryKind, Query};
use crate::record::{Node, Record};
use crate::store::{Named, Store};

/// How long an open breaker is still shown after its time: no request has tested it since.
const MAX_SHOWN_AFTER: SignedDuration = SignedDuration::from_secs(60);

/// Why a key cannot be used, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RowState {
    /// Stopped until a person resumes it.
    Parked,
    /// In cooldown until a time.
    Cooling,
    /// The provider has no such model.
    Absent,
    /// A limit of the provider is reached.
    Held,
    /// An operator keeps the breaker open.
    ForcedOpen,
    /// The breaker is open.
    Open,
    /// The breaker lets a few requests through to find out.
    Probing,
    /// The cooldown is over and no request was sent since.
    Due,
    /// An operator switched the breaker off.
    Disabled,
    /// An operator keeps the breaker closed.
    ForcedClosed,
}

impl RowState {
    /// Stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parked => "parked",
            Self::Cooling => "cooling",
            Self::Absent => "absent",
            Self::Held => "held",
            Self::ForcedOpen => "forced_open",
            Self::Open => "open",
            Self::Probing => "probing",
            Self::Due => "due",
            Self::Disabled => "disabled",
            Self::ForcedClosed => "forced_closed",
        }
    }

    /// Whether nothing goes through.
    #[must_use]
    pub const fn stops(self) -> bool {
        matches!(
            self,
            Self::Parked | Self::Cooling | Self::Absent | Self::Held | Self::ForcedOpen | Self::Open
        )
    }
}

/// One key that cannot be used freely: why, since when and until when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// What it is about.
    pub key: ScopeKey,
    /// Why it cannot be used.
    pub state: RowState,
    /// Nothing goes through.
    pub stops: bool,
    /// Name of the cooldown's class or of the limit; none for a breaker.
    pub reason: Option<Cow<'static, str>>,
    /// A reason that says more than the class, or claims less: `region`, `status_402`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finer: Option<Cow<'static, str>>,
    /// Failures, or openings of the breaker, in a row.
    #[serde(rename = "consecutive")]
    pub streak: u32,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Until when; none if a person must decide, or where no time is known.
    pub until: Option<Timestamp>,
    /// The message: the provider's own, the operator's reason, or the last fault before a breaker opened.
    pub detail: String,
    /// Whose breaker it is.
    pub node: Option<Node>,
    /// Why a breaker is as it is.
    #[serde(default)]
    pub why: Option<Why>,
}

impl Row {
    /// A row with this state of a key, and nothing else.
    #[must_use]
    pub fn new(key: ScopeKey, state: RowState) -> Self {
        Self {
            key,
            state,
            stops: state.stops(),
            reason: None,
            finer: None,
            streak: 0,
            since: None,
            until: None,
            detail: String::new(),
            node: None,
            why: None,
        }
    }

    /// The state that this record shows now, if it keeps the key from being used.
    #[must_use]
    pub fn of((slot, record): &Named, now: Timestamp) -> Option<Self> {
        let row =
            |state: RowState| Self { node: slot.node().cloned(), ..Self::new(slot.key().clone(), state) };
        match record {
            Record::Cooldown(cooldown) => {
                let (state, rest, until) = match cooldown.standing(now) {
                    Standing::Parked(rest) => (RowState::Parked, rest, None),
                    Standing::Cooling { rest, until } if rest.is_absence() => {
                        (RowState::Absent, rest, Some(until))
                    }
                    Standing::Cooling { rest, until } => (RowState::Cooling, rest, Some(until)),
                    Standing::Due(rest) => (RowState::Due, rest, Some(rest.ends(now))),
                    _ => return None,
                };
                Some(Self {
                    since: Some(rest.since),
                    until,
                    // A missing model is reason enough.
                    reason: (state != RowState::Absent).then(|| reason(rest).name().into()),
                    finer: finer(rest).map(Into::into),
                    streak: rest.streak(),
                    detail: rest.detail.clone(),
                    ..row(state)
                })
            }
            Record::Holds(holds) => {
                let (limit, until) = holds.longest(now)?;
                Some(Self { until: Some(until), reason: Some(limit.name().into()), ..row(RowState::Held) })
            }
            // Its gateway would test it with the next request, and none came: that says nothing any more.
            Record::Breaker(snapshot) if is_long_over(snapshot, now) => None,
            Record::Breaker(snapshot) => {
                let state = match snapshot.mode_at(now) {
                    Mode::Open => RowState::Open,
                    Mode::Probing => RowState::Probing,
                    Mode::ForcedOpen => RowState::ForcedOpen,
                    Mode::ForcedClosed => RowState::ForcedClosed,
                    Mode::Disabled => RowState::Disabled,
                    _ => return None,
                };
                Some(Self {
                    since: Some(snapshot.since),
                    until: snapshot.until.filter(|until| *until > now),
                    streak: snapshot.openings,
                    why: snapshot.why,
                    ..row(state)
                })
            }
        }
    }
}

/// Whether the time of an open breaker has been over for a while.
fn is_long_over(snapshot: &BreakerSnapshot, now: Timestamp) -> bool {
    let over = snapshot.until.filter(|_| snapshot.mode == Mode::Open).map(|until| now.duration_since(until));
    over.is_some_and(|over| over > MAX_SHOWN_AFTER)
}

/// Why a key is in cooldown, as the client's error stated it: weak evidence (a bare status) counts as any error for the length of a
/// cooldown, but its cause is known.
fn reason(rest: &Rest) -> Class {
    let cause = rest.cause.filter(|_| rest.class == Class::Error);
    cause.map_or(rest.class, |cause| Class::of(&cause.fault("cooldown", "")))
}

/// How the detail of a cooldown begins that too many starts began.
const TOO_MANY_STARTS: &str = "started ";

/// What the class does not say, or says too much: it puts an empty balance, a bare 402 and a blocked region under two words.
fn finer(rest: &Rest) -> Option<&'static str> {
    // Runs that ended well, and too many of them: no error was seen.
    if rest.cause.is_none() && rest.class == Class::Error && rest.detail.starts_with(TOO_MANY_STARTS) {
        return Some("starts");
    }
    let cause = rest.cause?;
    let is_bare = rest.class == Class::Error && !rest.parked && reason(rest) != Class::Error;
    match (cause.kind, cause.sub, cause.status) {
        (_, _, Some(401)) if is_bare => Some("status_401"),
        (_, _, Some(402)) if is_bare => Some("status_402"),
        (_, _, Some(403)) if is_bare => Some("status_403"),
        (Kind::PermissionDenied, Some(Sub::Region), _) => Some("region"),
        (Kind::PermissionDenied, Some(Sub::Blocked), _) => Some("blocked"),
        (Kind::PermissionDenied, Some(Sub::Model), _) => Some("model"),
        (Kind::PermissionDenied, ..) => Some("permission"),
        (Kind::Unauthorized, ..) => Some("key"),
        (Kind::TokenExpired, ..) => Some("sign_in"),
        (Kind::QuotaExceeded, Some(Sub::Plan), _) => Some("plan"),
        _ => None,
    }
}

/// All rows, worst first, then by key.
#[must_use]
pub fn rows(records: &[Named], now: Timestamp) -> Vec<Row> {
    let mut rows: Vec<Row> = records.iter().filter_map(|named| Row::of(named, now)).collect();
    let resumed = resumed(records);
    // Its gateway closes such a breaker as soon as it has read the order.
    rows.retain(|row| row.node.is_none() || resumed.get(&row.key).is_none_or(|at| row.since > Some(*at)));
    rows.sort_by(|a, b| (a.state, &a.key, &a.node).cmp(&(b.state, &b.key, &b.node)));
    rows
}

/// When an operator resumed a key, for those keys where that was the last order.
fn resumed(records: &[Named]) -> HashMap<&ScopeKey, Timestamp> {
    let each = records.iter().filter_map(|(slot, record)| match record {
        Record::Cooldown(cooldown) => Some((slot.key(), cooldown.resumed_at()?)),
        _ => None,
    });
    each.collect()
}

/// Adds to the rows of breakers what the journal says: the last fault of that target.
///
/// # Errors
/// The store cannot be read now.
pub fn explain(store: &dyn Store, rows: &mut [Row]) -> Result<(), StoreError> {
    for row in rows.iter_mut().filter(|row| matches!(row.state, RowState::Open | RowState::Probing)) {
        let last =
            Query { what: Some(EntryKind::Fault), key: Some(row.key.clone()), limit: 1, ..Query::default() };
        if let Some(fault) = store.query(&last)?.pop() {
            let kind = fault.kind.as_deref().unwrap_or_default();
            row.detail = format!("{kind}: {}", fault.text);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryStore;
    use crate::{Entry, Slot};
    use koboshi::chance::Seed;
    use koboshi::cooldown::{Cooldown, CooldownPolicy, Failure};
    use koboshi::fault::{Confidence, Fault};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_an_operator_cooled_says_who_and_why() {
        let mut cooldown = Cooldown::default();
        cooldown.cool(at(100), "incident 4711", at(10));
        let named = (Slot::cooldown("provider:openai".parse().unwrap()), Record::Cooldown(cooldown));
        let row = Row::of(&named, at(20)).unwrap();
        assert_eq!((row.reason.as_deref(), row.detail.as_str()), (Some("operator"), "incident 4711"));
        assert_eq!((row.since, row.until), (Some(at(10)), Some(at(100))));
    }

    /// A bare 402 is weak evidence and parks nothing, but the client's error names billing, and so must the operator's row.
    #[test]
    fn a_bare_status_has_the_reason_of_the_clients_error() {
        for (kind, sub, reason) in [
            (Kind::QuotaExceeded, Some(Sub::Billing), "billing"),
            (Kind::PermissionDenied, Some(Sub::Region), "auth"),
            (Kind::Internal, None, "error"),
        ] {
            let mut fault = Fault::of(kind, "status");
            (fault.sub, fault.confidence) = (sub, Confidence::Low);
            let mut cooldown = Cooldown::default();
            cooldown.fail(&Failure::of(&fault), &CooldownPolicy::default(), at(10), Seed::new(7));
            let named = (Slot::cooldown("account:main".parse().unwrap()), Record::Cooldown(cooldown));
            assert_eq!(Row::of(&named, at(11)).unwrap().reason.as_deref(), Some(reason));
        }
    }

    #[test]
    fn a_breaker_whose_time_is_over_names_no_time() {
        let key: ScopeKey = "target:sim/ok#none".parse().unwrap();
        let open = BreakerSnapshot {
            at: at(1),
            mode: Mode::Open,
            since: at(1),
            until: Some(at(10)),
            openings: 1,
            why: Some(Why::Consecutive { failures: 5 }),
            is_local: false,
        };
        let named = (Slot::breaker(key.clone(), "n1".parse().unwrap()), Record::Breaker(open));
        let mut rows = rows(std::slice::from_ref(&named), at(5));
        assert_eq!((rows[0].state, rows[0].until), (RowState::Open, Some(at(10))));
        let store = MemoryStore::default();
        let fault = |second, text: &str| Entry {
            kind: Some("overloaded".into()),
            key: Some(key.clone()),
            ..Entry::new(at(second), &"n1".parse().unwrap(), EntryKind::Fault, text)
        };
        store.append(&[fault(0, "first"), fault(1, "last")]).unwrap();
        explain(&store, &mut rows).unwrap();
        assert_eq!(rows[0].detail, "overloaded: last");
        let over = Row::of(&named, at(20)).unwrap();
        assert_eq!((over.state, over.until, over.since), (RowState::Probing, None, Some(at(1))));
        assert_eq!(Row::of(&named, at(100)), None, "nobody asked for it since");
        let read: Row = serde_json::from_str(&serde_json::to_string(&over).unwrap()).unwrap();
        assert_eq!(read, over, "as a gateway sends it and the command line reads it");
    }
}
