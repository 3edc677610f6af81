//! A provider's answer, or the lack of one, becomes a fault or nothing.
//!
//! The way through: no answer at all is read from the HTTP client's error text; a bad status from the error
//! object it came with; a good status from the answer itself, because an error can sit inside it, a
//! stream can break off without a word, and a finish reason can mean that there is nothing to use.
//!
//! A relay's wrapper is judged by the error that it wraps, and an error inside a 200 by its own code and
//! text. What this module does not do: decide about retries, or look at requests.

mod body;
mod error;
mod names;
mod outcome;
mod own;
mod page;
mod python;

use jiff::Zoned;
use serde_json::Value;

use self::body::Body;
use self::outcome::{Ending, Outcome};
use super::Classifier;
use super::plain::{plain, push_plain};
use super::ruleset::{Conclusion, Fact, Observation, Rule};
use crate::fault::{Confidence, Fault, Kind, Origin, Sub};
use crate::wait::{Wait, exhausted_bucket_wait, header_wait, stated_wait};

pub(super) use self::error::{ErrorText, status_in_text};
pub use self::own::OWN_ERROR;
use self::own::OwnError;

/// Waits longer than this are no short window.
const LONG_WAIT_SECONDS: u64 = 3600;
/// Waits longer than this are mistakes, and not windows: no provider's window is longer than a month. The default of `cooldown.max_stated`.
const MAX_BELIEVED_SECONDS: u64 = 35 * 24 * 3600;

/// What came back from a provider.
#[derive(Debug, Clone, Copy, Default)]
pub struct Answer<'a> {
    /// HTTP status, if an answer came.
    pub status: Option<u16>,
    /// Headers; names in any case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body as far as it came: JSON, SSE, NDJSON, HTML, text or nothing.
    pub body: &'a str,
    /// The request asked for a stream.
    pub stream: bool,
    /// The HTTP client's error, if no usable answer came.
    pub transport: Option<&'a str>,
}

impl Classifier {
    /// What is wrong with this answer, if anything.
    #[must_use]
    pub fn answer(&self, answer: &Answer<'_>, now: &Zoned) -> Option<Fault> {
        if let Some(text) = answer.transport.filter(|text| answer.status.is_none() || !text.is_empty()) {
            return Some(self.transport(text, now));
        }
        let Some(status) = answer.status else { return Some(self.transport("", now)) };
        let body = Body::read(answer.body);
        if (200..300).contains(&status) {
            self.good_status(answer, &body, now)
        } else {
            let mut error = ErrorText::of_answer(status, answer.headers, &body);
            // A body says more than the name of its kind.
            error.own = error.own.or_else(|| OwnError::of_headers(answer.headers));
            Some(self.error_fault(&error, answer, now))
        }
    }

    /// What the HTTP client's error text means.
    #[must_use]
    pub fn transport(&self, text: &str, now: &Zoned) -> Fault {
        if let Some(fault) = self.wrapped(text, now) {
            return fault;
        }
        let words = plain(text);
        let mut seen =
            Observation { text: &words, all: self.rules.lexicon.scan(&words), ..Observation::default() };
        seen.fact(Fact::Transport);
        let mut fault = match self.rules.decide(&self.rules.provider, &seen) {
            Some(rule) => rule.fault(),
            None => Fault::of(Kind::ConnectionFailed, "transport.unknown"),
        };
        fault.wait = stated_wait(text, self.clock(now))
            .map(|stated| stated.wait)
            .filter(|_| fault.log_reason() != "network");
        fault.evidence.span = 0..text.len();
        fault.detail = self.detail(text);
        fault
    }

    /// What the provider's error object says that a client's error text holds: an answer did come.
    fn wrapped(&self, text: &str, now: &Zoned) -> Option<Fault> {
        let error = ErrorText::of_wrapped(text)?;
        let wait = self.answer_wait(&error, &Answer::default(), now);
        let (mut fault, known) = self.judge(&error, wait, false);
        fault.evidence.span = 0..text.len();
        known.then_some(fault)
    }

    /// What one frame of a stream means, if it reports a fault.
    ///
    /// `event` is the frame's event name, if it has one, `data` its data. A frame that shows no fault is
    /// `None`, as is one that cannot be judged alone.
    #[must_use]
    pub fn frame(&self, event: Option<&str>, data: &str, now: &Zoned) -> Option<Fault> {
        let value: Value = serde_json::from_str(data.trim()).ok()?;
        let mut outcome = Outcome::default();
        outcome.read(event, &value);
        let answer = Answer { status: Some(200), body: data, stream: true, ..Answer::default() };
        if let Some(error) = outcome.error.take() {
            return Some(self.error_fault(&ErrorText::in_band(200, &error), &answer, now));
        }
        // The shape of the whole answer is not known from one frame: only what the frame itself states.
        outcome.visible_text = true;
        self.finish_fault(&outcome, &answer)
    }

