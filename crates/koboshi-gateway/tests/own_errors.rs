//! What the gateway itself says: every refusal in a sentence of its own, whole in both languages, in the envelope of the client that asks.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use crate::common::*;
use koboshi_config::gateway::ClientKey;
use koboshi_store::MemoryStore;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

const JA: (&str, &str) = ("accept-language", "ja");
const JSON: (&str, &str) = ("content-type", "application/json");
const CHAT: &str = "/v1/chat/completions";

fn hash(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn send(stage: &Stage, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut client = stage.client();
    client.send(method, path, headers, body.as_bytes());
    client.read()
}

fn message(answer: &Answer) -> String {
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

/// A whole text in its language, about nothing that was not asked.
fn assert_own(text: &str, lang: &str) {
    for other in ["provider's detail", "プロバイダーの説明", "administrator of the account", "{", "refused-"]
    {
        assert!(!text.contains(other), "{text}");
    }
    if lang == "ja" {
        assert!(text.ends_with('。'), "{text}");
        assert!(!text.contains(". ") && !text.contains("。 ") && !text.contains("。."), "{text}");
        // Every sentence has Japanese in it: none is left in English.
        for sentence in text.split_terminator('。') {
            let is_japanese = |c: char| ('\u{3040}'..='\u{30ff}').contains(&c);
            assert!(sentence.chars().any(is_japanese), "{sentence:?} in {text}");
        }
    } else {
        assert!(text.ends_with('.') && text.is_ascii(), "{text}");
        assert!(text.starts_with(|c: char| c.is_ascii_uppercase() || c == '/' || c == 'm'), "{text}");
    }
}

/// A request with its method, path, headers and body, and what it is refused with: a status, the words of the message in English and Japanese.
type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], &'a str, u16, [&'a str; 2]);

