//! The store's cells of the contract matrix (`docs/contracts.md`).

use std::time::Duration;

use koboshi_store::{Query, Retention, What};

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
    store.session_put("s", b"kept", LONG, at(0)).unwrap();
    assert!(store.release(&first, at(-100_000)).unwrap(), "set back: what is held can be given back");
    let second = store.lease("probe", "n2", LONG, at(-100_000)).unwrap().unwrap();
    assert!(second.fence > first.fence, "and the fence still grows");
    assert!(store.session_get("s", at(-100_000)).unwrap().is_some(), "nothing is lost");
}

pub(crate) fn store_edge_config(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    assert!(store.cache_put("empty", b"", LONG, now).unwrap());
    assert_eq!(store.cache_get("empty", now).unwrap().as_deref(), Some(&b""[..]));
    assert!(store.merge(&[]).unwrap().beyond.is_empty());
    store.append(&[]).unwrap();
    store.append(&[entry(0, What::Fault, "one"), entry(0, What::Fault, "two")]).unwrap();
    assert!(store.query(&Query { limit: 0, ..Query::default() }).unwrap().is_empty());
    let nothing = Retention { journal: LONG, entries: 0, breakers: Duration::ZERO };
    store.prune(&nothing, at(0)).unwrap();
    assert!(store.query(&Query::default()).unwrap().is_empty(), "no room, no entries");
}
