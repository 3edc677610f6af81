//! What the TypeScript client has of ours: the kinds of faults and the words of its error display. Both files are written here, from the fault
//! table and from the phrases; `KOBOSHI_GOLDEN=write` writes them again. And the chat page that is built on them.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fmt::Write as _;

use common::repository;
use common::served::Served;
use koboshi::fault::TABLE;
use koboshi_report::phrase::{Lang, Phrases};
use koboshi_testkit::Client;

fn compare(path: &str, made: &str) {
    let path = repository(path);
    if std::env::var("KOBOSHI_GOLDEN").is_ok_and(|mode| mode == "write") {
        return std::fs::write(path, made).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        there == made,
        "{} is stale: run `KOBOSHI_GOLDEN=write cargo test -p koboshi-cli --test web`",
        path.display()
    );
}

fn head(source: &str) -> String {
    format!(
        "// Made by `KOBOSHI_GOLDEN=write cargo test -p koboshi-cli --test web`. Edit {source} instead.\n\n"
    )
}

#[test]
fn the_kinds_of_the_client_are_the_fault_table() {
    let mut made = head("the fault table (crates/koboshi/src/fault/kind.rs)");
    made.push_str(
        "/** Every kind of fault, with the digits of its code and its number in the streaming protocol. */\nexport const KINDS = {\n",
    );
    for row in TABLE {
        writeln!(made, "  {}: [{}, {}],", row.name, row.code, row.stream_code).unwrap();
    }
    made.push_str("} as const;\n\nexport type FaultKind = keyof typeof KINDS;\n");
    compare("web/client/src/kinds.ts", &made);
}

#[test]
fn the_words_of_the_display_are_the_phrases() {
    let source = std::fs::read_to_string(repository("crates/koboshi-report/phrases/en.ftl")).unwrap();
    let ids: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("display-")?.split_once(" ="))
        .map(|(id, _)| id)
        .collect();
    let phrases = Phrases::new().unwrap();
    let mut made = head("the section of the display in crates/koboshi-report/phrases/*.ftl");
    made.push_str("/** The words of the error display; `{name}` is filled in. A kind has its message and its suggestion. */\nexport const PHRASES = {\n");
    for &lang in Lang::ALL {
        let text = |id: &str| {
            let filled = [("count", "{count}"), ("time", "{time}")];
            let text = phrases.text(lang, &format!("display-{id}"), &filled).unwrap();
            serde_json::to_string(&text).unwrap()
        };
        writeln!(made, "  {}: {{", lang.name()).unwrap();
        for id in ids.iter().filter(|id| !id.starts_with("kind-")) {
            writeln!(made, "    {}: {},", id.replace('-', "_"), text(id)).unwrap();
        }
        made.push_str("    kinds: {\n");
        for kind in ids.iter().filter_map(|id| id.strip_prefix("kind-")) {
            let part = |part: &str| text(&format!("kind-{kind}.{part}"));
            writeln!(
                made,
                "      {}: [{}, {}],",
                kind.replace('-', "_"),
                part("message"),
                part("suggestion")
            )
            .unwrap();
        }
        made.push_str("    },\n  },\n");
    }
    made.push_str("} as const;\n");
    compare("web/client/src/display/phrases.ts", &made);
}

#[test]
fn the_words_of_the_dashboard_about_faults_are_the_phrases() {
    let source = std::fs::read_to_string(repository("crates/koboshi-report/phrases/en.ftl")).unwrap();
    let ids: Vec<&str> =
        source.lines().filter_map(|line| line.strip_prefix("kind-")?.strip_suffix(" =")).collect();
    let phrases = Phrases::new().unwrap();
    let mut made = head("crates/koboshi-report/phrases/*.ftl and the fault table");
    made.push_str("/** Kinds of faults: the digits of their code, and who causes them. */\nexport const KINDS: Record<string, readonly [code: string, origin: string]> = {\n");
    for row in TABLE {
        writeln!(made, "  {}: [\"{}\", \"{}\"],", row.name, row.code, row.origin.name()).unwrap();
    }
    made.push_str("};\n\n/** What is said of a kind, or of a kind and its finer reason: what failed, and what to do. */\nexport const ADVICE: Record<\"en\" | \"ja\", Record<string, readonly [message: string, suggestion: string]>> = {\n");
    for &lang in Lang::ALL {
        writeln!(made, "  {}: {{", lang.name()).unwrap();
        for id in &ids {
            let part = |part: &str| {
                let text = phrases.text(lang, &format!("kind-{id}.{part}"), &[]).unwrap();
                serde_json::to_string(&text).unwrap()
            };
            writeln!(made, "    \"{id}\": [{}, {}],", part("message"), part("suggestion")).unwrap();
        }
        made.push_str("  },\n");
    }
    made.push_str("};\n");
    compare("web/dashboard/src/kinds.ts", &made);
}

#[test]
fn the_chat_page_is_served_where_the_config_says_so_and_its_own_origin_may_call() {
    let folder = tempfile::tempdir().unwrap();
    let served = |config: &str| {
        let path = folder.path().join("koboshi.yaml");
        std::fs::write(&path, config).unwrap();
        Served::start(&path, &folder.path().join("store.db"))
    };
    let get = |served: &Served, path: &str, origin: &str| {
        let mut client = Client::to(served.address);
        let headers: &[(&str, &str)] = if origin.is_empty() { &[] } else { &[("origin", origin)] };
        client.send("GET", path, headers, b"");
        client.read()
    };
    let without = served("serve: {chat: false}\n");
    assert_eq!(get(&without, "/chat/", "").status, 404);
    assert_eq!(get(&without, "/v1/models", "http://localhost").status, 403);

    let with = served("serve: {chat: true}\n");
    let moved = get(&with, "/chat", "");
    assert_eq!((moved.status, moved.header("location")), (308, Some("/chat/")));
    for (path, kind) in [
        ("/chat/", "text/html; charset=utf-8"),
        ("/chat/chat.css", "text/css; charset=utf-8"),
        ("/chat/chat.js", "text/javascript; charset=utf-8"),
        ("/chat/koboshi.js", "text/javascript; charset=utf-8"),
    ] {
        let file = get(&with, path, "");
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)), "{path}");
        let policy = file.header("content-security-policy").unwrap();
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(file.header("x-content-type-options"), Some("nosniff"), "{path}");
    }
    assert_eq!(get(&with, "/chat/other.js", "").status, 404);
    assert_eq!(get(&with, "/v1/models", "http://localhost").status, 200, "a page of this gateway");
    for stranger in ["http://evil.example", "http://localhost:1", "null", "localhost"] {
        assert_eq!(get(&with, "/v1/models", stranger).status, 403, "{stranger}");
    }
}
