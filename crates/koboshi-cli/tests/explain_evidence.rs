//! `koboshi explain` says what an input shows and no more: pages of servers in front of a provider, missing commands, names that do not
//! resolve, and quotes that stand in the input.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use common::{json, run_with};
use serde_json::Value;

const BAD_GATEWAY: &str = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n\
    <hr><center>nginx/1.24.0</center>\r\n</body>\r\n</html>\r\n";
const CLOUDFLARE: &str = "<!DOCTYPE html>\n<html lang=\"en-US\">\n<head>\n<title>Attention Required! | Cloudflare</title>\n</head>\n<body>\n\
    <h1>Sorry, you have been blocked</h1>\n<h2>You are unable to access api.example.com</h2>\n\
    <span>Cloudflare Ray ID: <strong>8f1a2b3c4d5e6f70</strong></span>\n</body>\n</html>\n";
const CHALLENGE: &str = "<!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title></head><body>Enable JavaScript and \
    cookies to continue</body></html>";
const FORBIDDEN: &str = "<html>\n<head><title>403 Forbidden</title></head>\n<body>\n<center><h1>403 Forbidden</h1></center>\n\
    <hr><center>nginx</center>\n</body>\n</html>\n";

fn fault(text: &str, args: &[&str]) -> Value {
    let args: Vec<&str> = ["explain", "--format", "json"].iter().chain(args).copied().collect();
    json(&run_with(&args, &[], text))["fault"].clone()
}

fn said(text: &str, args: &[&str]) -> String {
    let args: Vec<&str> = ["explain"].iter().chain(args).copied().collect();
    run_with(&args, &[], text).text
}

/// A page that names the status of a gateway says what failed, whether or not a status was given with it.
#[test]
fn the_page_of_a_gateway_is_known_without_its_status() {
    for (title, kind) in [
        ("502 Bad Gateway", "unavailable"),
        ("503 Service Temporarily Unavailable", "unavailable"),
        ("504 Gateway Time-out", "timeout"),
        ("api.example.com | 520: Web server is returning an unknown error", "unavailable"),
        ("Error 502 (Server Error)!!1", "unavailable"),
    ] {
        let page = BAD_GATEWAY.replace("502 Bad Gateway", title);
        for args in [&[][..], &["--status", "200"]] {
            let fault = fault(&page, args);
            assert_eq!(fault["kind"], kind, "{title}: {fault}");
            assert!(fault["evidence"]["text"].as_str().unwrap().contains(title), "{title}: {fault}");
        }
    }
    for page in
        ["<html><title>Welcome</title>Room 502</html>", "<html><title>Sign in</title>502 Bad Gateway</html>"]
    {
        let fault = fault(page, &[]);
        assert_eq!(
            (&fault["kind"], &fault["sub"]),
            (&"response_invalid".into(), &"not_api".into()),
            "{page}"
        );
    }
}

/// What a firewall in front of the provider refuses says nothing about the key or the account.
#[test]
fn a_block_before_the_provider_is_no_fault_of_the_key() {
    for (name, text, args) in [
        ("page", CLOUDFLARE, &["--status", "403"][..]),
        ("page alone", CLOUDFLARE, &[]),
        ("challenge", CHALLENGE, &["--status", "403", "--header", "cf-mitigated: challenge"]),
        ("challenge alone", CHALLENGE, &[]),
        ("challenge with a 503", CHALLENGE, &["--status", "503"]),
        ("page of a proxy", FORBIDDEN, &["--status", "403"]),
        ("text", "error code: 1020", &["--status", "403"]),
        ("text alone", "error code: 1020", &[]),
        (
            "log",
            "API Error: 403 <!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title>\n",
            &["--exit-code", "1"],
        ),
    ] {
        let fault = fault(text, args);
        assert_eq!(
            (&fault["kind"], &fault["sub"]),
            (&"permission_denied".into(), &"blocked".into()),
            "{name}: {fault}"
        );
        assert_eq!((&fault["scope"], &fault["health"]), (&"network".into(), &true.into()), "{name}");
        assert_eq!(
            (&fault["advice"]["same"], &fault["advice"]["other"]),
            (&false.into(), &true.into()),
            "{name}"
        );
        assert_eq!(fault["reason"], "network", "{name}");
        let en = said(text, args);
        assert!(
            en.contains("in front of the AI provider")
                && !en.contains("key is valid")
                && !en.contains("account"),
            "{name}: {en}"
        );
        let ja = said(text, &[args, &["--lang", "ja"]].concat());
        assert!(
            ja.contains("プロバイダーの手前") && !ja.contains("有効ですが") && !ja.contains("アカウント"),
            "{name}: {ja}"
        );
    }
    // The API's own words are still about the key.
    let own = fault(
        "{\"error\":{\"message\":\"Your API key does not have permission to use this\",\"type\":\"permission_error\"}}",
        &["--status", "403"],
    );
    assert_eq!((&own["kind"], &own["scope"]), (&"permission_denied".into(), &"account".into()), "{own}");
}

