//! The sentences of an error, in the reader's language: what failed, why, what to do and when to try again.
//!
//! A provider's message replaces ours where the client caused the fault or can fix it. A time replaces "wait a while": the two would contradict
//! each other. Where the reader must change something first, no time is given, because it would promise too much.

use std::time::Duration;

use jiff::Timestamp;
use koboshi::cooldown::Class;
use koboshi::fault::{Confidence, Fault, Kind, Origin, Sub};
use koboshi::key::{ScopeKey, ScopeLevel};
use koboshi_config::gateway::ErrorDetail;
use koboshi_config::gateway::ProviderKind;
use koboshi_report::fault_words::{is_bare, meanwhile, short_of_the_reset};
use koboshi_report::phrase::Lang;
use koboshi_report::when::{asks_again, try_again};

use crate::route::plan::Plan;
use crate::route::well_known;
use crate::shared::context::RequestContext;
use crate::shared::disclosure::Lack;
use crate::shared::state::SharedState;

/// The texts of an error for a person.
pub(crate) struct Sentences {
    /// All of it, for the dialect's message.
    pub(crate) whole: String,
    /// What failed.
    pub(crate) message: String,
    /// What to do.
    pub(crate) suggestion: String,
    /// The provider's message, where the client may see it.
    pub(crate) detail: Option<String>,
    /// What an app may show its users, where no target could answer.
    pub(crate) user: Option<String>,
}

/// How many targets one error names.
const MAX_NAMED: usize = 8;

impl Sentences {
    /// Adds the targets of the chain and their faults, where several failed.
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
        let mut list: Vec<String> = named
            .iter()
            .take(MAX_NAMED)
            .map(|(name, kind)| match context.lang {
                Lang::En => format!("{name} ({})", kind.name()),
                Lang::Ja => format!("{name}（{}）", kind.name()),
            })
            .collect();
        if named.len() > MAX_NAMED {
            list.push("…".to_owned());
        }
        let (count, targets) = (named.len().to_string(), list.join(context.lang.comma()));
        let args = [("count", count.as_str()), ("targets", targets.as_str())];
        let said = state.phrases.text(context.lang, "all-failed", &args).unwrap_or_default();
        self.message = joined(context.lang, [self.message.as_str(), &said]);
        self.whole = joined(context.lang, [self.whole.as_str(), &said]);
        self
    }

    /// Adds the parts of the request that no target supports.
    pub(crate) fn naming(self, state: &SharedState, context: &RequestContext, lacks: &[Lack]) -> Self {
        let mut parts: Vec<&str> = Vec::new();
        for lack in lacks {
            if !parts.contains(&lack.at.as_str()) {
                parts.push(&lack.at);
            }
        }
        if parts.is_empty() {
            return self;
        }
        let said =
            state.phrases.text(context.lang, "lacks-parts", &[("parts", &parts.join(context.lang.comma()))]);
        self.and(context.lang, &said.unwrap_or_default())
    }

    /// Adds why the answer was not continued, where another target gave another one.
    pub(crate) fn after_other_answer(
        self,
        state: &SharedState,
        context: &RequestContext,
        differs: bool,
    ) -> Self {
        if !differs {
            return self;
        }
        let said = state.phrases.text(context.lang, "answer-differs", &[]).unwrap_or_default();
        self.and(context.lang, &said)
    }

    /// Adds one sentence about what failed.
    fn and(mut self, lang: Lang, said: &str) -> Self {
        self.message = joined(lang, [self.message.as_str(), said]);
        self.whole = joined(lang, [self.message.as_str(), &self.suggestion]);
        self
    }

    /// Adds the operator's last step, where something is parked: fixing the cause alone does not resume it.
    pub(crate) fn and_resume(
        mut self,
        state: &SharedState,
        plan: &Plan,
        context: &RequestContext,
        parked: Option<&ScopeKey>,
    ) -> Self {
        // A rejected key is replaced, and the new one is used at once: nothing needs to be resumed.
        let Some(key) = parked.filter(|key| key.level() != ScopeLevel::Key) else { return self };
        // The place of a store is not for strangers.
        let is_here = is_on_this_machine(plan, context);
        let flags = if is_here { state.operator.flags.as_str() } else { "" };
        let command = format!("koboshi resume {}{flags}", quoted(&key.to_string()));
        let id = if is_here { "parked-resume" } else { "parked-resume-there" };
        let said = state.phrases.text(context.lang, id, &[("command", &command)]).unwrap_or_default();
        self.suggestion = joined(context.lang, [self.suggestion.as_str(), &said]);
        self.whole = joined(context.lang, [self.whole.as_str(), &said]);
        self
    }
}

