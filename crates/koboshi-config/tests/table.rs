//! The table of keys, and everything that must agree with it: the config, the core, the schema, the page, the example.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use koboshi_config::load::{Environment, LoadedConfig, load_located};
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

/// A name for an entry of a key's section; empty for keys outside of entries.
fn entry_of(key: &Key) -> &'static str {
    match key.path.split_once(".*").map(|(section, _)| section) {
        None => "",
        Some("providers") => "mira",
        Some("routes") => "gpt-*",
        Some("models") => "openai/*",
        Some("agents") => "reviewer",
        Some("accounts") => "main",
        Some("notify.channels") => "ops",
        Some(_) => "grep",
    }
}

/// A text that fits a key.
fn a_text(key: &Key) -> &'static str {
    match key.name() {
        "listen" => "127.0.0.1:4242",
        "allowed_hosts" => "koboshi.example",
        "allowed_origins" => "https://app.example",
        "base_url" | "otlp" | "url" | "gateway" => "https://host.example/v1",
        "chain" | "simple_model" => "sim/ok",
        "sha256" => "abababababababababababababababababababababababababababababababab",
        "redis" => "redis://cache:6379",
        "dialects" => "messages",
        "location" => "europe-west1",
        "memory" => "128MiB",
        "efforts" => "low",
        "env" => "NAME=value",
        "currency" => "JPY",
        "zone" => "Asia/Tokyo",
        "schedule" => "every 10m",
        "server" => "mail.example:587",
        "trusted_proxies" => "10.0.0.0/8",
        "from" | "to" => "ops@example.com",
        "triggers" => "park",
        "kinds" if key.path.starts_with("notify.") => "quota_exceeded",
        "scopes" => "account",
        "quiet_hours" => "22:00-07:00",
        _ => "MIRA",
    }
}

/// A value that a key may have and that is not its default.
fn another(key: &Key) -> Json {
    let default = key.default_value().unwrap();
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
        (Shape::Choice { numbers, .. }, default) => {
            json!(numbers.iter().find(|number| Value::Count(**number) != default).unwrap())
        }
        (Shape::Flag { .. }, _) => json!(true),
        (Shape::Text { .. } | Shape::Secret { .. }, _) => json!(a_text(key)),
        (Shape::Texts { .. } | Shape::Secrets { .. }, _) => json!([a_text(key)]),
        (Shape::Path { .. }, _) => json!("state.db"),
        (Shape::Paths { .. }, _) => json!(["mine.yaml"]),
        (shape, default) => panic!("{shape:?} {default:?}"),
    }
}

/// A file with one key, and what that key needs to be read.
fn document(key: &Key, value: Json) -> Json {
    let mut document = json!({});
    if let Some(entries) = key.entries() {
        let row = key.path.split_inclusive('*').next().unwrap();
        for name in entries.required {
            let required = Key::find(&format!("{row}.{name}")).unwrap();
            put(&mut document, required, another(required));
        }
    }
    put(&mut document, key, value);
    match key.path {
        "store.prefix" => put(&mut document, Key::find("store.redis").unwrap(), json!("redis://h")),
        "breaker.window.slow.rate" => {
            put(&mut document, Key::find("breaker.window.slow.longer_than").unwrap(), json!("1s"));
        }
        "serve.tls.certificate" => {
            put(&mut document, Key::find("serve.tls.key").unwrap(), json!("key.pem"));
        }
        "serve.tls.key" => {
            put(&mut document, Key::find("serve.tls.certificate").unwrap(), json!("server.pem"));
        }
        "providers.*.api_version" => of_kind(&mut document, "azure"),
        "providers.*.credentials_file" | "providers.*.project" | "providers.*.location" => {
            of_kind(&mut document, "vertex");
        }
        path if path.starts_with("notify.channels.*.") => complete_channel(&mut document),
        "providers.*.kind" => {
            let kind = document["providers"]["mira"]["kind"].clone();
            of_kind(&mut document, kind.as_str().unwrap_or_default());
        }
        _ => {}
    }
    document
}

