//! Reads one value of the file, in the shape of its key.
//!
//! Each kind of mistake has its own message, since "invalid type" helps no one at night: for a length without a unit it
//! lists the units, for a number of seconds with a unit it says to leave it out, for `yes` it suggests `true`.

mod fit;
mod kinds;
mod text;

use std::path::Path;

use koboshi::wait::parse_duration;

use crate::agents::{AUTO, OFF};
use crate::at::At;
use crate::config::Language;
use crate::near::nearest;
use crate::schema::{Range, Shape, Value, either, parse_length, print_length};
use crate::secret::Secret;
use crate::source::Source;
use crate::tree::{Node, Raw, Spot};
use crate::words::{Text, text, tr, words};
use text::Hide;

/// From here on a floating-point number cannot represent every whole number.
const MAX_EXACT_WHOLE: f64 = 9_007_199_254_740_992.0;

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
    pub(crate) message: Text,
    pub(crate) hint: Option<Text>,
}

type ReadResult<T> = Result<T, Wrong>;

impl Reader<'_> {
    /// Reads the value of a key.
    pub(crate) fn value(&self, at: &At, node: &Node) -> ReadResult<Value> {
        if let (Raw::Null, false) = (&node.value, may_be_empty(&at.key.shape)) {
            let hint = Text::of(|language| {
                let wanted = with_default(at, language);
                tr!(
                    language,
                    "write {wanted}, or take the key out",
                    "{wanted}を書くか、設定項目ごと削除してください"
                )
            });
            return Err(wrong(
                node,
                text!("`{}` has no value", "`{}` に値がありません", at.shown),
                Some(hint),
            ));
        }
        match &at.key.shape {
            Shape::Section { .. } | Shape::Entry(_) => Ok(Value::Off),
            Shape::Length { off: true, .. } | Shape::Count { off: true, .. } if is_off(node) => {
                Ok(Value::Off)
            }
            Shape::Length { range, .. } => self.length(at, node, *range),
            Shape::Seconds { range, .. } => {
                let range = Range::of(range.min.as_secs(), range.max.as_secs());
                self.seconds(at, node)
                    .and_then(|count| in_range(at, node, &count, range.has(count)))
                    .map(Value::Count)
            }
            Shape::Count { range, .. } => {
                let count = self.count(at, node)?;
                if range.is_endless() && count > range.max {
                    let (shown, max) = (&at.shown, range.max);
                    let message = text!(
                        "`{shown}` must be at most {max}, not {count}",
                        "`{shown}` は {max} 以下にしてください（現在: {count}）"
                    );
                    return Err(wrong(node, message, default_hint(at)));
                }
                in_range(at, node, &count, range.has(count)).map(Value::Count)
            }
            Shape::Number { range, .. } => {
                let number = self.number(at, node)?;
                in_range(at, node, &number, range.has(number)).map(Value::Number).map_err(|wrong| {
                    let share = number / 100.0;
                    let percent = range.max <= 1.0 && number > 1.0 && range.has(share);
                    let hint = text!(
                        "write `{share}` for {number} percent", "{number} % は `{share}` と書いてください"
                    );
                    Wrong { hint: if percent { Some(hint) } else { wrong.hint }, ..wrong }
                })
            }
            Shape::Choice { numbers, .. } => {
                let count = self.count(at, node)?;
                in_range(at, node, &count, numbers.contains(&count)).map(Value::Count)
            }
            Shape::Flag { words, .. } => self.flag(at, node, *words).map(Value::Flag),
            Shape::Word { words, .. } => self.word(at, node, words).map(Value::Word),
            // It was a flag before there were several gateways to choose from.
            Shape::Text { .. } if at.key.path == "agents.*.gateway" && matches!(node.value, Raw::Flag(_)) => {
                let is_on = matches!(node.value, Raw::Flag(true));
                Ok(Value::Text(if is_on { AUTO } else { OFF }.to_owned()))
            }
            Shape::Text { form, .. } => self.in_form(at, node, *form, Hide::No).map(Value::Text),
            Shape::Texts { form, single: true, .. } if matches!(node.value, Raw::Text(_)) => {
                self.in_form(at, node, *form, Hide::No).map(|text| Value::Texts(vec![text]))
            }
            Shape::Texts { form, range, .. } => {
                self.list(at, node, (*form, *range), Hide::No).map(Value::Texts)
            }
            Shape::Secret { form, .. } => {
                self.in_form(at, node, *form, Hide::Yes).map(|text| Value::Secret(Secret::new(text)))
            }
            Shape::Secrets { form, range, .. } => self
                .list(at, node, (*form, *range), Hide::Yes)
                .map(|texts| Value::Secrets(texts.into_iter().map(Secret::new).collect())),
            Shape::Path { .. } => self.path(at, node).map(Value::Path),
            Shape::Paths { .. } => self.paths(at, node).map(Value::Paths),
        }
    }

    fn length(&self, at: &At, node: &Node, range: Range<std::time::Duration>) -> ReadResult<Value> {
        let text = match &node.value {
            Raw::Text(text) if parse_length(text).is_none() && is_bare_number(text) => {
                return Err(without_unit(at, node, text));
            }
            Raw::Text(text) => text,
            Raw::Whole(count) => return Err(without_unit(at, node, &count.to_string())),
            Raw::Number(number) if *number >= 0.0 => {
                return Err(without_unit(at, node, &number.to_string()));
            }
            _ => {
                return Err(self.wrong_type(at, node, |language| {
                    words("a length of time such as `30s`", "`30s` のような時間").get(language).to_owned()
                }));
            }
        };
        let Some(length) = parse_length(text) else {
            let hint = match parse_duration(text).map(print_length) {
                _ if text.contains("${") => fit::for_text(at, text),
                Some(meant) => fit::write(at, &meant),
                None => words(
                    "write a number with ms, s, m, h or d, such as `500ms`, `30s` or `1h30m`",
                    "`500ms`、`30s`、`1h30m` のように、数に ms、s、m、h、d のいずれかを付けてください",
                )
                .into(),
            };
            let (shown, quoted) = (&at.shown, self.source.quote(text));
            let message = text!(
                "`{shown}` is no length of time: `{quoted}`", "`{shown}` は時間として読めません: `{quoted}`"
            );
            return Err(wrong(node, message, Some(hint)));
        };
        in_range(at, node, text, range.has(length))?;
        Ok(Value::Length(length))
    }

    fn seconds(&self, at: &At, node: &Node) -> ReadResult<u64> {
        if let Raw::Text(text) = &node.value
            && let Some(length) =
                parse_length(text).or_else(|| parse_duration(text).filter(|_| has_unit(text)))
        {
            let (shown, quoted, seconds) = (&at.shown, self.source.quote(text), length.as_secs().max(1));
            let message = text!(
                "`{shown}` counts seconds and takes no unit: `{quoted}`",
                "`{shown}` は秒数で、単位は付けません: `{quoted}`"
            );
            return Err(wrong(node, message, Some(fit::write(at, &seconds.to_string()))));
        }
        self.count(at, node)
    }

    fn count(&self, at: &At, node: &Node) -> ReadResult<u64> {
        match node.value {
            Raw::Whole(count) => Ok(count),
            // A whole number, but written as a floating-point one.
            Raw::Number(number) if number.fract() == 0.0 && (0.0..MAX_EXACT_WHOLE).contains(&number) => {
                let message = text!(
                    "`{}` must be a whole number, written with digits only",
                    "`{}` は整数を数字だけで書いてください", at.shown
                );
                Err(wrong(node, message, Some(fit::write(at, &number.to_string()))))
            }
            // Too large for a whole number, or negative: outside of every range.
            Raw::Number(number) if number.fract() == 0.0 => Err(out_of_range(at, node, &number)),
            _ => Err(self
                .wrong_type(at, node, |language| words("a whole number", "整数").get(language).to_owned())),
        }
    }

    fn number(&self, at: &At, node: &Node) -> ReadResult<f64> {
        match &node.value {
            Raw::Whole(count) => Ok(*count as f64),
            Raw::Number(number) => Ok(*number),
            Raw::Text(text)
                if text.strip_suffix('%').is_some_and(|rest| rest.trim().parse::<f64>().is_ok()) =>
            {
                let share = text.trim_end_matches('%').trim().parse::<f64>().unwrap_or_default() / 100.0;
                let (shown, quoted) = (&at.shown, self.source.quote(text));
                let message = text!(
                    "`{shown}` must be a number, not a percentage: `{quoted}`",
                    "`{shown}` は百分率ではなく数値で書いてください: `{quoted}`"
                );
                Err(wrong(node, message, Some(fit::write(at, &share.to_string()))))
            }
            _ => {
                Err(self.wrong_type(at, node, |language| words("a number", "数値").get(language).to_owned()))
            }
        }
    }

    fn flag(&self, at: &At, node: &Node, words: bool) -> ReadResult<bool> {
        let hint = match &node.value {
            Raw::Flag(flag) => return Ok(*flag),
            Raw::Text(text) if words && (text == "on" || text == "off") => return Ok(text == "on"),
            Raw::Text(text) => match text.to_ascii_lowercase().as_str() {
                "yes" | "on" | "true" | "y" => Some("true"),
                "no" | "off" | "false" | "n" => Some("false"),
                _ => None,
            },
            Raw::Whole(1) => Some("true"),
            Raw::Whole(0) => Some("false"),
            _ => None,
        };
        let wrong = self.wrong_type(at, node, |language| either(&["true", "false"], language));
        Err(Wrong {
            hint: hint.map(|word| text!("write `{word}`", "`{word}` と書いてください")), ..wrong
        })
    }

    fn word(&self, at: &At, node: &Node, words: &'static [&'static str]) -> ReadResult<&'static str> {
        let written = match &node.value {
            Raw::Text(text) => text.clone(),
            // `none` is a word here, but null in other YAML versions; numbers are simply wrong.
            Raw::Flag(flag) => flag.to_string(),
            _ => return Err(self.wrong_type(at, node, |language| either(words, language))),
        };
        let now = at.key.renamed_word(&written).unwrap_or(&written);
        if let Some(word) = words.iter().find(|word| **word == now) {
            return Ok(word);
        }
        let quoted = self.source.quote(&written);
        let message = Text::of(|language| {
            let (shown, wanted) = (&at.shown, either(words, language));
            tr!(
                language,
                "`{shown}` must be {wanted}, not `{quoted}`",
                "`{shown}` は{wanted}にしてください（現在: `{quoted}`）"
            )
        });
        let near = nearest(&written.to_lowercase(), words.iter().copied());
        let meant = || near.map(|near| text!("did you mean `{near}`?", "`{near}` のことですか？"));
        let of_kind = if at.key.path == "providers.*.kind" { kinds::hint(&written) } else { None };
        // A locale in place of a language: `ja_JP`, `en-US.UTF-8`.
        let primary = written.split(['_', '-', '.']).next().unwrap_or_default().to_lowercase();
        let of_locale = words.iter().find(|word| at.key.path == "language" && **word == primary);
        let of_locale = of_locale.map(|word| text!("write `{word}`", "`{word}` と書いてください"));
        Err(wrong(node, message, of_kind.or(of_locale).or_else(meant)))
    }

    fn wrong_type(&self, at: &At, node: &Node, wanted: impl Fn(Language) -> String) -> Wrong {
        let message = Text::of(|language| {
            let (shown, wanted, found) = (&at.shown, wanted(language), self.describe(node, language));
            tr!(
                language,
                "`{shown}` must be {wanted}, not {found}",
                "`{shown}` は{wanted}にしてください（現在: {found}）"
            )
        });
        let hint = match &node.value {
            Raw::Text(text) => fit::for_text(at, text),
            _ => fit::range(at),
        };
        wrong(node, message, Some(hint))
    }

    /// A value in a few words.
    fn describe(&self, node: &Node, language: Language) -> String {
        match &node.value {
            Raw::Null => tr!(language, "nothing", "値なし"),
            Raw::Flag(flag) => format!("`{flag}`"),
            Raw::Whole(count) => tr!(language, "the number `{count}`", "数値 `{count}`"),
            Raw::Number(number) => tr!(language, "the number `{number}`", "数値 `{number}`"),
            Raw::Text(text) => tr!(language, "the text `{}`", "文字列 `{}`", self.source.quote(text)),
            Raw::List(_) => tr!(language, "a list", "リスト"),
            Raw::Map(_) => tr!(language, "a section with keys of its own", "設定項目を持つセクション"),
        }
    }
}