/// A name quoted as one word of a shell.
fn quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ":/._-".contains(c);
    if name.chars().all(is_plain) { name.to_owned() } else { format!("'{}'", name.replace('\'', "'\\''")) }
}

/// The sentences for a fault with this status. `until` is when another try may help, and the current time.
pub(crate) fn sentences(
    state: &SharedState,
    plan: &Plan,
    context: &RequestContext,
    fault: &Fault,
    status: u16,
    until: Option<(Timestamp, Timestamp)>,
    provider: Option<&str>,
) -> Sentences {
    let (phrases, lang) = (&state.phrases, context.lang);
    let say = |id: &str, args: &[(&str, &str)]| phrases.text(lang, id, args).unwrap_or_default();
    let (message, suggestion) = match fault.kind {
        // A status alone: nothing says why, or that waiting does not help.
        _ if is_bare(fault) => {
            // With this status it is a key of the gateway's that was refused, and not the client's.
            let is_gateways = status == 502 && !is_operator_reading(plan, context);
            let id = format!("{}bare-{}", if is_gateways { "gateway-" } else { "" }, fault.kind.name());
            (say(&format!("{id}.message"), &[]), say(&format!("{id}.suggestion"), &[]))
        }
        Kind::Unauthorized if status == 502 => {
            (say("gateway-key-refused.message", &[]), say("gateway-key-refused.suggestion", &[]))
        }
        Kind::PermissionDenied if fault.sub.is_none() && status == 502 => {
            (say("gateway-key-forbidden.message", &[]), say("gateway-key-forbidden.suggestion", &[]))
        }
        Kind::Internal if fault.origin == Origin::Provider => {
            (say("provider-internal.message", &[]), say("provider-internal.suggestion", &[]))
        }
        _ => (phrases.fault_message(lang, fault), phrases.fault_suggestion(lang, fault)),
    };
    let (message, suggestion) = match (own_key(plan, context, fault, status, provider), provider) {
        (Some(key), _) => {
            let config = state.operator.config.as_str();
            let place = say(key.place_phrase, &[("name", &key.name), ("config", config)]);
            let args = [("provider", key.provider), ("place", place.as_str())];
            let part = |part: &str| say(&format!("{}.{part}", key.phrase), &args);
            (part("message"), part("suggestion"))
        }
        (None, Some(provider)) if is_of_provider(fault) => {
            let named = say("named-provider", &[("name", provider)]);
            (joined(lang, [message.as_str(), &named]), suggestion)
        }
        _ => (message, suggestion),
    };
    // The simulated provider has no address that could be wrong.
    let is_played = provider.is_some_and(|provider| is_simulated(plan, provider));
    let suggestion =
        if is_played && suggestion.contains("base_url") { say("simulated-failure", &[]) } else { suggestion };
    let detail = detail(plan, context, fault);
    let when = until
        .filter(|(until, now)| !is_only_a_hint(fault, *until, *now))
        .map(|(until, now)| try_again(phrases, lang, until, now, state.zone_of(context)))
        .filter(|when| !when.is_empty());
    // The quota may go on then, but that is when the next request can find out.
    let hint = until.filter(|(until, now)| is_only_a_hint(fault, *until, *now));
    let stated = hint.and_then(|(until, now)| {
        let caveat = short_of_the_reset(fault, left(until, now)).filter(|_| fault.wait.is_some())?;
        let then = try_again(phrases, lang, until, now, state.zone_of(context));
        Some(joined(lang, [then.as_str(), &say(meanwhile(fault), &[]), &say(caveat, &[])]))
    });
    let next = hint.map(|(until, now)| asks_again(phrases, lang, until, now, state.zone_of(context)));
    let passes = passes_by_itself(fault);
    // "In a few minutes" beside a time would contradict it, and so would "when the day ends" beside a stated wait.
    let suggestion = match (&when, &passes) {
        (Some(when), Passes::Alone) => when.clone(),
        _ => {
            stated.unwrap_or_else(|| joined(lang, [suggestion.as_str(), next.as_deref().unwrap_or_default()]))
        }
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

/// A key of the gateway that a provider refused, for a reader who can set it.
#[derive(Debug)]
struct OwnKey<'a> {
    phrase: &'static str,
    provider: &'a str,
    /// Where the key is set: a key of the config, or a variable.
    place_phrase: &'static str,
    name: String,
}

/// On a gateway of this machine that wants no keys, the reader is who runs it.
fn own_key<'a>(
    plan: &Plan,
    context: &RequestContext,
    fault: &Fault,
    status: u16,
    provider: Option<&'a str>,
) -> Option<OwnKey<'a>> {
    // A bare status does not say that it is the key.
    let is_own = is_operator_reading(plan, context) && !is_weak(fault);
    let provider = provider.filter(|_| is_own && status == 502)?;
    let is_simulated = is_simulated(plan, provider);
    let phrase = match fault.kind {
        // It plays the failure that its model names, and has no key.
        Kind::Unauthorized | Kind::PermissionDenied if is_simulated => "own-key-simulated",
        Kind::Unauthorized => "own-key-refused",
        Kind::PermissionDenied if fault.sub.is_none() => "own-key-forbidden",
        _ => return None,
    };
    Some(match well_known::key_variable(provider).filter(|_| !plan.is_described) {
        Some(name) => OwnKey { phrase, provider, place_phrase: "key-in-variable", name: name.to_owned() },
        None => {
            let name = format!("providers.{provider}.keys");
            OwnKey { phrase, provider, place_phrase: "key-in-config", name }
        }
    })
}

