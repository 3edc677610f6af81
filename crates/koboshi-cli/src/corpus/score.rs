//! Scores cases, by the rules of the corpus.

use koboshi::classify::{AgentLog, Answer, Classifier, ToolOutput};
use koboshi::fault::Fault;
use serde::Serialize;

use super::calls;
use super::case::{Case, LogCase, ProviderCase, ToolCase};
use crate::clock;

/// The answer to one case beside the expected one.
#[derive(Debug, Serialize)]
pub(crate) struct Score {
    #[serde(skip)]
    pub(crate) right: bool,
    /// Wrong in a harmful way: a failure taken for health, or health for a failure; arguments that the model did not mean; a stop
    /// where none was right.
    pub(crate) harmful: bool,
    pub(crate) expected: String,
    pub(crate) got: String,
    /// The rule that decided.
    pub(crate) rule: String,
}

pub(crate) fn score(classifier: &Classifier, case: &Case, with_flag: bool) -> Result<Score, String> {
    match case {
        Case::Provider(case) => provider(classifier, case),
        Case::Log(case) => log(classifier, case),
        Case::Tool(case) => Ok(tool(classifier, case, with_flag)),
        Case::Args(case) => calls::arguments(case),
        Case::Sequence(case) => calls::sequence(classifier, case, with_flag),
    }
}

fn rule_of(fault: Option<&Fault>) -> String {
    fault.map_or_else(|| "-".to_owned(), |fault| fault.evidence.rule.to_string())
}

fn provider(classifier: &Classifier, case: &ProviderCase) -> Result<Score, String> {
    let now = clock::parse(&case.now)?;
    let headers: Vec<(&str, &str)> =
        case.headers.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let answer = Answer {
        status: case.status,
        headers: &headers,
        body: case.body.as_deref().unwrap_or_default(),
        stream: case.stream,
        transport: case.transport.as_deref(),
    };
    let fault = classifier.answer(&answer, &now);
    let kind = fault.as_ref().map_or("ok", |fault| fault.kind.name());
    let flags = fault
        .as_ref()
        .map_or([false; 3], |fault| [fault.advice.same, fault.advice.other, fault.advice.health]);
    let wait = seconds(fault.as_ref());
    let expect = &case.expect;
    let expected_flags = [expect.same_provider_retry, expect.failover, expect.counts_against_health];
    let kind_right = kind == expect.kind || expect.also_ok.iter().any(|also| also == kind);
    let wait_right = wait_matches(wait, expect.retry_after_seconds, expect.retry_tolerance);
    Ok(Score {
        right: kind_right && wait_right && flags == expected_flags,
        harmful: (kind == "ok") != (expect.kind == "ok"),
        expected: describe(&expect.kind, expect.retry_after_seconds, &flag_letters(expected_flags)),
        got: describe(kind, wait, &flag_letters(flags)),
        rule: rule_of(fault.as_ref()),
    })
}

fn log(classifier: &Classifier, case: &LogCase) -> Result<Score, String> {
    let now = clock::parse(&case.now)?;
    let fault = classifier.log(&AgentLog { text: &case.log, exit_code: case.exit_code, since: None }, &now);
    let reason = fault.as_ref().map_or("none", Fault::log_reason);
    let wait = seconds(fault.as_ref());
    let expect = &case.expect;
    let reason_right = reason == expect.reason || expect.also_ok.iter().any(|also| also == reason);
    Ok(Score {
        right: reason_right && wait_matches(wait, expect.wait_seconds, expect.wait_tolerance),
        harmful: !reason_right && (reason == "none" || expect.reason == "none"),
        expected: describe(&expect.reason, expect.wait_seconds, ""),
        got: describe(reason, wait, ""),
        rule: rule_of(fault.as_ref()),
    })
}

fn tool(classifier: &Classifier, case: &ToolCase, with_flag: bool) -> Score {
    let output = ToolOutput { text: &case.output, is_error: with_flag.then_some(case.is_error) };
    let fault = classifier.tool(&output, &jiff::Zoned::default());
    let category = fault.as_ref().and_then(|fault| fault.category.as_deref());
    let expect = &case.expect;
    let right = category == expect.category.as_deref()
        || expect.also_ok.iter().any(|also| also.as_deref() == category);
    Score {
        right,
        harmful: !right && expect.category.is_none(),
        expected: expect.category.clone().unwrap_or_else(|| "none".to_owned()),
        got: category.unwrap_or("none").to_owned(),
        rule: rule_of(fault.as_ref()),
    }
}

fn seconds(fault: Option<&Fault>) -> Option<f64> {
    fault.and_then(|fault| fault.wait).map(|wait| wait.after.as_secs_f64())
}

fn wait_matches(got: Option<f64>, expected: Option<f64>, tolerance: f64) -> bool {
    match (got, expected) {
        (None, None) => true,
        (Some(got), Some(expected)) => (got - expected).abs() <= tolerance + 1e-6,
        _ => false,
    }
}

fn flag_letters(flags: [bool; 3]) -> String {
    flags.iter().map(|flag| if *flag { 'y' } else { 'n' }).collect()
}

fn describe(what: &str, wait: Option<f64>, flags: &str) -> String {
    let wait = wait.map_or(String::new(), |wait| format!(" {wait}s"));
    let flags = if flags.is_empty() { String::new() } else { format!(" {flags}") };
    format!("{what}{wait}{flags}")
}
