//! Usage.

use std::time::Duration;

use jiff::civil::{Date, date};
use koboshi_store::{KeyCalls, KeySpent, Retention, UsageBatch, UsageCounts, UsageKey, UsageRow, minute_of};

use crate::subject::Subject;

fn of(day: Date, key: &str, model: &str) -> UsageKey {
    UsageKey {
        day,
        key: key.to_owned(),
        model: model.to_owned(),
        route: "m".to_owned(),
        agent: String::new(),
    }
}

fn row(of: UsageKey, input: i64, cost: i64) -> UsageRow {
    UsageRow { of, counts: UsageCounts { attempts: 1, input, cost, ..UsageCounts::default() } }
}

fn batch(source: &str, number: u64, rows: Vec<UsageRow>) -> UsageBatch {
    UsageBatch { source: source.to_owned(), number, rows, calls: Vec::new() }
}

const FIRST: Date = date(2026, 11, 1);
const LAST: Date = date(2026, 11, 18);

pub(crate) fn usage_is_added_up_by_what_it_is_of(subject: &Subject) {
    let (usage, now) = (subject.store.usage(), subject.now());
    let odd = UsageKey {
        route: "line\nbreak | \"quoted\"".to_owned(),
        agent: "レビュー/app".to_owned(),
        ..of(LAST, "laptop", "one/m")
    };
    let all = UsageCounts::of_values(1..);
    assert_eq!(all.values().len(), UsageCounts::NAMES.len());
    let rows = vec![row(of(LAST, "laptop", "one/m"), 5, 7), UsageRow { of: odd.clone(), counts: all }];
    assert!(usage.add(&batch("a", 1, rows.clone()), now).unwrap());
    assert!(usage.add(&batch("b", 1, rows), now).unwrap());
    assert!(usage.add(&batch("b", 2, vec![row(of(FIRST, "phone", "two/m"), 1, 1)]), now).unwrap());
    let found = usage.totals(FIRST, LAST).unwrap();
    let mut twice = all;
    twice.add(&all);
    let mut sum = row(of(LAST, "laptop", "one/m"), 10, 14);
    sum.counts.attempts = 2;
    assert_eq!(found, [row(of(FIRST, "phone", "two/m"), 1, 1), UsageRow { of: odd, counts: twice }, sum]);
    assert_eq!(usage.totals(FIRST, date(2026, 11, 17)).unwrap().len(), 1, "both days are included");
}

pub(crate) fn a_batch_counts_once_however_often_it_is_sent(subject: &Subject) {
    let (usage, now) = (subject.store.usage(), subject.now());
    let rows = vec![row(of(LAST, "laptop", "one/m"), 5, 7)];
    let calls = vec![KeyCalls { key: "laptop".to_owned(), minute: 9, calls: 3 }];
    let sent = UsageBatch { calls, ..batch("a", 2, rows) };
    assert!(usage.add(&sent, now).unwrap());
    assert!(!usage.add(&sent, now).unwrap());
    assert!(!usage.add(&UsageBatch { number: 1, ..sent.clone() }, now).unwrap(), "nor an older one");
    assert_eq!(usage.totals(LAST, LAST).unwrap(), sent.rows);
    assert_eq!(usage.calls(9).unwrap(), sent.calls);
    assert!(usage.add(&UsageBatch { source: "b".to_owned(), ..sent }, now).unwrap());
    assert_eq!(usage.calls(9).unwrap()[0].calls, 6);
}

pub(crate) fn what_a_key_spent_is_known_for_the_day_and_all_days(subject: &Subject) {
    let (usage, now) = (subject.store.usage(), subject.now());
    let rows = vec![
        row(of(FIRST, "laptop", "one/m"), 1, 100),
        row(of(LAST, "laptop", "one/m"), 1, 20),
        row(of(LAST, "laptop", "two/m"), 1, 3),
        row(of(date(2026, 10, 31), "laptop", "one/m"), 1, 1_000),
        row(of(date(2026, 11, 19), "laptop", "one/m"), 1, 1_000),
        row(of(FIRST, "phone", "one/m"), 1, 5),
    ];
    usage.add(&batch("a", 1, rows), now).unwrap();
    let spent = |key: &str, day, all| KeySpent { key: key.to_owned(), day, all };
    assert_eq!(usage.spent(FIRST, LAST).unwrap(), [spent("laptop", 23, 123), spent("phone", 0, 5)]);
    // More than a double has digits for.
    let vast = 9_007_199_254_740_993;
    usage.add(&batch("a", 2, vec![row(of(LAST, "rich", "one/m"), 1, vast)]), now).unwrap();
    assert_eq!(usage.spent(LAST, LAST).unwrap()[1], spent("rich", vast, vast));
}

pub(crate) fn calls_are_counted_by_the_minute(subject: &Subject) {
    let (usage, now) = (subject.store.usage(), subject.now());
    let calls = |key: &str, minute, calls| KeyCalls { key: key.to_owned(), minute, calls };
    let minute = minute_of(now);
    let of_both = vec![calls("laptop", minute, 2), calls("phone", minute, 1), calls("laptop", minute + 1, 9)];
    usage.add(&UsageBatch { calls: of_both, ..batch("a", 1, Vec::new()) }, now).unwrap();
    assert_eq!(usage.calls(minute).unwrap(), [calls("laptop", minute, 2), calls("phone", minute, 1)]);
    assert_eq!(usage.calls(minute + 2).unwrap(), []);
    let of_second = |second| minute_of(jiff::Timestamp::from_second(second).unwrap());
    assert_eq!((of_second(59), of_second(60), of_second(-1)), (0, 1, -1));
}

pub(crate) fn old_usage_is_forgotten(subject: &Subject) {
    let usage = subject.store.usage();
    let now = LAST.to_zoned(jiff::tz::TimeZone::UTC).unwrap().timestamp();
    let rows = vec![row(of(FIRST, "laptop", "one/m"), 1, 1), row(of(LAST, "laptop", "one/m"), 1, 1)];
    usage.add(&batch("a", 1, rows), now).unwrap();
    let keep = Retention { usage: Duration::from_secs(17 * 86_400), ..Retention::default() };
    subject.store.prune(&keep, now).unwrap();
    assert_eq!(usage.totals(FIRST, LAST).unwrap().len(), 2, "the first day of those is kept");
    let keep = Retention { usage: Duration::from_secs(16 * 86_400), ..keep };
    assert!(subject.store.prune(&keep, now).unwrap() > 0);
    assert_eq!(usage.totals(FIRST, LAST).unwrap().len(), 1);
}
