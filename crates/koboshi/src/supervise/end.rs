//! What the end of a process means.
//!
//! The exit code comes last: several agents exit with 0 after a failure, and one exits with 0 after our own signal. So the order is: did it
//! start at all, did we stop it ourselves, what was read from it, and only then its code.

use std::time::Duration;

use crate::fault::{Confidence, Fault, Kind, Sub};

/// SIGINT: a person at the terminal pressed Ctrl-C.
const INTERRUPT: i32 = 2;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// With this exit code.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
    /// It never ran.
    NotStarted(NotStarted),
}

impl Status {
    /// The exit code as a shell shows it: 128 + n for a signal, 127 and 126 for what cannot be run.
    #[must_use]
    pub const fn shell_code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128_i32.saturating_add(signal),
            Self::NotStarted(NotStarted::Missing) => 127,
            Self::NotStarted(_) => 126,
        }
    }
}

/// Why a process did not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotStarted {
    /// There is no such program.
    Missing,
    /// It is there and cannot be run, or its folder cannot be entered.
    Refused,
    /// The machine lacks processes or memory now.
    Busy,
}

/// Why we stopped a process ourselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoppedFor {
    /// A person or a program asked for it, or the supervisor ends.
    Request,
    /// It ran longer than it may.
    RunTime,
    /// It wrote nothing for longer than it may.
    Silence,
    /// It waited for the network for longer than it may.
    Offline,
    /// It and what it started took more memory than it may.
    Memory,
    /// It had more processes than it may.
    Processes,
    /// The right to run it on this machine ended: another one may have it.
    Lease,
}

impl StoppedFor {
    /// Its name in logs and in the files of a run.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::RunTime => "run_time",
            Self::Silence => "silence",
            Self::Offline => "offline",
            Self::Memory => "memory",
            Self::Processes => "processes",
            Self::Lease => "lease",
        }
    }
}

/// The end of a run, as far as it is known.
#[derive(Debug, Clone, Copy)]
pub struct End<'a> {
    /// How the process ended.
    pub status: Status,
    /// Why we stopped it, if we did.
    pub stopped: Option<StoppedFor>,
    /// How long it ran.
    pub ran: Duration,
    /// What was read from its output.
    pub read: Option<&'a Fault>,
}

/// What an end means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It did its work.
    Good,
    /// It exited well, but too soon to have done any work: that says nothing.
    Idle,
    /// It was asked to end, which is no failure.
    Stopped,
    /// It failed.
    Failed(Fault),
}

/// What an end means. `min_run` is how long a run must last to be taken for work.
#[must_use]
pub fn judge(end: &End<'_>, min_run: Duration) -> Outcome {
    if let Status::NotStarted(why) = end.status {
        return Outcome::Failed(not_started(why));
    }
    // What the agent wrote beats our own reason for stopping it: an agent that waits for its quota is silent because of the quota.
    let read = end.read.filter(|fault| fault.confidence > Confidence::Low);
    match (end.stopped, read, end.status) {
        (Some(StoppedFor::Request | StoppedFor::Lease), ..) => Outcome::Stopped,
        // The limit was exceeded, whatever the agent wrote before.
        (Some(why @ (StoppedFor::Memory | StoppedFor::Processes)), ..) => Outcome::Failed(stopped(why)),
        (_, Some(fault), _) => Outcome::Failed(fault.clone()),
        (Some(why), None, _) => Outcome::Failed(stopped(why)),
        (None, None, Status::Signaled(INTERRUPT)) => Outcome::Stopped,
        (None, None, Status::Exited(0)) if end.ran < min_run => Outcome::Idle,
        (None, None, Status::Exited(0)) => Outcome::Good,
        (None, None, status) => Outcome::Failed(end.read.cloned().unwrap_or_else(|| by_status(status))),
    }
}

fn not_started(why: NotStarted) -> Fault {
    let mut fault = Fault::of(Kind::SpawnFailed, "supervise.not_started");
    fault.sub = (why == NotStarted::Missing).then_some(Sub::Command);
    fault.advice.same = why == NotStarted::Busy;
    fault.confidence = Confidence::High;
    fault
}

fn stopped(why: StoppedFor) -> Fault {
    let (kind, sub, rule) = match why {
        StoppedFor::Offline => (Kind::ConnectionFailed, Some(Sub::Unreachable), "supervise.offline"),
        StoppedFor::Silence => (Kind::ProcessFailed, Some(Sub::TimeLimit), "supervise.silence"),
        StoppedFor::Memory => (Kind::ProcessFailed, Some(Sub::Memory), "supervise.memory"),
        StoppedFor::Processes => (Kind::ProcessFailed, None, "supervise.processes"),
        StoppedFor::RunTime | StoppedFor::Request | StoppedFor::Lease => {
            (Kind::ProcessFailed, Some(Sub::TimeLimit), "supervise.run_time")
        }
    };
    let mut fault = Fault::of(kind, rule);
    fault.sub = sub;
    fault.advice.same = true;
    fault.confidence = Confidence::High;
    fault
}

