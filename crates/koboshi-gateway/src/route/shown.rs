//! Names of models as they may be seen. A client chooses them, and some clients put a key where the model belongs.
//!
//! Such a name is sent as it is: what it means is the provider's to say (a version of a model may be a long hash). But in log, journal, metrics,
//! traces and the keys of what is learned it stands redacted, with a few digits that tell two of them apart.

use std::borrow::Cow;
use std::sync::LazyLock;

use koboshi::redact::Redactor;

use crate::route::auth::fingerprint;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(Redactor::new);

/// The name of a model; of one that looks like a secret, a mark.
pub(crate) fn model(name: &str) -> Cow<'_, str> {
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
