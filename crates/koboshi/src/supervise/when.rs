//! When an agent is wanted: always, once, at an interval, by a schedule, or when a program or a server says so.

use std::time::Duration;

use jiff::Timestamp;

use super::Schedule;

/// When an agent is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum When {
    /// It runs all the time: after its end it is started again.
    Always,
    /// One run.
    Once,
    /// A start in every such stretch. A run that takes longer is not doubled: the next one follows its end.
    Every(Duration),
    /// At the times of a schedule.
    Scheduled(ScheduleRule),
    /// A program or a server is asked before every start.
    Asked,
}

/// A schedule, and what becomes of times that cannot be kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleRule {
    /// The times.
    pub schedule: Schedule,
    /// Times that passed while there was no supervisor, or while the machine slept.
    pub missed: MissedTimes,
    /// Times that come while the agent still runs.
    pub overlap: Overlap,
}

/// What becomes of times that passed while there was no supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissedTimes {
    /// They are left out.
    Skip,
    /// One run makes up for all of them.
    Run,
}

/// What becomes of a time that comes while the agent still runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// It is left out.
    Skip,
    /// The next run follows the end of this one.
    Wait,
    /// The running one is stopped, and the next one follows.
    Replace,
}

/// What is known of the runs of an agent so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Past {
    /// When it was started last.
    pub last_start: Option<Timestamp>,
    /// When its last run ended.
    pub last_end: Option<Timestamp>,
    /// That run did its work.
    pub ended_well: bool,
    /// That run was cut short by something that passes, such as a limit: its work is still to be done.
    pub unfinished: bool,
    /// Since when a supervisor watches the clock without a break.
    pub watched_since: Timestamp,
}

/// What follows for an agent that does not run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// It is wanted now.
    Now,
    /// It is wanted then.
    At(Timestamp),
    /// The configured program must be asked.
    Ask,
    /// It is not wanted any more.
    Never,
}

/// What a server says about an agent when it is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentAction {
    /// It is to be started.
    Start,
    /// It is to be stopped if it runs.
    Stop,
    /// It stays as it is.
    None,
}

impl AgentAction {
    /// The action with this name; a server may say in its own words that nothing is to be done.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "start" => Some(Self::Start),
            "stop" => Some(Self::Stop),
            "none" | "hold" | "wait" | "skip" | "" => Some(Self::None),
            _ => None,
        }
    }
}

/// Whether an agent that does not run is wanted.
#[must_use]
pub fn due(when: &When, past: &Past, now: Timestamp) -> Due {
    match (when, past.last_start) {
        (When::Asked, _) => Due::Ask,
        // A run that failed was not the one that is wanted.
        (When::Once, Some(_)) if past.ended_well => Due::Never,
        (When::Always | When::Once, _) | (When::Every(_), None) => Due::Now,
        // What a limit cut short goes on when the limit is over, not at the next time.
        (When::Every(_) | When::Scheduled(_), _) if past.unfinished => Due::Now,
        (When::Every(length), Some(last)) => {
            let next = last.saturating_add(*length).unwrap_or(Timestamp::MAX);
            // A clock that was set back does not stretch the pause.
            let latest = now.saturating_add(*length).unwrap_or(Timestamp::MAX);
            if next <= now { Due::Now } else { Due::At(next.min(latest)) }
        }
        (When::Scheduled(scheduled), _) => match scheduled.schedule.next(scheduled.counts_from(past, now)) {
            Some(next) if next <= now => Due::Now,
            Some(next) => Due::At(next),
            None => Due::Never,
        },
    }
}

/// Whether an agent that runs since then must give way to its next run.
#[must_use]
pub fn gives_way(when: &When, started: Timestamp, now: Timestamp) -> bool {
    let When::Scheduled(ScheduleRule { schedule, overlap: Overlap::Replace, .. }) = when else {
        return false;
    };
    schedule.next(started).is_some_and(|next| next <= now)
}

