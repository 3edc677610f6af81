//! What the guard found: plain data that can be logged, shown and replayed.

use std::sync::Arc;

use super::Mask;
use crate::fault::{Fault, Kind};

/// What the guard looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Rule {
    /// Failures that say the same, in a row.
    SimilarErrors,
    /// Failures that say the same, with other failures between them.
    AlternatingErrors,
    /// Failures of any kind in a row.
    AnyErrors,
    /// The same call with the same answer.
    SameCall,
    /// Two or three calls that come round with the same answers.
    Cycle,
    /// One tool, other arguments, the same answer without anything in it.
    Stagnation,
    /// Calls since the user last wrote.
    Depth,
    /// Parallel calls of one message.
    Width,
}

impl Rule {
    /// Every rule.
    pub const ALL: &[Self] = &[
        Self::SimilarErrors,
        Self::AlternatingErrors,
        Self::AnyErrors,
        Self::SameCall,
        Self::Cycle,
        Self::Stagnation,
        Self::Depth,
        Self::Width,
    ];

    /// Stable name, as used in settings, logs and phrases.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SimilarErrors => "similar_errors",
            Self::AlternatingErrors => "alternating_errors",
            Self::AnyErrors => "any_errors",
            Self::SameCall => "same_call",
            Self::Cycle => "cycle",
            Self::Stagnation => "stagnation",
            Self::Depth => "depth",
            Self::Width => "width",
        }
    }

    /// The rule with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|rule| rule.name() == name)
    }

    /// The kind of fault that a stop by this rule is.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Depth | Self::Width => Kind::CallDepthExceeded,
            _ => Kind::ToolLoop,
        }
    }
}

/// What to do now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verdict {
    /// The agent may continue.
    Pass,
    /// The agent may continue; the model reads what repeats.
    Note,
    /// End the loop: [`Finding::forbids`] says what is forbidden.
    Stop,
}

impl Verdict {
    /// Stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Note => "note",
            Self::Stop => "stop",
        }
    }
}

/// What a stop forbids: no more than ends the loop. The first refusals name the call, and only where the agent continues
/// repeating itself by other calls more is taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Forbids {
    /// The calls that repeat, with the same arguments.
    Calls,
    /// The tools of these calls.
    Tools,
    /// All tools, but those by which an agent ends its work or asks for help.
    Turn,
}

impl Forbids {
    /// Stable name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Tools => "tools",
            Self::Turn => "turn",
        }
    }
}

/// Repetitions beyond the limit until a stop forbids more.
const PER_STAGE: u32 = 2;

/// What made entries equal.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fingerprint {
    /// A number for the text, the same on every machine.
    pub id: u64,
    /// The masked text; for successful calls a hash of the answer is all there is, and this is empty.
    pub text: String,
    /// What was masked in it.
    pub masks: Vec<Mask>,
}

/// One thing that repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule that matched.
    pub rule: Rule,
    /// How far it has come: one before the limit, or at it. Policy may have lowered a stop to a note.
    pub verdict: Verdict,
    /// Whether tools end at the limit. Where the rule only notes, or the guard observes, they do not, and no note may
    /// claim it.
    pub stops: bool,
    /// How often it was seen: attempts, rounds or calls.
    pub count: u32,
    /// How often it may be seen.
    pub limit: u32,
    /// Indexes of the calls that matched, oldest first, in the history that was judged.
    pub entries: Vec<usize>,
    /// The tools of these calls, each once.
    pub tools: Vec<Arc<str>>,
    /// What the failures report, where they agree.
    pub category: Option<Arc<str>>,
    /// What made them equal.
    pub fingerprint: Fingerprint,
    /// One of the answers, redacted and shortened.
    pub example: String,
}

impl Finding {
    /// What it forbids, where it stops.
    #[must_use]
    pub fn forbids(&self) -> Option<Forbids> {
        if self.verdict != Verdict::Stop {
            return None;
        }
        Some(match self.rule {
            Rule::Depth | Rule::Width => Forbids::Turn,
            _ => match self.count.saturating_sub(self.limit) / PER_STAGE {
                0 => Forbids::Calls,
                1 => Forbids::Tools,
                _ => Forbids::Turn,
            },
        })
    }

    /// The finding as a fault, for journals, headers and metrics.
    #[must_use]
    pub fn fault(&self) -> Fault {
        let mut fault = Fault::of(self.rule.kind(), &format!("guard.{}", self.rule.name()));
        fault.category.clone_from(&self.category);
        fault.detail.clone_from(&self.example);
        fault
    }
}

/// How much was called since the user last wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// Calls, parallel ones one by one.
    pub calls: u32,
    /// Model responses that made them.
    pub responses: u32,
    /// The most calls that one response made.
    pub widest: u32,
}

/// What the guard says about a history, as of its end.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judgement {
    /// What to do. With `observe` always [`Verdict::Pass`].
    pub verdict: Verdict,
    /// What would be done without `observe`.
    pub would: Verdict,
    /// What repeats, gravest first.
    pub findings: Vec<Finding>,
    /// How much was called in this user turn.
    pub reach: Reach,
}

impl Judgement {
    pub(super) fn of(mut findings: Vec<Finding>, reach: Reach, observe: bool) -> Self {
        // Gravest first; rules are in the order of how much they explain.
        findings.sort_by(|one, other| other.verdict.cmp(&one.verdict).then(one.rule.cmp(&other.rule)));
        let would = findings.first().map_or(Verdict::Pass, |finding| finding.verdict);
        let verdict = if observe { Verdict::Pass } else { would };
        findings.iter_mut().for_each(|finding| finding.stops &= !observe);
        Self { verdict, would, findings, reach }
    }

    /// The finding that decided.
    #[must_use]
    pub fn gravest(&self) -> Option<&Finding> {
        self.findings.first()
    }
}
