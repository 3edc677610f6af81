//! The journal: kept as told, found by what it says, bounded, without secrets.

use std::borrow::Cow;
use std::time::Duration;

use koboshi_store::{Entry, EntryKind, Query, Retention};

use crate::common::{at, entry, key, node};
use crate::subject::Subject;

fn full(second: i64) -> Entry {
    Entry {
        kind: Some(Cow::Borrowed("rate_limited")),
        key: Some(key("account:main")),
        agent: Some("reviewer/website".to_owned()),
        data: Some(serde_json::json!({"status": 429, "wait": [1, 2.5, null, "three"]})),
        ..entry(second, EntryKind::Fault, "the account rests until five: 五時まで")
    }
}

fn texts(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.text.as_str()).collect()
}

pub(crate) fn entries_come_back_as_they_were(subject: &Subject) {
    let written = [full(1), entry(2, EntryKind::Operator, "plain")];
    subject.store.append(&written).unwrap();
    subject.store.append(&[]).unwrap();
    assert_eq!(subject.store.query(&Query::default()).unwrap(), written);
}

pub(crate) fn entries_are_found_by_everything_they_say(subject: &Subject) {
    let with = |second: i64, change: fn(&mut Entry)| {
        let mut entry = full(second);
        change(&mut entry);
        entry
    };
    subject
        .store
        .append(&[
            full(0),
            with(10, |entry| entry.what = EntryKind::Remedy),
            with(20, |entry| entry.kind = Some(Cow::Borrowed("overloaded"))),
            with(30, |entry| entry.key = Some(key("account:other"))),
            with(40, |entry| entry.agent = None),
            Entry { node: node("n2"), ..full(50) },
            with(60, |entry| (entry.key, entry.agent) = (Some(key("target:a/b#k1")), None)),
            with(70, |entry| (entry.key, entry.agent) = (Some(key("target:a/b-2#k1")), None)),
        ])
        .unwrap();
    let count = |query: Query| subject.store.query(&query).unwrap().len();
    let all = Query::default;
    assert_eq!(count(all()), 8);
    assert_eq!(
        count(Query { from: Some(at(10)), to: Some(at(30)), ..all() }),
        2,
        "the end is not part of it"
    );
    assert_eq!(count(Query { what: Some(EntryKind::Remedy), ..all() }), 1);
    assert_eq!(count(Query { kind: Some("overloaded".to_owned()), ..all() }), 1);
    assert_eq!(count(Query { key: Some(key("account:other")), ..all() }), 1);
    for (asked, found) in [("target:a/b", 1), ("target:a/b#k1", 1), ("target:a/b#k", 0), ("target:a", 0)] {
        assert_eq!(count(Query { key: Some(key(asked)), ..all() }), found, "{asked}");
    }
    assert_eq!(count(Query { agent: Some("reviewer/website".to_owned()), ..all() }), 5);
    assert_eq!(count(Query { agent: Some("nobody".to_owned()), ..all() }), 0);
    let both = Query { kind: Some("overloaded".to_owned()), key: Some(key("account:other")), ..all() };
    assert_eq!(count(both), 0);
}

pub(crate) fn the_newest_are_given_newest_last(subject: &Subject) {
    for (second, text) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
        subject.store.append(&[entry(second, EntryKind::Gate, text)]).unwrap();
    }
    let found = subject.store.query(&Query { limit: 3, ..Query::default() }).unwrap();
    assert_eq!(texts(&found), ["b", "c", "d"]);
    assert_eq!(subject.store.query(&Query { limit: 0, ..Query::default() }).unwrap(), []);
}

pub(crate) fn secrets_are_taken_out_by_the_store(subject: &Subject) {
    let secret = "sk-ant-api03-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    let careless = Entry {
        data: Some(serde_json::json!({ "api_key": secret })),
        agent: Some(format!("agent {secret}")),
        kind: Some(Cow::Owned(format!("kind {secret}"))),
        ..entry(1, EntryKind::Fault, &format!("sent {secret}"))
    };
    subject.store.append(&[careless]).unwrap();
    let found = subject.store.query(&Query::default()).unwrap();
    assert_eq!(found.len(), 1);
    assert!(!serde_json::to_string(&found).unwrap().contains(secret), "{found:?}");
    let by_name = Query { agent: Some(format!("agent {secret}")), ..Query::default() };
    assert_eq!(subject.store.query(&by_name).unwrap(), found, "it is found by the name that was given");
}

pub(crate) fn old_entries_and_too_many_are_forgotten(subject: &Subject) {
    let entries: Vec<Entry> = (0..20).map(|n| entry(n * 10, EntryKind::Gate, &n.to_string())).collect();
    subject.store.append(&entries).unwrap();
    let keep = Retention { journal: Duration::from_secs(100), entries: 1000, ..Retention::default() };
    assert_eq!(subject.store.prune(&keep, at(200)).unwrap(), 10);
    let left = subject.store.query(&Query::default()).unwrap();
    assert_eq!(left.first().map(|entry| entry.text.as_str()), Some("10"), "what is just old enough stays");
    assert_eq!(subject.store.prune(&Retention { entries: 3, ..keep }, at(200)).unwrap(), 7);
    assert_eq!(texts(&subject.store.query(&Query::default()).unwrap()), ["17", "18", "19"]);
}