impl ScheduleRule {
    /// Times up to here are done with.
    fn counts_from(&self, past: &Past, now: Timestamp) -> Timestamp {
        let mut from = past.last_start.unwrap_or(past.watched_since);
        if self.missed == MissedTimes::Skip {
            from = from.max(past.watched_since);
        }
        if self.overlap == Overlap::Skip {
            from = from.max(past.last_end.unwrap_or(from));
        }
        // A clock that was set back does not hide the times that come.
        from.min(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::tz::{TimeZone, TimeZoneDatabase};

    const HOUR: i64 = 3600;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn past(last_start: Option<i64>, ended_well: bool) -> Past {
        let last_start = last_start.map(at);
        Past { last_start, last_end: last_start, ended_well, unfinished: false, watched_since: at(0) }
    }

    fn hourly(missed: MissedTimes, overlap: Overlap) -> When {
        let zones = TimeZoneDatabase::bundled();
        let schedule = Schedule::parse("0 * * * *", &zones, &TimeZone::UTC).unwrap();
        When::Scheduled(ScheduleRule { schedule, missed, overlap })
    }

    #[test]
    fn agents_are_wanted_as_the_table_says() {
        let every = When::Every(Duration::from_secs(600));
        let table = [
            (&When::Always, Some(0), true, Due::Now),
            (&When::Once, None, false, Due::Now),
            (&When::Once, Some(0), true, Due::Never),
            (&When::Once, Some(0), false, Due::Now),
            (&When::Asked, Some(0), true, Due::Ask),
            (&every, None, false, Due::Now),
            (&every, Some(500), true, Due::At(at(1100))),
            (&every, Some(400), true, Due::Now),
            // The clock was set back by a day.
            (&every, Some(87_400), true, Due::At(at(1600))),
        ];
        for (when, last, well, expected) in table {
            assert_eq!(due(when, &past(last, well), at(1000)), expected, "{when:?} {last:?}");
        }
    }

    #[test]
    fn a_schedule_starts_at_its_times_and_not_at_once() {
        let when = hourly(MissedTimes::Skip, Overlap::Skip);
        assert_eq!(due(&when, &past(None, false), at(60)), Due::At(at(HOUR)));
        assert_eq!(due(&when, &past(None, false), at(HOUR)), Due::Now);
        assert_eq!(due(&when, &past(Some(HOUR + 1), true), at(HOUR + 60)), Due::At(at(2 * HOUR)));
        // One that is held for a while is still wanted.
        assert_eq!(due(&when, &past(None, false), at(HOUR + 1800)), Due::Now);
        // The clock was set back by a day.
        assert_eq!(due(&when, &past(Some(24 * HOUR + 5), true), at(60)), Due::At(at(HOUR)));
    }

    #[test]
    fn missed_times_are_left_out_or_made_up_for_by_one_run() {
        let last = Past { watched_since: at(5 * HOUR + 60), ..past(Some(HOUR), true) };
        let now = at(5 * HOUR + 120);
        assert_eq!(due(&hourly(MissedTimes::Skip, Overlap::Skip), &last, now), Due::At(at(6 * HOUR)));
        assert_eq!(due(&hourly(MissedTimes::Run, Overlap::Skip), &last, now), Due::Now);
        let made_up = Past { last_start: Some(now), last_end: Some(now), ..last };
        assert_eq!(due(&hourly(MissedTimes::Run, Overlap::Skip), &made_up, now), Due::At(at(6 * HOUR)));
        let never_ran = Past { watched_since: at(5 * HOUR + 60), ..past(None, false) };
        assert_eq!(due(&hourly(MissedTimes::Run, Overlap::Skip), &never_ran, now), Due::At(at(6 * HOUR)));
    }

    #[test]
    fn a_time_that_comes_during_a_run_is_left_out_waits_or_ends_it() {
        let long = Past { last_end: Some(at(2 * HOUR + 60)), ..past(Some(HOUR), true) };
        let now = at(2 * HOUR + 120);
        assert_eq!(due(&hourly(MissedTimes::Run, Overlap::Skip), &long, now), Due::At(at(3 * HOUR)));
        assert_eq!(due(&hourly(MissedTimes::Run, Overlap::Wait), &long, now), Due::Now);
        assert_eq!(due(&hourly(MissedTimes::Run, Overlap::Replace), &long, now), Due::Now);
        for (overlap, expected) in [(Overlap::Skip, false), (Overlap::Wait, false), (Overlap::Replace, true)]
        {
            assert_eq!(
                gives_way(&hourly(MissedTimes::Skip, overlap), at(HOUR), now),
                expected,
                "{overlap:?}"
            );
            assert!(!gives_way(&hourly(MissedTimes::Skip, overlap), at(2 * HOUR), now), "{overlap:?}");
        }
        assert!(!gives_way(&When::Always, at(HOUR), now));
    }

    #[test]
    fn what_a_limit_cut_short_goes_on_when_it_may() {
        let cut = Past { unfinished: true, ..past(Some(990), false) };
        for when in [When::Every(Duration::from_secs(600)), hourly(MissedTimes::Skip, Overlap::Skip)] {
            assert_eq!(due(&when, &cut, at(1000)), Due::Now, "{when:?}");
        }
    }

    #[test]
    fn a_server_says_one_of_three_things() {
        assert_eq!(AgentAction::from_name("start"), Some(AgentAction::Start));
        assert_eq!(AgentAction::from_name("stop"), Some(AgentAction::Stop));
        assert_eq!(AgentAction::from_name("hold"), Some(AgentAction::None));
        assert_eq!(AgentAction::from_name("launch"), None);
    }
}
