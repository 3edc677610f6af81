//! A first config, by the real binary.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use common::{koboshi, run};

#[test]
fn a_first_config_is_written_and_good() {
    let folder = tempfile::tempdir().unwrap();
    let output = koboshi(&["init"]).current_dir(folder.path()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("koboshi.yaml is written") && said.contains("koboshi check"), "{said}");
    let text = std::fs::read_to_string(folder.path().join("koboshi.yaml")).unwrap();
    assert_eq!(text, run(&["init", "--print"]).text);
    let check =
        koboshi(&["check"]).current_dir(folder.path()).env("OPENAI_API_KEY", "sk-1").output().unwrap();
    assert!(check.status.success(), "{check:?}");
}

#[test]
fn what_is_there_is_left_alone_unless_told() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("mine.yaml");
    std::fs::write(&file, "language: ja\n").unwrap();
    let path = file.display().to_string();
    let refused = run(&["init", &path]);
    assert_eq!(refused.status, 2);
    assert!(
        refused.error.contains("is there already") && refused.error.contains("--force"),
        "{}",
        refused.error
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "language: ja\n");
    assert_eq!(run(&["init", &path, "--force", "--lang", "ja"]).status, 0);
    assert!(std::fs::read_to_string(&file).unwrap().contains("providers:"));
}

#[test]
fn a_place_that_cannot_be_written_is_said() {
    let refused = run(&["init", "/there/is/none/koboshi.yaml"]);
    assert_eq!(refused.status, 2);
    assert!(refused.error.contains("cannot write /there/is/none/koboshi.yaml"), "{}", refused.error);
}
