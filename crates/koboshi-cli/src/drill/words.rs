//! Which phrase says what.

use super::better::Change;
use super::judge::Ending;
use super::report::Route;
use crate::say::Say;

/// The phrases of the scenarios; a test compares them with the table.
const TITLES: &[(&str, &str)] = &[
    ("throttled", "drill-on-throttled"),
    ("throttled-unstated", "drill-on-throttled-unstated"),
    ("quota", "drill-on-quota"),
    ("server-error-once", "drill-on-server-error-once"),
    ("server-error", "drill-on-server-error"),
    ("unavailable", "drill-on-unavailable"),
    ("overloaded", "drill-on-overloaded"),
    ("reset", "drill-on-reset"),
    ("hang-before-head", "drill-on-hang-before-head"),
    ("hang-after-head", "drill-on-hang-after-head"),
    ("hang-in-text", "drill-on-hang-in-text"),
    ("slow-first-token", "drill-on-slow-first-token"),
    ("cut-before-text", "drill-on-cut-before-text"),
    ("cut-in-text", "drill-on-cut-in-text"),
    ("cut-in-tool-call", "drill-on-cut-in-tool-call"),
    ("no-end-mark", "drill-on-no-end-mark"),
    ("error-in-200", "drill-on-error-in-200"),
    ("error-in-text", "drill-on-error-in-text"),
    ("empty", "drill-on-empty"),
    ("broken-json", "drill-on-broken-json"),
    ("half-body", "drill-on-half-body"),
    ("web-page", "drill-on-web-page"),
    ("broken-tool-arguments", "drill-on-broken-tool-arguments"),
    ("unreadable-tool-arguments", "drill-on-unreadable-tool-arguments"),
    ("looped-tool-calls", "drill-on-looped-tool-calls"),
    ("dead-key", "drill-on-dead-key"),
    ("empty-account", "drill-on-empty-account"),
    ("context-too-large", "drill-on-context-too-large"),
    ("content-filter", "drill-on-content-filter"),
    ("dns", "drill-on-dns"),
    ("certificate", "drill-on-certificate"),
    ("flapping", "drill-on-flapping"),
    ("all-down", "drill-on-all-down"),
    ("store-away", "drill-on-store-away"),
    ("store-full", "drill-on-store-full"),
];

/// The phrase that names a scenario.
pub(super) fn title(name: &'static str) -> &'static str {
    TITLES.iter().find(|(own, _)| *own == name).map_or(name, |(_, phrase)| *phrase)
}

/// The phrase for what a client gets.
pub(super) const fn ending(ending: Ending) -> &'static str {
    match ending {
        Ending::Answer => "drill-ends-answer",
        Ending::LesserAnswer => "drill-ends-lesser",
        Ending::Error => "drill-ends-error",
        Ending::Damaged => "drill-ends-damaged",
        Ending::Nothing => "drill-ends-nothing",
    }
}

/// The key to change, and why.
pub(super) fn advice(say: &Say, change: Change, route: &Route, scenarios: usize) -> (String, String) {
    let routes = format!("routes.{}", route.name);
    let is_one = scenarios == 1;
    let (key, phrase) = match (change, is_one) {
        (Change::Fallback, true) if route.chain.len() == 1 => (routes, "drill-better-fallback-of-one"),
        (Change::Fallback, false) if route.chain.len() == 1 => (routes, "drill-better-fallback"),
        (Change::Fallback, true) => (routes, "drill-better-other-provider-of-one"),
        (Change::Fallback, false) => (routes, "drill-better-other-provider"),
        (Change::Attempts, true) => ("retry.max_attempts".to_owned(), "drill-better-attempts-of-one"),
        (Change::Attempts, false) => ("retry.max_attempts".to_owned(), "drill-better-attempts"),
        (Change::Guard, _) => ("guard.mode".to_owned(), "drill-better-guard"),
        (Change::Complete, true) => (format!("{routes}.commit"), "drill-better-complete-of-one"),
        (Change::Complete, false) => (format!("{routes}.commit"), "drill-better-complete"),
        (Change::Timeouts, true) => ("providers.*.timeouts".to_owned(), "drill-better-timeouts-of-one"),
        (Change::Timeouts, false) => ("providers.*.timeouts".to_owned(), "drill-better-timeouts"),
        (Change::Prepared, _) => ("degrade.answers_file".to_owned(), "drill-better-prepared"),
    };
    let count = scenarios.to_string();
    let text = say.text(phrase, &[("route", &route.name), ("count", &count)]);
    (key, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_has_its_phrase_and_no_other_has() {
        let named: Vec<&str> = TITLES.iter().map(|(name, _)| *name).collect();
        let table: Vec<&str> = koboshi_sim::scenarios().iter().map(|one| one.name).collect();
        assert_eq!(named, table);
    }
}
