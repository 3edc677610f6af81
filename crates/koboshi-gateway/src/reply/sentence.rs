//! The sentences of an error, in the reader's language: what failed, why, what to do and when to try again.
//!
//! A provider's own words stand in place of ours where the client caused the fault or can mend it. A time stands in place of "wait a while": the
//! two would contradict each other. Where the reader must change something first, no time is named, because it would promise too much.

use jiff::{SignedDuration, Timestamp};
use koboshi::fault::{Fault, Kind, Origin, Sub};
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi_config::gateway::ErrorDetail;
use koboshi_report::phrase::Lang;
use koboshi_report::when::{asks_again, try_again};

use crate::route::plan::Plan;
use crate::shared::context::RequestContext;
use crate::shared::state::SharedState;

/// What an error says to a person.
pub(crate) struct Sentences {
    /// All of it, for the dialect's message.
    pub(crate) whole: String,
    /// What failed.
    pub(crate) message: String,
    /// What to do.
    pub(crate) suggestion: String,
    /// What the other side said, where the client may know it.
    pub(crate) detail: Option<String>,
    /// What an app may show its users as it is, where no target could answer.
    pub(crate) user: Option<String>,
}

/// The most targets that one error names.
const MAX_NAMED: usize = 8;

impl Sentences {
    /// With the targets of the chain and their faults, where all of several failed.
    pub(crate) fn after_all(
        mut self,
        state: &SharedState,
        context: &RequestContext,
        all: &[(&str, Kind)],
    ) -> Self {
        // The same model with two keys has one name.
        let mut named: Vec<&(&str, Kind)> = Vec::new();
        for one in all {
            if named.iter().all(|known| known.0 != one.0) {
                named.push(one);
            }
        }
        if named.len() < 2 {
            return self;
        }
        let mut list: Vec<String> =
            named.iter().take(MAX_NAMED).map(|(name, kind)| format!("{name} ({})", kind.name())).collect();
        if named.len() > MAX_NAMED {
            list.push("…".to_owned());
        }
        let (count, targets) = (named.len().to_string(), list.join(", "));
        let args = [("count", count.as_str()), ("targets", targets.as_str())];
        let said = state.phrases.text(context.lang, "all-failed", &args).unwrap_or_default();
        self.message = joined(context.lang, [self.message.as_str(), &said]);
        self.whole = joined(context.lang, [self.whole.as_str(), &said]);
        self
    }

    /// With what an operator does last, where something is parked: fixing the cause alone does not bring it back.
    pub(crate) fn and_resume(
        mut self,
        state: &SharedState,
        context: &RequestContext,
        parked: Option<&ScopeKey>,
    ) -> Self {
        // A rejected key is replaced, and the new one is used at once: there is nothing to resume.
        let Some(key) = parked.filter(|key| key.level() != ScopeLevel::Key) else { return self };
        let command = format!("koboshi resume {}", quoted(&key.to_string()));
        let said =
            state.phrases.text(context.lang, "parked-resume", &[("command", &command)]).unwrap_or_default();
        self.suggestion = joined(context.lang, [self.suggestion.as_str(), &said]);
        self.whole = joined(context.lang, [self.whole.as_str(), &said]);
        self
    }
}

