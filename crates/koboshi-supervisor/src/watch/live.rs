//! Reads the output of a running agent for reports of trouble.
//!
//! Only structured events count: an agent may write about limits all day. The kind of agent names the words that make a line worth
//! classifying, so that most lines cost one search for a word.

use jiff::Zoned;
use koboshi::classify::{AgentLog, Classifier};
use koboshi::cooldown::{Class, Failure};
use koboshi::fault::{Confidence, Fault};
use memchr::memmem::Finder;

use crate::kinds::{Kind, OfflineEvent};

/// Longer lines are no events about the program's own trouble.
const MAX_EVENT: usize = 16 * 1024;

/// What a line means for the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// Work or text: it is alive.
    Life,
    /// It waits for the network.
    Offline,
    /// It met a limit that does not pass by trying again, and that holds for other agents too.
    Limit(Box<Fault>),
}

/// Reads lines of one kind of agent.
#[derive(Debug, Clone)]
pub struct Live {
    events: Vec<Finder<'static>>,
    offline: Option<(Finder<'static>, OfflineEvent)>,
}

impl Live {
    /// For this kind.
    #[must_use]
    pub fn of(kind: &Kind) -> Self {
        let finder = |word: &str| Finder::new(word).into_owned();
        let offline = kind.offline.as_ref().map(|event| (finder(&event.says), event.clone()));
        Self { events: kind.live.iter().map(|word| finder(word)).collect(), offline }
    }

    /// Calls back with the signs in these lines, in order. Lines without any of the words are one sign of life.
    pub fn signs(
        &self,
        lines: &[u8],
        classifier: &Classifier,
        now: impl Fn() -> Zoned,
        mut each: impl FnMut(Sign),
    ) {
        let offline = self.offline.as_ref().map(|(word, _)| word);
        let has_word = |text: &[u8]| self.events.iter().chain(offline).any(|word| is_in(word, text));
        if !has_word(lines) {
            return each(Sign::Life);
        }
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            each(if has_word(line) { self.sign(line, classifier, &now()) } else { Sign::Life });
        }
    }

    fn sign(&self, line: &[u8], classifier: &Classifier, now: &Zoned) -> Sign {
        if line.len() > MAX_EVENT {
            return Sign::Life;
        }
        let Ok(text) = std::str::from_utf8(line) else { return Sign::Life };
        if self.offline.as_ref().is_some_and(|(_, event)| event.is_in(text)) {
            return Sign::Offline;
        }
        let fault = if text.trim_start().starts_with('{') {
            classifier.log(&AgentLog { text, exit_code: None, since: None }, now)
        } else {
            None
        };
        match fault {
            Some(fault) if fault.confidence == Confidence::High && is_terminal(&fault) => {
                Sign::Limit(Box::new(fault))
            }
            _ => Sign::Life,
        }
    }
}

fn is_in(word: &Finder<'_>, text: &[u8]) -> bool {
    word.find(text).is_some()
}

/// A quota, or a rate limit that states how long it lasts.
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
        let live = Live::of(Kinds::builtin().unwrap().get(kind).unwrap());
        let mut found = Vec::new();
        let lines = format!("before\n{line}\n");
        live.signs(lines.as_bytes(), &classifier, || now.clone(), |sign| found.push(sign));
        found.pop().unwrap()
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
        // As the real one prints it at a refused port.
        let line = r#"{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}"#;
        assert_eq!(sign("codex", line), Sign::Offline);
    }

    #[test]
    fn prose_and_results_of_tools_about_the_network_are_signs_of_life() {
        let says = "Reconnecting... waiting for network (Connection failed: error sending request)";
        let event = format!(r#"{{\"type\":\"error\",\"message\":\"{says}\"}}"#);
        for line in [
            says.to_owned(),
            format!("  {says}"),
            format!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":"{says}"}}}}"#),
            format!(r#"{{"type":"item.completed","item":{{"type":"agent_message","text":"{event}"}}}}"#),
            format!(
                r#"{{"type":"item.completed","item":{{"type":"command_execution","command":"cat log","aggregated_output":"{event}\n"}}}}"#
            ),
            format!(r#"{{"type":"item.completed","item":{{"type":"error","message":"{says}"}}}}"#),
            format!(r#"{{"type":"error","message":"the file says: {says}"}}"#),
            format!(r#"{{"type":"error","message":7,"text":"{says}"}}"#),
            format!(r#"{{"type":"error","message":"{says}""#),
            r#"{"type":"error","message":"Reconnecting... 2/5 (stream disconnected before completion)"}"#
                .to_owned(),
        ] {
            assert_eq!(sign("codex", &line), Sign::Life, "{line}");
        }
    }
}
