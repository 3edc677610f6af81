//! `status`, `resume`, `cool` and `journal`, as a person at a terminal meets them: on a real file and a real Redis.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

mod common;

use std::path::PathBuf;

use common::{Out, json, run_with};
use jiff::Timestamp;
use koboshi::breaker::{BreakerSnapshot, Mode, Why};
use koboshi::chance::Seed;
use koboshi::cooldown::{Class, Cooldown, CooldownPolicy, Failure};
use koboshi::gate::{Holds, Limit};
use koboshi_store::{
    Entry, EntryKind, Record, RedisPolicy, RedisStore, Slot, SqlitePolicy, SqliteStore, Store,
};
use koboshi_testkit::RedisServer;
use tempfile::TempDir;

/// 2026-11-15 12:00 UTC.
const NOON: i64 = 1_794_744_000;
const NOW: &str = "2026-11-15T12:00:00Z";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(NOON + second).unwrap()
}

/// A provider with an account of this name.
const PROVIDER: &str = "providers: {openai: {kind: openai, account: main}}\n";

/// A home of its own, so that nothing of the machine's user is read.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn run(&self, args: &[&str]) -> Out {
        self.run_with(args, &[])
    }

    fn run_with(&self, args: &[&str], more: &[(&str, &str)]) -> Out {
        self.run_at(NOW, args, more)
    }

    fn run_at(&self, now: &str, args: &[&str], more: &[(&str, &str)]) -> Out {
        let home = self.folder.path().display().to_string();
        let config = self.folder.path().join("koboshi.yaml");
        std::fs::OpenOptions::new().create(true).append(true).open(&config).unwrap();
        let config = config.display().to_string();
        let mut environment = vec![
            ("HOME", home.as_str()),
            ("XDG_STATE_HOME", ""),
            ("KOBOSHI_CONFIG", &config),
            ("KOBOSHI_STORE", ""),
        ];
        environment.extend(more);
        let (now, rest) = (["--now", now], args);
        let args: Vec<&str> = rest.iter().copied().chain(now).collect();
        run_with(&args, &environment, "")
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join(".local/state/koboshi/koboshi.db")
    }

    fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.file(), SqlitePolicy::default()).unwrap()
    }
}

fn failed(class: Class, times: u32) -> Cooldown {
    let mut cooldown = Cooldown::default();
    for second in 0..times {
        let failure = Failure { detail: "it broke".to_owned(), ..Failure::of_class(class) };
        cooldown.fail(&failure, &CooldownPolicy::default(), at(-100 + i64::from(second)), Seed::new(1));
    }
    cooldown
}

fn fill(store: &dyn Store) {
    let mut holds = Holds::default();
    holds.hold(Limit::Tokens, at(30));
    let open = BreakerSnapshot {
        at: at(-5),
        mode: Mode::Open,
        since: at(-10),
        until: Some(at(20)),
        openings: 2,
        why: Some(Why::ProbeFailed),
        is_local: false,
    };
    let records = [
        (
            Slot::cooldown("agent:reviewer/website".parse().unwrap()),
            Record::Cooldown(failed(Class::Error, 5)),
        ),
        (Slot::cooldown("account:main".parse().unwrap()), Record::Cooldown(failed(Class::Quota, 1))),
        (Slot::cooldown("provider:calm".parse().unwrap()), Record::Cooldown(failed(Class::Network, 1))),
        (Slot::holds("model:openai/gpt-4o".parse().unwrap()), Record::Holds(holds)),
        (
            Slot::breaker("target:openai/gpt-4o/main".parse().unwrap(), "gateway-1".parse().unwrap()),
            Record::Breaker(open),
        ),
    ];
    store.merge(&records).unwrap();
    let node = "gateway-1".parse().unwrap();
    let entry = |second, kind: &'static str, agent: &str| Entry {
        kind: Some(kind.into()),
        key: Some("account:main".parse().unwrap()),
        agent: Some(agent.to_owned()),
        ..Entry::new(at(second), &node, EntryKind::Fault, format!("{kind} seen"))
    };
    store
        .append(&[
            entry(-7200, "timeout", "reviewer"),
            entry(-60, "quota_exceeded", "reviewer"),
            entry(-30, "quota_exceeded", "writer"),
        ])
        .unwrap();
}

