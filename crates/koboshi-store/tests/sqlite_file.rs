//! The file itself: who may read it, what happens to a damaged, foreign, older or newer one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]
#![allow(clippy::panic, clippy::indexing_slicing, reason = "helpers of tests")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use koboshi::time::Moment;
use koboshi_store::store::{MAX_BYTES_SET_ASIDE, MAX_SET_ASIDE};
use koboshi_store::{EntryKind, Query, Record, SqlitePolicy, SqliteStore, Store, StoreChanges, StoreError};
use rusqlite::Connection;
use tempfile::TempDir;

use common::{entry, resting, slot};

fn place() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("koboshi.db");
    (folder, file)
}

fn open(file: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(file, SqlitePolicy::default())
}

fn refused(file: &Path) -> StoreError {
    open(file).err().expect("it must be refused")
}

#[cfg(unix)]
#[test]
fn the_file_and_its_folder_are_for_this_user_only() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new/deep/koboshi.db");
    let store = open(&file).unwrap();
    store.append(&[entry(1, EntryKind::Gate, "x")]).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(file.parent().unwrap()), 0o700);
    for name in ["koboshi.db", "koboshi.db-wal", "koboshi.db-shm"] {
        assert_eq!(mode(&file.with_file_name(name)), 0o600, "{name}");
    }
}

/// How many locks this process holds on a file.
#[cfg(target_os = "linux")]
fn locks(file: &Path) -> usize {
    use std::os::unix::fs::MetadataExt;
    let (me, inode) = (std::process::id().to_string(), fs::metadata(file).unwrap().ino().to_string());
    let held = |line: &&str| {
        // 1: POSIX  ADVISORY  READ 12503 fe:00:10010706 128 128
        let words: Vec<&str> = line.split_whitespace().collect();
        words.get(4) == Some(&me.as_str())
            && words.get(5).is_some_and(|place| place.rsplit(':').next() == Some(&inode))
    };
    fs::read_to_string("/proc/locks").unwrap().lines().filter(held).count()
}

/// Without its lock an open file looks unused to other programs, and the next one that closes it deletes its WAL.
/// The system drops all locks of a process on a file as soon as the process closes any descriptor of it.
#[cfg(target_os = "linux")]
#[test]
fn an_open_store_holds_its_lock_whatever_else_this_process_opens_and_closes() {
    let (_folder, file) = place();
    let locked = |when: &str| assert!(locks(&file) > 0, "{when}");
    let store = open(&file).unwrap();
    locked("one store");
    drop(open(&file).unwrap());
    locked("a second one came and went");
    drop(store.watch(std::sync::Arc::new(|| {})).unwrap());
    locked("a watch came and went");
    store.append(&[entry(1, EntryKind::Gate, "x")]).unwrap();
    store.check().unwrap();
    locked("it was used");
    drop(store);
    assert_eq!(locks(&file), 0, "closed");
}

#[test]
fn what_was_written_is_there_after_closing() {
    let (_folder, file) = place();
    let named = (slot("cooldown account:main"), Record::Cooldown(resting(0, 100)));
    open(&file).unwrap().merge(std::slice::from_ref(&named)).unwrap();
    let store = open(&file).unwrap();
    assert_eq!(store.load().unwrap().records, [named]);
    store.check().unwrap();
}

