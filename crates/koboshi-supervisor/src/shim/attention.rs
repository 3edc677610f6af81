//! Whether the owner reads the output of its agent. One that lives and hangs must not block the agent for long.
//!
//! The pipes are the owner's to read. After output they are checked once, some seconds later; a quiet agent costs nothing. Where a pipe is full
//! at two checks in a row, and the owner's thread did not run in between, the owner hangs: the shim reads in its place, as it does without an
//! owner, until the owner runs again. An owner that is merely slow runs all the time, and is left alone.

use std::fs;
use std::time::Duration;

use koboshi::time::Moment;

use super::drain::Drain;
use crate::identity::Identity;

/// The time between two checks. A healthy owner runs at least twice a second.
const INTERVAL: Duration = Duration::from_secs(2);

/// What is known of the owner's attention.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Attention {
    /// Nothing was written since the pipes were last found empty.
    #[default]
    Quiet,
    /// The pipes are checked at this time; the pulse is the owner's when one of them was found full.
    Check(Moment, Option<Pulse>),
    /// The owner hangs since it had this pulse.
    Away(Pulse),
}

/// How often the owner's first thread was given the processor, and for how long: it changes whenever that thread does anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pulse {
    switches: Vec<u64>,
    ticks: [u64; 2],
}

impl Pulse {
    fn of(owner: &Identity) -> Option<Self> {
        let of_thread = |file: &str| fs::read_to_string(format!("/proc/{0}/task/{0}/{file}", owner.pid)).ok();
        Self::parse(&of_thread("status")?, &of_thread("stat")?)
    }

    fn parse(status: &str, stat: &str) -> Option<Self> {
        let switches = status.lines().filter_map(|line| {
            let (name, count) = line.split_once(':')?;
            name.ends_with("ctxt_switches").then(|| count.trim().parse().ok())?
        });
        // The 14th and 15th field of the line; the first of the fields behind the name is the third.
        let mut times = stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace().skip(11);
        let mut next = || times.next()?.parse().ok();
        Some(Self { switches: switches.collect(), ticks: [next()?, next()?] })
    }
}

/// What the shim does with the pipes now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duty {
    /// Leaves them to the owner.
    Leave,
    /// Reads them in its place.
    Read,
    /// Hands over what it has read: the owner runs again.
    HandOver,
}

impl Attention {
    /// Whether the pipes are to be waited for.
    pub(super) const fn waits_for_output(&self) -> bool {
        matches!(self, Self::Quiet | Self::Away(_))
    }

    /// Whether the owner hangs.
    pub(super) const fn is_away(&self) -> bool {
        matches!(self, Self::Away(_))
    }

    /// When the pipes are checked next.
    pub(super) const fn next(&self) -> Option<Moment> {
        if let Self::Check(at, _) = self { Some(*at) } else { None }
    }

    /// Checks the pipes and, where one is full, the owner.
    pub(super) fn check(&mut self, drain: &Drain, owner: &Identity, now: Moment) -> Duty {
        let (next, duty) = self.after(now, drain.fill(), || Pulse::of(owner));
        *self = next;
        duty
    }

    fn after(&self, now: Moment, fill: Fill, pulse: impl Fn() -> Option<Pulse>) -> (Self, Duty) {
        let later = now.after(INTERVAL);
        match (self, fill) {
            (Self::Away(before), _) if pulse().as_ref() == Some(before) => (self.clone(), Duty::Read),
            (Self::Away(_), _) => (Self::Check(later, None), Duty::HandOver),
            (Self::Check(at, _), _) if now < *at => (self.clone(), Duty::Leave),
            (_, Fill::Empty) => (Self::Quiet, Duty::Leave),
            (Self::Quiet, _) | (_, Fill::Some) => (Self::Check(later, None), Duty::Leave),
            (Self::Check(_, before), Fill::Full) => match (before, pulse()) {
                (Some(before), Some(pulse)) if *before == pulse => (Self::Away(pulse), Duty::Read),
                (_, pulse) => (Self::Check(later, pulse), Duty::Leave),
            },
        }
    }
}

/// How much is in the pipes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// Nothing.
    Empty,
    /// Something, and there is room for more.
    Some,
    /// At least one of them has no room.
    Full,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Moment {
        Moment::START.after(Duration::from_secs(seconds))
    }

    fn pulse(ticks: u64) -> Option<Pulse> {
        Some(Pulse { switches: vec![7], ticks: [ticks, 0] })
    }

    /// The duties at these seconds, with these fills and pulses.
    fn duties(seen: &[(u64, Fill, Option<Pulse>)]) -> Vec<Duty> {
        let mut attention = Attention::default();
        let mut all = Vec::new();
        for (second, fill, pulse) in seen {
            let (next, duty) = attention.after(at(*second), *fill, || pulse.clone());
            attention = next;
            all.push(duty);
        }
        all
    }

    #[test]
    fn only_an_owner_that_does_not_run_while_a_pipe_is_full_is_taken_for_hung() {
        let (full, leave) = (Fill::Full, Duty::Leave);
        let hung = [
            (0, full, pulse(1)),
            (2, full, pulse(1)),
            (4, full, pulse(1)),
            (5, full, pulse(1)),
            (6, full, pulse(2)),
        ];
        assert_eq!(duties(&hung), [leave, leave, Duty::Read, Duty::Read, Duty::HandOver]);
        let slow = [(0, full, pulse(1)), (2, full, pulse(2)), (4, full, pulse(3)), (6, full, pulse(4))];
        assert_eq!(duties(&slow), [leave; 4], "it runs");
        let idle = [(0, Fill::Some, pulse(1)), (2, Fill::Some, pulse(1)), (4, Fill::Empty, pulse(1))];
        assert_eq!(duties(&idle), [leave; 3], "no agent is blocked");
        let read = [(0, full, pulse(1)), (2, full, pulse(1)), (4, Fill::Some, pulse(1)), (6, full, pulse(1))];
        assert_eq!(duties(&read), [leave; 4], "it was read in between");
        let unknown = [(0, full, None), (2, full, None), (4, full, None)];
        assert_eq!(duties(&unknown), [leave; 3]);
    }

    #[test]
    fn a_pulse_is_read_from_what_the_kernel_says_of_a_thread() {
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t12\nnonvoluntary_ctxt_switches:\t3\n";
        let stat = "42 (a) b) S 7 42 42 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 987654 1000 2 3";
        assert_eq!(Pulse::parse(status, stat), Some(Pulse { switches: vec![12, 3], ticks: [5, 6] }));
        assert_eq!(Pulse::parse(status, "nothing"), None);
        let own = Identity::own().unwrap();
        assert!(Pulse::of(&own).is_some_and(|pulse| pulse.switches.len() == 2));
    }
}
