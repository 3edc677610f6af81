//! `koboshi explain` as a person or a script uses it: the real binary, real files, real pipes.

mod common;

use common::{json, koboshi, run, run_with, scratch};
use serde_json::Value;

const LIMIT: &str = "You've hit your session limit · resets 9:27pm (UTC)\n";
const NOW: &str = "2026-11-15T19:27:27Z";

#[test]
fn it_says_what_failed_what_to_do_and_until_when() {
    let log = scratch("limit.log", LIMIT);
    let out = run(&["explain", &log, "--exit-code", "1", "--now", NOW, "--lang", "en"]);
    assert_eq!(out.status, 1, "a fault was found");
    for part in [
        "quota_exceeded",
        "KBS-3002",
        "What to do",
        "2026-11-15 21:27 UTC",
        "1h 59m 33s",
        "everything on this account",
        "line 1",
        "quota.window",
        LIMIT.trim(),
    ] {
        assert!(out.text.contains(part), "{part} in\n{}", out.text);
    }
    assert!(!out.text.contains('\u{1b}'), "no colours outside a terminal");
}

#[test]
fn it_speaks_japanese_on_demand_and_by_environment() {
    let log = scratch("ja.log", LIMIT);
    let asked = run(&["explain", &log, "--exit-code", "1", "--now", NOW, "--lang", "ja"]);
    assert!(
        asked.text.contains("次にすること")
            && asked.text.contains("利用枠（数時間または 1 週間ごと）を使い切りました"),
        "{}",
        asked.text
    );
    assert!(asked.text.contains("1 時間 59 分 33 秒"), "{}", asked.text);
    let by_environment =
        run_with(&["explain", &log, "--exit-code", "1", "--now", NOW], &[("LC_ALL", "ja_JP.UTF-8")], "");
    assert_eq!(by_environment.text, asked.text);
}

#[test]
fn json_holds_everything_a_script_needs() {
    let log = scratch("json.log", LIMIT);
    let value =
        json(&run(&["explain", &log, "--exit-code", "1", "--now", NOW, "--format", "json", "--lang", "en"]));
    assert_eq!(value["ok"], false);
    let fault = &value["fault"];
    assert_eq!(fault["kind"], "quota_exceeded");
    assert_eq!(fault["sub"], "window");
    assert_eq!(fault["code"], "KBS-3002");
    assert_eq!(fault["reason"], "quota");
    assert_eq!(fault["wait"]["seconds"], 7173.0);
    assert_eq!(fault["wait"]["until"], "2026-11-15T21:27:00Z");
    assert_eq!(fault["advice"]["same"], false);
    assert_eq!(fault["advice"]["other"], true);
    assert_eq!(fault["evidence"]["line"], 1);
    assert_eq!(fault["evidence"]["rule"], "quota.window");
    assert!(fault["suggestion"].as_str().unwrap().len() > 10);
}

#[test]
fn a_good_run_is_reported_as_good() {
    let log = scratch("good.log", "All 12 tests pass. Work committed.\n");
    let out = run(&["explain", &log, "--exit-code", "0", "--lang", "en"]);
    assert_eq!((out.status, out.text.as_str()), (0, "✓ No problem was found.\n"));
    assert_eq!(json(&run(&["explain", &log, "--exit-code", "0", "--format", "json"]))["fault"], Value::Null);
}

#[test]
fn standard_input_is_read_with_or_without_a_dash() {
    for args in [&["explain", "--now", NOW][..], &["explain", "-", "--now", NOW]] {
        let out = run_with(args, &[("LC_ALL", "C")], LIMIT);
        assert!(out.text.contains("quota_exceeded"), "{}", out.text);
    }
}

