//! Every primitive has a page with its defaults, its events and how not to use it.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::repository;

#[test]
fn every_primitive_has_defaults_events_and_anti_patterns() {
    let pages = [
        "backoff.rs", "budget.rs", "remedy.rs", "call.rs", "docs/breaker.md", "docs/gate.md",
        "docs/cooldown.md",
    ];
    for page in pages {
        let text = std::fs::read_to_string(repository(&format!("crates/koboshi/src/{page}"))).unwrap();
        for heading in ["# Defaults", "# Events", "# Anti-patterns"] {
            let found = text.lines().any(|line| line.trim_start_matches("//! ").trim() == heading);
            assert!(found, "{page} has no `{heading}`");
        }
    }
}

/// The commands that the documentation shows are commands.
#[test]
fn every_command_in_the_documentation_exists() {
    let help = common::run(&["--help"]).text;
    for page in ["README.md", "docs/store.md", "docs/config.md", "docs/gateway.md"] {
        let text = std::fs::read_to_string(repository(page)).unwrap();
        let words = text
            .split("koboshi ")
            .skip(1)
            .filter_map(|rest| rest.split(|c: char| !c.is_ascii_lowercase()).next());
        for word in words.filter(|word| !word.is_empty() && word.len() > 3) {
            let prose = ["decides", "finds", "keeps", "reads", "turns", "says", "works"];
            let is_command = help.lines().any(|line| line.trim_start().starts_with(&format!("{word} ")));
            assert!(is_command || prose.contains(&word), "{page} speaks of `koboshi {word}`");
        }
    }
}