fn by_status(status: Status) -> Fault {
    let mut fault = match status {
        Status::Signaled(_) => {
            let mut fault = Fault::of(Kind::ProcessFailed, "supervise.signal");
            fault.sub = Some(Sub::Signal);
            fault
        }
        _ => Fault::of(Kind::AgentError, "supervise.exit_code"),
    };
    fault.confidence = Confidence::Low;
    fault
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIN_RUN: Duration = Duration::from_secs(10);
    const HOUR: Duration = Duration::from_secs(3600);

    fn quota() -> Fault {
        Fault::of(Kind::QuotaExceeded, "test")
    }

    fn kind(end: &End<'_>) -> Option<(Kind, Option<Sub>)> {
        match judge(end, MIN_RUN) {
            Outcome::Failed(fault) => Some((fault.kind, fault.sub)),
            _ => None,
        }
    }

    #[test]
    fn ends_mean_what_the_table_says() {
        let end = |status, stopped, ran| End { status, stopped, ran, read: None };
        let good = end(Status::Exited(0), None, HOUR);
        assert_eq!(judge(&good, MIN_RUN), Outcome::Good);
        assert_eq!(judge(&end(Status::Exited(0), None, Duration::from_secs(1)), MIN_RUN), Outcome::Idle);
        assert_eq!(judge(&end(Status::Signaled(2), None, HOUR), MIN_RUN), Outcome::Stopped);
        let moved = end(Status::Signaled(9), Some(StoppedFor::Lease), HOUR);
        assert_eq!(judge(&moved, MIN_RUN), Outcome::Stopped, "it goes on elsewhere");
        let failed = [
            (Status::Exited(1), None, Kind::AgentError, None),
            (Status::Signaled(9), None, Kind::ProcessFailed, Some(Sub::Signal)),
            (Status::NotStarted(NotStarted::Missing), None, Kind::SpawnFailed, Some(Sub::Command)),
            (Status::NotStarted(NotStarted::Refused), None, Kind::SpawnFailed, None),
            (Status::Signaled(15), Some(StoppedFor::RunTime), Kind::ProcessFailed, Some(Sub::TimeLimit)),
            (Status::Exited(0), Some(StoppedFor::Silence), Kind::ProcessFailed, Some(Sub::TimeLimit)),
            (Status::Exited(0), Some(StoppedFor::Offline), Kind::ConnectionFailed, Some(Sub::Unreachable)),
            (Status::Signaled(9), Some(StoppedFor::Memory), Kind::ProcessFailed, Some(Sub::Memory)),
            (Status::Signaled(9), Some(StoppedFor::Processes), Kind::ProcessFailed, None),
        ];
        for (status, stopped, expected, sub) in failed {
            assert_eq!(kind(&end(status, stopped, HOUR)), Some((expected, sub)), "{status:?} {stopped:?}");
        }
    }

    #[test]
    fn a_fault_that_was_read_beats_a_good_exit_and_our_own_impatience() {
        let fault = quota();
        for (status, stopped) in [
            (Status::Exited(0), None),
            (Status::Exited(173), None),
            (Status::Signaled(15), Some(StoppedFor::Silence)),
            (Status::Signaled(2), None),
        ] {
            let end = End { status, stopped, ran: HOUR, read: Some(&fault) };
            assert_eq!(kind(&end), Some((Kind::QuotaExceeded, None)), "{status:?}");
        }
    }

    #[test]
    fn what_an_agent_took_beats_what_it_wrote() {
        let fault = quota();
        let end = End {
            status: Status::Signaled(9),
            stopped: Some(StoppedFor::Memory),
            ran: HOUR,
            read: Some(&fault),
        };
        assert_eq!(kind(&end), Some((Kind::ProcessFailed, Some(Sub::Memory))));
    }

    #[test]
    fn a_program_that_is_missing_is_not_started_again_and_a_busy_machine_is_asked_again() {
        for (why, same) in
            [(NotStarted::Missing, false), (NotStarted::Refused, false), (NotStarted::Busy, true)]
        {
            assert_eq!(not_started(why).advice.same, same, "{why:?}");
        }
    }

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!(Status::Signaled(9).shell_code(), 137);
        assert_eq!(Status::NotStarted(NotStarted::Missing).shell_code(), 127);
        assert_eq!(Status::NotStarted(NotStarted::Refused).shell_code(), 126);
    }

    proptest! {
        /// A process that was asked to end has not failed, however it takes the request.
        #[test]
        fn a_requested_stop_is_never_a_failure(code in -300_i32..300, signal in 1_i32..64, by in any::<bool>(), read in any::<bool>()) {
            let status = if by { Status::Signaled(signal) } else { Status::Exited(code) };
            let fault = quota();
            let end = End { status, stopped: Some(StoppedFor::Request), ran: HOUR, read: read.then_some(&fault) };
            prop_assert_eq!(judge(&end, MIN_RUN), Outcome::Stopped);
        }

        /// No exit but 0 is a success.
        #[test]
        fn only_a_zero_is_good(code in -300_i32..300) {
            let end = End { status: Status::Exited(code), stopped: None, ran: HOUR, read: None };
            prop_assert_eq!(judge(&end, MIN_RUN) == Outcome::Good, code == 0);
        }
    }
}
