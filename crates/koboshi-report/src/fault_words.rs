//! The sentences for one fault, where more than its kind decides them.
//!
//! A status alone says that the provider refused, and not why: its sentence claims no more than that. A quota of one model leaves the other
//! models of the account in use, and its sentence says so.
//!
//! What this file does not do: waits, and who reads the sentence. Those are the callers' business.

use koboshi::cooldown::Class;
use koboshi::fault::{Confidence, Fault, Kind, Scope, Sub};

use crate::phrase::{Lang, Phrases};

impl Phrases {
    /// What failed, in one or two sentences.
    #[must_use]
    pub fn fault_message(&self, lang: Lang, fault: &Fault) -> String {
        self.of_fault(lang, fault, "message").unwrap_or_else(|| self.message(lang, fault.kind, fault.sub))
    }

    /// What to do about it.
    #[must_use]
    pub fn fault_suggestion(&self, lang: Lang, fault: &Fault) -> String {
        self.of_fault(lang, fault, "suggestion")
            .unwrap_or_else(|| self.suggestion(lang, fault.kind, fault.sub))
    }

    /// What the rule that decided says by itself, where its kind or category would say less: what failed, and what to do.
    #[must_use]
    pub fn of_rule(&self, lang: Lang, fault: &Fault) -> Option<(String, String)> {
        let id = format!("rule-{}", fault.evidence.rule.replace('.', "-"));
        let part = |part: &str| self.text(lang, &format!("{id}.{part}"), &[]);
        Some((part("message")?, part("suggestion")?))
    }

    fn of_fault(&self, lang: Lang, fault: &Fault, part: &str) -> Option<String> {
        let kind = fault.kind.name();
        if let Some((message, suggestion)) = self.of_rule(lang, fault) {
            return Some(if part == "message" { message } else { suggestion });
        }
        if is_bare(fault) {
            return self.text(lang, &format!("bare-{kind}.{part}"), &[]);
        }
        if !is_of_model(fault) {
            return None;
        }
        let finer =
            fault.sub.and_then(|sub| self.text(lang, &format!("model-{kind}-{}.{part}", sub.name()), &[]));
        finer.or_else(|| self.text(lang, &format!("model-{kind}.{part}"), &[]))
    }
}

/// Whether nothing but a status says that a person must act: a bare 401, 402 or 403.
#[must_use]
pub fn is_bare(fault: &Fault) -> bool {
    let is_only_a_status = fault.confidence == Confidence::Low && fault.status.is_some();
    is_only_a_status && matches!(Class::of(fault), Class::Auth | Class::Billing)
}

/// Whether a quota is that of one model, so that other models of the account may answer.
#[must_use]
pub fn is_of_model(fault: &Fault) -> bool {
    let is_named = !matches!(fault.sub, Some(Sub::Billing | Sub::Plan));
    fault.kind == Kind::QuotaExceeded && fault.scope == Scope::Model && is_named
}

/// The phrase that says why a stated wait may not be the end of a long quota; none where the wait may well be it.
#[must_use]
pub fn short_of_the_reset(fault: &Fault, left: std::time::Duration) -> Option<&'static str> {
    /// A shorter wait is hardly the end of a day.
    const SHORT: std::time::Duration = std::time::Duration::from_secs(3600);
    let is_short = fault.kind == Kind::QuotaExceeded && !left.is_zero() && left < SHORT;
    match fault.sub.filter(|_| is_short) {
        Some(Sub::Day) => Some("wait-not-the-day"),
        Some(Sub::Month) => Some("wait-not-the-month"),
        _ => None,
    }
}

/// The phrase for what to use until a quota is there again.
#[must_use]
pub fn meanwhile(fault: &Fault) -> &'static str {
    if is_of_model(fault) { "wait-meanwhile-model" } else { "wait-meanwhile-account" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(kind: Kind, sub: Option<Sub>, status: u16) -> Fault {
        let mut fault = Fault::of(kind, "test");
        (fault.sub, fault.status) = (sub, Some(status));
        fault
    }

    #[test]
    fn a_bare_status_claims_no_cause() {
        let phrases = Phrases::new().unwrap();
        for (kind, sub, status) in [
            (Kind::Unauthorized, None, 401),
            (Kind::QuotaExceeded, Some(Sub::Billing), 402),
            (Kind::PermissionDenied, None, 403),
        ] {
            let known = fault(kind, sub, status);
            let mut bare = known.clone();
            bare.confidence = Confidence::Low;
            for lang in [Lang::En, Lang::Ja] {
                assert!(phrases.fault_message(lang, &bare).contains(&status.to_string()), "{kind:?}");
                assert_eq!(phrases.fault_message(lang, &known), phrases.message(lang, kind, sub));
                let said = phrases.fault_suggestion(lang, &bare);
                assert!(!said.contains("Waiting") && !said.contains("待っても"), "{said}");
            }
        }
    }

    #[test]
    fn a_quota_of_one_model_names_the_model_and_another_one() {
        let phrases = Phrases::new().unwrap();
        let account = fault(Kind::QuotaExceeded, Some(Sub::Day), 429);
        let mut model = account.clone();
        model.scope = Scope::Model;
        assert!(!phrases.fault_message(Lang::En, &account).contains("model"));
        assert!(phrases.fault_message(Lang::En, &model).contains("this model"));
        assert!(phrases.fault_suggestion(Lang::En, &model).contains("another model"));
        assert!(phrases.fault_suggestion(Lang::Ja, &model).contains("別のモデル"));
        assert!(phrases.cause(Lang::En, &model).contains("this model"));
    }
}
