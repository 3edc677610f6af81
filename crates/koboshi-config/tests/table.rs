//! The table of keys, and everything that must agree with it: the config, the core, the schema, the page, the example.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use koboshi_config::schema::{KEYS, Key, Shape, Value, differences, json_schema};
use koboshi_config::{Config, load};
use serde_json::{Value as Json, json};

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap()
}

fn loaded(text: &str) -> Config {
    load("koboshi.yaml", text, &|_| None).unwrap_or_else(|problems| panic!("{text}\n{problems}"))
}

fn leaves() -> impl Iterator<Item = &'static Key> {
    KEYS.iter().filter(|key| !key.is_section())
}

/// A value that a key may have and that is not its default.
fn another(key: &Key) -> Json {
    let default = key.get(&Config::default()).unwrap();
    match (&key.shape, default) {
        (Shape::Length { .. }, Value::Length(length)) => json!(format!("{}ms", length.as_millis() + 1000)),
        (Shape::Length { .. }, _) => json!("90s"),
        (Shape::Seconds { .. }, Value::Count(count)) => json!(count + 100),
        (Shape::Count { .. }, Value::Count(count)) => json!(count + 1),
        (Shape::Count { .. }, _) => json!(7),
        (Shape::Number { range, .. }, Value::Number(number)) => {
            json!(if range.has(number + 0.25) { number + 0.25 } else { number - 0.25 })
        }
        (Shape::Number { .. }, _) => json!(1),
        (Shape::Flag { .. }, Value::Flag(flag)) => json!(!flag),
        (Shape::Word { words, .. }, Value::Word(default)) => {
            json!(words.iter().find(|word| **word != default).unwrap())
        }
        (Shape::Word { words, .. }, _) => json!(words[0]),
        (Shape::Text { .. }, _) => json!("MIRA"),
        (Shape::Secret { .. }, _) => json!("redis://cache:6379"),
        (Shape::Path { .. }, _) => json!("state.db"),
        (Shape::Paths { .. }, _) => json!(["mine.yaml"]),
        (shape, default) => panic!("{shape:?} {default:?}"),
    }
}

/// A file with one key, and what that key needs to be read.
fn document(key: &Key, value: Json) -> Json {
    let mut document = json!({});
    put(&mut document, key.path, value);
    match key.path {
        "store.prefix" => put(&mut document, "store.redis", json!("redis://h")),
        "breaker.window.slow.rate" => put(&mut document, "breaker.window.slow.longer_than", json!("1s")),
        _ => {}
    }
    document
}

fn put(document: &mut Json, path: &str, value: Json) {
    let mut at = document;
    for part in path.split('.') {
        at = &mut at[part];
    }
    *at = value;
}

#[test]
fn every_key_is_read_and_shown() {
    for key in leaves() {
        let text = document(key, another(key)).to_string();
        let config = loaded(&text);
        assert_ne!(config, Config::default(), "{text} changes nothing");
        assert_ne!(key.get(&config), key.get(&Config::default()), "{text} does not reach `{}`", key.path);
        assert!(!differences(&config).is_empty(), "{text} is not shown");
    }
}

#[test]
fn off_turns_off_what_can_be_off() {
    for key in leaves() {
        let may_be_off =
            matches!(key.shape, Shape::Length { off: true, .. } | Shape::Count { off: true, .. });
        let result = load("a.yaml", &document(key, json!("off")).to_string(), &|_| None);
        match key.shape {
            Shape::Path { .. } | Shape::Text { .. } => {}
            _ => assert_eq!(result.is_ok(), may_be_off, "{}", key.path),
        }
        if may_be_off {
            assert_eq!(key.get(&result.unwrap()), Some(Value::Off), "{}", key.path);
        }
    }
}

#[test]
fn sections_come_before_their_keys_and_paths_are_unique() {
    let mut seen = BTreeSet::from([""]);
    for key in KEYS.iter() {
        assert!(seen.contains(key.section()), "{} has no section above it", key.path);
        assert!(seen.insert(key.path), "{} is there twice", key.path);
        assert!(!key.meaning.is_empty() && !key.meaning.ends_with('.'), "{}", key.path);
    }
}

/// Whether the core takes a value that the table would refuse.
fn core_takes(key: &Key, value: Value) -> bool {
    let mut config = Config::default();
    key.set(&mut config, value);
    config.remedy.backoff.validate().is_ok()
        && config.breaker.validate().is_ok()
        && config.gate.validate().is_ok()
        && config.cooldown.validate().is_ok()
}

#[test]
fn the_ranges_of_the_table_are_those_of_the_core() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let judged = |key: &&Key| {
        ["retry.", "breaker.", "gate.", "cooldown."].iter().any(|part| key.path.starts_with(part))
    };
    let mut checked = 0;
    for key in leaves().filter(judged) {
        let mut beyond = Vec::new();
        match &key.shape {
            Shape::Length { range, .. } => {
                if !range.least.is_zero() {
                    beyond.push(Value::Length(Duration::ZERO));
                }
                if range.most < YEAR {
                    beyond.push(Value::Length(range.most + Duration::from_secs(1)));
                }
            }
            Shape::Count { range, .. } => {
                beyond.extend(range.least.checked_sub(1).map(Value::Count));
                if range.most < u64::from(u32::MAX) {
                    beyond.push(Value::Count(range.most + 1));
                }
            }
            Shape::Number { range, .. } => {
                beyond.push(Value::Number(if range.above { range.least } else { range.least - 0.01 }));
                beyond.push(Value::Number(f64::NAN));
                if range.most < f64::MAX {
                    beyond.push(Value::Number(if range.below { range.most } else { range.most + 0.01 }));
                }
            }
            _ => {}
        }
        for value in beyond {
            assert!(
                !core_takes(key, value.clone()),
                "{}: the core takes {value:?}, the table does not",
                key.path
            );
            checked += 1;
        }
    }
    assert!(checked > 40, "{checked}");
}

