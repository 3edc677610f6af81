//! One reading of a store or a gateway: everything that a screen shows.
//!
//! A gateway knows more than its store: how many requests it had, and limits that it never writes down. A reading says what its source could
//! not know by leaving it out, and the screen says it too.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use koboshi_config::Config;
use koboshi_gateway::paths;
use koboshi_store::{Entry, EntryKind, Query, Row, RowState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::args::PlaceArgs;
use super::super::asked_store;
use super::super::remote::Gateway;
use super::super::source::{Source, Status};
use crate::supervise::rows as agents_of_store;
use crate::{Failure, settings};

/// How many faults a screen can have.
const MAX_FAULTS: usize = 200;
/// How many are counted for the rate of a store, which has no counter.
const MAX_COUNTED: usize = 10_000;
const MINUTE: SignedDuration = SignedDuration::from_secs(60);

/// What was known at one instant.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Snapshot {
    /// Where it was read.
    pub(super) source: String,
    /// Whether a gateway was asked, which knows more than its store.
    pub(super) is_gateway: bool,
    pub(super) now: Timestamp,
    /// Since when the gateway counts.
    pub(super) started: Option<Timestamp>,
    /// Totals since then; a store has none.
    pub(super) counts: Option<Counts>,
    /// Requests in progress.
    pub(super) open: Option<i64>,
    /// Faults of the last minute in the journal of a store.
    pub(super) faults_last_minute: Option<u64>,
    pub(super) routes: Vec<Route>,
    pub(super) targets: Vec<Target>,
    /// Newest first.
    pub(super) faults: Vec<Entry>,
    /// As `koboshi status --format json` has them.
    pub(super) agents: Vec<Value>,
    /// Why the store of a gateway cannot be read.
    pub(super) trouble: Option<String>,
}

/// Totals of a gateway since its start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) faults: u64,
    pub(super) survived: u64,
    pub(super) whole: u64,
    pub(super) cached: u64,
    pub(super) degraded: u64,
    pub(super) refused: u64,
    pub(super) failed: u64,
    pub(super) broken: u64,
}

impl Counts {
    /// Requests that were answered in any way.
    pub(super) fn requests(&self) -> u64 {
        let Self { whole, cached, degraded, refused, failed, broken, .. } = *self;
        [whole, cached, degraded, refused, failed, broken].into_iter().fold(0, u64::saturating_add)
    }
}

/// A name that clients ask for, and where it leads.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Route {
    pub(super) name: String,
    pub(super) chain: Vec<String>,
}

/// A target, or another key that is out of use, such as the account of an agent.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Target {
    /// `provider/model`, or the key where it is no target.
    pub(super) name: String,
    /// The key of an order about it.
    pub(super) key: Option<String>,
    /// None where nothing is known against it.
    pub(super) state: Option<RowState>,
    pub(super) until: Option<Timestamp>,
    pub(super) since: Option<Timestamp>,
    /// The class of the cooldown, or the limit.
    pub(super) reason: Option<String>,
    /// The provider's message, or the operator's reason.
    pub(super) said: String,
    /// The routes that lead to it.
    pub(super) routes: Vec<String>,
}

impl Target {
    /// Whether nothing goes through.
    pub(super) fn is_down(&self) -> bool {
        self.state.is_some_and(RowState::stops)
    }

    /// Whether requests can be sent to it; an account or an agent that is listed beside targets has its key as its name.
    pub(super) fn is_target(&self) -> bool {
        self.key.as_deref() != Some(self.name.as_str())
    }
}

#[derive(Deserialize)]
struct OverviewAnswer {
    now: Timestamp,
    started: Timestamp,
    open: i64,
    keeps_agents: bool,
    counts: Counts,
    routes: Vec<Route>,
}

#[derive(Deserialize)]
struct TargetsAnswer {
    targets: Vec<TargetAnswer>,
}

#[derive(Deserialize)]
struct TargetAnswer {
    target: String,
    key: Option<String>,
    health: Value,
    breaker: BreakerAnswer,
    rests: Vec<RestAnswer>,
    gate: GateAnswer,
}

#[derive(Deserialize)]
struct BreakerAnswer {
    since: Timestamp,
    until: Option<Timestamp>,
}

#[derive(Deserialize)]
struct RestAnswer {
    key: String,
    state: String,
    reason: String,
    since: Timestamp,
    until: Option<Timestamp>,
    said: String,
}

#[derive(Deserialize)]
struct GateAnswer {
    held_by: Option<String>,
    opens_in: Option<f64>,
}

/// The keys of a store's targets, as a gateway reports them.
#[derive(Default, Deserialize)]
struct KnownAnswer {
    targets: Vec<ScopesAnswer>,
    routes: Vec<(String, Vec<String>)>,
}

#[derive(Deserialize)]
struct ScopesAnswer {
    target: Option<String>,
    key: Option<String>,
    account: Option<String>,
    model: Option<String>,
    provider: Option<String>,
    limits: Option<String>,
}

