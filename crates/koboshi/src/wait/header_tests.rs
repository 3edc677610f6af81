//! Tests of the waits in headers, at noon UTC on 2026-11-15.

use super::*;
use jiff::tz::TimeZoneDatabase;
use proptest::prelude::*;

type Headers<'a> = &'a [(&'a str, &'a str)];

fn with_clock<T>(read: impl Fn(Clock<'_>) -> T) -> T {
    let zones = TimeZoneDatabase::bundled();
    let now = "2026-11-15T12:00:00[UTC]".parse().unwrap();
    read(Clock { now: &now, zones: &zones })
}

fn outright(headers: Headers<'_>) -> Option<f64> {
    with_clock(|clock| header_wait(headers.iter().copied(), clock).map(|wait| wait.after.as_secs_f64()))
}

fn bucket(headers: Headers<'_>) -> Option<f64> {
    with_clock(|clock| {
        exhausted_bucket_wait(headers.iter().copied(), clock).map(|wait| wait.after.as_secs_f64())
    })
}

#[test]
fn retry_after_in_all_spellings() {
    let table: &[(Headers<'_>, Option<f64>)] = &[
        (&[("retry-after", "37")], Some(37.0)),
        (&[("Retry-After", " 1.5 ")], Some(1.5)),
        (&[("retry-after", "0")], Some(0.0)),
        (&[("retry-after", "2"), ("Retry-After-Ms", "1274")], Some(1.274)),
        (&[("retry-after", "2"), ("retry-after-ms", "junk")], Some(2.0)),
        (&[("retry-after", "Sun, 15 Nov 2026 12:00:10 GMT")], Some(10.0)),
        (&[("retry-after", "Sunday, 15-Nov-26 12:00:10 GMT")], Some(10.0)),
        (&[("retry-after", "Sun Nov 15 12:00:10 2026")], Some(10.0)),
        (&[("retry-after", "Sat, 14 Nov 2026 12:00:10 GMT")], Some(0.0)),
        (&[("retry-after", "20s")], Some(20.0)),
        (&[("retry-after", "-5")], None),
        (&[("retry-after", "soon")], None),
        (&[("retry-after", "")], None),
        (&[("retry-after", "99999999999999999999")], Some(31_622_400.0)),
        (&[("retry-after", "1794744010")], Some(10.0)),
        (&[("content-type", "5")], None),
    ];
    for (headers, seconds) in table {
        assert_eq!(outright(headers), *seconds, "{headers:?}");
    }
}

#[test]
fn only_used_up_buckets_count() {
    let table: &[(Headers<'_>, Option<f64>)] = &[
        (
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "8.64s"),
                ("x-ratelimit-remaining-tokens", "149984"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            Some(8.64),
        ),
        (
            &[
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "20ms"),
                ("x-ratelimit-remaining-tokens", "0"),
                ("x-ratelimit-reset-tokens", "6m0s"),
            ],
            Some(360.0),
        ),
        (
            &[
                ("Anthropic-RateLimit-Input-Tokens-Remaining", "0"),
                ("anthropic-ratelimit-input-tokens-reset", "2026-11-15T12:00:37Z"),
                ("anthropic-ratelimit-requests-remaining", "10"),
                ("anthropic-ratelimit-requests-reset", "2026-11-15T13:00:37Z"),
            ],
            Some(37.0),
        ),
        (&[("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1794744060000")], Some(60.0)),
        (&[("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", "1794744060")], Some(60.0)),
        (&[("X-RateLimit-Remaining", "3"), ("X-RateLimit-Reset", "1794744060")], None),
        (&[("x-rate-limit-remaining", "0"), ("x-rate-limit-reset", "1794744060")], Some(60.0)),
        (&[("ratelimitbysize-remaining", "0"), ("ratelimitbysize-reset", "34")], Some(34.0)),
        (&[("ratelimit-remaining", "0"), ("ratelimit-reset", "34")], Some(34.0)),
        (&[("ratelimit-reset", "34")], None),
        (&[("RateLimit", "limit=10, remaining=0, reset=34")], Some(34.0)),
        (&[("RateLimit", "limit=10, remaining=1, reset=34")], None),
        (&[("RateLimit", "\"burst\";r=0;t=34, \"daily\";r=5;t=3600")], Some(34.0)),
        (
            &[
                ("anthropic-ratelimit-unified-status", "rejected"),
                ("anthropic-ratelimit-unified-reset", "1794744060"),
            ],
            Some(60.0),
        ),
        (
            &[
                ("anthropic-ratelimit-unified-status", "allowed"),
                ("anthropic-ratelimit-unified-reset", "1794744060"),
            ],
            None,
        ),
        (
            &[
                ("anthropic-ratelimit-unified-5h-status", "rejected"),
                ("anthropic-ratelimit-unified-5h-reset", "1794744060"),
                ("anthropic-ratelimit-unified-7d-status", "allowed"),
                ("anthropic-ratelimit-unified-7d-reset", "1794844060"),
            ],
            Some(60.0),
        ),
        (
            &[
                ("anthropic-ratelimit-unified-overage-status", "rejected"),
                ("anthropic-ratelimit-unified-overage-reset", "1794844060"),
                ("anthropic-ratelimit-unified-reset", "1794844060"),
            ],
            None,
        ),
        (
            &[
                ("anthropic-ratelimit-unified-7d-status", "rejected"),
                ("anthropic-ratelimit-unified-reset", "1794744060"),
            ],
            Some(60.0),
        ),
        (&[("x-ratelimit-type", "UserByModelByMinute"), ("x-ratelimit-timeremaining", "27")], Some(27.0)),
        (&[("x-ratelimit-remaining", "9"), ("x-ratelimit-timeremaining", "27")], None),
    ];
    for (headers, seconds) in table {
        assert_eq!(bucket(headers), *seconds, "{headers:?}");
    }
}

#[test]
fn headers_are_found_in_text() {
    let table: &[(&str, Headers<'_>)] = &[
        ("HTTP 429\nRetry-After: 120\n\n{}", &[("Retry-After", "120")]),
        ("retry-after=13262", &[("retry-after", "13262")]),
        (
            "status=429 x-ratelimit-remaining-requests: 0 x-ratelimit-reset-requests: 1s",
            &[("x-ratelimit-remaining-requests", "0"), ("x-ratelimit-reset-requests", "1s")],
        ),
        (
            "headers: anthropic-ratelimit-input-tokens-reset: 2025-04-30T13:32:11Z, retry-after: 4, body: x",
            &[("anthropic-ratelimit-input-tokens-reset", "2025-04-30T13:32:11Z"), ("retry-after", "4")],
        ),
        ("{'retry-after': '20', 'date': 'x'}", &[("retry-after", "20")]),
        ("{\"x-ratelimit-reset\":\"1741305600000\"}", &[("x-ratelimit-reset", "1741305600000")]),
        ("{\\\"X-RateLimit-Reset\\\":\\\"1741305600000\\\"}", &[("X-RateLimit-Reset", "1741305600000")]),
        ("(b'retry-after', b'20')", &[("retry-after", "20")]),
        ("('retry-after', '20')", &[("retry-after", "20")]),
        (
            "map[Retry-After:[20] X-Ratelimit-Reset:[1741305600]]",
            &[("Retry-After", "20"), ("X-Ratelimit-Reset", "1741305600")],
        ),
        ("'retry-after' => '20'", &[("retry-after", "20")]),
        ("retry-after: 4.", &[("retry-after", "4")]),
        (
            "Retry-After: Sun, 15 Nov 2026 12:00:10 GMT, x: y",
            &[("Retry-After", "Sun, 15 Nov 2026 12:00:10 GMT")],
        ),
        (
            "'retry-after': 'Sun, 15 Nov 2026 12:00:10 GMT'",
            &[("retry-after", "Sun, 15 Nov 2026 12:00:10 GMT")],
        ),
        ("please retry-after lunch; x-retry-after: 5; see docs/rate-limits: 5", &[("rate-limits", "5")]),
        ("retry-after:\n5", &[]),
    ];
    for (text, headers) in table {
        assert_eq!(headers_in_text(text), *headers, "{text}");
    }
    assert_eq!(headers_in_text(&"retry-after: 5 ".repeat(1_000)).len(), MAX_HEADERS);
}

proptest! {
    #[test]
    fn any_headers_are_read_without_panic(pairs in prop::collection::vec((".{0,30}", ".{0,40}"), 0..8)) {
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let _ = (outright(&pairs), bucket(&pairs));
    }

    #[test]
    fn any_text_is_searched_without_panic(text in "(retry-after|x-ratelimit-reset|[:='\" \\\\,é時0-9]|.){0,40}") {
        prop_assert!(headers_in_text(&text).len() <= MAX_HEADERS);
        let with_date = format!("retry-after: Sun{text}");
        let _ = headers_in_text(&with_date);
    }
}
