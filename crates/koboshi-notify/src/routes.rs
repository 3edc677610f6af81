//! Routes of which no target can be used: the one thing that clients notice for sure.
//!
//! Each of their targets is a warning by itself, because another one answers. All of them together are an outage. Which keys stop a
//! target is known to the gateway; the program hands it in.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use koboshi::key::ScopeKey;
use koboshi::notice::{Fact, Severity, Trigger};
use koboshi_store::standing::{Row, RowState};

/// How long a route must be without a target before people hear of it: short limits pass by themselves.
const SETTLED: Duration = Duration::from_secs(15);
/// The reason of what a person did.
const OPERATOR: &str = "operator";

/// A route, and what stops each of its targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RouteKeys {
    /// The name that clients ask for.
    pub name: String,
    /// Its targets, each with its name and all keys that stop it.
    pub targets: Vec<(String, Vec<ScopeKey>)>,
}

/// Routes that are out of use, and since when.
#[derive(Debug, Default)]
pub(crate) struct Outages(BTreeMap<String, Timestamp>);

/// What keeps one target from being used.
#[derive(Default)]
struct Stop {
    /// Nothing goes through now; else it is over and was not tried since.
    stops: bool,
    by_person: bool,
    until: Option<Timestamp>,
}

impl Outages {
    /// The facts about these routes. `told` says since when one is out as far as notices went out, also from another process.
    pub(crate) fn facts(
        &mut self,
        routes: &[RouteKeys],
        rows: &[Row],
        told: impl Fn(&str) -> Option<Timestamp>,
        now: Timestamp,
    ) -> Vec<Fact> {
        let mut facts = Vec::new();
        let mut out = BTreeMap::new();
        for route in routes {
            let Some(stops) = nodes(rows).into_iter().find_map(|node| stops(route, rows, node)) else {
                continue;
            };
            let is_stopped = stops.iter().all(|one| one.stops);
            let known = self.0.get(&route.name).copied().or_else(|| told(&subject(&route.name)));
            let since = known.or(is_stopped.then_some(now));
            // What is only untried begins nothing.
            let Some(since) = since else { continue };
            out.insert(route.name.clone(), since);
            if since.saturating_add(SETTLED).unwrap_or(Timestamp::MAX) <= now {
                facts.push(fact(route, &stops, since, is_stopped));
            }
        }
        self.0 = out;
        facts
    }
}

fn subject(route: &str) -> String {
    format!("route:{route}")
}

/// The processes that have breakers; none stands for what all share.
fn nodes(rows: &[Row]) -> BTreeSet<Option<&str>> {
    let nodes = rows.iter().filter_map(|row| row.node.as_ref()).map(|node| Some(node.name()));
    nodes.chain([None]).collect()
}

/// What stops each target of a route, as this process sees it; none where a target can be used.
fn stops(route: &RouteKeys, rows: &[Row], node: Option<&str>) -> Option<Vec<Stop>> {
    if route.targets.is_empty() {
        return None;
    }
    let of_node = |row: &&Row| row.node.as_ref().is_none_or(|of| Some(of.name()) == node);
    let stop = |(_, keys): &(String, Vec<ScopeKey>)| {
        let about = rows.iter().filter(of_node).filter(|row| keys.contains(&row.key));
        let (mut found, mut latest) = (None::<Stop>, None);
        for row in about.filter(|row| row.stops || matches!(row.state, RowState::Due | RowState::Probing)) {
            let stop = found.get_or_insert_with(|| Stop { by_person: true, ..Stop::default() });
            stop.stops |= row.stops;
            stop.by_person &= row.state == RowState::ForcedOpen || row.reason.as_deref() == Some(OPERATOR);
            // The last end counts; none where a person must decide.
            let ends = row.until.unwrap_or(Timestamp::MAX);
            if row.stops {
                latest = latest.max(Some(ends));
            }
        }
        found.map(|stop| Stop { until: latest.filter(|until| *until < Timestamp::MAX), ..stop })
    };
    route.targets.iter().map(stop).collect()
}

