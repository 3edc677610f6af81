//! Who follows a hint gets rid of the mistake: no hint leads to the next error.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use koboshi_config::check::{Problem, Problems};
use koboshi_config::config::Language;
use koboshi_config::load;
use koboshi_config::schema::{KEYS, Key, Shape};

fn lookup(name: &str) -> Option<String> {
    (name == "EMPTY").then(String::new)
}

fn problems(text: &str) -> Option<Problems> {
    load("koboshi.yaml", text, &lookup).err()
}

fn first(text: &str) -> Problem {
    problems(text).unwrap_or_else(|| panic!("valid: {text}")).iter().next().unwrap().clone()
}

fn hint(text: &str) -> String {
    first(text).hint.map(|hint| hint.get(Language::En).to_owned()).unwrap_or_default()
}

fn hint_ja(text: &str) -> String {
    first(text).hint.map(|hint| hint.get(Language::Ja).to_owned()).unwrap_or_default()
}

/// What a hint says to write: everything in back quotes behind `write`.
fn suggestions(hint: &str) -> Vec<String> {
    let Some((_, behind)) = hint.split_once("write `") else { return Vec::new() };
    let behind = format!("`{behind}");
    behind.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// A file that sets one key outside of entries.
fn setting(key: &Key, value: &str) -> String {
    let parts: Vec<&str> = key.path.split('.').collect();
    let open: String = parts.iter().map(|part| format!("{{{part}: ")).collect();
    format!("{open}{value}{}", "}".repeat(parts.len()))
}

/// Every key that holds a number or a length, with every way to write one wrong.
#[test]
fn what_a_hint_says_to_write_may_be_written() {
    let wrong = [
        "1w", "2 weeks", "999d", "1000000", "0", "1e6", "5e9", "-5", "\"5\"", "\"1000000\"", "\"1.5\"",
        "50%", "\"500%\"", "\"1,000,000\"", "\"1,0\"", "3sec", "１０", "３０s", "0.5", "50", "1MB", "4GB",
        "true", "${NAME}", "[3]",
    ];
    let mut followed = 0;
    for key in KEYS.iter().filter(|key| !key.path.contains('*')) {
        let is_scalar = matches!(
            key.shape,
            Shape::Length { .. }
                | Shape::Seconds { .. }
                | Shape::Count { .. }
                | Shape::Number { .. }
                | Shape::Choice { .. }
        ) || key.path == "serve.memory";
        if !is_scalar {
            continue;
        }
        for value in wrong {
            let Some(found) = problems(&setting(key, value)) else { continue };
            let Some(problem) = found.iter().find(|problem| problem.path == key.path) else { continue };
            let said = problem.hint.as_ref().map_or("", |hint| hint.get(Language::En));
            for suggestion in suggestions(said) {
                let again = problems(&setting(key, &suggestion));
                let left = again
                    .iter()
                    .flatten()
                    .find(|problem| problem.path == key.path && problem.place.is_some_and(|at| at.line == 1));
                // Two keys that do not fit each other are another mistake, with another hint.
                let of_two = [", which is ", "is set, but"];
                let left = left.filter(|left| {
                    !of_two.iter().any(|words| left.message.get(Language::En).contains(words))
                });
                assert!(left.is_none(), "{}: {value}: {said}: then {}", key.path, left.unwrap());
                followed += 1;
            }
        }
    }
    assert!(followed > 300, "{followed}");
}

/// Mistakes with the whole file that the hint leads to.
#[test]
fn following_a_hint_leads_to_a_file_that_is_read() {
    for (wrong, said, right) in [
        ("serve:\n  deadline: 1w\n", "1ms to 1d", "serve:\n  deadline: 1d\n"),
        ("serve:\n  deadline: 1000000\n", "`1000000ms`", "serve:\n  deadline: 1000000ms\n"),
        ("serve:\n  deadline: ${NAME}\n", "variables are read in text only", "serve:\n  deadline: 30s\n"),
        ("serve:\n  memory: 1000000\n", "`977KiB`", "serve:\n  memory: 977KiB\n"),
        ("serve:\n  memory: 1GB\n", "`1GiB`", "serve:\n  memory: 1GiB\n"),
        ("serve:\n  max_body_bytes: 1,000,000\n", "`1000000`", "serve:\n  max_body_bytes: 1000000\n"),
        (
            "providers: {p: {kind: openai, keys: [\"${EMPTY}\"]}}", "give it a value, or take `keys` out",
            "providers: {p: {kind: openai}}",
        ),
        (
            "providers: {p: {kind: openai, keys: [\"${NONE:-}\"]}}", "set it, or take `keys` out",
            "providers: {p: {kind: openai}}",
        ),
        (
            "serve:\n  listen: 127.0.0.1:4141\n   deadline: 5s\n", "begin in the same column",
            "serve:\n  listen: 127.0.0.1:4141\n  deadline: 5s\n",
        ),
        (
            "providers:\n  openai:\n    kind: openai\n      keys: []\n", "begin in the same column",
            "providers:\n  openai:\n    kind: openai\n    keys: []\n",
        ),
        (
            "serve: {deadline: 5s}\nroutes: a: b\n", "put a value that holds `: ` in quotes",
            "serve: {deadline: 5s}\nroutes: {\"a: b\": [sim/ok]}\n",
        ),
        ("routes: {*: [sim/ok]}\n", "`\"*\":`", "routes: {\"*\": [sim/ok]}\n"),
        ("routes:\n  *-mini: [sim/ok]\n", "`\"*\":`", "routes:\n  \"*-mini\": [sim/ok]\n"),
        ("routes:\n  a: *x\n", "a value that begins with `*`", "routes:\n  a: [sim/ok]\n"),
        (
            "agents: {a: {command: claude -p x}}\n", "`[\"claude\", \"-p\", \"x\"]`",
            "agents: {a: {command: [\"claude\", \"-p\", \"x\"]}}\n",
        ),
        ("store: sqlite:///tmp/x.db\n", "`store: {path: /tmp/x.db}`", "store: {path: /tmp/x.db}\n"),
        ("store: postgres://db/koboshi\n", "`store: {path: FILE}`", "store: {path: FILE}\n"),
        ("store: redis://db/0\n", "store: {redis: ", "store: {redis: \"redis://db/0\"}\n"),
        ("store: {file: /tmp/x.db}\n", "`path`", "store: {path: /tmp/x.db}\n"),
        ("store: {sqlite: /tmp/x.db}\n", "`path`", "store: {path: /tmp/x.db}\n"),
        ("store: {url: \"${REDIS_URL}\"}\n", "`redis`", "store: {redis: \"redis://db/0\"}\n"),
        (
            "routes:\n  gpt-4o: a-secret-that-nobody-may-see/9f8e7d6c5b4a\n",
            "put it in quotes and brackets",
            "routes:\n  gpt-4o: [\"sim/ok\"]\n",
        ),
    ] {
        let hint = hint(wrong);
        assert!(hint.contains(said), "{wrong}: {hint}");
        assert!(!hint.contains("***"), "{wrong}: {hint}");
        assert!(problems(right).is_none(), "{right}: {:?}", problems(right));
    }
}

/// Japanese keyboards make them, and on the screen they look right.
#[test]
fn full_width_characters_are_named_with_their_ascii_form() {
    for (wrong, char, ascii) in [
        ("serve：\n  listen: 127.0.0.1:4141\n", "：", ":"),
        ("serve:\n　listen: 127.0.0.1:4141\n", "U+3000", "space"),
        ("serve:\n  deadline: ３０s\n", "３", "3"),
        ("serve:\n  listen：127.0.0.1:4141\n", "：", ":"),
        ("routes:\n  \"gpt-4o\"： [sim/ok]\n", "：", ":"),
        ("routes:\n  gpt-4o: ［sim/ok］\n", "［", "["),
        ("routes:\n  gpt-4o: [sim/ok， sim/ok]\n", "，", ","),
        ("serve:\n  passthrough: ｔｒｕｅ\n", "ｔ", "t"),
        ("routes:\n  gpt-4o: [”sim/ok”]\n", "”", "\""),
        ("retry:\n  max_attempts: ５\n", "５", "5"),
        ("routes:\n  gpt-4o: [sim/ok、 sim/ok]\n", "、", ","),
        ("routes:\n  gpt-4o: [「sim/ok」]\n", "「", "\""),
    ] {
        let (en, ja) = (hint(wrong), hint_ja(wrong));
        assert!(en.contains("full-width") && en.contains(char) && en.contains(ascii), "{wrong}: {en}");
        assert!(ja.contains("全角") && ja.contains(char), "{wrong}: {ja}");
        let right: String = wrong
            .chars()
            .map(|c| match c {
                '　' => ' ',
                '”' | '「' | '」' => '"',
                '、' => ',',
                '！'..='～' => char::from_u32(u32::from(c) - 0xfee0).unwrap(),
                _ => c,
            })
            .collect();
        // Where the colon was full-width, no space followed it.
        let right = right.replace("listen:127", "listen: 127");
        assert!(problems(&right).is_none(), "{right}: {:?}", problems(&right));
    }
    // Elsewhere they may be intended.
    assert!(!hint("errors:\n  detial: always # 詳細：常に\n").contains("full-width"));
}

/// A guess that no user could have meant is worse than the list of what exists.
#[test]
fn far_names_are_not_suggested() {
    for (wrong, name) in [
        ("serve: {dog: 3}", "rate"),
        ("serve: {foo: 3}", "form"),
        ("cooldown: {bar: 3}", "max"),
        ("log: {tee: 1}", "time"),
    ] {
        let hint = hint(wrong);
        assert!(hint.starts_with("known here"), "{wrong}: {hint} ({name})");
    }
    for (wrong, near) in [
        ("serve: {lisen: 127.0.0.1:4141}", "listen"),
        ("rotues: {}", "routes"),
        ("serve: {dead_line: 3s}", "deadline"),
        ("retry: {max_attemps: 5}", "max_attempts"),
        ("breaker: {window: {failure: 0.5}}", "failure_rate"),
    ] {
        assert!(hint(wrong).contains(near), "{wrong}: {}", hint(wrong));
    }
}

/// The reader takes the next line for the rest of a text, and gives up only there.
#[test]
fn a_full_width_colon_is_named_at_its_own_place() {
    for text in ["routes：\n  a: [sim/ok]\n", "routes：\n\n  # a\n  a: [sim/ok]\n"] {
        let problem = first(text);
        let place = problem.place.unwrap();
        assert_eq!((place.line, place.column), (1, 7), "{problem}");
        assert!(problem.message.get(Language::En).contains("full-width colon"), "{problem}");
        assert!(problem.message.get(Language::Ja).contains("全角コロン"), "{problem}");
    }
}

#[test]
fn a_missing_space_and_a_wrong_column_are_named() {
    for (text, said) in [
        ("routes:\n  a:[sim/ok]\n", "a space is needed after the colon"),
        ("routes:\n  a:[sim/ok]\n  b: [sim/ok]\n", "a space is needed after the colon"),
        ("serve:\n  listen:127.0.0.1:4242\n", "a space is needed after the colon"),
        ("serve:\n  deadline: 5s\n  listen:127.0.0.1:4242\n", "a space is needed after the colon"),
        ("routes:\n  a:\n    -sim/fail-503\n", "a space is needed after the dash"),
        ("routes:\n  a:\n    - sim/ok\n    -sim/fail-503\n", "a space is needed after the dash"),
        ("routes:\n  a:\n    - sim/ok\n     - sim/fail-503\n", "begin in the same column"),
        ("routes:\n  a:\n    - sim/ok\n   - sim/fail-503\n", "begin in the same column"),
    ] {
        let problem = first(text);
        assert!(hint(text).contains(said), "{text}{problem}");
    }
}

/// A word that stands for a value is a valid key, and the provider refuses it only later.
#[test]
fn no_default_is_suggested_for_a_secret() {
    let key = hint("providers: {p: {kind: openai, keys: [\"${MY_KEY}\"]}}");
    assert_eq!(key, "set it (`export MY_KEY=…`)");
    let redis = "store: {redis: \"redis://localhost:${REDIS_PORT}/0\"}";
    assert!(hint(redis).contains("`${REDIS_PORT:-6379}`"), "{}", hint(redis));
}

/// A misspelt section hides no other mistake: what stands in it is read as if it were spelt right.
#[test]
fn a_misspelt_section_is_still_held_against_the_rest() {
    let found =
        problems("provider: {openai: {kind: openai}}\nroutes: {x: [antropic/claude], y: [openai/gpt]}")
            .unwrap();
    let said: Vec<String> =
        found.iter().map(|problem| problem.message.get(Language::En).to_owned()).collect();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("`provider`") && said[1].contains("`antropic`"), "{said:?}");
}

