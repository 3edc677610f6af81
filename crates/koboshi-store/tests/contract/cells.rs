//! The store's cells of the contract matrix (`docs/contracts.md`).

use std::time::Duration;

use koboshi_store::{EntryKind, Query, Retention};

use crate::common::{at, entry};
use crate::subject::Subject;

const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn store_admission(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    let given: Vec<_> =
        (0..10).filter_map(|n| store.lease("probe", &format!("n{n}"), LONG, now).unwrap()).collect();
    assert_eq!(given.len(), 1, "one holder");
}

pub(crate) fn store_cancellation(subject: &Subject) {
    let gone = subject.store.lease("probe", "n1", subject.soon, subject.now()).unwrap().unwrap();
    subject.after_soon("a holder that went away loses it by time", |now| {
        subject.store.lease("probe", "n2", LONG, now).unwrap().is_some_and(|next| next.fence > gone.fence)
    });
    assert!(!subject.store.release(&gone, subject.now()).unwrap(), "and can no longer give it back");
}

pub(crate) fn store_clock_jump(subject: &Subject) {
    let store = &subject.store;
    let first = store.lease("probe", "n1", LONG, at(0)).unwrap().unwrap();
    store.note_put("s", b"kept", LONG, at(0)).unwrap();
    let back = at(-100_000);
    assert!(store.note_get("s", back).unwrap().is_some(), "set back: nothing is lost");
    if !subject.uses_our_clock() {
        // The server's clock counts: what nodes take the time for means nothing to it.
        assert_eq!(store.lease("probe", "n2", LONG, back).unwrap(), None);
        assert!(store.release(&first, back).unwrap());
        assert!(store.lease("probe", "n2", LONG, back).unwrap().is_some_and(|next| next.fence > first.fence));
        return;
    }
    assert_eq!(
        store.lease("probe", "n2", LONG, at(-9)).unwrap(),
        None,
        "a clock that was looked at a while ago"
    );
    assert_eq!(store.renew(&first, LONG, back).unwrap(), None, "it is not known how much of it is over");
    let second = store.lease("probe", "n2", LONG, back).unwrap().expect("it does not wait for the old time");
    assert!(second.fence > first.fence, "and the fence still grows");
    assert_eq!(store.lease("probe", "n3", LONG, back).unwrap(), None, "the new one is held");
    assert!(!store.release(&first, back).unwrap());
    assert!(store.renew(&second, LONG, at(-99_000)).unwrap().is_some(), "renewed as ever");
    // Forward: it ends early, and its fence is the guard.
    let third = store.lease("probe", "n3", LONG, at(100_000)).unwrap().expect("it has ended");
    assert!(third.fence > second.fence);
    store.lease("left", "n1", LONG, at(100_000)).unwrap().unwrap();
    store.prune(&Retention::default(), at(0)).unwrap();
    assert!(!store.release(&third, at(100_001)).unwrap(), "forgotten with the time it belonged to");
}

pub(crate) fn store_edge_config(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    assert!(store.cache_put("empty", b"", LONG, now).unwrap());
    assert_eq!(store.cache_get("empty", now).unwrap().as_deref(), Some(&b""[..]));
    assert!(store.merge(&[]).unwrap().beyond.is_empty());
    store.append(&[]).unwrap();
    store.append(&[entry(0, EntryKind::Fault, "one"), entry(0, EntryKind::Fault, "two")]).unwrap();
    assert!(store.query(&Query { limit: 0, ..Query::default() }).unwrap().is_empty());
    let nothing = Retention { journal: LONG, entries: 0, usage: LONG, breakers: Duration::ZERO };
    store.prune(&nothing, at(0)).unwrap();
    assert!(store.query(&Query::default()).unwrap().is_empty(), "no room, no entries");
}