#[test]
fn every_refusal_is_a_sentence_of_its_own_in_both_languages() {
    let stage = Stage::with(&["one/ok"], |config| config.serve.body_bytes = 64 * 1024);
    let large = format!("{{\"x\": \"{}\"}}", "x".repeat(100_000));
    let cases: &[Case<'_>] = &[
        (
            "GET",
            "/nothing",
            &[],
            "",
            404,
            ["does not serve GET /nothing", "GET /nothing は Koboshi では提供していません"],
        ),
        ("GET", "/v1/v1/models", &[], "", 404, ["goes to /v1/models", "バージョンが二重に入っています"]),
        ("GET", CHAT, &[], "", 405, ["does not take GET", "GET に対応していません"]),
        (
            "POST",
            CHAT,
            &[("content-type", "text/plain")],
            "{}",
            415,
            ["must be sent as JSON", "JSON で送信する必要があります"],
        ),
        ("POST", CHAT, &[], "", 400, ["body is empty", "本文が空です"]),
        (
            "POST",
            CHAT,
            &[],
            "{\"model\":\"m\",",
            400,
            ["line 1, column 13", "1 行目の 13 列目で途切れています"],
        ),
        (
            "POST",
            CHAT,
            &[],
            "{\"model\":\n nonsense}",
            400,
            ["mistake at line 2, column 3", "2 行目の 3 列目に誤りがあります"],
        ),
        (
            "POST",
            CHAT,
            &[],
            "{\"model\":\"two\",\"messages\":[{\"role\":\"user\",\"content\":\"こんにちは世界\"}],}",
            400,
            ["mistake at line 1, column 65", "1 行目の 65 列目に誤りがあります"],
        ),
        ("POST", CHAT, &[], "[]", 400, ["must be one JSON object", "1 つの JSON オブジェクト"]),
        ("POST", CHAT, &[], "{\"messages\":[]}", 400, ["lacks the field model", "model がありません"]),
        ("POST", CHAT, &[], "{\"model\":\"m\"}", 400, ["lacks the field messages", "messages がありません"]),
        (
            "POST",
            CHAT,
            &[],
            "{\"model\":\"m\",\"model\":\"m\",\"messages\":[]}",
            400,
            ["model twice", "model が 2 回"],
        ),
        (
            "POST",
            CHAT,
            &[],
            "{\"model\":5,\"messages\":[]}",
            400,
            ["model must be the name of a model", "model にはモデル名の文字列を指定"],
        ),
        (
            "POST",
            CHAT,
            &[],
            "{\"model\":\"m\",\"stream\":1,\"messages\":[]}",
            400,
            ["stream must be true or false", "stream には真偽値"],
        ),
        (
            "POST",
            CHAT,
            &[],
            "{\"model\":\"m\",\"messages\":[5]}",
            400,
            ["messages[0] must be an object", "messages[0] はオブジェクト"],
        ),
        (
            "POST",
            CHAT,
            &[],
            "{\"model\":\"m\",\"messages\":[{\"content\":\"x\"}]}",
            400,
            ["messages[0].role", "messages[0].role がありません"],
        ),
        ("POST", CHAT, &[], &large, 413, ["64 KiB", "上限（64 KiB）を超えています"]),
        (
            "POST",
            CHAT,
            &[("origin", "https://evil.example")],
            "{}",
            403,
            ["from https://evil.example may not", "https://evil.example の Web ページから"],
        ),
        (
            "POST",
            CHAT,
            &[("host", "evil.example")],
            "{}",
            403,
            ["the name evil.example", "evil.example という名前では"],
        ),
        (
            "POST",
            CHAT,
            &[],
            "{\"model\":\"unheard-of\",\"messages\":[]}",
            404,
            ["model unheard-of", "モデル unheard-of に対応する"],
        ),
        (
            "POST",
            "/v1/embeddings",
            &[],
            "{\"model\":\"unheard-of\",\"input\":\"x\"}",
            404,
            ["model unheard-of", "モデル unheard-of に対応する"],
        ),
        ("GET", "/v1/models/unheard-of", &[], "", 404, ["model unheard-of", "モデル unheard-of に対応する"]),
        (
            "GET",
            "/koboshi/ui",
            &[],
            "",
            404,
            ["no endpoint GET /koboshi/ui", "GET /koboshi/ui というエンドポイントはありません"],
        ),
        ("GET", "/koboshi/breakers", &[], "", 405, ["does not take GET", "GET に対応していません"]),
        (
            "POST",
            "/koboshi/breakers",
            &[],
            "{\"target\":\"x/y\",\"action\":\"open\"}",
            404,
            ["no target x/y", "x/y というターゲットはありません"],
        ),
        ("POST", "/koboshi/breakers", &[], "{\"target\":\"x/y\"", 400, ["ends too early", "途切れています"]),
        (
            "POST",
            "/koboshi/breakers",
            &[],
            "{\"target\":\"x/y\"}",
            400,
            ["lacks the field action", "action がありません"],
        ),
        (
            "POST",
            "/koboshi/breakers",
            &[],
            "{\"target\":\"x/y\",\"action\":\"explode\"}",
            400,
            ["form of this endpoint", "形式に合っていません"],
        ),
        (
            "POST",
            "/koboshi/cooldowns",
            &[],
            "{\"key\":\"nonsense\",\"action\":\"clear\"}",
            400,
            ["nonsense does not name", "nonsense は、"],
        ),
        (
            "POST",
            "/koboshi/cooldowns",
            &[],
            "{\"key\":\"provider:one\",\"action\":\"cool\"}",
            400,
            ["time in the future", "未来の日時"],
        ),
        ("GET", "/koboshi/journal?limit=0", &[], "", 400, ["from 1 to 10000", "1 から 10000 まで"]),
        ("GET", "/koboshi/journal?what=x", &[], "", 400, ["unknown value", "what の値が正しくありません"]),
        ("GET", "/koboshi/journal?since=soon", &[], "", 400, ["length of time", "時間の長さ"]),
        ("GET", "/koboshi/journal?wat=x", &[], "", 400, ["parameter wat", "wat というクエリパラメーター"]),
    ];
    for (method, path, headers, body, status, words) in cases {
        for (lang, word) in ["en", "ja"].into_iter().zip(words) {
            let given = headers.iter().map(|(name, _)| *name).collect::<Vec<_>>();
            let mut all = headers.to_vec();
            if lang == "ja" {
                all.push(JA);
            }
            if *method == "POST" && !given.contains(&"content-type") {
                all.push(JSON);
            }
            let answer = send(&stage, method, path, &all, body);
            assert_eq!(answer.status, *status, "{method} {path} {body:.80} {answer:?}");
            let text = message(&answer);
            assert!(text.contains(word), "{word:?} is not in {text:?}");
            assert_own(&text, lang);
            assert_eq!(answer.header("x-should-retry"), Some("false"));
            let koboshi = &answer.json()["error"]["koboshi"];
            assert_eq!(koboshi["lang"], lang);
            // No target was asked: none can help, and nothing else is affected.
            let helps = (&koboshi["advice"]["other"], &koboshi["scope"]);
            assert_eq!(helps, (&json!(false), &json!("request")), "{method} {path}");
            let (said, advice) =
                (koboshi["message"].as_str().unwrap(), koboshi["suggestion"].as_str().unwrap());
            assert!(text.starts_with(said) && text.ends_with(advice), "{koboshi}");
        }
    }
    assert_eq!(stage.calls(), (0, 0), "no provider was asked");
    let answer = send(&stage, "GET", CHAT, &[], "");
    assert_eq!(answer.header("allow"), Some("POST"));
}

