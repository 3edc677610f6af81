//! One value of the file, read as the shape of its key asks for.
//!
//! Each way to get a value wrong has its own answer, since "invalid type" helps nobody at night: a length without a unit
//! is told which units there are, a number of seconds with a unit is told to leave it out, `yes` is told `true`.

use std::path::{Path, PathBuf};

use koboshi::wait::parse_duration;

use crate::check::{Place, Source};
use crate::near::nearest;
use crate::schema::{Form, Key, Range, Shape, Value, either, parse_length, print_length};
use crate::secret::{ExpandError, Secret, expand, is_one_variable};
use crate::tree::{Node, Raw, Spot};

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
    pub(crate) fn value(&self, key: &Key, node: &Node) -> Read<Value> {
        if let (Raw::Null, false) = (&node.value, matches!(key.shape, Shape::Paths { .. })) {
            let hint = format!("write {}, or take the key out", with_default(key));
            return Err(wrong(node, format!("`{}` has no value", key.path), Some(hint)));
        }
        match &key.shape {
            Shape::Section { .. } => Ok(Value::Off),
            Shape::Length { off: true, .. } | Shape::Count { off: true, .. } if is_off(node) => {
                Ok(Value::Off)
            }
            Shape::Length { range, .. } => self.length(key, node, *range),
            Shape::Seconds { range, .. } => {
                let range = Range::of(range.least.as_secs(), range.most.as_secs());
                self.seconds(key, node)
                    .and_then(|count| in_range(key, node, &count, range.has(count)))
                    .map(Value::Count)
            }
            Shape::Count { range, .. } => {
                let count = self.count(key, node)?;
                if range.is_endless() && count > range.most {
                    let message = format!("`{}` must be at most {}, not {count}", key.path, range.most);
                    return Err(wrong(node, message, Some(format!("the default is {}", key.default_text()))));
                }
                in_range(key, node, &count, range.has(count)).map(Value::Count)
            }
            Shape::Number { range, .. } => {
                let number = self.number(key, node)?;
                in_range(key, node, &number, range.has(number)).map(Value::Number).map_err(|wrong| {
                    let percent = range.most <= 1.0 && number > 1.0 && number <= 100.0;
                    let hint = format!("write `{}` for {number} percent", number / 100.0);
                    Wrong { hint: if percent { Some(hint) } else { wrong.hint }, ..wrong }
                })
            }
            Shape::Flag { .. } => self.flag(key, node).map(Value::Flag),
            Shape::Word { words, .. } => self.word(key, node, words).map(Value::Word),
            Shape::Text { form, .. } => {
                let text = self.text(key, node, false)?;
                self.in_form(key, node, *form, text, false).map(Value::Text)
            }
            Shape::Secret { form, .. } => {
                let text = self.text(key, node, true)?;
                self.in_form(key, node, *form, text, true).map(|text| Value::Secret(Secret::new(text)))
            }
            Shape::Path { .. } => self.path(key, node).map(Value::Path),
            Shape::Paths { .. } => self.paths(key, node).map(Value::Paths),
        }
    }

    fn length(&self, key: &Key, node: &Node, range: Range<std::time::Duration>) -> Read<Value> {
        let text = match &node.value {
            Raw::Text(text) if parse_length(text).is_none() && is_bare_number(text) => {
                return Err(without_unit(key, node, text));
            }
            Raw::Text(text) => text,
            Raw::Whole(count) => return Err(without_unit(key, node, &count.to_string())),
            Raw::Number(number) if *number >= 0.0 => {
                return Err(without_unit(key, node, &number.to_string()));
            }
            _ => return Err(self.wrong_type(key, node, "a length of time such as `30s`")),
        };
        let Some(length) = parse_length(text) else {
            let hint = match parse_duration(text) {
                Some(meant) => format!("write `{}`", print_length(meant)),
                None => "write a number with ms, s, m, h or d, such as `500ms`, `30s` or `1h30m`".to_owned(),
            };
            let message = format!("`{}` is no length of time: `{}`", key.path, self.source.quote(text));
            return Err(wrong(node, message, Some(hint)));
        };
        in_range(key, node, &print_length(length), range.has(length))?;
        Ok(Value::Length(length))
    }

    fn seconds(&self, key: &Key, node: &Node) -> Read<u64> {
        if let Raw::Text(text) = &node.value
            && let Some(length) = parse_length(text)
        {
            let hint = Some(format!("write `{}`", length.as_secs().max(1)));
            let message = format!("`{}` counts seconds and takes no unit: `{text}`", key.path);
            return Err(wrong(node, message, hint));
        }
        self.count(key, node)
    }

    fn count(&self, key: &Key, node: &Node) -> Read<u64> {
        match node.value {
            Raw::Whole(count) => Ok(count),
            // Within what a whole number can hold, but written as another kind of number.
            Raw::Number(number) if number.fract() == 0.0 && (0.0..MOST_WHOLE).contains(&number) => {
                let message = format!("`{}` must be a whole number, written with digits only", key.path);
                Err(wrong(node, message, Some(format!("write `{number}`"))))
            }
            // Beyond what a whole number can hold, or negative: out of every range.
            Raw::Number(number) if number.fract() == 0.0 => Err(out_of_range(key, node, &number)),
            _ => Err(self.wrong_type(key, node, "a whole number")),
        }
    }

    fn number(&self, key: &Key, node: &Node) -> Read<f64> {
        match &node.value {
            Raw::Whole(count) => Ok(*count as f64),
            Raw::Number(number) => Ok(*number),
            Raw::Text(text)
                if text.strip_suffix('%').is_some_and(|rest| rest.trim().parse::<f64>().is_ok()) =>
            {
                let share = text.trim_end_matches('%').trim().parse::<f64>().unwrap_or_default() / 100.0;
                let message = format!(
                    "`{}` must be a number, not a percentage: `{}`",
                    key.path,
                    self.source.quote(text)
                );
                Err(wrong(node, message, Some(format!("write `{share}`"))))
            }
            _ => Err(self.wrong_type(key, node, "a number")),
        }
    }

    fn flag(&self, key: &Key, node: &Node) -> Read<bool> {
        let hint = match &node.value {
            Raw::Flag(flag) => return Ok(*flag),
            Raw::Text(text) => match text.to_ascii_lowercase().as_str() {
                "yes" | "on" | "true" | "y" => Some("write `true`"),
                "no" | "off" | "false" | "n" => Some("write `false`"),
                _ => None,
            },
            Raw::Whole(1) => Some("write `true`"),
            Raw::Whole(0) => Some("write `false`"),
            _ => None,
        };
        let wrong = self.wrong_type(key, node, "`true` or `false`");
        Err(Wrong { hint: hint.map(str::to_owned), ..wrong })
    }

    fn word(&self, key: &Key, node: &Node, words: &'static [&'static str]) -> Read<&'static str> {
        let written = match &node.value {
            Raw::Text(text) => text.clone(),
            // `none` is a word here, but nothing in other dialects; numbers are simply wrong.
            Raw::Flag(flag) => flag.to_string(),
            _ => return Err(self.wrong_type(key, node, &either(words))),
        };
        if let Some(word) = words.iter().find(|word| **word == written) {
            return Ok(word);
        }
        let message =
            format!("`{}` must be {}, not `{}`", key.path, either(words), self.source.quote(&written));
        let near = nearest(&written.to_lowercase(), words.iter().copied());
        Err(wrong(node, message, near.map(|near| format!("did you mean `{near}`?"))))
    }

    fn text(&self, key: &Key, node: &Node, secret: bool) -> Read<String> {
        let Raw::Text(written) = &node.value else {
            let mut wrong = self.wrong_type(key, node, "text");
            wrong.hint = Some("put it in quotes".to_owned()).filter(|_| is_scalar(node));
            if secret {
                wrong.message = format!("`{}` must be text", key.path);
                wrong.hide = Some(node.spot.place());
            }
            return Err(wrong);
        };
        let hide = (secret && !is_one_variable(written)).then_some(node.spot.place());
        expand(written, self.lookup).map_err(|error| self.variable(node, &error, hide))
    }

    fn in_form(&self, key: &Key, node: &Node, form: Form, text: String, secret: bool) -> Read<String> {
        if (form.holds)(&text) {
            return Ok(text);
        }
        let filled_in = matches!(&node.value, Raw::Text(written) if *written != text);
        let message = match (secret, filled_in) {
            (true, true) => format!("`{}` must be {}; what the variable holds is not", key.path, form.said),
            (true, false) => format!("`{}` must be {}", key.path, form.said),
            (false, _) => format!("`{}` must be {}, not `{}`", key.path, form.said, self.source.quote(&text)),
        };
        let shown = matches!(&node.value, Raw::Text(written) if is_one_variable(written));
        let hint = (form.hint)(&text).map(str::to_owned);
        Err(Wrong { hide: (secret && !shown).then_some(node.spot.place()), ..wrong(node, message, hint) })
    }

    fn path(&self, key: &Key, node: &Node) -> Read<PathBuf> {
        let text = self.text(key, node, false)?;
        if text.trim().is_empty() {
            return Err(wrong(node, format!("`{}` is an empty path", key.path), None));
        }
        Ok(self.folder.join(text))
    }

    fn paths(&self, key: &Key, node: &Node) -> Read<Vec<PathBuf>> {
        match &node.value {
            Raw::Null => Ok(Vec::new()),
            Raw::List(nodes) => nodes.iter().map(|node| self.path(key, node)).collect(),
            Raw::Text(text) => {
                let hint = Some(format!("write `[{}]`", self.source.quote(text)));
                Err(Wrong { hint, ..self.wrong_type(key, node, "a list of paths") })
            }
            _ => Err(self.wrong_type(key, node, "a list of paths")),
        }
    }

    fn wrong_type(&self, key: &Key, node: &Node, wanted: &str) -> Wrong {
        let message = format!("`{}` must be {wanted}, not {}", key.path, self.describe(node));
        let hint = match &node.value {
            Raw::Text(text) if text.contains("${") => Some("variables are read in text only".to_owned()),
            Raw::Text(text) if text.parse::<f64>().is_ok() => Some("take the quotes away".to_owned()),
            _ => Some(format!("write {}", with_default(key))),
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

    /// A variable that cannot be filled in, at its own place within the value.
    fn variable(&self, node: &Node, error: &ExpandError, hide: Option<Place>) -> Wrong {
        let (at, mark, message, hint) = match error {
            ExpandError::Unset { name, at } => (
                at,
                name.len() + 3,
                format!("the environment variable `{name}` is not set"),
                format!("set it, or write `${{{name}:-default}}` for a value to use without it"),
            ),
            ExpandError::Empty { name, at } => (
                at,
                name.len() + 3,
                format!("the environment variable `{name}` is set, but empty"),
                format!("give it a value, or write `${{{name}:-}}` if empty is meant"),
            ),
            ExpandError::Open { at } => {
                (at, 2, "`${` without a `}`".to_owned(), "write `$${` for a plain `${`".to_owned())
            }
            ExpandError::Name { written, at } => (
                at,
                written.len() + 3,
                "what stands in `${…}` is no name of a variable".to_owned(),
                "write `${NAME}` or `${NAME:-default}`; defaults hold no variables".to_owned(),
            ),
        };
        Wrong { spot: self.inside(node, *at, mark), message, hint: Some(hint), hide }
    }

    /// The place of a `${` within a value: the same one that is the n-th in what was written.
    fn inside(&self, node: &Node, at: usize, chars: usize) -> Spot {
        let Raw::Text(value) = &node.value else { return node.spot };
        let before = value.get(..at).unwrap_or_default().matches("${").count();
        let written = node.spot.start.and_then(|start| self.source.text.get(start..)).unwrap_or_default();
        let Some((offset, _)) = written.match_indices("${").nth(before) else { return node.spot };
        let lead = written.get(..offset).unwrap_or_default();
        let count = |text: &str| u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        let (line, column) = match lead.rsplit_once('\n') {
            Some((above, left)) => (node.spot.line + count_lines(above), count(left) + 1),
            None => (node.spot.line, node.spot.column.saturating_add(count(lead))),
        };
        Spot { line, column, start: None, chars: u64::try_from(chars).unwrap_or(1) }
    }
}

/// Line breaks up to and with the one that follows the text.
fn count_lines(above: &str) -> u64 {
    u64::try_from(above.matches('\n').count()).unwrap_or(u64::MAX).saturating_add(1)
}

fn wrong(node: &Node, message: String, hint: Option<String>) -> Wrong {
    Wrong { spot: node.spot, message, hint, hide: None }
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

fn without_unit(key: &Key, node: &Node, written: &str) -> Wrong {
    let hint = match written.parse::<f64>() {
        Ok(number) if number >= 100.0 => {
            format!("write `{written}ms` for milliseconds or `{written}s` for seconds")
        }
        _ => format!("write `{written}s` for seconds; ms, s, m, h and d are known"),
    };
    wrong(node, format!("`{}` needs a unit", key.path), Some(hint))
}

fn in_range<T: std::fmt::Display + Clone>(key: &Key, node: &Node, value: &T, holds: bool) -> Read<T> {
    if holds { Ok(value.clone()) } else { Err(out_of_range(key, node, value)) }
}

fn out_of_range(key: &Key, node: &Node, value: &dyn std::fmt::Display) -> Wrong {
    let message = format!("`{}` must be {}, not {value}", key.path, key.range_text());
    wrong(node, message, Some(format!("the default is {}", key.default_text())))
}

fn with_default(key: &Key) -> String {
    match key.default_text() {
        default if default.starts_with('`') => format!("{} (the default is {default})", key.range_text()),
        _ => key.range_text(),
    }
}
