//! Dependencies point down only: cli → gateway, supervisor → sim → wire, store, config, report → koboshi.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::collections::BTreeMap;
use std::process::Command;

use common::repository;
use serde_json::Value;

/// The floor each crate stands on; a crate may use only lower floors.
fn floor(name: &str) -> Option<u8> {
    Some(match name {
        "koboshi" => 0,
        "koboshi-wire" | "koboshi-store" | "koboshi-config" | "koboshi-report" => 1,
        // It plays what the wire reads.
        "koboshi-sim" => 2,
        "koboshi-gateway" | "koboshi-supervisor" => 3,
        "koboshi-cli" => 4,
        // For tests only: anyone may use it there, nobody may ship it.
        "koboshi-testkit" => 3,
        _ => return None,
    })
}

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(repository(""))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

#[test]
fn dependencies_point_down_only() {
    let mut seen = BTreeMap::new();
    for package in packages() {
        let name = package["name"].as_str().unwrap().to_owned();
        let own =
            floor(&name).unwrap_or_else(|| panic!("{name} has no place in the design: give it a floor here"));
        for dependency in package["dependencies"].as_array().unwrap() {
            let other = dependency["name"].as_str().unwrap();
            let Some(below) = floor(other) else { continue };
            let for_tests = dependency["kind"] == "dev";
            let allowed = if other == "koboshi-testkit" { for_tests } else { below < own };
            assert!(allowed, "{name} must not depend on {other}");
        }
        seen.insert(name, own);
    }
    assert!(seen.contains_key("koboshi") && seen.contains_key("koboshi-cli"));
}

/// What decides, what speaks and what plays touch nothing: no runtime, no sockets, no zone files of the machine.
#[test]
fn the_core_stays_pure() {
    const PURE: &[&str] = &["koboshi", "koboshi-wire", "koboshi-sim"];
    const FORBIDDEN: &[&str] =
        &["tokio", "hyper", "reqwest", "rusqlite", "redis", "tracing", "rand", "fastrand", "chrono"];
    let packages = packages();
    for pure in PURE {
        let package = packages.iter().find(|package| package["name"] == *pure).unwrap();
        let dependencies = package["dependencies"].as_array().unwrap();
        for dependency in dependencies.iter().filter(|dependency| dependency["kind"].is_null()) {
            let name = dependency["name"].as_str().unwrap();
            assert!(!FORBIDDEN.contains(&name), "{pure} must not depend on {name}");
            if name == "jiff" {
                let features = dependency["features"].to_string();
                assert!(!features.contains("tz"), "zones are handed in: {features}");
            }
        }
    }
}
