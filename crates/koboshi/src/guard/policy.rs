//! How often a call, a failure or an answer may repeat, per rule and per tool.

use std::collections::BTreeMap;

use super::{Effect, LOOK_BACK, Rule};

/// What a rule may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// Nothing: the rule is off.
    Off,
    /// Note, never stop.
    Note,
    /// Note one before the limit, stop at it.
    Stop,
}

/// One rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct RulePolicy {
    /// At this many the rule stops; `depth` and `width` allow this many and stop at the next.
    pub limit: u32,
    /// What it may do.
    pub act: Act,
}

impl RulePolicy {
    /// Notes, then stops at `limit`.
    #[must_use]
    pub const fn stop(limit: u32) -> Self {
        Self { limit, act: Act::Stop }
    }

    /// Notes only.
    #[must_use]
    pub const fn note(limit: u32) -> Self {
        Self { limit, act: Act::Note }
    }

    /// Off.
    pub const OFF: Self = Self { limit: 1, act: Act::Off };
}

/// What is different for one tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ToolPolicy {
    /// What a successful call of it does, where its name does not show it.
    pub effect: Option<Effect>,
    /// Rules with other limits for calls of this tool.
    pub rules: BTreeMap<Rule, RulePolicy>,
}

impl ToolPolicy {
    /// A tool that may be called as often as one likes, with whatever answers: only depth and width count.
    #[must_use]
    pub fn free() -> Self {
        let rules = Rule::ALL.iter().filter(|rule| !is_of_turn(**rule)).map(|rule| (*rule, RulePolicy::OFF));
        Self { effect: None, rules: rules.collect() }
    }
}

/// Rules about the whole turn.
fn is_of_turn(rule: Rule) -> bool {
    matches!(rule, Rule::Depth | Rule::Width)
}

/// How often a call, a failure or an answer may repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardPolicy {
    /// Judge and report, but never note or stop.
    pub observe: bool,
    /// Similar failures in a row.
    pub similar_errors: RulePolicy,
    /// Where something was changed between them, the very same failure may come this often.
    pub after_changes: u32,
    /// Similar failures among other failures.
    pub alternating_errors: RulePolicy,
    /// The number of recent attempts that are read for alternating failures.
    pub window: u32,
    /// Failures of any kind in a row.
    pub any_errors: RulePolicy,
    /// The same call with the same answer.
    pub same_call: RulePolicy,
    /// How often an unchanged waiting state (queued, pending, running), or a failure that may pass by itself with pauses
    /// between the tries, may be seen instead.
    pub waiting: u32,
    /// Rounds of two or three calls with the same answers.
    pub cycle: RulePolicy,
    /// One tool, other arguments, the same empty or blocked answer.
    pub stagnation: RulePolicy,
    /// Calls per user turn.
    pub depth: RulePolicy,
    /// Parallel calls per model response.
    pub width: RulePolicy,
    /// Tools with rules of their own, by name.
    pub tools: BTreeMap<String, ToolPolicy>,
}

impl Default for GuardPolicy {
    /// Notes early and stops late: chosen from real runs of agents (`docs/measures.md`).
    fn default() -> Self {
        Self {
            observe: false,
            similar_errors: RulePolicy::stop(6),
            after_changes: 8,
            alternating_errors: RulePolicy::stop(6),
            window: 20,
            any_errors: RulePolicy::stop(12),
            same_call: RulePolicy::stop(6),
            waiting: 12,
            cycle: RulePolicy::stop(4),
            stagnation: RulePolicy::stop(10),
            depth: RulePolicy::stop(20),
            width: RulePolicy::stop(16),
            tools: BTreeMap::new(),
        }
    }
}

impl GuardPolicy {
    /// The limits of the source that the guard comes from, three similar errors and twenty calls a turn, with what belongs
    /// to them: for a chat with a few tools, where a loop should end soon.
    #[must_use]
    pub fn source() -> Self {
        Self {
            similar_errors: RulePolicy::stop(3),
            after_changes: 5,
            alternating_errors: RulePolicy::stop(3),
            window: 10,
            any_errors: RulePolicy::stop(8),
            same_call: RulePolicy::stop(5),
            waiting: 10,
            cycle: RulePolicy::stop(3),
            stagnation: RulePolicy::stop(7),
            ..Self::default()
        }
    }
}

