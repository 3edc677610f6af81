//! What notices promise, whatever the order of facts.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use proptest::prelude::*;

use super::*;
use crate::fault::{Kind, Sub};

const SETTLE: Duration = Duration::from_secs(3);

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_000_000 + second).unwrap()
}

fn fact(subject: &str, severity: Severity, since: i64) -> Fact {
    Fact {
        subject: subject.to_owned(),
        trigger: if severity == Severity::Critical { Trigger::Park } else { Trigger::Cooldown },
        severity,
        kind: Some(Kind::Overloaded),
        sub: None,
        bare_status: None,
        since: at(since),
        until: None,
        detail: String::new(),
        is_untried: false,
    }
}

fn channels(severity: Severity) -> BTreeMap<String, Interest> {
    BTreeMap::from([("ops".to_owned(), Interest { severity, ..Interest::default() })])
}

fn observe(book: &mut Book, facts: &[Fact], now: i64) {
    book.observe(facts, &channels(Severity::Warning), SETTLE, at(now), |_| Some(Damage::default()));
}

fn waiting(book: &Book) -> Vec<Stage> {
    book.queues
        .get("ops")
        .map(|queue| queue.waiting.iter().map(|one| one.stage).collect())
        .unwrap_or_default()
}

const AT_ONCE: QueuePolicy = QueuePolicy { group_wait: Duration::ZERO, max_per_hour: 1000 };

/// Sends what waits, and returns it.
fn sent(book: &mut Book, now: i64) -> Vec<Notice> {
    let Some(queue) = book.queues.get_mut("ops") else { return Vec::new() };
    if !queue.compose(AT_ONCE, false, at(now)) {
        return Vec::new();
    }
    let message = queue.sending.clone().unwrap();
    queue.sent(&message.id, at(now));
    message.notices
}

#[test]
fn an_episode_has_a_start_an_escalation_and_an_end() {
    let mut book = Book::default();
    let mut told = Vec::new();
    for (now, severity) in
        [(0, Some(Severity::Warning)), (1, Some(Severity::Warning)), (2, Some(Severity::Critical))]
            .into_iter()
            .chain([
                (3, Some(Severity::Warning)),
                (4, Some(Severity::Critical)),
                (5, None),
                (6, None),
                (8, None),
            ])
    {
        let facts: Vec<Fact> = severity.map(|one| fact("account:main", one, 0)).into_iter().collect();
        observe(&mut book, &facts, now);
        told.extend(sent(&mut book, now));
    }
    let stages: Vec<Stage> = told.iter().map(|one| one.stage).collect();
    assert_eq!(stages, [Stage::Start, Stage::Escalation, Stage::End]);
    assert_eq!((told[2].ended, told[2].severity), (Some(at(5)), Severity::Critical));
    assert!(book.episodes.is_empty());
    // The same series of failures goes on: it is another episode with another name.
    observe(&mut book, &[fact("account:main", Severity::Warning, 0)], 20);
    let again = sent(&mut book, 20);
    assert_eq!(again.len(), 1);
    assert_ne!(again[0].id, told[0].id);
}

#[test]
fn what_comes_and_goes_within_the_settling_time_is_one_episode() {
    let mut book = Book::default();
    let mut told = 0;
    for now in 0..100 {
        let facts = [fact("target:a/b", Severity::Warning, 0)];
        observe(&mut book, if now % 3 == 0 { &facts } else { &[] }, now);
        told += sent(&mut book, now).len();
    }
    assert_eq!(told, 1);
}

#[test]
fn a_rest_that_is_over_and_was_not_tried_begins_nothing_and_ends_nothing() {
    let mut book = Book::default();
    let untried = Fact { is_untried: true, until: Some(at(5)), ..fact("account:main", Severity::Warning, 0) };
    observe(&mut book, std::slice::from_ref(&untried), 6);
    assert!(book.episodes.is_empty());
    observe(&mut book, &[fact("account:main", Severity::Warning, 0)], 7);
    for now in 8..60 {
        observe(&mut book, std::slice::from_ref(&untried), now);
    }
    assert_eq!(waiting(&book), [Stage::Start]);
    observe(&mut book, std::slice::from_ref(&untried), 6000);
    observe(&mut book, std::slice::from_ref(&untried), 6010);
    assert_eq!(waiting(&book), [Stage::End], "no one used it for an hour; its start was not sent yet");
}

