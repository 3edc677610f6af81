//! What a person reads in `koboshi explain`: times in their zone, rows that stay in line, whose failure it was.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use common::served::Served;
use common::{json, koboshi, run, run_with};
use koboshi_testkit::Client;
use serde_json::Value;
use std::io::Write;
use std::process::Stdio;
use unicode_width::UnicodeWidthStr;

const NOW: &str = "2026-11-16T20:00:00Z";
const TOKYO: &str = "You've hit your limit · resets 3pm (Asia/Tokyo)\n";
const JAPANESE: &str = "エラー: 本日の利用上限に達しました。明日の午前9時以降にもう一度お試しください。\n";
const BILLING: &str = "openai.RateLimitError: Error code: 429 - {'error': {'message': 'You exceeded your current quota, please check \
     your plan and billing details.', 'type': 'insufficient_quota', 'code': 'insufficient_quota'}}\n";
const KUBECTL: &str =
    "The connection to the server 192.0.2.7:6443 was refused - did you specify the right host or port?\n";
const NPM: &str = "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error\n\
    npm error Found: react@19.1.0\nnpm error Could not resolve dependency:\n\
    npm error peer react@\"^18.0.0\" from react-datepicker@4.25.0\n\
    npm error A complete log of this run can be found in: /home/ci/.npm/_logs/debug-0.log\n";
const RBAC: &str = "Error from server (Forbidden): pods is forbidden: User \"ci\" cannot list resource \"pods\" in API group \"\"\n";
const GIT: &str = "remote: Permission to acme/site.git denied to release-bot.\n\
    fatal: unable to access 'https://git.example.com/acme/site.git/': The requested URL returned error: 403\n";

/// The fault of a text, with these options.
fn fault(text: &str, args: &[&str]) -> Value {
    let args: Vec<&str> = ["explain", "--format", "json", "--now", NOW].iter().chain(args).copied().collect();
    json(&run_with(&args, &[], text))["fault"].clone()
}

fn said(text: &str, lang: &str, environment: &[(&str, &str)]) -> String {
    run_with(&["explain", "--now", NOW, "--lang", lang], environment, text).text
}

/// A pipeline that lost its log must not look healthy.
#[test]
fn empty_and_binary_inputs_are_errors_in_both_languages() {
    let folder = tempfile::tempdir().unwrap();
    let noise: Vec<u8> = (0..65_536u32).map(|at| at.wrapping_mul(2_654_435_761).to_le_bytes()[2]).collect();
    let explain = |args: &[&str], bytes: &[u8]| {
        let mut child = koboshi(args);
        child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let _ = child.stdin.take().unwrap().write_all(bytes);
        let out = child.wait_with_output().unwrap();
        (out.status.code(), out.stdout.len(), String::from_utf8(out.stderr).unwrap())
    };
    for (name, bytes, en, ja) in [
        ("empty", &b""[..], "is empty", "が空です"),
        ("blank", b"\n \r\n", "is empty", "が空です"),
        ("binary", &noise, "is not text", "はテキストではありません"),
        ("jis", b"\x1b$B%(%i!<\x1b(B\n", "-f ISO-2022-JP", "-f ISO-2022-JP"),
    ] {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).unwrap();
        let file = file.display().to_string();
        for (lang, words) in [("en", en), ("ja", ja)] {
            for args in [&["explain", "--lang", lang, &file][..], &["explain", "--lang", lang]] {
                let (status, printed, error) = explain(args, bytes);
                assert_eq!((status, printed), (Some(2), 0), "{args:?}: {error}");
                assert!(error.contains(words), "{args:?}: {error}");
            }
        }
    }
    let shift_jis = b"\x83G\x83\x89\x81[: \x83\x8c\x81[\x83g\x90\xa7\x8c\xc0\n";
    for (args, step) in [
        (&["explain", "--lang", "en"][..], "iconv -f CP932 -t UTF-8 FILE | koboshi explain"),
        (&["explain", "--lang", "ja"], "iconv -f CP932 -t UTF-8 FILE | koboshi explain"),
        (&["repair", "--lang", "ja"], "iconv -f CP932 -t UTF-8 FILE | koboshi repair"),
    ] {
        let (status, printed, error) = explain(args, shift_jis);
        assert_eq!((status, printed), (Some(2), 0), "{args:?}: {error}");
        assert!(error.contains(step), "{args:?}: {error}");
    }
    // A status or an exit code says something without any text.
    assert_eq!(run_with(&["explain", "--status", "429"], &[], "").status, 1);
    assert_eq!(run_with(&["explain", "--exit-code", "137"], &[], "").status, 1);
    assert_eq!(run_with(&["explain", "--exit-code", "0"], &[], "").status, 0);
}

