//! The corpus of tool arguments: nearly all right, and nothing harmful.
//!
//! Harmful is a wrong value, or any value where refusal is due: a tool would run with it. Refusing what could have been
//! repaired costs one more question to the model, and counts as a miss only.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::args_kit::{Exact, exact};
use koboshi::args::{ArgsPolicy, Finish, ToolSchema, Verdict, check};

struct Case {
    id: String,
    input: String,
    schema: Option<ToolSchema>,
    outcome: String,
    value: Exact,
}

fn cases() -> Vec<Case> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/tool-args.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| {
            let case = exact(line);
            let plain: serde_json::Value = serde_json::from_str(line).unwrap();
            let schema = &plain["schema"];
            Case {
                id: case.get("id").text().to_owned(),
                input: case.get("input").text().to_owned(),
                schema: (!schema.is_null()).then(|| ToolSchema::compile(schema).unwrap()),
                outcome: case.get("expect").get("outcome").text().to_owned(),
                value: case.get("expect").get("value").clone(),
            }
        })
        .collect()
}

fn judge(case: &Case) -> Verdict {
    check(&case.input, case.schema.as_ref(), Finish::Unknown, &ArgsPolicy::default())
}

#[test]
fn the_corpus_is_answered_right_and_nothing_is_harmful() {
    let cases = cases();
    let (mut right, mut harmful, mut missed) = (0, Vec::new(), Vec::new());
    for case in &cases {
        let verdict = judge(case);
        let told = format!("{} wants {}, got {verdict:?}\n    {:.200}", case.id, case.outcome, case.input);
        let same = |json: &str| exact(json) == case.value;
        match (case.outcome.as_str(), verdict.json(&case.input)) {
            ("valid", Some(_)) if verdict == Verdict::Valid && same(&case.input) => right += 1,
            ("repair", Some(json)) if same(json) => right += 1,
            ("refuse", None) => right += 1,
            (_, None) => missed.push(told),
            _ => harmful.push(told),
        }
    }
    let score =
        format!("right {right} of {}, missed {}, harmful {}", cases.len(), missed.len(), harmful.len());
    println!("{score}");
    let enough = right * 100 >= cases.len() * 97 && harmful.is_empty();
    assert!(enough, "{score}\nharmful:\n{}\nmissed:\n{}", harmful.join("\n"), missed.join("\n"));
}

#[test]
fn the_corpus_stays_whole() {
    let cases = cases();
    assert!(cases.len() >= 205);
    for outcome in ["valid", "repair", "refuse"] {
        assert!(cases.iter().any(|case| case.outcome == outcome));
    }
}

/// What was repaired is valid, and a valid text is passed on as it is.
#[test]
fn repairing_twice_changes_nothing() {
    for case in cases() {
        if let Verdict::Repaired { json, changes } = judge(&case) {
            assert!(!changes.is_empty(), "{}: a change without a name", case.id);
            for change in &changes {
                assert!(
                    change.span.start <= change.span.end && change.span.end <= case.input.len(),
                    "{}",
                    case.id
                );
            }
            let again = check(&json, case.schema.as_ref(), Finish::Unknown, &ArgsPolicy::default());
            assert_eq!(again, Verdict::Valid, "{}: {json}", case.id);
        }
    }
}

/// Without repair, only what is valid passes; everything else goes back to the model.
#[test]
fn with_repair_off_nothing_is_changed() {
    for case in cases() {
        let verdict = check(&case.input, case.schema.as_ref(), Finish::Unknown, &ArgsPolicy::strict());
        assert_eq!(verdict == Verdict::Valid, case.outcome == "valid", "{}: {verdict:?}", case.id);
        assert!(!matches!(verdict, Verdict::Repaired { .. }), "{}", case.id);
    }
}

/// A cut call is refused, however well its beginning reads.
#[test]
fn nothing_is_repaired_that_the_output_limit_cut() {
    for case in cases() {
        let strict = serde_json::from_str::<serde_json::Value>(&case.input).is_ok();
        let verdict = check(&case.input, case.schema.as_ref(), Finish::Cut, &ArgsPolicy::default());
        assert!(strict || matches!(verdict, Verdict::Refused(_)), "{}: {verdict:?}", case.id);
    }
}