/// The shell's exit code and its line say the same: the line is the evidence.
#[test]
fn exit_code_127_is_told_as_the_command_that_is_missing() {
    for line in [
        "bash: line 1: claude: command not found", "sh: 1: tsx: not found", "zsh: command not found: codex",
        "env: ‘node’: No such file or directory", "/bin/sh: gemini: command not found",
    ] {
        let log = format!("+ run\n{line}\n");
        let fault = fault(&log, &["--exit-code", "127"]);
        assert_eq!(
            (&fault["kind"], &fault["sub"]),
            (&"spawn_failed".into(), &"command".into()),
            "{line}: {fault}"
        );
        assert_eq!(
            (&fault["evidence"]["line"], &fault["evidence"]["text"]),
            (&2.into(), &line.into()),
            "{line}"
        );
        assert_eq!(fault["confidence"], "medium", "{line}");
        assert!(said(&log, &["--exit-code", "127"]).contains("command was not found"), "{line}");
        assert!(
            said(&log, &["--exit-code", "127", "--lang", "ja"]).contains("コマンドが見つからない"),
            "{line}"
        );
    }
    let denied = fault("bash: ./agent: Permission denied\n", &["--exit-code", "126"]);
    assert_eq!(
        (&denied["kind"], &denied["evidence"]["line"]),
        (&"spawn_failed".into(), &1.into()),
        "{denied}"
    );
}

/// Where no line tells of a failure, none is cited.
#[test]
fn a_line_of_success_is_no_evidence() {
    for log in [
        "wrote src/main.rs\nAll 12 tests passed\nDone.\n", "Build finished\nErrors: 0\n",
        "12 passed\nFailures: 0\n", "failed: 0, passed: 12\n",
    ] {
        let fault = fault(log, &["--exit-code", "1"]);
        assert_eq!(fault["kind"], "agent_error", "{log}");
        assert_eq!(
            (&fault["evidence"]["line"], &fault["evidence"]["text"]),
            (&Value::Null, &"".into()),
            "{log}: {fault}"
        );
        assert_eq!(fault["detail"], "", "{log}");
    }
    let unknown = fault("Error: the flux capacitor is not aligned\n", &["--exit-code", "1"]);
    assert_eq!(
        (&unknown["evidence"]["rule"], &unknown["evidence"]["line"]),
        (&"log.unknown".into(), &1.into())
    );
}

/// A quote can be found in the input with a search.
#[test]
fn what_is_quoted_stands_in_the_input() {
    for log in [
        "2026-11-15T19:28:28.162916Z ERROR codex_core::client: 429 Too Many Requests\n",
        "error code: 1020\n",
        "[ERROR] [2026-02-01 06:41:00] rate limit exceeded\n",
        "● API Error: 529 overloaded\n",
        "  ⎿  Error: 401 invalid api key\n",
        "{\"type\":\"result\",\"is_error\":true,\"result\":\"API Error: 529 overloaded\"}\n",
        "litellm.RateLimitError: Error code: 429 - {'error': {'message': 'Rate limit reached', 'type': 'requests'}}\n",
        "API Error: 429 {\"type\":\"error\",\"error\":{\"type\":\"rate_limit_error\",\"message\":\"slow down\"}}\n",
        "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\n",
        "openai.APIConnectionError: Connection error.\nsocket.gaierror: [Errno -2] Name or service not known\n",
    ] {
        for args in [&["--exit-code", "1"][..], &[]] {
            let fault = fault(log, args);
            let (line, quoted) = (&fault["evidence"]["line"], fault["evidence"]["text"].as_str().unwrap());
            let stands = log.lines().nth(usize::try_from(line.as_u64().unwrap()).unwrap() - 1).unwrap();
            assert_eq!(quoted, stands.trim(), "{log} {args:?}");
        }
    }
    let colours = "\u{1b}[31mError: 401 invalid api key\u{1b}[0m\n";
    assert_eq!(fault(colours, &["--exit-code", "1"])["evidence"]["text"], "Error: 401 invalid api key");
    let secret =
        "2026-11-15T19:28:28Z ERROR 401 invalid api key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD\n";
    let shown = fault(secret, &["--exit-code", "1"])["evidence"]["text"].as_str().unwrap().to_owned();
    assert!(shown.starts_with("2026-11-15T19:28:28Z ERROR 401") && !shown.contains("abcdefghij"), "{shown}");
}

