//! The words of an error, gathered from wherever a provider or a relay put them.
//!
//! Error objects differ in shape but not in nature: somewhere there is an identifier (`code`, `type`,
//! `status`, `reason`, a header), somewhere a sentence, sometimes a wait, and sometimes the whole of
//! another error, nested as JSON in a string. Walking the object by the *names* of its fields finds them in
//! vendors that are not known yet.

use serde_json::Value;

use super::body::{Body, Data};
use super::names::{is_code, is_sentence, is_status, is_wait, is_zero_limit};
use super::own::OwnError;
use super::page::page_words;
use super::python;
use crate::wait::{Clock, Wait, field_wait};

/// The deepest nesting that real errors have; deeper ones are an attack on the stack.
const MAX_DEPTH: usize = 12;
/// More sentences than this add nothing.
const MAX_TEXTS: usize = 24;
/// How much of one sentence is read.
const MAX_TEXT: usize = 8 * 1024;

/// An error in words.
#[derive(Debug, Default)]
pub(in crate::classify) struct ErrorText {
    pub(in crate::classify) status: Option<u16>,
    /// Identifiers: codes, types, reasons.
    pub(in crate::classify) codes: Vec<String>,
    /// The field of the request that is wrong.
    pub(in crate::classify) param: Option<String>,
    /// Sentences, innermost error first where one is wrapped.
    pub(in crate::classify) messages: Vec<String>,
    /// Waits given as fields.
    pub(in crate::classify) waits: Vec<(String, String)>,
    /// Headers that a relay put into the body.
    pub(in crate::classify) headers: Vec<(String, String)>,
    pub(in crate::classify) in_band: bool,
    pub(in crate::classify) page: bool,
    /// The error is one of Koboshi's own: its fields decide, not its sentences.
    pub(in crate::classify) own: Option<OwnError>,
}

impl ErrorText {
    pub(super) fn of_answer(status: u16, headers: &[(&str, &str)], body: &Body<'_>) -> Self {
        let mut error = Self { status: Some(status), ..Self::default() };
        match body {
            Body::Empty => {}
            Body::Json(value) => error.walk("", value, 0),
            Body::Frames(frames) => {
                for frame in frames {
                    if let Data::Json(value) = &frame.data {
                        error.walk("", value, 0);
                    }
                }
            }
            Body::Page(text) => {
                error.page = true;
                error.messages.push(page_words(text));
            }
            Body::Text(text) | Body::Broken(text) => error.sentence(text, 0),
        }
        if let (Body::Json(value), true) = (body, error.messages.is_empty() && error.codes.is_empty()) {
            error.any_sentence(value, 0);
        }
        for (name, value) in headers {
            if name.eq_ignore_ascii_case("x-amzn-errortype") {
                error.codes.push(value.split(':').next().unwrap_or_default().to_owned());
            } else if name.eq_ignore_ascii_case("x-ratelimit-type") {
                error.codes.push((*value).to_owned());
            }
        }
        error
    }

    /// An error object inside an answer with a good status.
    pub(super) fn in_band(status: u16, value: &Value) -> Self {
        let mut error = Self { status: Some(status), in_band: true, ..Self::default() };
        error.walk("error", value, 0);
        error
    }

    /// The words of a log line or event.
    pub(in crate::classify) fn of_text(text: &str) -> Self {
        let mut error = Self::default();
        error.sentence(text, 0);
        error
    }

    /// The words of a client's error text, if it holds the provider's error object.
    pub(super) fn of_wrapped(text: &str) -> Option<Self> {
        embedded(text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or(text))?;
        Some(Self::of_text(text))
    }

    /// The words of a structured event.
    pub(in crate::classify) fn add_value(&mut self, value: &Value) {
        self.walk("", value, 0);
    }

    /// The first wait that is given as a field.
    pub(in crate::classify) fn field_wait(&self, clock: Clock<'_>) -> Option<Wait> {
        let own = self.own.as_ref().and_then(|own| own.wait(clock));
        own.or_else(|| self.waits.iter().find_map(|(name, value)| field_wait(name, value, clock)))
    }

    fn walk(&mut self, key: &str, value: &Value, depth: usize) {
        if depth > MAX_DEPTH || self.messages.len() >= MAX_TEXTS {
            return;
        }
        if key == "koboshi"
            && let Some(own) = OwnError::read(value)
        {
            self.own.get_or_insert(own);
            return;
        }
        match value {
            Value::Object(fields) => {
                let headers = key == "headers" || key == "responseheaders" || key == "response_headers";
                for (name, value) in fields {
                    let name = name.to_ascii_lowercase();
                    if headers {
                        self.header(&name, value);
                    } else {
                        self.walk(&name, value, depth + 1);
                    }
                }
            }
            Value::Array(items) => items.iter().take(32).for_each(|item| self.walk(key, item, depth + 1)),
            Value::String(text) if key == "param" && !text.is_empty() => {
                self.param.get_or_insert_with(|| text.clone());
            }
            Value::String(text) => self.field(key, text, depth),
            Value::Number(number) => self.number(key, &number.to_string()),
            Value::Bool(_) | Value::Null => {}
        }
    }

    /// Fields with unknown names, where no known one was there.
    fn any_sentence(&mut self, value: &Value, depth: usize) {
        match value {
            Value::String(text) if text.contains(' ') => self.sentence(text, depth),
            Value::Object(fields) if depth < 4 => {
                fields.values().for_each(|value| self.any_sentence(value, depth + 1));
            }
            Value::Array(items) if depth < 4 => {
                items.iter().take(8).for_each(|value| self.any_sentence(value, depth + 1));
            }
            _ => {}
        }
    }