    fn good_status(&self, answer: &Answer<'_>, body: &Body<'_>, now: &Zoned) -> Option<Fault> {
        let outcome = match body {
            Body::Empty if matches!(answer.status, Some(202 | 204 | 205)) => return None,
            Body::Empty => return Some(self.unusable("answer.empty_body", answer, |_| {})),
            Body::Page(page) => return Some(self.page(page, answer, body, now)),
            Body::Text(_) | Body::Broken(_) => {
                return Some(self.unusable("answer.broken_json", answer, |_| {}));
            }
            Body::Json(value) => {
                let mut outcome = Outcome::default();
                outcome.read(None, value);
                outcome
            }
            Body::Frames(frames) => Outcome::of_frames(frames),
        };
        if let Some(error) = &outcome.error {
            return Some(self.error_fault(&ErrorText::in_band(200, error), answer, now));
        }
        match outcome.ending(answer.stream || matches!(body, Body::Frames(_))) {
            Ending::Complete if outcome.is_no_conversation() => None,
            Ending::Complete => {
                let fault = self.finish_fault(&outcome, answer)?;
                Some(
                    self.error_as_content(&outcome, answer, now)
                        .filter(|_| fault.kind == Kind::Internal)
                        .unwrap_or(fault),
                )
            }
            Ending::Cut => {
                let mut fault = Fault::of(Kind::ConnectionClosed, "answer.cut");
                fault.status = answer.status;
                fault.evidence.span = last_line(answer.body);
                Some(fault)
            }
            Ending::Unusable => Some(self.unusable("answer.no_choices", answer, |_| {})),
        }
    }

    /// A page with a good status, or with none that is known: the error that it names itself, else no API's answer.
    fn page(&self, page: &str, answer: &Answer<'_>, body: &Body<'_>, now: &Zoned) -> Fault {
        let stated = page::status_of_page(page).or(answer.status).unwrap_or(200);
        let error = ErrorText::of_answer(stated, answer.headers, body);
        let wait = self.answer_wait(&error, answer, now);
        let (mut fault, known) = self.judge(&error, wait, false);
        let is_named = stated >= 400 || fault.sub == Some(Sub::Blocked);
        if known && is_named {
            fault.status = answer.status;
            fault.evidence.span = title_or_beginning(answer.body);
            return fault;
        }
        self.unusable("answer.page", answer, |fault| {
            fault.sub = Some(Sub::NotApi);
            // No API answers at that address: the operator must change the address or sign in.
            (fault.advice.same, fault.advice.later) = (false, false);
            fault.origin = Origin::Transport;
            fault.evidence.span = title_or_beginning(answer.body);
        })
    }

    /// The error that a relay wrote where the answer's text should be.
    fn error_as_content(&self, outcome: &Outcome, answer: &Answer<'_>, now: &Zoned) -> Option<Fault> {
        let mut error = ErrorText::of_text(&outcome.beginning);
        error.status = error.status.or(answer.status);
        let wait = self.answer_wait(&error, answer, now);
        let (mut fault, known) = self.judge(&error, wait, false);
        fault.status = answer.status;
        known.then_some(fault)
    }

    fn unusable(&self, rule: &str, answer: &Answer<'_>, adjust: impl FnOnce(&mut Fault)) -> Fault {
        let mut fault = Fault::of(Kind::ResponseInvalid, rule);
        fault.status = answer.status;
        fault.evidence.span = 0..answer.body.len().min(200);
        adjust(&mut fault);
        fault
    }

    fn finish_fault(&self, outcome: &Outcome, answer: &Answer<'_>) -> Option<Fault> {
        let mut words = String::new();
        outcome.finish.iter().for_each(|reason| push_plain(&mut words, reason));
        let code = self.rules.lexicon.scan(&words);
        let mut seen = Observation { status: answer.status, text: &words, all: code, code };
        if outcome.broken_call() {
            seen.fact(Fact::ToolOpen);
        }
        if outcome.ends_in_call {
            seen.fact(Fact::EndsInCall);
        }
        if outcome.is_empty() {
            seen.fact(Fact::NoContent);
        }
        let rule = self.rules.decide(&self.rules.finish, &seen)?;
        let mut fault = rule.fault();
        fault.status = answer.status;
        fault.evidence.span = span_of(answer.body, outcome.finish.last().map_or("", String::as_str));
        Some(fault)
    }

    fn error_fault(&self, error: &ErrorText, answer: &Answer<'_>, now: &Zoned) -> Fault {
        let wait = self.answer_wait(error, answer, now);
        let (mut fault, _) = self.judge(error, wait, false);
        fault.status = answer.status;
        fault.evidence.span = if error.page {
            title_or_beginning(answer.body)
        } else if error.own.is_some() {
            own::place(answer.body).unwrap_or(0..answer.body.len().min(200))
        } else {
            span_of(answer.body, error.messages.first().map_or("", String::as_str))
        };
        fault
    }