#[test]
fn the_model_of_a_route_is_its_chain() {
    for name in ["model", "target", "fallbacks"] {
        assert_eq!(hint(&format!("routes: {{x: {{{name}: sim/ok}}}}")), "did you mean `chain`?", "{name}");
    }
}

/// A file that cannot be used still says in which language to complain of it.
#[test]
fn problems_know_the_language_of_their_file() {
    for text in ["language: ja\nretri: 1", "language: ja\nroutes: [", "language: \"ja\" # x\nroutes: ["] {
        assert_eq!(problems(text).unwrap().language(), Some(Language::Ja), "{text}");
    }
    assert_eq!(problems("retri: 1").unwrap().language(), None);
}

/// An index that is asked with vectors of another model gives wrong answers without an error.
#[test]
fn a_route_that_mixes_embedding_models_is_a_warning() {
    let warned = |chain: &str| {
        let text = format!("routes: {{vectors: [{chain}]}}\n");
        let loaded = load::load_located("koboshi.yaml", &text, load::Environment::new(&lookup)).unwrap();
        let said = loaded.warnings.iter().map(|warning| warning.message.get(Language::En).to_owned());
        said.collect::<Vec<_>>().join("\n")
    };
    for mixed in [
        "openai/text-embedding-3-small, openai/text-embedding-3-large",
        "openai/text-embedding-3-small, openai/gpt-4o",
        "openai/gpt-4o, openai/text-embedding-3-small",
    ] {
        assert!(warned(mixed).contains("vectors of two models cannot be compared"), "{mixed}");
    }
    for fine in [
        "openai/text-embedding-3-small, openrouter/openai/text-embedding-3-small",
        "openai/gpt-4o, openai/gpt-4o-mini",
    ] {
        assert!(!warned(fine).contains("vectors"), "{fine}");
    }
}