    fn header(&mut self, name: &str, value: &Value) {
        let value = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        if self.headers.len() < 64 {
            self.headers.push((name.to_owned(), value));
        }
    }

    fn field(&mut self, key: &str, text: &str, depth: usize) {
        if is_wait(key) {
            self.waits.push((key.to_owned(), text.to_owned()));
        } else if is_status(key) && text.parse::<u16>().is_ok() {
            self.number(key, text);
        } else if is_zero_limit(key, text) {
            self.codes.push("quota value 0".to_owned());
        } else if is_code(key) && is_identifier(text) {
            // Vendors put this type on quota, auth and size errors alike: it says nothing.
            if !text.eq_ignore_ascii_case("invalid_request_error") {
                self.codes.push(text.to_owned());
            }
        } else if is_code(key) || is_sentence(key) {
            self.sentence(text, depth);
        } else if key == "failed_generation" {
            self.codes.push(key.to_owned());
        }
    }

    fn number(&mut self, key: &str, digits: &str) {
        if is_wait(key) {
            self.waits.push((key.to_owned(), digits.to_owned()));
        } else if is_zero_limit(key, digits) {
            self.codes.push("quota value 0".to_owned());
        } else if is_status(key)
            && let Some(status) = digits.parse().ok().filter(|status| (400..600).contains(status))
        {
            // The innermost error speaks last.
            self.status = Some(status);
        }
    }

    /// A sentence, and the error that it may carry inside as JSON.
    fn sentence(&mut self, text: &str, depth: usize) {
        let text = text.get(..text.floor_char_boundary(MAX_TEXT)).unwrap_or(text);
        if let Some((at, inner)) = embedded(text).filter(|_| depth < MAX_DEPTH) {
            let wrapper = text.get(..at).unwrap_or_default();
            self.walk("error", &inner, depth + 1);
            if let Some(status) = status_in_text(wrapper) {
                self.status =
                    Some(self.status.filter(|known| *known != 200 && *known != 500).unwrap_or(status));
            }
            self.messages.push(wrapper.to_owned());
            return;
        }
        if let Some(status) = status_in_text(text)
            && self.status.is_none_or(|known| matches!(known, 200 | 400 | 500 | 502 | 503))
        {
            self.status = Some(status);
        }
        if !text.trim().is_empty() {
            self.messages.push(text.to_owned());
        }
    }
}

/// The first object or list of objects in a text, as JSON or as Python prints it, and where it begins.
fn embedded(text: &str) -> Option<(usize, Value)> {
    let mut tries = 0;
    for (at, _) in text.match_indices(['{', '[']) {
        let rest = text.get(at..)?;
        let inner = rest.trim_start_matches('[').trim_start();
        let Some(quote) = inner.strip_prefix('{').and_then(|more| more.trim_start().chars().next()) else {
            continue;
        };
        if !matches!(quote, '"' | '\'') {
            continue;
        }
        tries += 1;
        if tries > 4 {
            return None;
        }
        let parsed = if quote == '"' {
            serde_json::Deserializer::from_str(rest).into_iter::<Value>().next().and_then(Result::ok)
        } else {
            python::read(rest)
        };
        if let Some(value @ (Value::Object(_) | Value::Array(_))) = parsed {
            return Some((at, value));
        }
    }
    None
}

/// An HTTP status that a sentence states: `status code 429`, `HTTP 503`, `Error code: 400`, `(429)`.
pub(in crate::classify) fn status_in_text(text: &str) -> Option<u16> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(offset) = bytes.get(at..).and_then(|rest| rest.iter().position(u8::is_ascii_digit)) {
        let start = at + offset;
        let len =
            bytes.get(start..).map_or(0, |rest| rest.iter().take_while(|byte| byte.is_ascii_digit()).count());
        at = start + len;
        if len != 3 {
            continue;
        }
        let status = text
            .get(start..at)
            .and_then(|digits| digits.parse().ok())
            .filter(|status| (400..600).contains(status));
        if let Some(status) = status
            && says_status(text.get(..start).unwrap_or_default(), text.get(at..).unwrap_or_default())
        {
            return Some(status);
        }
    }
    None
}

/// Whether the words around three digits make them a status.
fn says_status(before: &str, after: &str) -> bool {
    let near = before
        .get(before.floor_char_boundary(before.len().saturating_sub(24))..)
        .unwrap_or_default()
        .to_ascii_lowercase();
    let near = near.trim_end_matches([' ', ':', '=', '(', '"', '\'', '[', '#', '<', '-']);
    const CUES: &[&str] = &[
        "status", "code", "http", "http/1.1", "http/2", "http/1.0", "error", "rejected", "returned",
        "statuscode", "status_code", "got", "with", "failed", "received", "response", "exception",
        "api error", "last status",
    ];
    let cued = CUES.iter().any(|cue| near.ends_with(cue));
    const PHRASES: &[&str] = &[
        "too many", "bad request", "unauthorized", "forbidden", "not found", "service unavailable",
        "bad gateway", "internal server", "gateway time", "payment required", "payload too", "overloaded",
        "request timeout", "status code",
    ];
    let ahead = after.trim_start_matches([' ', ')', ':', '-', '_', ',']);
    let ahead = ahead.get(..ahead.floor_char_boundary(20)).unwrap_or_default().to_ascii_lowercase();
    let named = PHRASES.iter().any(|phrase| ahead.starts_with(phrase));
    let lone = before.ends_with('(') && after.starts_with(')');
    let first = before.trim().is_empty() && (after.starts_with([' ', ':', '-']) && !ahead.is_empty());
    cued || named || lone || first
}

/// A word or a few joined ones, not a sentence.
fn is_identifier(text: &str) -> bool {
    text.len() <= 120 && text.split_whitespace().count() <= 3 && !text.contains('{')
}
