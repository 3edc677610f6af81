//! A store file that is damaged where one page alone shows it: the start says so, in the words of `koboshi status`.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use common::{Running, koboshi, run};
use koboshi::cooldown::Cooldown;
use koboshi_store::{Entry, EntryKind, Record, Slot, SqlitePolicy, SqliteStore, Store};

/// A store file whose table has a page of nonsense.
fn damaged(path: &Path, table: &str) {
    let store = SqliteStore::open(path, SqlitePolicy::default()).unwrap();
    let entry = Entry::new(jiff::Timestamp::UNIX_EPOCH, &"n1".parse().unwrap(), EntryKind::Gate, "held");
    store.append(&[entry]).unwrap();
    let known = (Slot::cooldown("account:main".parse().unwrap()), Record::Cooldown(Cooldown::default()));
    store.merge(&[known]).unwrap();
    drop(store);
    let plain = rusqlite::Connection::open(path).unwrap();
    let select = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let page: u32 = plain.query_row(select, [table], |row| row.get(0)).unwrap();
    let size: u32 = plain.pragma_query_value(None, "page_size", |row| row.get(0)).unwrap();
    drop(plain);
    assert!(page > 1, "the first page is looked at in any case");
    let (page, size) = (usize::try_from(page).unwrap(), usize::try_from(size).unwrap());
    let mut bytes = std::fs::read(path).unwrap();
    bytes[(page - 1) * size..page * size].fill(0xa5);
    std::fs::write(path, bytes).unwrap();
}

/// Tries to start a gateway that must not start: its status and what it said.
fn refused(store: &str) -> (Option<i32>, String) {
    let mut command = koboshi(&["serve", "--demo", "--listen", "127.0.0.1:0", "--store", store]);
    let mut child = Running::start(command.stderr(Stdio::piped()));
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let first = lines.next().unwrap_or_default();
    if first.contains("http://") {
        child.kill().unwrap();
    }
    let said = std::iter::once(first).chain(lines).collect::<Vec<_>>().join("\n");
    (child.wait().unwrap().code(), said)
}

#[test]
fn a_gateway_does_not_start_on_a_damaged_file_and_says_what_to_do() {
    for table in ["record", "counter", "session", "journal", "cache"] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store.db");
        damaged(&path, table);
        let before = std::fs::read(&path).unwrap();
        let store = path.display().to_string();
        let (status, error) = refused(&store);
        assert_eq!(status, Some(2), "{table}: {error}");
        for words in [store.as_str(), "database disk image is malformed", "move it away"] {
            assert!(error.contains(words), "{table}: {words} is not in {error}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), before, "{table}: it is as it was");
        // The one of them that `status` reads in a file that is almost empty.
        if table == "record" {
            let status = run(&["status", "--store", &store]);
            assert_eq!(status.status, 2, "{}", status.error);
            assert!(status.error.contains("database disk image is malformed"), "{}", status.error);
            assert!(status.error.contains("move it away"), "{}", status.error);
        }
    }
}
