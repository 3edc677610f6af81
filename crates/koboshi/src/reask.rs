//! What happens to a tool call whose arguments are refused: the model gets a correction and may answer again, a few times.
//!
//! A [`Lineage`] follows one call from its first broken answer to a good one or to the limit of attempts. Parallel calls have
//! one each, so that one that cannot be corrected ends alone. It decides and returns data ([`Ask`]); the words for model,
//! user and debug log are `koboshi-report`'s.
//!
//! ```
//! use koboshi::args::{ArgsPolicy, Finish, check};
//! use koboshi::reask::{Lineage, ModelCall, ReaskPolicy, Step};
//!
//! let policy = ReaskPolicy::default();
//! let mut lineage = Lineage::new();
//! let called = |text| ModelCall { id: "call_1", tool: "move_to", text };
//! // Validate only, as a host without repair does.
//! let judge = |text: &str| check(text, None, Finish::Done, &ArgsPolicy::strict());
//!
//! let broken = "{x: 100, y: 200}";
//! let Step::Reask(ask) = lineage.next(&called(broken), &judge(broken), &policy) else { panic!() };
//! assert_eq!((ask.attempt, ask.max_attempts), (1, 3));
//!
//! let mended = r#"{"x": 100, "y": 200}"#;
//! assert_eq!(lineage.next(&called(mended), &judge(mended), &policy), Step::Run(mended.to_owned()));
//! ```
//!
//! # Defaults
//!
//! | | |
//! |---|---|
//! | invalid answers that end a call | 3 |
//! | the same text again, or cut by the output limit twice | ends it at once: a third identical try does not help |
//! | excerpt of the broken arguments | 400 characters, redacted |
//! | hint at the tool's schema, if it is known | [`MAX_HINT_CHARS`] characters |
//!
//! # Events
//!
//! The returned [`Step`]: `Run`, `Reask`, `GiveUp`.
//!
//! # Anti-patterns
//!
//! - Appending the correction *and* forwarding the broken call: the correction replaces it.
//! - Echoing the broken text as an argument object: providers refuse it.
//! - Asking again without the schema although it is known ([`Lineage::next_with`]): then the model has to guess.
//! - One counter for a whole conversation: parallel calls are independent.
//! - Asking again with the same output limit for what the limit has cut.

use crate::args::{Defect, MAX_HINT_CHARS, Refusal, ToolSchema, Verdict};
use crate::redact::Redactor;

/// How much of the broken arguments is sent back.
const MAX_TEXT: usize = 400;

/// How many invalid answers are accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaskPolicy {
    /// This many invalid answers end a call.
    pub max_attempts: u32,
}

impl Default for ReaskPolicy {
    fn default() -> Self {
        Self { max_attempts: 3 }
    }
}

/// A tool call as the model made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelCall<'a> {
    /// Its id.
    pub id: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// The text of its arguments.
    pub text: &'a str,
}

/// What to do with a call.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Run the tool with these arguments.
    Run(String),
    /// Tell the model, in place of the broken call.
    Reask(Ask),
    /// Tell model and user that it ends here.
    GiveUp(Ask),
}

/// The correction that the model gets, as data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// Id of the call.
    pub id: String,
    /// Name of the tool.
    pub tool: String,
    /// Number of this invalid answer, from 1.
    pub attempt: u32,
    /// The number of invalid answers that ends the call.
    pub max_attempts: u32,
    /// What is wrong and where; its excerpt is redacted.
    pub refusal: Refusal,
    /// The broken arguments, redacted and shortened.
    pub text: String,
    /// What the tool takes, in the form of [`ToolSchema::hint`]; empty if it is not known.
    pub hint: String,
    /// The output limit cut it: smaller pieces or a higher limit, not the same again.
    pub cut: bool,
}

/// One call and its corrections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lineage {
    invalid: u32,
    /// The text before, and whether the limit had cut it.
    last: Option<(String, bool)>,
}

