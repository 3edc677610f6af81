//! Sessions: one owner, one log.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use koboshi_store::{Appended, KnownPart, News, Ownership, SessionHead, SessionWrite, Sessions, Taken};

use crate::subject::Subject;

const LONG: Duration = Duration::from_secs(3600);

/// A write that brings the log from one number to the next, with an event for each.
fn write(after: u64, seq: u64) -> SessionWrite {
    SessionWrite {
        after,
        seq,
        head: None,
        events: (after + 1..=seq).map(|seq| (seq, format!("event {seq}").into_bytes())).collect(),
        keep_from: 0,
        ownership: Ownership::Kept,
        is_confirmed: false,
        lease: LONG,
        ttl: LONG,
    }
}

fn head(body: &str) -> Option<SessionHead> {
    Some(SessionHead { epoch: "e".to_owned(), body: body.as_bytes().to_vec() })
}

fn made(sessions: &dyn Sessions, subject: &Subject, lease: Duration) -> u64 {
    let first = SessionWrite { head: head("head"), lease, ..write(0, 0) };
    sessions.create("s", "n1", &first, subject.now()).unwrap().unwrap()
}

pub(crate) fn a_session_is_made_once_and_read_with_its_events(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    assert_eq!(sessions.read("s", KnownPart::NOTHING, now).unwrap(), None);
    let fence = made(sessions, subject, LONG);
    assert_eq!(sessions.create("s", "n2", &write(0, 0), now).unwrap(), None);
    assert_eq!(sessions.append("s", fence, &write(0, 12), now).unwrap(), Appended::Written);
    let read = sessions.read("s", KnownPart::NOTHING, now).unwrap().unwrap();
    assert_eq!((read.seq, read.epoch.as_str(), read.owner.as_deref()), (12, "e", Some("n1")));
    assert_eq!(read.head.as_deref(), Some(&b"head"[..]));
    let numbers: Vec<u64> = read.events.iter().map(|(seq, _)| *seq).collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<_>>(), "in the order of numbers, not of letters");
    assert_eq!(read.events[9].1, b"event 10");
    let compacted = SessionWrite { head: head("new"), keep_from: 12, ..write(12, 13) };
    assert_eq!(sessions.append("s", fence, &compacted, now).unwrap(), Appended::Written);
    let read = sessions.read("s", KnownPart::NOTHING, now).unwrap().unwrap();
    assert_eq!((read.head.as_deref(), read.events.len()), (Some(&b"new"[..]), 2));
}

/// A process that has a part gets the rest, and the whole where the rest does not go on with its part.
pub(crate) fn who_has_a_part_gets_what_comes_after_it(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    let fence = made(sessions, subject, LONG);
    assert_eq!(sessions.append("s", fence, &write(0, 12), now).unwrap(), Appended::Written);
    let part = |epoch: &str, seq| {
        let read = sessions.read("s", KnownPart { epoch, seq }, now).unwrap().unwrap();
        assert_eq!(read.seq, 12);
        (read.head.is_some(), read.events.iter().map(|(seq, _)| *seq).collect::<Vec<_>>())
    };
    assert_eq!(part("e", 9), (false, vec![10, 11, 12]));
    assert_eq!(part("e", 12), (false, vec![]));
    assert_eq!(part("e", 15), (false, vec![]), "the store has lost something, or has not got it yet");
    assert!(part("other", 9).0, "another epoch is another log");
    assert!(part("", 12).0, "nothing is known");
    let whole = SessionWrite { head: head("new"), keep_from: 8, events: Vec::new(), ..write(12, 12) };
    assert_eq!(sessions.append("s", fence, &whole, now).unwrap(), Appended::Written);
    assert_eq!(part("e", 7), (false, vec![8, 9, 10, 11, 12]));
    assert_eq!(part("e", 6), (true, vec![8, 9, 10, 11, 12]), "its events are not kept any more");
    let last = SessionWrite { ownership: Ownership::GivenBack, ..write(12, 13) };
    assert_eq!(sessions.append("s", fence, &last, now).unwrap(), Appended::Written);
    let Taken::Owned { session, .. } =
        sessions.take("s", "n2", KnownPart { epoch: "e", seq: 12 }, LONG, now).unwrap()
    else {
        panic!("it is free");
    };
    assert_eq!((session.seq, session.head, session.events.len()), (13, None, 1));
}

