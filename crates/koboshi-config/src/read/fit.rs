//! Suggests a value in place of a wrong number or length: only one that would be accepted.
//!
//! A hint that leads to the next error is worse than none. So an interpretation is suggested only if it is in the range of its key; else
//! the range is shown.

use super::with_default;
use crate::at::At;
use crate::schema::{Range, Shape, parse_length};
use crate::size;
use crate::words::{Text, text, tr, words};

/// Whether a value with this text would be accepted.
pub(super) fn fits(shape: &Shape, written: &str) -> bool {
    let whole = || written.parse::<u64>().ok();
    match shape {
        Shape::Length { range, .. } => parse_length(written).is_some_and(|length| range.has(length)),
        Shape::Seconds { range, .. } => {
            whole().is_some_and(|count| Range::of(range.min.as_secs(), range.max.as_secs()).has(count))
        }
        Shape::Count { range, .. } => whole().is_some_and(|count| range.has(count)),
        Shape::Number { range, .. } => written.parse::<f64>().is_ok_and(|number| range.has(number)),
        Shape::Choice { numbers, .. } => whole().is_some_and(|count| numbers.contains(&count)),
        _ => false,
    }
}

/// The hint to write this, or the allowed range.
pub(super) fn write(at: &At, meant: &str) -> Text {
    if fits(&at.key.shape, meant) {
        text!("write `{meant}`", "`{meant}` と書いてください")
    } else {
        range(at)
    }
}

/// The allowed range.
pub(super) fn range(at: &At) -> Text {
    Text::of(|language| {
        let wanted = with_default(at, language);
        tr!(language, "write {wanted}", "{wanted}を書いてください")
    })
}

/// For a length without its unit: the units with which it would be in range.
pub(super) fn with_unit(at: &At, written: &str) -> Text {
    let is_large = written.parse::<f64>().is_ok_and(|number| number >= 100.0);
    let (millis, seconds) = (format!("{written}ms"), format!("{written}s"));
    match (is_large && fits(&at.key.shape, &millis), fits(&at.key.shape, &seconds)) {
        (true, true) => text!(
            "write `{millis}` for milliseconds or `{seconds}` for seconds",
            "ミリ秒なら `{millis}`、秒なら `{seconds}` と書いてください"
        ),
        (true, false) => text!("write `{millis}` for milliseconds", "ミリ秒なら `{millis}` と書いてください"),
        (false, true) => text!(
            "write `{seconds}` for seconds; ms, s, m, h and d are known",
            "秒なら `{seconds}` と書いてください（単位は ms、s、m、h、d）"
        ),
        (false, false) => range(at),
    }
}

/// The hint for a text where a number or a length is expected.
pub(super) fn for_text(at: &At, written: &str) -> Text {
    if written.contains("${") {
        return words(
            "variables are read in text only: write the value itself",
            "環境変数を使えるのは文字列の値だけです。値そのものを書いてください",
        )
        .into();
    }
    if fits(&at.key.shape, written) {
        return words("take the quotes away", "引用符を外してください").into();
    }
    let in_bytes = || at.key.name().ends_with("_bytes").then(|| size::rough(written)).flatten();
    let meant = grouped(written).or_else(|| in_bytes().map(|bytes| bytes.to_string()));
    meant.map_or_else(|| range(at), |meant| write(at, &meant))
}

/// `1,000,000` without its commas.
fn grouped(written: &str) -> Option<String> {
    let mut groups = written.split(',');
    let first = groups.next()?;
    let is_digits = |group: &str| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit());
    let is_grouped = written.contains(',') && is_digits(first) && first.len() <= 3;
    (is_grouped && groups.all(|group| group.len() == 3 && is_digits(group))).then(|| written.replace(',', ""))
}
