//! What a file means, and what is said of one that means nothing.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use koboshi::backoff::{BackoffPolicy, Jitter};
use koboshi::breaker::{BreakerPolicy, Span};
use koboshi::cooldown::CooldownPolicy;
use koboshi_config::check::Problems;
use koboshi_config::config::StorePlace;
use koboshi_config::file::{load_file, locate};
use koboshi_config::{Config, load};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn lookup(name: &str) -> Option<String> {
    (name == "PASSWORD").then(|| "hunter2".to_owned())
}

fn good(text: &str) -> Config {
    load("/etc/koboshi/koboshi.yaml", text, &lookup).unwrap_or_else(|problems| panic!("{text}\n{problems}"))
}

fn bad(text: &str) -> Problems {
    load("koboshi.yaml", text, &lookup).unwrap_err()
}

/// Where the problems are: line, column, key.
fn places(text: &str) -> Vec<(u64, u64, String)> {
    bad(text)
        .iter()
        .map(|problem| {
            let place = problem.place.unwrap();
            (place.line, place.column, problem.path.clone())
        })
        .collect()
}

#[test]
fn nothing_means_the_defaults() {
    for text in ["", "# a comment\n", "{}", "retry:\ngate: {}\nstore:\n", "\u{feff}retry:\n"] {
        assert_eq!(good(text), Config::default(), "{text:?}");
    }
}

#[test]
fn a_preset_is_refined_by_the_other_keys_wherever_they_stand() {
    let config = good(
        "retry: {jitter: none, max_attempts: 4, preset: network}\nbreaker: {open: {max: 1m}, preset: consecutive}",
    );
    assert_eq!(
        config.remedy.backoff,
        BackoffPolicy::NETWORK.with(|policy| {
            policy.attempts = 4;
            policy.jitter = Jitter::None;
        })
    );
    assert_eq!(config.breaker.window, None);
    assert_eq!(config.breaker.open.cap, seconds(60));
    let window = good("breaker: {preset: consecutive, window: {time: 2m}}").breaker.window.unwrap();
    assert_eq!((window.span, window.min_calls), (Span::Time(seconds(120)), 5), "the rest is the design's");
    assert_eq!(good("breaker: {preset: window}").breaker, BreakerPolicy::WINDOW);
}

#[test]
fn the_seeds_own_file_is_the_default_and_its_keys_do_what_they_say() {
    let seed = "error_protection:\n  enabled: true\n  default_cooldown_seconds: 60\n  max_cooldown_seconds: 3600\n  quota_detection_enabled: true\n";
    assert_eq!(good(seed), Config::default());
    let cooldown = good(
        "error_protection: {enabled: false, default_cooldown_seconds: 90, quota_detection_enabled: false}",
    )
    .cooldown;
    assert!(!cooldown.enabled && !cooldown.detection);
    assert_eq!(cooldown.error.base, seconds(90));
    let short = good("error_protection: {max_cooldown_seconds: 20}").cooldown;
    for class in [short.error, short.network, short.overloaded, short.rate_limit, short.quota] {
        assert!(class.cap == seconds(20) && class.base <= class.cap, "{class:?}");
    }
    let long = good("error_protection: {max_cooldown_seconds: 7200}").cooldown;
    assert_eq!([long.error.cap, long.quota.cap, long.rate_limit.cap], [seconds(7200); 3]);
    assert_eq!(
        long.network,
        CooldownPolicy::default().network,
        "a limit lengthens nothing that ends sooner by design"
    );
}

#[test]
fn paths_are_relative_to_the_file_and_variables_are_filled_in() {
    let config = good("rules: [my.yaml, /abs.yaml]\nstore: {path: '${PASSWORD}/k.db'}");
    assert_eq!(config.rules, [Path::new("/etc/koboshi/my.yaml"), Path::new("/abs.yaml")]);
    assert_eq!(config.store.place, StorePlace::File(PathBuf::from("/etc/koboshi/hunter2/k.db")));
    let config = good("store: {redis: 'redis://:${PASSWORD}@h', prefix: 'p:'}");
    let StorePlace::Redis { url, prefix } = &config.store.place else { panic!() };
    assert_eq!((url.expose(), prefix.as_str()), ("redis://:hunter2@h", "p:"));
    assert!(!format!("{config:?}").contains("hunter2"));
}

