//! One value of the file, read as the shape of its key asks for.
//!
//! Each way to get a value wrong has its own answer, since "invalid type" helps nobody at night: a length without a unit
//! is told which units there are, a number of seconds with a unit is told to leave it out, `yes` is told `true`.

mod text;

use std::path::Path;

use koboshi::wait::parse_duration;

use crate::at::At;
use crate::check::{Place, Source};
use crate::near::nearest;
use crate::schema::{Range, Shape, Value, either, parse_length, print_length};
use crate::secret::Secret;
use crate::tree::{Node, Raw, Spot};
use text::Hide;

/// From here on a number with a point no longer holds every whole number.
const MOST_WHOLE: f64 = 9_007_199_254_740_992.0;

/// What is needed to read values.
pub(crate) struct Reader<'a> {
    pub(crate) source: &'a Source<'a>,
    pub(crate) lookup: &'a dyn Fn(&str) -> Option<String>,
    /// The folder that paths are relative to.
    pub(crate) folder: &'a Path,
}

/// Why a value cannot be used.
#[derive(Debug)]
pub(crate) struct Wrong {
    pub(crate) spot: Spot,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// Where a value begins that must not be shown.
    pub(crate) hide: Option<Place>,
}

type Read<T> = Result<T, Wrong>;

impl Reader<'_> {
    /// Reads the value of a key.
    pub(crate) fn value(&self, at: &At, node: &Node) -> Read<Value> {
        if let (Raw::Null, false) = (&node.value, may_be_empty(&at.key.shape)) {
            let hint = format!("write {}, or take the key out", with_default(at));
            return Err(wrong(node, format!("`{}` has no value", at.shown), Some(hint)));
        }
        match &at.key.shape {
            Shape::Section { .. } | Shape::Entry(_) => Ok(Value::Off),
            Shape::Length { off: true, .. } | Shape::Count { off: true, .. } if is_off(node) => {
                Ok(Value::Off)
            }
            Shape::Length { range, .. } => self.length(at, node, *range),
            Shape::Seconds { range, .. } => {
                let range = Range::of(range.least.as_secs(), range.most.as_secs());
                self.seconds(at, node)
                    .and_then(|count| in_range(at, node, &count, range.has(count)))
                    .map(Value::Count)
            }
            Shape::Count { range, .. } => {
                let count = self.count(at, node)?;
                if range.is_endless() && count > range.most {
                    let message = format!("`{}` must be at most {}, not {count}", at.shown, range.most);
                    return Err(wrong(
                        node,
                        message,
                        Some(format!("the default is {}", at.key.default_text())),
                    ));
                }
                in_range(at, node, &count, range.has(count)).map(Value::Count)
            }
            Shape::Number { range, .. } => {
                let number = self.number(at, node)?;
                in_range(at, node, &number, range.has(number)).map(Value::Number).map_err(|wrong| {
                    let percent = range.most <= 1.0 && number > 1.0 && number <= 100.0;
                    let hint = format!("write `{}` for {number} percent", number / 100.0);
                    Wrong { hint: if percent { Some(hint) } else { wrong.hint }, ..wrong }
                })
            }
            Shape::Choice { numbers, .. } => {
                let count = self.count(at, node)?;
                in_range(at, node, &count, numbers.contains(&count)).map(Value::Count)
            }
            Shape::Flag { words, .. } => self.flag(at, node, *words).map(Value::Flag),
            Shape::Word { words, .. } => self.word(at, node, words).map(Value::Word),
            Shape::Text { form, .. } => self.in_form(at, node, *form, Hide::Not).map(Value::Text),
            Shape::Texts { form, range, .. } => self.list(at, node, (*form, *range), false).map(Value::Texts),
            Shape::Secret { form, .. } => {
                self.in_form(at, node, *form, Hide::of(node)).map(|text| Value::Secret(Secret::new(text)))
            }
            Shape::Secrets { form, range, .. } => self
                .list(at, node, (*form, *range), true)
                .map(|texts| Value::Secrets(texts.into_iter().map(Secret::new).collect())),
            Shape::Path { .. } => self.path(at, node).map(Value::Path),
            Shape::Paths { .. } => self.paths(at, node).map(Value::Paths),
        }
    }

    fn length(&self, at: &At, node: &Node, range: Range<std::time::Duration>) -> Read<Value> {
        let text = match &node.value {
            Raw::Text(text) if parse_length(text).is_none() && is_bare_number(text) => {
                return Err(without_unit(at, node, text));
            }
            Raw::Text(text) => text,
            Raw::Whole(count) => return Err(without_unit(at, node, &count.to_string())),
            Raw::Number(number) if *number >= 0.0 => {
                return Err(without_unit(at, node, &number.to_string()));
            }
            _ => return Err(self.wrong_type(at, node, "a length of time such as `30s`")),
        };
        let Some(length) = parse_length(text) else {
            let hint = match parse_duration(text) {
                Some(meant) => format!("write `{}`", print_length(meant)),
                None => "write a number with ms, s, m, h or d, such as `500ms`, `30s` or `1h30m`".to_owned(),
            };
            let message = format!("`{}` is no length of time: `{}`", at.shown, self.source.quote(text));
            return Err(wrong(node, message, Some(hint)));
        };
        in_range(at, node, &print_length(length), range.has(length))?;
        Ok(Value::Length(length))
    }

    fn seconds(&self, at: &At, node: &Node) -> Read<u64> {
        if let Raw::Text(text) = &node.value
            && let Some(length) = parse_length(text)
        {
            let hint = Some(format!("write `{}`", length.as_secs().max(1)));
            let message = format!("`{}` counts seconds and takes no unit: `{text}`", at.shown);
            return Err(wrong(node, message, hint));
        }
        self.count(at, node)
    }

    fn count(&self, at: &At, node: &Node) -> Read<u64> {
        match node.value {
            Raw::Whole(count) => Ok(count),
            // Within what a whole number can hold, but written as another kind of number.
            Raw::Number(number) if number.fract() == 0.0 && (0.0..MOST_WHOLE).contains(&number) => {
                let message = format!("`{}` must be a whole number, written with digits only", at.shown);
                Err(wrong(node, message, Some(format!("write `{number}`"))))
            }
            // Beyond what a whole number can hold, or negative: out of every range.
            Raw::Number(number) if number.fract() == 0.0 => Err(out_of_range(at, node, &number)),
            _ => Err(self.wrong_type(at, node, "a whole number")),
        }
    }

    fn number(&self, at: &At, node: &Node) -> Read<f64> {
        match &node.value {
            Raw::Whole(count) => Ok(*count as f64),
            Raw::Number(number) => Ok(*number),
            Raw::Text(text)
                if text.strip_suffix('%').is_some_and(|rest| rest.trim().parse::<f64>().is_ok()) =>
            {
                let share = text.trim_end_matches('%').trim().parse::<f64>().unwrap_or_default() / 100.0;
                let message = format!(
                    "`{}` must be a number, not a percentage: `{}`",
                    at.shown,
                    self.source.quote(text)
                );
                Err(wrong(node, message, Some(format!("write `{share}`"))))
            }
            _ => Err(self.wrong_type(at, node, "a number")),
        }
    }

    fn flag(&self, at: &At, node: &Node, words: bool) -> Read<bool> {
        let hint = match &node.value {
            Raw::Flag(flag) => return Ok(*flag),
            Raw::Text(text) if words && (text == "on" || text == "off") => return Ok(text == "on"),
            Raw::Text(text) => match text.to_ascii_lowercase().as_str() {
                "yes" | "on" | "true" | "y" => Some("write `true`"),
                "no" | "off" | "false" | "n" => Some("write `false`"),
                _ => None,
            },
            Raw::Whole(1) => Some("write `true`"),
            Raw::Whole(0) => Some("write `false`"),
            _ => None,
        };
        let wrong = self.wrong_type(at, node, "`true` or `false`");
        Err(Wrong { hint: hint.map(str::to_owned), ..wrong })
    }

    fn word(&self, at: &At, node: &Node, words: &'static [&'static str]) -> Read<&'static str> {
        let written = match &node.value {
            Raw::Text(text) => text.clone(),
            // `none` is a word here, but nothing in other dialects; numbers are simply wrong.
            Raw::Flag(flag) => flag.to_string(),
            _ => return Err(self.wrong_type(at, node, &either(words))),
        };
        if let Some(word) = words.iter().find(|word| **word == written) {
            return Ok(word);
        }
        let message =
            format!("`{}` must be {}, not `{}`", at.shown, either(words), self.source.quote(&written));
        let near = nearest(&written.to_lowercase(), words.iter().copied());
        Err(wrong(node, message, near.map(|near| format!("did you mean `{near}`?"))))
    }

    fn wrong_type(&self, at: &At, node: &Node, wanted: &str) -> Wrong {
        let message = format!("`{}` must be {wanted}, not {}", at.shown, self.describe(node));
        let hint = match &node.value {
            Raw::Text(text) if text.contains("${") => Some("variables are read in text only".to_owned()),
            Raw::Text(text) if text.parse::<f64>().is_ok() => Some("take the quotes away".to_owned()),
            _ => Some(format!("write {}", with_default(at))),
        };
        wrong(node, message, hint)
    }

    /// A value in a few words.
    pub(crate) fn describe(&self, node: &Node) -> String {
        match &node.value {
            Raw::Null => "nothing".to_owned(),
            Raw::Flag(flag) => format!("`{flag}`"),
            Raw::Whole(count) => format!("the number `{count}`"),
            Raw::Number(number) => format!("the number `{number}`"),
            Raw::Text(text) => format!("the text `{}`", self.source.quote(text)),
            Raw::List(_) => "a list".to_owned(),
            Raw::Map(_) => "a section with keys of its own".to_owned(),
        }
    }
}

