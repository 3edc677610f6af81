//! `koboshi repair`, as a script uses it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use common::{json, run_with, scratch};

const SCHEMA: &str = r#"{"type": "object", "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}}, "required": ["x"]}"#;

fn repair(args: &[&str], input: &str) -> common::Out {
    let args: Vec<&str> = std::iter::once("repair").chain(args.iter().copied()).collect();
    run_with(&args, &[], input)
}

#[test]
fn valid_arguments_pass_byte_for_byte() {
    let out = repair(&[], "{\"x\":  1.10}\n");
    assert_eq!((out.status, out.text.as_str(), out.error.as_str()), (0, "{\"x\":  1.10}\n", ""));
}

#[test]
fn what_has_one_reading_is_mended_and_explained_on_demand() {
    let schema = scratch("repair-schema.json", SCHEMA);
    let out = repair(&["--schema", &schema, "--explain"], "{x: 1, 'y': \"2\",}");
    assert_eq!(out.status, 0, "a repair is a success: {}", out.error);
    let value: serde_json::Value = serde_json::from_str(&out.text).unwrap();
    assert_eq!(value, serde_json::json!({"x": 1, "y": 2}));
    for change in ["key_quoted", "quotes_changed", "to_number", "comma_dropped"] {
        assert!(out.error.contains(change), "{}", out.error);
    }
    assert_eq!(repair(&["--schema", &schema], "{x: 1}").error, "", "silent unless asked");
}

#[test]
fn a_script_can_tell_a_repair_from_valid_arguments() {
    assert_eq!(repair(&["--exit-code"], "{x: 1}").status, 1);
    assert_eq!(repair(&["--exit-code"], "{\"x\": 1}").status, 0);
    assert_eq!(repair(&["--exit-code", "--strict"], "{x: 1}").status, 2);
}

#[test]
fn what_is_refused_prints_nothing_but_the_reason() {
    let cut = repair(&["--finish", "length"], "{\"content\": \"half a f");
    assert_eq!((cut.status, cut.text.as_str()), (2, ""));
    assert!(cut.error.contains("cut_by_limit"), "{}", cut.error);
    let strict = repair(&["--strict"], "{x: 1}");
    assert_eq!((strict.status, strict.text.as_str()), (2, ""));
    let out = repair(&["--format", "json"], "{\"a\": 1, \"a\": 2}");
    assert_eq!(out.status, 2);
    let document = json(&out);
    assert_eq!((&document["outcome"], &document["json"]), (&"refused".into(), &serde_json::Value::Null));
    assert_eq!(document["refusal"]["defect"], "duplicate_key");
}

#[test]
fn bad_input_is_reported_with_its_place() {
    let out = repair(&["/there/is/none"], "");
    assert_eq!(out.status, 2);
    assert!(out.error.contains("/there/is/none"), "{}", out.error);
    let schema = scratch("repair-no-schema.json", "{\"type\": 5}");
    let out = repair(&["--schema", &schema], "{}");
    assert_eq!(out.status, 2);
    assert!(out.error.contains("repair-no-schema.json"), "{}", out.error);
}

#[test]
fn a_secret_in_a_refusal_is_not_shown() {
    let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    let out = repair(&["--strict"], &format!("{{key: \"{key}\"}}"));
    assert!(!out.error.contains(key), "{}", out.error);
}

#[test]
fn a_finish_reason_that_is_not_known_is_said_to_be() {
    let out = repair(&["--finish", "truncated"], "{\"x\": 1}");
    assert_eq!((out.status, out.text.as_str()), (0, "{\"x\": 1}\n"), "it changes nothing else");
    assert!(out.error.contains("truncated") && out.error.contains("max_tokens"), "{}", out.error);
    for known in ["length", "MAX_TOKENS", "tool_calls"] {
        assert_eq!(repair(&["--finish", known], "{\"x\": 1}").error, "", "{known}");
    }
}

#[test]
fn japanese_readers_get_japanese() {
    let schema = scratch("repair-schema-ja.json", SCHEMA);
    let no_schema = scratch("repair-no-schema-ja.json", "{\"type\": 5}");
    let no_json = scratch("repair-no-json-ja.json", "nothing");
    for (args, input, words) in [
        (&["--explain"][..], "{x: 1}", "キーを引用符で囲みました（key_quoted、1 行目 2 文字目）: x\n"),
        (
            &["--schema", &schema, "--explain"],
            "{\"x\": \"1\"}",
            "スキーマに合わせて文字列を数値にしました（to_number、",
        ),
        (
            &["--strict"],
            "{x: 1}",
            "拒否: JSON としても、ほかの既知の記法としても読み取れません（unreadable、1 行目 2 文字目）",
        ),
        (&["--schema", &schema], "{\"y\": 1}", "拒否: 引数がスキーマに合っていません"),
        (&["--finish", "truncated"], "{}", "--finish truncated は未知の値のため"),
        (&["/there/is/none"], "", "「/there/is/none」を読み取れません。ファイルがありません。"),
        (&["--schema", &no_schema], "{}", "」は JSON Schema として使えません: "),
        (&["--schema", &no_json], "{}", "」は JSON ではありません: "),
    ] {
        let flag = repair(&[args, &["--lang", "ja"]].concat(), input);
        assert!(flag.error.contains(words), "{words}: {}", flag.error);
        let all = [&["repair"], args].concat();
        let locale = run_with(&all, &[("LANG", "ja_JP.UTF-8")], input);
        assert_eq!((locale.error, locale.text), (flag.error, flag.text), "the language of the environment");
    }
}

/// A bracket is no separator, and places are counted from one.
#[test]
fn a_wide_bracket_is_named_as_a_bracket() {
    let wide = "｛\"path\"：\"a\"｝";
    let out = repair(&["--explain"], wide);
    assert_eq!(out.text.trim(), "{\"path\":\"a\"}", "{}", out.error);
    assert!(out.error.contains("(bracket_read, line 1, column 1): ｛\n"), "{}", out.error);
    assert!(out.error.contains("(bracket_read, line 1, column 12): ｝\n"), "{}", out.error);
    assert!(out.error.contains("(separator_read, line 1, column 8): ："), "{}", out.error);
    let ja = repair(&["--explain", "--lang", "ja"], wide).error;
    assert!(ja.contains("（bracket_read、1 行目 1 文字目）"), "{ja}");
}