fn fact(route: &RouteKeys, stops: &[Stop], since: Timestamp, is_stopped: bool) -> Fact {
    let by_person = stops.iter().all(|one| one.by_person);
    let names: BTreeSet<&str> = route.targets.iter().map(|(name, _)| name.as_str()).collect();
    Fact {
        subject: subject(&route.name),
        trigger: Trigger::Route,
        // The person who did it knows it.
        severity: if by_person { Severity::Info } else { Severity::Critical },
        kind: None,
        sub: None,
        bare_status: None,
        since,
        // The first target that is back ends it.
        until: stops.iter().filter_map(|one| one.until).min(),
        detail: names.into_iter().collect::<Vec<_>>().join(", "),
        is_untried: !is_stopped,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn route() -> RouteKeys {
        let target = |name: &str| {
            let keys = ["provider:", "target:"].map(|level| match level {
                "provider:" => format!("provider:{name}"),
                _ => format!("target:{name}/m#1"),
            });
            (format!("{name}/m"), keys.iter().map(|key| key.parse().unwrap()).collect())
        };
        RouteKeys { name: "m".to_owned(), targets: vec![target("one"), target("two")] }
    }

    fn row(key: &str, state: RowState, until: Option<i64>) -> Row {
        Row { until: until.map(at), ..Row::new(key.parse().unwrap(), state) }
    }

    fn of_node(node: &str, row: Row) -> Row {
        Row { node: Some(node.parse().unwrap()), ..row }
    }

    #[test]
    fn a_route_is_out_when_every_target_is_and_not_at_once() {
        let mut outages = Outages::default();
        let one = row("provider:one", RowState::Parked, None);
        let two = row("target:two/m#1", RowState::Cooling, Some(60));
        assert!(outages.facts(&[route()], std::slice::from_ref(&one), |_| None, at(0)).is_empty());
        let both = [one, two];
        assert!(outages.facts(&[route()], &both, |_| None, at(10)).is_empty(), "a short limit passes");
        let facts = outages.facts(&[route()], &both, |_| None, at(25));
        assert_eq!((facts[0].subject.as_str(), facts[0].severity), ("route:m", Severity::Critical));
        assert_eq!((facts[0].since, facts[0].until), (at(10), Some(at(60))));
        assert_eq!(facts[0].detail, "one/m, two/m");
        // Its time is over, and nothing shows that it works.
        let due = [both[0].clone(), row("target:two/m#1", RowState::Due, Some(60))];
        assert!(outages.facts(&[route()], &due, |_| None, at(61))[0].is_untried);
        assert!(outages.facts(&[route()], &both[..1], |_| None, at(62)).is_empty());
        assert!(
            outages.facts(&[route()], &due, |_| None, at(63)).is_empty(),
            "what is only untried begins nothing"
        );
        assert!(
            outages.facts(&[RouteKeys::default()], &both, |_| None, at(99)).is_empty(),
            "nothing is known of it"
        );
    }

    #[test]
    fn an_outage_that_another_process_told_of_goes_on() {
        let both = [row("provider:one", RowState::Parked, None), row("provider:two", RowState::Due, Some(1))];
        let mut outages = Outages::default();
        assert!(outages.facts(&[route()], &both, |_| None, at(60)).is_empty());
        let told = |subject: &str| (subject == "route:m").then_some(at(7));
        assert_eq!(outages.facts(&[route()], &both, told, at(61))[0].since, at(7));
    }

    #[test]
    fn breakers_of_two_processes_are_no_outage_of_either() {
        let mut outages = Outages::default();
        let open = |key| row(key, RowState::Open, Some(90));
        let apart = [of_node("a", open("target:one/m#1")), of_node("b", open("target:two/m#1"))];
        outages.facts(&[route()], &apart, |_| None, at(0));
        assert!(outages.facts(&[route()], &apart, |_| None, at(60)).is_empty());
        let together = [of_node("a", open("target:one/m#1")), of_node("a", open("target:two/m#1"))];
        outages.facts(&[route()], &together, |_| None, at(61));
        assert_eq!(outages.facts(&[route()], &together, |_| None, at(80)).len(), 1);
        let shared = [row("provider:one", RowState::Cooling, Some(90)), together[1].clone()];
        assert_eq!(outages.facts(&[route()], &shared, |_| None, at(81)).len(), 1);
    }

    #[test]
    fn what_an_operator_closed_is_no_alarm() {
        let mut outages = Outages::default();
        let closed = |key| row(key, RowState::ForcedOpen, None);
        let both = [closed("target:one/m#1"), closed("target:two/m#1")];
        outages.facts(&[route()], &both, |_| None, at(0));
        assert_eq!(outages.facts(&[route()], &both, |_| None, at(60))[0].severity, Severity::Info);
    }
}