#[test]
fn a_store_that_cannot_be_looked_at_is_not_an_empty_one() {
    let home = Home::new();
    // A file where a folder should be: not even root can open a path below it.
    let behind = home.folder.path().join("koboshi.yaml").join("koboshi.db");
    home.run(&["status"]);
    let out = home.run(&["status", "--store", behind.to_str().unwrap()]);
    assert_eq!(out.status, 2, "{}", out.text);
    assert!(out.error.contains("koboshi.db"), "{}", out.error);
}

#[test]
fn a_breaker_of_a_node_that_is_gone_does_not_stay_open() {
    let home = Home::new();
    fill(&home.store());
    let key = "target:openai/gpt-4o/main";
    assert_eq!(home.run(&["status", key]).status, 1);
    let later = run_with(
        &["status", key, "--now", "2026-11-15T16:00:00Z", "--store", home.file().to_str().unwrap()],
        &[],
        "",
    );
    assert_eq!(later.status, 0, "{}", later.text);
}

#[test]
fn a_free_key_is_reported_as_free_while_others_are_in_cooldown() {
    let home = Home::new();
    fill(&home.store());
    let out = home.run(&["status", "agent:somebody/else", "--lang", "en"]);
    assert!(out.text.contains("Nothing is recorded against agent:somebody/else itself"), "{}", out.text);
    assert!(!out.text.contains("All targets"), "{}", out.text);
}

#[test]
fn looking_creates_nothing() {
    let home = Home::new();
    for command in ["status", "journal"] {
        let out = home.run(&[command]);
        assert_eq!(out.status, 0, "{}", out.error);
    }
    assert!(!home.file().exists());
    assert!(home.run(&["status"]).text.contains("✓ Nothing has been recorded yet"));
    // Who named the place is told that it is not there; it may be misspelt.
    let named = home.run(&["status", "--store", "/tmp/no-such-folder/named.db"]);
    assert!(
        named.text.starts_with("! ") && named.text.contains("named.db does not exist: no"),
        "{}",
        named.text
    );
}

#[test]
fn the_status_says_what_stands_still_why_and_what_to_do() {
    let home = Home::new();
    fill(&home.store());
    let out = home.run(&["status", "--lang", "en"]);
    assert_eq!(out.status, 1);
    let expected = [
        "✗ parked  agent:reviewer/website\n    another error · failures in a row: 5 · since 11:58:20 UTC\n    │ it broke\n    Remove the cause, then resume it with: koboshi resume agent:reviewer/website",
        "● in cooldown  account:main  until 12:28:20 UTC (28m 20s left)\n    quota used up · failures in a row: 1",
        "● limit reached  model:openai/gpt-4o  until 12:00:30 UTC (30s left)\n    the limit of tokens",
        "● breaker open  target:openai/gpt-4o/main  until 12:00:20 UTC (20s left)\n    a test request failed · opened 2 times in a row · since 11:59:50 UTC · seen by gateway-1",
        "○ cooldown over  provider:calm\n    the next request tests whether it works again",
        "No gateway has used this store yet.",
    ];
    let mut rest = out.text.as_str();
    for part in expected {
        let place =
            rest.find(part).unwrap_or_else(|| panic!("{part}\nis not in (the rest of)\n{}", out.text));
        rest = &rest[place..];
    }
    let japanese = home.run(&["status", "--lang", "ja"]).text;
    assert!(
        japanese.contains("クールダウン中  account:main  2026-11-15 12:28:20（UTC）まで（あと 28 分 20 秒）"),
        "{japanese}"
    );
}

