//! What is the matter now, read from what the store holds: cooldowns, parks, breakers, limits, budgets.

use std::collections::HashMap;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use koboshi::cooldown::{Cause, Cooldown, Standing};
use koboshi::fault::Kind;
use koboshi::notice::{Fact, Severity, Trigger};
use koboshi::spend::{Amount, Period, SpentAmounts};
use koboshi_config::Config;
use koboshi_store::standing::{Row, RowState};
use koboshi_store::{KeySpent, Record, Slot};

/// The reason of what a person did.
const OPERATOR: &str = "operator";
/// How the finer reason begins where a status is all that came.
const BARE: &str = "status_";
/// The reason of a limit for a long window.
const QUOTA: &str = "quota";

/// The facts that records state, as these rows show them.
pub(crate) fn of_records(records: &HashMap<Slot, Record>, rows: &[Row], now: Timestamp) -> Vec<Fact> {
    let cause_of = |row: &Row| match records.get(&Slot::cooldown(row.key.clone())) {
        Some(Record::Cooldown(cooldown)) => cause_of(cooldown, now),
        _ => None,
    };
    rows.iter().filter_map(|row| of_row(row, cause_of(row), now)).collect()
}

/// The fault behind a cooldown; none behind what a person decided.
fn cause_of(cooldown: &Cooldown, now: Timestamp) -> Option<Cause> {
    let rest = match cooldown.standing(now) {
        Standing::Parked(rest) | Standing::Due(rest) | Standing::Cooling { rest, .. } => rest,
        _ => return None,
    };
    rest.cause.or_else(|| Cause::of_class(rest.class))
}

fn of_row(row: &Row, cause: Option<Cause>, now: Timestamp) -> Option<Fact> {
    let (reason, kind) = (row.reason.as_deref(), cause.map(|cause| cause.kind));
    // Where a status is all that came, a notice must not claim a reason.
    let is_bare = row.finer.as_deref().is_some_and(|finer| finer.starts_with(BARE));
    let by_person = reason == Some(OPERATOR);
    let (trigger, severity, kind) = match row.state {
        // The person who did it knows it.
        _ if by_person => (Trigger::Cooldown, Severity::Info, None),
        RowState::Parked => (Trigger::Park, Severity::Critical, kind),
        RowState::Cooling | RowState::Absent | RowState::Due => {
            (Trigger::Cooldown, kind.map_or(Severity::Warning, Severity::of_kind), kind)
        }
        RowState::Held => {
            let kind = if reason == Some(QUOTA) { Kind::QuotaExceeded } else { Kind::RateLimited };
            (Trigger::Cooldown, Severity::of_kind(kind), Some(kind))
        }
        RowState::Open | RowState::Probing => (Trigger::Breaker, Severity::Warning, None),
        RowState::ForcedOpen => (Trigger::Breaker, Severity::Info, None),
        _ => return None,
    };
    Some(Fact {
        subject: row.key.to_string(),
        trigger,
        severity,
        kind,
        sub: cause.filter(|cause| Some(cause.kind) == kind).and_then(|cause| cause.sub),
        bare_status: cause.filter(|_| is_bare).and_then(|cause| cause.status),
        since: row.since.unwrap_or(now),
        until: row.until,
        detail: detail(row),
        is_untried: row.state == RowState::Due,
    })
}