/// A Japanese comma between targets is the comma of a list, and no secret is in it.
#[test]
fn targets_with_full_width_commas_become_a_list_at_once() {
    for text in ["routes: {a: sim/ok，sim/fail-503}", "routes: {a: \"sim/ok、sim/fail-503\"}"] {
        assert_eq!(suggestions(&hint(text)), ["[sim/ok, sim/fail-503]"], "{text}");
        assert!(hint_ja(text).contains("`[sim/ok, sim/fail-503]` と書いてください"), "{}", hint_ja(text));
        let shown = problems(text).unwrap().show(Language::En);
        assert!(!shown.contains("***"), "{shown}");
    }
    assert!(problems("routes: {a: [sim/ok, sim/fail-503]}").is_none());
    let secret = problems("routes: {a: hunter2-admin-key，sim/ok}").unwrap().show(Language::En);
    assert!(!secret.contains("hunter2-admin-key"), "{secret}");
}

/// The place of a tab is that of the tab.
#[test]
fn a_tab_is_pointed_at_itself() {
    for (text, column) in [("routes:\n\tassistant: [sim/ok]\n", 1), ("routes:\n\t\tassistant: [sim/ok]\n", 1)]
    {
        let problem = first(text);
        assert!(problem.message.get(Language::En).contains("tab"), "{problem:?}");
        assert_eq!(problem.place.map(|place| place.column), Some(column), "{text:?}");
    }
}

