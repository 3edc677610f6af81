//! What failed, read from one of three sources: a provider's answer, an agent's log, a tool's output.
//!
//! Three readers, one way of working. A reader first finds the *evidence* by structure (an error object, a
//! finish reason, the last event of a log, the line that reports the failure), then the rules say what it
//! means. Structure beats wording: text that an agent wrote, read or tested is never evidence, however
//! much it talks about limits.
//!
//! ```text
//!   answer ──► error object, finish reason ──┐
//!   log    ──► last failure in it ───────────┼──► Seen (status, clauses) ──► rules ──► Fault
//!   output ──► does it report a failure? ────┘
//! ```
//!
//! The rules are data (`rulefile`), compiled once (`build`, `ruleset`); every text is brought into plain
//! form (`plain`) and searched once for all of them (`lexicon`): linear time on any input.
//! What no rule knows stays unknown: a fault with [`Confidence::Low`](crate::fault::Confidence).

mod answer;
mod build;
mod lexicon;
mod log;
mod mistakes;
mod plain;
mod rulefile;
mod ruleset;
mod tool;

use jiff::Zoned;
use jiff::tz::TimeZoneDatabase;

use crate::redact::{Redactor, without_echoes};
use crate::wait::Clock;

pub use answer::{Answer, OWN_ERROR};
pub use log::{AgentLog, EXIT_CODE, TAIL_BYTES};
pub use rulefile::{RuleError, RuleSource, Texts};
pub use ruleset::{CATEGORIES, OwnCategory, Rules};
pub use tool::ToolOutput;

/// How much of the other side's words a fault carries.
const DETAIL_CHARS: usize = 400;

/// The three readers with everything they need. Make one, keep it, share it.
///
/// ```
/// use jiff::tz::{TimeZone, TimeZoneDatabase};
/// use koboshi::classify::{Answer, Classifier, Rules};
/// use koboshi::fault::Kind;
///
/// let classifier = Classifier::new(Rules::builtin()?, TimeZoneDatabase::bundled());
/// let now = jiff::Timestamp::UNIX_EPOCH.to_zoned(TimeZone::UTC);
///
/// let answer = Answer {
///     status: Some(429),
///     headers: &[("retry-after", "20")],
///     body: r#"{"error": {"message": "Rate limit reached for requests"}}"#,
///     ..Answer::default()
/// };
/// let fault = classifier.answer(&answer, &now).expect("a 429 is a fault");
/// assert_eq!(fault.kind, Kind::RateLimited);
/// assert_eq!(fault.wait.map(|wait| wait.after.as_secs()), Some(20));
/// assert!(fault.advice.same && fault.advice.other && !fault.advice.health);
///
/// let fine = Answer {
///     status: Some(200),
///     body: r#"{"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]}"#,
///     ..Answer::default()
/// };
/// assert!(classifier.answer(&fine, &now).is_none());
/// # Ok::<(), koboshi::classify::RuleError>(())
/// ```
#[derive(Debug)]
pub struct Classifier {
    rules: Rules,
    zones: TimeZoneDatabase,
    redactor: Redactor,
    log_concepts: log::LogConcepts,
}

impl Classifier {
    /// A classifier with these rules; zone names are looked up in `zones`.
    #[must_use]
    pub fn new(rules: Rules, zones: TimeZoneDatabase) -> Self {
        let log_concepts = log::LogConcepts::of(&rules);
        Self { rules, zones, redactor: Redactor::new(), log_concepts }
    }

    /// The rules in use.
    #[must_use]
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    fn clock<'a>(&'a self, now: &'a Zoned) -> Clock<'a> {
        Clock { now, zones: &self.zones }
    }

    /// A provider's message with secrets and echoes of the request taken out.
    fn provider_text(&self, text: &str) -> String {
        self.detail(&without_echoes(text))
    }

    /// A message of the other side with secrets taken out.
    fn detail(&self, text: &str) -> String {
        self.redactor.excerpt(text, DETAIL_CHARS)
    }
}
