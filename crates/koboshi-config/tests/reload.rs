//! A running process never loses its config to a bad file.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use std::path::PathBuf;
use std::sync::Arc;

use koboshi_config::reload::{Reload, Reloader};

struct Followed {
    path: PathBuf,
    reloader: Reloader,
}

impl Followed {
    fn new(name: &str, text: &str) -> Self {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::write(&path, text).unwrap();
        let reloader = Reloader::new(&path, Box::new(|_| None)).unwrap();
        Self { path, reloader }
    }

    fn write(&self, text: &str) -> Reload {
        std::fs::write(&self.path, text).unwrap();
        self.reloader.check_now()
    }

    fn attempts(&self) -> u32 {
        self.reloader.current().remedy.backoff.attempts
    }
}

fn is_bad(reload: &Reload) -> bool {
    matches!(reload, Reload::Bad(_))
}

#[test]
fn a_change_is_taken_and_a_touch_is_none() {
    let file = Followed::new("change.yaml", "retry: {max_attempts: 4}\n");
    assert_eq!(file.reloader.check_now(), Reload::Unchanged);
    assert_eq!(file.write("retry: {max_attempts: 4}\n"), Reload::Unchanged, "written again, the same");
    let Reload::Changed(config) = file.write("retry: {max_attempts: 5}\n") else { panic!() };
    assert!(Arc::ptr_eq(&config, &file.reloader.current()));
    assert_eq!(file.attempts(), 5);
    assert_eq!(file.reloader.check_now(), Reload::Unchanged);
}

#[test]
fn a_bad_file_keeps_the_old_config_and_is_reported_once() {
    let file = Followed::new("bad.yaml", "retry: {max_attempts: 4}\n");
    assert!(is_bad(&file.write("retry: {max_attempts: 0}\n")));
    assert_eq!(file.attempts(), 4);
    assert_eq!(file.reloader.check_now(), Reload::Unchanged, "no line in the log at every look");
    assert!(file.reloader.problems().is_some(), "but the problems can be queried");
    assert!(is_bad(&file.write("retry: {max_attempts: x}\n")), "another mistake is news");
    assert_eq!(file.write("retry: {max_attempts: 4}\n"), Reload::Restored, "back to what holds");
    assert!(file.reloader.problems().is_none());
    assert!(
        is_bad(&file.write("retry: {max_attempts: x}\n")),
        "and the same mistake after that is news again"
    );
}

#[test]
fn a_file_that_is_being_written_does_no_harm() {
    let old = "retry:\n  max_attempts: 4\n  initial_delay: 250ms\n";
    let new = "retry:\n  max_attempts: 12\n  initial_delay: 350ms\n";
    let file = Followed::new("half.yaml", old);
    for end in 0..new.len() {
        std::fs::write(&file.path, &new[..end]).unwrap();
        assert_eq!(file.reloader.poll(), Reload::Unchanged, "not even a complaint: {:?}", &new[..end]);
        assert_eq!(file.attempts(), 4);
    }
    std::fs::write(&file.path, new).unwrap();
    assert_eq!(file.reloader.poll(), Reload::Unchanged);
    assert!(matches!(file.reloader.poll(), Reload::Changed(_)), "the second look settles it");
    assert_eq!(file.attempts(), 12);
    assert_eq!(file.reloader.poll(), Reload::Unchanged);
}

#[test]
fn a_timer_reports_what_stays_bad_once() {
    let file = Followed::new("stays-bad.yaml", "retry: {max_attempts: 4}\n");
    std::fs::write(&file.path, "retry: 5\n").unwrap();
    let looks: Vec<bool> = (0..5).map(|_| is_bad(&file.reloader.poll())).collect();
    assert_eq!(looks, [false, true, false, false, false]);
    std::fs::remove_file(&file.path).unwrap();
    let looks: Vec<bool> = (0..4).map(|_| is_bad(&file.reloader.poll())).collect();
    assert_eq!(looks, [false, true, false, false], "gone is another thing than bad");
    assert_eq!(file.attempts(), 4);
}

#[test]
fn an_emptied_file_never_means_the_defaults() {
    let file = Followed::new("empty.yaml", "retry: {max_attempts: 4}\n");
    assert!(is_bad(&file.write("")));
    assert_eq!(file.reloader.check_now(), Reload::Unchanged);
    assert_eq!(file.attempts(), 4);
    assert!(matches!(file.write("{}\n"), Reload::Changed(_)), "this does");
    assert_eq!(file.attempts(), 3);
}

#[test]
fn a_file_that_is_gone_keeps_the_old_config() {
    let file = Followed::new("gone.yaml", "retry: {max_attempts: 4}\n");
    std::fs::remove_file(&file.path).unwrap();
    let Reload::Bad(problems) = file.reloader.check_now() else { panic!() };
    assert!(problems.is_unreadable());
    assert_eq!(file.reloader.check_now(), Reload::Unchanged);
    assert_eq!(file.attempts(), 4);
    assert!(matches!(file.write("retry: {max_attempts: 5}\n"), Reload::Changed(_)));
}

#[test]
fn what_was_missing_is_found_without_a_change_of_the_file() {
    let file = Followed::new("needs-rules.yaml", "retry: {max_attempts: 4}\n");
    let rules = file.path.with_file_name("comes-later.yaml");
    let _ = std::fs::remove_file(&rules);
    assert!(is_bad(&file.write("retry: {max_attempts: 5}\nrules: [comes-later.yaml]\n")));
    std::fs::write(&rules, "mute: []\n").unwrap();
    assert!(matches!(file.reloader.check_now(), Reload::Changed(_)));
}

#[test]
fn a_bad_file_at_the_start_is_an_error() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("start.yaml");
    std::fs::write(&path, "retry: 5\n").unwrap();
    assert!(Reloader::new(&path, Box::new(|_| None)).is_err());
}

#[test]
fn readers_see_a_whole_config_while_it_is_replaced() {
    let file = Followed::new("threads.yaml", "retry: {max_attempts: 2, cap: 2s}\n");
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    (0..2000).all(|_| {
                        let policy = file.reloader.current().remedy.backoff;
                        policy.cap.as_secs() == u64::from(policy.attempts)
                    })
                })
            })
            .collect();
        for count in 3..40 {
            assert!(matches!(
                file.write(&format!("retry: {{attempts: {count}, cap: {count}s}}\n")),
                Reload::Changed(_)
            ));
        }
        assert!(readers.into_iter().all(|reader| reader.join().unwrap()));
    });
}