#[test]
fn the_failures_of_tools_are_not_the_providers() {
    for (text, category, line) in [
        (NPM, "version_conflict", 2),
        (RBAC, "permission", 1),
        (GIT, "permission", 1),
        (KUBECTL, "network", 1),
        ("ssh: connect to host build.example.com port 22: Connection refused\n", "network", 1),
        (
            "fatal: unable to access 'https://git.example.com/a.git/': Could not resolve host: git.example.com\n",
            "network",
            1,
        ),
    ] {
        let fault = fault(text, &[]);
        assert_eq!((&fault["kind"], &fault["category"]), (&"tool_failed".into(), &category.into()), "{text}");
        assert_eq!(fault["evidence"]["line"], line, "{text}");
        for (lang, words) in [("en", ["AI provider", "base_url"]), ("ja", ["AI プロバイダー", "base_url"])]
        {
            let said = said(text, lang, &[]);
            assert!(!words.iter().any(|word| said.contains(word)), "{said}");
        }
    }
    // With an exit code the text is a log, and the tool is still the tool.
    let fault = fault(KUBECTL, &["--exit-code", "1"]);
    assert_eq!((&fault["kind"], &fault["category"]), (&"tool_failed".into(), &"network".into()));
}

#[test]
fn the_cause_of_a_failed_connection_is_found_beside_its_wrapper() {
    for text in [
        "openai.APIConnectionError: Connection error.\n  caused by: [Errno -2] Name or service not known\n",
        "openai.APIConnectionError: Connection error.\n- Name or service not known\n",
        "httpx.ConnectError: [Errno -2] Name or service not known\n\nThe above exception was the direct cause of the following \
         exception:\n\nTraceback (most recent call last):\n  File \"x.py\", line 3, in <module>\nopenai.APIConnectionError: Connection error.\n",
    ] {
        let fault = fault(text, &[]);
        assert_eq!((&fault["kind"], &fault["sub"]), (&"connection_failed".into(), &"dns".into()), "{text}");
    }
    assert_eq!(fault("openai.APIConnectionError: Connection error.\n", &[])["sub"], Value::Null);
}

#[test]
fn times_are_in_the_readers_zone_with_the_stated_one_beside_it() {
    let utc = said(TOKYO, "en", &[]);
    assert!(utc.contains("2026-11-17 06:00 UTC (10h left)\n"), "{utc}");
    assert!(utc.contains("The text says 15:00 UTC+09."), "{utc}");
    let paris = said(TOKYO, "en", &[("TZ", "Europe/Paris")]);
    assert!(paris.contains("2026-11-17 07:00 CET (10h left)"), "{paris}");
    let tokyo = said(TOKYO, "ja", &[("TZ", "Asia/Tokyo")]);
    assert!(tokyo.contains("2026-11-17 15:00（日本時間）まで（あと 10 時間）"), "{tokyo}");
    assert!(!tokyo.contains("元のテキストの表記"), "it is the same: {tokyo}");
    let asked = run_with(&["explain", "--now", NOW, "--zone", "America/New_York"], &[], TOKYO).text;
    assert!(asked.contains("2026-11-17 01:00 EST"), "{asked}");
    // An offset in --now is where the reader is; `Z` says only when it is.
    let offset =
        run_with(&["explain", "--now", "2026-11-17T05:00:00+09:00"], &[("TZ", "Europe/Paris")], TOKYO).text;
    assert!(offset.contains("2026-11-17 15:00 UTC+09 (10h left)"), "{offset}");
    let wait = fault(TOKYO, &["--zone", "Asia/Tokyo"])["wait"].clone();
    assert_eq!(
        (&wait["until"], &wait["until_local"]),
        (&"2026-11-17T06:00:00Z".into(), &"2026-11-17T15:00:00+09:00".into())
    );
    assert_eq!(wait["zone"]["stated"], "+09");
}