/// What a record says besides, in names. The sentence of a provider or an agent is left out: it may repeat a prompt, and a notice leaves the
/// machine. `koboshi status` shows it.
fn detail(row: &Row) -> String {
    let named = |name: &str, value: Option<&str>| value.map(|value| format!("{name}={value}"));
    let parts = [
        named("reason", row.reason.as_deref()),
        named("finer", row.finer.as_deref()),
        (row.streak > 0).then(|| format!("consecutive={}", row.streak)),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The facts about budgets of clients' keys.
pub(crate) fn of_budgets(config: &Config, spent: &[KeySpent], zone: &TimeZone, now: Timestamp) -> Vec<Fact> {
    let today = now.to_zoned(zone.clone()).date();
    let mut facts = Vec::new();
    for (name, key) in &config.keys {
        let known = spent.iter().find(|one| one.key == *name);
        let known = known.map_or_else(SpentAmounts::default, |one| SpentAmounts {
            day: Amount::of_parts(one.day),
            month: Amount::of_parts(one.all),
        });
        for of in key.budget.uses(known).filter(koboshi::spend::BudgetUse::is_near) {
            let first = of.period.first(today).to_zoned(zone.clone());
            let severity = if of.is_exhausted() { Severity::Critical } else { Severity::Warning };
            facts.push(Fact {
                subject: format!("client:{name}/{}", of.period.name()),
                trigger: Trigger::Budget,
                severity,
                kind: None,
                sub: None,
                bare_status: None,
                since: first.map_or(now, |first| first.timestamp()),
                until: Some(of.period.renewal(today, zone)),
                detail: format!(
                    "{:.2} / {:.2} {}",
                    of.spent.units(),
                    of.limit.units(),
                    config.spend.currency
                ),
                is_untried: false,
            });
        }
    }
    facts
}

/// The days that budgets are counted over.
pub(crate) fn days(zone: &TimeZone, now: Timestamp) -> (jiff::civil::Date, jiff::civil::Date) {
    let today = now.to_zoned(zone.clone()).date();
    (Period::Month.first(today), today)
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi::chance::Seed;
    use koboshi::cooldown::{CooldownPolicy, Failure};
    use koboshi::fault::{Confidence, Fault, Sub};
    use koboshi_store::standing::rows;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn facts(cooldown: Cooldown, now: i64) -> Vec<Fact> {
        let slot = Slot::cooldown("account:main".parse().unwrap());
        let named = vec![(slot.clone(), Record::Cooldown(cooldown.clone()))];
        of_records(&HashMap::from([(slot, Record::Cooldown(cooldown))]), &rows(&named, at(now)), at(now))
    }

    #[test]
    fn a_dead_key_is_critical_an_overload_a_warning_and_an_operators_cooldown_neither() {
        let failed = |kind| {
            let mut cooldown = Cooldown::default();
            cooldown.fail(
                &Failure::of(&Fault::of(kind, "t")),
                &CooldownPolicy::default(),
                at(10),
                Seed::new(7),
            );
            facts(cooldown, 11)
        };
        for (kind, severity) in [
            (Kind::Unauthorized, Severity::Critical),
            (Kind::QuotaExceeded, Severity::Critical),
            (Kind::Overloaded, Severity::Warning),
            (Kind::RateLimited, Severity::Info),
        ] {
            let facts = failed(kind);
            assert_eq!(
                (facts.len(), facts[0].severity, facts[0].kind),
                (1, severity, Some(kind)),
                "{kind:?}"
            );
        }
        assert_eq!(failed(Kind::Overloaded)[0].detail, "reason=overloaded consecutive=1");
        let mut cooled = Cooldown::default();
        cooled.cool(at(100), "maintenance", at(10));
        assert_eq!(
            (facts(cooled.clone(), 20)[0].severity, facts(cooled, 20)[0].kind),
            (Severity::Info, None)
        );
    }

    #[test]
    fn the_finer_reason_goes_along_and_a_bare_status_is_marked() {
        let of = |confidence, status| {
            let mut fault = Fault::of(Kind::QuotaExceeded, "t");
            (fault.sub, fault.confidence, fault.status) = (Some(Sub::Billing), confidence, Some(status));
            let mut cooldown = Cooldown::default();
            cooldown.fail(&Failure::of(&fault), &CooldownPolicy::default(), at(10), Seed::new(7));
            let facts = facts(cooldown, 11);
            (facts[0].trigger, facts[0].sub, facts[0].bare_status)
        };
        assert_eq!(of(Confidence::High, 429), (Trigger::Park, Some(Sub::Billing), None));
        assert_eq!(of(Confidence::Low, 402), (Trigger::Cooldown, Some(Sub::Billing), Some(402)));
    }

    #[test]
    fn a_budget_is_a_warning_from_four_fifths_on_and_critical_when_it_is_spent() {
        let mut config = Config::default();
        let mut key = koboshi_config::gateway::ClientKey::default();
        key.budget.day = Amount::of(10.0);
        config.keys.insert("laptop".to_owned(), key);
        let of = |units: f64| {
            let parts = Amount::of(units).unwrap();
            let spent = KeySpent { key: "laptop".to_owned(), day: parts.parts(), all: parts.parts() };
            of_budgets(&config, &[spent], &TimeZone::UTC, at(1_000_000))
        };
        assert!(of(7.9).is_empty());
        assert_eq!(of(8.0)[0].severity, Severity::Warning);
        assert_eq!(
            (of(10.0)[0].severity, of(10.0)[0].subject.as_str()),
            (Severity::Critical, "client:laptop/day")
        );
        assert_eq!(of(10.0)[0].since, of(9.0)[0].since, "one episode");
    }
}