/// A name as a shell takes it as one word.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":/._-".contains(c);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// The sentences for a fault that goes out with this status. `until` is when another try may help, and what time it is now.
pub(crate) fn sentences(
    state: &SharedState,
    plan: &Plan,
    context: &RequestContext,
    fault: &Fault,
    status: u16,
    until: Option<(Timestamp, Timestamp)>,
) -> Sentences {
    let (phrases, lang) = (&state.phrases, context.lang);
    let say = |id: &str, args: &[(&str, &str)]| phrases.text(lang, id, args).unwrap_or_default();
    let (message, suggestion) = match fault.kind {
        // With this status it is a key of the gateway's that was refused, and not the client's.
        Kind::Unauthorized if status == 502 => {
            (say("gateway-key-refused.message", &[]), say("gateway-key-refused.suggestion", &[]))
        }
        Kind::PermissionDenied if fault.sub.is_none() && status == 502 => {
            (say("gateway-key-forbidden.message", &[]), say("gateway-key-forbidden.suggestion", &[]))
        }
        Kind::Internal if fault.origin == Origin::Provider => {
            (say("provider-internal.message", &[]), say("provider-internal.suggestion", &[]))
        }
        _ => (phrases.message(lang, fault.kind, fault.sub), phrases.suggestion(lang, fault.kind, fault.sub)),
    };
    let detail = detail(plan, context, fault);
    let when = until
        .filter(|(until, now)| !is_only_a_hint(fault, *until, *now))
        .map(|(until, now)| try_again(phrases, lang, until, now, state.zone_of(context)))
        .filter(|when| !when.is_empty());
    // The quota goes on then, but that is when the next request can find out.
    let next = until
        .filter(|(until, now)| is_only_a_hint(fault, *until, *now))
        .map(|(until, now)| asks_again(phrases, lang, until, now, state.zone_of(context)));
    let passes = passes_by_itself(fault);
    // "In a few minutes" beside a time would contradict it.
    let suggestion = match (&when, &passes) {
        (Some(when), Passes::Alone) => when.clone(),
        _ => joined(lang, [suggestion.as_str(), next.as_deref().unwrap_or_default()]),
    };
    let reason = detail.filter(|_| fault.sub == Some(Sub::Operator));
    let message = match reason {
        Some(reason) => {
            let reason = say("operator-reason", &[("reason", reason.trim_end_matches(['.', '。']))]);
            joined(lang, [message.as_str(), &reason])
        }
        None => message,
    };
    let whole = match detail {
        Some(said) if is_mended_by_client(fault.kind) => match lang {
            Lang::En => said.to_owned(),
            Lang::Ja => say("provider-said", &[("message", &message), ("said", said)]),
        },
        _ => {
            let when = match passes {
                Passes::Meanwhile => when.as_deref().unwrap_or_default(),
                Passes::Alone | Passes::Mended => "",
            };
            joined(lang, [&message, suggestion.as_str(), when])
        }
    };
    let user = (status == 429 || status >= 500)
        .then(|| say(if fault.advice.later { "unavailable-long" } else { "unavailable-contact" }, &[]));
    Sentences { whole, message, suggestion, detail: detail.map(str::to_owned), user }
}

/// Whether a time is no end of what it is told for: Gemini states seconds beside a quota of a day, and the day goes on.
fn is_only_a_hint(fault: &Fault, until: Timestamp, now: Timestamp) -> bool {
    let is_long = fault.kind == Kind::QuotaExceeded && matches!(fault.sub, Some(Sub::Day | Sub::Month));
    is_long && until.duration_since(now) < SignedDuration::from_hours(1)
}

/// How a fault ends.
enum Passes {
    /// With time: waiting is all there is to do.
    Alone,
    /// With time, and there is something to do meanwhile.
    Meanwhile,
    /// When somebody mends something.
    Mended,
}

fn passes_by_itself(fault: &Fault) -> Passes {
    match fault.kind {
        // "When the provider's day ends" beside a time would contradict it.
        Kind::QuotaExceeded if matches!(fault.sub, Some(Sub::Day | Sub::Month)) => Passes::Alone,
        Kind::RateLimited
        | Kind::Overloaded
        | Kind::Unavailable
        | Kind::Internal
        | Kind::Timeout
        | Kind::ConnectionClosed => Passes::Alone,
        Kind::QuotaExceeded | Kind::CoolingDown => Passes::Meanwhile,
        _ => Passes::Mended,
    }
}

/// What the other side said, where the client may know it: a provider's words about a request that the client can mend, or an operator's
/// reason.
fn detail<'a>(plan: &Plan, context: &RequestContext, fault: &'a Fault) -> Option<&'a str> {
    let said = Some(fault.detail.trim()).filter(|said| !said.is_empty())?;
    if fault.sub == Some(Sub::Operator) {
        return Some(said);
    }
    let allowed = match plan.config.errors.detail {
        ErrorDetail::Always => true,
        ErrorDetail::Loopback => context.is_local,
        _ => false,
    };
    (allowed && is_mended_by_client(fault.kind)).then_some(said)
}

/// Whether the client caused a fault of this kind, or can mend it: then it needs the provider's own words.
const fn is_mended_by_client(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::InvalidRequest
            | Kind::ModelNotFound
            | Kind::ContextTooLarge
            | Kind::MessageTooLarge
            | Kind::ContentFiltered
    )
}

/// Sentences one after the other: with a space between them where the language has one.
pub(crate) fn joined<'a>(lang: Lang, sentences: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = sentences.into_iter().filter(|one| !one.is_empty()).collect();
    all.join(if lang == Lang::Ja { "" } else { " " })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_beside_a_quota_of_a_day_are_no_end_of_it() {
        let (now, soon) = (Timestamp::UNIX_EPOCH, Timestamp::from_second(46).unwrap());
        let hours = Timestamp::from_second(8 * 3600).unwrap();
        let fault = |sub| {
            let mut fault = Fault::of(Kind::QuotaExceeded, "test");
            fault.sub = Some(sub);
            fault
        };
        assert!(is_only_a_hint(&fault(Sub::Day), soon, now) && is_only_a_hint(&fault(Sub::Month), soon, now));
        assert!(
            !is_only_a_hint(&fault(Sub::Day), hours, now) && !is_only_a_hint(&fault(Sub::Window), soon, now)
        );
    }
}