#[test]
fn a_channel_hears_only_what_it_wants_and_the_end_of_what_it_heard() {
    let mut book = Book::default();
    let critical = channels(Severity::Critical);
    let mut step = |facts: &[Fact], now: i64| {
        book.observe(facts, &critical, SETTLE, at(now), |_| Some(Damage::default()));
        sent(&mut book, now).iter().map(|one| one.stage).collect::<Vec<_>>()
    };
    assert!(step(&[fact("account:main", Severity::Warning, 0)], 0).is_empty());
    assert_eq!(step(&[fact("account:main", Severity::Critical, 0)], 1), [Stage::Start]);
    assert!(step(&[], 2).is_empty());
    assert_eq!(step(&[], 9), [Stage::End]);
    assert!(step(&[fact("account:other", Severity::Warning, 10)], 10).is_empty());
    assert!(step(&[], 11).is_empty());
    assert!(step(&[], 20).is_empty(), "it heard nothing of it");
    let episode = |subject: &str, severity| {
        let mut book = Book::default();
        observe(&mut book, &[fact(subject, severity, 0)], 0);
        book.episodes.into_values().next().unwrap()
    };
    let interest = Interest {
        kinds: vec![Kind::QuotaExceeded],
        scopes: vec!["account".to_owned()],
        ..Interest::default()
    };
    let overloaded = episode("account:main", Severity::Warning);
    assert!(!interest.wants(&overloaded));
    assert!(interest.wants(&Episode { kind: Some("quota_exceeded".to_owned()), ..overloaded.clone() }));
    assert!(interest.wants(&Episode { kind: None, ..overloaded.clone() }));
    assert!(!interest.wants(&Episode { kind: None, ..episode("target:a/b", Severity::Warning) }));
    let parks = Interest { triggers: vec![Trigger::Park], ..Interest::default() };
    assert!(!parks.wants(&overloaded));
}

#[test]
fn the_end_says_what_was_added() {
    let mut book = Book::default();
    let all = channels(Severity::Warning);
    let counted = |faults| move |_: &Episode| Some(Damage { faults, lost_cost: 7, ..Damage::default() });
    book.observe(&[fact("account:main", Severity::Warning, 0)], &all, SETTLE, at(0), counted(10));
    drop(sent(&mut book, 0));
    book.observe(&[], &all, SETTLE, at(1), counted(11));
    book.observe(&[], &all, SETTLE, at(5), counted(52));
    let end = sent(&mut book, 5);
    assert_eq!(end[0].damage, Some(Damage { faults: 42, ..Damage::default() }));
}

#[test]
fn what_fails_together_is_one_message_and_what_is_over_before_it_was_told_one_notice() {
    let mut book = Book::default();
    let policy = QueuePolicy { group_wait: Duration::from_secs(5), max_per_hour: 10 };
    let facts: Vec<Fact> = (0..7).map(|n| fact(&format!("target:a/{n}"), Severity::Warning, 0)).collect();
    observe(&mut book, &facts, 0);
    observe(&mut book, &facts[..6], 1);
    let queue = |book: &mut Book, now| {
        let queue = book.queues.get_mut("ops").unwrap();
        queue.compose(policy, false, at(now)).then(|| queue.sending.clone().unwrap())
    };
    assert_eq!(queue(&mut book, 4), None);
    observe(&mut book, &facts[..6], 5);
    let message = queue(&mut book, 5).unwrap();
    assert_eq!(message.notices.len(), 7);
    assert_eq!(message.stages(), BTreeMap::from([(Stage::Start, 6), (Stage::End, 1)]));
}

#[test]
fn a_message_that_failed_is_sent_again_as_it_was_and_later_each_time() {
    let mut book = Book::default();
    observe(&mut book, &[fact("account:main", Severity::Critical, 0)], 0);
    let queue = book.queues.get_mut("ops").unwrap();
    assert!(queue.compose(AT_ONCE, false, at(0)));
    let first = queue.due(at(0)).unwrap().clone();
    let mut pauses = Vec::new();
    let mut now = at(0);
    for _ in 0..12 {
        queue.failed(&first.id, None, now);
        assert_eq!(queue.due(now), None);
        let next = queue.sending.as_ref().unwrap().next;
        pauses.push(next.duration_since(now).as_secs());
        now = next;
        let again = queue.due(now).unwrap();
        assert_eq!((&again.id, &again.notices), (&first.id, &first.notices));
    }
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    queue.failed(&first.id, Some(Duration::from_secs(900)), now);
    assert_eq!(
        queue.sending.as_ref().unwrap().next.duration_since(now).as_secs(),
        900,
        "as the receiver asked"
    );
    queue.sent("another", now);
    assert!(queue.sending.is_some());
    queue.sent(&first.id, now);
    assert!(queue.sending.is_none());
}