/// Runs the printed commands in a shell as they stand; their exit statuses.
fn pasted(said: &str) -> Vec<i32> {
    let program = env!("CARGO_BIN_EXE_koboshi");
    let commands = said.lines().filter_map(|line| Some(&line[line.find("koboshi resume ")?..]));
    let run = |command: &str| {
        let line = command.replacen("koboshi", &format!("'{program}'"), 1) + " --now " + NOW;
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &line]).env_remove("KOBOSHI_STORE").env_remove("KOBOSHI_URL");
        shell.env("XDG_CONFIG_HOME", "/there/is/none").stdout(std::process::Stdio::null());
        shell.status().unwrap().code().unwrap()
    };
    commands.map(run).collect()
}

#[test]
fn the_printed_command_can_be_pasted_into_a_shell() {
    let home = Home::new();
    let folder = home.folder.path().join("a folder's");
    std::fs::create_dir(&folder).unwrap();
    let keys = ["agent:it's mine/web *", "target:openai/gpt-4o#none", "agent:reviewer/website"];
    let config = folder.join("my config.yaml").display().to_string();
    std::fs::write(&config, "store: {path: 'by config.db'}\n").unwrap();
    let flag = folder.join("by flag #1.db").display().to_string();
    for (flags, file) in [(["--store", &flag], "by flag #1.db"), (["--config", &config], "by config.db")] {
        let store = SqliteStore::open(&folder.join(file), SqlitePolicy::default()).unwrap();
        let parked =
            |key: &str| (Slot::cooldown(key.parse().unwrap()), Record::Cooldown(failed(Class::Error, 5)));
        store.merge(&keys.map(parked)).unwrap();
        let args = [&["status", "--lang", "en"][..], &flags].concat();
        let said = home.run(&args).text;
        assert_eq!(pasted(&said), [0, 0, 0], "{said}");
        assert_eq!(home.run(&args).status, 0, "all of them are available again");
    }
}

#[test]
fn a_printed_command_leads_to_the_same_place_and_repeats_no_password() {
    let home = Home::new();
    let past = |flags: &[&str]| {
        let args = [&["cool", "target:a/b#1", "--until", "2026-11-15T11:00:00Z", "--lang", "en"][..], flags];
        home.run(&args.concat()).error
    };
    let said = past(&["--url", "http://127.0.0.1:1", "--config", "my file.yaml"]);
    assert!(
        said.contains("koboshi resume 'target:a/b#1' --url http://127.0.0.1:1 --config 'my file.yaml'"),
        "{said}"
    );
    let said = past(&["--store", "redis://:hunter2secret@127.0.0.1:1/0"]);
    assert!(
        said.contains("koboshi resume 'target:a/b#1' --store") && said.contains("127.0.0.1:1/0"),
        "{said}"
    );
    assert!(!said.contains("hunter2secret"), "{said}");
}

#[test]
fn a_script_reads_the_status_of_one_key() {
    let home = Home::new();
    fill(&home.store());
    let parked = json(&home.run(&["status", "agent:reviewer/website", "--format", "json"]));
    assert_eq!(parked["rows"][0]["state"], "parked");
    assert_eq!(parked["rows"][0]["consecutive"], 5);
    assert_eq!(parked["rows"].as_array().unwrap().len(), 1);
    assert_eq!(home.run(&["status", "agent:reviewer/website"]).status, 1);
    assert_eq!(home.run(&["status", "agent:somebody/else"]).status, 0);
    assert_eq!(home.run(&["status", "provider:calm"]).status, 0, "its rest is over");
}

