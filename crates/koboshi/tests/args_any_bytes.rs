//! Any text as the arguments of a call: no panic, bounded stack, the same verdict for any pieces, and what is repaired
//! is valid. The checks are those of the fuzz target.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

#[path = "../../../fuzz/args_checks.rs"]
#[expect(clippy::expect_used, reason = "checks of a test")]
mod args_checks;

use crate::args_kit::exact;
use args_checks::Bench;
use koboshi::args::{ArgsPolicy, Defect, Feed, Finish, ToolSchema, Verdict, check, split_calls};
use proptest::collection::vec;
use proptest::prelude::*;

const PIECES: &[&str] = &[
    "{", "}", "[", "]", "\"", "'", ":", ",", "\"city\": \"Paris\"", "\"n\": 5", "city", "n", "path",
    "content", " ", "\n", "\\", "\\n", "\\\"", "\\u00e9", "\\ud83d", "True", "None", "null", "true", "1",
    "-2.5", "020", "1e999", "0x1F", "+5", "...", "```json\n", "```", "<think>", "</think>", "<tool_call>",
    "</tool_call>", "<parameter=city>", "</parameter>", "<function=f>", "</function>", "// c\n", "/* c */",
    "#", "f(", ")", "(", "=", "=>", ";", "“", "”", "：", "，", "｛", "｝", "\u{feff}", "\u{a0}", "あ",
    "\u{0}", "\u{1b}", "\"\"\"", "`", "r\"", "f\"", " + ", "{\"name\": \"f\", \"arguments\": ",
    "{\"city\": \"Paris\"}", "\"{\\\"city\\\": \\\"x\\\"}\"", "\"tags\": \"a\"",
    "\"o\": {\"a\": null, \"b\": \"true\"}", "\"e\": \"on\"", "\"x\": \"1.50\"", "Sure: ", "<|im_end|>", "«",
    "»",
];

fn wordy() -> impl Strategy<Value = Vec<u8>> {
    let head = (any::<u8>(), any::<u8>());
    (head, vec(prop::sample::select(PIECES), 0..24))
        .prop_map(|((first, second), pieces)| [vec![first, second], pieces.concat().into_bytes()].concat())
}

/// Real arguments with a few pieces put in or taken out.
fn edited() -> impl Strategy<Value = Vec<u8>> {
    let sound = [
        r#"{"city": "Paris", "n": 5}"#,
        r#"{"path": "a.py", "content": "def f():\n    return \"x\"\n"}"#,
        r#"{"tags": ["a", "b"], "o": {"a": 1, "b": false}, "e": "On", "x": 1.5}"#,
        r#"{'tags': 'a', 'o': {'a': None, 'b': True}, 'e': 'on', 'x': '1.5',}"#,
    ];
    let edits = vec((any::<usize>(), 0..3_usize, prop::sample::select(PIECES)), 1..4);
    ((any::<u8>(), any::<u8>()), prop::sample::select(sound.to_vec()), edits).prop_map(
        |((a, b), text, edits)| {
            let mut text = text.to_owned();
            for (place, length, piece) in edits {
                let from = text.floor_char_boundary(place % (text.len() + 1));
                let to = text.ceil_char_boundary((from + length).min(text.len()));
                text.replace_range(from..to, piece);
            }
            [vec![a, b], text.into_bytes()].concat()
        },
    )
}

/// The number of cases: `KOBOSHI_CASES`, or this one.
fn cases(count: u32) -> ProptestConfig {
    let set = std::env::var("KOBOSHI_CASES").ok().and_then(|cases| cases.parse().ok());
    ProptestConfig { cases: set.unwrap_or(count), failure_persistence: None, ..ProptestConfig::default() }
}

#[test]
fn any_bytes_are_taken() {
    let bench = Bench::new();
    let noise = vec(any::<u8>(), 0..200);
    proptest!(cases(8000), |(data in prop_oneof![1 => noise, 4 => wordy(), 4 => edited()])| bench.args(&data));
}

/// A value of JSON, printed in one of several ways.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,12}".prop_map(Into::into),
        vec(prop::sample::select(PIECES), 0..4).prop_map(|pieces| pieces.concat().into()),
    ];
    let nested = leaf.prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Into::into),
            prop::collection::hash_map(".{0,6}", inner, 0..5)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    });
    prop::collection::hash_map("[a-z\"\\\\ ]{0,6}", nested, 0..6)
        .prop_map(|members| serde_json::Value::Object(members.into_iter().collect()))
}

#[test]
fn a_valid_document_passes_unchanged_and_reads_the_same_when_it_must_be_read() {
    let policy = ArgsPolicy::default();
    proptest!(cases(3000), |(value in json(), pretty in any::<bool>())| {
        let text = if pretty { serde_json::to_string_pretty(&value).unwrap() } else { value.to_string() };
        prop_assert_eq!(check(&text, None, Finish::Unknown, &policy), Verdict::Valid);
        // A comma too many sends the same document through the tolerant reader.
        if let Some(end) = text.rfind('}').filter(|_| !value.as_object().unwrap().is_empty()) {
            let broken = format!("{},{}", text[..end].trim_end(), &text[end..]);
            let verdict = check(&broken, None, Finish::Unknown, &policy);
            let read = verdict.json(&broken).map(exact);
            prop_assert_eq!(read, Some(exact(&text)), "{}", broken);
        }
    });
}