#[test]
fn an_assumed_zone_is_named() {
    let en = said("You've hit your limit · resets 3pm\n", "en", &[]);
    assert!(
        en.contains("2026-11-17 15:00 UTC") && en.contains("The text names no time zone; UTC was assumed."),
        "{en}"
    );
    // A machine that was never told its zone: a Japanese text is read in the time of Japan, and that is said.
    let ja = said(JAPANESE, "ja", &[("TZ", "")]);
    assert!(ja.contains("2026-11-18 00:00（UTC）まで"), "the reader's zone, whatever the language: {ja}");
    assert!(ja.contains("タイムゾーンの記載がないため、日本時間とみなしました。"), "{ja}");
    let en = said(JAPANESE, "en", &[("TZ", "")]);
    assert!(en.contains("2026-11-18 00:00 UTC") && en.contains("JST was assumed"), "{en}");
    let length = said("Your quota will reset after 22m55s.\n", "ja", &[("TZ", "")]);
    assert!(length.contains("（UTC）") && !length.contains("日本時間"), "{length}");
    // A zone that was chosen holds.
    let paris = said(JAPANESE, "ja", &[("TZ", "Europe/Paris")]);
    assert!(paris.contains("2026-11-17 09:00（CET）まで"), "{paris}");
    assert!(paris.contains("記載がないため、CET とみなしました。"), "{paris}");
    assert_eq!(fault(JAPANESE, &["--zone", "UTC"])["wait"]["zone"]["assumed"], "UTC");
    // A length of time needs no zone.
    let length = said("Your quota will reset after 22m55s.\n", "en", &[]);
    assert!(length.contains("22m 55s left") && !length.contains("assumed"), "{length}");
}

#[test]
fn rows_stay_in_line_and_within_the_width() {
    let long = "API Error: 529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"The service is overloaded and says so \
        at some length, which is of no use to anybody but is printed all the same\"}}\n";
    for text in [TOKYO, JAPANESE, BILLING, NPM, RBAC, GIT, KUBECTL, long] {
        for lang in ["en", "ja"] {
            for columns in [60, 80] {
                let out = said(text, lang, &[("COLUMNS", &columns.to_string())]);
                let mut blocks = out.split("\n\n");
                let rows = blocks.nth(1).unwrap();
                let first = rows.lines().next().unwrap();
                // The column is where the text of the first row begins: behind its label and the blanks after it.
                let label = first.split("  ").next().unwrap();
                let column = first.width() - first[label.len()..].trim_start().width();
                for line in rows.lines() {
                    let is_label = !line.starts_with(' ');
                    let (mut before, mut at) = (0, 0);
                    for c in line.chars() {
                        if before >= column {
                            break;
                        }
                        before += c.to_string().width();
                        at += c.len_utf8();
                    }
                    assert_eq!(before, column, "{columns} {line}\n{out}");
                    assert!(line[..at].ends_with("  "), "a blank before the text: {line}\n{out}");
                    assert!(!line[at..].starts_with(' '), "{line}\n{out}");
                    assert!(is_label || line[..at].trim().is_empty(), "{line}");
                }
                for line in out.lines().filter(|line| line.contains(' ')) {
                    assert!(line.width() <= columns, "{columns}: {line}\n{out}");
                }
            }
            // What goes into a pipe is not broken: it can be searched.
            let piped = said(text, lang, &[]);
            assert!(piped.lines().count() <= said(text, lang, &[("COLUMNS", "60")]).lines().count());
        }
    }
}

