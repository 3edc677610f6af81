//! Dependencies point down only: cli → gateway, supervisor → sim → wire, store, config, report → koboshi. So do those between the rooms
//! of the gateway, and notify stands beside the supervisor.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;
#[path = "architecture/words.rs"]
mod words;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
        // It writes with the words of the report and reads the store.
        "koboshi-notify" => 2,
        "koboshi-gateway" | "koboshi-supervisor" => 3,
        "koboshi-cli" => 4,
        // For tests only: any test may use it, no product crate may.
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

/// Where the tests of a crate are one program, Cargo does not find them by itself: a file that is no module of it would never run.
#[test]
fn every_file_of_tests_runs() {
    let mut merged = 0;
    for package in packages() {
        let folder = Path::new(package["manifest_path"].as_str().unwrap()).with_file_name("tests");
        let Ok(all) = std::fs::read_to_string(folder.join("all.rs")) else { continue };
        merged += 1;
        let programs =
            package["targets"].as_array().unwrap().iter().filter(|target| target["kind"][0] == "test");
        let programs: Vec<_> =
            programs.map(|target| PathBuf::from(target["src_path"].as_str().unwrap())).collect();
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let file = if path.is_dir() { path.join("main.rs") } else { path };
            if file.extension().is_none_or(|kind| kind != "rs") || !file.exists() || programs.contains(&file)
            {
                continue;
            }
            let module = file.file_stem().unwrap().to_str().unwrap();
            let runs = all.lines().any(|line| line == format!("mod {module};"));
            assert!(runs, "{} runs nowhere: add it to {}/all.rs", file.display(), folder.display());
        }
    }
    assert_eq!(merged, 5);
}

/// The rooms of the gateway; a room may use only those after it.
const ROOMS: &[&str] = &[
    "server", "edge", "session", "admin", "request", "degrade", "stream", "reply", "attempt", "shared",
    "route", "observe", "http",
];

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// The code of a file, without the module of tests at its end and without comments.
fn code(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    without_tests(&text).lines().map(|line| line.split("//").next().unwrap()).collect::<Vec<_>>().join("\n")
}

/// A text up to its module of tests. An item that only tests use is code like any other.
fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

#[test]
fn only_the_module_of_tests_is_left_out() {
    let text = "#[cfg(test)]\nmod pages;\nuse a;\n#[cfg(test)]\nmod tests {\nuse b;\n}\n";
    assert_eq!(without_tests(text), "#[cfg(test)]\nmod pages;\nuse a;\n");
    let main = code(&repository("crates/koboshi-cli/src/main.rs"));
    assert!(main.contains("fn main()"), "what follows a test-only item is seen");
}

#[test]
fn rooms_of_the_gateway_depend_in_one_direction() {
    let source = repository("crates/koboshi-gateway/src");
    let mut edges = 0;
    for (place, room) in ROOMS.iter().enumerate() {
        for file in files(&source.join(room)) {
            let code = code(&file);
            assert!(!code.contains("crate::{"), "{}: name the room in each use", file.display());
            for used in code.split("crate::").skip(1) {
                let used = used.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap();
                let other = ROOMS.iter().position(|room| *room == used);
                let other = other.unwrap_or_else(|| panic!("{}: {used} is no room", file.display()));
                assert!(other >= place, "{}: {room} must not use {used}", file.display());
                edges += usize::from(other > place);
            }
        }
    }
    assert!(edges > 100, "{edges}");
    let mut entries: Vec<_> =
        std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    entries.retain(|name| name != "lib.rs" && !ROOMS.iter().any(|room| name == room));
    assert!(entries.is_empty(), "no room has this name: {entries:?}");
}

/// Every room and every module of it is on the map.
#[test]
fn the_map_shows_every_room_of_the_gateway() {
    let map = std::fs::read_to_string(repository("ARCHITECTURE.md")).unwrap();
    for room in ROOMS {
        let row = map.lines().find(|line| line.starts_with(&format!("| `{room}/` |")));
        let row = row.unwrap_or_else(|| panic!("{room} is not on the map"));
        let folder = repository("crates/koboshi-gateway/src").join(room);
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let module = name.trim_end_matches(".rs");
            assert!(
                module == "mod" || row.contains(&format!("`{module}`")),
                "{room}: {module} is not on the map"
            );
        }
    }
}

/// Every file of a folder is named in the map of its header, as the first word of a line or inside of one.
#[test]
fn the_map_of_args_shows_every_file() {
    let folder = repository("crates/koboshi/src/args");
    let header = std::fs::read_to_string(folder.join("mod.rs")).unwrap();
    let map: Vec<&str> = header
        .lines()
        .filter_map(|line| line.strip_prefix("//!"))
        .flat_map(|line| line.split(|letter: char| !letter.is_alphanumeric()))
        .collect();
    for name in modules(&folder) {
        assert!(name == "tests" || map.contains(&name.as_str()), "{name} is not on the map of args");
    }
}

/// The folders of the four dialects.
const DIALECTS: &[&str] = &["chat", "responses", "messages", "gemini"];

/// Names of the modules of a folder.
fn modules(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned())).collect();
    names.retain(|name| name != "mod");
    names.sort();
    names
}

/// A role has one file name in every dialect: those of the first table of the page are in all four folders, and every other file is in the
/// second table, with the dialects that have it.
#[test]
fn the_page_of_dialects_shows_every_file() {
    let page = std::fs::read_to_string(repository("docs/dialects.md")).unwrap();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.strip_suffix(" |"))
        .map(|row| row.split('|').map(|cell| cell.trim().trim_end_matches('`')).collect())
        .collect();
    let (common, own): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.len() == 2);
    assert!(common.len() > 10 && own.len() > 10, "the tables are there");
    for dialect in DIALECTS {
        let found = modules(&repository("crates/koboshi-wire/src").join(dialect));
        let mut named: Vec<String> = common
            .iter()
            .chain(own.iter().filter(|row| row[1].contains(dialect)))
            .map(|row| row[0].to_owned())
            .collect();
        named.sort();
        assert_eq!(found, named, "{dialect}: files and page");
    }
    for path in page.split('`').filter(|word| word.contains('/') && word.ends_with(".rs")) {
        assert!(repository(path).exists(), "{path} is on the page and nowhere else");
    }
}