#[test]
fn a_file_that_is_no_database_is_refused_and_left_as_it_is() {
    for bytes in
        [&b"agents:\n  - name: reviewer\n"[..], b"SQLite format 3", b"SQLite format 3\0 and then nonsense"]
    {
        let (_folder, file) = place();
        fs::write(&file, bytes).unwrap();
        let error = refused(&file);
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(
            error.to_string().contains("koboshi.db") && error.to_string().contains("move it away"),
            "{error}"
        );
        assert_eq!(fs::read(&file).unwrap(), bytes);
    }
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let (_folder, file) = place();
    drop(open(&file).unwrap());
    let mut bytes = fs::read(&file).unwrap();
    // The page with the list of tables: nothing can be found without it.
    bytes[100..2000].fill(0xa5);
    fs::write(&file, &bytes).unwrap();
    let error = refused(&file);
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn damage_further_inside_is_reported_when_it_is_met() {
    let (_folder, file) = place();
    let store = open(&file).unwrap();
    let entries: Vec<_> =
        (0..2000).map(|n| entry(n, EntryKind::Gate, "a text of some length for many pages")).collect();
    store.append(&entries).unwrap();
    drop(store);
    let mut bytes = fs::read(&file).unwrap();
    let length = bytes.len();
    bytes[length / 2..].fill(0xa5);
    fs::write(&file, &bytes).unwrap();
    let store = open(&file).unwrap();
    let error = store.check().and_then(|()| store.query(&Query::default()).map(|_| ())).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn the_file_of_another_program_is_refused_and_left_as_it_is() {
    let (_folder, file) = place();
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    let bytes = fs::read(&file).unwrap();
    let error = refused(&file);
    assert!(error.to_string().contains("another program"), "{error}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

#[test]
fn a_newer_file_is_refused_with_both_versions_and_left_as_it_is() {
    let (_folder, file) = place();
    drop(open(&file).unwrap());
    Connection::open(&file).unwrap().pragma_update(None, "user_version", 99).unwrap();
    let bytes = fs::read(&file).unwrap();
    let error = refused(&file);
    let StoreError::Newer { found, known, .. } = &error else { panic!("{error}") };
    assert_eq!((*found, *known), (99, 6));
    let text = error.to_string();
    assert!(text.contains("koboshi.db") && text.contains("99") && text.contains("update"), "{text}");
    assert_eq!(fs::read(&file).unwrap(), bytes);
}

/// A file as the first schema left it.
fn first_schema(file: &Path) -> Connection {
    let connection = Connection::open(file).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.execute_batch(include_str!("../src/sqlite/schema/1.sql")).unwrap();
    connection.pragma_update(None, "application_id", 0x4b42_5349).unwrap();
    connection.pragma_update(None, "user_version", 1).unwrap();
    connection
}

#[test]
fn an_older_file_is_brought_forward_with_all_it_holds() {
    let (_folder, file) = place();
    let named = (slot("cooldown account:main"), Record::Cooldown(resting(0, 100)));
    let Record::Cooldown(cooldown) = &named.1 else { unreachable!() };
    let old = first_schema(&file);
    old.execute(
        "INSERT INTO record (kind, key, node, body, seq) VALUES ('cooldown', 'account:main', '', ?1, 1)",
        [serde_json::to_string(cooldown).unwrap()],
    )
    .unwrap();
    old.execute(
        "INSERT INTO journal (at_us, node, what, text) VALUES (?1, 'n1', 'gate', 'from before')",
        [common::at(1).as_microsecond()],
    )
    .unwrap();
    let until = common::at(100).as_millisecond();
    old.execute("INSERT INTO lease (name, holder, fence, until) VALUES ('probe', 'n1', 1, ?1)", [until])
        .unwrap();
    drop(old);
    let store = open(&file).unwrap();
    let lease = |second| store.lease("probe", "n2", common::DEADLINE, common::at(second)).unwrap();
    assert_eq!((lease(99), lease(100).is_some()), (None, true), "a lease from before holds until it ends");
    assert_eq!(store.load().unwrap().records, [named]);
    store
        .append(&[koboshi_store::Entry { data: Some(1.into()), ..entry(2, EntryKind::Gate, "now") }])
        .unwrap();
    let journal = store.query(&Query::default()).unwrap();
    assert_eq!(journal.iter().map(|entry| entry.text.as_str()).collect::<Vec<_>>(), ["from before", "now"]);
    let plain = Connection::open(&file).unwrap();
    let version: i64 = plain.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 6);
}

/// A process that reads while another one puts the first schema in place sees all of it or nothing.
#[test]
fn a_new_file_may_be_opened_by_many_at_once() {
    for _ in 0..60 {
        let (_folder, file) = place();
        let start = std::sync::Barrier::new(8);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    start.wait();
                    if let Err(error) = open(&file) {
                        panic!("{error}");
                    }
                });
            }
        });
    }
}

/// Every single wait of an opening counts against one patience.
#[test]
fn a_file_that_others_keep_for_themselves_is_given_up_in_time() {
    let (_folder, file) = place();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("CREATE TABLE x (y); BEGIN EXCLUSIVE").unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let policy = SqlitePolicy { patience: std::time::Duration::from_millis(300), ..SqlitePolicy::default() };
    std::thread::spawn(move || tell.send(SqliteStore::open(&file, policy).err()));
    // Far more than its patience, far less than the sum of all waits inside.
    let error = told.recv_timeout(std::time::Duration::from_secs(10)).expect("it must give up").unwrap();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
}

#[test]
fn a_new_file_is_opened_without_any_patience() {
    let (_folder, file) = place();
    let policy = SqlitePolicy { patience: std::time::Duration::ZERO, ..SqlitePolicy::default() };
    SqliteStore::open(&file, policy).map(drop).unwrap();
}

#[test]
fn time_goes_on_while_others_have_the_lock() {
    let (_folder, file) = place();
    let store = open(&file).unwrap();
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ttl = common::DEADLINE;
    let lease = std::thread::scope(|scope| {
        let taken = scope.spawn(|| store.lease("probe", "n1", ttl, common::at(0)).unwrap().unwrap());
        common::pause();
        other.execute_batch("COMMIT").unwrap();
        taken.join().unwrap()
    });
    assert!(lease.until > common::at(30), "it begins when it is given: {}", lease.until);
}