#[test]
fn a_text_names_a_place_and_a_place_says_who_shares_it() {
    for (text, is_shared) in [
        ("memory", false),
        ("./memory", false),
        ("/var/lib/koboshi.db", false),
        ("redis://host", true),
        ("valkeys+cluster://a,b", true),
        ("unix:///run/redis.sock", true),
    ] {
        let place = StorePlace::named(text).unwrap();
        assert_eq!(
            (place.is_shared_by_machines(), place.prefix().is_some()),
            (is_shared, is_shared),
            "{text}"
        );
    }
    assert!(!StorePlace::Usual.is_shared_by_machines() && StorePlace::Usual.prefix().is_none());
    for other in ["postgres://host/db", "http://host", "redis2://host", "://"] {
        assert_eq!(StorePlace::named(other), None, "{other}: no file has such a name");
    }
}

#[test]
fn all_problems_are_said_at_once_in_the_order_of_the_file() {
    let found = places("retry:\n  max_attemps: 1\n  initial_delay: 5\ngate: {max_queue: x}\nretry: {}\n");
    let wanted = [
        (2, 3, "retry.max_attemps"),
        (3, 18, "retry.initial_delay"),
        (4, 19, "gate.max_queue"),
        (5, 1, "retry"),
    ];
    assert_eq!(found, wanted.map(|(line, column, path)| (line, column, path.to_owned())));
}

#[test]
fn several_complaints_of_one_policy_are_all_heard() {
    let found = places("cooldown:\n  quota: {initial: 2h}\n  error: {initial: 3h}\n  margin: {min: 1h}\n");
    assert_eq!(found.len(), 3, "{found:?}");
}

#[test]
fn what_only_follows_from_another_mistake_is_not_said() {
    // With calls unreadable, min_calls would be held against the default and be found too large.
    assert_eq!(places("breaker: {window: {calls: many, min_calls: 20}}").len(), 1);
    assert_eq!(places("store: {redis: '${NONE}', prefix: 'a:'}").len(), 1);
    assert_eq!(places("breaker: {window: {slow: {longer_than: 5, rate: 0.1}}}").len(), 1);
}

#[test]
fn a_variable_is_found_in_the_middle_of_a_long_value() {
    let text = "store:\n  redis: >-\n    redis://:${PASSWORD}@\n    ${HOST}\n";
    assert_eq!(places(text), [(4, 5, "store.redis".to_owned())]);
    assert_eq!(places("store: {path: \"日本/${HOST}\"}"), [(1, 19, "store.path".to_owned())]);
}

#[test]
fn secrets_are_never_shown_whatever_is_wrong_with_them() {
    for text in [
        "store: {redis: 'hunter2'}", "store: {redis: 'redis://:hunter2@${NONE}'}",
        "store: {redis: '${PASSWORD}'}", "store: {redis: [hunter2]}", "store: {redis: {hunter2: 1}}",
        "store: {path: x, redis: 'redis://:hunter2@h'}", "store: {redis: 'redis://:hunter2@h', reddis: 1}",
        "store: {redis: 'redis://:hunter2@h', redis: 1}", "store: {redis: 'redis://:hunter2@h'",
        "redis: 'redis://:hunter2@h'",
    ] {
        let problems = bad(text);
        assert!(!problems.to_string().contains("hunter2"), "{text}\n{problems}");
        assert!(!format!("{problems:?}").contains("hunter2"), "{text}\n{problems:?}");
    }
}

#[test]
fn aliases_are_read_and_merge_keys_are_not() {
    let config = good("cooldown: {error: &one {initial: 2m}, quota: *one}");
    assert_eq!(config.cooldown.quota.base, seconds(120));
    let problems = bad("cooldown: {error: &one {initial: 2m}, quota: {<<: *one}}");
    assert!(problems.to_string().contains("merge keys"), "{problems}");
}

#[test]
fn a_file_that_is_no_config_says_so() {
    for text in ["[]", "just text", "42", "? [a]\n: b\n"] {
        assert!(!bad(text).is_unreadable(), "{text}");
    }
    let problems = load("big.yaml", &"#".repeat(2 * 1024 * 1024), &lookup).unwrap_err();
    assert!(problems.to_string().contains("1024 KiB"), "{problems}");
}

#[test]
fn a_file_that_cannot_be_read_differs_from_a_bad_one() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    for path in [folder.join("not-there.yaml"), folder.clone()] {
        let problems = load_file(&path, &lookup).unwrap_err();
        assert!(problems.is_unreadable(), "{problems}");
    }
    let latin = folder.join("latin.yaml");
    std::fs::write(&latin, b"# caf\xe9\nretry:\n").unwrap();
    let problems = load_file(&latin, &lookup).unwrap_err();
    let place = problems.iter().next().unwrap().place.unwrap();
    assert_eq!((problems.is_unreadable(), place.line, place.column), (false, 1, 6));
}

