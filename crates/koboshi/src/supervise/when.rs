//! When an agent is wanted: always, once, every so often, or when a program says so.

use std::time::Duration;

use jiff::Timestamp;

/// When an agent is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It runs all the time: after its end it is started again.
    Always,
    /// One run.
    Once,
    /// A start in every such stretch. A run that takes longer is not doubled: the next one follows its end.
    Every(Duration),
    /// A program is asked before every start.
    Asked,
}

/// What follows for an agent that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// It is wanted now.
    Now,
    /// It is wanted then.
    At(Timestamp),
    /// Somebody must be asked.
    Ask,
    /// It is not wanted any more.
    Never,
}

/// Whether an agent that does not run is wanted, after its last start and whether that one ended well.
#[must_use]
pub fn due(when: When, last_start: Option<Timestamp>, ended_well: bool, now: Timestamp) -> Due {
    match (when, last_start) {
        (When::Asked, _) => Due::Ask,
        // A run that failed was not the one that is wanted.
        (When::Once, Some(_)) if ended_well => Due::Never,
        (When::Always | When::Once, _) | (When::Every(_), None) => Due::Now,
        (When::Every(length), Some(last)) => {
            let next = last.saturating_add(length).unwrap_or(Timestamp::MAX);
            // A clock that was set back does not stretch the pause.
            let latest = now.saturating_add(length).unwrap_or(Timestamp::MAX);
            if next <= now { Due::Now } else { Due::At(next.min(latest)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn agents_are_wanted_as_the_table_says() {
        let every = When::Every(Duration::from_secs(600));
        let table = [
            (When::Always, Some(at(0)), true, Due::Now),
            (When::Once, None, false, Due::Now),
            (When::Once, Some(at(0)), true, Due::Never),
            (When::Once, Some(at(0)), false, Due::Now),
            (When::Asked, Some(at(0)), true, Due::Ask),
            (every, None, false, Due::Now),
            (every, Some(at(500)), true, Due::At(at(1100))),
            (every, Some(at(400)), true, Due::Now),
            // The clock was set back by a day.
            (every, Some(at(87_400)), true, Due::At(at(1600))),
        ];
        for (when, last, well, expected) in table {
            assert_eq!(due(when, last, well, at(1000)), expected, "{when:?} {last:?}");
        }
    }
}