/// Whether it makes its answers up.
fn is_simulated(plan: &Plan, provider: &str) -> bool {
    let kind = plan.config.providers.get(provider).map(|config| config.kind);
    kind.map_or(provider == "sim", |kind| kind == ProviderKind::Sim)
}

/// Whether the reader of an error runs the gateway: it is on the reader's own machine and needs no keys of clients.
fn is_operator_reading(plan: &Plan, context: &RequestContext) -> bool {
    is_on_this_machine(plan, context) && !plan.keys.are_needed()
}

/// Whether the reader is a program on the gateway's machine, as far as can be known.
fn is_on_this_machine(plan: &Plan, context: &RequestContext) -> bool {
    context.is_local && plan.config.serve.is_loopback()
}

/// Whether the reader wants to know whose fault it is. What the client can mend is explained in the provider's own words.
fn is_of_provider(fault: &Fault) -> bool {
    // A path that a provider does not have is written in the config, and not by the client.
    fault.sub == Some(Sub::Path)
        || matches!(fault.origin, Origin::Provider | Origin::Transport) && !is_mended_by_client(fault.kind)
}

/// Whether a time is not the end of its fault: Gemini states seconds beside a daily quota, which lasts longer.
fn is_only_a_hint(fault: &Fault, until: Timestamp, now: Timestamp) -> bool {
    is_weak(fault) || short_of_the_reset(fault, left(until, now)).is_some()
}

fn left(until: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(until.duration_since(now)).unwrap_or_default()
}

/// Whether only a bare status suggests that an operator must act: the provider is asked again after a while.
fn is_weak(fault: &Fault) -> bool {
    fault.confidence == Confidence::Low && matches!(Class::of(fault), Class::Auth | Class::Billing)
}

/// How a fault ends.
enum Passes {
    /// With time: there is nothing to do but wait.
    Alone,
    /// With time, and there is something to do meanwhile.
    Meanwhile,
    /// When an operator fixes something.
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

/// The other side's message, where the client may see it: a provider's words about a request that the client can fix, or an operator's
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

/// Whether the client caused a fault of this kind, or can fix it: then it needs the provider's message.
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

/// Joins sentences, with a space between them where the language has one.
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