/// Reads a source again and again.
pub(super) struct Reader {
    source: Source,
    /// Whose agents are asked for, beside a store.
    store: Option<String>,
    config: Option<Config>,
}

impl Reader {
    pub(super) fn new(source: Source, args: &PlaceArgs) -> Self {
        let config = settings::load_without_keys(args.config.file.as_deref(), &args.lang).ok();
        Self { source, store: asked_store(args.store.as_deref()), config }
    }

    pub(super) fn place(&self) -> &str {
        self.source.place()
    }

    pub(super) fn read(&self, now: Timestamp) -> Result<Snapshot, Failure> {
        let status = self.source.status(now)?;
        let mut snapshot = match &self.source {
            Source::Remote(gateway) => of_gateway(gateway, &status)?,
            Source::Store(_) => self.of_store(&status, now)?,
        };
        self.source.place().clone_into(&mut snapshot.source);
        let faults = Query { what: Some(EntryKind::Fault), limit: MAX_FAULTS, ..Query::default() };
        snapshot.faults = self.source.entries(&faults)?;
        snapshot.faults.reverse();
        snapshot.trouble = status.trouble;
        Ok(snapshot)
    }

    fn of_store(&self, status: &Status, now: Timestamp) -> Result<Snapshot, Failure> {
        let known = serde_json::to_value(self.source.known(now)?).ok();
        let known: KnownAnswer =
            known.and_then(|known| serde_json::from_value(known).ok()).unwrap_or_default();
        let routes: Vec<Route> =
            known.routes.into_iter().map(|(name, chain)| Route { name, chain }).collect();
        let recent = Query {
            what: Some(EntryKind::Fault),
            from: now.checked_sub(MINUTE).ok(),
            limit: MAX_COUNTED,
            ..Query::default()
        };
        let agents = self.config.as_ref().and_then(|config| agents_of_store(self.store.as_deref(), config));
        Ok(Snapshot {
            now,
            faults_last_minute: u64::try_from(self.source.entries(&recent)?.len()).ok(),
            targets: targets_of_store(&known.targets, &routes, &status.rows),
            routes,
            agents: list(agents),
            ..Snapshot::default()
        })
    }
}

fn of_gateway(gateway: &Gateway, status: &Status) -> Result<Snapshot, Failure> {
    let overview: OverviewAnswer = gateway.ask(paths::OVERVIEW)?;
    let answer: TargetsAnswer = gateway.ask(paths::TARGETS)?;
    let agents = overview.keeps_agents.then(|| gateway.agents()).flatten();
    let mut shown: BTreeSet<String> = BTreeSet::new();
    let mut targets = Vec::new();
    for target in answer.targets {
        shown.extend(target.key.clone());
        shown.extend(target.rests.iter().map(|rest| rest.key.clone()));
        targets.push(of_answer(target, &overview.routes, overview.now));
    }
    targets.extend(others(&status.rows, &shown));
    Ok(Snapshot {
        is_gateway: true,
        now: overview.now,
        started: Some(overview.started),
        counts: Some(overview.counts),
        open: Some(overview.open),
        routes: overview.routes,
        targets,
        agents: list(agents),
        ..Snapshot::default()
    })
}

fn list(agents: Option<Value>) -> Vec<Value> {
    agents.and_then(|agents| agents.as_array().cloned()).unwrap_or_default()
}

/// A target of a gateway, which has judged it already.
fn of_answer(answer: TargetAnswer, routes: &[Route], now: Timestamp) -> Target {
    let TargetAnswer { target, key, health, breaker, rests, gate } = answer;
    let state: Option<RowState> = serde_json::from_value(health).ok();
    let routes = routes_of(&target, routes);
    let mut row = Target { name: target, key, state, routes, ..Target::default() };
    let rest = state.and_then(|state| {
        // It is back when the last one of these has ended.
        rests.into_iter().filter(|rest| rest.state == state.name()).max_by_key(|rest| rest.until)
    });
    if let Some(rest) = rest {
        (row.key, row.reason, row.said) = (Some(rest.key), Some(rest.reason), rest.said);
        (row.since, row.until) = (Some(rest.since), rest.until);
    } else if state == Some(RowState::Held) {
        row.reason = gate.held_by;
        let left = gate.opens_in.and_then(|left| SignedDuration::try_from_secs_f64(left).ok());
        row.until = left.and_then(|left| now.checked_add(left).ok());
    } else if state.is_some() {
        (row.since, row.until) = (Some(breaker.since), breaker.until);
    }
    row
}