#[test]
fn a_message_that_is_refused_for_good_lets_others_pass_and_is_lost_only_if_those_are_taken() {
    let mut book = Book::default();
    observe(&mut book, &[fact("a:1", Severity::Critical, 0)], 0);
    let queue = book.queues.get_mut("ops").unwrap();
    assert!(queue.compose(AT_ONCE, false, at(0)));
    let first = queue.sending.clone().unwrap();
    let refuse = |queue: &mut Queue, now: i64| {
        let id = queue.due(at(now)).unwrap().id.clone();
        queue.refused(&id, at(now))
    };
    let tries: Vec<Refused> = [0, 1, 3, 7, 15].into_iter().map(|now| refuse(queue, now)).collect();
    assert_eq!(tries, [Refused::Again, Refused::Again, Refused::Again, Refused::Again, Refused::Aside]);
    assert!(!queue.compose(AT_ONCE, false, at(16)), "not at once again");
    // Nothing shows that the receiver is well: the message is kept, and tried again.
    assert!(queue.compose(AT_ONCE, false, at(15 + 300)));
    assert_eq!((refuse(queue, 315), queue.dropped), (Refused::Aside, 0));
    let mut other = first.notices[0].clone();
    (other.id, other.at) = ("a:2/x/start".to_owned(), at(320));
    queue.push(other);
    assert!(queue.compose(AT_ONCE, false, at(320)));
    let second = queue.due(at(320)).unwrap().id.clone();
    assert_ne!(second, first.id);
    queue.sent(&second, at(320));
    // The receiver takes others: one try more is enough.
    assert!(queue.compose(AT_ONCE, false, at(321)));
    assert_eq!(queue.due(at(321)).unwrap().notices, first.notices);
    queue.failed(&first.id, None, at(321));
    assert_eq!(queue.dropped, 0, "a failure is no refusal");
    let next = queue.sending.as_ref().unwrap().next.duration_since(at(0)).as_secs();
    assert_eq!((refuse(queue, next), queue.dropped, queue.sending.is_none()), (Refused::Lost, 1, true));
    let state = queue.state("ops");
    assert_eq!((state.sent, state.failed, state.dropped, state.waiting), (1, 8, 1, 0));
}

#[test]
fn a_receiver_that_refused_everything_and_is_mended_gets_everything() {
    let mut book = Book::default();
    let mut taken = Vec::new();
    for now in 0..2000 {
        let facts: Vec<Fact> =
            (0..=(now / 100).min(9)).map(|n| fact(&format!("target:a/{n}"), Severity::Warning, 0)).collect();
        observe(&mut book, &facts, now);
        let queue = book.queues.get_mut("ops").unwrap();
        queue.compose(AT_ONCE, false, at(now));
        let Some(message) = queue.due(at(now)).cloned() else { continue };
        if now < 1000 {
            queue.refused(&message.id, at(now));
        } else {
            queue.sent(&message.id, at(now));
            taken.extend(message.notices.into_iter().map(|one| one.subject));
        }
    }
    taken.sort();
    assert_eq!(taken, (0..10).map(|n| format!("target:a/{n}")).collect::<Vec<_>>());
    assert_eq!(book.queues["ops"].dropped, 0);
}

#[test]
fn what_waits_for_a_channel_that_this_process_does_not_know_is_kept_for_a_day() {
    let mut book = Book::default();
    observe(&mut book, &[fact("a:1", Severity::Critical, 0)], 0);
    let none = BTreeMap::new();
    let without = |book: &mut Book, now| {
        book.observe(&[fact("a:1", Severity::Critical, 0)], &none, SETTLE, at(now), |_| None);
    };
    without(&mut book, 10);
    without(&mut book, 20_000);
    assert_eq!(waiting(&book), [Stage::Start]);
    observe(&mut book, &[fact("a:1", Severity::Critical, 0)], 20_001);
    assert_eq!(waiting(&book), [Stage::Start], "it is known again");
    without(&mut book, 30_000);
    without(&mut book, 30_000 + 24 * 60 * 60);
    assert!(book.queues.is_empty());
}