/// One name that does not resolve is known to affect that host, and not more.
#[test]
fn one_unresolved_name_is_no_fault_of_the_machine() {
    let log = "curl: (6) Could not resolve host: api.example.com\n";
    let fault = fault(log, &[]);
    assert_eq!((&fault["kind"], &fault["sub"]), (&"connection_failed".into(), &"dns".into()));
    let en = said(log, &[]);
    assert!(
        !en.contains("every connection") && !en.contains("Another provider or model may work right now"),
        "{en}"
    );
    assert!(en.contains("requests to the same host"), "{en}");
    assert!(en.contains("Another provider may work, unless this machine is offline"), "{en}");
    let ja = said(log, &["--lang", "ja"]);
    assert!(!ja.contains("通信すべて") && !ja.contains("モデルなら、今すぐ"), "{ja}");
    assert!(ja.contains("同じホスト") && ja.contains("このマシンがオフラインでなければ"), "{ja}");
}

/// Of a long output the middle is not read: the line is still the one in the file.
#[test]
fn the_line_of_a_long_output_is_the_one_in_the_file() {
    let output = format!("{}bash: frobnicate: command not found\n", "reading one more file\n".repeat(4_000));
    let fault = fault(&output, &["--kind", "tool", "--is-error", "true"]);
    assert_eq!(fault["category"], "missing_command");
    assert_eq!(
        (&fault["evidence"]["line"], &fault["evidence"]["text"]),
        (&4_001.into(), &"bash: frobnicate: command not found".into())
    );
}

const CUT_STREAM: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\
    \"role\":\"assistant\",\"content\":[],\"model\":\"claude\",\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
    event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
    event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"Hello\"}}\n\n";

/// A stream is cut where it ends, and no words are involved; an empty body has no line.
#[test]
fn the_form_of_an_answer_is_told_as_its_form_and_with_its_own_line() {
    let cut = said(CUT_STREAM, &["--lang", "en"]);
    assert!(cut.contains("Found in line 8") && cut.contains("by the form of the answer"), "{cut}");
    assert!(!cut.contains("wording"), "{cut}");
    let ja = said(CUT_STREAM, &["--lang", "ja"]);
    assert!(ja.contains("8 行目") && ja.contains("応答の形から") && !ja.contains("文言から"), "{ja}");
    for (text, status) in [("", "200"), ("", "500"), ("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", "200")]
    {
        let empty = said(text, &["--status", status, "--lang", "en"]);
        assert!(empty.contains("no text in the body") && !empty.contains("in line"), "{empty}");
        assert!(!empty.contains("wording"), "{empty}");
        assert_eq!(fault(text, &["--status", status])["evidence"]["line"], Value::Null);
    }
}

/// Who must sign in first is not told to send the same again, and no key is concerned.
#[test]
fn an_expired_sign_in_is_tried_again_after_signing_in() {
    let text = "API Error: 401 {\"type\":\"error\",\"error\":{\"type\":\"authentication_error\",\"message\":\"OAuth token has expired. \
        Please obtain a new token or refresh your existing token.\"}} · Please run /login\n";
    let en = said(text, &["--lang", "en"]);
    assert!(en.contains("after signing in again") && en.contains("uses this sign-in"), "{en}");
    assert!(!en.contains("the same request may succeed") && !en.contains("API key"), "{en}");
    let ja = said(text, &["--lang", "ja"]);
    assert!(
        ja.contains("もう一度サインインすれば可能です。") && ja.contains("このサインインを使うもの"),
        "{ja}"
    );
}

/// The last line of a compiler says that something failed, and not what.
#[test]
fn the_last_line_of_a_compiler_names_no_cause() {
    let fault = fault("error: could not compile `foo` (bin \"foo\") due to 2 previous errors\n", &[]);
    assert_eq!((&fault["kind"], &fault["category"]), (&"tool_failed".into(), &"other".into()), "{fault}");
}

/// Only a length of time is counted from somewhere. Of a time of day, the date is what was not stated.
#[test]
fn a_time_of_day_is_not_counted() {
    let text =
        "2026-11-18T10:00:00Z INFO start\n2026-11-18T10:15:00Z Error: 5-hour limit reached ∙ resets 11pm\n";
    let args = ["--zone", "UTC", "--lang"];
    let en = said(text, &[&args[..], &["en"]].concat());
    assert!(
        en.contains("The date was taken from the time in the text") && !en.contains("ounted from"),
        "{en}"
    );
    let ja = said(text, &[&args[..], &["ja"]].concat());
    assert!(ja.contains("日付は、テキスト内の時刻") && !ja.contains("数えて"), "{ja}");
    let relative = said("Error: 429 rate limit exceeded, retry after 45 seconds\n", &["--lang", "en"]);
    assert!(relative.contains("Counted from now"), "{relative}");
}