#[test]
fn resume_ends_a_rest_and_says_so_in_the_journal() {
    let home = Home::new();
    fill(&home.store());
    let out = home.run(&["resume", "agent:reviewer/website", "--lang", "en"]);
    assert_eq!((out.status, out.text.as_str()), (0, "agent:reviewer/website is available again.\n"));
    assert_eq!(home.run(&["status", "agent:reviewer/website"]).status, 0);
    let journal = home.run(&["journal", "--what", "operator"]).text;
    assert!(journal.contains("agent:reviewer/website was resumed by an operator"), "{journal}");
    let wrong = home.run(&["resume", "account:mian", "--lang", "en"]);
    assert_eq!(wrong.status, 1);
    assert!(wrong.error.contains("No target has the key account:mian"), "{}", wrong.error);
    assert!(wrong.error.contains("account:main"), "{}", wrong.error);
    assert_eq!(home.run(&["status", "account:main"]).status, 1, "a near miss resumes nothing");
    assert_eq!(home.run(&["resume", "--all"]).status, 0);
    let left = json(&home.run(&["status", "--format", "json"]));
    assert_eq!(left["rows"], serde_json::json!([]), "breakers are closed too");
    let again = home.run(&["resume", "--all", "--lang", "en"]);
    assert_eq!(again.status, 1, "nothing to resume: {}", again.text);
    assert!(again.text.starts_with("Nothing is in cooldown or parked"), "{}", again.text);
}

#[test]
fn cool_lasts_as_long_as_a_person_says() {
    let home = Home::new();
    std::fs::write(home.folder.path().join("koboshi.yaml"), PROVIDER).unwrap();
    let out = home.run(&["cool", "account:main", "--for", "2h", "--reason", "incident", "--lang", "en"]);
    assert_eq!(
        (out.status, out.text.as_str()),
        (0, "account:main is in cooldown until 14:00:00 UTC (2h left).\n")
    );
    let ja = home.run(&["cool", "account:main", "--for", "2h", "--lang", "ja"]).text;
    assert!(ja.starts_with("account:main をクールダウン状態にしました: "), "{ja}");
    home.run(&["cool", "account:main", "--for", "2h", "--reason", "incident"]);
    let row = &json(&home.run(&["status", "--format", "json"]))["rows"][0];
    assert_eq!((&row["reason"], &row["detail"]), (&"operator".into(), &"incident".into()));
    let out = home.run(&["cool", "account:main", "--until", "2026-11-15T12:10:00Z", "--format", "json"]);
    assert_eq!(json(&out)["until"], "2026-11-15T12:10:00Z", "and shorter, too");
    assert_eq!(json(&home.run(&["status", "--format", "json"]))["rows"][0]["until"], "2026-11-15T12:10:00Z");
    let none = home.run(&["cool", "account:main", "--for", "0s", "--lang", "en"]);
    assert!(none.status == 2 && none.error.contains("longer than zero"), "{}", none.error);
    let long = home.run(&["cool", "account:main", "--for", "400d", "--lang", "en"]);
    assert!(long.status == 2 && long.error.contains("at most 365 days"), "{}", long.error);
    assert_eq!(home.run(&["journal", "--limit", "0"]).status, 2);
    let past = home.run(&["cool", "account:main", "--until", "2026-11-15T11:00:00Z"]);
    assert_eq!(past.status, 2);
    assert!(past.error.contains("koboshi resume account:main"), "{}", past.error);
}

#[test]
fn a_secret_in_a_reason_is_not_kept() {
    let home = Home::new();
    let key = "sk-ant-api03-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    home.run(&["cool", "key:main", "--force", "--for", "1h", "--reason", &format!("leaked: {key}")]);
    let all = home.run(&["status"]).text + &home.run(&["journal", "--format", "json"]).text;
    assert!(all.contains("leaked") && !all.contains(key), "{all}");
}

#[test]
fn stored_text_cannot_play_with_the_terminal() {
    let home = Home::new();
    let store = home.store();
    let evil = "\u{1b}[2J\u{202e}evil\u{7}";
    let failure = Failure { detail: evil.to_owned(), ..Failure::of_class(Class::Error) };
    let mut cooldown = Cooldown::default();
    cooldown.fail(&failure, &CooldownPolicy::default(), at(-1), Seed::new(1));
    store.merge(&[(Slot::cooldown("account:main".parse().unwrap()), Record::Cooldown(cooldown))]).unwrap();
    let entry = Entry {
        kind: Some(evil.to_owned().into()),
        agent: Some(evil.to_owned()),
        ..Entry::new(at(-1), &"n1".parse().unwrap(), EntryKind::Fault, evil)
    };
    store.append(&[entry]).unwrap();
    for command in ["status", "journal"] {
        let text = home.run(&[command]).text;
        assert!(text.contains("evil"), "{text:?}");
        assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{7}']), "{text:?}");
    }
}

