//! The form of the answer, sampling and thinking, in the words and limits of this dialect.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::chat::model::Flavor;
use crate::chat::write_settings::{lowest_effort, nearest};
use crate::form::{Effort, Form, Omission, Output, Sampling, Thinking};

#[derive(Serialize)]
pub(super) struct Text<'a> {
    pub(super) format: Format<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Format<'a> {
    JsonObject,
    JsonSchema {
        name: &'a str,
        schema: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        strict: Option<bool>,
    },
}

pub(super) fn format<'a>(output: &'a Output<'_>) -> Option<Format<'a>> {
    match output {
        Output::Text => None,
        Output::Json => Some(Format::JsonObject),
        Output::Schema { name, schema, strict } => {
            // A name must be there.
            let name = name.as_deref().unwrap_or("answer");
            Some(Format::JsonSchema { name, schema, strict: *strict })
        }
    }
}

#[derive(Serialize)]
pub(super) struct Reasoning {
    pub(super) effort: &'static str,
}

/// How hard to think. "No thinking" is only sent to models that are known to think: others refuse the word, and do not think by default.
pub(super) fn effort(form: &Form<'_>, flavor: Flavor, left: &mut Vec<Omission>) -> Option<&'static str> {
    let (word, is_exact) = match form.thinking {
        Thinking::Unspecified | Thinking::Adaptive => return None,
        Thinking::Off if flavor.reasoning => lowest_effort(flavor),
        Thinking::Off => {
            left.push(Omission::dropped("drop_thinking_off", "thinking"));
            return None;
        }
        Thinking::Effort(effort) => nearest(flavor, effort),
        Thinking::Budget(tokens) => {
            left.push(Omission::dropped("budget_as_effort", "thinking"));
            nearest(
                flavor,
                match tokens {
                    0..4096 => Effort::Low,
                    4096..16384 => Effort::Medium,
                    _ => Effort::High,
                },
            )
        }
    };
    if !is_exact {
        left.push(Omission::dropped("nearest_effort", "thinking"));
    }
    Some(word)
}

/// Temperature and nucleus, which the vendor's reasoning models refuse.
pub(super) fn drawn(
    sampling: &Sampling<'_>,
    flavor: Flavor,
    left: &mut Vec<Omission>,
) -> (Option<f64>, Option<f64>) {
    let Sampling { temperature, top_p, .. } = *sampling;
    if flavor.refuses_sampling() {
        if temperature.or(top_p).is_some() {
            left.push(Omission::dropped("drop_sampling_of_reasoning", "sampling"));
        }
        return (None, None);
    }
    let temperature = clamped(temperature, 2.0, "clamp_temperature", left);
    (temperature, clamped(top_p, 1.0, "clamp_top_p", left))
}

fn clamped(number: Option<f64>, max: f64, rule: &'static str, left: &mut Vec<Omission>) -> Option<f64> {
    let number = number.filter(|number| number.is_finite())?;
    let fit = number.clamp(0.0, max);
    if (fit - number).abs() > f64::EPSILON {
        left.push(Omission::dropped(rule, "sampling"));
        return Some(fit);
    }
    Some(number)
}

/// What the dialect has no field for. Without the texts that end it an answer is another one; so is one where several were asked for.
pub(super) fn not_carried(sampling: &Sampling<'_>, left: &mut Vec<Omission>) {
    let dropped = [
        (sampling.top_k.is_some(), "drop_top_k"),
        (sampling.frequency_penalty.is_some(), "drop_frequency_penalty"),
        (sampling.presence_penalty.is_some(), "drop_presence_penalty"),
        (sampling.seed.is_some(), "drop_seed"),
    ];
    let dropped = dropped.into_iter().filter(|(is_there, _)| *is_there);
    left.extend(dropped.map(|(_, rule)| Omission::dropped(rule, "sampling")));
    if !sampling.stop.is_empty() {
        left.push(Omission::needed("needs_stop", "stop"));
    }
    if sampling.answers.is_some_and(|answers| answers > 1) {
        left.push(Omission::needed("needs_answers", "answers"));
    }
}