#[test]
fn the_error_of_a_wrong_key_names_the_key_that_is_needed() {
    let stage = Stage::with(&["one/ok"], |config| {
        let key = ClientKey { sha256: hash("kbs-secret"), ..ClientKey::default() };
        config.keys.insert("laptop".to_owned(), key);
        config.admin.sha256 = Some(hash("kbs-admin"));
    });
    let body = chat(false).to_string();
    for (path, headers, words) in [
        (
            CHAT,
            vec![JSON],
            ["This Koboshi gateway needs a key", "この Koboshi ゲートウェイを使うにはキーが必要"],
        ),
        (
            CHAT,
            vec![JSON, ("authorization", "Bearer sk-proj-0123456789abcdefghij")],
            ["not a key of this Koboshi gateway", "この Koboshi ゲートウェイのキーではありません"],
        ),
        (
            "/koboshi/cooldowns",
            vec![JSON, ("authorization", "Bearer kbs-secret")],
            ["admin key of this gateway", "管理用キー"],
        ),
    ] {
        for (lang, word) in ["en", "ja"].into_iter().zip(words) {
            let mut headers = headers.clone();
            headers.push(("accept-language", lang));
            let answer = send(&stage, "POST", path, &headers, &body);
            assert_eq!(answer.status, 401, "{answer:?}");
            let text = message(&answer);
            assert_own(&text, lang);
            // The config may have any name.
            let place = if text.contains("設定ファイル") { "設定ファイル" } else { "config" };
            assert!(text.contains(word) && text.contains(place), "{text}");
            assert!(!text.contains("Set a valid key for this provider"), "{text}");
            assert!(
                !answer.text().contains("sk-proj") && !answer.text().contains("kbs-secret"),
                "{answer:?}"
            );
        }
    }
}