    /// Applies the provider rules to an error, wherever it was found. The flag: a rule knew it.
    pub(super) fn judge(&self, error: &ErrorText, wait: Option<Wait>, from_log: bool) -> (Fault, bool) {
        if let Some(own) = &error.own {
            let mut fault = own.fault();
            fault.detail = self.detail(&fault.detail);
            (fault.wait, fault.status) = (wait, error.status);
            return (fault, true);
        }
        let mut codes = String::new();
        error.codes.iter().for_each(|code| push_plain(&mut codes, code));
        let code = self.rules.lexicon.scan(&codes);
        let mut words = String::with_capacity(error.messages.iter().map(|message| message.len() + 8).sum());
        error.messages.iter().for_each(|message| push_plain(&mut words, message));
        let mut seen =
            Observation { status: error.status, text: &words, all: self.rules.lexicon.scan(&words), code };
        seen.all.add(&code);
        for (fact, holds) in [(Fact::InBand, error.in_band), (Fact::Page, error.page), (Fact::Log, from_log)]
        {
            if holds {
                seen.fact(fact);
            }
        }
        let (mut fault, known) = self.decide(seen, wait);
        fault.detail = match error.messages.as_slice() {
            [only] => self.provider_text(only),
            messages => {
                // Relays put one sentence into several fields.
                let mut distinct: Vec<&str> = Vec::new();
                for message in messages.iter().map(|message| message.trim()) {
                    if !message.is_empty() && !distinct.iter().any(|known| known.contains(message)) {
                        distinct.push(message);
                    }
                }
                self.provider_text(&distinct.join(" · "))
            }
        };
        // "Invalid value: 'x'" does not help without the name of the field.
        if let Some(param) = error.param.as_ref().filter(|param| !fault.detail.contains(param.as_str())) {
            fault.detail = format!("{} (param: {})", fault.detail, self.detail(param));
        }
        (fault, known)
    }

    /// The fault of what was seen. The flag: a rule knew it.
    pub(super) fn decide(&self, mut seen: Observation<'_>, stated: Option<Wait>) -> (Fault, bool) {
        let wait = stated.filter(|wait| wait.after.as_secs() <= MAX_BELIEVED_SECONDS);
        if let Some(wait) = wait {
            seen.fact(Fact::Wait);
            if wait.after.as_secs() > LONG_WAIT_SECONDS {
                seen.fact(Fact::LongWait);
            }
        }
        let rule = self.rules.decide(&self.rules.provider, &seen);
        let mut fault = rule.map_or_else(|| Fault::of(Kind::Internal, "unknown"), Rule::<Conclusion>::fault);
        // Words that the provider's code holds too are more than a wording.
        let by_code = Observation { text: "", all: seen.code, ..seen };
        if fault.confidence == Confidence::Medium
            && rule.is_some_and(|rule| rule.has_words() && self.rules.holds(rule, &by_code))
        {
            fault.confidence = Confidence::High;
        }
        // A date decades away says nothing of a quota that the answer does not name, and no client should be advised to wait for it.
        fault.wait = if fault.kind == Kind::QuotaExceeded { stated } else { wait };
        fault.status = seen.status;
        if wait.is_some() && !fault.advice.later && fault.kind == Kind::QuotaExceeded {
            // What opens again at a stated time is a window, whatever else is offered for sale.
            fault.sub = Some(Sub::Window);
            fault.advice.later = true;
        }
        (fault, rule.is_some())
    }

    /// The stated wait, by the order in which statements are trusted.
    fn answer_wait(&self, error: &ErrorText, answer: &Answer<'_>, now: &Zoned) -> Option<Wait> {
        let clock = self.clock(now);
        let headers = answer.headers.iter().copied();
        let nested = error.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let own = error.own.as_ref().and_then(|own| own.wait(clock));
        own.or_else(|| header_wait(headers.clone(), clock))
            .or_else(|| header_wait(nested.clone(), clock))
            .or_else(|| error.field_wait(clock))
            .or_else(|| {
                error.messages.iter().find_map(|text| stated_wait(text, clock)).map(|stated| stated.wait)
            })
            .or_else(|| exhausted_bucket_wait(headers, clock))
            .or_else(|| exhausted_bucket_wait(nested, clock))
    }
}

/// Where a stream broke off: its last line that is not blank.
fn last_line(body: &str) -> std::ops::Range<usize> {
    let end = body.trim_end().len();
    let start = body.get(..end).and_then(|text| text.rfind('\n')).map_or(0, |at| at + 1);
    start..end
}

/// Where the title of a page stands: the rest of its words stand in no one line.
fn title_or_beginning(body: &str) -> std::ops::Range<usize> {
    page::title(body).filter(|title| !title.is_empty()).unwrap_or(0..body.len().min(200))
}

/// Where `needle` stands in `text`; the beginning of the text if it cannot be found as it is.
fn span_of(text: &str, needle: &str) -> std::ops::Range<usize> {
    let head = needle.get(..needle.floor_char_boundary(60)).unwrap_or_default();
    match memchr::memmem::find(text.as_bytes(), head.as_bytes()) {
        Some(at) if !head.is_empty() => at..(at + needle.len()).min(text.len()),
        _ => 0..text.len().min(200),
    }
}
