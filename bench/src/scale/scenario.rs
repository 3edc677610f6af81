//! When the provider fails, and what it says then.

use std::time::Duration;

use koboshi::time::Moment;

/// When every failure begins: all agents have been at work for a while.
pub const BEGIN: Duration = Duration::from_secs(300);

/// What happens to the account that all agents share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// The account's quota is used up for five hours, and the provider says so.
    Quota,
    /// The provider answers 503 for ten minutes.
    Outage,
    /// It works and fails in turns of twenty seconds, for ten minutes.
    Flapping,
    /// A quota of half an hour, in which all gateways are restarted, one after another.
    Restart,
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Good,
    /// Refused, until this moment.
    Quota(Moment),
    Unavailable,
}

impl Scenario {
    pub const ALL: [Self; 4] = [Self::Quota, Self::Outage, Self::Flapping, Self::Restart];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Quota => "5-hour quota",
            Self::Outage => "10-minute outage",
            Self::Flapping => "flapping, 10 minutes",
            Self::Restart => "rolling restart in a 30-minute quota",
        }
    }

    const fn length(self) -> Duration {
        Duration::from_secs(match self {
            Self::Quota => 5 * 3600,
            Self::Outage | Self::Flapping => 600,
            Self::Restart => 1800,
        })
    }

    pub fn end(self) -> Moment {
        Moment::START.after(BEGIN + self.length())
    }

    /// When a gateway of so many is restarted, if it is.
    pub fn restart(self, node: usize, nodes: usize) -> Option<Moment> {
        let step = Duration::from_secs(600) / u32::try_from(nodes).unwrap_or(u32::MAX);
        let after = BEGIN + Duration::from_secs(300) + step * u32::try_from(node).unwrap_or(u32::MAX);
        (self == Self::Restart).then(|| Moment::START.after(after))
    }

    pub fn answer(self, now: Moment) -> Answer {
        let begin = Moment::START.after(BEGIN);
        if now < begin || now >= self.end() {
            return Answer::Good;
        }
        match self {
            Self::Quota | Self::Restart => Answer::Quota(self.end()),
            Self::Outage => Answer::Unavailable,
            Self::Flapping if now.since(begin).as_secs() / 20 % 2 == 0 => Answer::Unavailable,
            Self::Flapping => Answer::Good,
        }
    }
}