#[test]
fn what_is_kept_by_one_process_cannot_be_set_from_outside() {
    let out = Home::new().run(&["cool", "network:local", "--for", "1h"]);
    assert_eq!(out.status, 2);
    assert!(out.error.contains("network:local"), "{}", out.error);
}

#[test]
fn the_journal_is_asked_by_time_kind_target_and_agent() {
    let home = Home::new();
    fill(&home.store());
    let count = |args: &[&str]| {
        let args: Vec<&str> = ["journal", "--format", "json"].iter().chain(args).copied().collect();
        home.run(&args).text.lines().count()
    };
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["--since", "1h"]), 2);
    assert_eq!(count(&["--since", "2026-11-15T11:59:15Z"]), 1);
    assert_eq!(count(&["--until", "1h"]), 1);
    assert_eq!(count(&["--kind", "quota_exceeded"]), 2);
    assert_eq!(count(&["--agent", "writer"]), 1);
    assert_eq!(count(&["--target", "account:main"]), 3);
    assert_eq!(count(&["--target", "account:other"]), 0);
    assert_eq!(count(&["--limit", "1"]), 1);
    let newest_last = home.run(&["journal"]).text;
    assert!(newest_last.trim_end().ends_with("gateway-1") && newest_last.contains("writer"), "{newest_last}");
}

#[test]
fn japanese_readers_get_japanese() {
    let home = Home::new();
    fill(&home.store());
    let journal = home.run(&["journal", "--lang", "ja"]).text;
    assert!(journal.contains("  障害          quota_exceeded  account:main"), "{journal}");
    assert_eq!(journal, home.run_with(&["journal"], &[("LANG", "ja_JP.UTF-8")]).text);
    let english = home.run(&["journal", "--lang", "en"]).text;
    assert!(english.contains("  fault     quota_exceeded  account:main"), "{english}");
    // What a person typed wrongly, and what is said of it.
    for (args, words) in [
        (
            &["cool", "account:main", "--until", "2026-11-15T18:00:00"][..],
            "`2026-11-15T18:00:00` をタイムゾーン付きの時刻として",
        ),
        (&["cool", "account:main", "--for", "long"], "`long` を時間の長さとして読み取れません"),
        (&["cool", "network:local", "--for", "1h"], "1 台のマシンのネットワーク"),
        (&["journal", "--since", "long"], "`long` を時間の長さとしても時刻としても"),
        (
            &["journal", "--until", "2026-11-15T18:00:00"],
            "`2026-11-15T18:00:00` を時間の長さとしても時刻としても",
        ),
    ] {
        let out = home.run(&[args, &["--lang", "ja"]].concat());
        assert!(out.status == 2 && out.error.contains(words), "{words}: {}", out.error);
        let english = home.run(&[args, &["--lang", "en"]].concat());
        assert!(english.status == 2 && english.error.is_ascii(), "{}", english.error);
    }
}