/// Gives a channel of notices what its kind needs.
fn complete_channel(document: &mut Json) {
    let channel = &mut document["notify"]["channels"]["ops"];
    for (key, value) in [
        ("url", json!("https://host.example/v1")),
        ("server", json!("mail.example:25")),
        ("from", json!("koboshi@example.com")),
        ("to", json!(["ops@example.com"])),
        ("command", json!(["true"])),
    ] {
        if channel.get(key).is_none() {
            channel[key] = value;
        }
    }
}

/// Makes the provider one of this kind, with what that needs.
fn of_kind(document: &mut Json, kind: &str) {
    let provider = &mut document["providers"]["mira"];
    provider["kind"] = json!(kind);
    match kind {
        "azure" => provider["base_url"] = json!("https://host.example"),
        "vertex" => {
            if provider.get("credentials_file").is_none() {
                provider["token_command"] = json!(["token"]);
            }
            if provider.get("project").is_none() {
                provider["project"] = json!("my-project");
            }
        }
        _ => {}
    }
}

fn put(document: &mut Json, key: &Key, value: Json) {
    let mut at = document;
    for part in key.path.split('.') {
        at = &mut at[if part == "*" { entry_of(key) } else { part }];
    }
    *at = value;
}

#[test]
fn every_key_is_read_and_shown() {
    for key in leaves() {
        let text = document(key, another(key)).to_string();
        let config = loaded(&text);
        assert_ne!(config, Config::default(), "{text} changes nothing");
        assert_ne!(
            key.get(&config, entry_of(key)),
            key.default_value(),
            "{text} does not reach `{}`",
            key.path
        );
        let path = key.path_in(entry_of(key));
        let other_name = key.path.ends_with("_cooldown_seconds");
        let shown = differences(&config).iter().any(|one| one.path == path);
        assert!(shown || other_name, "{text} is not shown");
    }
}

#[test]
fn off_turns_off_what_can_be_off() {
    for key in leaves() {
        let may_be_off =
            matches!(key.shape, Shape::Length { off: true, .. } | Shape::Count { off: true, .. });
        let result = load("a.yaml", &document(key, json!("off")).to_string(), &|_| None);
        match &key.shape {
            Shape::Path { .. } | Shape::Text { .. } | Shape::Texts { single: true, .. } => {}
            Shape::Secret { form, .. } if (form.holds)("off") => {}
            Shape::Word { words, .. } if words.contains(&"off") => assert!(result.is_ok(), "{}", key.path),
            Shape::Flag { words: true, .. } => {
                assert_eq!(key.get(&result.unwrap(), ""), Some(Value::Flag(false)), "{}", key.path);
                continue;
            }
            _ => assert_eq!(result.is_ok(), may_be_off, "{}", key.path),
        }
        if may_be_off {
            assert_eq!(key.get(&result.unwrap(), entry_of(key)), Some(Value::Off), "{}", key.path);
        }
    }
}

