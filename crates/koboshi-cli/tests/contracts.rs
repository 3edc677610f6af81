//! Every cell of the contract matrix names a test, and that test exists.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::Path;

use common::repository;

fn rust_tests(folder: &Path, texts: &mut String) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_tests(&path, texts);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            texts.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_cell_of_the_matrix_is_a_test() {
    let document = fs::read_to_string(repository("docs/contracts.md")).unwrap();
    let mut tests = String::new();
    for member in ["koboshi", "koboshi-store"] {
        rust_tests(&repository(&format!("crates/{member}/tests")), &mut tests);
    }
    let mut rows = 0;
    for row in document.lines().filter(|line| line.starts_with("| **")) {
        let name = row.split("**").nth(1).unwrap();
        for column in ["admission", "cancellation", "clock_jump", "edge_config"] {
            let test = format!("{name}_{column}");
            assert!(row.contains(&format!("`{test}`")), "the row of {name} names no `{test}`");
            assert!(tests.contains(&format!("fn {test}(")), "there is no test `{test}`");
        }
        rows += 1;
    }
    assert_eq!(rows, 7, "a row for each primitive");
}
