//! The words of the code: names say what a thing is, and comments have a subject who does something.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::repository;
use crate::{files, without_tests};

/// Names that say what happened to a thing and not what it is.
const PARTICIPLES: &[&str] = &[
    "Answered", "Appended", "Applied", "Asked", "Begun", "Changed", "Chosen", "Closed", "Coerced", "Counted",
    "Denied", "Ended", "Expected", "Failed", "Followed", "Forwarded", "Found", "Given", "Gone", "Heard",
    "Held", "Judged", "Kept", "Known", "Learned", "Left", "Lost", "Made", "Met", "Missed", "Noted", "Opened",
    "Passed", "Passing", "Posted", "Pruned", "Read", "Refused", "Reloaded", "Said", "Scheduled", "Seen",
    "Sent", "Served", "Shared", "Spent", "Stated", "Stored", "Taken", "Told", "Wanted", "Written",
];

/// Types with such a name that stay for now, by crate: the fewer the better.
const ALLOWED: &[(&str, &[&str])] = &[
    ("koboshi", &["Refused"]),
    ("koboshi-gateway", &["Left", "Refused", "Stored"]),
    ("koboshi-notify", &["Held", "Kept", "Taken"]),
    ("koboshi-store", &["Appended", "Taken"]),
    ("koboshi-supervisor", &["Applied", "Ended", "Reloaded"]),
];

/// Words of a tale: in a comment they hide who does what.
const TALES: &[&str] = &[
    "nobody", "whoever", "anew", "in vain", "somebody", "everybody", "is told", "are told", "was told",
    "were told", "be told",
];

/// The files of a crate that are no tests.
fn sources() -> Vec<(String, PathBuf)> {
    let crates = std::fs::read_dir(repository("crates")).unwrap().map(|folder| folder.unwrap().path());
    crates
        .flat_map(|folder| {
            let name = folder.file_name().unwrap().to_string_lossy().into_owned();
            let rust = files(&folder.join("src"))
                .into_iter()
                .filter(|file| file.extension().is_some_and(|kind| kind == "rs"));
            rust.map(move |file| (name.clone(), file)).collect::<Vec<_>>()
        })
        .filter(|(_, file)| !file.to_string_lossy().ends_with("tests.rs"))
        .collect()
}

/// What stands before the tests of a file.
fn code_of(file: &Path) -> String {
    without_tests(&std::fs::read_to_string(file).unwrap()).to_owned()
}

/// The name of the type that a line defines.
fn type_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let line = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let name = ["struct ", "enum ", "trait ", "type "].iter().find_map(|word| line.strip_prefix(word))?;
    name.split(|c: char| !c.is_alphanumeric()).next()
}

#[test]
fn types_are_named_for_what_they_are() {
    let mut wrong = Vec::new();
    for (name, file) in sources() {
        let allowed = ALLOWED.iter().find(|(of, _)| *of == name).map_or(&[][..], |(_, allowed)| *allowed);
        let code = code_of(&file);
        let found = code.lines().filter(|line| !line.trim_start().starts_with("//")).filter_map(type_of);
        wrong.extend(
            found
                .filter(|found| PARTICIPLES.contains(found) && !allowed.contains(found))
                .map(|found| format!("{found} in {}", file.display())),
        );
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_function_is_called_look() {
    let looks = |(_, file): &(String, PathBuf)| {
        let code = code_of(file);
        code.contains("fn look(") || code.contains("fn look<")
    };
    let wrong: Vec<_> = sources().into_iter().filter(looks).map(|(_, file)| file).collect();
    assert!(wrong.is_empty(), "`check`, `poll`, `read` or `find` says what it does: {wrong:?}");
}

#[test]
fn comments_tell_no_tales() {
    let mut wrong = Vec::new();
    for (_, file) in sources() {
        let code = code_of(&file);
        for (number, line) in code.lines().enumerate() {
            let Some((_, comment)) = line.split_once("//") else { continue };
            let words = comment.to_lowercase();
            let words: Vec<&str> = words.split(|c: char| !c.is_alphabetic()).collect();
            let words = format!(" {} ", words.join(" "));
            if TALES.iter().any(|tale| words.contains(&format!(" {tale} "))) {
                wrong.push(format!("{}:{}: {}", file.display(), number + 1, comment.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A new setting breaks no program: `with` changes what a program wants to have changed.
#[test]
fn every_policy_of_the_library_can_grow() {
    let with = std::fs::read_to_string(repository("crates/koboshi/src/policies.rs")).unwrap();
    let mut known = 0;
    for (_, file) in sources().into_iter().filter(|(name, _)| name == "koboshi") {
        let code = code_of(&file);
        let lines: Vec<&str> = code.lines().collect();
        for (at, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("pub struct ")) {
            let Some(name) = type_of(line).filter(|name| name.ends_with("Policy")) else { continue };
            let mut attributes = lines[..at].iter().rev().take_while(|line| line.starts_with(['#', '/']));
            let grows = attributes.any(|line| line.contains("non_exhaustive"));
            assert!(grows, "{name} in {} is not #[non_exhaustive]", file.display());
            assert!(with.contains(&format!("::{name},")), "{name} has no `with` in policies.rs");
            known += 1;
        }
    }
    assert!(known > 15, "{known}");
}

/// A breaker alone brings few crates with it; the page of the library says how many.
#[test]
fn the_library_without_its_features_has_few_dependencies() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "-p", "koboshi", "--no-default-features", "-e", "normal", "--prefix", "none"])
        .args(["--format", "{p}", "--offline", "--locked"])
        .current_dir(repository(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let tree = String::from_utf8(output.stdout).unwrap();
    let crates: std::collections::BTreeSet<&str> =
        tree.lines().filter_map(|line| line.split(' ').next()).filter(|name| *name != "koboshi").collect();
    assert!((5..=25).contains(&crates.len()), "{crates:?}");
    let page = std::fs::read_to_string(repository("crates/koboshi/README.md")).unwrap();
    let expected = format!("`default-features = false`, {} crates besides", crates.len());
    assert!(page.contains(&expected), "the page does not say: {expected}");
}
