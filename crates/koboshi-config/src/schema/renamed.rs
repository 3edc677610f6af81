//! Former names of keys. They are still read, and `koboshi check` names the new one.
//!
//! A row is (section, old name, new name). It applies to the section and to all sections in it, so that one row covers the
//! five classes of `cooldown` or every rule of `guard`. Keys stayed in their sections; only names changed.

use super::{KEYS, Key};

/// Every name that changed.
const RENAMED: &[(&str, &str, &str)] = &[
    ("", "retry_share", "retry_budget"),
    ("serve", "hosts", "allowed_hosts"),
    ("serve", "origins", "allowed_origins"),
    ("serve", "body_bytes", "max_body_bytes"),
    ("serve", "head_time", "header_timeout"),
    ("serve", "body_time", "body_timeout"),
    ("serve", "send_time", "write_timeout"),
    ("serve", "connections", "max_connections"),
    ("serve", "drain", "drain_timeout"),
    ("serve", "hold", "first_byte_hold"),
    ("serve", "every", "interval"),
    ("providers", "first", "first_token"),
    ("providers", "whole", "unary"),
    ("routes", "simple", "simple_model"),
    ("models", "context", "context_window"),
    ("models", "output", "max_output_tokens"),
    ("models", "first", "first_token"),
    ("models", "whole", "unary"),
    ("tool_calls", "most_bytes", "max_bytes"),
    ("tool_calls", "most_depth", "max_depth"),
    ("tool_calls", "attempts", "max_attempts"),
    ("guard", "act", "action"),
    ("guard", "after_changes", "max_after_changes"),
    ("guard", "waiting", "max_waiting"),
    ("guard", "free", "unlimited"),
    ("degrade", "simple", "simple_model"),
    ("degrade", "answers", "answers_file"),
    ("degrade", "stale", "stale_if_error"),
    ("retry", "attempts", "max_attempts"),
    ("retry", "first", "initial_delay"),
    ("retry", "growth", "multiplier"),
    ("retry", "cap", "max_delay"),
    ("request", "attempts", "max_attempts"),
    ("request", "patience", "max_wait"),
    ("request", "quick", "quick_retry_delay"),
    ("request", "most_reasks", "max_reasks"),
    ("request", "most_trims", "max_trims"),
    ("retry_budget", "share", "ratio"),
    ("retry_budget", "per_second", "min_per_second"),
    ("breaker", "consecutive", "consecutive_failures"),
    ("breaker", "least_calls", "min_calls"),
    ("breaker", "first", "initial"),
    ("breaker", "growth", "multiplier"),
    ("breaker", "cap", "max"),
    ("breaker", "permits", "max_concurrent"),
    ("breaker", "longest", "timeout"),
    ("breaker", "last_target_every", "last_target_interval"),
    ("gate", "concurrency", "max_concurrency"),
    ("gate", "queue", "max_queue"),
    ("gate", "longest_wait", "max_wait"),
    ("cooldown", "base", "initial"),
    ("cooldown", "growth", "multiplier"),
    ("cooldown", "cap", "max"),
    ("cooldown.margin", "least", "min"),
    ("cooldown.margin", "most", "max"),
    ("cooldown", "longest_stated", "max_stated"),
    ("cooldown", "healthy_run", "min_healthy_run"),
    ("cooldown", "least_run", "min_run"),
    ("cooldown", "starts", "max_starts"),
    ("cooldown", "starts_within", "starts_window"),
    ("cooldown", "longest_probe", "max_probe_time"),
    ("cooldown", "release", "release_time"),
    ("store", "most_bytes", "max_bytes"),
];

/// Values that were renamed: (key, old word, new word).
const RENAMED_WORDS: &[(&str, &str, &str)] =
    &[("guard.mode", "enforce", "stop"), ("routes.*.guard", "enforce", "stop")];

impl Key {
    /// Former words of its value, with the new ones.
    pub(crate) fn former_words(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let path = self.path;
        RENAMED_WORDS.iter().filter(move |(key, ..)| *key == path).map(|(_, before, now)| (*before, *now))
    }

    /// The new word for a former one.
    pub(crate) fn renamed_word(&self, word: &str) -> Option<&'static str> {
        self.former_words().find(|(before, _)| *before == word).map(|(_, now)| now)
    }

    /// Its former name, if it has one.
    #[must_use]
    pub fn former(&self) -> Option<&'static str> {
        let section = self.section();
        let within = |place: &str| {
            let rest = section.strip_prefix(place);
            if place.is_empty() {
                section.is_empty()
            } else {
                rest.is_some_and(|rest| matches!(rest.bytes().next(), None | Some(b'.')))
            }
        };
        // The narrower section comes first where two rows match: `cooldown.margin.max` is not `cooldown.error.max`.
        let rows = RENAMED.iter().filter(|(place, _, now)| *now == self.name() && within(place));
        rows.max_by_key(|(place, _, _)| place.len()).map(|(_, before, _)| *before)
    }

    /// The key of a section with this name, present or former.
    #[must_use]
    pub fn named(section: &str, name: &str) -> Option<&'static Self> {
        let of_section = || KEYS.iter().filter(|key| key.section() == section);
        of_section()
            .find(|key| key.name() == name)
            .or_else(|| of_section().find(|key| key.former() == Some(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_about_a_key_and_no_old_name_is_taken() {
        for (place, before, now) in RENAMED {
            let keys: Vec<_> =
                KEYS.iter().filter(|key| key.former() == Some(before) && key.name() == *now).collect();
            let within =
                |key: &&&Key| key.section() == *place || key.section().starts_with(&format!("{place}."));
            assert!(keys.iter().any(|key| within(&key)), "{place}: {before} → {now} is about no key");
            for key in keys {
                let taken =
                    KEYS.iter().any(|other| other.section() == key.section() && other.name() == *before);
                assert!(!taken, "{} has a key named {before}", key.section());
            }
        }
    }
}