fn wrong(node: &Node, message: Text, hint: Option<Text>) -> Wrong {
    Wrong { spot: node.spot, message, hint }
}

/// Whether a list may be left empty.
fn may_be_empty(shape: &Shape) -> bool {
    match shape {
        Shape::Paths { .. } => true,
        Shape::Texts { range, .. } | Shape::Secrets { range, .. } => range.min == 0,
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
    let message = text!("`{}` needs a unit", "`{}` には単位が必要です", at.shown);
    wrong(node, message, Some(fit::with_unit(at, written)))
}

fn has_unit(text: &str) -> bool {
    text.chars().any(char::is_alphabetic)
}

fn in_range<T: std::fmt::Display + Clone>(at: &At, node: &Node, value: &T, holds: bool) -> ReadResult<T> {
    if holds { Ok(value.clone()) } else { Err(out_of_range(at, node, value)) }
}

fn out_of_range(at: &At, node: &Node, value: &dyn std::fmt::Display) -> Wrong {
    let message = Text::of(|language| {
        let (shown, range) = (&at.shown, at.key.range_in(language));
        tr!(
            language,
            "`{shown}` must be {range}, not {value}",
            "`{shown}` は {range}にしてください（現在: {value}）"
        )
    });
    wrong(node, message, default_hint(at))
}

fn default_hint(at: &At) -> Option<Text> {
    let default = at.key.plain_default()?;
    Some(text!("the default is `{default}`", "既定値は `{default}` です"))
}

/// The allowed values, with the default where it is a value.
fn with_default(at: &At, language: Language) -> String {
    let range = at.key.range_in(language);
    match at.key.plain_default() {
        Some(default) => {
            tr!(language, "{range} (the default is `{default}`)", "{range}（既定値は `{default}`）")
        }
        None => range,
    }
}
