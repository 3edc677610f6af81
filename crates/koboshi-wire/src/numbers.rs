//! Limits and levels of a request that cannot be understood: a text, a fraction of a token, a negative number, more than a number can hold.
//!
//! In the client's own dialect they pass as they are: servers that copy an API give some of them a meaning of their own (`max_tokens: -1`
//! is no limit to LM Studio), and the others are theirs to refuse. A translation would have to guess: a limit that was not understood
//! became the largest there is. So a target of another dialect cannot get such a request.

use serde_json::value::RawValue;

use crate::form::Omission;
use crate::intake::{FieldForm, IntakeError};

/// The rule by which such a request is not translated.
pub(crate) const RULE: &str = "needs_readable_number";

const KNOWN: [(&str, FieldForm); 10] = [
    ("max_tokens", FieldForm::Count),
    ("max_completion_tokens", FieldForm::Count),
    ("max_output_tokens", FieldForm::Count),
    ("n", FieldForm::Count),
    ("temperature", FieldForm::Level),
    ("top_p", FieldForm::Level),
    ("generationConfig.maxOutputTokens", FieldForm::Count),
    ("generationConfig.candidateCount", FieldForm::Count),
    ("generationConfig.temperature", FieldForm::Level),
    ("generationConfig.topP", FieldForm::Level),
];

/// Notes a number of this name that cannot be read.
pub(crate) fn check(name: &str, written: &str, left: &mut Vec<Omission>) {
    if error(name, written).is_some() {
        left.push(Omission::needed(RULE, name));
    }
}

/// The same of a value; none and `null` count as absent.
pub(crate) fn check_raw(name: &str, raw: Option<&RawValue>, left: &mut Vec<Omission>) {
    if let Some(raw) = raw.filter(|raw| raw.get() != "null") {
        check(name, raw.get(), left);
    }
}

/// What is wrong with a number of this name.
pub(crate) fn error(name: &str, written: &str) -> Option<IntakeError> {
    let (param, expected) = KNOWN.into_iter().find(|(known, _)| *known == name)?;
    let is_read = match expected {
        FieldForm::Count => is_count(written),
        _ => written.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0),
    };
    (!is_read).then_some(IntakeError::WrongType { param, expected })
}

/// What is wrong with the first that was noted.
pub(crate) fn noted(left: &[Omission]) -> Option<IntakeError> {
    let name = left.iter().find(|left| left.rule == RULE)?.at.as_str();
    // What was noted could not be read, and neither can this.
    error(name, "")
}

/// A whole number from 1. `5.0` and `1e3` are some; beyond 2^53 a fraction could not be seen any more.
fn is_count(written: &str) -> bool {
    let is_whole = |number: f64| (1.0..9e15).contains(&number) && number.fract() == 0.0;
    written.parse::<u64>().map_or_else(|_| written.parse().is_ok_and(is_whole), |number| number > 0)
}
