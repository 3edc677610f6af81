//! A limit that cannot be read is never guessed: another dialect does not get such a request, and its field is named. The client's own
//! dialect gets it as it is.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use bytes::Bytes;
use koboshi_wire::Dialect;
use koboshi_wire::any::{Edits, Request, TargetTraits};

const DIALECTS: [Dialect; 4] = [Dialect::Chat, Dialect::Messages, Dialect::Responses, Dialect::Gemini];

/// A request with this number in it.
fn asking(dialect: Dialect, field: &str, number: &str) -> Bytes {
    Bytes::from(match dialect {
        Dialect::Chat => {
            format!(r#"{{"model":"m","{field}":{number},"messages":[{{"role":"user","content":"hi"}}]}}"#)
        }
        Dialect::Messages => {
            let limit = if field == "max_tokens" { "" } else { r#""max_tokens":5,"# };
            format!(
                r#"{{"model":"m",{limit}"{field}":{number},"messages":[{{"role":"user","content":"hi"}}]}}"#
            )
        }
        Dialect::Responses => format!(r#"{{"model":"m","{field}":{number},"input":"hi"}}"#),
        Dialect::Gemini => {
            let field = field.trim_start_matches("generationConfig.");
            format!(
                r#"{{"generationConfig":{{"{field}":{number}}},"contents":[{{"parts":[{{"text":"hi"}}]}}]}}"#
            )
        }
    })
}

/// The field that stands in the way of each other dialect, if one does.
fn refused(dialect: Dialect, body: &Bytes) -> Option<String> {
    let request = Request::parse(dialect, body, Some(("m", false))).unwrap();
    let named = request.unreadable_number().and_then(|error| Some(error.param()?.into_owned()));
    for to in DIALECTS {
        let written =
            request.write(body, TargetTraits { dialect: to, ..TargetTraits::default() }, &Edits::plain("m"));
        let lacks = written.lacks().filter(|left| left.rule == "needs_readable_number");
        let wanted = if to == dialect { None } else { named.clone() };
        assert_eq!(
            lacks.map(|left| left.at.clone()),
            wanted,
            "{dialect:?} to {to:?}: {}",
            body.escape_ascii()
        );
        if to == dialect {
            assert_eq!(written.body, body, "its own dialect gets the bytes");
        }
    }
    named
}

/// Every field in every dialect: counts, and levels.
fn fields(dialect: Dialect) -> (&'static [&'static str], &'static [&'static str]) {
    match dialect {
        Dialect::Chat => (&["max_tokens", "max_completion_tokens", "n"], &["temperature", "top_p"]),
        Dialect::Messages => (&["max_tokens"], &["temperature", "top_p"]),
        Dialect::Responses => (&["max_output_tokens"], &["temperature", "top_p"]),
        Dialect::Gemini => (
            &["generationConfig.maxOutputTokens", "generationConfig.candidateCount"],
            &["generationConfig.temperature", "generationConfig.topP"],
        ),
    }
}

#[test]
fn a_number_that_cannot_be_read_is_not_translated_and_its_field_is_named() {
    for dialect in DIALECTS {
        let (counts, levels) = fields(dialect);
        for field in counts.iter().chain(levels) {
            for number in ["-1", "-0.5", "1e999", "-1e999", "\"five\"", "\"\"", "\"NaN\"", "true", "[]", "{}"]
            {
                let body = asking(dialect, field, number);
                assert_eq!(refused(dialect, &body).as_deref(), Some(*field), "{field}: {number}");
            }
        }
        for field in counts {
            for number in ["0", "0.5", "5.5", "1e300", "99999999999999999999"] {
                let body = asking(dialect, field, number);
                assert_eq!(refused(dialect, &body).as_deref(), Some(*field), "{field}: {number}");
            }
        }
    }
}

#[test]
fn a_number_that_can_be_read_blocks_no_translation() {
    for dialect in DIALECTS {
        let (counts, levels) = fields(dialect);
        for (field, number) in counts
            .iter()
            .flat_map(|field| ["1", "5.0", "1e3", "9007199254740991", "null"].map(|number| (field, number)))
            .chain(levels.iter().flat_map(|field| {
                ["0", "0.0", "-0", "1", "1.5e-1", "2", "null"].map(|number| (field, number))
            }))
        {
            assert_eq!(refused(dialect, &asking(dialect, field, number)), None, "{field}: {number}");
        }
    }
    // In Gemini's dialect a number may be a text.
    let body = asking(Dialect::Gemini, "generationConfig.maxOutputTokens", "\"5\"");
    assert_eq!(refused(Dialect::Gemini, &body), None);
    let snake = asking(Dialect::Gemini, "max_output_tokens", "-5");
    assert_eq!(refused(Dialect::Gemini, &snake).as_deref(), Some("generationConfig.maxOutputTokens"));
    assert_eq!(
        refused(Dialect::Chat, &asking(Dialect::Chat, "max_tokens", "\"5\"")).as_deref(),
        Some("max_tokens")
    );
}
