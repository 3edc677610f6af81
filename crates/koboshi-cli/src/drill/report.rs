//! The result of a drill, as it is printed: the fields of the JSON.

use std::collections::BTreeMap;

use koboshi_config::Config;
use koboshi_sim::Scenario;
use serde::Serialize;

use super::better::Change;
use super::judge::{Ending, Outcome};
use super::words;
use crate::say::Say;

/// A route that is drilled.
#[derive(Debug, Clone)]
pub(super) struct Route {
    /// As the config names it.
    pub(super) name: String,
    /// A model that it matches.
    pub(super) model: String,
    pub(super) chain: Vec<String>,
}

impl Route {
    /// The route of this name; none if it has no targets.
    pub(super) fn of(config: &Config, name: &str) -> Option<Self> {
        let route = config.routes.get(name)?;
        let chain = route.chain.clone();
        (!chain.is_empty()).then(|| Self { name: name.to_owned(), model: name.replace('*', "drill"), chain })
    }
}

/// The result.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    /// The file of the config.
    pub(super) config: Option<String>,
    /// The share of good scenarios, in percent.
    pub(super) score: f64,
    pub(super) good: usize,
    pub(super) total: usize,
    pub(super) routes: Vec<RouteReport>,
    pub(super) scenarios: Vec<ScenarioReport>,
    pub(super) advice: Vec<Advice>,
    #[serde(skip)]
    found: BTreeMap<Change, Vec<&'static str>>,
}

/// A route.
#[derive(Debug, Serialize)]
pub(super) struct RouteReport {
    pub(super) name: String,
    pub(super) targets: Vec<String>,
    pub(super) good: usize,
    pub(super) total: usize,
}

/// What a client of a route would see in a scenario.
#[derive(Debug, Serialize)]
pub(super) struct ScenarioReport {
    pub(super) name: &'static str,
    pub(super) route: String,
    pub(super) title: String,
    pub(super) good: bool,
    pub(super) ending: Ending,
    pub(super) status: u16,
    pub(super) kind: Option<String>,
    pub(super) message: Option<String>,
    /// How long the longest request took, in virtual seconds.
    pub(super) after_seconds: f64,
    pub(super) requests: u32,
    pub(super) upstream_calls: usize,
    /// The targets that were asked, in order.
    pub(super) asked: Vec<String>,
}

/// What would make scenarios better.
#[derive(Debug, Serialize)]
pub(super) struct Advice {
    pub(super) route: String,
    /// The key to change.
    pub(super) key: String,
    pub(super) text: String,
    pub(super) scenarios: Vec<&'static str>,
}

impl Report {
    pub(super) fn new(config: Option<String>) -> Self {
        let (routes, scenarios, advice, found) = (Vec::new(), Vec::new(), Vec::new(), BTreeMap::new());
        Self { config, score: 100.0, good: 0, total: 0, routes, scenarios, advice, found }
    }

    pub(super) fn add(
        &mut self,
        say: &Say,
        route: &Route,
        scenario: &Scenario,
        outcome: Outcome,
        advice: Option<Change>,
    ) {
        if let Some(change) = advice {
            self.found.entry(change).or_default().push(scenario.name);
        }
        let millis = outcome.took.as_millis();
        self.scenarios.push(ScenarioReport {
            name: scenario.name,
            route: route.name.clone(),
            title: say.text(words::title(scenario.name), &[]),
            good: outcome.is_good,
            ending: outcome.ending,
            status: outcome.status,
            kind: outcome.kind,
            message: outcome.message,
            after_seconds: f64::from(u32::try_from(millis).unwrap_or(u32::MAX)) / 1000.0,
            requests: scenario.requests,
            upstream_calls: outcome.asked.len(),
            asked: outcome.asked,
        });
    }

    /// Sums up a route, once all of its scenarios were played.
    pub(super) fn end_route(&mut self, say: &Say, route: &Route) {
        let own = || self.scenarios.iter().filter(|one| one.route == route.name);
        let (total, good) = (own().count(), own().filter(|one| one.good).count());
        self.routes.push(RouteReport { name: route.name.clone(), targets: route.chain.clone(), good, total });
        for (change, scenarios) in std::mem::take(&mut self.found) {
            let (key, text) = words::advice(say, change, route, scenarios.len());
            self.advice.push(Advice { route: route.name.clone(), key, text, scenarios });
        }
        (self.good, self.total) = (self.good + good, self.total + total);
        let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
        self.score = (number(self.good) * 1000.0 / number(self.total.max(1))).round() / 10.0;
    }
}