// ===== The example =====

#[test]
fn the_example_shows_every_default() {
    let text = read("examples/koboshi.yaml");
    assert_eq!(loaded(&text), Config::default());
    for key in leaves() {
        let name = format!("{}:", key.name());
        assert!(text.contains(&name), "examples/koboshi.yaml does not show `{}`", key.path);
    }
}

// ===== The schema =====

fn is_valid(document: &Json) -> bool {
    jsonschema::validator_for(&json_schema()).unwrap().is_valid(document)
}

/// YAML as an editor sees it.
fn as_json(yaml: &str) -> Option<Json> {
    serde_saphyr::from_str_with_options(yaml, serde_saphyr::options! { strict_booleans: true }).ok()
}

#[test]
fn the_schema_in_the_documentation_is_this_one() {
    let written: Json = serde_json::from_str(&read("docs/koboshi.schema.json")).unwrap();
    assert_eq!(written, json_schema(), "run: koboshi check --schema > docs/koboshi.schema.json");
}

#[test]
fn the_schema_takes_the_example_and_every_value_that_the_loader_takes() {
    let example = as_json(&read("examples/koboshi.yaml")).unwrap();
    assert!(is_valid(&example));
    for key in leaves() {
        for document in
            [document(key, another(key)), json!({}), json!({"store": "memory"}), json!({"retry": null})]
        {
            assert!(is_valid(&document), "{document}");
            loaded(&document.to_string());
        }
    }
}

#[test]
fn the_schema_refuses_what_the_loader_refuses_for_its_shape() {
    // These need the whole file, the environment or the disk to be seen.
    const BEYOND: &[&str] =
        &["missing-variable", "missing-rules", "said-twice", "above-the-cap", "missing-rules"];
    let mut refused = 0;
    for entry in std::fs::read_dir(repository("crates/koboshi-cli/tests/broken-configs")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let Ok(text) = std::fs::read_to_string(&path) else { continue };
        // What is not YAML, or has a key twice, is marked by every editor without a schema.
        let Some(document) = as_json(&text) else { continue };
        assert_eq!(is_valid(&document), BEYOND.contains(&name.as_str()), "{name}");
        refused += 1;
    }
    assert!(refused >= 12, "{refused}");
}

/// Addresses that can be used, and others.
const ADDRESSES: &[&str] = &[
    "redis://h", "redis://h/", "redis://h:6379/0", "redis://:p:w@h.example:1/15", "redis://u:p@q@h",
    "redis://[::1]:6379", "redis://h:", "redis://h:65535?protocol=resp3", "valkey://h", "unix:///run/r.sock",
    "redis+unix:///run/r.sock?db=1", "valkey+unix:///run/r.sock", "redis://", "redis:///0", "redis://:pw@",
    "redis://h:port", "redis://h:65536", "redis://h:06379", "redis://h:-1", "redis://:a/b@h",
    "redis://h/zero", "redis://h/0/1", "redis://h h", "redis://[::1", "redis://[x]", "redis://a\tb@h",
    "rediss://h:1/0", "valkeys://h", "unix://run/r.sock", "unix:///", "http://h", "h:6379", "",
];

#[test]
fn schema_and_loader_agree_on_the_form_of_texts_and_lengths() {
    let samples = [
        ("code_prefix", ["KBS", "a1", "", "1A", "K B", "ABCDEFGHIJKLMNOPQ"].as_slice()),
        ("store.redis", ADDRESSES),
        ("store.prefix", &["a:", "{tag}", "", "a b", "a\tb"]),
        (
            "request.patience",
            &["0s", "1h30m", "1h 30m", "1.5s", "30", "", "1 hour", "-1s", "1h ", "s", "5 s"],
        ),
    ];
    for (path, texts) in samples {
        let key = Key::find(path).unwrap();
        for text in texts {
            let document = document(key, json!(text));
            let taken = load("a.yaml", &document.to_string(), &|_| None).is_ok();
            assert_eq!(taken, is_valid(&document), "{document}");
        }
    }
}

// ===== The page =====

fn row(key: &Key) -> String {
    format!("| `{}` | {} | {} | {} |", key.path, key.default_text(), key.range_text(), key.meaning)
}

#[test]
fn the_page_describes_every_key_and_no_other() {
    let page = read("docs/config.md");
    let wanted: BTreeSet<String> = leaves().map(row).collect();
    let written: BTreeSet<String> =
        page.lines().filter(|line| line.starts_with("| `")).map(str::to_owned).collect();
    let missing: Vec<_> = wanted.difference(&written).collect();
    let foreign: Vec<_> = written.difference(&wanted).collect();
    assert!(
        missing.is_empty() && foreign.is_empty(),
        "missing: {missing:#?}\nnot in the table: {foreign:#?}"
    );
    for section in KEYS.iter().filter(|key| key.is_section() && key.section().is_empty()) {
        let heading = format!("## `{}`\n\n{}.", section.path, section.meaning);
        assert!(page.contains(&heading), "docs/config.md has no heading {heading:?}");
    }
}
