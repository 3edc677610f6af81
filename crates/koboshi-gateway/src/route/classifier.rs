//! The classifier of a plan, compiled when a request first needs it.
//!
//! Compiling the built-in rules takes longer than everything else at the start of a gateway, and only a failure or a tool call needs
//! them. A separate thread compiles them once the gateway listens, so that the first failure does not wait either. Rules of the
//! user are compiled with the plan: a mistake in them must be reported at the start.

use std::sync::{Arc, LazyLock};

use jiff::tz::TimeZoneDatabase;
use koboshi::classify::{Classifier, RuleError, RuleSource, Rules};

/// A classifier that is compiled at its first use.
pub(crate) type PlanClassifier = Arc<LazyLock<Classifier, Box<dyn FnOnce() -> Classifier + Send>>>;

/// A classifier with the built-in rules.
pub(crate) fn builtin(zones: TimeZoneDatabase) -> PlanClassifier {
    // The built-in rules compile, or no test of the library passes; statuses and shapes can be classified without them.
    deferred(move || Classifier::new(Rules::builtin().unwrap_or_default(), zones))
}

/// A classifier with the built-in rules and a user's own.
///
/// # Errors
/// A rule of the user cannot be used.
pub(crate) fn with_user(
    sources: &[RuleSource<'_>],
    zones: TimeZoneDatabase,
) -> Result<PlanClassifier, RuleError> {
    let classifier = Classifier::new(Rules::with_user(sources)?, zones);
    Ok(deferred(move || classifier))
}

fn deferred(make: impl FnOnce() -> Classifier + Send + 'static) -> PlanClassifier {
    Arc::new(LazyLock::new(Box::new(make)))
}

/// Compiles it in the background. If no thread can be started, the first use compiles it.
pub(crate) fn prepare(classifier: &PlanClassifier) {
    let classifier = Arc::clone(classifier);
    let _ = std::thread::Builder::new().name("koboshi-rules".to_owned()).spawn(move || {
        LazyLock::force(&classifier);
    });
}
