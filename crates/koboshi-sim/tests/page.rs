//! `docs/sim.md` has the names and parameters of the code, and its examples do what it says.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::fmt::Write;

use crate::common;
use crate::common::{Got, got, perform, user, with};
use koboshi_sim::{Ask, COMMON, Param, names, play};
use koboshi_testkit::dialect::body;
use koboshi_wire::Dialect;
use serde_json::json;

fn page() -> String {
    let path = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/sim.md");
    std::fs::read_to_string(path).unwrap()
}

/// The lines of the table under this heading.
fn table(heading: &str) -> String {
    let page = page();
    let (_, rest) = page.split_once(&format!("## {heading}\n")).unwrap();
    let rest = rest.split("\n## ").next().unwrap();
    rest.lines().filter(|line| line.starts_with('|')).fold(String::new(), |all, line| all + line + "\n")
}

fn read_answer(param: &Param) -> String {
    format!("`{}` ({}): {}", param.name, param.default, param.does)
}

#[test]
fn the_page_has_every_name() {
    let mut made =
        "| Name | What it does | Its parameters (default) | Example |\n|---|---|---|---|\n".to_owned();
    for name in names() {
        let params: Vec<String> = name.params.iter().map(read_answer).collect();
        writeln!(
            made,
            "| `{}` | {} | {} | `sim/{}` |",
            name.name,
            name.does,
            params.join("<br>"),
            name.example
        )
        .unwrap();
    }
    assert_eq!(table("Names"), made, "docs/sim.md must have this table:\n{made}");
}

#[test]
fn the_page_has_every_common_parameter() {
    let mut made = "| Parameter | Default | What it means |\n|---|---|---|\n".to_owned();
    for param in COMMON {
        writeln!(made, "| `{}` | {} | {} |", param.name, param.default, param.does).unwrap();
    }
    assert_eq!(table("Parameters of every name"), made, "docs/sim.md must have this table:\n{made}");
}

/// Status and word of an error.
fn word(dialect: Dialect, read_answer: &Got) -> String {
    let body = read_answer.json();
    let error = &body["error"];
    let word = match dialect {
        Dialect::Chat | Dialect::Responses => error["code"].as_str().or(error["type"].as_str()),
        Dialect::Messages => error["type"].as_str(),
        Dialect::Gemini => error["status"].as_str().or(body["promptFeedback"]["blockReason"].as_str()),
    };
    format!("{} `{}`", read_answer.status, word.unwrap())
}

#[test]
fn the_page_has_every_vendors_words() {
    let mut made = "| Name | chat | responses | messages | Gemini |\n|---|---|---|---|---|\n".to_owned();
    let failing = [
        "fail-500", "fail-503", "rate-429", "quota", "billing", "overloaded", "auth-401", "context",
        "filter-400",
    ];
    for model in failing {
        let cell = |dialect: Dialect| {
            let text = body(dialect, &with(user("hello"), json!({"model": "m"})));
            word(dialect, &perform(play(&Ask { model, dialect, body: text.as_bytes(), ..Ask::default() })))
        };
        let cells = [Dialect::Chat, Dialect::Responses, Dialect::Messages, Dialect::Gemini].map(cell);
        writeln!(made, "| `{model}` | {} |", cells.join(" | ")).unwrap();
    }
    // Behind it stands a table of the ends of streams.
    assert!(table("In the vendors' words").starts_with(&made), "docs/sim.md must have this table:\n{made}");
}

#[test]
fn no_name_has_a_parameter_twice_and_none_breaks_a_table() {
    for name in names() {
        let all: Vec<&str> = name.params.iter().chain(COMMON).map(|param| param.name).collect();
        let once: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), once.len(), "{}", name.name);
        assert!(!name.does.contains('|') && name.params.iter().all(|param| !param.does.contains('|')));
    }
}

/// Every `sim/…` in the text of the page can be asked for.
#[test]
fn the_models_on_the_page_exist() {
    let page = page();
    let models: Vec<&str> = page.split("`sim/").skip(1).filter_map(|rest| rest.split('`').next()).collect();
    assert!(models.len() > names().len());
    for model in
        models.into_iter().filter(|model| !matches!(*model, "silence" | "reset") && !model.contains('…'))
    {
        let play = common::ask(model, &user("hello"), koboshi_sim::Tally::default());
        if matches!(play.head, koboshi_sim::Head::Answer { .. }) {
            let body = got(model, &user("hello")).body;
            assert!(!body.contains("model_not_found") && !body.contains("invalid_value"), "{model}: {body}");
        }
    }
}