#[test]
fn the_config_says_where_the_store_is_and_how_long_the_journal() {
    let home = Home::new();
    let file = home.folder.path().join("elsewhere.db");
    let config = "providers: {one: {kind: openai, account: main}, two: {kind: openai, account: other}}\nstore:\n  path: elsewhere.db\n  journal:\n    keep_entries: 1\nlanguage: ja\n";
    std::fs::write(home.folder.path().join("koboshi.yaml"), config).unwrap();
    home.run(&["cool", "account:main", "--for", "1h"]);
    home.run(&["cool", "account:other", "--for", "1h"]);
    assert!(file.exists() && !home.file().exists());
    assert!(home.run(&["status"]).text.contains("クールダウン中"), "the language of the config");
    assert_eq!(home.run(&["journal", "--format", "json"]).text.lines().count(), 2, "looking forgets nothing");
    let pruned = home.run(&["journal", "--prune", "--format", "json"]);
    assert_eq!(json(&pruned)["forgotten"], 1);
    assert_eq!(home.run(&["journal", "--format", "json"]).text.lines().count(), 1);
    std::fs::write(home.folder.path().join("koboshi.yaml"), "store: memory\n").unwrap();
    let out = home.run(&["status"]);
    assert_eq!(out.status, 2);
    assert!(out.error.contains("--url"), "{}", out.error);
}

#[test]
fn a_store_that_cannot_be_read_says_what_to_do_and_is_left_alone() {
    let home = Home::new();
    let junk = home.folder.path().join("junk.db");
    std::fs::write(&junk, "no database at all, but quite some text of a user").unwrap();
    let before = std::fs::read(&junk).unwrap();
    for command in ["status", "journal"] {
        let out = home.run(&[command, "--store", junk.to_str().unwrap()]);
        assert_eq!(out.status, 2);
        assert!(
            out.error.contains("junk.db") && out.error.contains("Is this the right path? If it is the store"),
            "{}",
            out.error
        );
    }
    assert_eq!(std::fs::read(&junk).unwrap(), before);
    let away = home.run(&["status", "--store", "redis://:hunter2secret@127.0.0.1:1/0"]);
    assert_eq!(away.status, 2);
    assert!(away.error.contains("127.0.0.1:1") && !away.error.contains("hunter2secret"), "{}", away.error);
}

#[test]
fn everything_works_against_redis_too() {
    let server = RedisServer::start();
    let url = server.url();
    fill(&RedisStore::new(&url, RedisPolicy::default()).unwrap());
    let home = Home::new();
    let run = |args: &[&str]| home.run_with(args, &[("KOBOSHI_STORE", &url)]);
    assert_eq!(run(&["status", "account:main"]).status, 1);
    assert_eq!(run(&["resume", "account:main"]).status, 0);
    assert_eq!(run(&["status", "account:main"]).status, 0);
    assert_eq!(run(&["cool", "account:main", "--for", "1h"]).status, 0);
    let status = json(&run(&["status", "account:main", "--format", "json"]));
    assert_eq!(status["rows"][0]["reason"], "operator");
    assert_eq!(run(&["journal", "--format", "json", "--kind", "quota_exceeded"]).text.lines().count(), 2);
    assert_eq!(run(&["journal", "--format", "json", "--what", "operator"]).text.lines().count(), 2);
    assert!(!home.file().exists());
}

#[test]
fn the_help_of_the_journal_names_everything_that_it_can_be_asked_for() {
    let help = common::run(&["journal", "--help"]).text;
    // The list may be longer than a line.
    let named = help.split("What it is about:").nth(1).unwrap();
    let named = named.split("--").next().unwrap();
    for what in EntryKind::ALL {
        assert!(named.split([' ', ',', '\n']).any(|word| word == what.name()), "{}: {named}", what.name());
    }
}

/// The time of an entry and the times in its text are in one zone.
#[test]
fn the_journal_has_one_zone() {
    let home = Home::new();
    std::fs::write(home.folder.path().join("koboshi.yaml"), PROVIDER).unwrap();
    let cooled = home.run(&["cool", "provider:openai", "--for", "2h"]);
    assert_eq!(cooled.status, 0, "{}", cooled.error);
    let tokyo = home.run_at("2026-11-15T21:00:00+09:00[Asia/Tokyo]", &["journal"], &[]).text;
    assert!(tokyo.contains("23:00:00 JST") && !tokyo.contains("UTC"), "{tokyo}");
    assert!(home.run(&["journal"]).text.contains("14:00:00 UTC"));
}