pub(crate) fn one_owner_writes_and_a_fence_keeps_others_out(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    let fence = made(sessions, subject, LONG);
    assert_eq!(
        sessions.take("s", "n2", KnownPart::NOTHING, LONG, now).unwrap(),
        Taken::Held("n1".to_owned())
    );
    for forged in [fence - 1, fence + 1] {
        assert_eq!(sessions.append("s", forged, &write(0, 1), now).unwrap(), Appended::Fenced);
    }
    assert_eq!(
        sessions.renew(&[("s".to_owned(), fence), ("s".to_owned(), fence + 1)], LONG, now).unwrap(),
        [true, false]
    );
    assert_eq!(sessions.read("s", KnownPart::NOTHING, now).unwrap().unwrap().seq, 0);
    assert_eq!(sessions.append("gone", fence, &write(0, 1), now).unwrap(), Appended::Missing);
}

pub(crate) fn a_number_that_does_not_fit_writes_nothing(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    let fence = made(sessions, subject, LONG);
    assert_eq!(sessions.append("s", fence, &write(0, 2), now).unwrap(), Appended::Written);
    for after in [0, 1, 3] {
        assert_eq!(sessions.append("s", fence, &write(after, 9), now).unwrap(), Appended::Fenced);
    }
    assert_eq!(sessions.read("s", KnownPart::NOTHING, now).unwrap().unwrap().events.len(), 2);
}

pub(crate) fn a_session_that_is_given_back_is_taken_at_once(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    let fence = made(sessions, subject, LONG);
    let last = SessionWrite { ownership: Ownership::GivenBack, ..write(0, 1) };
    assert_eq!(sessions.append("s", fence, &last, now).unwrap(), Appended::Written);
    assert_eq!(
        sessions.append("s", fence, &write(1, 2), now).unwrap(),
        Appended::Fenced,
        "it was given back"
    );
    assert_eq!(sessions.renew(&[("s".to_owned(), fence)], LONG, now).unwrap(), [false]);
    assert_eq!(sessions.orphans(10, now).unwrap(), [""; 0]);
    let Taken::Owned { fence: next, session, was_lost, .. } =
        sessions.take("s", "n2", KnownPart::NOTHING, LONG, now).unwrap()
    else {
        panic!("it is free");
    };
    assert!(next > fence && !was_lost);
    assert_eq!((session.seq, session.events.len()), (1, 1));
    assert_eq!(sessions.append("s", next, &write(1, 2), now).unwrap(), Appended::Written);
}

pub(crate) fn a_session_that_is_handed_over_is_found_at_once(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    let fence = made(sessions, subject, LONG);
    let last = SessionWrite { ownership: Ownership::HandedOver, ..write(0, 2) };
    assert_eq!(sessions.append("s", fence, &last, now).unwrap(), Appended::Written);
    assert_eq!(sessions.orphans(10, now).unwrap(), ["s"]);
    assert_eq!(
        sessions.append("s", fence, &write(2, 3), now).unwrap(),
        Appended::Fenced,
        "it is not its own"
    );
    assert_eq!(sessions.renew(&[("s".to_owned(), fence)], LONG, now).unwrap(), [false]);
    let read = sessions.read("s", KnownPart::NOTHING, now).unwrap().unwrap();
    assert_eq!((read.owner, read.is_held), (None, false));
    let Taken::Owned { fence: next, session, was_lost, .. } =
        sessions.take("s", "n2", KnownPart::NOTHING, LONG, now).unwrap()
    else {
        panic!("it waits for an owner");
    };
    assert!(next > fence && !was_lost, "nothing of it was lost");
    assert_eq!((session.seq, session.events.len()), (2, 2));
    assert_eq!(sessions.orphans(10, now).unwrap(), [""; 0]);
    assert_eq!(sessions.append("s", next, &write(2, 3), now).unwrap(), Appended::Written);
}

pub(crate) fn a_lost_owner_is_found_and_replaced(subject: &Subject) {
    let sessions = subject.store.sessions();
    let fence = made(sessions, subject, subject.soon);
    assert_eq!(sessions.orphans(10, subject.now()).unwrap(), [""; 0]);
    subject.after_soon("it is lost", |now| sessions.orphans(10, now).unwrap() == ["s"]);
    let now = subject.now();
    let Taken::Owned { fence: next, was_lost, .. } =
        sessions.take("s", "n2", KnownPart::NOTHING, LONG, now).unwrap()
    else {
        panic!("its lease is over");
    };
    assert!(was_lost && next > fence);
    assert_eq!(sessions.orphans(10, now).unwrap(), [""; 0]);
    assert_eq!(
        sessions.append("s", fence, &write(0, 1), now).unwrap(),
        Appended::Fenced,
        "an owner that was paused writes no more"
    );
}