/// Why a policy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GuardPolicyError {
    /// A first time is no repetition.
    #[error("{}: the limit must be at least 2", .0.name())]
    Low(Rule),
    /// More than the calls that are read.
    #[error("{}: the limit must be at most {LOOK_BACK}", .0.name())]
    High(Rule),
    /// A limit that is lower than the one it loosens.
    #[error("`{0}` must be at least the limit of {rule}, and at most {LOOK_BACK}", rule = .1.name())]
    Looser(&'static str, Rule),
    /// A window in which the limit cannot be reached.
    #[error("`window` must be at least the limit of alternating_errors, and at most {LOOK_BACK}")]
    Window,
    /// A rule about the turn for one tool.
    #[error("{rule}: counts all calls of a turn and cannot be set for {1:?} alone", rule = .0.name())]
    OfTurn(Rule, String),
}

impl GuardPolicy {
    /// What holds for calls of this tool.
    #[must_use]
    pub fn rule(&self, rule: Rule, tool: &str) -> RulePolicy {
        let own = self.tools.get(tool).and_then(|tool| tool.rules.get(&rule));
        own.copied().unwrap_or(self.general(rule))
    }

    fn general(&self, rule: Rule) -> RulePolicy {
        match rule {
            Rule::SimilarErrors => self.similar_errors,
            Rule::AlternatingErrors => self.alternating_errors,
            Rule::AnyErrors => self.any_errors,
            Rule::SameCall => self.same_call,
            Rule::Cycle => self.cycle,
            Rule::Stagnation => self.stagnation,
            Rule::Depth => self.depth,
            Rule::Width => self.width,
        }
    }

    /// Whether the values make sense.
    ///
    /// # Errors
    /// The first value that does not.
    pub fn validate(&self) -> Result<(), GuardPolicyError> {
        use GuardPolicyError as Wrong;
        let max = u32::try_from(LOOK_BACK).unwrap_or(u32::MAX);
        for rule in Rule::ALL {
            sound(*rule, self.general(*rule), max)?;
        }
        for (name, tool) in &self.tools {
            for (rule, policy) in &tool.rules {
                if is_of_turn(*rule) {
                    return Err(Wrong::OfTurn(*rule, name.clone()));
                }
                sound(*rule, *policy, max)?;
            }
        }
        if !(self.similar_errors.limit..=max).contains(&self.after_changes) {
            return Err(Wrong::Looser("after_changes", Rule::SimilarErrors));
        }
        if !(self.same_call.limit..=max).contains(&self.waiting) {
            return Err(Wrong::Looser("waiting", Rule::SameCall));
        }
        if !(self.alternating_errors.limit..=max).contains(&self.window) {
            return Err(Wrong::Window);
        }
        Ok(())
    }
}

fn sound(rule: Rule, policy: RulePolicy, max: u32) -> Result<(), GuardPolicyError> {
    if policy.act == Act::Off {
        return Ok(());
    }
    // Depth and width are counters: no earlier call has to be read.
    let (min, max) = if is_of_turn(rule) { (1, u32::MAX) } else { (2, max) };
    if policy.limit < min {
        return Err(GuardPolicyError::Low(rule));
    }
    if policy.limit > max { Err(GuardPolicyError::High(rule)) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_sound_and_have_the_values_of_their_design() {
        assert_eq!(GuardPolicy::default().validate(), Ok(()));
        let policy = GuardPolicy::source();
        assert_eq!(policy.validate(), Ok(()));
        assert_eq!((policy.similar_errors.limit, policy.depth.limit), (3, 20), "the source's values");
    }

    #[test]
    fn wrong_policies_say_what_is_wrong() {
        use GuardPolicyError as Wrong;
        let base = GuardPolicy::default();
        let tool = |rule| {
            let own = ToolPolicy { effect: None, rules: BTreeMap::from([(rule, RulePolicy::stop(1))]) };
            BTreeMap::from([("x".to_owned(), own)])
        };
        for (policy, wrong) in [
            (
                GuardPolicy { similar_errors: RulePolicy::stop(1), ..base.clone() },
                Wrong::Low(Rule::SimilarErrors),
            ),
            (GuardPolicy { cycle: RulePolicy::stop(9999), ..base.clone() }, Wrong::High(Rule::Cycle)),
            (
                GuardPolicy { after_changes: 2, ..base.clone() },
                Wrong::Looser("after_changes", Rule::SimilarErrors),
            ),
            (GuardPolicy { waiting: 4, ..base.clone() }, Wrong::Looser("waiting", Rule::SameCall)),
            (GuardPolicy { window: 2, ..base.clone() }, Wrong::Window),
            (
                GuardPolicy { tools: tool(Rule::Depth), ..base.clone() },
                Wrong::OfTurn(Rule::Depth, "x".to_owned()),
            ),
            (GuardPolicy { tools: tool(Rule::SameCall), ..base }, Wrong::Low(Rule::SameCall)),
        ] {
            assert_eq!(policy.validate(), Err(wrong));
        }
        assert_eq!(GuardPolicy { cycle: RulePolicy::OFF, ..GuardPolicy::default() }.validate(), Ok(()));
    }
}
