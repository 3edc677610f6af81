//! The fault table as it is shown: the command, the documentation and the phrases say the same.

mod common;

use common::{json, repository, run};

#[test]
fn the_documentation_is_the_table() {
    let page = std::fs::read_to_string(repository("docs/codes.md")).unwrap();
    let printed = run(&["codes", "--format", "markdown"]).text;
    assert!(page == printed, "docs/codes.md is stale: run `koboshi codes --format markdown > docs/codes.md`");
}

#[test]
fn the_page_for_the_night_has_a_row_for_every_kind() {
    let page = std::fs::read_to_string(repository("docs/operate.md")).unwrap();
    for kind in koboshi::fault::Kind::ALL {
        let start = format!("| `{}` |", kind.name());
        let rows: Vec<&str> = page.lines().filter(|line| line.starts_with(&start)).collect();
        assert_eq!(rows.len(), 1, "docs/operate.md needs one row for {}", kind.name());
        let cells: Vec<&str> = rows[0].trim_matches('|').split('|').map(str::trim).collect();
        assert!(cells.len() == 3 && cells.iter().all(|cell| !cell.is_empty()), "{}", rows[0]);
    }
    let named = page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    for (name, _) in named {
        assert!(koboshi::fault::Kind::ALL.iter().any(|kind| kind.name() == name), "there is no kind {name}");
    }
}

#[test]
fn every_kind_is_listed_with_words_in_both_languages() {
    for lang in ["en", "ja"] {
        let value = json(&run(&["codes", "--format", "json", "--lang", lang]));
        let kinds = value["kinds"].as_array().unwrap();
        assert_eq!(kinds.len(), koboshi::fault::Kind::ALL.len());
        for kind in kinds {
            assert!(
                !kind["message"].as_str().unwrap().is_empty()
                    && !kind["suggestion"].as_str().unwrap().is_empty(),
                "{kind}"
            );
        }
    }
}

#[test]
fn people_see_one_line_a_kind_with_their_prefix() {
    let text = run(&["codes", "--prefix", "MIRA", "--lang", "en"]).text;
    let kinds = text.lines().filter(|line| line.starts_with("MIRA-")).count();
    assert_eq!(kinds, koboshi::fault::Kind::ALL.len());
    let note = text.lines().last().unwrap();
    for words in ["502", "unauthorized", "token_expired", "permission_denied"] {
        assert!(note.contains(words), "a key of the gateway's own is told apart: {note}");
    }
    assert!(text.contains("MIRA-3002  quota_exceeded"));
}

#[test]
fn completions_and_help_are_there() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(&["completions", shell]).text.contains("koboshi"), "{shell}");
    }
    for (args, example) in [
        (&["explain", "--help"][..], "koboshi explain agent.log"),
        (&["corpus", "check", "--help"], "koboshi corpus check"),
        (&["corpus", "add", "--help"], "koboshi corpus add"),
        (&["codes", "--help"], "koboshi codes"),
    ] {
        let out = run(args);
        assert!(
            out.status == 0 && out.text.contains("Examples:") && out.text.contains(example),
            "{}",
            out.text
        );
    }
    assert_eq!(run(&[]).status, 2, "nothing to do is a usage error that shows the help");
}
