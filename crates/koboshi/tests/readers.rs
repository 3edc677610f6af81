//! Promises of the readers that no single corpus case states: what beats what, and what is never evidence.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::sync::LazyLock;

use jiff::Zoned;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use koboshi::classify::{AgentLog, Answer, Classifier, Rules, ToolOutput};
use koboshi::fault::{Confidence, Fault, Kind, Scope, Sub};
use koboshi::wait::Form;
use serde_json::json;

static CLASSIFIER: LazyLock<Classifier> =
    LazyLock::new(|| Classifier::new(Rules::builtin().unwrap(), TimeZoneDatabase::bundled()));

fn classifier() -> &'static Classifier {
    &CLASSIFIER
}

fn now() -> Zoned {
    "2026-11-15T12:00:00Z".parse::<jiff::Timestamp>().unwrap().to_zoned(TimeZone::UTC)
}

fn answer(status: u16, body: &str) -> Option<Fault> {
    classifier().answer(&Answer { status: Some(status), body, ..Answer::default() }, &now())
}

fn stream(body: &str) -> Option<Kind> {
    let answer = Answer { status: Some(200), body, stream: true, ..Answer::default() };
    classifier().answer(&answer, &now()).map(|fault| fault.kind)
}

fn reason(text: &str, exit_code: i32) -> &'static str {
    let log = AgentLog { text, exit_code: Some(exit_code), since: None };
    classifier().log(&log, &now()).map_or("none", |fault| fault.log_reason())
}