/// A date decades away is a mistake: it makes no quota of a busy provider, and no reader is advised to wait for it.
#[test]
fn an_absurd_wait_names_no_quota() {
    let header = ["--status", "429", "--header", "Retry-After: Wed, 21 Oct 2099 07:28:00 GMT"];
    let far = fault("{\"error\":{\"message\":\"busy\"}}", &header);
    assert_eq!((&far["kind"], &far["wait"]), (&"rate_limited".into(), &Value::Null), "{far}");
    let hours = ["--status", "429", "--header", "Retry-After: 7200"];
    assert_eq!(fault("{\"error\":{\"message\":\"busy\"}}", &hours)["kind"], "quota_exceeded");
}

/// What git, kubectl, make and scripts print is theirs: no provider's key, and no agent that may be started again.
#[test]
fn the_failures_of_programs_that_agents_call_are_no_agents() {
    for (text, category) in [
        (
            "remote: Invalid username or token.\nfatal: Authentication failed for 'https://example.com/me/x.git/'\n",
            "auth",
        ),
        ("error: You must be logged in to the server (Unauthorized)\n", "auth"),
        ("fatal: not a git repository (or any of the parent directories): .git\n", "other"),
        ("fatal: No configured push destination.\nEither specify the URL from the command-line\n", "other"),
        (
            "To github.com:me/x.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'x'\nhint: Updates were rejected\n",
            "other",
        ),
        ("error: Your local changes to the following files would be overwritten by merge:\n\ta\n", "other"),
        (
            "Auto-merging a\nCONFLICT (add/add): Merge conflict in a\nAutomatic merge failed; fix conflicts and then commit the result.\n",
            "other",
        ),
        ("Error from server (NotFound): pods \"web\" not found\n", "other"),
        ("error: the server doesn't have a resource type \"podz\"\n", "other"),
        (
            "gcc -c nope.c\ncc1: fatal error: nope.c: No such file or directory\ncompilation terminated.\nmake: *** [Makefile:2: all] Error 1\n",
            "file_io",
        ),
        (
            "Traceback (most recent call last):\n  File \"request.py\", line 1, in urlopen\n    return opener.open(url, data, timeout)\n           ^^^^^^\n\
             urllib.error.URLError: <urlopen error [Errno 111] Connection refused>\n",
            "network",
        ),
    ] {
        for args in [&[][..], &["--exit-code", "1"], &["--kind", "tool"]] {
            let fault = fault(text, args);
            assert_eq!(
                (&fault["kind"], &fault["category"]),
                (&"tool_failed".into(), &category.into()),
                "{args:?} {text}: {fault}"
            );
            let again = matches!(category, "network");
            assert_eq!(fault["advice"]["same"], again, "{args:?} {text}: {fault}");
        }
    }
    // An agent's own failure stays its own, and a panic ends a process.
    assert_eq!(fault("Error: something odd\n", &["--exit-code", "1"])["kind"], "agent_error");
    assert_eq!(
        fault("fatal error: all goroutines are asleep - deadlock!\n", &["--exit-code", "2"])["kind"],
        "process_failed"
    );
}

/// The answer's headers alone say what the gateway decided on; so does the line of a stream's error, and no mark before it.
#[test]
fn the_gateways_own_word_is_taken_from_where_it_stands() {
    for (status, kind) in [(404, "model_not_found"), (502, "unauthorized"), (503, "cooling_down")] {
        let head = format!(
            "HTTP/1.1 {status} Status\r\ncontent-type: application/json\r\nx-koboshi-attempts: 0\r\nx-koboshi-fault: {kind}\r\n\r\n"
        );
        let fault = fault(&head, &[]);
        assert_eq!((&fault["kind"], &fault["confidence"]), (&kind.into(), &"high".into()), "{fault}");
    }
    let error = r#"data: {"error":{"message":"The connection was closed.","koboshi":{"kind":"connection_closed","errorCode":"KBS-1005","lang":"en","message":"Our message.","suggestion":"Our suggestion."}}}"#;
    let stream = format!(
        "data: {{\"koboshi\":{{\"simulated\":true}},\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"a\"}}}}]}}\n\n{error}\n\n"
    );
    let fault = fault(&stream, &[]);
    assert_eq!(fault["kind"], "connection_closed", "{fault}");
    assert_eq!(
        (&fault["evidence"]["line"], &fault["message"]),
        (&3.into(), &"Our message.".into()),
        "{fault}"
    );
}

/// Words that the provider gives as a code are no mere wording.
#[test]
fn what_a_code_states_is_sure() {
    let of = |code: &str| {
        let body = format!(r#"{{"error":{{"message":"Rate limit reached for gpt-4o","code":{code}}}}}"#);
        fault(&body, &["--status", "429"])["confidence"].clone()
    };
    assert_eq!((of("\"rate_limit_exceeded\""), of("null")), ("high".into(), "medium".into()));
}