pub(crate) fn a_session_that_nobody_uses_ends(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    let fence = made(sessions, subject, LONG);
    let short = SessionWrite { ttl: subject.soon, ..write(0, 1) };
    assert_eq!(sessions.append("s", fence, &short, now).unwrap(), Appended::Written);
    subject.after_soon("it is gone", |now| sessions.read("s", KnownPart::NOTHING, now).unwrap().is_none());
    assert_eq!(sessions.take("s", "n2", KnownPart::NOTHING, LONG, subject.now()).unwrap(), Taken::Missing);
}

pub(crate) fn a_forgotten_session_stays_forgotten_whoever_still_has_it(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    let fence = made(sessions, subject, LONG);
    assert_eq!(sessions.append("s", fence, &write(0, 2), now).unwrap(), Appended::Written);
    let (mark, _) = sessions.changed(None, now).unwrap();
    assert!(sessions.forget("s", LONG, now).unwrap(), "also one that is owned");
    assert!(!sessions.forget("s", LONG, now).unwrap());
    assert_eq!(sessions.changed(Some(mark), now).unwrap().1, ["s"], "its readers hear of it");
    let read = sessions.read("s", KnownPart::NOTHING, now).unwrap().unwrap();
    assert!(read.is_forgotten && read.head.is_none() && read.events.is_empty() && read.owner.is_none());
    assert_eq!(sessions.append("s", fence, &write(2, 3), now).unwrap(), Appended::Forgotten);
    assert_eq!(sessions.take("s", "n2", KnownPart::NOTHING, LONG, now).unwrap(), Taken::Forgotten);
    assert_eq!(sessions.renew(&[("s".to_owned(), fence)], LONG, now).unwrap(), [false]);
    assert_eq!(sessions.create("s", "n2", &write(0, 0), now).unwrap(), None, "it is not made again");
    assert_eq!(sessions.orphans(10, now).unwrap(), [""; 0]);
    assert!(!sessions.forget("never", subject.soon, now).unwrap());
    assert!(
        sessions.read("never", KnownPart::NOTHING, now).unwrap().unwrap().is_forgotten,
        "the store may have lost it"
    );
    subject.after_soon("the mark is gone", |now| {
        sessions.read("never", KnownPart::NOTHING, now).unwrap().is_none()
    });
}

pub(crate) fn an_inbox_is_emptied_once_in_order(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    for message in ["one", "two", "three"] {
        sessions.send("n1", message.as_bytes(), now).unwrap();
    }
    sessions.send("n2", b"other", now).unwrap();
    let received = sessions.receive("n1", now).unwrap();
    assert_eq!(received, [b"one".to_vec(), b"two".to_vec(), b"three".to_vec()]);
    assert!(sessions.receive("n1", now).unwrap().is_empty());
    assert_eq!(sessions.receive("n2", now).unwrap().len(), 1);
}

pub(crate) fn what_was_written_after_a_mark_is_named(subject: &Subject) {
    let (sessions, now) = (subject.store.sessions(), subject.now());
    let fence = made(sessions, subject, LONG);
    let (mark, named) = sessions.changed(None, now).unwrap();
    assert!(named.is_empty(), "no process has asked before");
    assert_eq!(sessions.changed(Some(mark), now).unwrap(), (mark, Vec::new()));
    assert_eq!(sessions.append("s", fence, &write(0, 1), now).unwrap(), Appended::Written);
    let (next, named) = sessions.changed(Some(mark), now).unwrap();
    assert_eq!(named, ["s"]);
    assert_eq!(sessions.changed(Some(next), now).unwrap(), (next, Vec::new()));
}

/// Where a store announces nothing it is asked, and what is said goes nowhere.
pub(crate) fn what_is_said_to_a_process_is_heard_by_it_alone(subject: &Subject) {
    let sessions = subject.store.sessions();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&heard);
    let handler = move |news: News<'_>| {
        if let News::Told(message) = news {
            keep.lock().unwrap().push(message.to_vec());
        }
    };
    let listening = sessions.listen("n1", Arc::new(handler)).unwrap();
    let Some(_listening) = listening else {
        sessions.tell("n1", b"text").unwrap();
        return;
    };
    crate::common::until("it is heard", || {
        sessions.tell("n2", b"for another one").unwrap();
        sessions.tell("n1", b"text").unwrap();
        (!heard.lock().unwrap().is_empty()).then_some(())
    });
    assert!(heard.lock().unwrap().iter().all(|message| message == b"text"));
}
