//! The words of a re-ask: to the model, to the user, and to the debug log.
//!
//! The sentences are phrases; this module joins them. Model and user get different ones: the model reads what to
//! write, the user only that it did not work yet.

use koboshi::args::{Change, Defect, Verdict};
use koboshi::reask::{Ask, ModelCall, Step};

use crate::phrase::{Lang, Phrases};

/// How many changes of one call a debug line names.
const MAX_CHANGES: usize = 20;

/// The result of its call that the model reads.
#[must_use]
pub fn for_model(phrases: &Phrases, lang: Lang, step: &Step) -> Option<String> {
    let (ask, ends) = match step {
        Step::Reask(ask) => (ask, false),
        Step::GiveUp(ask) => (ask, true),
        _ => return None,
    };
    let own = own_words(ask.refusal.defect);
    let id = match (ask.cut, own, ends) {
        (true, _, false) => "json-cut-model",
        (true, _, true) => "json-cut-end-model",
        (false, Some(_), false) => "json-refused-model",
        (false, Some(_), true) => "json-refused-end-model",
        (false, None, false) => "json-retry-model",
        (false, None, true) => "json-exhausted-model",
    };
    let what = own.map(|id| say(phrases, lang, id, &[])).unwrap_or_default();
    let error = ask.refusal.to_string();
    let mut text = say(phrases, lang, id, &[("what", &what), ("error", &error), ("json", &ask.text)]);
    let call = [("id", ask.id.as_str()), ("tool", ask.tool.as_str())];
    text.push_str(&format!("\n\n{}", say(phrases, lang, "json-call", &call)));
    // Of a long call only the ends are sent back: without the place itself the model would have to count.
    let near = ask.refusal.excerpt.trim();
    if !ask.cut && ask.refusal.misses.is_empty() && !ask.text.contains(near) {
        text.push_str(&format!("\n{}", say(phrases, lang, "json-near", &[("near", near)])));
    }
    for miss in &ask.refusal.misses {
        let path = if miss.path.is_empty() { "/" } else { &miss.path };
        text.push_str(&format!("\n- {path}: {}", miss.demand));
    }
    // The expected form helps a model that may write again; a cut by the limit was no mistake of the model.
    if !ends && !ask.cut && !ask.hint.is_empty() {
        text.push_str(&format!("\n{}", say(phrases, lang, "json-form", &[("form", &ask.hint)])));
    }
    Some(text)
}

/// The sentence for a defect other than syntax: a sentence about syntax would make the model search for a syntax error.
fn own_words(defect: Defect) -> Option<&'static str> {
    match defect {
        Defect::Schema => Some("json-what-schema"),
        Defect::NotAnObject => Some("json-what-not-an-object"),
        Defect::DuplicateKey => Some("json-what-duplicate-key"),
        Defect::SeveralObjects => Some("json-what-several-objects"),
        Defect::OtherTool => Some("json-what-other-tool"),
        Defect::Empty => Some("json-what-empty"),
        Defect::TooDeep | Defect::TooLong => Some("json-what-too-large"),
        _ => None,
    }
}

/// What the user sees, if anything.
#[must_use]
pub fn for_user(phrases: &Phrases, lang: Lang, step: &Step) -> Option<String> {
    let id = match step {
        Step::Reask(_) => "json-retry-user",
        Step::GiveUp(_) => "json-exhausted-user",
        _ => return None,
    };
    Some(say(phrases, lang, id, &[]))
}