#[test]
fn every_word_is_read_and_comes_back() {
    for key in leaves() {
        let words: Vec<Json> = match &key.shape {
            Shape::Word { words, .. } => words.iter().map(|word| json!(word)).collect(),
            Shape::Choice { numbers, .. } => numbers.iter().map(|number| json!(number)).collect(),
            _ => continue,
        };
        for word in words {
            let config = loaded(&document(key, word.clone()).to_string());
            let said = key.get(&config, entry_of(key)).unwrap().to_string();
            assert_eq!(
                json!(said),
                json!(word.as_str().map_or(word.to_string(), str::to_owned)),
                "{}",
                key.path
            );
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
    let text = document(key, another(key)).to_string();
    let mut config = if key.entries().is_some() { loaded(&text) } else { Config::default() };
    key.set(&mut config, entry_of(key), value);
    config.remedy.backoff.validate().is_ok()
        && config.breaker.validate().is_ok()
        && config.gate.validate().is_ok()
        && config.cooldown.validate().is_ok()
        && config.guard.policy.validate().is_ok()
}

#[test]
fn the_ranges_of_the_table_are_those_of_the_core() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let judged = |key: &&Key| {
        ["retry.", "breaker.", "gate.", "cooldown.", "guard."].iter().any(|part| key.path.starts_with(part))
    };
    let mut checked = 0;
    for key in leaves().filter(judged) {
        let mut beyond = Vec::new();
        match &key.shape {
            Shape::Length { range, .. } => {
                if !range.min.is_zero() {
                    beyond.push(Value::Length(Duration::ZERO));
                }
                if range.max < YEAR {
                    beyond.push(Value::Length(range.max + Duration::from_secs(1)));
                }
            }
            Shape::Count { range, .. } => {
                beyond.extend(range.min.checked_sub(1).map(Value::Count));
                if range.max < u64::from(u32::MAX) {
                    beyond.push(Value::Count(range.max + 1));
                }
            }
            Shape::Number { range, .. } => {
                beyond.push(Value::Number(if range.above { range.min } else { range.min - 0.01 }));
                beyond.push(Value::Number(f64::NAN));
                if range.max < f64::MAX {
                    beyond.push(Value::Number(if range.below { range.max } else { range.max + 0.01 }));
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

/// The example with all that is commented out in the gateway's sections.
fn example_with_entries() -> String {
    let text = read("examples/koboshi.yaml");
    let (gateway, rest) = text.split_once("# Retries on the same target.").unwrap();
    let (_, telling) = rest.split_once("# The log of the gateway.").unwrap();
    let uncommented = |line: &str| match line.split_once("# ") {
        Some((indent, rest)) if !indent.is_empty() && indent.trim().is_empty() => format!("{indent}{rest}\n"),
        _ => format!("{line}\n"),
    };
    gateway.lines().chain(telling.lines()).map(uncommented).collect()
}

#[test]
fn what_the_example_has_in_comments_is_good_and_shows_every_key_of_entries() {
    let text = example_with_entries();
    let lookup = |name: &str| (name == "OPENAI_API_KEY").then(|| "sk-1".to_owned());
    let config = load("koboshi.yaml", &text, &lookup).unwrap_or_else(|problems| panic!("{problems}"));
    let shown: BTreeSet<String> = differences(&config).into_iter().map(|one| one.path).collect();
    let names = [
        "alice", "openai", "azure", "vertex", "company", "*", "ollama/my-model*", "poll_job", "random",
        "reviewer", "worker", "planner", "builder", "main", "ops", "pager", "office", "desk",
    ];
    for key in leaves().filter(|key| key.entries().is_some()) {
        let is_rule = key.path.starts_with("guard.tools.*.") && key.path.matches('.').count() > 3;
        let found = names.iter().any(|name| shown.contains(&key.path_in(name)));
        assert!(found || is_rule, "examples/koboshi.yaml does not show `{}`", key.path);
    }
}

// ===== Old names =====

const OLD: &str = include_str!("data/old-names.yaml");

fn with_key(name: &str) -> Option<String> {
    (name == "OPENAI_API_KEY").then(|| "sk-1".to_owned())
}

#[test]
fn every_old_name_is_read_and_the_new_one_is_named() {
    let LoadedConfig { config, warnings, .. } = load_located("old.yaml", OLD, Environment::new(&with_key))
        .unwrap_or_else(|problems| panic!("{problems}"));
    let renamed: Vec<_> = KEYS.iter().filter(|key| key.former().is_some()).collect();
    assert!(renamed.len() > 70, "{}", renamed.len());
    for key in renamed {
        // Rules for single tools are those for all tools; the file has one of them.
        if key.path.starts_with("guard.tools.*.") && key.name() == "action" {
            continue;
        }
        let old = key.path.rsplit_once('.').map_or("", |(section, _)| section);
        let fits = |path: &str| {
            let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
            let depth = key.path.matches('.').count();
            let same =
                old.split('.').zip(section.split('.')).all(|(ours, theirs)| ours == "*" || ours == theirs);
            // Names of models have points and slashes of their own.
            Some(name) == key.former()
                && (same || section.starts_with("models."))
                && section.matches('.').count() + 1 >= depth
        };
        let named = |problem: &&koboshi_config::check::Problem| {
            fits(&problem.path)
                && problem.hint.as_deref().is_some_and(|hint| hint.contains(&format!("`{}`", key.name())))
        };
        assert!(warnings.iter().any(|one| named(&one)), "no warning names `{}`", key.path);
    }
    let new = example_with_everything();
    let same = load("old.yaml", &new, &with_key).unwrap_or_else(|problems| panic!("{problems}"));
    let set = same.remedy.request.in_all;
    assert_eq!((config.remedy.request.in_all, set), (Some(6), None), "the example leaves the default alone");
    let mut same = same;
    same.remedy.request.in_all = config.remedy.request.in_all;
    assert_eq!(config, same, "an old file means the same as a new one");
}

/// The example with what is commented out in the gateway's sections, whole.
fn example_with_everything() -> String {
    let text = read("examples/koboshi.yaml");
    let (_, rest) = text.split_once("# Retries on the same target.").unwrap();
    let (policies, _) = rest.split_once("# The log of the gateway.").unwrap();
    format!("{}\n{policies}", example_with_entries())
}

#[test]
fn no_old_name_is_in_what_we_write_ourselves() {
    for name in ["koboshi.yaml", "mira.yaml", "mira-cloud.yaml"] {
        let text = read(&format!("examples/{name}"));
        let lookup = |name: &str| {
            let value = if name.ends_with("PROJECT") { "my-project-1" } else { "https://host.example/v1" };
            Some(value.to_owned())
        };
        let loaded = load_located(name, &text, Environment::new(&lookup))
            .unwrap_or_else(|problems| panic!("{problems}"));
        assert!(loaded.warnings.is_empty(), "{:#?}", loaded.warnings);
    }
}

#[test]
fn both_names_of_one_key_are_an_error() {
    for key in KEYS.iter().filter(|key| key.entries().is_none()) {
        let Some(old) = key.former() else { continue };
        let value = if key.is_section() { json!({}) } else { another(key) };
        let mut both = document(key, value.clone());
        let section = key.path.rsplit_once('.').map_or("", |(section, _)| section);
        let mut at = &mut both;
        for part in section.split('.').filter(|part| !part.is_empty()) {
            at = &mut at[part];
        }
        at[old] = value;
        let problems = load("a.yaml", &both.to_string(), &|_| None).unwrap_err().to_string();
        assert!(problems.contains("the old and the new name of one key"), "{both}: {problems}");
        assert!(!is_valid(&both), "{both}");
        at = &mut both;
        for part in section.split('.').filter(|part| !part.is_empty()) {
            at = &mut at[part];
        }
        at.as_object_mut().unwrap().remove(key.name());
        assert!(is_valid(&both), "the schema takes the old name: {both}");
    }
}

// ===== The schema =====

fn is_valid(document: &Json) -> bool {
    static VALIDATOR: LazyLock<jsonschema::Validator> =
        LazyLock::new(|| jsonschema::validator_for(&json_schema()).unwrap());
    VALIDATOR.is_valid(document)
}

/// YAML as an editor sees it.
fn as_json(yaml: &str) -> Option<Json> {
    serde_saphyr::from_str_with_options(yaml, serde_saphyr::options! { strict_booleans: true }).ok()
}

#[test]
fn the_schema_in_the_documentation_is_this_one() {
    let written: Json = serde_json::from_str(&read("docs/koboshi.schema.json")).unwrap();
    assert!(written == json_schema(), "run: koboshi check --schema > docs/koboshi.schema.json");
}

#[test]
fn the_schema_takes_the_example_and_every_value_that_the_loader_takes() {
    for example in [read("examples/koboshi.yaml"), example_with_entries()] {
        assert!(is_valid(&as_json(&example).unwrap()));
    }
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
    const BEYOND: &[&str] = &[
        "missing-variable", "missing-rules", "said-twice", "above-the-cap", "unknown-provider",
        "open-to-all", "same-key", "kinds", "sim-names", "channels", "channel-zone",
    ];
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

const HASH: &str = "0123456789abcdefABCDEF0123456789abcdef0123456789abcdef0123456789";
const LONG: &str = concat!(
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
    "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
);

#[test]
fn schema_and_loader_agree_on_the_form_of_texts_and_lengths() {
    let samples: &[(&str, &[&str])] = &[
        ("code_prefix", &["KBS", "a1", "", "1A", "K B", "ABCDEFGHIJKLMNOPQ"]),
        ("store.redis", ADDRESSES),
        ("store.prefix", &["a:", "{tag}", "", "a b", "a\tb"]),
        (
            "request.max_wait",
            &["0s", "1h30m", "1h 30m", "1.5s", "30", "", "1 hour", "-1s", "1h ", "s", "5 s"],
        ),
        (
            "serve.listen",
            &[
                "127.0.0.1:4141", "[::1]:0", "127.0.0.1:65535", "127.0.0.1:65536", "127.0.0.1:041",
                "127.0.0.1", "localhost:4141", ":4141", "4141", "256.0.0.1:1", "127.0.0.01:1", "127.0.0.1:",
                "::1:4141", "",
            ],
        ),
        (
            "providers.*.base_url",
            &[
                "https://api.example/v1", "http://h", "http://h/", "http://[::1]:11434/v1",
                "http://h_1.local:80/a%20b", "https://u:p@h", "https://h?x=1", "https://h/#a", "ftp://h",
                "HTTPS://h", "https://", "https:///v1", "https://h:", "https://h:70000", "https://h:080",
                "https://h/a b", "https://日本", "h/v1", "", "https://[::1", "https://h]:1", "https://a:b:1",
            ],
        ),
        ("trace.otlp", &["http://localhost:4318", "localhost:4318"]),
        ("providers.*.api_version", &["2024-10-21", "preview", "v1", "", "a b", "a&b=c", "-1", LONG]),
        ("providers.*.project", &["my-project-1", "example.com:old", "123", "", "a/b", "a b", "é", LONG]),
        ("providers.*.location", &["global", "europe-west1", "us", "", "Europe-West1", "1a", "a.b", LONG]),
        (
            "keys.*.sha256",
            &[HASH, "", "sk-123", "g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"],
        ),
        (
            "keys.*.tenant",
            &["a", "Alice and Bob", "日本", "", " a", "a ", "a\tb", "a\u{202e}b", "\u{feff}", LONG],
        ),
        ("spend.currency", &["USD", "JPY", "usd", "US", "EURO", "", "U$D", "É12"]),
        (
            "spend.zone",
            &[
                "UTC", "Asia/Tokyo", "America/Argentina/Buenos_Aires", "Etc/GMT+9", "", "/UTC", "Asia/",
                "a/b/c/d", "日本", "A B", LONG,
            ],
        ),
        (
            "notify.channels.*.server",
            &["a:1", "mail.example:587", "a:65535", "a:65536", "a:0", "a:01", "a", ":1", "a b:1", ""],
        ),
        (
            "notify.channels.*.from",
            &["a@b", "a.b+c@host.example", "@b", "a@", "a", "a b@c", "日@b", "a@b c", ""],
        ),
        (
            "notify.channels.*.quiet_hours",
            &[
                "22:00-07:00", "00:00-23:59", "24:00-07:00", "7:00-8:00", "07:60-08:00", "07:00",
                "+1:00-02:00", "",
            ],
        ),
        (
            "degrade.simple_model",
            &["sim/ok", "sim/rate-429?retry_after=2&p=0.3", "openrouter/meta/llama-3", "{model}/x", "sim"],
        ),
    ];
    for (path, texts) in samples {
        let key = Key::find(path).unwrap();
        for text in *texts {
            let document = document(key, json!(text));
            let taken = load("a.yaml", &document.to_string(), &|_| None);
            // Whether a provider is there is no matter of form.
            let taken = taken.is_ok()
                || taken.is_err_and(|all| all.iter().all(|one| one.message.contains("names the provider")));
            assert_eq!(taken, is_valid(&document), "{document}");
        }
    }
}

#[test]
fn schema_and_loader_agree_on_the_form_of_parts() {
    let samples: &[(&str, &[&str])] = &[
        ("serve.allowed_hosts", &["a.example", "A", "[::1]", "h:1", "https://h", "*.h", "", "a b"]),
        (
            "serve.allowed_origins",
            &[
                "https://a.example", "http://localhost:3000", "chrome-extension://abcdef", "https://a/",
                "https://a/b", "a.example", "*", "null", "://a", "HTTPS://a",
            ],
        ),
        ("providers.*.keys", &["sk-1", "!~", "", "a b", "a\n", "é"]),
        ("providers.*.dialects", &["chat", "responses", "messages", "gemini", "openai", "Chat", ""]),
        ("providers.*.token_command", &["gcloud", "print access token", "日本", "", "a\nb", "a\u{7f}"]),
        ("notify.channels.*.triggers", &["park", "parks", "", "Park"]),
        ("notify.channels.*.scopes", &["account", "client", "network", ""]),
        ("notify.channels.*.to", &["a@b", "a"]),
        (
            "routes.*.chain",
            &[
                "sim/ok", "sim/{model}", "sim/x-{model}:free", "sim/{model}{model}", "sim/{modl}", "sim/a}",
                "sim/", "sim", "/ok", "Sim/ok", "{model}", "{model}/x", "sim/a b", "-sim/ok", "sim/日本",
                "*/ok",
            ],
        ),
    ];
    for (path, texts) in samples {
        let key = Key::find(path).unwrap();
        for text in *texts {
            let document = document(key, json!([text]));
            let taken = load("a.yaml", &document.to_string(), &|_| None).is_ok();
            assert_eq!(taken, is_valid(&document), "{document}");
        }
    }
}

#[test]
fn schema_and_loader_agree_on_entries() {
    let many: serde_json::Map<String, Json> =
        (0..1001).map(|n| (format!("m{n}"), json!(["sim/ok"]))).collect();
    let few: serde_json::Map<String, Json> = many.clone().into_iter().take(1000).collect();
    let parts = |count: usize| json!({"routes": {"m": vec!["sim/ok"; count]}});
    for (document, good) in [
        (json!({"routes": {"gpt-4.1": ["sim/ok"], "*": {"chain": ["sim/ok"], "commit": "complete"}}}), true),
        (json!({"routes": few}), true),
        (json!({"routes": many}), false),
        (parts(16), true),
        (parts(17), false),
        (parts(0), false),
        (json!({"routes": {"m": {}}}), false),
        (json!({"routes": {"m": null}}), false),
        (json!({"routes": {"m": "sim/ok"}}), false),
        (json!({"routes": {" m": ["sim/ok"]}}), false),
        (json!({"routes": {"": ["sim/ok"]}}), false),
        (json!({"routes": {LONG: ["sim/ok"]}}), false),
        (json!({"routes": null, "providers": {}, "models": {"sim/*": null}}), true),
        (json!({"providers": {"a_b-1": {"kind": "openai"}, "0": {"kind": "sim"}}}), true),
        (json!({"providers": {"-a": {"kind": "openai"}}}), false),
        (json!({"providers": {"a.b": {"kind": "openai"}}}), false),
        (json!({"providers": {"a": {"keys": []}}}), false),
        (json!({"providers": {"a": {"kind": "openai", "keys": "x"}}}), false),
        (json!({"models": {"gpt-4o": {}}}), false),
        (json!({"models": {"*/gpt-4o*": {"tools": false}}}), true),
        (json!({"keys": {"alice": {"tenant": "a"}}}), false),
        (
            json!({"guard": {"tools": {"my tool": {"unlimited": true, "cycle": "off", "same_call": {"limit": 9}}}}}),
            true,
        ),
        (json!({"guard": {"tools": {"x": {"depth": {"limit": 3}}}}}), false),
        (json!({"guard": {"depth": "off", "width": {"action": "note"}}}), true),
        (json!({"tool_calls": {"repair": "on"}}), true),
        (json!({"tool_calls": {"repair": "yes"}}), false),
        (json!({"degrade": {"status": 503}}), true),
        (json!({"degrade": {"status": 500}}), false),
        (json!({"retry.max_attempts": 3}), false),
    ] {
        let taken = load("a.yaml", &document.to_string(), &|_| None);
        let head: String = document.to_string().chars().take(200).collect();
        assert_eq!(
            taken.is_ok(),
            good,
            "{head} {}",
            taken.err().map(|all| all.to_string()).unwrap_or_default()
        );
        assert_eq!(is_valid(&document), good, "{head}");
    }
}

#[test]
fn the_schema_marks_old_names_as_deprecated() {
    let schema = json_schema();
    let serve = &schema["properties"]["serve"]["properties"];
    assert_eq!(serve["hold"]["deprecated"], true);
    assert_eq!(serve["hold"]["description"], "Old name of first_byte_hold");
    assert_eq!(serve["first_byte_hold"].get("deprecated"), None);
}

/// A fact that a models file may state can be set in koboshi.yaml too.
#[test]
fn every_fact_of_models_has_a_key() {
    for fact in koboshi::models::Facts::KEYS {
        assert!(Key::find(&format!("models.*.{fact}")).is_some(), "models.*.{fact}");
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
