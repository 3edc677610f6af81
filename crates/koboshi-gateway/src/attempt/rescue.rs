//! Writes to the journal that a request was answered although something had failed: by another target, or after a retry; and that a resumed
//! stream ended because the next answer differs.
//!
//! A request that saw failures gets an entry each time, like the failures themselves. While the first target is known to be unavailable,
//! the next one answers every request: then one entry per interval counts them. All other requests pay one atomic load, and none
//! waits.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use koboshi::call::FailedAttempt;
use koboshi_store::EntryKind;
use serde_json::json;

use crate::route::target::Target;
use crate::shared::context::RequestContext;
use crate::shared::state::SharedState;

/// How often an entry about a target is written while the first target is skipped.
const REPORT_EVERY: Duration = Duration::from_secs(5);

/// Records that the target at this place of the chain has answered.
pub(crate) fn note(
    state: &SharedState,
    context: &RequestContext,
    targets: &[Arc<Target>],
    place: usize,
    failed: &[FailedAttempt],
) {
    let (Some(target), Some(first)) = (targets.get(place), targets.first()) else { return };
    state.meters.survived.inc();
    let (now, attempts) = (state.now(), context.attempts.get());
    let since_last = if failed.is_empty() {
        let Some(more) = target.rescued.may_report(now, REPORT_EVERY) else { return };
        more
    } else {
        0
    };
    let after = u64::try_from(now.since(context.began).as_millis()).unwrap_or(u64::MAX);
    let mut text = format!("{} answered", target.name);
    if place > 0 {
        let _ = write!(text, " as the {} target", ordinal(place));
    }
    let _ = write!(text, " after {after} ms");
    if failed.is_empty() {
        let _ = write!(text, "; {} was not asked", first.name);
    } else {
        let kinds: Vec<String> = failed
            .iter()
            .filter_map(|one| Some(format!("{} {}", targets.get(one.target)?.name, one.fault.kind.name())))
            .collect();
        let _ = write!(text, " and {attempts} attempts (before it: {})", kinds.join(", "));
    }
    if since_last > 0 {
        let _ = write!(text, "; {since_last} more requests like this since the last entry");
    }
    let data = json!({
        "target": &*target.name,
        "first": &*first.name,
        "place": place + 1,
        "attempts": attempts,
        "after_ms": after,
        "more": since_last,
        "route": context.route.get().map(|route| &**route),
        "request": &*context.id,
    });
    state.note_for(context, EntryKind::Remedy, "rescued", target.scopes.target.as_ref(), text, data);
}

/// Records that after a cut the target gave another answer than the one that the client has begun to read, so the client's stream ends here.
pub(crate) fn note_differs(state: &SharedState, context: &RequestContext, target: &Target) {
    let text = format!(
        "{}: its answer differs from the text that the client has; the stream ended with an error",
        target.name
    );
    let data = json!({"target": &*target.name, "request": &*context.id});
    state.note_for(context, EntryKind::Remedy, "differs", target.scopes.target.as_ref(), text, data);
}

/// The place of a target as a word.
fn ordinal(place: usize) -> String {
    let words = ["first", "second", "third", "fourth", "fifth", "sixth"];
    words.get(place).map_or_else(|| format!("{}th", place + 1), |word| (*word).to_owned())
}
