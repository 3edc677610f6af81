//! What a text advises works as it is printed, and names what is really there: the store, the config, the provider.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use common::served::Served;
use common::{Out, koboshi, run_with};
use koboshi_sim::{Beat, Beats, End, Head, Play};
use koboshi_testkit::{Answer, Upstream, until};
use serde_json::json;
use tempfile::TempDir;

/// A gateway with a config and a store of its own names, and a provider that it asks.
struct Scene {
    folder: TempDir,
    gateway: Served,
}

impl Scene {
    fn start(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (file, store) = (folder.path().join("gw.yaml"), folder.path().join("my store.db"));
        std::fs::write(&file, config).unwrap();
        let gateway = Served::start(&file, &store);
        Self { folder, gateway }
    }

    fn chat(&self, model: &str, headers: &[(&str, &str)]) -> Answer {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "hello"}]});
        self.gateway.post(&body, headers)
    }

    fn store(&self) -> PathBuf {
        self.folder.path().join("my store.db")
    }

    fn status(&self, args: &[&str]) -> Out {
        let store = self.store();
        let all: Vec<&str> =
            ["status", "--store", text(&store), "--lang"].iter().chain(args).copied().collect();
        run_with(&all, &[], "")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn message(answer: &Answer) -> String {
    answer.json()["error"]["message"].as_str().unwrap().to_owned()
}

/// An answer with this body and nothing else.
fn plain_answer(status: u16, headers: Vec<(&'static str, String)>, body: &'static str) -> Play {
    Play {
        head: Head::Answer { after: Duration::ZERO, status, headers },
        beats: Beats::from(vec![Beat { after: Duration::ZERO, bytes: body.into() }]),
        end: End::Clean,
    }
}

fn unpaid() -> Play {
    let json = vec![("content-type", "application/json".to_owned())];
    plain_answer(
        429,
        json,
        "{\"error\":{\"code\":\"insufficient_quota\",\"message\":\"You exceeded your current quota, please check your plan and billing details.\",\"type\":\"insufficient_quota\"}}",
    )
}

fn with_upstream(upstream: &Upstream, routes: &str) -> String {
    format!(
        "providers: {{up: {{kind: openai, base_url: \"{}/v1\", keys: [k]}}}}\nroutes: {{{routes}}}\nserve: {{threads: 1}}\n",
        upstream.url()
    )
}

/// The command in an error resumes what the error is about, typed as it is printed in any folder. A stranger is not told where the store is.
#[test]
fn the_command_in_an_error_reaches_the_store_of_its_gateway() {
    let upstream = Upstream::start();
    upstream.set("unpaid", |_| unpaid());
    let scene = Scene::start(&with_upstream(&upstream, "talk: [up/unpaid]"));
    let said = message(&scene.chat("talk", &[]));
    let stranger = message(&scene.chat("talk", &[("x-forwarded-for", "192.0.2.7")]));
    assert!(!stranger.contains("--store") && !stranger.contains(text(scene.folder.path())), "{stranger}");
    assert!(stranger.contains("on the gateway's machine: koboshi resume account:up"), "{stranger}");
    let command = said.split("resumes it: koboshi ").nth(1).unwrap_or_else(|| panic!("{said}"));
    until("it is recorded", || (scene.status(&["en"]).status == 1).then_some(()));
    let shown = scene.status(&["en"]);
    let elsewhere = tempfile::tempdir().unwrap();
    let typed = |command: &str| {
        let mut shell = Command::new("sh");
        let program = env!("CARGO_BIN_EXE_koboshi");
        shell.args(["-c", &format!("exec {program} {command} --lang en")]);
        shell.current_dir(elsewhere.path()).env("HOME", elsewhere.path()).env_remove("KOBOSHI_STORE");
        let out = shell.env_remove("XDG_STATE_HOME").env_remove("KOBOSHI_CONFIG").output().unwrap();
        (out.status.code(), String::from_utf8_lossy(&out.stdout).into_owned())
    };
    let advised = "resume it with: koboshi resume account:up --store ";
    until("the journal says it too", || {
        let journal = run_with(&["journal", "--store", text(&scene.store())], &[], "").text;
        journal.contains(advised).then_some(())
    });
    let (code, printed) = typed(command.trim());
    assert_eq!(code, Some(0), "{command}: {printed}\n{}", shown.text);
    assert!(printed.contains("account:up is available again"), "{printed}");
    let (code, printed) = typed(command.trim());
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("Looked in the store") && printed.contains("my store.db"), "{printed}");
}

/// What only the gateway has is reached through it.
#[test]
fn a_gateway_in_memory_is_named_by_its_address() {
    let upstream = Upstream::start();
    upstream.set("unpaid", |_| unpaid());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("gw.yaml");
    std::fs::write(&file, with_upstream(&upstream, "talk: [up/unpaid]")).unwrap();
    let gateway = Served::start(&file, Path::new("memory"));
    let body = json!({"model": "talk", "messages": [{"role": "user", "content": "hello"}]});
    let said = message(&gateway.post(&body, &[]));
    let address = format!("http://{}", gateway.address);
    assert!(said.contains(&format!("koboshi resume account:up --url {address}")), "{said}");
    let out = run_with(&["resume", "account:up", "--url", &address, "--lang", "en"], &[], "");
    assert_eq!(out.status, 0, "{} {}", out.text, out.error);
    let again = run_with(&["resume", "account:up", "--url", &address, "--lang", "en"], &[], "");
    assert!(again.text.contains(&format!("Asked the gateway at {address}")), "{}", again.text);
}

/// A key that a provider refused is set in the config that the gateway runs with.
#[test]
fn the_config_is_named_as_the_operator_named_it() {
    let upstream = Upstream::start();
    upstream.set("locked", |_| {
        let json = vec![("content-type", "application/json".to_owned())];
        plain_answer(401, json, "{\"error\":{\"code\":\"invalid_api_key\",\"message\":\"Incorrect API key provided\",\"type\":\"invalid_request_error\"}}")
    });
    let scene = Scene::start(&with_upstream(&upstream, "talk: [up/locked]"));
    let said = message(&scene.chat("talk", &[]));
    assert!(said.contains("gw.yaml") && !said.contains("koboshi.yaml"), "{said}");
}

/// The simulated provider has no address, and a path that a provider does not have is that provider's.
#[test]
fn a_wrong_address_is_told_of_who_has_one() {
    let upstream = Upstream::start();
    upstream.set("gone", |_| plain_answer(404, Vec::new(), ""));
    let scene = Scene::start(&with_upstream(&upstream, "talk: [up/gone]"));
    for model in ["sim/fail-404", "sim/html"] {
        let said = scene.chat(model, &[]).json()["error"]["koboshi"]["suggestion"].to_string();
        assert!(!said.contains("base_url") && said.contains("sim/ok"), "{model}: {said}");
    }
    let said = message(&scene.chat("talk", &[]));
    assert!(said.contains("Provider: up.") && said.contains("base_url"), "{said}");
    let ja = message(&scene.chat("talk", &[("accept-language", "ja")]));
    assert!(ja.contains("プロバイダー: up。"), "{ja}");
}

/// Who opens the chat page where it is off learns how to switch it on.
#[test]
fn a_chat_page_that_is_off_says_how_to_switch_it_on() {
    let scene = Scene::start("routes: {talk: [sim/ok]}\nserve: {threads: 1}\n");
    for path in ["/chat", "/chat/"] {
        let answer = scene.gateway.get(path);
        assert_eq!(answer.status, 404);
        assert!(message(&answer).contains("koboshi serve --chat"), "{path}: {}", message(&answer));
    }
}

/// A store says what it has a record of; the gateway may know more. A capped wait and an open breaker are told as what they are.
#[test]
fn status_promises_no_more_than_it_knows() {
    let routes = "down: [\"sim/fail-503?retry_after=1h\"], broken: [sim/fail-500]";
    let scene = Scene::start(&format!("routes: {{{routes}}}\nserve: {{threads: 1}}\n"));
    let clear = scene.status(&["en"]).text;
    let address = format!("koboshi status --url http://{}", scene.gateway.address);
    assert!(clear.contains("The store has no record") && clear.contains(&address), "{clear}");
    assert!(!clear.contains("All targets"), "{clear}");
    let said = message(&scene.chat("down", &[]));
    assert!(said.contains("try again after"), "{said}");
    let capped = until("it is recorded", || Some(scene.status(&["en"])).filter(|out| out.status == 1)).text;
    assert!(capped.contains("is asked again then, even if it states a longer wait"), "{capped}");
    assert!(scene.status(&["ja"]).text.contains("もう一度問い合わせます"));
    for _ in 0..8 {
        scene.chat("broken", &[]);
    }
    let open = until("the breaker is open", || {
        Some(scene.status(&["en"]).text).filter(|text| text.contains("breaker open"))
    });
    assert!(open.contains("single requests still go through to test it"), "{open}");
}

/// Who looked in the wrong store sees it.
#[test]
fn a_command_that_finds_nothing_names_where_it_looked() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("none.db");
    let out = koboshi(&["resume", "--all", "--store", text(&store), "--lang", "ja"]).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains(text(&store)) && said.contains("調べたストア"), "{said}");
}