/// The targets of a store, each with the worst record of its keys.
fn targets_of_store(known: &[ScopesAnswer], routes: &[Route], rows: &[Row]) -> Vec<Target> {
    let mut shown = BTreeSet::new();
    let mut targets = Vec::new();
    for scopes in known {
        let Some(key) = &scopes.target else { continue };
        let keys =
            [&scopes.target, &scopes.key, &scopes.account, &scopes.model, &scopes.provider, &scopes.limits];
        let keys: BTreeSet<String> = keys.into_iter().flatten().cloned().collect();
        let its = rows.iter().filter(|row| keys.contains(&row.key.to_string()));
        // The worst one, and of these the one that ends last; what never ends by itself is later than any end.
        let worst = its.min_by_key(|row| {
            let end = row.until.map_or(i64::MAX, Timestamp::as_second);
            (row.state, std::cmp::Reverse(end))
        });
        let name = key.strip_prefix("target:").unwrap_or(key);
        let name = name.split_once('#').map_or(name, |(name, _)| name).to_owned();
        let routes = routes_of(&name, routes);
        let row = worst.map_or_else(Target::default, of_row);
        shown.extend(keys);
        let key = row.key.or_else(|| Some(key.clone()));
        targets.push(Target { name, key, routes, ..row });
    }
    targets.extend(others(rows, &shown));
    targets
}

/// What is out of use and belongs to no target that is shown.
fn others(rows: &[Row], shown: &BTreeSet<String>) -> Vec<Target> {
    rows.iter().filter(|row| !shown.contains(&row.key.to_string())).map(of_row).collect()
}

fn of_row(row: &Row) -> Target {
    let reason = row.finer.as_ref().or(row.reason.as_ref());
    Target {
        name: row.key.to_string(),
        key: Some(row.key.to_string()),
        state: Some(row.state),
        until: row.until,
        since: row.since,
        reason: reason.map(ToString::to_string),
        said: row.detail.clone(),
        routes: Vec::new(),
    }
}

fn routes_of(target: &str, routes: &[Route]) -> Vec<String> {
    let leads = |route: &&Route| route.chain.iter().any(|link| link == target);
    routes.iter().filter(leads).map(|route| route.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str, state: RowState, until: Option<&str>) -> Row {
        let until = until.map(|until| until.parse().unwrap());
        Row { until, ..Row::new(key.parse().unwrap(), state) }
    }

    #[test]
    fn a_target_of_a_store_has_the_worst_record_of_all_its_keys() {
        let scopes = |model: &str| ScopesAnswer {
            target: Some(format!("target:openai/{model}#1f2e")),
            key: None,
            account: Some("account:openai".to_owned()),
            model: None,
            provider: Some("provider:openai".to_owned()),
            limits: None,
        };
        let routes = [Route { name: "assistant".to_owned(), chain: vec!["openai/gpt-4o".to_owned()] }];
        let rows = [
            row("target:openai/gpt-4o#1f2e", RowState::Probing, None),
            row("account:openai", RowState::Cooling, Some("2026-11-19T10:00:00Z")),
            row("provider:openai", RowState::Cooling, Some("2026-11-19T12:00:00Z")),
            row("account:main", RowState::Parked, None),
        ];
        let targets = targets_of_store(&[scopes("gpt-4o"), scopes("gpt-5")], &routes, &rows);
        let shown: Vec<_> =
            targets.iter().map(|target| (target.name.as_str(), target.key.as_deref())).collect();
        assert_eq!(
            shown,
            [
                ("openai/gpt-4o", Some("provider:openai")),
                ("openai/gpt-5", Some("provider:openai")),
                ("account:main", Some("account:main")),
            ],
            "the longest of its cooldowns, and the account that no target has"
        );
        assert_eq!(targets[0].routes, ["assistant"]);
        assert!(targets[1].routes.is_empty() && targets[2].is_down());
        assert_eq!([0, 1, 2].map(|nth: usize| targets[nth].is_target()), [true, true, false]);
    }

    #[test]
    fn a_gateway_has_judged_a_target_and_its_rest_says_until_when() {
        let answer = |health: &str| TargetAnswer {
            target: "openai/gpt-4o".to_owned(),
            key: Some("target:openai/gpt-4o".to_owned()),
            health: health.into(),
            breaker: BreakerAnswer { since: Timestamp::UNIX_EPOCH, until: None },
            rests: ["10:00", "12:00"]
                .map(|hour| RestAnswer {
                    key: format!("account:{hour}"),
                    state: "cooling".to_owned(),
                    reason: "quota".to_owned(),
                    since: Timestamp::UNIX_EPOCH,
                    until: format!("2026-11-19T{hour}:00Z").parse().ok(),
                    said: String::new(),
                })
                .into(),
            gate: GateAnswer { held_by: Some("requests".to_owned()), opens_in: Some(2.0) },
        };
        let now = "2026-11-19T09:00:00Z".parse().unwrap();
        let cooling = of_answer(answer("cooling"), &[], now);
        assert_eq!(cooling.key.as_deref(), Some("account:12:00"), "it is back when the last one ends");
        assert_eq!(of_answer(answer("well"), &[], now).state, None);
        let held = of_answer(answer("held"), &[], now);
        assert_eq!(
            (held.reason.as_deref(), held.until),
            (Some("requests"), "2026-11-19T09:00:02Z".parse().ok())
        );
    }
}