#[test]
fn an_unpaid_bill_is_the_accounts_and_waiting_is_not_advised() {
    let en = said(BILLING, "en", &[]);
    assert!(en.contains("the account: its balance is used up"), "{en}");
    assert!(
        en.contains("No, not until the cause is fixed. Another provider or model may work right now."),
        "{en}"
    );
    let ja = said(BILLING, "ja", &[]);
    assert!(
        ja.contains("アカウント（残高不足、または支出の上限）")
            && ja.contains("できません。原因を取り除くまで"),
        "{ja}"
    );
    for out in [en, ja, said(NPM, "en", &[]), said(NPM, "ja", &[])] {
        for odd in ["Another target: -", "The same target", "ご自身で", "接続先でもう一度", ": -"]
        {
            assert!(!out.contains(odd), "{odd}: {out}");
        }
    }
}

/// An error answer of a running gateway, saved as `curl -si` prints it, in each dialect and as a bare body.
#[test]
fn koboshis_own_answers_are_read_by_their_fields() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("koboshi.yaml");
    let dialects = [
        ("/v1/chat/completions", r#"{"model":"MODEL","messages":[{"role":"user","content":"hello"}]}"#),
        ("/v1/responses", r#"{"model":"MODEL","input":"hello"}"#),
        (
            "/v1/messages",
            r#"{"model":"MODEL","max_tokens":10,"messages":[{"role":"user","content":"hello"}]}"#,
        ),
        (
            "/v1beta/models/MODEL:generateContent",
            r#"{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}"#,
        ),
    ];
    for (path, body) in dialects {
        // A store of its own each time, so that no cooldown is in the way.
        let store = tempfile::tempdir().unwrap();
        std::fs::write(&config, "routes: {asked: [sim/quota]}\n").unwrap();
        let served = Served::start(&config, &store.path().join("store.db"));
        let mut client = Client::to(served.address);
        let (path, body) = (path.replace("MODEL", "asked"), body.replace("MODEL", "asked"));
        client.send("POST", &path, &[("content-type", "application/json")], body.as_bytes());
        let answer = client.read();
        let own = answer.json()["error"]["koboshi"].clone();
        assert_eq!(own["kind"], "quota_exceeded", "{path}: {}", answer.text());
        let head: String =
            answer.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let saved = format!("HTTP/1.1 {} Error\r\n{head}\r\n{}", answer.status, answer.text());
        for text in [saved, answer.text()] {
            let fault = fault(&text, &["--lang", "en"]);
            assert_eq!(fault["kind"], "quota_exceeded", "{path}");
            assert_eq!(
                (&fault["confidence"], &fault["evidence"]["rule"]),
                (&"high".into(), &"koboshi.error".into()),
                "{path}"
            );
            assert_eq!(fault["wait"]["seconds"].as_f64(), own["retryAfterSeconds"].as_f64(), "{path}");
            assert_eq!(fault["message"], own["message"], "{path}");
            let said = said(&text, "en", &[]);
            let message = own["message"].as_str().unwrap();
            let (rows, _) = said.split_once("\n\nFound").unwrap();
            assert_eq!(rows.matches(message).count(), 1, "said once: {said}");
        }
    }
}

#[test]
fn the_sub_and_the_providers_message_are_taken_from_an_own_answer() {
    let body = r#"{"error":{"message":"m","koboshi":{"kind":"invalid_request","sub":"capability","errorCode":"KBS-4004","message":"m",
        "suggestion":"s","detail":"`temperature` is not supported by this model","retryAfterSeconds":null,"retryable":false,"lang":"en"}}}"#;
    let fault = fault(body, &["--lang", "ja"]);
    assert_eq!((&fault["kind"], &fault["sub"]), (&"invalid_request".into(), &"capability".into()));
    assert_eq!(fault["detail"], "`temperature` is not supported by this model");
    assert_eq!(fault["advice"]["later"], false);
}