#[test]
fn a_critical_episode_finds_room_among_many_that_are_less_bad_or_that_no_one_hears_of() {
    let many = |severity| -> Vec<Fact> {
        (0..MAX_EPISODES).map(|n| fact(&format!("target:a/{n:04}"), severity, 0)).collect()
    };
    let mut book = Book::default();
    observe(&mut book, &many(Severity::Info), 0);
    assert!(book.episodes.is_empty(), "no channel wants to hear of them");
    observe(&mut book, &many(Severity::Warning), 1);
    observe(&mut book, &[many(Severity::Warning), vec![fact("z:1", Severity::Critical, 2)]].concat(), 2);
    assert_eq!(book.episodes.len(), MAX_EPISODES);
    assert!(book.episodes.contains_key("z:1"));
}

#[test]
fn failures_belong_to_an_episode_from_a_little_before_it_and_to_one_only() {
    let mut book = Book::default();
    observe(&mut book, &[fact("a:1", Severity::Critical, 100)], 101);
    assert_eq!(book.episodes["a:1"].counted_from, at(90));
    observe(&mut book, &[], 102);
    observe(&mut book, &[], 110);
    observe(&mut book, &[fact("a:1", Severity::Critical, 112)], 113);
    assert_eq!(book.episodes["a:1"].counted_from, at(110), "what came before was counted");
}

#[test]
fn what_could_not_be_counted_is_not_told_as_a_cost() {
    for (begin, end) in [(None, Some(Damage::default())), (Some(Damage::default()), None)] {
        let mut book = Book::default();
        let all = channels(Severity::Warning);
        book.observe(&[fact("a:1", Severity::Warning, 0)], &all, SETTLE, at(0), |_| begin);
        drop(sent(&mut book, 0));
        book.observe(&[], &all, SETTLE, at(1), |_| end);
        book.observe(&[], &all, SETTLE, at(5), |_| end);
        let told = sent(&mut book, 5);
        assert_eq!((told[0].stage, told[0].damage), (Stage::End, None));
    }
}

#[test]
fn a_notice_has_the_finer_reason_of_its_worst_fault() {
    let mut book = Book::default();
    observe(&mut book, &[fact("a:1", Severity::Warning, 0)], 0);
    let empty = Fact {
        kind: Some(Kind::QuotaExceeded),
        sub: Some(Sub::Billing),
        ..fact("a:1", Severity::Critical, 0)
    };
    observe(&mut book, &[empty], 1);
    let told = &book.queues["ops"].waiting[0];
    assert_eq!((told.kind.as_deref(), told.sub.as_deref()), (Some("quota_exceeded"), Some("billing")));
}

#[test]
fn no_more_messages_than_allowed_leave_in_an_hour_and_none_is_lost() {
    let mut book = Book::default();
    let policy = QueuePolicy { group_wait: Duration::ZERO, max_per_hour: 2 };
    let mut messages = Vec::new();
    for now in 0..3700 {
        let facts: Vec<Fact> =
            (0..=now.min(9)).map(|n| fact(&format!("target:a/{n}"), Severity::Warning, 0)).collect();
        observe(&mut book, &facts, now);
        let queue = book.queues.get_mut("ops").unwrap();
        if queue.compose(policy, false, at(now)) {
            messages.push((now, queue.sending.take().unwrap().notices.len()));
        }
    }
    assert_eq!(messages, [(0, 1), (1, 1), (3600, 8)]);
}

#[test]
fn in_quiet_hours_only_what_is_critical_is_sent() {
    let mut queue = Queue::default();
    let mut book = Book::default();
    observe(&mut book, &[fact("a:1", Severity::Warning, 0), fact("a:2", Severity::Critical, 0)], 0);
    for notice in book.queues["ops"].waiting.clone() {
        queue.push(notice);
    }
    assert!(queue.compose(AT_ONCE, true, at(1)));
    assert_eq!(queue.sending.take().unwrap().notices[0].subject, "a:2");
    assert!(!queue.compose(AT_ONCE, true, at(2)));
    assert!(queue.compose(AT_ONCE, false, at(3)));
    let zone = TimeZone::fixed(jiff::tz::offset(9));
    let hour = |text: &str| is_quiet((22 * 60, 7 * 60), text.parse().unwrap(), &zone);
    assert!(hour("2026-11-18T13:00:00Z") && hour("2026-11-18T21:59:00Z"));
    assert!(!hour("2026-11-18T22:00:00Z") && !hour("2026-11-18T12:59:00Z"));
    assert!(is_quiet((0, 60), "2026-11-18T15:30:00Z".parse().unwrap(), &zone));
}