#[test]
fn a_step_forward_that_fails_leaves_the_older_file() {
    let (_folder, file) = place();
    // Something of that name is in the way of the second step.
    first_schema(&file).execute_batch("CREATE TABLE quarantine (x)").unwrap();
    let error = refused(&file);
    assert!(error.to_string().contains("newest schema"), "{error}");
    let plain = Connection::open(&file).unwrap();
    let version: i64 = plain.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, 1);
    let columns: i64 = plain
        .query_row("SELECT count(*) FROM pragma_table_info('journal') WHERE name = 'data'", [], |row| {
            row.get(0)
        })
        .unwrap();
    assert_eq!(columns, 0, "the half that worked was undone");
}

#[test]
fn a_record_that_cannot_be_read_is_reported_left_and_never_lost() {
    let (_folder, file) = place();
    let store = open(&file).unwrap();
    let good = (slot("cooldown account:good"), Record::Cooldown(resting(0, 100)));
    store.merge(std::slice::from_ref(&good)).unwrap();
    let plain = Connection::open(&file).unwrap();
    let strange = r#"{"epoch": "from the future"}"#;
    plain
        .execute(
            "INSERT INTO record (kind, key, node, body, seq) VALUES ('cooldown', 'account:main', '', ?1, 2),
                                                                  ('mood', 'account:main', '', '{}', 2)",
            [strange],
        )
        .unwrap();
    let loaded = store.load().unwrap();
    assert_eq!(loaded.records, [good]);
    let slots: Vec<&str> = loaded.unreadable.iter().map(|unreadable| unreadable.slot.as_str()).collect();
    assert!(slots.iter().any(|slot| slot.contains("cooldown") && slot.contains("account:main")), "{slots:?}");
    assert_eq!(slots.len(), 2, "{slots:?}");
    // A newer program may have written it: it stays, and the writer learns that nothing was written there.
    let new = (slot("cooldown account:main"), Record::Cooldown(resting(5, 200)));
    let other = (slot("cooldown account:other"), Record::Cooldown(resting(5, 200)));
    let merged = store.merge(&[new.clone(), other.clone()]).unwrap();
    assert_eq!(merged.unreadable.len(), 1);
    assert_eq!(merged.unreadable[0].slot, "cooldown account:main");
    assert_eq!(merged.set_aside, []);
    let body = |plain: &Connection| -> String {
        let select = "SELECT body FROM record WHERE kind = 'cooldown' AND key = 'account:main'";
        plain.query_row(select, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(body(&plain), strange);
    assert!(store.load().unwrap().records.contains(&other), "the rest of the batch is written");
    // No program can read what is not JSON: it is set aside, byte for byte, and reported from then on.
    let broken = r#"{"epoch": "#;
    plain.execute("UPDATE record SET body = ?1 WHERE key = 'account:main'", [broken]).unwrap();
    let merged = store.merge(std::slice::from_ref(&new)).unwrap();
    assert_eq!((merged.unreadable.len(), merged.set_aside.len()), (0, 1));
    let loaded = store.load().unwrap();
    assert!(loaded.records.contains(&new));
    let aside = loaded.unreadable.iter().find(|one| one.slot == "cooldown account:main").unwrap();
    assert!(aside.why.contains("aside"), "{aside:?}");
    let kept: String = plain.query_row("SELECT body FROM quarantine", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, broken);
}

#[test]
fn what_is_set_aside_has_a_bound() {
    let (_folder, file) = place();
    let store = open(&file).unwrap();
    let plain = Connection::open(&file).unwrap();
    let damage = |key: &str, body: &str| {
        let insert =
            "INSERT OR REPLACE INTO record (kind, key, node, body, seq) VALUES ('cooldown', ?1, '', ?2, 1)";
        plain.execute(insert, [key, body]).unwrap();
        let named = (slot(&format!("cooldown {key}")), Record::Cooldown(resting(0, 100)));
        assert_eq!(store.merge(&[named]).unwrap().set_aside.len(), 1);
    };
    let size = |row: &rusqlite::Row<'_>, place: usize| {
        row.get::<_, i64>(place).map(|size| usize::try_from(size).unwrap())
    };
    let kept = || -> (usize, usize, String) {
        let select = "SELECT count(*), sum(length(body)), max(key) FROM quarantine";
        plain.query_row(select, [], |row| Ok((size(row, 0)?, size(row, 1)?, row.get(2)?))).unwrap()
    };
    for n in 0..MAX_SET_ASIDE + 20 {
        damage(&format!("account:{n:04}"), "x");
    }
    assert_eq!(kept(), (MAX_SET_ASIDE, MAX_SET_ASIDE, format!("account:{:04}", MAX_SET_ASIDE + 19)));
    for n in 0..5 {
        damage(&format!("account:large{n}"), &"x".repeat(MAX_BYTES_SET_ASIDE / 3));
    }
    let (count, bytes, newest) = kept();
    assert!(bytes <= MAX_BYTES_SET_ASIDE && count >= 3, "{count}, {bytes}");
    assert_eq!(newest, "account:large4");
}

fn named(account: &str, second: i64) -> koboshi_store::Named {
    (slot(&format!("cooldown account:{account}")), Record::Cooldown(resting(second, second + 100)))
}

#[test]
fn what_is_known_already_wakes_no_watch() {
    let (_folder, file) = place();
    let store = open(&file).unwrap();
    let plain = Connection::open(&file).unwrap();
    let version = || plain.pragma_query_value(None, "data_version", |row| row.get::<_, i64>(0)).unwrap();
    store.merge(&[named("main", 0)]).unwrap();
    let before = version();
    store.merge(&[named("main", 0)]).unwrap();
    assert_eq!(version(), before, "nothing was committed");
    store.merge(&[named("main", 5)]).unwrap();
    assert_ne!(version(), before);
}

#[test]
fn a_file_whose_content_was_put_back_is_read_as_a_whole() {
    let (_folder, file) = place();
    let store = open(&file).unwrap();
    let mut watch = store.watch(std::sync::Arc::new(|| {})).unwrap();
    store.merge(&[named("old", 0)]).unwrap();
    for second in 1..5 {
        store.merge(&[named("new", second)]).unwrap();
    }
    assert!(matches!(watch.changes(Moment::START).unwrap(), StoreChanges::All(_)));
    let plain = Connection::open(&file).unwrap();
    plain
        .execute_batch(
            "DELETE FROM record WHERE key = 'account:new'; UPDATE counter SET value = 1 WHERE name = 'seq'",
        )
        .unwrap();
    let StoreChanges::All(all) = watch.changes(Moment::START).unwrap() else { panic!("everything is news") };
    assert_eq!(all.records, [named("old", 0)]);
}

#[test]
fn after_a_look_that_failed_everything_is_read() {
    let (_folder, file) = place();
    let store = open(&file).unwrap();
    let mut watch = store.watch(std::sync::Arc::new(|| {})).unwrap();
    store.merge(&[named("main", 0)]).unwrap();
    assert!(matches!(watch.changes(Moment::START).unwrap(), StoreChanges::All(_)));
    let plain = Connection::open(&file).unwrap();
    plain.execute_batch("ALTER TABLE counter RENAME TO gone").unwrap();
    watch.changes(Moment::START).unwrap_err();
    plain.execute_batch("ALTER TABLE gone RENAME TO counter").unwrap();
    let StoreChanges::All(all) = watch.changes(Moment::START).unwrap() else { panic!("everything is news") };
    assert_eq!(all.records, [named("main", 0)]);
}

#[test]
fn people_can_read_the_journal_with_any_tool() {
    let (_folder, file) = place();
    open(&file).unwrap().append(&[entry(0, EntryKind::Operator, "resumed")]).unwrap();
    let plain = Connection::open(&file).unwrap();
    let row: (String, String, String) = plain
        .query_row("SELECT at, what, text FROM journal_readable", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!(row, (format!("{:.3}", common::at(0)), "operator".to_owned(), "resumed".to_owned()));
}

#[cfg(unix)]
#[test]
fn a_file_that_is_taken_away_is_created_again_with_all_that_is_known() {
    let (_folder, file) = place();
    let store = std::sync::Arc::new(open(&file).unwrap());
    let options = koboshi_store::LedgerOptions::new(common::node("n1"));
    let ledger = koboshi_store::Ledger::open(store.clone(), options).unwrap();
    let account = common::key("account:main");
    ledger.update_cooldown(&account, |cooldown| cooldown.rest = Some(common::rest(0, 100, 1)));
    assert!(ledger.flush(common::DEADLINE));
    fs::rename(&file, file.with_extension("away")).unwrap();
    let known = [(slot("cooldown account:main"), Record::Cooldown(resting(0, 100)))];
    // A process that opens it now finds everything, before anything else was written.
    common::until("the new file knows", || {
        let there = file.exists().then(|| open(&file).ok()).flatten()?;
        (there.load().unwrap().records == known).then_some(())
    });
    store.append(&[entry(1, EntryKind::Gate, "in the new file")]).unwrap();
    assert_eq!(open(&file).unwrap().query(&Query::default()).unwrap().len(), 1);
}
