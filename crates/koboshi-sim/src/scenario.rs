//! The table of fault scenarios: what falls, how far the fall reaches, and what a client asks meanwhile.
//!
//! One table for two readers: the fault suite of the gateway plays it over real sockets (rows about names, certificates, the store and loops
//! have tests of their own there); `koboshi drill` plays it against a user's own config. A row says nothing about a config: whether an answer comes depends on what is behind the target
//! that falls, and a row only says whether any config could have given one.
//!
//! It deliberately has no words for people (the phrases have them, by the name of the row) and no clock.

/// One scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scenario {
    /// Its stable name.
    pub name: &'static str,
    /// What the providers that fall do.
    pub fall: ScenarioFall,
    /// Which targets fall with the first one that is asked.
    pub reach: Reach,
    /// What the client asks.
    pub asks: Asks,
    /// How many times, one after the other.
    pub requests: u32,
    /// Whether a clear error is as good as it gets: no config could have had an answer.
    pub error_is_right: bool,
    /// What else fails.
    pub store: StoreTrouble,
}

/// What a provider that falls does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScenarioFall {
    /// It plays this [name](crate::names).
    Play(&'static str),
    /// The name of its server cannot be resolved.
    Unresolved,
    /// Its certificate is not trusted.
    Untrusted,
}

/// Which targets fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The model.
    Model,
    /// Every model with the same key.
    Key,
    /// Every model of the same account.
    Account,
    /// Every model of the provider.
    Provider,
    /// All of them.
    Everything,
}

/// What the client asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// A stream of text.
    Stream,
    /// An answer in one piece.
    Whole,
    /// A stream, with a tool on offer.
    Tool,
    /// A stream, in a conversation in which the same tool call was made many times.
    Loop,
}

/// What the gateway's store does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreTrouble {
    /// It works.
    None,
    /// It cannot be reached.
    Away,
    /// It can be read, and no longer written.
    Full,
}

const fn row(name: &'static str, fall: &'static str, reach: Reach, asks: Asks) -> Scenario {
    let fall = ScenarioFall::Play(fall);
    Scenario { name, fall, reach, asks, requests: 1, error_is_right: false, store: StoreTrouble::None }
}

const fn or_error(row: Scenario) -> Scenario {
    Scenario { error_is_right: true, ..row }
}

const fn without_connection(name: &'static str, fall: ScenarioFall) -> Scenario {
    Scenario { fall, ..row(name, "ok", Reach::Provider, Asks::Stream) }
}

const fn with_store(name: &'static str, store: StoreTrouble) -> Scenario {
    Scenario { store, requests: 2, ..row(name, "fail-500?times=1", Reach::Model, Asks::Stream) }
}

const ROWS: &[Scenario] = &[
    row("throttled", "rate-429?retry_after=20&times=1", Reach::Account, Asks::Stream),
    row("throttled-unstated", "rate-429?retry_after=none&times=1", Reach::Account, Asks::Stream),
    row("quota", "quota", Reach::Account, Asks::Stream),
    row("server-error-once", "fail-500?times=1", Reach::Model, Asks::Whole),
    row("server-error", "fail-500", Reach::Provider, Asks::Stream),
    row("unavailable", "fail-503", Reach::Provider, Asks::Whole),
    row("overloaded", "overloaded", Reach::Model, Asks::Stream),
    row("reset", "reset", Reach::Provider, Asks::Stream),
    row("hang-before-head", "silence", Reach::Provider, Asks::Whole),
    row("hang-after-head", "stall?after=1", Reach::Provider, Asks::Stream),
    row("hang-in-text", "stall?after=20", Reach::Provider, Asks::Stream),
    row("slow-first-token", "slow-first?after=45s", Reach::Model, Asks::Stream),
    row("cut-before-text", "cut?after=1", Reach::Provider, Asks::Stream),
    row("cut-in-text", "cut?after=20", Reach::Provider, Asks::Stream),
    row("cut-in-tool-call", "cut-tool", Reach::Provider, Asks::Tool),
    row("no-end-mark", "fin?after=20", Reach::Provider, Asks::Stream),
    row("error-in-200", "in-band-error?after=1", Reach::Model, Asks::Stream),
    row("error-in-text", "in-band-error?after=10", Reach::Model, Asks::Stream),
    row("empty", "empty", Reach::Model, Asks::Stream),
    row("broken-json", "bad-chunk?after=3", Reach::Model, Asks::Stream),
    row("half-body", "half", Reach::Model, Asks::Whole),
    row("web-page", "html", Reach::Provider, Asks::Stream),
    row("broken-tool-arguments", "broken-tool-args?form=python", Reach::Model, Asks::Tool),
    row("unreadable-tool-arguments", "broken-tool-args?form=prose", Reach::Model, Asks::Tool),
    row("looped-tool-calls", "loop", Reach::Everything, Asks::Loop),
    row("dead-key", "auth-401", Reach::Key, Asks::Stream),
    row("empty-account", "billing", Reach::Account, Asks::Stream),
    or_error(row("context-too-large", "context", Reach::Model, Asks::Stream)),
    or_error(row("content-filter", "filter-400", Reach::Model, Asks::Stream)),
    without_connection("dns", ScenarioFall::Unresolved),
    without_connection("certificate", ScenarioFall::Untrusted),
    Scenario { requests: 6, ..row("flapping", "flap?down=2&up=2", Reach::Provider, Asks::Stream) },
    or_error(row("all-down", "fail-503", Reach::Everything, Asks::Stream)),
    with_store("store-away", StoreTrouble::Away),
    with_store("store-full", StoreTrouble::Full),
];

/// Every scenario, in the order in which people read them.
#[must_use]
pub const fn scenarios() -> &'static [Scenario] {
    ROWS
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_row_has_a_name_of_its_own_and_a_fall_that_exists() {
        let names: BTreeSet<&str> = ROWS.iter().map(|row| row.name).collect();
        assert_eq!(names.len(), ROWS.len());
        assert!(names.len() >= 24);
        for row in ROWS {
            if let ScenarioFall::Play(name) = row.fall {
                assert!(crate::check(name).is_ok(), "{}: {name}", row.name);
            }
        }
    }
}