/// A client chooses the name: words of other rules in it are no evidence.
#[test]
fn the_name_of_a_model_that_is_not_there_says_nothing() {
    for name in ["rate-limit", "overloaded", "quota-exceeded", "server-busy"] {
        for body in [
            format!(
                r#"{{"error":{{"message":"The model `{name}` does not exist or you do not have access to it.","code":"model_not_found"}}}}"#
            ),
            format!(r#"{{"type":"error","error":{{"type":"not_found_error","message":"model: {name}"}}}}"#),
            format!(
                r#"{{"error":{{"code":404,"message":"models/{name} is not found for API version v1beta","status":"NOT_FOUND"}}}}"#
            ),
        ] {
            assert_eq!(answer(404, &body).map(|fault| fault.kind), Some(Kind::ModelNotFound), "{body}");
        }
    }
}

#[test]
fn the_innermost_error_of_a_relay_counts() {
    let inner =
        r#"{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"You exceeded your current quota\"}}"#;
    let body = format!(
        r#"{{"error":{{"code":500,"message":"Provider returned error","metadata":{{"raw":"{inner}"}}}}}}"#
    );
    let fault = answer(500, &body).unwrap();
    assert_eq!((fault.kind, fault.sub), (Kind::QuotaExceeded, Some(Sub::Billing)));
    assert!(!fault.advice.later, "only money helps");
}

#[test]
fn headers_beat_fields_beat_text_beat_buckets() {
    let body = r#"{"error":{"message":"Too many requests, try again in 30s","details":[{"@type":"x.RetryInfo","retryDelay":"20s"}]}}"#;
    let bucket = [("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "40s")];
    let wait = |headers: &[(&str, &str)], body: &str| {
        let answer = Answer { status: Some(429), headers, body, ..Answer::default() };
        classifier().answer(&answer, &now()).unwrap().wait.map(|wait| wait.after.as_secs())
    };
    let all = [&[("retry-after-ms", "5000"), ("retry-after", "10")][..], &bucket].concat();
    assert_eq!(wait(&all, body), Some(5));
    assert_eq!(wait(&all[1..], body), Some(10));
    assert_eq!(wait(&bucket, body), Some(20));
    assert_eq!(wait(&bucket, r#"{"error":{"message":"Too many requests, try again in 30s"}}"#), Some(30));
    assert_eq!(wait(&bucket, "{}"), Some(40));
    assert_eq!(
        wait(&[("x-ratelimit-remaining-requests", "7"), bucket[1]], "{}"),
        None,
        "something is left in it"
    );
}

#[test]
fn a_stream_without_its_end_mark_is_cut_in_every_dialect() {
    let chat =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":null}]}\n\n";
    let chat_end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    let anthropic = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hi\"}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n";
    let anthropic_end = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let responses = "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n";
    let responses_end = "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"Hi\"}]}]}}\n\n";
    let gemini = "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"Hi\"}]}}]}\n\n";
    let gemini_end =
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"!\"}]},\"finishReason\":\"STOP\"}]}\n\n";
    let ollama = "{\"message\":{\"content\":\"Hi\"},\"done\":false}\n";
    let ollama_end = "{\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\"}\n";
    for (begin, end) in [
        (chat, chat_end),
        (anthropic, anthropic_end),
        (responses, responses_end),
        (gemini, gemini_end),
        (ollama, ollama_end),
    ] {
        assert_eq!(stream(begin), Some(Kind::ConnectionClosed), "{begin}");
        assert_eq!(stream(&format!("{begin}{end}")), None, "{end}");
    }
}

#[test]
fn one_frame_tells_what_it_can() {
    let classifier = classifier();
    let kind =
        |event: Option<&str>, data: &str| classifier.frame(event, data, &now()).map(|fault| fault.kind);
    assert_eq!(
        kind(Some("error"), r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#),
        Some(Kind::Overloaded)
    );
    assert_eq!(
        kind(None, r#"{"choices":[{"delta":{},"finish_reason":"content_filter"}]}"#),
        Some(Kind::ContentFiltered)
    );
    assert_eq!(kind(None, r#"{"choices":[{"delta":{"content":"Hi"},"finish_reason":null}]}"#), None);
    assert_eq!(
        kind(None, r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#),
        None,
        "an empty last frame is no empty answer"
    );
    assert_eq!(kind(None, "[DONE]"), None);
    assert_eq!(kind(Some("ping"), r#"{"type":"ping"}"#), None);
}

#[test]
fn a_certificate_is_not_cured_by_trying_again() {
    let fault =
        classifier().transport("client error (Connect): invalid peer certificate: UnknownIssuer", &now());
    assert_eq!((fault.kind, fault.sub), (Kind::ConnectionFailed, Some(Sub::Certificate)));
    assert!(!fault.advice.same && fault.advice.other);
    assert_eq!(fault.scope, Scope::Network);
}

#[test]
fn a_wait_remembers_how_it_was_stated() {
    let form = |text: &str| {
        let log = AgentLog { text, exit_code: Some(1), since: None };
        classifier().log(&log, &now()).unwrap().wait.unwrap().form
    };
    assert_eq!(form("Error: usage limit reached. Try again in 2 hours.\n"), Form::Countdown);
    assert_eq!(form("Error: usage limit reached. Resets at 3pm (UTC).\n"), Form::Instant);
    assert_eq!(form("Error: usage limit reached. Resets on December 3.\n"), Form::Day);
}

#[test]
fn success_after_a_limit_cancels_it() {
    let log = "You've hit your session limit · resets 6am (UTC)\nsession resumed\n● Edited src/lib.rs\nError: the build is broken\n";
    assert_eq!(reason(log, 1), "error");
    assert_eq!(reason(log, 0), "none");
}

/// Nothing says "resumed", but the agent went on to act: the limit above is history.
#[test]
fn what_an_agent_does_after_a_limit_cancels_it() {
    let limit = "You've hit your session limit · resets 9pm (UTC)\n";
    assert_eq!(reason(&format!("{limit}● Bash(npm run build)\nstory #47 did not finish\n"), 1), "error");
    assert_eq!(reason(&format!("● Bash(npm run build)\n{limit}"), 1), "quota", "and a limit after it counts");
}

#[test]
fn the_last_failure_wins() {
    let limit = "Error: You've hit your usage limit. Try again in 2 hours.\n";
    let network = "API Error: Unable to connect to API (ECONNREFUSED)\n";
    assert_eq!(reason(&format!("{limit}{network}"), 1), "network");
    assert_eq!(reason(&format!("{network}{limit}"), 1), "quota");
}

#[test]
fn the_agents_own_words_are_never_evidence() {
    for said in [
        "+    raise RateLimitError(\"quota exceeded, retry after 300 seconds\")\n",
        "● I added a test for: You've hit your usage limit\n",
        "src/limits.rs:41: // 429 Too Many Requests\n",
        "test limits::rate_limit_exceeded ... ok\n",
        "{\"type\":\"assistant\",\"message\":{\"content\":[{\"type\":\"text\",\"text\":\"Error: quota exceeded\"}]}}\n",
        "{\"type\":\"user\",\"message\":{\"content\":[{\"type\":\"tool_result\",\"content\":\"Error: 429 rate limit\"}]}}\n",
    ] {
        assert_eq!(reason(said, 1), "error", "{said}");
        assert_eq!(reason(said, 0), "none", "{said}");
    }
}

#[test]
fn events_beat_text_and_exit_codes() {
    let failed = "Error: something\n{\"type\":\"result\",\"is_error\":true,\"result\":\"You've hit your session limit · resets 6pm (UTC)\"}\n";
    assert_eq!(reason(failed, 0), "quota");
    let good = "Error: 429 Too Many Requests\n{\"type\":\"result\",\"is_error\":false,\"result\":\"ok\"}\n";
    assert_eq!(reason(good, 0), "none");
}

#[test]
fn a_clients_own_pause_is_no_stated_wait() {
    let log = AgentLog {
        text: "API Error (429 Too Many Requests) · Retrying in 39 seconds… (attempt 10/10)\n",
        exit_code: Some(1),
        since: None,
    };
    let fault = classifier().log(&log, &now()).unwrap();
    assert_eq!((fault.kind, fault.wait), (Kind::RateLimited, None));
}

#[test]
fn a_signal_is_distinguished_from_a_failure() {
    let fault = classifier()
        .log(&AgentLog { text: "working…\n", exit_code: Some(143), since: None }, &now())
        .unwrap();
    assert_eq!((fault.kind, fault.sub), (Kind::ProcessFailed, Some(Sub::Signal)));
}

#[test]
fn one_models_limit_is_not_the_accounts() {
    let scope = |text: &str| {
        classifier().log(&AgentLog { text, exit_code: Some(1), since: None }, &now()).unwrap().scope
    };
    assert_eq!(scope("You've hit your Opus limit · resets 6am (UTC)\n"), Scope::Model);
    assert_eq!(scope("You've hit your weekly limit · resets 6am (UTC)\n"), Scope::Account);
}

#[test]
fn the_error_flag_of_a_tool_is_believed() {
    let classifier = classifier();
    let category = |text: &str, is_error: Option<bool>| {
        classifier.tool(&ToolOutput { text, is_error }, &now()).and_then(|fault| fault.category)
    };
    let text = "Permission denied: /etc/shadow";
    assert_eq!(category(text, Some(true)).as_deref(), Some("permission"));
    assert_eq!(category(text, Some(false)), None);
    assert_eq!(category(text, None).as_deref(), Some("permission"));
    assert_eq!(category("it went wrong somehow", Some(true)).as_deref(), Some("other"));
}

#[test]
fn unknown_stays_unknown() {
    let fault = answer(418, "{}").unwrap();
    assert_eq!((fault.kind, fault.confidence), (Kind::InvalidRequest, Confidence::Low));
    let fault = classifier().transport("gremlins", &now());
    assert_eq!((fault.kind, fault.confidence), (Kind::ConnectionFailed, Confidence::Low));
}

/// Redacted first, shortened afterwards: a key that is longer than what is shown leaves nothing behind.
#[test]
fn a_secret_longer_than_the_excerpt_leaves_nothing() {
    let token: String = (0..3000_u32).map(|n| char::from(b'a' + u8::try_from(n * 7 % 26).unwrap())).collect();
    for text in [
        format!("API Error: 401 Unauthorized Authorization: Bearer {token}\n"),
        format!("Error: 401 invalid api key, password={token}\n"),
        format!("Error: 401 {} api_key={token}{token}{token}{token}{token}{token}\n", "x ".repeat(100)),
    ] {
        let log = AgentLog { text: &text, exit_code: Some(1), since: None };
        let fault = classifier().log(&log, &now()).unwrap();
        let leaked = token
            .as_bytes()
            .windows(12)
            .any(|part| fault.detail.contains(std::str::from_utf8(part).unwrap()));
        assert!(!leaked, "{}", fault.detail);
    }
}

#[test]
fn long_events_are_read_whole() {
    let padding = "x".repeat(60_000);
    let result = format!(
        "{{\"type\":\"user\",\"message\":{{\"content\":[{{\"type\":\"tool_result\",\"content\":\"Error: 429 rate limit exceeded {padding}\"}}]}}}}\n"
    );
    assert_eq!(reason(&result, 1), "error", "a tool result is never evidence, however long");
    let failed = format!(
        "{{\"type\":\"result\",\"is_error\":true,\"denials\":\"{padding}\",\"result\":\"Claude AI usage limit reached|1794758400\"}}\n"
    );
    assert_eq!(reason(&failed, 0), "quota");
    let cut = "{\"type\":\"user\",\"message\":{\"content\":\"Error: 429 rate limit exceeded";
    assert_eq!(reason(cut, 1), "error", "whose words a cut event holds is not known");
}

#[test]
fn a_good_run_may_have_met_errors() {
    let log = "{\"level\":\"error\",\"msg\":\"connection refused\"}\n{\"level\":\"info\",\"msg\":\"ok\"}\n";
    assert_eq!(reason(log, 0), "none");
}

#[test]
fn telling_about_errors_is_not_failing() {
    for said in [
        "The root cause was a timeout in the connection pool.\nI increased it to 30s.\n",
        "レート制限のエラー処理を実装しました。429 が返ったら再試行します。\n",
        "Ich habe die Fehlerbehandlung für Zeitüberschreitung eingebaut.\n",
        "Successfully authenticated. No errors. 0 failed.\n",
        "commit abc\n    Fix timeout error in fetch\n",
        "error.log\nfailed_tests.txt\npermission_denied.py\n",
        "> Error: You've hit your usage limit\n\nThat message comes from the vendor\n",
        "    println!(\"Error: rate limit exceeded, try again in 5 minutes\");\n",
        "TODO: handle 'connection refused' error\n",
        "Rate limit: 45/50 requests remaining, resets in 12m\n",
        "Bash(cargo test --workspace)\n",
    ] {
        assert_eq!(reason(said, 1), "error", "{said}");
    }
}

#[test]
fn answers_of_other_endpoints_are_fine() {
    for body in [
        r#"{"input_tokens":14}"#, r#"{"totalTokens":31}"#, r#"{"text":"hello"}"#,
        r#"{"id":"modr-1","results":[{"flagged":false}]}"#, r#"{"error":null,"result":[1,2]}"#,
        r#"{"object":"response","status":"queued","output":[]}"#,
    ] {
        assert_eq!(answer(200, body).map(|fault| fault.kind), None, "{body}");
    }
    assert!(answer(204, "").is_none());
    assert_eq!(answer(200, "{}").map(|fault| fault.kind), Some(Kind::ResponseInvalid));
}

#[test]
fn advice_and_wait_never_contradict() {
    let texts = [
        "Error: You're out of extra usage · resets 5pm (Asia/Tokyo)\n",
        "Error: 402 You have no quota\n",
        "Error: Your credit balance is too low. Resets in 3 hours.\n",
        "Error: Quota exceeded, limit: 0, model: x. Please retry in 5s.\n",
        "Error: insufficient_quota: check your plan and billing details\n",
    ];
    for text in texts {
        let fault = classifier().log(&AgentLog { text, exit_code: Some(1), since: None }, &now()).unwrap();
        assert_eq!(fault.kind, Kind::QuotaExceeded, "{text}");
        assert!(fault.wait.is_none() || fault.advice.later, "{text}: {fault:?}");
    }
}

#[test]
fn a_tools_call_may_be_repeated_where_time_cures_it() {
    let fault = |text: &str| classifier().tool(&ToolOutput { text, is_error: Some(true) }, &now()).unwrap();
    let limited = fault("HTTP 429 Too Many Requests, retry after 30 seconds");
    assert!(limited.advice.same);
    assert_eq!(limited.wait.map(|wait| wait.after.as_secs()), Some(30));
    assert!(fault("Command timed out after 2m").advice.same);
    assert!(!fault("SyntaxError: invalid syntax").advice.same);
}

#[test]
fn a_program_that_cannot_be_found_was_never_started() {
    let log = AgentLog { text: "bash: claude: command not found\n", exit_code: Some(127), since: None };
    assert_eq!(classifier().log(&log, &now()).unwrap().kind, Kind::SpawnFailed);
}

#[test]
fn a_permission_that_was_not_given_is_one_that_is_missing() {
    let category = |text: &str, is_error| {
        classifier().tool(&ToolOutput { text, is_error }, &now()).and_then(|fault| fault.category)
    };
    for text in [
        "Claude requested permissions to use Bash, but you haven't granted it yet.",
        "Claude requested permissions to write to /srv/app/x.rs, but you haven't granted it yet.",
        "The agent asked for permission to run this command, but it was not granted.",
        "Permission for `git push` has not been granted.",
    ] {
        for is_error in [Some(true), None] {
            assert_eq!(category(text, is_error).as_deref(), Some("permission"), "{text}");
        }
    }
    for text in ["GRANT", "Permission granted.", "The grant has not been used yet by anyone in the group"] {
        assert_eq!(category(text, None), None, "{text}");
    }
}

#[test]
fn a_status_with_its_error_object_is_a_failure_without_a_flag() {
    let category = |text: &str| {
        classifier().tool(&ToolOutput { text, is_error: None }, &now()).and_then(|fault| fault.category)
    };
    for (text, due) in [
        (
            r#"API Error: 429 {"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your account's limit."}}"#,
            "rate_limit",
        ),
        (r#"Request failed with status 429 {"error":{"message":"slow down"}}"#, "rate_limit"),
        (r#"API Error (429 {"error":{"code":"x"}})"#, "rate_limit"),
        (
            r#"Upstream Error: 401 {"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            "auth",
        ),
    ] {
        assert_eq!(category(text).as_deref(), Some(due), "{text}");
    }
    for text in [
        "Mean error: 0.031",
        "error: 0",
        "API errors: 429 in the last hour, down from 600 the hour before",
        "Standard error: 429.5",
        "std error: 512",
    ] {
        assert_eq!(category(text).as_deref().filter(|category| *category == "rate_limit"), None, "{text}");
    }
}

/// Python's SDKs print the provider's object with single quotes: it says the same as JSON does.
#[test]
fn an_error_object_printed_by_python_is_read_like_json() {
    let text = |quota: &str| {
        format!(
            "google.genai.errors.ClientError: 429 RESOURCE_EXHAUSTED. {{'error': {{'code': 429, 'message': 'You exceeded your \
             current quota, please check your plan and billing details.', 'status': 'RESOURCE_EXHAUSTED', 'details': \
             [{{'violations': [{{'quotaId': 'GenerateRequests{quota}PerProjectPerModel-FreeTier'}}]}}, {{'retryDelay': '33s'}}]}}}}"
        )
    };
    for (quota, kind, sub) in
        [("PerMinute", Kind::RateLimited, None), ("PerDay", Kind::QuotaExceeded, Some(Sub::Day))]
    {
        let text = text(quota);
        let as_answer =
            classifier().answer(&Answer { transport: Some(&text), ..Answer::default() }, &now()).unwrap();
        let as_log =
            classifier().log(&AgentLog { text: &text, exit_code: Some(1), since: None }, &now()).unwrap();
        for fault in [as_answer, as_log] {
            let wait = fault.wait.map(|wait| wait.after.as_secs());
            assert_eq!((fault.kind, fault.sub, wait), (kind, sub, Some(33)), "{quota}");
        }
    }
}

/// A crash must not be reported as a signal that a person or a program sent.
#[test]
fn a_crash_is_distinguished_from_a_signal_from_outside() {
    let sub = |text: &str, code: i32| {
        let fault = classifier().log(&AgentLog { text, exit_code: Some(code), since: None }, &now()).unwrap();
        (fault.kind == Kind::ProcessFailed).then_some(fault.sub).flatten()
    };
    for code in [132, 134, 135, 136, 139] {
        assert_eq!(sub("working…\n", code), Some(Sub::Crash), "{code}");
    }
    for code in [129, 130, 137, 143] {
        assert_eq!(sub("working…\n", code), Some(Sub::Signal), "{code}");
    }
    assert_eq!(sub("Segmentation fault (core dumped)\n", 1), Some(Sub::Crash));
    assert_eq!(sub("Aborted (core dumped)\n", 1), Some(Sub::Crash));
    assert_eq!(sub("Killed\n", 1), Some(Sub::Signal));
}

/// It is thirteen days until then: no window of hours or a week.
#[test]
fn the_limit_that_an_organisation_sets_itself_is_a_months() {
    for whose in ["", "workspace "] {
        let text = format!(
            "You have reached your specified {whose}API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."
        );
        let body = format!(
            "{{\"type\":\"error\",\"error\":{{\"type\":\"invalid_request_error\",\"message\":\"{text}\"}}}}"
        );
        let as_log =
            classifier().log(&AgentLog { text: &text, exit_code: Some(1), since: None }, &now()).unwrap();
        for fault in [answer(400, &body).unwrap(), as_log] {
            assert_eq!((fault.kind, fault.sub), (Kind::QuotaExceeded, Some(Sub::Month)), "{text}");
            assert_eq!(fault.wait.map(|wait| wait.after.as_secs()), Some(1_339_200), "{text}");
        }
    }
}

/// A read that timed out does not say that an answer had begun.
#[test]
fn a_read_timeout_is_no_idle_one() {
    for text in [
        "httpx.ReadTimeout: The read operation timed out",
        "requests.exceptions.ReadTimeout: HTTPSConnectionPool(host='api.example.com', port=443): Read timed out. (read timeout=60)",
    ] {
        let as_log = classifier().log(&AgentLog { text, exit_code: Some(1), since: None }, &now()).unwrap();
        for fault in [classifier().transport(text, &now()), as_log] {
            assert_eq!((fault.kind, fault.sub), (Kind::Timeout, None), "{text}");
        }
    }
    let idle = classifier().transport("stream idle timeout: no data for 60s", &now());
    assert_eq!((idle.kind, idle.sub), (Kind::Timeout, Some(Sub::Idle)));
}

/// A prompt is private to its author, and a fault's detail is kept in logs and journals.
#[test]
fn what_a_provider_repeats_of_a_prompt_is_not_kept() {
    let prompt = "Once upon a time there was a doll that always got up again, and nobody was to know of it before the night was over. "
        .repeat(3);
    let bodies = [
        json!({"detail": [{"type": "missing", "loc": ["body", "messages"], "msg": "Field required", "input": {"model": "m", "prompt": prompt}}]}),
        json!({"detail": [{"type": "string_type", "loc": ["body", 1], "msg": "Input should be a valid string", "input": prompt}]}),
        json!({"error": {"message": format!("Invalid value: '{prompt}'. Supported values are: 'text'."), "type": "invalid_request_error"}}),
        json!({"object": "error", "message": format!("[{{'type': 'extra', 'msg': 'not permitted', 'input': '{prompt}'}}]"), "code": 400}),
        json!({"message": format!("1 validation error\n  [type=string_type, input_value='{prompt}', input_type=str]")}),
    ];
    for body in bodies {
        let text = body.to_string();
        let answer = Answer { status: Some(400), body: &text, ..Answer::default() };
        let fault = classifier().answer(&answer, &now()).unwrap();
        assert!(!fault.detail.contains("doll") && !fault.detail.is_empty(), "{text}: {}", fault.detail);
    }
}

fn of_log(text: &str, exit_code: Option<i32>) -> Option<Fault> {
    classifier().log(&AgentLog { text, exit_code, since: None }, &now())
}

#[test]
fn a_build_tool_that_says_that_its_run_failed_is_believed_without_an_exit_code() {
    for text in [
        "gcc -c main.c\nmake: *** [Makefile:3: all] Error 1\n",
        "make[2]: *** [CMakeFiles/app.dir/build.make:76: main.o] Error 1\nmake: *** [Makefile:136: all] Error 2\n",
        "error Command failed with exit code 1.\ninfo Visit https://example.com/en/docs/cli/run for documentation about this command.\n",
        "ninja: build stopped: subcommand failed.\n",
        "##[error]Process completed with exit code 1.\n",
        "2026-11-15T11:59:58.0000000Z ##[error]Process completed with exit code 2.\n",
        "Build failed\n",
        "[INFO] BUILD FAILURE\n",
    ] {
        let fault = of_log(text, None);
        let seen = fault.as_ref().map(|fault| (fault.kind, &*fault.evidence.rule));
        assert_eq!(seen, Some((Kind::ToolFailed, "log.run_failed")), "{text}");
    }
    let script = "npm error Missing script: \"build\"\nnpm error\nnpm error To see a list of scripts, run:\nnpm error   npm run\n";
    let fault = of_log(script, None).unwrap();
    assert_eq!((fault.kind, &*fault.evidence.rule), (Kind::ToolFailed, "tool.npm.script"));
    let npm = "npm ERR! code ELIFECYCLE\nnpm ERR! errno 1\nnpm ERR! app@1.0.0 build: `webpack`\nnpm ERR! Exit status 1\n";
    let fault = of_log(npm, None).unwrap();
    assert_eq!((fault.kind, &*fault.evidence.rule), (Kind::ToolFailed, "tool.npm.failed"));
    let fault =
        of_log("npm error Missing script: \"build\"\nnpm error\nnpm error   npm run\n", None).unwrap();
    assert_eq!(fault.evidence.span.start, 0, "the first line of the row says most");
}

#[test]
fn a_failed_run_that_the_agent_worked_on_after_is_history() {
    for text in [
        "npm error Missing script: \"build\"\n● I add the script.\n",
        "make: *** [Makefile:3: all] Error 1\n- fixed the include path\n",
        "make: *** [Makefile:3: all] Error 1\nI've fixed the include path and the target builds.\n",
        "Build failed\nretry with a clean cache\n✓ built in 3s\n",
        "Build failed\nBuild succeeded\n",
        "grep 'npm error' build.log\nthe npm error of yesterday is gone\n",
        "Process completed with exit code 0.\n",
    ] {
        assert_eq!(of_log(text, None).map(|fault| fault.kind), None, "{text}");
    }
    assert_eq!(reason("make: *** [Makefile:3: all] Error 1\n", 0), "none");
}

#[test]
fn a_japanese_log_that_ends_in_success_tells_of_no_failure() {
    let tried = "[10:00:01] エラー: 接続に失敗しました。再試行します (1/3)\n";
    for end in [
        "[10:00:04] 接続しました\n[10:00:30] 処理が正常に完了しました\n",
        "[10:00:30] バックアップが完了しました。\n",
    ] {
        assert_eq!(of_log(&format!("{tried}{end}"), None).map(|fault| fault.kind), None, "{end}");
    }
    for failed in
        ["[10:00:30] エラー: 接続に失敗しました\n", "10:00:30 完了しましたが、エラーが残っています\n"]
    {
        let kind = of_log(&format!("{tried}{failed}"), None).map(|fault| fault.kind);
        assert_eq!(kind, Some(Kind::ConnectionFailed), "{failed}");
    }
}

#[test]
fn git_is_no_model_provider_in_any_language() {
    for text in [
        "fatal: unable to access 'https://example.com/x/y.git/': Could not resolve host: example.com\n",
        "fatal: 'https://example.com/x/y.git/' にアクセスできません: Could not resolve host: example.com\n",
        "fatal: Zugriff auf 'https://example.com/x/y.git/' nicht möglich: Could not resolve host: example.com\n",
    ] {
        let fault = of_log(text, Some(128)).unwrap();
        assert_eq!((fault.kind, fault.category.as_deref()), (Kind::ToolFailed, Some("network")), "{text}");
    }
}

#[test]
fn japanese_failures_are_known_by_their_wording() {
    let category = |text: &str| {
        let fault = classifier().tool(&ToolOutput { text, is_error: None }, &now());
        fault.and_then(|fault| fault.category).map(|category| category.to_string())
    };
    assert_eq!(category("cp: 書き込みエラー: デバイスに空き領域がありません\n").as_deref(), Some("resource"));
    let shell = "用語 'foo' は、コマンドレット、関数、スクリプト ファイル、または操作可能なプログラムの名前として認識されません\n";
    assert_eq!(category(shell).as_deref(), Some("missing_command"));
    let busy = "現在アクセスが集中しております。しばらく時間をおいてから再度お試しください。\n";
    assert_eq!(of_log(busy, None).map(|fault| fault.kind), Some(Kind::Overloaded));
}

#[test]
fn a_cdn_that_waited_for_the_providers_server_is_no_fault_of_this_machine() {
    let page = "<!DOCTYPE html><html><head><title>api.example.com | 524: A timeout occurred</title></head><body>Error code 524</body></html>";
    for status in [524, 200] {
        let fault = answer(status, page).unwrap();
        assert_eq!((fault.kind, fault.sub), (Kind::Timeout, Some(Sub::Upstream)), "{status}");
        assert_eq!(fault.origin, koboshi::fault::Origin::Provider, "{status}");
    }
}

#[test]
fn a_time_limit_is_distinguished_from_a_failure_of_the_agent() {
    let fault = of_log("working\n", Some(124)).unwrap();
    assert_eq!((fault.kind, fault.sub), (Kind::ProcessFailed, Some(Sub::TimeLimit)));
}