#[test]
fn the_language_may_stand_before_or_behind_the_command() {
    let before = run_with(&["--lang", "ja", "explain", "--now", NOW], &[], TOKYO);
    assert_eq!(before.text, said(TOKYO, "ja", &[]));
    assert!(before.text.contains("次にすること"), "{}", before.text);
    let codes = |args: &[&str]| run(args).text;
    assert_eq!(codes(&["--lang", "ja", "codes"]), codes(&["codes", "--lang", "ja"]));
    assert!(codes(&["--lang", "ja", "codes"]).contains("API キーが無効です"));
    let store = tempfile::tempdir().unwrap();
    let store = store.path().join("none.db").display().to_string();
    let status = run(&["--lang", "ja", "status", "--store", &store]);
    assert!(status.status == 0 && status.text.contains("none.db はありません"), "{}", status.text);
    assert_eq!(run(&["--lang", "tlh", "codes"]).status, 2);
}

/// A stranger reads these first: the words of the field, and what `key` means.
#[test]
fn the_help_speaks_in_the_words_of_the_field() {
    let commands = [
        "", "serve", "init", "explain", "repair", "check", "status", "resume", "cool", "journal", "codes",
        "corpus",
    ];
    let mut all = String::new();
    for command in commands {
        let args: Vec<&str> = [command, "--help"].into_iter().filter(|arg| !arg.is_empty()).collect();
        let out = run(&args);
        assert_eq!(out.status, 0, "{command}");
        for odd in [
            "stands still", " rest ", " rests", "every fall", "is caught", "whatever was learned",
            "on their feet",
        ] {
            assert!(!out.text.contains(odd), "`{odd}` in the help of `{command}`:\n{}", out.text);
        }
        all.push_str(&out.text);
    }
    for word in ["cooldown", "target", "retry", "not an API key"] {
        assert!(all.contains(word), "{word}");
    }
}

/// A line that says that all went well is no evidence of a failure.
#[test]
fn an_exit_code_alone_points_at_no_line() {
    let log = "Reading files\nAll good so far\n";
    for code in ["127", "139", "143"] {
        let fault = fault(log, &["--exit-code", code]);
        assert_eq!(
            (&fault["confidence"], &fault["evidence"]["line"]),
            (&"low".into(), &Value::Null),
            "{code}"
        );
        assert_eq!((&fault["evidence"]["text"], &fault["detail"]), (&"".into(), &"".into()), "{code}");
        let said = run_with(&["explain", "--exit-code", code], &[], log).text;
        assert!(said.contains("only the exit code was available (rule log.exit_code)"), "{said}");
        assert!(!said.contains("All good") && !said.contains("Found in line"), "{said}");
    }
    let ja = run_with(&["explain", "--exit-code", "139", "--lang", "ja"], &[], log).text;
    assert!(ja.contains("終了コードだけで判断しました") && ja.contains("クラッシュしました"), "{ja}");
}

