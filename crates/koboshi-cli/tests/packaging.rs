//! The configs that the packages bring are good, as they are and with their examples switched on.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{repository, run, scratch};

#[test]
fn the_configs_of_the_packages_are_good() {
    for name in ["koboshi.yaml", "container.yaml"] {
        let path = repository(&format!("packaging/{name}"));
        let out = run(&["check", &path.display().to_string()]);
        assert_eq!(out.status, 0, "{name}: {}{}", out.text, out.error);
        // Prose has one space after the #, an example none, or as many as its place in the file asks for.
        let text = std::fs::read_to_string(path).unwrap();
        let is_example = |line: &&str| {
            line.strip_prefix('#').is_some_and(|rest| {
                rest.starts_with("  ") || !rest.trim_start().is_empty() && !rest.starts_with(' ')
            })
        };
        assert!(text.lines().filter(is_example).count() > 3, "{name} has no examples");
        let switched_on =
            text.lines().map(|line| if is_example(&line) { line.trim_start_matches('#') } else { line });
        let file = scratch(&format!("switched-on-{name}"), &switched_on.collect::<Vec<_>>().join("\n"));
        let out = run(&["check", &file]);
        assert_eq!(out.status, 0, "{name}: {}{}", out.text, out.error);
    }
}

/// What is released was tried, by the same scripts as here.
#[test]
fn a_release_is_made_and_tried_by_the_scripts_of_the_repository() {
    let release = std::fs::read_to_string(repository(".github/workflows/release.yml")).unwrap();
    let long = std::fs::read_to_string(repository("scripts/test")).unwrap();
    for text in [release, long] {
        let made = text.find("scripts/package").unwrap();
        assert!(text.find("tests/package/run.py").unwrap() > made, "{text}");
    }
}