/// Names and values that people bring along lead to ours.
#[test]
fn usual_names_of_elsewhere_lead_to_ours() {
    assert!(hint("providers: {p: {kind: openai, api_keys: [\"x\"]}}").contains("`keys`"));
    for text in ["serve: {admin_key: x}", "admin_key: x"] {
        assert!(hint(text).contains("`admin.sha256`") && hint_ja(text).contains("`admin.sha256`"), "{text}");
    }
    for (text, meant) in [("language: ja_JP", "ja"), ("language: en-US.UTF-8", "en")] {
        assert_eq!(suggestions(&hint(text)), [meant], "{text}");
    }
    assert_eq!(suggestions(&hint("agents: {a: {command: [x], when: every 10分}}")), ["every 10m"]);
    assert_eq!(suggestions(&hint("agents: {a: {command: [x], when: every 2 hours}}")), ["every 2h"]);
}

/// Lists are written as each language writes them, and a list is not told to be a list.
#[test]
fn lists_have_the_commas_of_their_language() {
    let text = "providers: {p: {kind: openai, wholly_unknown_here: 1}}";
    assert!(hint(text).contains("kind, base_url") && hint_ja(text).contains("kind、base_url"));
    let list = first("- a\n");
    assert!(!list.message.get(Language::En).contains("must be a list"), "{list:?}");
    assert!(list.hint.unwrap().get(Language::Ja).contains("serve、keys"));
}