/// An agent's log often holds nothing but the sentence of the gateway's error.
#[test]
fn koboshis_own_sentences_are_known_in_a_log() {
    let phrases = koboshi_report::phrase::Phrases::new().unwrap();
    for (id, kind, sub) in [
        ("kind-cooling-down-operator.message", "cooling_down", Some("operator")),
        ("kind-cooling-down.message", "cooling_down", None),
        ("gateway-key-refused.message", "unauthorized", None),
        ("refused-key-missing.message", "unauthorized", None),
        ("refused-key-unknown.message", "unauthorized", None),
        ("refused-model.message", "model_not_found", None),
        ("refused-no-provider.message", "model_not_found", None),
        ("refused-only-simulated.message", "model_not_found", None),
    ] {
        for lang in koboshi_report::phrase::Lang::ALL {
            let said = phrases.text(*lang, id, &[("model", "gpt-9")]).unwrap();
            let fault = fault(&format!("API Error: {said}\n"), &[]);
            let sub = sub.map_or(Value::Null, Value::from);
            assert_eq!((&fault["kind"], &fault["sub"]), (&kind.into(), &sub), "{said}");
        }
    }
}

/// Gemini states seconds for the quota of a day too: they are shown as stated, and not as the end of the quota.
#[test]
fn a_short_wait_is_not_shown_as_the_end_of_a_daily_quota() {
    let text = |quota: &str| {
        format!(
            "{{\"error\":{{\"code\":429,\"message\":\"You exceeded your current quota.\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":\
             [{{\"violations\":[{{\"quotaId\":\"GenerateRequests{quota}PerProjectPerModel-FreeTier\"}}]}},{{\"retryDelay\":\"46s\"}}]}}}}"
        )
    };
    let day = said(&text("PerDay"), "en", &[]);
    assert!(day.contains("46s left") && day.contains("until the provider's day ends."), "{day}");
    assert!(day.contains("Not now, but later.") && !day.contains("Yes, after that time."), "{day}");
    let ja = said(&text("PerDay"), "ja", &[]);
    assert!(ja.contains("日付が変わるまで更新されない場合があります"), "{ja}");
    let minute = said(&text("PerMinute"), "en", &[]);
    assert!(minute.contains("46s left") && minute.contains("Yes, after that time."), "{minute}");
    assert!(!minute.contains("provider's day"), "{minute}");
}

#[test]
fn a_missing_command_is_no_missing_library() {
    let fault = fault("bash: jq: command not found\n", &["--kind", "tool", "--lang", "ja"]);
    assert_eq!(fault["category"], "missing_command");
    let steps = fault["further_steps"].to_string();
    assert!(steps.contains("コマンド"), "{steps}");
}

#[test]
fn a_time_that_is_near_has_its_seconds() {
    let log = "Rate limit reached. Please retry after 30 seconds.\n";
    let near = run_with(&["explain", "--now", "2026-11-15T05:00:00Z"], &[("TZ", "UTC")], log);
    assert!(near.text.contains("05:00:30 UTC (30s left)"), "{}", near.text);
}

/// The first text that a Python developer pastes is the traceback of an SDK: no tool is involved.
#[test]
fn the_traceback_of_an_sdk_is_no_output_of_a_tool() {
    for line in [
        r#"openai.BadRequestError: Error code: 400 - {'error': {'message': "Unsupported value: 'temperature' does not support 5 with this model.", 'type': 'invalid_request_error', 'param': 'temperature', 'code': 'unsupported_value'}}"#,
        r#"anthropic.BadRequestError: Error code: 400 - {'type': 'error', 'error': {'type': 'invalid_request_error', 'message': 'max_tokens: must be greater than or equal to 1'}}"#,
    ] {
        let log =
            format!("Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n{line}\n");
        for text in [log.as_str(), line] {
            let fault = json(&run_with(&["explain", "--format", "json"], &[], text))["fault"].clone();
            assert_eq!(fault["kind"], "invalid_request", "{text}\n{fault}");
        }
    }
}

/// A wait is counted from the line that states it, not from when the log is read.
#[test]
fn a_wait_is_counted_from_the_time_of_its_line() {
    let stamped = [
        ("[2026-11-14T10:00:05Z] You've hit your session limit · resets 3pm (Asia/Tokyo)\n", 0.0),
        ("[2026-11-16T19:58:00Z] Error: 429 rate limit reached, try again in 42s\n", 0.0),
        ("2026-11-15 22:14:05 ERROR Rate limit reached. Please try again in 42s.\n", 0.0),
        ("2026-11-16 19:59:30 ERROR Rate limit reached. Please try again in 42s.\n", 12.0),
        ("2026-11-16T19:00:00Z INFO started\nError: 429 quota exceeded, try again in 2h\n", 3600.0),
        (
            "{\"type\":\"error\",\"timestamp\":\"2026-11-16T19:59:00Z\",\"message\":\"Rate limit reached, try again in 90s\"}\n",
            30.0,
        ),
        // Ahead of now: no stamp of this line.
        ("2026-11-18 22:14:05 ERROR Rate limit reached. Please try again in 42s.\n", 42.0),
        ("Rate limit reached. Please try again in 42s.\n", 42.0),
    ];
    for (text, left) in stamped {
        let fault = fault(text, &["--exit-code", "1"]);
        assert_eq!(fault["wait"]["seconds"], left, "{text}: {fault}");
        let over = fault["suggestion"].as_str().unwrap().contains("wait is over");
        assert_eq!(over, left == 0.0, "{text}: {fault}");
    }
    let said = said("2026-11-16 19:00:30 ERROR Quota exceeded. Please try again in 2h.\n", "en", &[]);
    assert!(said.contains("Counted from the time in the text: 2026-11-16 19:00:30 UTC"), "{said}");
}

/// Without a stamp the file says when it was written; of a pipe nothing is known, and that is said.
#[test]
fn a_wait_without_a_stamp_is_counted_from_the_files_last_change_or_said_to_be_counted_from_now() {
    let text = "Rate limit reached. Please try again in 42s.\n";
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agent.log");
    std::fs::write(&file, text).unwrap();
    let name = file.to_str().unwrap();
    let fresh = run(&["explain", name, "--exit-code", "1"]).text;
    assert!(fresh.contains(" left)") && !fresh.contains("Counted from"), "it was written just now: {fresh}");
    let two_days = std::time::Duration::from_secs(2 * 86_400);
    let before = std::fs::metadata(&file).unwrap().modified().unwrap() - two_days;
    std::fs::File::options().write(true).open(&file).unwrap().set_modified(before).unwrap();
    let old = run(&["explain", name, "--exit-code", "1"]).text;
    assert!(old.contains("The stated wait is over.") && old.contains("last change of the file"), "{old}");
    let asked = run(&["explain", name, "--exit-code", "1", "--now", NOW]).text;
    assert!(asked.contains("(42s left)") && !asked.contains("Counted from"), "--now is both: {asked}");
    let piped = run_with(&["explain", "--exit-code", "1"], &[], text).text;
    assert!(piped.contains("does not say when it was written. Counted from now."), "{piped}");
    let answer =
        "HTTP/1.1 429 Too Many Requests\r\ndate: Mon, 16 Nov 2026 19:59:50 GMT\r\nretry-after: 30\r\n\r\n{}";
    assert_eq!(fault(answer, &[])["wait"]["seconds"], 20.0, "the date of an answer is its time");
}

/// What says when a text was written says whether its time of day has passed: a stamp in the text, else the age of its file.
#[test]
fn a_session_limit_whose_reset_has_passed_is_over() {
    for text in [
        "[2026-11-16T14:00:00+09:00] You've hit your session limit · resets 5:10pm (Asia/Tokyo)\n",
        "[2026-11-16T14:00:00+09:00] 5-hour limit reached ∙ resets 5:10pm (Asia/Tokyo)\n",
    ] {
        let at = |now: &str| {
            let args = ["explain", "--format", "json", "--exit-code", "1", "--now", now];
            json(&run_with(&args, &[], text))["fault"]["wait"]["seconds"].clone()
        };
        assert_eq!(at("2026-11-16T17:30:00+09:00"), 0.0, "{text}");
        assert_eq!(at("2026-11-16T15:10:00+09:00"), 7200.0, "{text}");
    }
}

/// What Python's SDK prints of a refused parameter says what it is: a code, a type, a sentence.
#[test]
fn a_refused_parameter_is_known_by_its_code() {
    let parameter = "openai.BadRequestError: Error code: 400 - {'error': {'message': \"Unsupported parameter: 'max_tokens' is not supported \
         with this model. Use 'max_completion_tokens' instead.\", 'type': 'invalid_request_error', 'param': 'max_tokens', 'code': 'unsupported_parameter'}}\n";
    let refused = fault(parameter, &["--exit-code", "1"]);
    assert_eq!(
        (&refused["kind"], &refused["sub"]),
        (&"invalid_request".into(), &"capability".into()),
        "{refused}"
    );
    assert_eq!(
        (&refused["confidence"], &refused["advice"]["other"]),
        (&"high".into(), &true.into()),
        "{refused}"
    );
    let plain = "openai.BadRequestError: Error code: 400 - {'error': {'message': \"Invalid value: 'x'.\", 'type': 'invalid_request_error', \
         'param': 'messages[0].role', 'code': 'invalid_value'}}\n";
    let refused = fault(plain, &["--exit-code", "1"]);
    assert_eq!(
        (&refused["kind"], &refused["confidence"]),
        (&"invalid_request".into(), &"high".into()),
        "{refused}"
    );
    assert_eq!(refused["advice"]["other"], false, "{refused}");
}

/// A quota of one model for a day, with seconds beside it, as Gemini states it.
#[test]
fn a_quota_of_a_model_names_the_model_and_does_not_contradict_its_wait() {
    let gemini = "{\"error\":{\"code\":429,\"message\":\"You exceeded your current quota.\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[\
        {\"@type\":\"type.googleapis.com/google.rpc.QuotaFailure\",\"violations\":[{\"quotaId\":\"GenerateRequestsPerDayPerProjectPerModel-FreeTier\"}]},\
        {\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"38s\"}]}}";
    let fault = fault(gemini, &["--status", "429"]);
    assert_eq!((&fault["sub"], &fault["scope"]), (&"day".into(), &"model".into()), "{fault}");
    let text = run_with(&["explain", "--status", "429", "--now", NOW, "--lang", "en"], &[], gemini).text;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("quota of this account for this model") && text.contains("another model"),
        "{text}"
    );
    assert!(text.contains("the account: its quota for this model is used up"), "{text}");
    assert!(!text.contains("Wait until the provider's day ends") && text.contains("(38s left)"), "{text}");
}

#[test]
fn a_sign_in_that_the_program_asks_for_is_among_the_steps() {
    let login = fault("Invalid API key · Please run /login\n", &[]);
    assert_eq!(login["kind"], "unauthorized");
    assert!(login["further_steps"][0].as_str().unwrap().contains("/login"), "{login}");
    assert!(said("Invalid API key · Please run /login\n", "ja", &[]).contains("/login を実行"));
    let plain = fault("Error: 401 invalid api key\n", &[]);
    assert_eq!(plain["further_steps"], serde_json::json!([]), "{plain}");
}

#[test]
fn an_exit_code_of_a_signal_names_it() {
    for (code, name) in [("137", "SIGKILL"), ("143", "SIGTERM"), ("139", "SIGSEGV")] {
        let out = run_with(&["explain", "--exit-code", code, "--lang", "en"], &[], "working\n");
        assert!(out.text.contains(name) && out.text.contains(code), "{}", out.text);
    }
    let killed = run_with(&["explain", "--exit-code", "137", "--lang", "ja"], &[], "working\n").text;
    assert!(killed.contains("SIGKILL") && killed.contains("メモリ不足"), "{killed}");
    let own = run_with(&["explain", "--exit-code", "1", "--lang", "en"], &[], "working\n").text;
    assert!(!own.contains("SIG"), "{own}");
}
