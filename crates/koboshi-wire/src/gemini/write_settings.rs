//! How the answer is to be made: sampling, its form, thinking.

use serde::Serialize;
use serde_json::value::RawValue;

use super::model::Model;
use crate::form::{Effort, Form, Omission, Output, Thinking};

/// More texts that end an answer are not taken.
const MAX_STOPS: usize = 5;
/// More answers are not given.
const MAX_ANSWERS: u32 = 8;

#[derive(Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Generation<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidate_count: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<Json<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<ThinkingConfig>,
}

/// A schema. Two of them are never compared but with nothing.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Json<'a>(&'a RawValue);

impl PartialEq for Json<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

#[derive(Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ThinkingConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_budget: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_level: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    include_thoughts: bool,
}

impl<'a> Generation<'a> {
    pub(super) fn of(form: &'a Form<'_>, model: Model, left: &mut Vec<Omission>) -> Self {
        let sampling = &form.sampling;
        let stops: Vec<&str> =
            sampling.stop.iter().map(AsRef::as_ref).filter(|stop: &&str| !stop.is_empty()).collect();
        if stops.len() > MAX_STOPS {
            left.push(Omission::dropped("cut_stop_sequences", "stop"));
        }
        let seed = sampling.seed.filter(|seed| i32::try_from(*seed).is_ok());
        if seed != sampling.seed {
            left.push(Omission::dropped("drop_seed", "seed"));
        }
        let mut clamped = |given: Option<f64>, low: f64, high: f64, rule: &'static str, at: &str| {
            let fitted = given.map(|number| number.clamp(low, high));
            if fitted != given {
                left.push(Omission::dropped(rule, at));
            }
            fitted
        };
        let temperature = clamped(sampling.temperature, 0.0, 2.0, "clamp_temperature", "temperature");
        let top_p = clamped(sampling.top_p, 0.0, 1.0, "clamp_top_p", "top_p");
        // Below 2, and 2 not included.
        let presence = clamped(sampling.presence_penalty, -2.0, 1.99, "clamp_penalty", "presence_penalty");
        let frequency = clamped(sampling.frequency_penalty, -2.0, 1.99, "clamp_penalty", "frequency_penalty");
        let (response_mime_type, response_json_schema) = output(&form.output, left);
        Self {
            temperature,
            top_p,
            top_k: sampling.top_k,
            candidate_count: answers(sampling.answers, left),
            max_output_tokens: form.max_output,
            stop_sequences: stops.into_iter().take(MAX_STOPS).collect(),
            seed,
            presence_penalty: presence,
            frequency_penalty: frequency,
            response_mime_type,
            response_json_schema,
            thinking_config: thinking(form.thinking, model, left),
        }
    }

    /// Whether there is anything in it.
    pub(super) fn is_set(&self) -> bool {
        *self != Self::default()
    }
}

fn answers(given: Option<u32>, left: &mut Vec<Omission>) -> Option<u32> {
    if given.is_some_and(|count| count > MAX_ANSWERS) {
        left.push(Omission::needed("needs_many_answers", "answers"));
    }
    given.filter(|count| *count > 1)
}

fn output<'a>(output: &'a Output<'_>, left: &mut Vec<Omission>) -> (Option<&'static str>, Option<Json<'a>>) {
    match output {
        Output::Text => (None, None),
        Output::Json => (Some("application/json"), None),
        Output::Schema { name, schema, .. } => {
            // Schemas are always followed here, so `strict` adds nothing.
            if name.is_some() {
                left.push(Omission::dropped("drop_schema_name", "output.name"));
            }
            (Some("application/json"), Some(Json(schema)))
        }
    }
}

fn thinking(thinking: Thinking, model: Model, left: &mut Vec<Omission>) -> Option<ThinkingConfig> {
    if thinking == Thinking::Unspecified {
        return None;
    }
    if !model.thinks() {
        if thinking != Thinking::Off {
            left.push(Omission::dropped("drop_thinking", "thinking"));
        }
        return None;
    }
    let (min, max) = model.budget();
    let shown = ThinkingConfig { include_thoughts: true, ..ThinkingConfig::default() };
    Some(match thinking {
        Thinking::Unspecified => return None,
        Thinking::Off => {
            if min > 0 {
                left.push(Omission::dropped("least_thinking", "thinking"));
            }
            if model.has_levels() {
                let level = model.level(Effort::Minimal.into());
                ThinkingConfig { thinking_level: Some(level), ..ThinkingConfig::default() }
            } else {
                ThinkingConfig { thinking_budget: i64::try_from(min).ok(), ..ThinkingConfig::default() }
            }
        }
        Thinking::Adaptive if model.has_levels() => shown,
        Thinking::Adaptive => ThinkingConfig { thinking_budget: Some(-1), ..shown },
        Thinking::Effort(effort) if model.has_levels() => {
            ThinkingConfig { thinking_level: Some(model.level(effort.into())), ..shown }
        }
        Thinking::Effort(effort) => ThinkingConfig { thinking_budget: Some(tokens(effort)), ..shown },
        Thinking::Budget(budget) => {
            let fitted = budget.clamp(min, max);
            if fitted != budget {
                left.push(Omission::dropped("clamp_thinking_budget", "thinking"));
            }
            ThinkingConfig { thinking_budget: i64::try_from(fitted).ok(), ..shown }
        }
    })
}

/// The tokens that Google itself takes for an effort in its OpenAI-compatible API.
fn tokens(effort: Effort) -> i64 {
    match effort {
        Effort::Minimal | Effort::Low => 1024,
        Effort::Medium => 8192,
        Effort::High | Effort::Max => 24_576,
    }
}