#[test]
fn paths_that_are_not_served_answer_in_the_envelope_of_the_client_that_asks() {
    let stage = Stage::of(&["one/ok"]);
    let claude =
        [("x-api-key", "k"), ("anthropic-version", "2023-06-01"), ("user-agent", "Anthropic/Python 2.8.0")];
    let google = [("x-goog-api-key", "k"), ("user-agent", "google-genai-sdk/3.1.0 gl-python/3.13.5")];
    let openai = [("authorization", "Bearer k"), ("user-agent", "OpenAI/Python 3.49.0")];
    for (method, path, headers, served) in [
        ("GET", "/v1/messages/batches?limit=20", &claude[..], "POST /v1/messages/count_tokens"),
        ("GET", "/v1/files", &claude[..], "POST /v1/messages"),
        ("GET", "/v1/organizations/usage", &claude[..1], "POST /v1/messages"),
    ] {
        let answer = send(&stage, method, path, headers, "");
        let body = answer.json();
        assert_eq!((answer.status, &body["type"]), (404, &json!("error")), "{path} {body}");
        assert_eq!(body["error"]["type"], "not_found_error", "{path}");
        assert!(message(&answer).contains(served), "{body}");
        assert!(!message(&answer).contains("chat/completions"), "{body}");
        assert!(body["request_id"].is_string(), "{body}");
    }
    for (method, path, headers) in [
        ("POST", "/v1beta/models/gemini-embedding-001:batchEmbedContents", &google[..]),
        ("POST", "/v1beta/models/gemini-2.5-flash:embedContent", &[]),
        ("GET", "/v1/files", &google[..]),
        ("POST", "/upload/v1beta/files", &[]),
    ] {
        let answer = send(&stage, method, path, headers, "");
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status, &error["code"], &error["status"]),
            (404, &json!(404), &json!("NOT_FOUND")),
            "{error}"
        );
        assert!(error["message"].as_str().unwrap().contains(":generateContent"), "{error}");
    }
    for (method, path, headers) in [
        ("POST", "/v1/images/generations", &openai[..]),
        ("GET", "/v1/files", &openai[..]),
        ("POST", "/v1/completions", &[]),
    ] {
        let answer = send(&stage, method, path, headers, "");
        let error = assert_error(&answer, 404, "invalid_request");
        assert_eq!(error["type"], "invalid_request_error");
        let text = message(&answer);
        assert!(text.contains("POST /v1/responses") && !text.contains("/v1/messages"), "{text}");
    }
    // An unknown client gets all of them.
    let text = message(&send(&stage, "GET", "/api/chat", &[], ""));
    for path in ["/v1/chat/completions", "/v1/messages", "/v1beta/models/MODEL:generateContent"] {
        assert!(text.contains(path), "{text}");
    }
    // The error of a wrong method has the envelope of its path too.
    let body = send(&stage, "GET", "/v1/messages", &[], "").json();
    assert_eq!((&body["type"], &body["error"]["type"]), (&json!("error"), &json!("invalid_request_error")));
}

#[test]
fn the_root_says_what_this_is() {
    let stage = Stage::with(&["one/ok"], |config| {
        let key = ClientKey { sha256: hash("kbs-secret"), ..ClientKey::default() };
        config.keys.insert("laptop".to_owned(), key);
    });
    let answer = send(&stage, "GET", "/", &[], "");
    let body = answer.json();
    assert_eq!((answer.status, &body["name"]), (200, &json!("koboshi")));
    assert!(body["served"].as_array().unwrap().iter().any(|one| one["path"] == "/v1/messages"), "{body}");
    for (lang, word) in [
        ("en", "dashboard for operators is at /koboshi/."),
        ("ja", "ダッシュボードは /koboshi/ にあります。"),
    ] {
        let accept = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
        let answer = send(&stage, "GET", "/", &[accept, ("accept-language", lang)], "");
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/html; charset=utf-8")));
        let page = answer.text();
        assert!(page.contains(word) && page.contains("<title>Koboshi</title>"), "{page}");
        assert!(page.contains(&format!("lang=\"{lang}\"")) && page.contains("href=\"/health\""), "{page}");
    }
    assert_eq!(send(&stage, "POST", "/", &[], "{}").status, 405);
}

#[test]
fn the_root_names_the_chat_page_where_it_is_served() {
    let stage = Stage::with(&["one/ok"], |config| config.serve.chat = true);
    let body = send(&stage, "GET", "/", &[], "").json();
    assert!(body["own"].as_array().unwrap().contains(&json!("/chat/")), "{body}");
    for (lang, word) in [("en", "its chat page at /chat/."), ("ja", "チャット画面は /chat/ にあります。")]
    {
        let headers = [("accept", "text/html"), ("accept-language", lang)];
        let page = send(&stage, "GET", "/", &headers, "").text();
        assert!(page.contains("href=\"/chat/\"") && page.contains(word), "{page}");
    }
}