/// What a debug log gets, in debug mode only: every call, what its check found, and what was changed or asked for.
#[must_use]
pub fn debug_lines(called: &ModelCall<'_>, verdict: &Verdict, step: &Step) -> Vec<String> {
    let shown = koboshi::redact::Redactor::new().excerpt(called.text, 400);
    let mut lines = vec![format!("[KOBOSHI] Detected functionCall: {} {shown}", called.tool)];
    match verdict {
        Verdict::Valid => lines.push("[KOBOSHI] Check: valid".to_owned()),
        Verdict::Repaired { changes, .. } => {
            let change = |change: &Change| format!("{} at {}", change.what.name(), change.span.start);
            let all: Vec<String> = changes.iter().take(MAX_CHANGES).map(change).collect();
            lines.push(format!("[KOBOSHI] Check: repaired ({})", all.join(", ")));
        }
        Verdict::Refused(_) => {}
    }
    let mut wrong = |ask: &Ask| {
        let what = if own_words(ask.refusal.defect).is_some() { "Refused arguments" } else { "Invalid JSON" };
        lines.push(format!("[KOBOSHI] {what}: {}", ask.text));
        lines.push(format!("[KOBOSHI] Error: {}", ask.refusal));
    };
    match step {
        Step::Reask(ask) => {
            wrong(ask);
            lines.push(format!("[KOBOSHI] Retry attempt {}/{}", ask.attempt, ask.max_attempts));
        }
        Step::GiveUp(ask) => {
            wrong(ask);
            lines.push(if ask.attempt >= ask.max_attempts {
                format!("[KOBOSHI] Maximum retry attempts ({}) exceeded", ask.max_attempts)
            } else {
                // Ended early: the maximum was not reached, and a reader should not look for the missing attempts.
                format!(
                    "[KOBOSHI] Stopped at attempt {}/{}: the same defect again",
                    ask.attempt, ask.max_attempts
                )
            });
        }
        _ => {}
    }
    lines
}

