//! The error object that Koboshi itself writes, read by its fields.
//!
//! Every error of a Koboshi gateway carries a `koboshi` object, in each dialect and inside streams too. It states kind, sub and wait,
//! so no sentence needs to be read: behind another gateway, in a saved `curl -i` and in a log the fault is the one that the gateway
//! decided on. The object is only believed where it names a known kind and a code: anything else under that name is passed over.

use std::ops::Range;

use serde_json::Value;

use crate::fault::{Confidence, Fault, Kind, Origin, Scope, Sub};
use crate::wait::{Clock, Wait, field_wait};

/// The rule that evidence names where an error object of Koboshi itself decided.
pub const OWN_ERROR: &str = "koboshi.error";

const NAME: &str = "\"koboshi\"";
/// More such names than a stream of a real answer has.
const MAX_PLACES: usize = 4096;

/// What the object states.
#[derive(Debug)]
pub(in crate::classify) struct OwnError {
    kind: Kind,
    sub: Option<Sub>,
    /// Whole seconds, as they are written.
    retry_after: Option<String>,
    retryable: Option<bool>,
    /// Whether the same target, and whether another one, may be tried. An older gateway does not state it.
    same: Option<bool>,
    other: Option<bool>,
    scope: Option<Scope>,
    origin: Option<Origin>,
    /// The provider's message where it was handed on, else Koboshi's own.
    message: String,
}

impl OwnError {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let text = |name: &str| value.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
        let kind = Kind::from_name(text("kind")?)?;
        text("errorCode")?;
        Some(Self {
            kind,
            sub: text("sub").and_then(Sub::from_name),
            retry_after: value.get("retryAfterSeconds").filter(|wait| wait.is_number()).map(Value::to_string),
            retryable: value.get("retryable").and_then(Value::as_bool),
            same: value.pointer("/advice/same").and_then(Value::as_bool),
            other: value.pointer("/advice/other").and_then(Value::as_bool),
            scope: text("scope").and_then(Scope::from_name),
            origin: text("origin").and_then(Origin::from_name),
            message: text("detail").or_else(|| text("message")).unwrap_or_default().to_owned(),
        })
    }

    /// What the headers of a gateway's answer state, where no body came with them.
    pub(super) fn of_headers(headers: &[(&str, &str)]) -> Option<Self> {
        let header = |wanted: &str| {
            let found = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            found.map(|(_, value)| value.trim())
        };
        Some(Self {
            kind: Kind::from_name(header("x-koboshi-fault")?)?,
            sub: None,
            retry_after: None,
            retryable: None,
            same: None,
            other: None,
            scope: None,
            origin: None,
            message: String::new(),
        })
    }

    pub(in crate::classify) fn wait(&self, clock: Clock<'_>) -> Option<Wait> {
        self.retry_after.as_deref().and_then(|seconds| field_wait("retryAfterSeconds", seconds, clock))
    }

    /// The fault as it was stated.
    pub(in crate::classify) fn fault(&self) -> Fault {
        let mut fault = Fault::of(self.kind, OWN_ERROR);
        fault.sub = self.sub;
        fault.confidence = Confidence::High;
        fault.origin = self.origin.unwrap_or(fault.origin);
        fault.scope = match self.scope {
            Some(scope) => scope,
            // An operator takes a target out of use, not an account.
            None if self.kind == Kind::CoolingDown && self.sub == Some(Sub::Operator) => Scope::Model,
            None => fault.scope,
        };
        fault.advice.later = self
            .retryable
            .unwrap_or(fault.advice.later && !matches!(self.sub, Some(Sub::Billing | Sub::Plan)));
        fault.advice.same = self.same.unwrap_or(fault.advice.same);
        fault.advice.other = self.other.unwrap_or(fault.advice.other);
        fault.detail.clone_from(&self.message);
        fault
    }
}

/// Where the error object begins. The same name stands before marks of other kinds: `{"koboshi":{"simulated":true}}` is no error.
pub(super) fn place(body: &str) -> Option<Range<usize>> {
    let places = memchr::memmem::find_iter(body.as_bytes(), NAME.as_bytes()).take(MAX_PLACES);
    places.map(|at| at..at + NAME.len()).find(|place| {
        let rest = body.get(place.end..).unwrap_or_default().trim_start();
        let value = rest.strip_prefix(':').map(|rest| serde_json::Deserializer::from_str(rest).into_iter());
        let object: Option<Value> = value.and_then(|mut values| values.next()).and_then(Result::ok);
        object.is_some_and(|object| OwnError::read(&object).is_some())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_object_with_a_known_kind_and_a_code_is_believed() {
        let whole = json!({"kind": "quota_exceeded", "errorCode": "KBS-3002", "sub": "day", "retryable": true, "message": "m", "detail": "d"});
        let fault = OwnError::read(&whole).map(|own| own.fault()).unwrap();
        assert_eq!(
            (fault.kind, fault.sub, fault.confidence),
            (Kind::QuotaExceeded, Some(Sub::Day), Confidence::High)
        );
        assert_eq!(fault.detail, "d");
        let cooled = json!({"kind": "cooling_down", "errorCode": "KBS-7003", "sub": "operator", "scope": "account", "detail": "d"});
        let scope = |value: &Value| OwnError::read(value).map(|own| own.fault().scope);
        assert_eq!(scope(&cooled), Some(Scope::Account), "what an operator cooled is stated");
        let before = json!({"kind": "cooling_down", "errorCode": "KBS-7003", "sub": "operator"});
        assert_eq!(scope(&before), Some(Scope::Model), "an older gateway does not state it");
        let stated = json!({"kind": "internal", "errorCode": "KBS-9001", "retryable": true, "advice": {"same": true, "other": true}});
        let advice = OwnError::read(&stated).map(|own| own.fault().advice).unwrap();
        assert!(advice.same && advice.other && advice.later, "a provider's 500 is not like our own");
        for other in [
            json!({"kind": "quota_exceeded"}),
            json!({"kind": "no_such_kind", "errorCode": "KBS-1"}),
            json!({"source": "cache"}),
            json!("text"),
        ] {
            assert!(OwnError::read(&other).is_none(), "{other}");
        }
    }
}