/// Without a provider nothing is made up: only who names the simulated provider gets its answers.
#[test]
fn without_a_provider_only_what_names_the_simulated_one_is_answered() {
    let gateway = start(config(), &MemoryStore::default()).unwrap();
    let ask = |path: &str, body: &Value, headers: &[(&str, &str)]| {
        let mut client = Client::to(gateway.address());
        client.send("POST", path, headers, body.to_string().as_bytes());
        client.read()
    };
    let get = |path: &str, headers: &[(&str, &str)]| {
        let mut client = Client::to(gateway.address());
        client.send("GET", path, headers, b"");
        client.read()
    };
    for (lang, word) in [("en", "has no AI provider"), ("ja", "AI プロバイダーが設定されていない")]
    {
        for model in ["gpt-4o", "openai/gpt-4o", "claude-sonnet-4-5", "ok"] {
            for (path, body) in [
                (CHAT.to_owned(), json!({"model": model, "messages": [{"role": "user", "content": "hi"}]})),
                ("/v1/messages".to_owned(), json!({"model": model, "max_tokens": 5, "messages": []})),
                ("/v1/messages/count_tokens".to_owned(), json!({"model": model, "messages": []})),
                ("/v1/responses".to_owned(), json!({"model": model, "input": "hi", "stream": true})),
                ("/v1/embeddings".to_owned(), json!({"model": model, "input": "hi"})),
                (format!("/v1beta/models/{model}:generateContent"), json!({"contents": []})),
                (format!("/v1beta/models/{model}:countTokens"), json!({"contents": []})),
            ] {
                let answer = ask(&path, &body, &[("accept-language", lang)]);
                assert_eq!(answer.status, 404, "{path} {model} {answer:?}");
                let text = message(&answer);
                assert_own(&text, lang);
                for word in
                    [word, model, "OPENAI_API_KEY", "koboshi.yaml", "koboshi init", "koboshi serve --demo"]
                {
                    assert!(text.contains(word), "{word}: {text}");
                }
                assert_eq!(answer.header("x-should-retry"), Some("false"));
                assert_eq!(answer.json()["error"]["koboshi"]["kind"], "model_not_found");
            }
        }
        let ready = get("/ready", &[("accept-language", lang)]);
        let body = ready.json();
        assert_eq!((ready.status, &body["ready"]), (503, &json!(false)), "{body}");
        assert_eq!(body["reason"], "no_provider");
        assert_own(body["suggestion"].as_str().unwrap(), lang);
    }
    assert_eq!(get("/health", &[]).status, 200, "it lives");
    let body = json!({"model": "sim/ok", "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(ask(CHAT, &body, &[]).status, 200);
}

#[test]
fn readiness_follows_what_answers() {
    let ready = |gateway: &koboshi_gateway::Gateway| {
        let mut client = Client::to(gateway.address());
        client.send("GET", "/ready", &[], b"");
        let answer = client.read();
        let body = answer.json();
        (answer.status, body["simulated"].clone(), body["demo"].clone())
    };
    let store = MemoryStore::default();
    let mut simulated = config();
    simulated.routes.insert("m".to_owned(), route(&["sim/ok"]));
    let gateway = start(simulated, &store).unwrap();
    assert_eq!(ready(&gateway), (200, json!(true), json!(false)), "routes name the simulated provider");
    let gateway = start_demo(config(), &store).unwrap();
    assert_eq!(ready(&gateway), (200, json!(true), json!(true)), "a demo");
    let stage = Stage::of(&["one/ok"]);
    assert_eq!(ready(&stage.gateway), (200, json!(false), json!(false)), "a provider");
    // A reload that takes the providers away is seen.
    let mut empty = config();
    empty.routes.clear();
    stage.gateway.reload(empty).unwrap();
    assert_eq!(ready(&stage.gateway).0, 503);
}

#[test]
fn a_demo_asks_no_provider_whatever_the_config_names() {
    let (one, store) = (koboshi_testkit::Upstream::start(), MemoryStore::default());
    let mut demo = config();
    demo.providers.insert("one".to_owned(), provider(one.url()));
    demo.routes.insert("m".to_owned(), route(&["one/ok"]));
    let gateway = start_demo(demo, &store).unwrap();
    for model in ["m", "one/ok", "gpt-4o", "nobody/knows"] {
        let mut client = Client::to(gateway.address());
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
        client.send("POST", CHAT, &[], body.to_string().as_bytes());
        let answer = client.read();
        assert_eq!((answer.status, answer.header("x-koboshi-simulated")), (200, Some("true")), "{answer:?}");
    }
    assert_eq!(one.all_calls(), 0);
}

#[test]
fn what_a_demo_made_up_is_not_given_once_providers_are_real() {
    let (one, store) = (koboshi_testkit::Upstream::start(), MemoryStore::default());
    let mut settings = config();
    settings.providers.insert("one".to_owned(), provider(one.url()));
    settings.routes.insert("m".to_owned(), route(&["one/fail-503"]));
    settings.degrade.cache = koboshi_config::gateway::CacheMode::Serve;
    let ask = |gateway: &koboshi_gateway::Gateway| {
        let mut client = Client::to(gateway.address());
        client.send("POST", CHAT, &[], chat(false).to_string().as_bytes());
        client.read()
    };
    let gateway = start_demo(settings.clone(), &store).unwrap();
    assert_eq!(ask(&gateway).header("x-koboshi-cache"), None);
    let kept = ask(&gateway);
    assert_eq!(
        (kept.header("x-koboshi-cache"), kept.header("x-koboshi-simulated")),
        (Some("hit"), Some("true"))
    );
    assert_eq!(kept.json()["koboshi"]["simulated"], true, "{kept:?}");
    // The store has it too, and would be asked where the provider fails.
    gateway.stop();
    let gateway = start(settings, &store).unwrap();
    let answer = ask(&gateway);
    assert_eq!((answer.status, answer.header("x-koboshi-simulated")), (503, None), "{answer:?}");
    assert!(one.all_calls() > 0);
}

#[test]
fn a_simulated_refusal_asks_for_no_key() {
    let gateway = start(config(), &MemoryStore::default()).unwrap();
    for (lang, word) in [("en", "There is no key to set."), ("ja", "設定するキーはありません。")]
    {
        let body = json!({"model": "sim/auth-401", "messages": [{"role": "user", "content": "hi"}]});
        let mut client = Client::to(gateway.address());
        client.send("POST", CHAT, &[("accept-language", lang)], body.to_string().as_bytes());
        let text = message(&client.read());
        assert!(text.contains(word) && !text.contains("providers.sim.keys"), "{text}");
    }
}

/// A misspelt route is answered with the one that is meant, as the command line does.
#[test]
fn a_misspelt_route_is_answered_with_the_near_one() {
    let stage = Stage::with(&["one/ok"], |config| {
        let route = config.routes.values().next().unwrap().clone();
        config.routes.insert("assistant".to_owned(), route);
    });
    let ask = |model: &str, more: &[(&str, &str)]| {
        let headers: Vec<_> = [JSON].iter().chain(more).copied().collect();
        let body = json!({"model": model, "messages": [{"role": "user", "content": "x"}]}).to_string();
        let answer = send(&stage, "POST", CHAT, &headers, &body);
        assert_eq!(answer.status, 404, "{answer:?}");
        message(&answer)
    };
    assert!(ask("assistent", &[]).contains("Did you mean assistant?"), "{}", ask("assistent", &[]));
    assert!(ask("assistent", &[JA]).contains("assistant のことでしょうか"), "{}", ask("assistent", &[JA]));
    assert!(!ask("something-else", &[]).contains("Did you mean"));
}
