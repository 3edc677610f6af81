//! The order of starts when not all can start: the agent whose last start is longest ago goes first.
//!
//! A fixed order would let the first agents of a config keep the last ones away for ever.

use jiff::Timestamp;

/// One that wants to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting<K> {
    /// Who.
    pub who: K,
    /// When it started last, if it ever did.
    pub last_start: Option<Timestamp>,
    /// When it could have started.
    pub since: Timestamp,
}

/// Those that wait, in the order of their turns.
#[must_use]
pub fn first<K: Ord>(mut waiting: Vec<Waiting<K>>) -> Vec<Waiting<K>> {
    // What never started is before all others: `None` is the least.
    waiting.sort_by(|one, two| {
        (one.last_start, one.since, &one.who).cmp(&(two.last_start, two.since, &two.who))
    });
    waiting
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn with_one_place_every_agent_gets_a_turn() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut agents: Vec<Waiting<usize>> =
            (0..5).map(|who| Waiting { who, last_start: None, since: at(0) }).collect();
        let mut starts = [0_u32; 5];
        for second in 1..=50 {
            let next = first(agents.clone()).remove(0).who;
            agents[next].last_start = Some(at(second));
            starts[next] += 1;
        }
        assert_eq!(starts, [10; 5]);
    }
}