#[test]
fn answers_are_known_by_their_options_or_their_look() {
    let body = "{\"error\":{\"message\":\"Too many requests\"}}";
    let with_options = run_with(
        &["explain", "--status", "429", "--header", "Retry-After: 20", "--format", "json"],
        &[],
        body,
    );
    let fault = json(&with_options)["fault"].clone();
    assert_eq!((&fault["kind"], &fault["wait"]["seconds"]), (&"rate_limited".into(), &20.0.into()));
    let response = format!("HTTP/1.1 429 Too Many Requests\r\nretry-after: 20\r\n\r\n{body}");
    let by_look = json(&run_with(&["explain", "--format", "json"], &[], &response));
    assert_eq!((&by_look["read_as"], &by_look["fault"]["wait"]["seconds"]), (&"answer".into(), &20.0.into()));
    let stream = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    assert_eq!(json(&run_with(&["explain", "--format", "json"], &[], stream))["fault"]["kind"], "overloaded");
    let bare = json(&run_with(&["explain", "--format", "json"], &[], body));
    assert_eq!(bare["fault"]["kind"], "rate_limited");
}

#[test]
fn tool_outputs_get_their_category() {
    let out = run_with(
        &["explain", "--kind", "tool", "--format", "json", "--lang", "en"],
        &[],
        "bash: line 1: rg: command not found\n",
    );
    let fault = json(&out)["fault"].clone();
    assert_eq!((&fault["kind"], &fault["category"]), (&"tool_failed".into(), &"missing_command".into()));
    let steps = fault["further_steps"].as_array().unwrap();
    assert!(
        steps.len() >= 2 && steps[0].as_str().unwrap().contains("installed"),
        "the guard's remedies: {steps:?}"
    );
    let guessed = json(&run_with(
        &["explain", "--format", "json"],
        &[],
        "ModuleNotFoundError: No module named 'pandas'\n",
    ));
    assert_eq!(guessed["fault"]["category"], "missing_module");
}

#[test]
fn a_client_error_text_is_read_as_a_broken_connection() {
    let text = "error sending request: tcp connect error: Connection refused (os error 111)";
    let value = json(&run_with(&["explain", "--kind", "answer", "--format", "json"], &[], text));
    assert_eq!(value["fault"]["kind"], "connection_refused");
}

#[test]
fn secrets_never_come_out() {
    let secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789";
    let log = format!("Error: 401 Incorrect API key provided: {secret}. Authorization: Bearer {secret}\n");
    for format in ["text", "json"] {
        let out = run_with(&["explain", "--exit-code", "1", "--format", format], &[], &log);
        assert!(out.text.contains("unauthorized") && !out.text.contains("abcdefghijkl"), "{}", out.text);
    }
}

#[test]
fn a_prefix_of_ones_own_is_used() {
    let out = run_with(&["explain", "--prefix", "MIRA", "--exit-code", "1"], &[], LIMIT);
    assert!(out.text.contains("MIRA-3002"));
}

#[test]
fn a_huge_log_is_read_from_its_end() {
    let mut text = "The agent works and works and has nothing to say.\n".repeat(200_000);
    text.push_str(LIMIT);
    let log = scratch("huge.log", &text);
    let value = json(&run(&["explain", &log, "--exit-code", "1", "--now", NOW, "--format", "json"]));
    assert_eq!(value["fault"]["kind"], "quota_exceeded");
    assert_eq!(
        (&value["fault"]["evidence"]["line"], &value["fault"]["evidence"]["line_from_end"]),
        (&1.into(), &true.into())
    );
    let piped =
        json(&run_with(&["explain", "--exit-code", "1", "--now", NOW, "--format", "json"], &[], &text));
    assert_eq!(piped["fault"], value["fault"]);
}

#[test]
fn bad_input_is_reported_with_its_place() {
    for (file, lang, part) in [
        ("no-such-file.log", "en", "cannot read no-such-file.log"),
        ("no-such-file.log", "ja", "「no-such-file.log」を読み取れません。ファイルがありません。"),
        (".", "en", "it is a directory"),
        (".", "ja", "フォルダーです。"),
    ] {
        let out = run(&["explain", file, "--lang", lang]);
        assert_eq!((out.status, out.text.as_str()), (2, ""));
        assert!(out.error.contains(part), "{}", out.error);
    }
    let rules = scratch("bad-rules.yaml", "provider:\n  - id: x\n    kind: quota\n    when: [y]\n");
    let out = run_with(&["explain", "--rules", &rules], &[], LIMIT);
    assert_eq!(out.status, 2);
    assert!(
        out.error.contains("bad-rules.yaml:3:") && out.error.contains("unknown kind `quota`"),
        "{}",
        out.error
    );
    for args in [
        &["explain", "--now", "yesterday"][..],
        &["explain", "--status", "42"],
        &["explain", "--header", "nocolon"],
        &["explain", "--lang", "tlh"],
        &["explain", "--zone", "Mars/Olympus"],
    ] {
        assert_eq!(run_with(args, &[], LIMIT).status, 2, "{args:?}");
    }
}

