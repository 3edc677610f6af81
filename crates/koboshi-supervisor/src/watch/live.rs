//! What a running agent says of its own troubles.
//!
//! Only structured events count: the agent's own words may talk of limits all day. Which lines are worth a look is the kind's to say, so that
//! most lines cost one search for a word.

use jiff::Zoned;
use koboshi::classify::{AgentLog, Classifier};
use koboshi::cooldown::{Class, Failure};
use koboshi::fault::{Confidence, Fault};

use crate::kinds::Kind;

/// Longer lines are no events of a program's own trouble.
const LONGEST: usize = 16 * 1024;

/// What a line means for the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// Work, or words: it is alive.
    Life,
    /// It waits for the network.
    Offline,
    /// A limit was met that does not pass by trying again: it holds for others too.
    Limit(Box<Fault>),
}

/// Reads lines of one kind of agent.
#[derive(Debug, Clone)]
pub struct Live {
    events: Vec<String>,
    offline: Vec<String>,
}

impl Live {
    /// For this kind.
    #[must_use]
    pub fn of(kind: &Kind) -> Self {
        Self { events: kind.live.clone(), offline: kind.offline.clone() }
    }

    /// What a line means.
    #[must_use]
    pub fn sign(&self, line: &[u8], classifier: &Classifier, now: &Zoned) -> Sign {
        if line.len() > LONGEST {
            return Sign::Life;
        }
        let Ok(text) = std::str::from_utf8(line) else { return Sign::Life };
        if self.offline.iter().any(|words| text.contains(words.as_str())) {
            return Sign::Offline;
        }
        let is_event = text.trim_start().starts_with('{')
            && self.events.iter().any(|words| text.contains(words.as_str()));
        let fault = if is_event { classifier.log(&AgentLog { text, exit_code: None }, now) } else { None };
        match fault {
            Some(fault) if fault.confidence == Confidence::High && is_terminal(&fault) => {
                Sign::Limit(Box::new(fault))
            }
            _ => Sign::Life,
        }
    }
}

/// A quota, or a rate limit that says how long it lasts.
fn is_terminal(fault: &Fault) -> bool {
    match Failure::of(fault).class {
        Class::Quota | Class::Billing => true,
        Class::RateLimit => fault.wait.is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Kinds;
    use jiff::Timestamp;
    use jiff::tz::{TimeZone, TimeZoneDatabase};
    use koboshi::classify::Rules;

    fn sign(kind: &str, line: &str) -> Sign {
        let classifier = Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled());
        let now = Timestamp::from_second(1_794_900_000).unwrap().to_zoned(TimeZone::UTC);
        Live::of(Kinds::builtin().unwrap().get(kind).unwrap()).sign(line.as_bytes(), &classifier, &now)
    }

    #[test]
    fn a_rejected_window_is_a_limit_while_the_agent_still_runs() {
        let line = r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794903600,"rateLimitType":"five_hour"}}"#;
        let Sign::Limit(fault) = sign("claude", line) else { panic!("a limit") };
        assert_eq!(fault.log_reason(), "quota");
        assert_eq!(fault.until(), Some(Timestamp::from_second(1_794_903_600).unwrap()));
    }

    #[test]
    fn an_allowed_window_and_an_agents_own_words_are_signs_of_life() {
        for line in [
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1794903600}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"rate_limit_event rejected: You've hit your session limit"}]}}"#,
            "You've hit your session limit · resets 9:27pm (UTC)",
            "quota exhausted",
        ] {
            assert_eq!(sign("claude", line), Sign::Life, "{line}");
        }
    }

    #[test]
    fn an_agent_that_waits_for_the_network_says_so() {
        assert_eq!(sign("codex", r#"{"type":"error","message":"waiting for network"}"#), Sign::Offline);
    }
}