impl Lineage {
    /// A call that has not been answered yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { invalid: 0, last: None }
    }

    /// What to do with this answer. A good one resets the count, and so does the end.
    pub fn next(&mut self, called: &ModelCall<'_>, verdict: &Verdict, policy: &ReaskPolicy) -> Step {
        self.next_with(None, called, verdict, policy)
    }

    /// The same where the tool's schema is known: whatever is wrong, the model can be shown what is asked for.
    pub fn next_with(
        &mut self,
        schema: Option<&ToolSchema>,
        called: &ModelCall<'_>,
        verdict: &Verdict,
        policy: &ReaskPolicy,
    ) -> Step {
        let refusal = match verdict {
            Verdict::Refused(refusal) => refusal,
            good => {
                *self = Self::new();
                return Step::Run(good.json(called.text).unwrap_or(called.text).to_owned());
            }
        };
        self.invalid = self.invalid.saturating_add(1);
        let cut = refusal.defect == Defect::CutByLimit;
        let same_again =
            self.last.as_ref().is_some_and(|(text, was_cut)| text == called.text || (cut && *was_cut));
        let redactor = Redactor::new();
        let ask = Ask {
            id: called.id.to_owned(),
            tool: called.tool.to_owned(),
            attempt: self.invalid,
            max_attempts: policy.max_attempts,
            refusal: Refusal { excerpt: refusal.redacted_excerpt(called.text, &redactor), ..refusal.clone() },
            text: redactor.excerpt(called.text, MAX_TEXT),
            hint: schema.map(|schema| redactor.excerpt(&schema.hint(), MAX_HINT_CHARS)).unwrap_or_default(),
            cut,
        };
        if self.invalid >= policy.max_attempts || same_again {
            *self = Self::new();
            return Step::GiveUp(ask);
        }
        self.last = Some((called.text.to_owned(), cut));
        Step::Reask(ask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{ArgsPolicy, Finish, check};

    fn called(text: &str) -> ModelCall<'_> {
        ModelCall { id: "call_1", tool: "write", text }
    }

    fn next(lineage: &mut Lineage, text: &str, finish: Finish) -> Step {
        let verdict = check(text, None, finish, &ArgsPolicy::strict());
        lineage.next(&called(text), &verdict, &ReaskPolicy::default())
    }

    #[test]
    fn the_third_invalid_answer_ends_it_and_the_count_starts_again() {
        let mut lineage = Lineage::new();
        for (text, attempt) in [("{x: 1}", 1), ("{x: 2}", 2)] {
            assert!(
                matches!(next(&mut lineage, text, Finish::Done), Step::Reask(ask) if ask.attempt == attempt)
            );
        }
        assert!(matches!(next(&mut lineage, "{x: 3}", Finish::Done), Step::GiveUp(ask) if ask.attempt == 3));
        assert!(matches!(next(&mut lineage, "{x: 4}", Finish::Done), Step::Reask(ask) if ask.attempt == 1));
    }

    #[test]
    fn a_good_answer_restarts_the_count() {
        let mut lineage = Lineage::new();
        next(&mut lineage, "{x: 1}", Finish::Done);
        assert_eq!(next(&mut lineage, "{}", Finish::Done), Step::Run("{}".to_owned()));
        assert!(matches!(next(&mut lineage, "{x: 1}", Finish::Done), Step::Reask(ask) if ask.attempt == 1));
    }

    #[test]
    fn never_three_identical_tries() {
        let mut lineage = Lineage::new();
        next(&mut lineage, "{x: 1}", Finish::Done);
        assert!(matches!(next(&mut lineage, "{x: 1}", Finish::Done), Step::GiveUp(ask) if ask.attempt == 2));
        let mut lineage = Lineage::new();
        assert!(matches!(next(&mut lineage, r#"{"a": "b"#, Finish::Cut), Step::Reask(ask) if ask.cut));
        assert!(matches!(next(&mut lineage, r#"{"a": "bc"#, Finish::Cut), Step::GiveUp(ask) if ask.cut));
    }

    #[test]
    fn what_goes_back_is_bounded_and_free_of_secrets() {
        let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
        let text = format!("{{key: \"{key}\", text: \"{}\"}}", "x ".repeat(10_000));
        let Step::Reask(ask) = next(&mut Lineage::new(), &text, Finish::Done) else { panic!("a re-ask") };
        assert!(ask.text.chars().count() <= MAX_TEXT);
        assert!(!ask.text.contains(key) && !ask.refusal.excerpt.contains(key), "{ask:?}");
    }

    #[test]
    fn what_the_tool_takes_goes_back_with_any_defect() {
        let text = r#"{"properties": {"path": {"type": "string"}, "mode": {"enum": ["a", "w"]}}, "required": ["path"]}"#;
        let schema = ToolSchema::parse(text).unwrap();
        for text in ["{path: 'a' 'b'}", r#"{"paht": "a"}"#, "[]"] {
            let verdict = check(text, Some(&schema), Finish::Done, &ArgsPolicy::default());
            let policy = ReaskPolicy::default();
            let step = Lineage::new().next_with(Some(&schema), &called(text), &verdict, &policy);
            let Step::Reask(ask) = step else { panic!("{step:?}") };
            assert_eq!(ask.hint, r#"{"path": string, "mode"?: "a" | "w"}"#, "{text}");
        }
    }

    #[test]
    fn an_excerpt_shows_no_half_of_a_secret() {
        let half = "nopqrstuvwxyz0123456789AB";
        let text =
            format!(r#"{{"headers": {{"Authorization": "Bearer ghp_abcdefghijklm{half}"}} ! "x": 1}}"#);
        let verdict = check(&text, None, Finish::Done, &ArgsPolicy::default());
        assert!(verdict.refusal().unwrap().excerpt.contains(half), "the case is one");
        let step = Lineage::new().next(&called(&text), &verdict, &ReaskPolicy::default());
        let Step::Reask(ask) = step else { panic!("a re-ask") };
        assert!(!ask.refusal.excerpt.contains("xyz0123"), "{}", ask.refusal.excerpt);
        assert!(ask.refusal.excerpt.contains(r#"! "x": 1"#), "{}", ask.refusal.excerpt);
    }

    #[test]
    fn parallel_calls_are_independent() {
        let (mut one, mut two) = (Lineage::new(), Lineage::new());
        for text in ["{x: 1}", "{x: 2}", "{x: 3}"] {
            next(&mut one, text, Finish::Done);
        }
        assert!(matches!(next(&mut two, "{x: 1}", Finish::Done), Step::Reask(ask) if ask.attempt == 1));
    }
}