#[test]
fn waiting_notices_and_episodes_are_bounded() {
    let mut book = Book::default();
    let facts: Vec<Fact> =
        (0..MAX_EPISODES + 50).map(|n| fact(&format!("target:a/{n}"), Severity::Warning, 0)).collect();
    observe(&mut book, &facts, 0);
    let queue = &book.queues["ops"];
    assert_eq!(book.episodes.len(), MAX_EPISODES);
    assert_eq!((queue.waiting.len(), queue.dropped), (MAX_WAITING, (MAX_EPISODES - MAX_WAITING) as u64));
}

#[test]
fn the_book_comes_back_from_its_stored_form() {
    let mut book = Book::default();
    observe(&mut book, &[fact("account:main", Severity::Critical, 0)], 0);
    book.queues.get_mut("ops").unwrap().compose(AT_ONCE, false, at(0));
    let text = serde_json::to_string(&book).unwrap();
    assert_eq!(serde_json::from_str::<Book>(&text).unwrap(), book);
    assert_eq!(serde_json::from_str::<Book>("{}").unwrap(), Book::default());
}

#[test]
fn severities_are_those_of_the_source() {
    for kind in Kind::ALL {
        let is_critical = ["KBS-2001", "KBS-2002", "KBS-3002"].contains(&kind.code("KBS").as_str());
        assert_eq!(Severity::of_kind(*kind) == Severity::Critical, is_critical, "{}", kind.name());
    }
}

proptest! {
    /// In whatever order facts come and go, with crashes in between and messages that fail: a stage of an episode is told
    /// at most once, no stage comes before one that precedes it, and in the end everything that was told to begin was told to end.
    #[test]
    fn each_stage_of_an_episode_is_told_at_most_once(
        steps in proptest::collection::vec(
            (0_u64..4, proptest::collection::vec((0..4_usize, 0..3_usize, 0_i64..20, any::<bool>()), 0..5), 0..4_u8),
            1..60,
        )
    ) {
        let mut book = Book::default();
        let mut now = 0_i64;
        let mut told: Vec<Notice> = Vec::new();
        let all = channels(Severity::Warning);
        let mut step = |book: &mut Book, facts: &[Fact], now: i64, luck: u8| {
            book.observe(facts, &all, SETTLE, at(now), |_| Some(Damage::default()));
            if luck == 3 {
                // A crash: what was stored comes back.
                *book = serde_json::from_str(&serde_json::to_string(book).unwrap()).unwrap();
            }
            let Some(queue) = book.queues.get_mut("ops") else { return };
            queue.compose(AT_ONCE, false, at(now));
            let Some(message) = queue.due(at(now)).cloned() else { return };
            if luck == 1 {
                queue.failed(&message.id, None, at(now));
            } else {
                queue.sent(&message.id, at(now));
                told.extend(message.notices);
            }
        };
        for (pause, facts, luck) in steps {
            now += i64::try_from(pause).unwrap();
            let facts: Vec<Fact> = facts
                .into_iter()
                .map(|(subject, severity, since, is_untried)| Fact {
                    is_untried,
                    ..fact(&format!("a:{subject}"), Severity::ALL[severity], since.min(now))
                })
                .collect();
            step(&mut book, &facts, now, luck);
        }
        for _ in 0..20 {
            now += 600;
            step(&mut book, &[], now, 0);
        }
        let ids: BTreeSet<&str> = told.iter().map(|one| one.id.as_str()).collect();
        prop_assert_eq!(ids.len(), told.len(), "an id was told twice");
        let mut of_episode: BTreeMap<&str, Vec<Stage>> = BTreeMap::new();
        for notice in &told {
            of_episode.entry(notice.episode()).or_default().push(notice.stage);
        }
        for stages in of_episode.values() {
            prop_assert!(stages.windows(2).all(|pair| pair[0] < pair[1]), "{:?}", stages);
            prop_assert_eq!(stages.last(), Some(&Stage::End), "{:?}", stages);
        }
        prop_assert!(book.episodes.is_empty());
    }
}
