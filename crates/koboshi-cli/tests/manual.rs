//! Manual pages and completions know every command that the help knows.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::run;

/// The commands of the help.
fn commands() -> Vec<String> {
    let help = run(&["--help"]).text;
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let lines = lines.take_while(|line| !line.is_empty());
    // A description that is too long goes on in the next line, further to the right.
    let names = lines.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names
        .filter_map(|line| line.split(' ').next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn there_is_a_manual_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("man1");
    let out = run(&["man", &pages.display().to_string()]);
    assert_eq!(out.status, 0, "{}", out.error);
    let names = commands();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        let page = std::fs::read_to_string(pages.join(format!("koboshi-{name}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH DESCRIPTION"), "{page}");
    }
    let page = std::fs::read_to_string(pages.join("koboshi.1")).unwrap();
    assert!(page.contains("koboshi\\-serve(1)"), "{page}");
    assert!(!pages.join("koboshi-man.1").exists(), "it is hidden");
    let refused = run(&["man", "/proc/man1"]);
    assert_eq!(refused.status, 2);
    assert!(refused.error.contains("cannot write /proc/man1"), "{}", refused.error);
}

#[test]
fn the_completions_of_every_shell_know_every_command() {
    for shell in ["bash", "zsh", "fish"] {
        let script = run(&["completions", shell]).text;
        for name in commands() {
            assert!(script.contains(&name), "{shell} does not know {name}");
        }
    }
}
