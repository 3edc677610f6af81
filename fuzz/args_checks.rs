//! What must hold for any text as the arguments of a call. The fuzz target calls this for hours; the ordinary test
//! (`crates/koboshi/tests/args_any_bytes.rs`) calls the same for a moment, on stable Rust.

use koboshi::args::{
    ArgsPolicy, Feed, Finish, MAX_EXCERPT_BYTES, MAX_MISSES, ToolSchema, Verdict, check, split_calls,
};

/// Everything the checks need, made once.
pub(crate) struct Bench {
    schemas: Vec<Option<ToolSchema>>,
}

const SCHEMAS: &[&str] = &[
    r#"{"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}, "required": ["city"]}"#,
    r#"{"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"], "additionalProperties": false}"#,
    r#"{"type": "object", "properties": {"tags": {"type": "array", "items": {"type": "string"}},
        "o": {"type": "object", "properties": {"a": {"type": ["integer", "null"]}, "b": {"type": "boolean"}}},
        "e": {"enum": ["On", "Off", 5]}, "x": {"type": "number"}}}"#,
];

impl Bench {
    pub(crate) fn new() -> Self {
        let compiled = SCHEMAS.iter().map(|text| Some(ToolSchema::parse(text).expect("a sound schema")));
        Self { schemas: std::iter::once(None).chain(compiled).collect() }
    }

    /// The first two bytes choose the circumstances, so that a fuzzer can reach all of them.
    pub(crate) fn args(&self, data: &[u8]) {
        let choice = usize::from(data.first().copied().unwrap_or_default());
        let step = usize::from(data.get(1).copied().unwrap_or_default()) + 1;
        let text = String::from_utf8_lossy(data.get(2..).unwrap_or_default());
        let schema = self.schemas.get(choice % self.schemas.len()).and_then(Option::as_ref);
        let finish = [Finish::Unknown, Finish::Done, Finish::Cut][choice / 16 % 3];
        let policy = ArgsPolicy::default();
        let verdict = check(&text, schema, finish, &policy);
        self.keeps_promises(&verdict, &text, schema, &policy);

        // Any pieces give what the whole gives.
        let mut feed = Feed::new(policy);
        let mut rest = &*text;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(step.min(rest.len())));
            assert!(feed.push(piece).buffered <= policy.max_bytes);
            rest = after;
        }
        assert_eq!(feed.finish(schema, finish), verdict, "pieces of {step}: {text:?}");
        if verdict == Verdict::Valid {
            assert!(feed.progress().complete, "{text:?}");
        }

        // Without repair nothing is repaired, and the same is valid.
        let strict = check(&text, schema, finish, &ArgsPolicy::strict());
        assert!(!matches!(strict, Verdict::Repaired { .. }));
        assert_eq!(strict == Verdict::Valid, verdict == Verdict::Valid, "{text:?}");

        if let Ok(pieces) = split_calls(&text, schema, &policy) {
            for piece in pieces {
                assert_eq!(check(piece, schema, finish, &policy), Verdict::Valid, "{piece:?}");
            }
        }
        let tight = policy.with(|policy| {
            policy.max_bytes = 16;
            policy.max_depth = 2;
        });
        let _ = check(&text, schema, finish, &tight);
    }

    fn keeps_promises(
        &self,
        verdict: &Verdict,
        text: &str,
        schema: Option<&ToolSchema>,
        policy: &ArgsPolicy,
    ) {
        match verdict {
            Verdict::Valid => {
                let value: serde_json::Value = serde_json::from_str(text).unwrap_or(serde_json::json!({}));
                assert!(value.is_object(), "{text:?}");
            }
            Verdict::Repaired { json, changes } => {
                match serde_json::from_str::<serde_json::Value>(json) {
                    Ok(value) => assert!(value.is_object(), "{text:?} became {json:?}"),
                    // A number that no float holds is JSON all the same.
                    Err(error) => {
                        assert!(error.to_string().starts_with("number out of range"), "{json:?}: {error}");
                    }
                }
                assert!(!changes.is_empty(), "{text:?} became {json:?} without a change");
                for change in changes {
                    assert!(text.get(change.span.clone()).is_some(), "{change:?} is no place of {text:?}");
                }
                let again = check(json, schema, Finish::Unknown, policy);
                assert_eq!(again, Verdict::Valid, "{text:?} became {json:?}");
            }
            Verdict::Refused(refusal) => {
                assert!(refusal.position.byte <= text.len() && refusal.position.line > 0);
                assert!(refusal.excerpt.len() <= MAX_EXCERPT_BYTES && refusal.misses.len() <= MAX_MISSES);
                assert!(!refusal.reason.is_empty());
            }
        }
    }
}
