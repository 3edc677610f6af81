//! Leases, cached answers and notes.

use std::time::Duration;

use crate::subject::{CACHE_BYTES, Subject};

const LONG: Duration = Duration::from_secs(3600);

pub(crate) fn a_lease_is_held_by_one(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    let first = store.lease("probe", "n1", LONG, now).unwrap().unwrap();
    if subject.uses_our_clock() {
        let clock = u64::try_from(now.as_millisecond()).unwrap();
        assert!(first.fence >= clock, "so that it grows even after the store has forgotten the last one");
    }
    assert_eq!(store.lease("probe", "n2", LONG, now).unwrap(), None);
    assert_eq!(
        store.lease("probe", "n1", LONG, now).unwrap(),
        None,
        "a second process of that name is another one"
    );
    let other = store.lease("prune", "n2", LONG, now).unwrap().unwrap();
    assert!(other.fence > first.fence, "no fence is given out twice");
}

pub(crate) fn a_lease_ends_and_the_fence_grows(subject: &Subject) {
    let first = subject.store.lease("probe", "n1", subject.soon, subject.now()).unwrap().unwrap();
    subject.after_soon("the next one gets it", |now| {
        let next = subject.store.lease("probe", "n2", LONG, now).unwrap();
        next.is_some_and(|next| next.fence > first.fence)
    });
    assert_eq!(subject.store.renew(&first, LONG, subject.now()).unwrap(), None, "another holder has it");
    assert!(!subject.store.release(&first, subject.now()).unwrap());
    assert_eq!(subject.store.lease("probe", "n1", LONG, subject.now()).unwrap(), None, "and stays so");
}

pub(crate) fn a_lease_is_renewed_only_by_its_holder(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    let mine = store.lease("probe", "n1", LONG, now).unwrap().unwrap();
    let renewed = store.renew(&mine, LONG * 2, now).unwrap().unwrap();
    assert_eq!(renewed.fence, mine.fence);
    assert!(renewed.until > mine.until);
    let forged = koboshi_store::Lease { fence: mine.fence + 1, ..mine };
    assert_eq!(store.renew(&forged, LONG, now).unwrap(), None);
    let short = store.lease("short", "n1", subject.soon, now).unwrap().unwrap();
    // Something that ends just after it says when to look: to ask the lease itself would renew it.
    store.note_put("after", b"", subject.soon, now).unwrap();
    subject.after_soon("the time is over", |now| store.note_get("after", now).unwrap().is_none());
    assert_eq!(store.renew(&short, LONG, subject.now()).unwrap(), None, "what has ended is not renewed");
}

pub(crate) fn a_released_lease_is_free(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    let mine = store.lease("probe", "n1", LONG, now).unwrap().unwrap();
    assert!(store.release(&mine, now).unwrap());
    assert!(!store.release(&mine, now).unwrap(), "only once");
    let next = store.lease("probe", "n2", LONG, now).unwrap().unwrap();
    assert!(next.fence > mine.fence);
}

pub(crate) fn an_answer_is_kept_for_its_time(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    let body = [0, 159, 146, 150, b'\n'];
    assert!(store.cache_put("a", &body, LONG, now).unwrap());
    assert_eq!(store.cache_get("a", now).unwrap().as_deref(), Some(&body[..]), "any bytes");
    assert_eq!(store.cache_get("b", now).unwrap(), None);
    assert!(store.cache_put("a", b"new", subject.soon, now).unwrap());
    assert_eq!(store.cache_get("a", now).unwrap().as_deref(), Some(&b"new"[..]));
    subject.after_soon("it is gone", |now| store.cache_get("a", now).unwrap().is_none());
}

pub(crate) fn the_cache_has_a_bound_and_what_ends_soonest_makes_room(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    let third = vec![7; CACHE_BYTES / 3];
    let put = |key: &str, hours: u32| store.cache_put(key, &third, LONG * hours, now).unwrap();
    assert!(put("long", 9) && put("short", 1) && put("middle", 5));
    assert!(put("new", 3), "there is always room for a new one");
    let kept = ["long", "short", "middle", "new"].map(|key| store.cache_get(key, now).unwrap().is_some());
    assert_eq!(kept, [true, false, true, true]);
    for _ in 0..10 {
        assert!(put("new", 3), "the same one again takes up its own room");
    }
    assert!(store.cache_get("long", now).unwrap().is_some());
    assert!(
        !store.cache_put("long", &vec![7; CACHE_BYTES + 1], LONG, now).unwrap(),
        "larger than all the room"
    );
    assert_eq!(store.cache_get("long", now).unwrap(), None, "and the older answer is not given for it");
    assert!(store.cache_put("all", &vec![7; CACHE_BYTES], LONG, now).unwrap());
    assert_eq!(store.cache_get("middle", now).unwrap(), None);
}

pub(crate) fn notes_are_kept_replaced_and_forgotten(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    store.note_put("s1", b"one", LONG, now).unwrap();
    store.note_put("s1", b"two", LONG, now).unwrap();
    assert_eq!(store.note_get("s1", now).unwrap().as_deref(), Some(&b"two"[..]));
    assert!(store.note_delete("s1").unwrap());
    assert!(!store.note_delete("s1").unwrap());
    assert_eq!(store.note_get("s1", now).unwrap(), None);
    store.note_put("s2", b"short", subject.soon, now).unwrap();
    subject.after_soon("it is gone", |now| store.note_get("s2", now).unwrap().is_none());
}

pub(crate) fn a_note_is_changed_by_one_of_those_who_read_it(subject: &Subject) {
    let (store, now) = (&subject.store, subject.now());
    let swap = |before: Option<&[u8]>, after: &[u8]| store.note_swap("s1", before, after, LONG, now).unwrap();
    assert!(swap(None, b"one"));
    assert!(!swap(None, b"two"), "there is one");
    assert!(!swap(Some(b"other"), b"two"), "it is another one");
    assert!(swap(Some(b"one"), b"two") && !swap(Some(b"one"), b"three"));
    assert_eq!(store.note_get("s1", now).unwrap().as_deref(), Some(&b"two"[..]));
    let any = [0, 159, 146, 150, b'\n'];
    assert!(swap(Some(b"two"), &any) && swap(Some(&any), b"") && swap(Some(b""), b"x"), "any bytes, or none");
    store.note_delete("s1").unwrap();
    assert!(!swap(Some(b"x"), b"y"), "it is gone");
    store.note_put("s1", b"x", subject.soon, now).unwrap();
    subject.after_soon("its time is over", |now| {
        let is_over = store.note_get("s1", now).unwrap().is_none();
        is_over && store.note_swap("s1", None, b"y", LONG, now).unwrap()
    });
}