#[test]
fn a_rule_file_of_ones_own_speaks_its_own_words() {
    let rules = scratch(
        "own.yaml",
        "tool:\n  - id: tool.licence\n    category: licence\n    when: [licence server]\n    message: {en: No licence was free., ja: 空きがありません。}\n    suggestion: {en: Ask for a seat., ja: 依頼してください。}\n",
    );
    let args = ["explain", "--kind", "tool", "--is-error", "true", "--rules", &rules, "--lang", "ja"];
    let out = run_with(&args, &[], "error: the licence server refused\n");
    assert!(
        out.text.contains("空きがありません。") && out.text.contains("依頼してください。"),
        "{}",
        out.text
    );
    let by_environment = run_with(
        &["explain", "--kind", "tool", "--is-error", "true"],
        &[("KOBOSHI_RULES", &rules), ("LC_ALL", "C")],
        "error: the licence server refused\n",
    );
    assert!(by_environment.text.contains("Ask for a seat."), "{}", by_environment.text);
}

#[test]
fn a_reader_that_leaves_early_is_no_failure() {
    use std::io::Read;
    use std::process::Stdio;
    let mut child = koboshi(&["codes", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
    assert!(child.wait().unwrap().success() && error.is_empty(), "{error}");
}

/// That the run failed is known from the exit code; what failed stands in the text either way.
#[test]
fn an_exit_code_does_not_hide_what_the_text_says() {
    let traceback = "Traceback (most recent call last):\n  File \"x.py\", line 1, in <module>\nModuleNotFoundError: No module named 'foo'\n";
    for (text, category) in
        [(traceback, "missing_module"), ("cp: error writing 'out': No space left on device\n", "resource")]
    {
        let log = scratch("known.log", text);
        let without = json(&run(&["explain", &log, "--format", "json"]));
        let with = json(&run(&["explain", &log, "--format", "json", "--exit-code", "1"]));
        assert_eq!(with["fault"]["category"], category);
        assert_eq!(with["fault"], without["fault"]);
        let ended = json(&run(&["explain", &log, "--format", "json", "--exit-code", "137"]));
        assert_eq!(ended["fault"]["kind"], "process_failed", "a signal ended it");
    }
}

#[test]
fn how_sure_it_is_agrees_with_what_it_found() {
    let unknown = scratch("unknown.log", "Error: the frobnicator is upside down\n");
    let said = run(&["explain", &unknown, "--lang", "en"]).text;
    assert!(said.contains("a line looks like an error") && !said.contains("only a status"), "{said}");
    let empty = scratch("empty.log", "");
    let said = run(&["explain", &empty, "--exit-code", "1", "--lang", "en"]).text;
    assert!(said.contains("The log is empty") && !said.contains("last lines"), "{said}");
}

#[test]
fn a_target_that_an_operator_took_out_of_use_is_the_operators_doing() {
    let body = r#"{"error":{"message":"m","koboshi":{"kind":"cooling_down","sub":"operator","errorCode":"KBS-7003","message":"m",
        "suggestion":"s","retryAfterSeconds":60,"retryable":true,"lang":"en"}}}"#;
    let said = run(&["explain", &scratch("operator.json", body), "--lang", "en"]).text;
    assert!(said.contains("an operator of the gateway") && said.contains("uses this model"), "{said}");
    let stated = body.replace("\"lang\"", "\"scope\":\"account\",\"lang\"");
    let said = run(&["explain", &scratch("operator-account.json", &stated), "--lang", "en"]).text;
    assert!(
        said.contains("an operator of the gateway") && said.contains("everything on this account"),
        "{said}"
    );
}

