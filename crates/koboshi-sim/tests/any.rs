//! What holds for any name and any body: the fuzz checks for a moment.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "../../../fuzz/sim_checks.rs"]
#[allow(clippy::expect_used, reason = "checks of a test")]
mod sim_checks;

use proptest::collection::vec;
use proptest::prelude::*;

const PIECES: &[&str] = &[
    "\n",
    "{\"messages\":[",
    "{\"role\":\"user\",\"content\":\"hello\"}",
    "]}",
    ",",
    "\"stream\":true",
    "\"n\":1",
    "{\"role\":\"assistant\",\"content\":\"The\"}",
    "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",",
    "\"parameters\":{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}}}]",
    "null",
    "\"max_tokens\":3",
    "{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}",
    "koboshi-sim: call f {",
    "?after=1",
    "&p=0.5",
    "?",
    "&",
    "=",
    "1",
    "-1",
    "1e9",
    "99999999999999999999",
    "ms",
    "s",
    "\u{1}",
    "ok",
    "\u{7f}",
    "形",
    "\\ud800",
    "\"input\":",
    "[[1,2],[3]]",
    "\"tool_choice\":\"required\"",
    "{\"model\":\"m\",",
    "\"input\":[",
    "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{\"}",
    "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"x\"}",
    "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"tool_use_id\":\"c\",\"content\":\"x\"}]}",
    "\"tools\":[{\"name\":\"f\",\"input_schema\":{\"type\":\"object\"}},{\"type\":\"custom\",\"name\":\"apply_patch\"}]",
    "\"thinking\":{\"type\":\"enabled\",\"budget_tokens\":9}",
    "\"reasoning\":{\"effort\":\"low\",\"summary\":\"auto\"}",
    "{\"contents\":[",
    "{\"role\":\"user\",\"parts\":[{\"text\":\"koboshi: write a with b, then run c\"}]}",
    "{\"role\":\"model\",\"parts\":[{\"functionCall\":{\"name\":\"f\",\"args\":{}}}]}",
    "\"tools\":[{\"functionDeclarations\":[{\"name\":\"f\"}]}]",
    "\"generationConfig\":{\"thinkingConfig\":{\"thinkingBudget\":9,\"includeThoughts\":true},\"maxOutputTokens\":2}",
    "/v1beta/models/",
    ":generateContent",
    "%3F",
    "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"enum\":[]}}}",
];

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn any_ask_is_played() {
    let wordy = vec(prop::sample::select(PIECES), 0..30).prop_map(|pieces| pieces.concat().into_bytes());
    let bytes = prop_oneof![vec(any::<u8>(), 0..200), wordy];
    proptest!(cases(1500), |(data in bytes)| sim_checks::ask(&data));
}

/// Every name with a sound request, in its parts.
#[test]
fn every_name_is_played() {
    const MESSAGES: &str = r#""messages":[{"role":"user","content":"parallel hello"}]"#;
    const TOOLS: &str = r#""tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}]"#;
    for first in 0..128_u8 {
        for body in [
            format!("{{{MESSAGES}}}"),
            format!("{{{MESSAGES},\"stream\":true,\"stream_options\":{{\"include_usage\":true}}}}"),
            format!("{{{MESSAGES},{TOOLS},\"stream\":true}}"),
            format!("{{{MESSAGES},{TOOLS},\"max_tokens\":2}}"),
            r#"{"input":["a","b"]}"#.to_owned(),
            r#"{"model":"m","input":"parallel hello","stream":true,"tools":[{"type":"custom","name":"f"}]}"#.to_owned(),
            r#"{"contents":[{"parts":[{"text":"parallel hello"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}]}"#.to_owned(),
            format!("{{{MESSAGES},\"max_tokens\":2,\"stream\":true,\"thinking\":{{\"type\":\"adaptive\"}},\"tools\":[{{\"name\":\"f\"}}]}}"),
        ] {
            let mut data = vec![first];
            data.extend(format!("\n{body}").bytes());
            sim_checks::ask(&data);
        }
    }
}

#[test]
fn monsters_are_survived() {
    let again = |piece: &str, count: usize| piece.repeat(count);
    let user = |text: &str| {
        format!("{{\"stream\":true,\"messages\":[{{\"role\":\"user\",\"content\":\"{text}\"}}]}}")
    };
    let tool = |schema: &str| {
        format!(
            "{{\"messages\":[{{\"role\":\"user\",\"content\":\"a\"}}],\"tools\":[{{\"function\":{{\"name\":\"f\",\"parameters\":{schema}}}}}]}}"
        )
    };
    let properties: String = (0..5000).map(|at| format!("\"p{at}\":{{\"$ref\":\"#\"}},")).collect();
    let required: String = (0..5000).map(|at| format!("\"p{at}\",")).collect();
    for body in [
        again("[", 200_000),
        again("{\"messages\":", 50_000),
        user(&again("a ", 200_000)),
        user(&again("koboshi-sim: call f\\n", 20_000)),
        user(&again("koboshi: run a, then ", 20_000)),
        user(&again("koboshi: run a\\n", 20_000)),
        format!("{{\"contents\":[{}{{}}]}}", again("{\"parts\":[{\"text\":\"a\"}]},", 5000)),
        format!(
            "{{\"input\":[{}{{\"role\":\"user\"}}]}}",
            again("{\"type\":\"function_call\",\"name\":\"f\"},", 5000)
        ),
        format!("{{\"messages\":[{}{{\"role\":\"user\"}}]}}", again("{\"role\":\"user\"},", 20_000)),
        tool(&format!("{{\"properties\":{{{properties}\"z\":{{}}}},\"required\":[{required}\"z\"]}}")),
        tool(&format!("{}{{}}{}", again("{\"allOf\":[", 60), again("]}", 60))),
        tool(&format!("{{\"enum\":[{}1]}}", again("1,", 100_000))),
        tool(
            "{\"type\":\"array\",\"minItems\":99999999,\"uniqueItems\":true,\"items\":{\"type\":\"boolean\"}}",
        ),
        format!("{{\"input\":[{}1]}}", again("1,", 100_000)),
        format!("{{\"input\":[{}\"a\"],\"dimensions\":3072}}", again("\"a\",", 2000)),
    ] {
        sim_checks::ask(format!("\0\n{body}").as_bytes());
    }
    sim_checks::ask(format!("{}\n", again("x", 100_000)).as_bytes());
    sim_checks::ask(format!("{}?{}\n{}", '\u{ff}', again("p=1&", 100_000), user("a")).as_bytes());
}