/// Japanese lists have Japanese commas and brackets, and a command for an agent has no example of a model.
#[test]
fn lists_and_examples_fit_their_reader() {
    let config = "routes: {talk: [sim/fail-503, sim/overloaded]}\nserve: {threads: 1}\nagents: {good: {command: [echo], projects: [site]}}\n";
    let scene = Scene::start(config);
    let ja = message(&scene.chat("talk", &[("accept-language", "ja")]));
    assert!(ja.contains("sim/fail-503（unavailable）、sim/overloaded（overloaded）。"), "{ja}");
    let en = message(&scene.chat("talk", &[]));
    assert!(en.contains("sim/fail-503 (unavailable), sim/overloaded (overloaded)."), "{en}");
    let file = scene.folder.path().join("gw.yaml");
    let cool = |lang: &str| {
        let args = ["cool", "agent:goods", "--for", "1h", "--config", text(&file), "--store"];
        let store = scene.store();
        run_with(&[&args[..], &[text(&store), "--lang", lang]].concat(), &[], "").error
    };
    assert!(cool("en").contains("--force") && !cool("en").contains("model"), "{}", cool("en"));
    assert!(cool("ja").contains("ありませんか？ ") && !cool("ja").contains("モデル"), "{}", cool("ja"));
}

/// A Japanese reader of `check` gets no English sentence of the library that reads schedules.
#[test]
fn schedules_are_explained_in_the_readers_language() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("agents.yaml");
    for (schedule, said) in [("0 25 * * *", "0 から 23 まで"), ("0 3 * * nope", "欄を読み取れません")]
    {
        let config = format!("agents: {{a: {{command: [echo], when: \"{schedule}\"}}}}\n");
        std::fs::write(&file, config).unwrap();
        let out = run_with(&["check", text(&file), "--lang", "ja"], &[], "");
        let shown = format!("{}{}", out.text, out.error);
        assert!(shown.contains(said) && !shown.contains("must be"), "{schedule}: {shown}");
    }
}