/// Whether a line compares with one dialect, bare or inside of another value, which says nothing to the compiler when another one is added.
fn compares_dialects(line: &str) -> bool {
    let is_dialect = |operand: &str| {
        let path = |letter: char| letter.is_alphanumeric() || "_:(".contains(letter);
        operand.split(|letter: char| !path(letter)).next().unwrap().contains("Dialect::")
    };
    let compared = |mark: &str| line.split(mark).skip(1).any(|rest| is_dialect(rest.trim_start()));
    // Enums that have a variant for each dialect are compared by their own name too.
    let own = ["Chat", "Responses", "Messages", "Gemini"].map(|dialect| format!("Self::{dialect}"));
    let names_one = line.contains("Dialect::") || own.iter().any(|one| line.contains(one));
    compared("==") || compared("!=") || (line.contains("matches!(") && names_one)
}

#[test]
fn dialects_are_asked_for_properties_and_not_compared() {
    for line in [
        "if dialect == Dialect::Chat {", "endpoint == Endpoint::Generate(Dialect::Gemini)",
        "matches!(self, Self::Chat(request) if request.is_legacy())",
    ] {
        assert!(compares_dialects(line), "{line}");
    }
    for line in ["Dialect::Chat => 1,", "a == b && Some(Dialect::Chat)"] {
        assert!(!compares_dialects(line), "{line}");
    }
    for package in std::fs::read_dir(repository("crates")).unwrap() {
        for file in files(&package.unwrap().path().join("src")) {
            if file.ends_with("koboshi-wire/src/dialect.rs")
                || file.extension().is_none_or(|kind| kind != "rs")
            {
                continue;
            }
            let code = code(&file);
            let found = code.lines().find(|line| compares_dialects(line));
            assert_eq!(found, None, "{}: add a property to dialect.rs", file.display());
        }
    }
}

/// The files of every crate that are compiled into programs.
fn production() -> Vec<PathBuf> {
    let packages = std::fs::read_dir(repository("crates")).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = packages.flat_map(|package| files(&package.join("src"))).collect();
    all.retain(|file| {
        let name = file.file_name().unwrap().to_str().unwrap();
        name.ends_with(".rs") && !name.ends_with("tests.rs")
    });
    assert!(all.len() > 300, "{}", all.len());
    all
}

/// A file that no reader can keep in mind is two files. Blank lines, comments and the tests at its end do not count.
#[test]
fn no_file_has_500_lines_of_code() {
    for file in production() {
        let text = std::fs::read_to_string(&file).unwrap();
        let code = without_tests(&text);
        let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
        let lines = code.lines().filter(is_code).count();
        assert!(lines < 500, "{} has {lines} lines of code: divide it", file.display());
    }
}

/// A path of the admin API that is written in two places is changed in one.
#[test]
fn paths_of_the_admin_api_are_written_once() {
    let mut known = BTreeMap::new();
    for file in production() {
        for found in code(&file).split("\"/koboshi/").skip(1) {
            let path = found.split('"').next().unwrap().to_owned();
            let before = known.insert(path.clone(), file.clone());
            assert_eq!(before, None, "/koboshi/{path} is written in {} too", file.display());
        }
    }
    assert!(known.len() >= 9, "{known:?}");
}

/// The oldest compiler that is supported can build what the programs are made of: no dependency states a newer one. (That our own code uses nothing
/// newer is a lint; that it builds is a step of `scripts/test --long`.)
#[test]
fn no_dependency_needs_a_newer_compiler_than_we_state() {
    let host = Command::new("rustc").arg("-vV").output().unwrap();
    let host = String::from_utf8(host.stdout).unwrap();
    let host = host.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--all-features", "--filter-platform", host])
        .current_dir(repository(""))
        .output()
        .unwrap();
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let list = |value: &Value| value.as_array().unwrap().clone();
    let by_id = |all: &Value| -> BTreeMap<String, Value> {
        list(all).into_iter().map(|one| (one["id"].as_str().unwrap().to_owned(), one)).collect()
    };
    let (packages, nodes) = (by_id(&metadata["packages"]), by_id(&metadata["resolve"]["nodes"]));
    let version = |text: &str| -> Vec<u32> { text.split('.').map(|part| part.parse().unwrap()).collect() };
    let stated = |id: &str| packages[id]["rust_version"].as_str().map(version);
    let members = list(&metadata["workspace_members"]);
    let mut open: Vec<String> = members.iter().map(|id| id.as_str().unwrap().to_owned()).collect();
    open.retain(|id| packages[id]["name"] != "koboshi-testkit");
    let ours = stated(&open[0]).unwrap();
    let mut seen = BTreeMap::new();
    while let Some(id) = open.pop() {
        let name = packages[&id]["name"].clone();
        assert!(
            stated(&id).is_none_or(|other| other <= ours),
            "{name} needs {:?}, not {ours:?}",
            stated(&id)
        );
        for dependency in list(&nodes[&id]["deps"]) {
            let next = dependency["pkg"].as_str().unwrap().to_owned();
            let is_built = list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"] != "dev");
            if is_built && !seen.contains_key(&next) {
                open.push(next);
            }
        }
        seen.insert(id, name);
    }
    assert!(seen.len() > 100, "{}", seen.len());
}