fn say(phrases: &Phrases, lang: Lang, id: &str, args: &[(&str, &str)]) -> String {
    phrases.text(lang, id, args).unwrap_or_else(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use koboshi::args::{ArgsPolicy, Finish, ToolSchema, check};
    use koboshi::reask::{Lineage, ReaskPolicy};

    fn step(lineage: &mut Lineage, text: &str, finish: Finish) -> Step {
        let verdict = check(text, None, finish, &ArgsPolicy::strict());
        lineage.next(&called(text), &verdict, &ReaskPolicy::default())
    }

    fn refused(text: &str) -> Verdict {
        check(text, None, Finish::Done, &ArgsPolicy::strict())
    }

    #[test]
    fn a_debug_log_gets_every_call_with_its_check() {
        let lines = |text: &str| {
            let verdict = check(text, None, Finish::Done, &ArgsPolicy::default());
            let step = Lineage::new().next(&called(text), &verdict, &ReaskPolicy::default());
            debug_lines(&called(text), &verdict, &step)
        };
        let good = lines(r#"{"x": 1}"#);
        assert_eq!(good, ["[KOBOSHI] Detected functionCall: move_to {\"x\": 1}", "[KOBOSHI] Check: valid"]);
        let mended = lines(r#"{"x": 1,}"#);
        assert!(
            mended[1].starts_with("[KOBOSHI] Check: repaired (") && mended[1].contains(" at "),
            "{mended:?}"
        );
    }

    fn called(text: &str) -> ModelCall<'_> {
        ModelCall { id: "call_7", tool: "move_to", text }
    }

    /// The three examples of the design that asked for this, word for word.
    #[test]
    fn a_valid_call_is_silent() {
        let phrases = Phrases::new().unwrap();
        let step = step(&mut Lineage::new(), r#"{"x": 100, "y": 200}"#, Finish::Done);
        assert_eq!(step, Step::Run(r#"{"x": 100, "y": 200}"#.to_owned()));
        assert_eq!((for_user(&phrases, Lang::Ja, &step), for_model(&phrases, Lang::Ja, &step)), (None, None));
    }

    #[test]
    fn a_broken_call_is_asked_for_again_and_then_runs() {
        let phrases = Phrases::new().unwrap();
        let mut lineage = Lineage::new();
        let broken = "{x: 100, y: 200}";
        let asked = step(&mut lineage, broken, Finish::Done);
        assert_eq!(
            for_user(&phrases, Lang::Ja, &asked).as_deref(),
            Some("このアクションは正しく実行されませんでした")
        );
        let model = for_model(&phrases, Lang::Ja, &asked).unwrap();
        assert!(
            model.starts_with("JSON構文エラーが発生しました。以下のJSONを修正してください。\nエラー: "),
            "{model}"
        );
        assert!(model.contains("不正なJSON: {x: 100, y: 200}"), "{model}");
        assert!(model.contains("正しいJSON形式でもう一度functionCallを送信してください。"), "{model}");
        assert!(model.contains("call_7") && model.contains("move_to"), "{model}");
        assert!(
            debug_lines(&called(broken), &refused(broken), &asked)
                .contains(&"[KOBOSHI] Retry attempt 1/3".to_owned())
        );
        assert!(matches!(step(&mut lineage, r#"{"x": 100, "y": 200}"#, Finish::Done), Step::Run(_)));
    }

    #[test]
    fn after_three_the_user_and_the_model_learn_that_it_ends() {
        let phrases = Phrases::new().unwrap();
        let mut lineage = Lineage::new();
        step(&mut lineage, "{x: 1}", Finish::Done);
        step(&mut lineage, "{x: 2}", Finish::Done);
        let last = step(&mut lineage, "{x: 3}", Finish::Done);
        assert_eq!(
            for_user(&phrases, Lang::Ja, &last).as_deref(),
            Some("ユーザーのタスクを正しく実行できませんでした")
        );
        let model = for_model(&phrases, Lang::Ja, &last).unwrap();
        assert!(
            model.starts_with("JSON構文エラーが解決できませんでした。タスクを正しく実行できません。"),
            "{model}"
        );
        let debug = debug_lines(&called("{x: 3}"), &refused("{x: 3}"), &last);
        assert_eq!(debug.last().map(String::as_str), Some("[KOBOSHI] Maximum retry attempts (3) exceeded"));
    }

    #[test]
    fn an_early_end_is_not_logged_as_the_maximum() {
        let mut lineage = Lineage::new();
        step(&mut lineage, "{x: 1}", Finish::Done);
        let last = step(&mut lineage, "{x: 1}", Finish::Done);
        let debug = debug_lines(&called("{x: 1}"), &refused("{x: 1}"), &last);
        assert_eq!(
            debug.last().map(String::as_str),
            Some("[KOBOSHI] Stopped at attempt 2/3: the same defect again")
        );
    }

    #[test]
    fn the_model_sees_the_place_of_a_mistake_in_a_long_call() {
        let phrases = Phrases::new().unwrap();
        let half = "word ".repeat(400);
        let text = format!(r#"{{"a": "{half}", "place": @, "b": "{half}"}}"#);
        for lang in [Lang::Ja, Lang::En] {
            let asked = step(&mut Lineage::new(), &text, Finish::Done);
            let model = for_model(&phrases, lang, &asked).unwrap();
            assert!(model.contains(r#""place": @"#), "{model}");
            let short = step(&mut Lineage::new(), "{x: 1}", Finish::Done);
            let model = for_model(&phrases, lang, &short).unwrap();
            assert_eq!(model.matches("{x: 1}").count(), 1, "{model}");
        }
    }

    /// The steps of a lineage whose answers are judged by this schema.
    fn with_schema(schema: &str, texts: &[&str]) -> Vec<Step> {
        let schema = ToolSchema::parse(schema).unwrap();
        let mut lineage = Lineage::new();
        let step = |text: &&str| {
            let verdict = check(text, Some(&schema), Finish::Done, &ArgsPolicy::default());
            lineage.next_with(Some(&schema), &called(text), &verdict, &ReaskPolicy::default())
        };
        texts.iter().map(step).collect()
    }

    const CITY: &str = r#"{"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
        "required": ["city"], "additionalProperties": false}"#;

    #[test]
    fn sound_json_is_not_called_a_syntax_error() {
        let phrases = Phrases::new().unwrap();
        let texts = [r#"{"town": "Paris"}"#, r#"{"town": "Rome"}"#, r#"{"town": "Oslo"}"#];
        let steps = with_schema(CITY, &texts);
        assert!(matches!(steps[2], Step::GiveUp(_)));
        for step in &steps {
            let en = for_model(&phrases, Lang::En, step).unwrap();
            assert!(en.contains("schema") && en.contains("city"), "{en}");
            assert!(!en.contains("syntax") && !en.contains("Invalid JSON"), "{en}");
            let ja = for_model(&phrases, Lang::Ja, step).unwrap();
            assert!(ja.contains("スキーマ") && ja.contains("city"), "{ja}");
            assert!(!ja.contains("構文") && !ja.contains("不正なJSON"), "{ja}");
            let debug = debug_lines(&called(texts[0]), &refused(texts[0]), step);
            assert!(!debug.iter().any(|line| line.contains("Invalid JSON")), "{debug:?}");
        }
    }

    #[test]
    fn each_defect_that_is_none_of_syntax_has_words_of_its_own() {
        let phrases = Phrases::new().unwrap();
        let mut said = std::collections::BTreeSet::new();
        for text in ["[1, 2]", r#"{"city": "a", "city": "b"}"#, r#"{"city": "a"}{"city": "b"}"#, ""] {
            for lang in [Lang::En, Lang::Ja] {
                let step = with_schema(CITY, &[text]).remove(0);
                let model = for_model(&phrases, lang, &step).unwrap();
                assert!(!model.contains("syntax") && !model.contains("構文"), "{model}");
                let first = model.lines().next().unwrap_or_default().to_owned();
                assert!(said.insert(first), "{model}");
            }
        }
    }

    #[test]
    fn the_model_is_shown_what_the_tool_takes_also_for_broken_syntax() {
        let phrases = Phrases::new().unwrap();
        let form = r#"{"city": string, "days"?: integer}"#;
        let steps = with_schema(CITY, &["{city: 'a' 'b'}", "{city: 'a' 'c'}", "{city: 'a' 'd'}"]);
        for lang in [Lang::En, Lang::Ja] {
            for asked in &steps[..2] {
                let model = for_model(&phrases, lang, asked).unwrap();
                assert!(model.contains(form), "{model}");
                assert!(
                    model.starts_with("JSON構文エラー") || model.starts_with("A JSON syntax error"),
                    "{model}"
                );
            }
            assert!(
                !for_model(&phrases, lang, &steps[2]).unwrap().contains(form),
                "nothing is asked for any more"
            );
        }
    }

    #[test]
    fn the_second_cut_by_the_limit_says_so_and_echoes_nothing() {
        let phrases = Phrases::new().unwrap();
        let mut lineage = Lineage::new();
        step(&mut lineage, r#"{"content": "half a f"#, Finish::Cut);
        let last = step(&mut lineage, r#"{"content": "half a file, ag"#, Finish::Cut);
        assert!(matches!(last, Step::GiveUp(_)));
        for (lang, limit) in [(Lang::En, "output limit"), (Lang::Ja, "出力上限")] {
            let model = for_model(&phrases, lang, &last).unwrap();
            assert!(model.contains(limit) && !model.contains("half a f"), "{model}");
            assert!(!model.contains("syntax") && !model.contains("構文"), "{model}");
        }
    }

    #[test]
    fn what_the_limit_cut_is_asked_for_in_smaller_pieces() {
        let phrases = Phrases::new().unwrap();
        let cut = step(&mut Lineage::new(), r#"{"content": "half a f"#, Finish::Cut);
        let model = for_model(&phrases, Lang::En, &cut).unwrap();
        assert!(model.contains("smaller pieces"), "{model}");
        assert!(!model.contains("half a f"), "sending it back would only cost more: {model}");
    }
}