fn wrong(node: &Node, message: String, hint: Option<String>) -> Wrong {
    Wrong { spot: node.spot, message, hint, hide: None }
}

/// A list may be written as nothing where it may have no parts.
fn may_be_empty(shape: &Shape) -> bool {
    match shape {
        Shape::Paths { .. } => true,
        Shape::Texts { range, .. } | Shape::Secrets { range, .. } => range.least == 0,
        _ => false,
    }
}

fn is_off(node: &Node) -> bool {
    matches!(&node.value, Raw::Text(text) if text == "off")
}

fn is_scalar(node: &Node) -> bool {
    !matches!(node.value, Raw::List(_) | Raw::Map(_) | Raw::Null)
}

fn is_bare_number(text: &str) -> bool {
    text.parse::<f64>().is_ok_and(|number| number.is_finite() && number >= 0.0)
}

fn without_unit(at: &At, node: &Node, written: &str) -> Wrong {
    let hint = match written.parse::<f64>() {
        Ok(number) if number >= 100.0 => {
            format!("write `{written}ms` for milliseconds or `{written}s` for seconds")
        }
        _ => format!("write `{written}s` for seconds; ms, s, m, h and d are known"),
    };
    wrong(node, format!("`{}` needs a unit", at.shown), Some(hint))
}

fn in_range<T: std::fmt::Display + Clone>(at: &At, node: &Node, value: &T, holds: bool) -> Read<T> {
    if holds { Ok(value.clone()) } else { Err(out_of_range(at, node, value)) }
}

fn out_of_range(at: &At, node: &Node, value: &dyn std::fmt::Display) -> Wrong {
    let message = format!("`{}` must be {}, not {value}", at.shown, at.key.range_text());
    let hint = format!("the default is {}", at.key.default_text());
    wrong(node, message, Some(hint).filter(|_| !at.key.is_required()))
}

fn with_default(at: &At) -> String {
    match at.key.default_text() {
        default if default.starts_with('`') => format!("{} (the default is {default})", at.key.range_text()),
        _ => at.key.range_text(),
    }
}
