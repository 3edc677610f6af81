//! Model names as they may be shown. A client chooses them, and some clients put a key in place of the model.
//!
//! Such a name is sent unchanged: the provider decides what it means (a version of a model may be a long hash). But in log, journal, metrics,
//! traces and scope keys it is redacted, with a few digits that distinguish two of them.

use std::borrow::Cow;
use std::sync::LazyLock;

use koboshi::redact::Redactor;

use crate::route::auth::fingerprint;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// Longer names lead nowhere. What is learned of a target keeps its name a dozen times, metrics until the gateway stops.
pub(crate) const MAX_MODEL: usize = 512;

/// The name of a model; for one that looks like a secret, a placeholder.
pub(crate) fn model(name: &str) -> Cow<'_, str> {
    let name = name.get(..name.floor_char_boundary(MAX_MODEL)).unwrap_or_default();
    match REDACTOR.redact(name) {
        Cow::Borrowed(name) => Cow::Borrowed(name),
        Cow::Owned(clean) => {
            Cow::Owned(format!("{clean}~{}", fingerprint(name).get(..6).unwrap_or_default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::model;

    #[test]
    fn names_stay_and_secrets_do_not() {
        for name in [
            "gpt-4o-2024-08-06", "claude-3-5-sonnet@20240620", "ft:gpt-4o:org::AbCdEf12",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        ] {
            assert_eq!(model(name), name);
        }
        let key = |end: &str| format!("sk-proj-{}{end}", "AbC0123456789".repeat(3));
        let (one, other) = (key("1"), key("2"));
        assert!(model(&one).starts_with("[redacted:key]~") && model(&one) != model(&other));
        assert_eq!(model(&one), model(&one), "the same is known again");
    }
}
