//! What a person gets to read when the guard stops, as data: what repeats, how often, one example, what to do next.
//!
//! The sentences are in `koboshi-report`. This module says which steps belong to which category: every category has at least two,
//! each something that a person can do or say, and the last one is always another way to the goal.

use std::sync::Arc;

use super::finding::{Finding, Judgement, Reach, Rule, Verdict};
use crate::fault::Kind;

macro_rules! steps {
    ($($(#[$doc:meta])* $variant:ident = $name:literal;)+) => {
        /// One thing to do next.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Step {
            $($(#[$doc])* $variant,)+
        }

        impl Step {
            /// Every step.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Stable name; its phrase is `guard-step-<name>`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

steps! {
    /// The suggestion of the category itself.
    Category = "category";
    /// Have the agent list what is installed and use that.
    UseInstalled = "use_installed";
    /// Say which versions must stay.
    NameVersions = "name_versions";
    /// Name a place where the agent may work.
    OtherPlace = "other_place";
    /// Look at what is free and what still runs.
    FreeRoom = "free_room";
    /// Write the figure to a file.
    FigureToFile = "figure_to_file";
    /// Have the agent list the folder first.
    ListFirst = "list_first";
    /// Check the service from where the tool runs.
    CheckService = "check_service";
    /// Smaller pieces.
    Smaller = "smaller";
    /// Have the agent show the place before it writes again.
    ShowPlace = "show_place";
    /// Have the agent print values and types.
    PrintValues = "print_values";
    /// Give an example of a correct call.
    GiveExample = "give_example";
    /// Have the agent read the file again.
    ReadAgain = "read_again";
    /// Sign in outside the conversation.
    SignIn = "sign_in";
    /// Wait, then continue.
    WaitThenGoOn = "wait_then_go_on";
    /// Say which tools there are.
    NameTools = "name_tools";
    /// One failing test at a time.
    OneTest = "one_test";
    /// Other words, another place to search.
    OtherWords = "other_words";
    /// Say what is known already.
    SayWhatIsKnown = "say_what_is_known";
    /// Continue: the guard counts from zero.
    GoOn = "go_on";
    /// Raise the limit.
    RaiseLimit = "raise_limit";
    /// Another way to the same goal.
    OtherWay = "other_way";
}

/// The question that ends the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Question {
    /// Shall the agent try something else, or will you fix it first?
    FixOrOtherWay,
    /// What should be different?
    WhatNext,
    /// Shall the agent continue?
    GoOn,
}

impl Question {
    /// Every question.
    pub const ALL: &[Self] = &[Self::FixOrOtherWay, Self::WhatNext, Self::GoOn];

    /// Stable name; its phrase is `guard-question-<name>`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::FixOrOtherWay => "fix_or_other_way",
            Self::WhatNext => "what_next",
            Self::GoOn => "go_on",
        }
    }
}

/// What a person gets to read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Suggestion {
    /// The rule that stopped.
    pub rule: Rule,
    /// The kind of fault.
    pub kind: Kind,
    /// What the failures report.
    pub category: Option<Arc<str>>,
    /// The tools that were called.
    pub tools: Vec<Arc<str>>,
    /// How often it was seen.
    pub count: u32,
    /// How often it may be seen.
    pub limit: u32,
    /// The masked message that repeats; empty where answers and not failures do.
    pub pattern: String,
    /// One answer as it came, redacted and shortened.
    pub example: String,
    /// What to do, best first.
    pub steps: Vec<Step>,
    /// What to ask in the end.
    pub question: Question,
    /// How much was called in this turn.
    pub reach: Reach,
}

impl Suggestion {
    /// The suggestion for a finding.
    #[must_use]
    pub fn of(finding: &Finding, reach: Reach) -> Self {
        let (steps, question) = match (finding.rule, finding.category.as_deref()) {
            (Rule::Depth | Rule::Width, _) => (of_turn(finding.rule), Question::GoOn),
            (Rule::Stagnation, _) => {
                (vec![Step::OtherWords, Step::SayWhatIsKnown, Step::OtherWay], Question::WhatNext)
            }
            (_, Some(category)) => (steps_for(category), Question::FixOrOtherWay),
            (Rule::AnyErrors, None) => {
                (vec![Step::SayWhatIsKnown, Step::Smaller, Step::OtherWay], Question::FixOrOtherWay)
            }
            _ => (vec![Step::SayWhatIsKnown, Step::GoOn, Step::OtherWay], Question::WhatNext),
        };
        Self {
            rule: finding.rule,
            kind: finding.rule.kind(),
            category: finding.category.clone(),
            tools: finding.tools.clone(),
            count: finding.count,
            limit: finding.limit,
            pattern: finding.fingerprint.text.clone(),
            example: finding.example.clone(),
            steps,
            question,
            reach,
        }
    }
}

impl Judgement {
    /// What to tell a person, where the loop is to be stopped (or would be, without `observe`).
    #[must_use]
    pub fn suggestion(&self) -> Option<Suggestion> {
        let gravest = self.gravest().filter(|finding| finding.verdict == Verdict::Stop)?;
        Some(Suggestion::of(gravest, self.reach))
    }
}

fn of_turn(rule: Rule) -> Vec<Step> {
    match rule {
        Rule::Width => vec![Step::Smaller, Step::RaiseLimit],
        _ => vec![Step::GoOn, Step::Smaller, Step::RaiseLimit],
    }
}

/// The steps for what a tool's failure reports, best first.
#[must_use]
pub fn steps_for(category: &str) -> Vec<Step> {
    let more: &[Step] = match category {
        "font" | "missing_module" | "missing_command" => &[Step::UseInstalled],
        "version_conflict" => &[Step::NameVersions],
        "permission" => &[Step::OtherPlace],
        "resource" => &[Step::FreeRoom],
        "plotting" => &[Step::FigureToFile],
        "file_io" => &[Step::ListFirst],
        "network" => &[Step::CheckService, Step::WaitThenGoOn],
        "timeout" => &[Step::CheckService],
        "syntax" => &[Step::ShowPlace, Step::Smaller],
        "type_or_value" => &[Step::PrintValues],
        "invalid_arguments" => &[Step::GiveExample],
        "not_found_in_file" => &[Step::ReadAgain, Step::Smaller],
        "auth" => &[Step::SignIn],
        "rate_limit" => &[Step::WaitThenGoOn],
        "tool_missing" => &[Step::NameTools],
        "test_failure" => &[Step::OneTest],
        _ => &[Step::SayWhatIsKnown],
    };
    [&[Step::Category], more, &[Step::OtherWay]].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classify::CATEGORIES;

    /// What the category's own sentence says already is not said twice.
    #[test]
    fn smaller_pieces_are_advised_once() {
        for category in ["resource", "timeout"] {
            assert!(!steps_for(category).contains(&Step::Smaller), "{category}");
        }
    }

    /// A category without a step would leave a person without anything to do.
    #[test]
    fn every_category_has_steps_of_its_own() {
        for category in CATEGORIES {
            let steps = steps_for(category);
            assert!(steps.len() >= 3, "{category}");
            assert_eq!((steps.first(), steps.last()), (Some(&Step::Category), Some(&Step::OtherWay)));
            assert!(*category == "other" || steps != steps_for("other"), "{category}");
        }
    }
}
