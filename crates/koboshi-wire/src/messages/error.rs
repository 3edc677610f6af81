//! Errors in the envelope of this dialect.
//!
//! The official clients choose their exception by the status and show the message; inside a stream the word in `type` is all they have. Claude
//! Code comes back by itself whenever it reads `overloaded_error`, whatever the headers say, so an error that is final never uses that word. It
//! shows the message as it is: a time at which it is worth another try is said in it.

use std::borrow::Cow;

use bytes::Bytes;
use koboshi::fault::Kind;
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::json;

/// By these words Claude Code knows that the conversation must be made shorter.
const TOO_LONG: &str = "prompt is too long";

/// An error as the body of an answer.
#[must_use]
pub fn body(failure: &Failure<'_>) -> Bytes {
    let mut text = Vec::new();
    push(&mut text, failure);
    text.into()
}

/// Adds the envelope.
pub(super) fn push(text: &mut Vec<u8>, failure: &Failure<'_>) {
    let message = message(failure);
    let error = Said { r#type: word(failure), message: &message, koboshi: failure.koboshi };
    json::write(text, &Envelope { r#type: "error", error, request_id: failure.request_id });
}

/// The vendor's word for it.
fn word(failure: &Failure<'_>) -> &'static str {
    match failure.status {
        400 | 422 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        408 | 504 => "timeout_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        405..=499 => "invalid_request_error",
        _ => by_kind(failure),
    }
}

/// The word where the status says only that it is the server's fault.
fn by_kind(failure: &Failure<'_>) -> &'static str {
    match failure.kind {
        Kind::Timeout => "timeout_error",
        Kind::RateLimited | Kind::QuotaExceeded => "rate_limit_error",
        Kind::Overloaded | Kind::Unavailable | Kind::CoolingDown if !failure.is_final => "overloaded_error",
        _ => "api_error",
    }
}

fn message<'a>(failure: &Failure<'a>) -> Cow<'a, str> {
    let mut message = Cow::Borrowed(failure.message);
    if failure.kind == Kind::ContextTooLarge && !message.to_ascii_lowercase().contains(TOO_LONG) {
        message = Cow::Owned(format!("{TOO_LONG}: {message}"));
    }
    if let Some(time) = failure.resets_at.and_then(utc).filter(|time| !message.contains(time.as_str())) {
        let said = message.trim_end_matches('.');
        message = Cow::Owned(format!("{said}. Try again at {time}."));
    }
    message
}

/// A time of the years 1970 to 9999 as people read it: `2026-11-16 09:27 UTC`. Rounded up: a minute too early would be a try in vain.
fn utc(seconds: i64) -> Option<String> {
    let minutes = u64::try_from(seconds).ok().filter(|seconds| *seconds < 253_402_300_740)?.div_ceil(60);
    let (year, month, day) = date(minutes / 1440);
    Some(format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", minutes / 60 % 24, minutes % 60))
}

/// The date so many days after the beginning of 1970, by the usual arithmetic of years that begin in March.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    (era * 400 + year + if month <= 2 { 1 } else { 0 }, month, day)
}

#[derive(Serialize)]
struct Envelope<'a> {
    r#type: &'static str,
    error: Said<'a>,
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Said<'a> {
    r#type: &'static str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    koboshi: Option<&'a Value>,
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_said_as_people_read_them() {
        for (seconds, said) in [
            (0, "1970-01-01 00:00 UTC"),
            (1, "1970-01-01 00:01 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_709_251_199, "2024-03-01 00:00 UTC"),
            (1_794_821_220, "2026-11-16 09:27 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(utc(seconds).as_deref(), Some(said));
        }
        assert_eq!((utc(-1), utc(i64::MAX)), (None, None));
    }
}