#[test]
fn rule_files_are_read_and_their_own_mistakes_are_located() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("rules");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("good.yaml"), "mute: []\n").unwrap();
    std::fs::write(folder.join("bad.yaml"), "provider:\n  - id: a\n    kind: tiemout\n").unwrap();
    let config = folder.join("koboshi.yaml");
    std::fs::write(&config, "rules: [good.yaml]\n").unwrap();
    assert_eq!(load_file(&config, &lookup).unwrap().rules, [folder.join("good.yaml")]);
    std::fs::write(&config, "rules: [good.yaml, bad.yaml]\n").unwrap();
    let problems = load_file(&config, &lookup).unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert!(problem.file.ends_with("bad.yaml"), "{problems}");
    assert_eq!(problem.place.unwrap().line, 3);
}

#[test]
fn the_file_is_looked_for_in_order() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("home");
    std::fs::create_dir_all(folder.join(".config/koboshi")).unwrap();
    std::fs::create_dir_all(folder.join("xdg/koboshi")).unwrap();
    let home = folder.display().to_string();
    let xdg = folder.join("xdg").display().to_string();
    let variables = |config: Option<&'static str>| {
        let (home, xdg) = (home.clone(), xdg.clone());
        move |name: &str| match name {
            "HOME" => Some(home.clone()),
            "XDG_CONFIG_HOME" => Some(xdg.clone()),
            "KOBOSHI_CONFIG" => config.map(str::to_owned),
            _ => None,
        }
    };
    let _ = std::fs::remove_file(folder.join("xdg/koboshi/koboshi.yaml"));
    std::fs::write(folder.join(".config/koboshi/koboshi.yaml"), "").unwrap();
    assert_eq!(locate(None, &variables(None)), None, "XDG_CONFIG_HOME is set, so ~/.config is not looked at");
    std::fs::write(folder.join("xdg/koboshi/koboshi.yaml"), "").unwrap();
    assert_eq!(locate(None, &variables(None)), Some(folder.join("xdg/koboshi/koboshi.yaml")));
    assert_eq!(locate(None, &variables(Some("named.yaml"))), Some(PathBuf::from("named.yaml")));
    assert_eq!(
        locate(Some(Path::new("a.yaml")), &variables(Some("named.yaml"))),
        Some(PathBuf::from("a.yaml"))
    );
    let only_home = |name: &str| (name == "HOME").then(|| home.clone());
    assert_eq!(locate(None, &only_home), Some(folder.join(".config/koboshi/koboshi.yaml")));
}

#[test]
fn an_address_that_the_store_cannot_use_is_refused_with_a_way_out() {
    let said = |address: &str| {
        let problems = bad(&format!("store:\n  redis: '{address}'\n")).to_string();
        assert!(!problems.contains("hunter2"), "{problems}");
        problems
    };
    for address in [
        "rediss://:hunter2@host:port/0", "redis://:hunter2@host:port/0", "redis://:hunter2@host:70000",
        "redis://:hunter2/@host",
    ] {
        assert!(said(address).contains("host:6379/0"), "{address}");
    }
    assert!(said("unix://run/redis.sock").contains("unix:///run/redis.sock"));
}

#[test]
fn a_whole_number_is_written_with_digits_only() {
    for (written, meant) in [("3.0", "3"), ("3e0", "3"), ("1e2", "100")] {
        let said = bad(&format!("retry:\n  max_attempts: {written}\n")).to_string();
        assert!(said.contains("a whole number") && said.contains(&format!("write `{meant}`")), "{said}");
    }
    for (written, word) in [("-3", "or more"), ("1e30", "or more"), ("2.5", "a whole number")] {
        let said = bad(&format!("retry:\n  max_attempts: {written}\n")).to_string();
        assert!(said.contains(word), "{written}: {said}");
    }
}

#[test]
fn no_more_entries_can_be_kept_than_a_store_can_count() {
    let most = i64::MAX.cast_unsigned();
    let with = |count: u64| format!("store: {{journal: {{keep_entries: {count}}}}}");
    assert_eq!(good(&with(most)).store.journal.keep_entries, most);
    assert!(bad(&with(most + 1)).to_string().contains(&format!("at most {most}")));
}