/// No timeout of the caller passed: raising one would not help.
#[test]
fn a_proxys_page_about_a_timeout_is_the_proxys() {
    let page = "<html><head><title>504 Gateway Time-out</title></head><body><center><h1>504 Gateway Time-out</h1></center><hr><center>nginx/1.25</center></body></html>";
    let answer = format!("HTTP/1.1 504 Gateway Time-out\r\ncontent-type: text/html\r\n\r\n{page}");
    for (lang, words) in [("en", "a proxy or CDN in front of it"), ("ja", "その手前のプロキシや CDN")]
    {
        let out = run_with(&["explain", "-", "--lang", lang], &[], &answer);
        assert!(out.text.contains("timeout / upstream") && out.text.contains(words), "{}", out.text);
    }
}

/// The provider gave up in its own words, as JSON or plain text: no timeout of this machine had a part in it.
#[test]
fn a_timeout_that_the_provider_answers_is_the_providers() {
    for (status, body) in [
        ("504 Gateway Timeout", r#"{"error":{"message":"The request timed out"}}"#),
        ("504 Gateway Timeout", "upstream request timeout"),
        ("408 Request Timeout", r#"{"error":{"message":"Request timeout"}}"#),
        ("504 Gateway Timeout", "{}"),
    ] {
        let answer = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n\r\n{body}");
        let said = run_with(&["explain", "-", "--lang", "en"], &[], &answer).text;
        assert!(said.contains("timeout / upstream") && said.contains("does not help"), "{said}");
    }
}

/// A proxy on the way wants a login of its own: the key of the provider was not looked at.
#[test]
fn a_proxys_login_is_no_wrong_key() {
    for log in [
        "requests.exceptions.ProxyError: Tunnel connection failed: 407 Proxy Authentication Required",
        "407 Proxy Authentication Required",
        "プロキシ認証が必要です (407)",
        "プロキシサーバーで認証が必要です",
    ] {
        let said = run_with(&["explain", "-", "--lang", "en"], &[], log).text;
        assert!(said.contains("connection_failed / proxy") && said.contains("No"), "{log}\n{said}");
    }
    let answer = "HTTP/1.1 407 Proxy Authentication Required\r\n\r\n{\"error\":{\"message\":\"authentication required\"}}";
    let said = run_with(&["explain", "-", "--lang", "en"], &[], answer).text;
    assert!(said.contains("connection_failed / proxy"), "{said}");
}

/// The advice "retrying does not help" and the line about retries say the same.
#[test]
fn what_no_retry_cures_is_not_said_to_pass() {
    for log in
        ["SSL: CERTIFICATE_VERIFY_FAILED certificate verify failed", "407 Proxy Authentication Required"]
    {
        let fault = json(&run_with(&["explain", "-", "--format", "json"], &[], log))["fault"].clone();
        let advice = &fault["advice"];
        assert_eq!((&advice["same"], &advice["later"]), (&false.into(), &false.into()), "{fault}");
    }
}

/// What a machine lacks, in the words of its own language.
#[test]
fn a_full_machine_and_a_connection_that_times_out_are_known_in_japanese() {
    for (log, head) in [
        ("メモリを確保できません", "process_failed / memory"),
        ("メモリが不足しています", "process_failed / memory"),
        ("メモリ不足のため終了しました", "process_failed / memory"),
        ("No space left on device", "tool_failed / resource"),
        ("デバイスに空き領域がありません", "tool_failed / resource"),
        ("接続がタイムアウトしました", "timeout / connect"),
    ] {
        let said = run_with(&["explain", "-", "--lang", "ja"], &[], log).text;
        assert!(said.contains(head), "{log}\n{said}");
    }
}

/// A log in which Koboshi took no part does not name it as a cause.
#[test]
fn a_500_of_a_provider_is_the_providers() {
    let log =
        "openai.InternalServerError: Error code: 500 - {'error': {'message': 'The server had an error'}}";
    for (lang, words) in
        [("en", "The AI provider had an internal error"), ("ja", "AI プロバイダーの内部でエラー")]
    {
        let said = run_with(&["explain", "-", "--lang", lang], &[], log).text;
        assert!(said.contains(words) && !said.contains("Koboshi"), "{said}");
    }
}
