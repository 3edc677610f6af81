//! Sampling and effort, in the words and limits of the chat dialect.
//!
//! OpenAI's reasoning models refuse sampling parameters, so these are dropped by name. Budgets of thinking become the nearest effort. Which
//! words of effort a model knows is one of its facts: `none` and `xhigh` came late.

use std::borrow::Cow;

use koboshi::models;
use serde::Serialize;

use super::body::Notes;
use super::model::Flavor;
use crate::form::{Effort, Form, Omission, Thinking};

/// Budgets below these are little and usual thinking; above, it is much.
const LOW_BUDGET: u64 = 4_096;
const MEDIUM_BUDGET: u64 = 16_384;
/// The most stop sequences that OpenAI takes.
const MAX_STOPS: usize = 4;

/// The fields of a body for sampling and effort.
#[derive(Serialize, Debug, Default)]
pub(super) struct SamplingJson<'f> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    random_seed: Option<u64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop: &'f [Cow<'f, str>],
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
}

impl<'f> SamplingJson<'f> {
    pub(super) fn of(form: &'f Form<'_>, flavor: Flavor, notes: &mut Notes) -> Self {
        let sampling = &form.sampling;
        if sampling.top_k.is_some() {
            notes.add(Omission::dropped("drop_top_k", "top_k"));
        }
        let mut drawn = Self {
            temperature: within(sampling.temperature, 0.0, 2.0, "clamp_temperature", notes),
            top_p: within(sampling.top_p, 0.0, 1.0, "clamp_top_p", notes),
            frequency_penalty: within(sampling.frequency_penalty, -2.0, 2.0, "clamp_penalty", notes),
            presence_penalty: within(sampling.presence_penalty, -2.0, 2.0, "clamp_penalty", notes),
            seed: sampling.seed.filter(|_| !flavor.mistral),
            random_seed: random_seed(sampling.seed, flavor, notes),
            stop: &sampling.stop,
            n: sampling.answers,
            reasoning_effort: effort(form, flavor, notes),
        };
        if flavor.openai && drawn.stop.len() > MAX_STOPS {
            notes.add(Omission::needed("needs_stops", "stop"));
        }
        if flavor.refuses_sampling() {
            drawn.without_what_thinkers_refuse(notes);
        }
        drawn
    }

    fn without_what_thinkers_refuse(&mut self, notes: &mut Notes) {
        let numbers =
            [&mut self.temperature, &mut self.top_p, &mut self.frequency_penalty, &mut self.presence_penalty];
        for number in numbers {
            if number.take().is_some() {
                notes.add(Omission::dropped("drop_sampling_of_reasoning", "sampling"));
            }
        }
        if !self.stop.is_empty() {
            // The client expects the text to end there.
            notes.add(Omission::needed("needs_stops", "stop"));
        }
    }
}

/// A seed in Mistral's word for it; there it is not below zero.
fn random_seed(seed: Option<i64>, flavor: Flavor, notes: &mut Notes) -> Option<u64> {
    let seed = seed.filter(|_| flavor.mistral)?;
    let fitting = u64::try_from(seed).ok();
    if fitting.is_none() {
        notes.add(Omission::dropped("drop_seed", "sampling"));
    }
    fitting
}

fn within(number: Option<f64>, min: f64, max: f64, rule: &'static str, notes: &mut Notes) -> Option<f64> {
    let number = number.filter(|number| number.is_finite())?;
    let fitted = number.clamp(min, max);
    if !(min..=max).contains(&number) {
        notes.add(Omission::dropped(rule, "sampling"));
    }
    Some(fitted)
}

fn effort(form: &Form<'_>, flavor: Flavor, notes: &mut Notes) -> Option<&'static str> {
    if flavor.thinks_or_calls() && !form.tools.is_empty() {
        // Without the field these models think, and then refuse tools.
        if !matches!(form.thinking, Thinking::Off | Thinking::Budget(0)) {
            notes.add(Omission::dropped("drop_effort_beside_tools", "thinking"));
        }
        return Some("none");
    }
    let wanted = match form.thinking {
        Thinking::Unspecified | Thinking::Adaptive => return None,
        // Nothing is lost where the model does not think.
        Thinking::Off | Thinking::Budget(0) => {
            return flavor.reasoning.then(|| noted(lowest_effort(flavor), notes));
        }
        Thinking::Effort(effort) => effort,
        Thinking::Budget(tokens) if tokens < LOW_BUDGET => Effort::Low,
        Thinking::Budget(tokens) if tokens < MEDIUM_BUDGET => Effort::Medium,
        Thinking::Budget(_) => Effort::High,
    };
    if !flavor.reasoning {
        notes.add(Omission::dropped("drop_thinking", "thinking"));
        return None;
    }
    Some(noted(nearest(flavor, wanted), notes))
}

/// A word, and the note where it is only the nearest one.
fn noted((word, is_exact): (&'static str, bool), notes: &mut Notes) -> &'static str {
    if !is_exact {
        notes.add(Omission::dropped("nearest_effort", "thinking"));
    }
    word
}

/// The word for an effort, and whether it is an exact one.
pub(crate) fn nearest(flavor: Flavor, wanted: Effort) -> (&'static str, bool) {
    let wanted = wanted.into();
    let known = flavor.efforts().nearest(wanted);
    (known.name(), known == wanted)
}

/// As little thinking as the model knows, and whether that is none.
pub(crate) fn lowest_effort(flavor: Flavor) -> (&'static str, bool) {
    let known = flavor.efforts().lowest();
    (known.name(), known == models::Effort::None)
}
