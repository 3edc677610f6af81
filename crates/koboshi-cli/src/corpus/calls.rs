//! Scores tool calls: their arguments, and where a series of them must stop.

use std::collections::BTreeMap;

use koboshi::args::{ArgsPolicy, Finish, ToolSchema, Verdict, check};
use koboshi::classify::Classifier;
use koboshi::guard::{Call, Guard, GuardPolicy, RulePolicy, Turn, Verdict as Judged};
use serde_json::value::RawValue;

use super::case::{ArgsCase, Limits, SequenceCase};
use super::score::Score;

/// A wrong value is harmful, and so is any value where refusal is right: a tool would run with it.
pub(super) fn arguments(case: &ArgsCase) -> Result<Score, String> {
    let schema =
        case.schema.as_ref().map(ToolSchema::compile).transpose().map_err(|error| error.to_string())?;
    let verdict = check(&case.input, schema.as_ref(), Finish::Unknown, &ArgsPolicy::default());
    let (got, rule) = match &verdict {
        Verdict::Valid => ("valid", String::new()),
        Verdict::Repaired { changes, .. } => {
            ("repair", changes.iter().map(|change| change.what.name()).collect::<Vec<_>>().join(" "))
        }
        Verdict::Refused(refusal) => ("refuse", refusal.defect.name().to_owned()),
    };
    let expected = case.expect.outcome.as_str();
    let same = verdict.json(&case.input).is_some_and(|json| same(json, case.expect.value.get()));
    let right = got == expected && (expected == "refuse" || same);
    Ok(Score {
        right,
        harmful: !right && verdict.json(&case.input).is_some(),
        expected: expected.to_owned(),
        got: got.to_owned(),
        rule,
    })
}

/// Whether two JSON texts are equal. Numbers are compared by their digits: none may be lost.
fn same(one: &str, two: &str) -> bool {
    let (one, two) = (one.trim(), two.trim());
    match (one.chars().next(), two.chars().next()) {
        (Some('{'), Some('{')) => {
            let read = |text| serde_json::from_str::<BTreeMap<String, Box<RawValue>>>(text);
            let (Ok(one), Ok(two)) = (read(one), read(two)) else { return false };
            one.len() == two.len()
                && one
                    .iter()
                    .all(|(key, value)| two.get(key).is_some_and(|other| same(value.get(), other.get())))
        }
        (Some('['), Some('[')) => {
            let read = |text| serde_json::from_str::<Vec<Box<RawValue>>>(text);
            let (Ok(one), Ok(two)) = (read(one), read(two)) else { return false };
            one.len() == two.len() && one.iter().zip(&two).all(|(one, two)| same(one.get(), two.get()))
        }
        (Some('-' | '0'..='9'), Some('-' | '0'..='9')) => number(one) == number(two),
        _ => {
            let read = |text| serde_json::from_str::<serde_json::Value>(text).ok();
            read(one).is_some() && read(one) == read(two)
        }
    }
}

/// A number as sign, digits without zeros around them, and the place of the point.
fn number(text: &str) -> Option<(bool, String, i64)> {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let point = exponent.checked_sub(i64::try_from(fraction.len()).ok()?)?;
    let trimmed = digits.trim_end_matches('0');
    let point = point.checked_add(i64::try_from(digits.len() - trimmed.len()).ok()?)?;
    let digits = trimmed.trim_start_matches('0').to_owned();
    if digits.is_empty() { Some((false, digits, 0)) } else { Some((negative, digits, point)) }
}

/// A stop is harmful where it comes too early or where none is right.
pub(super) fn sequence(
    classifier: &Classifier,
    case: &SequenceCase,
    with_flag: bool,
) -> Result<Score, String> {
    let policy = match case.limits {
        Limits::Source => GuardPolicy::source(),
        Limits::Gateway => GuardPolicy::default().with(|policy| policy.depth = RulePolicy::OFF),
    };
    let guard = Guard::new(policy).map_err(|error| error.to_string())?;
    let now = jiff::Zoned::default();
    let mut turn = Turn::new();
    let mut stop = None;
    for (index, call) in case.calls.iter().enumerate() {
        let args = call.args.as_str().map_or_else(|| call.args.to_string(), str::to_owned);
        let call = Call {
            tool: &call.tool,
            args: &args,
            output: &call.output,
            is_error: call.is_error.filter(|_| with_flag),
            turn: call.turn,
            batch: call.batch,
        };
        turn.push(guard.read(&call, classifier, &now));
        let judgement = guard.assess(&turn);
        if judgement.verdict == Judged::Stop {
            let rules: Vec<_> = judgement.findings.iter().map(|finding| finding.rule.name()).collect();
            stop = Some((index, rules.join(" ")));
            break;
        }
    }
    let at = stop.as_ref().map(|(index, _)| *index);
    let range = case.expect.stop_ok.or(case.expect.stop_after.map(|exact| (exact, exact)));
    let right = match (at, range) {
        (None, None) => true,
        (Some(at), Some((first, last))) => (first..=last).contains(&at),
        _ => false,
    };
    let words = |at: Option<usize>| at.map_or_else(|| "no stop".to_owned(), |at| format!("stop after {at}"));
    Ok(Score {
        right,
        harmful: !right && at.is_some_and(|at| range.is_none_or(|(first, _)| at < first)),
        expected: words(case.expect.stop_after),
        got: words(at),
        rule: stop.map(|(_, rules)| rules).unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn numbers_are_compared_by_value_and_lose_no_digit() {
        for (one, two) in [
            ("1", "1.0"),
            ("1e2", "100"),
            ("-0", "0"),
            ("0.10", "1e-1"),
            (r#"{"a":1,"b":[2]}"#, r#"{"b":[2.0],"a":1}"#),
        ] {
            assert!(same(one, two), "{one} {two}");
        }
        for (one, two) in [
            ("12345678901234567890123", "12345678901234567890124"),
            ("1", "-1"),
            ("1", "\"1\""),
            ("[1]", "[1,1]"),
        ] {
            assert!(!same(one, two), "{one} {two}");
        }
    }
}