/// Depth, width and length that would break a reader which recurses, backtracks or copies without a bound.
#[test]
fn monsters_are_survived_on_a_small_stack() {
    let monsters = || {
        [
            "[".repeat(100_000),
            "{".repeat(100_000),
            "\"".repeat(100_000),
            "{\"a\":".repeat(20_000),
            "\\".repeat(100_000),
            format!("{{\"a\": \"{}\"}}", "\\".repeat(100_000)),
            format!("{{\"a\": \"{}\"}}", "x\"".repeat(50_000)),
            format!("{{\"a\": \"{}\"}}", "\", \"b\": \"".repeat(10_000)),
            format!("{{\"a\": \"x {}}}", "\"y\", ".repeat(10_000)),
            format!("{{\"a\": [{}]}}", "\"y\" \"z\", ".repeat(10_000)),
            format!("{{\"a\": \"x {}\"}}", "\"}".repeat(40_000)),
            "{}".repeat(40_000),
            "a:a:".repeat(20_000),
            "{a:{a:{a:".repeat(10_000),
            "<think>".repeat(10_000),
            "<parameter=a>".repeat(7_000),
            "//\n".repeat(30_000),
            format!("{{{}\"a\":1}}", "/**/".repeat(20_000)),
            format!("{{\"a\": \"x{}", "\" // ".repeat(20_000)),
            format!("{{\"a\": \"x{}", "\" ”, ".repeat(15_000)),
            "f(".repeat(40_000),
            "「".repeat(30_000),
            format!("{{{}}}", (0..6_000).map(|n| format!("\"k{n}\": 1")).collect::<Vec<_>>().join(",")),
            format!("{{{},}}", "\"k\": 1,".repeat(10_000)),
            format!("{{\"a\": '''{}", "''' ".repeat(20_000)),
            (0..12).fold("{\"city\": 1}".to_owned(), |text, _| serde_json::json!(text).to_string()),
        ]
    };
    let small = std::thread::Builder::new().stack_size(256 * 1024);
    let survived = small.spawn(move || {
        let bench = Bench::new();
        for monster in monsters() {
            for choice in 0..4_u8 {
                bench.args(&[&[choice, 19], monster.as_bytes()].concat());
            }
        }
    });
    survived.unwrap().join().unwrap();
}

#[test]
fn a_feed_knows_when_the_object_is_complete_and_how_much_is_held() {
    let text = r#"  {"a": "}\"]", "b": [{"c": 1}]}  "#;
    let mut feed = Feed::new(ArgsPolicy::default());
    for (at, letter) in text.char_indices() {
        let progress = feed.push(&letter.to_string());
        assert_eq!(progress.complete, at + 1 >= text.trim_end().len(), "at {at}");
        assert_eq!(progress.buffered, at + 1);
    }
    assert_eq!(feed.finish(None, Finish::Done), Verdict::Valid);
    assert!(!feed.push("{").complete, "something follows");
}

#[test]
fn a_feed_is_bounded_and_says_so() {
    let policy = ArgsPolicy::default().with(|policy| {
        policy.max_bytes = 10;
    });
    let mut feed = Feed::new(policy);
    feed.push("{\"a\":");
    for _ in 0..1000 {
        assert!(feed.push("\"12345678\"").buffered <= 10);
    }
    let verdict = feed.finish(None, Finish::Done);
    assert_eq!(verdict.refusal().map(|refusal| refusal.defect), Some(Defect::TooLong));
}

#[test]
fn glued_calls_are_refused_as_one_and_split_on_request() {
    let schema = ToolSchema::parse(r#"{"type": "object", "required": ["n"]}"#).unwrap();
    let policy = ArgsPolicy::default();
    let glued = "{\"n\": 3}{\"n\": \"}{\"}\n{\"n\": 11}";
    let refused = check(glued, Some(&schema), Finish::Done, &policy);
    assert_eq!(refused.refusal().map(|refusal| refusal.defect), Some(Defect::SeveralObjects));
    let pieces = split_calls(glued, Some(&schema), &policy).unwrap();
    assert_eq!(pieces, ["{\"n\": 3}", "{\"n\": \"}{\"}", "{\"n\": 11}"]);
    for broken in
        ["{\"n\": 3}{\"m\": 9}", "{\"n\": 3}{\"n\": ", "{\"n\": 3} and {\"n\": 4}", "", "[]", "{\"n\":1,}"]
    {
        assert!(split_calls(broken, Some(&schema), &policy).is_err(), "{broken}");
    }
}
