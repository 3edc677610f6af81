//! Requests in Gemini's words: what is read, what is refused, how calls and results find each other, and what a form becomes.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use koboshi_wire::dialect::Dialect;
use koboshi_wire::form::{
    Call, Choice, Effort, Form, Image, Media, Outcome, Output, Part, Role, Signature, Thinking, Thought,
    Tool, ToolInput, Turn,
};
use koboshi_wire::gemini::{GeminiRequest, body, count};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::facts;

fn refused(body: &str) -> String {
    GeminiRequest::parse("m", false, body.as_bytes()).unwrap_err().to_string()
}

#[test]
fn what_cannot_be_understood_is_refused_with_its_place() {
    for (body, words) in [
        ("{", "the request body ends too early, at line 1, column 1"),
        ("[]", "the request body must be a JSON object"),
        ("{}", "`contents` is missing"),
        (r#"{"contents":null}"#, "`contents` is missing"),
        (r#"{"contents":"hi"}"#, "`contents` must be a list of contents"),
        (r#"{"contents":[{},1]}"#, "`contents[1]` must be an object"),
        (r#"{"contents":[],"contents":[]}"#, "`contents` is given twice; give it once"),
        (
            r#"{"contents":[],"systemInstruction":{},"system_instruction":{}}"#,
            "`systemInstruction` is given twice; give it once",
        ),
    ] {
        assert_eq!(refused(body), words, "{body}");
    }
    let deep = format!(r#"{{"contents":[],"x":{}1{}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(refused(&deep), "the request body is nested deeper than 128 levels");
}

/// Ids and names of calls and results of a conversation, in order.
fn pairs(contents: &Value) -> Vec<String> {
    let body = json!({"contents": contents}).to_string();
    let request = GeminiRequest::parse("m", false, body.as_bytes()).unwrap();
    let parts = request.form().turns.iter().flat_map(|turn| &turn.parts);
    let pairs = parts.filter_map(|part| match part {
        Part::Call(call) => Some(format!("{}:{}", call.id, call.name)),
        Part::Outcome(outcome) => {
            Some(format!("{}={}", outcome.id, outcome.name.as_deref().unwrap_or_default()))
        }
        _ => None,
    });
    pairs.collect()
}

fn call(name: &str) -> Value {
    json!({"functionCall": {"name": name, "args": {}}})
}

fn result(name: &str) -> Value {
    json!({"functionResponse": {"name": name, "response": {"output": "x"}}})
}

#[test]
fn calls_without_ids_are_counted_and_results_find_them() {
    let model = |parts: &[Value]| json!({"role": "model", "parts": parts});
    let user = |parts: &[Value]| json!({"role": "user", "parts": parts});
    // By name and order, over several rounds, the order of results being another one.
    let contents = json!([
        model(&[call("f"), call("g"), call("f")]),
        user(&[result("g"), result("f"), result("f")]),
        model(&[call("f")]),
        user(&[result("f")]),
    ]);
    let expected =
        ["call_0:f", "call_1:g", "call_2:f", "call_1=g", "call_0=f", "call_2=f", "call_3:f", "call_3=f"];
    assert_eq!(pairs(&contents), expected);
    // By id, and an id that only the client made finds its call by name.
    let with_id = |kind: &str, name: &str, id: &str| json!({kind: {"id": id, "name": name}});
    let contents = json!([
        model(&[with_id("functionCall", "f", "a"), with_id("functionCall", "f", "b"), call("g")]),
        user(&[
            with_id("functionResponse", "f", "b"),
            with_id("functionResponse", "f", "a"),
            with_id("functionResponse", "g", "g__17"),
        ]),
    ]);
    assert_eq!(pairs(&contents), ["a:f", "b:f", "call_2:g", "b=f", "a=f", "call_2=g"]);
    // A call without a result does not take the result of a later round, and one without a call is seen as such.
    let contents = json!([
        model(&[call("f"), call("f")]),
        user(&[result("f")]),
        model(&[call("f")]),
        user(&[result("f"), result("f"), with_id("functionResponse", "h", "z")]),
    ]);
    let expected = ["call_0:f", "call_1:f", "call_0=f", "call_2:f", "call_2=f", "result_0=f", "z=h"];
    assert_eq!(pairs(&contents), expected);
    // Parallel calls that a client wrote as contents of their own.
    let contents = json!([model(&[call("f")]), model(&[call("g")]), user(&[result("g"), result("f")])]);
    assert_eq!(pairs(&contents), ["call_0:f", "call_1:g", "call_1=g", "call_0=f"]);
}

#[test]
fn results_are_opened_where_clients_wrap_a_text() {
    for (response, text, failed) in [
        (json!({"output": "a\nb"}), Some("a\nb"), None),
        (json!({"result": "a"}), Some("a"), None),
        (json!({"result": {"x": 1}}), Some(r#"{"x":1}"#), None),
        (json!({"error": "no"}), Some("no"), Some(true)),
        (json!({"x": 1, "output": "a"}), Some(r#"{"output":"a","x":1}"#), None),
        (json!({"output": ""}), None, None),
        (json!("plain"), Some("plain"), None),
        (json!(null), None, None),
    ] {
        let part = json!({"functionResponse": {"name": "f", "response": response}});
        let body = json!({"contents": [{"parts": [part]}]}).to_string();
        let request = GeminiRequest::parse("m", false, body.as_bytes()).unwrap();
        let Part::Outcome(outcome) = &request.form().turns[0].parts[0] else { panic!("{body}") };
        let parts: Vec<Part<'_>> = text.map(|text| Part::Text(text.into())).into_iter().collect();
        assert_eq!((&outcome.parts, outcome.failed), (&parts, failed), "{body}");
    }
}

#[test]
fn half_characters_and_odd_numbers_are_taken() {
    let body = r#"{"contents":[{"parts":[{"text":"a\ud83d"}]}],"generationConfig":{"maxOutputTokens":"12","topK":40.0,"seed":-3}}"#;
    let request = GeminiRequest::parse("m", false, body.as_bytes()).unwrap();
    let form = request.form();
    assert_eq!(form.turns[0].parts, [Part::Text("a\u{fffd}".into())]);
    assert_eq!((form.max_output, form.sampling.top_k, form.sampling.seed), (Some(12), Some(40), Some(-3)));
}

#[test]
fn choices_are_understood() {
    let tools = json!([{"functionDeclarations": [{"name": "f"}, {"name": "g"}, {"name": "h"}]}]);
    let read = |config: Value| {
        let body = json!({"contents": [], "tools": tools, "toolConfig": {"functionCallingConfig": config}});
        let body = body.to_string();
        let request = GeminiRequest::parse("m", false, body.as_bytes()).unwrap();
        let form = request.form();
        let rules: Vec<&str> = form.left.iter().map(|left| left.rule).collect();
        (format!("{:?}", form.choice), request.tools().count(), rules.join(" "))
    };
    let all = |choice: &str| (choice.to_owned(), 3, String::new());
    assert_eq!(read(json!({"mode": "AUTO"})), all("Auto"));
    assert_eq!(read(json!({"mode": "NONE"})), all("Never"));
    assert_eq!(read(json!({"mode": "ANY"})), all("Any"));
    assert_eq!(read(json!({"mode": "ANY", "allowedFunctionNames": ["g"]})), all(r#"Tool("g")"#));
    let two = json!({"mode": "ANY", "allowedFunctionNames": ["g", "h"]});
    assert_eq!(read(two), ("Any".to_owned(), 2, "narrow_tools".to_owned()));
    assert_eq!(read(json!({"mode": "MODE_UNSPECIFIED"})), all("Unspecified"));
}

#[test]
fn opening_and_labels_are_found() {
    let first = br#"{"contents" : [ {"role":"model","parts":[]}, {"parts":[{"text":"a"}]} , {"role":"model"}],"labels":{"team":"x","n":4}}"#;
    let request = GeminiRequest::parse("m", false, first).unwrap();
    assert_eq!(request.opening(), &br#"[ {"role":"model","parts":[]}, {"parts":[{"text":"a"#[..]);
    let escaped = br#"{"contents":[{"parts":[{"text":"a\nb"}]},{"role":"model"}]}"#;
    let request = GeminiRequest::parse("m", false, escaped).unwrap();
    assert_eq!(request.opening(), &br#"[{"parts":[{"text":"a\nb"}]}"#[..]);
    let request = GeminiRequest::parse("m", false, first).unwrap();
    assert_eq!(request.metadata("team").as_deref(), Some("x"));
    assert_eq!(request.metadata("n").as_deref(), Some("4"));
    assert_eq!(request.metadata("other"), None);
}

#[test]
fn counting_reads_all_three_ways_to_ask() {
    for body in [
        r#"{"contents":[{"parts":[{"text":"a"}]}]}"#,
        r#"{"generateContentRequest":{"model":"models/m","contents":[{"parts":[{"text":"a"}]}]}}"#,
        r#"{"generate_content_request":{"contents":{"parts":{"text":"a"}},"systemInstruction":"s"}}"#,
    ] {
        let request = count::parse("m", body.as_bytes()).unwrap();
        assert_eq!(request.form().turns[0].parts, [Part::Text("a".into())], "{body}");
    }
    assert_eq!(&count::answer(7)[..], br#"{"totalTokens":7}"#);
    assert_eq!(count::read(br#"{"totalTokens": 31, "promptTokensDetails": []}"#), Some(31));
    assert_eq!(count::read(b"<html>"), None);
    let question = count::question("m", br#" {"contents":[]} "#);
    let value: Value = serde_json::from_slice(&question).unwrap();
    assert_eq!(value, json!({"generateContentRequest": {"model": "models/m", "contents": []}}));
    assert!(count::parse("m", &question).is_ok());
}

fn text(text: &str) -> Part<'_> {
    Part::Text(text.into())
}

fn turn<'a>(role: Role, parts: Vec<Part<'a>>) -> Turn<'a> {
    Turn { role, parts }
}

fn written(form: &Form<'_>) -> (Value, Vec<&'static str>) {
    let written = body::write(form, facts(&form.model));
    let rules = written.left.iter().map(|left| left.rule).collect();
    (serde_json::from_slice(&written.body).unwrap(), rules)
}

fn outcome<'a>(id: &'a str, said: &'a str) -> Part<'a> {
    Part::Outcome(Outcome { id: id.into(), parts: vec![text(said)], ..Outcome::default() })
}

fn calls<'a>(ids: &[&'a str]) -> Vec<Part<'a>> {
    let each = ids.iter().map(|id| {
        Part::Call(Call {
            id: (*id).into(),
            name: format!("f_{id}").into(),
            arguments: "{}".into(),
            ..Call::default()
        })
    });
    each.collect()
}

#[test]
fn turns_are_put_in_the_order_that_gemini_wants() {
    let form = Form {
        turns: vec![
            turn(Role::Assistant, vec![text("Hello.")]),
            turn(Role::User, vec![text("a")]),
            turn(Role::System, vec![text("b")]),
            turn(Role::Assistant, calls(&["1", "2", "3"])),
            turn(Role::User, vec![outcome("3", "three"), outcome("9", "nine")]),
            turn(Role::User, vec![text("c"), outcome("1", r#"{"one":1}"#)]),
            turn(Role::Assistant, vec![text("")]),
            turn(Role::Assistant, vec![Part::Refusal("No.".into())]),
        ],
        ..Form::default()
    };
    let (value, rules) = written(&form);
    let roles: Vec<&str> = value["contents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|content| content["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["user", "model", "user", "model", "user", "model"]);
    let parts = &value["contents"][4]["parts"];
    assert_eq!(parts[0]["functionResponse"], json!({"name": "f_1", "response": {"one": 1}}));
    assert_eq!(parts[1]["functionResponse"]["response"], json!({"error": "The tool returned no result."}));
    assert_eq!(parts[2]["functionResponse"], json!({"name": "f_3", "response": {"output": "three"}}));
    assert_eq!(parts[3], json!({"text": "Result of a tool: nine"}));
    assert_eq!(parts[4], json!({"text": "c"}));
    assert_eq!(value["contents"][5]["parts"], json!([{"text": "No."}]));
    let mut expected =
        vec!["system_turn_as_user", "fill_missing_result", "orphan_result_as_text", "open_with_user"];
    expected.sort_unstable();
    let mut rules = rules;
    rules.sort_unstable();
    assert_eq!(rules, expected);
}

#[test]
fn only_own_seals_go_along_and_first_calls_are_sealed() {
    let signature = |of| Some(Signature { of, id: None, data: "s".into() });
    let signed = |id: &'static str, of| {
        let Part::Call(call) = calls(&[id]).remove(0) else { panic!() };
        Part::Call(Call { signature: signature(of), ..call })
    };
    let thought = |of| Part::Thought(Thought { text: "t".into(), signature: signature(of), hidden: false });
    let turns = vec![
        turn(Role::User, vec![text("a")]),
        turn(
            Role::Assistant,
            vec![
                thought(Dialect::Messages),
                thought(Dialect::Gemini),
                signed("1", Dialect::Messages),
                signed("2", Dialect::Gemini),
            ],
        ),
        turn(Role::User, vec![outcome("1", "x"), outcome("2", "y")]),
        turn(Role::Assistant, vec![signed("3", Dialect::Gemini)]),
        turn(Role::User, vec![outcome("3", "z")]),
    ];
    let (value, rules) = written(&Form { turns, ..Form::default() });
    let first = &value["contents"][1]["parts"];
    assert_eq!(first[0], json!({"text": "t", "thought": true, "thoughtSignature": "s"}));
    assert_eq!(first[1]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(first[2]["thoughtSignature"], "s");
    assert_eq!(value["contents"][3]["parts"][0]["thoughtSignature"], "s");
    assert_eq!(rules, ["drop_foreign_seal", "drop_foreign_thought", "drop_foreign_seal"]);
}

#[test]
fn generations_differ_in_thinking() {
    let config = |model: &'static str, thinking| {
        let form = Form { model: model.into(), thinking, ..Form::default() };
        written(&form).0["generationConfig"]["thinkingConfig"].clone()
    };
    let high = Thinking::Effort(Effort::High);
    assert_eq!(config("gemini-2.5-flash", high), json!({"thinkingBudget": 24576, "includeThoughts": true}));
    assert_eq!(
        config("gemini-3-pro-preview", high),
        json!({"thinkingLevel": "HIGH", "includeThoughts": true})
    );
    assert_eq!(config("gemini-2.0-flash", high), Value::Null);
    assert_eq!(config("gemini-2.5-flash", Thinking::Off), json!({"thinkingBudget": 0}));
    assert_eq!(config("gemini-2.5-pro", Thinking::Off), json!({"thinkingBudget": 128}));
    assert_eq!(config("gemini-3-flash-preview", Thinking::Off), json!({"thinkingLevel": "MINIMAL"}));
    assert_eq!(config("gemini-3.1-pro-preview", Thinking::Off), json!({"thinkingLevel": "LOW"}));
    assert_eq!(
        config("gemini-2.5-pro", Thinking::Budget(40_000)),
        json!({"thinkingBudget": 32768, "includeThoughts": true})
    );
    assert_eq!(
        config("gemini-2.5-pro", Thinking::Adaptive),
        json!({"thinkingBudget": -1, "includeThoughts": true})
    );
    assert_eq!(config("gemini-2.5-pro", Thinking::Unspecified), Value::Null);
}

#[test]
fn limits_are_kept_and_named() {
    let mut form = Form {
        model: "gemini-2.5-pro".into(),
        user: Some("u".into()),
        parallel: Some(false),
        ..Form::default()
    };
    form.turns = vec![turn(
        Role::User,
        vec![
            Part::Image(Image::Url("https://example.com/picture?id=1".into())),
            Part::Image(Image::Url("http://example.com/a.png".into())),
            Part::Image(Image::Url("https://example.com/a.PNG?x=1".into())),
            Part::Media(Media {
                media_type: "audio/wav".into(),
                data: "AAAA".into(),
                name: Some("a.wav".into()),
            }),
        ],
    )];
    form.sampling.temperature = Some(3.5);
    form.sampling.stop = (0..7).map(|n| n.to_string().into()).collect();
    form.sampling.seed = Some(i64::MAX);
    form.output = Output::Json;
    form.tools = vec![Tool {
        name: "9lives".into(),
        description: None,
        input: ToolInput::FreeText,
        strict: Some(true),
    }];
    form.choice = Choice::Tool("9lives".into());
    let (value, rules) = written(&form);
    assert_eq!(
        value["contents"][0]["parts"][0]["fileData"],
        json!({"mimeType": "image/png", "fileUri": "https://example.com/a.PNG?x=1"})
    );
    assert_eq!(
        value["contents"][0]["parts"][1]["inlineData"],
        json!({"mimeType": "audio/wav", "data": "AAAA"})
    );
    let generation = &value["generationConfig"];
    assert_eq!(
        (&generation["temperature"], generation["stopSequences"].as_array().unwrap().len()),
        (&json!(2.0), 5)
    );
    assert_eq!(generation["seed"], Value::Null);
    let tool = &value["tools"][0]["functionDeclarations"][0];
    assert_eq!(tool["parametersJsonSchema"]["required"], json!(["input"]));
    let calling = &value["toolConfig"]["functionCallingConfig"];
    assert_eq!(*calling, json!({"mode": "ANY", "allowedFunctionNames": ["9lives"]}));
    let expected = [
        "needs_image_type", "needs_image_type", "drop_file_name", "needs_tool_name", "drop_strict",
        "drop_parallel_off", "drop_user", "needs_json_with_tools", "cut_stop_sequences", "drop_seed",
        "clamp_temperature",
    ];
    assert_eq!(rules, expected);
}

#[test]
fn pictures_of_results_stand_where_the_model_takes_them() {
    let picture = || Part::Image(Image::Data { media_type: "image/png".into(), data: "AAAA".into() });
    let result =
        Part::Outcome(Outcome { id: "1".into(), parts: vec![text("see"), picture()], ..Outcome::default() });
    let turns = vec![
        turn(Role::User, vec![text("a")]),
        turn(Role::Assistant, calls(&["1"])),
        turn(Role::User, vec![result]),
    ];
    let parts = |model: &'static str| {
        let form = Form { model: model.into(), turns: turns.clone(), ..Form::default() };
        let (value, rules) = written(&form);
        (value["contents"][2]["parts"].clone(), rules)
    };
    let (new, rules) = parts("gemini-3-flash-preview");
    assert_eq!(new[0]["functionResponse"]["parts"][0]["inlineData"]["mimeType"], "image/png");
    assert!(rules.is_empty());
    let (old, rules) = parts("gemini-2.5-flash");
    assert_eq!(old[0]["functionResponse"], json!({"name": "f_1", "response": {"output": "see"}}));
    assert_eq!(old[1]["inlineData"]["mimeType"], "image/png");
    assert_eq!(rules, ["move_result_media"]);
}

/// Forms that this dialect can carry whole: ids are those that its reader makes, signatures are its own.
fn forms() -> impl Strategy<Value = Form<'static>> {
    let words = || {
        prop_oneof![
            Just("x".to_owned()),
            Just(r#"{"output":"x"}"#.to_owned()),
            Just(r#"{"a":[1]}"#.to_owned()),
            ".{1,12}"
        ]
    };
    let plain = || {
        prop_oneof![
            words().prop_map(|text| Part::Text(text.into())),
            Just(Part::Image(Image::Data { media_type: "image/png".into(), data: "AAAA".into() })),
            Just(Part::Image(Image::Url("https://example.com/a.webp".into()))),
            Just(Part::Media(Media {
                media_type: "application/pdf".into(),
                data: "AAAA".into(),
                name: None
            })),
        ]
    };
    // A round: what the user says, what the model says and calls, and what comes back.
    let call = (0..3_usize, words(), any::<Option<bool>>(), any::<bool>(), any::<bool>());
    let round = (vec(plain(), 1..3), vec(words(), 1..3), vec(call, 0..4), any::<bool>());
    (vec(round, 1..4), any::<bool>(), prop::option::of(words())).prop_map(|(rounds, ends_open, system)| {
        let mut turns: Vec<Turn<'static>> = Vec::new();
        let mut number = 0;
        for (said, answered, called, signed) in rounds {
            let signature = || Some(Signature { of: Dialect::Gemini, id: None, data: "c2VhbA".into() });
            match turns.last_mut().filter(|last| last.role == Role::User) {
                Some(last) => last.parts.extend(said),
                None => turns.push(turn(Role::User, said)),
            }
            let mut parts: Vec<Part<'static>> =
                answered.into_iter().map(|text| Part::Text(text.into())).collect();
            if signed {
                parts.insert(
                    0,
                    Part::Thought(Thought { text: "hm".into(), signature: signature(), hidden: false }),
                );
                parts.push(Part::Thought(Thought { signature: signature(), ..Thought::default() }));
            }
            let mut results = Vec::new();
            for (name, result, failed, is_sealed, has_picture) in called {
                let (id, name) = (format!("call_{number}"), format!("tool_{name}"));
                number += 1;
                let signature = if is_sealed { signature() } else { None };
                parts.push(Part::Call(Call {
                    id: id.clone().into(),
                    name: name.clone().into(),
                    arguments: r#"{"b":1,"a":"\n"}"#.into(),
                    free_text: false,
                    signature,
                }));
                let mut back: Vec<Part<'static>> = vec![Part::Text(result.into())];
                if has_picture {
                    back.push(Part::Image(Image::Data {
                        media_type: "image/png".into(),
                        data: "AAAA".into(),
                    }));
                }
                let failed = failed.filter(|failed| *failed);
                results.push(Part::Outcome(Outcome {
                    id: id.into(),
                    name: Some(name.into()),
                    parts: back,
                    failed,
                    free_text: false,
                }));
            }
            turns.push(turn(Role::Assistant, parts));
            if !results.is_empty() {
                turns.push(turn(Role::User, results));
            }
        }
        if ends_open && turns.last().is_some_and(|turn| turn.role == Role::Assistant) {
            turns.push(turn(Role::User, vec![Part::Text("more".into())]));
        }
        let system = system.into_iter().map(Into::into).collect();
        Form { model: "gemini-3-flash-preview".into(), turns, system, ..Form::default() }
    })
}

#[test]
fn what_the_dialect_can_carry_comes_back() {
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(form in forms())| {
        let written = body::write(&form, facts(&form.model));
        prop_assert!(written.left.is_empty(), "{:?}", written.left);
        let again = GeminiRequest::parse("gemini-3-flash-preview", false, &written.body).unwrap();
        prop_assert_eq!(&again.form().turns, &form.turns);
        prop_assert_eq!(&again.form().system, &form.system);
        prop_assert!(again.form().left.is_empty());
        // And then it stays the same bytes.
        prop_assert_eq!(body::write(again.form(), facts(&form.model)).body, written.body.clone());
    });
}

#[test]
fn settings_come_back() {
    let schema = || {
        serde_json::value::RawValue::from_string(r#"{"type":"object","properties":{"x":{}}}"#.to_owned())
            .unwrap()
    };
    let mut form = Form { model: "gemini-3-flash-preview".into(), max_output: Some(9), ..Form::default() };
    form.tools = vec![
        Tool {
            name: "f".into(),
            description: Some("d".into()),
            input: ToolInput::Schema(Some(std::borrow::Cow::Owned(schema()))),
            strict: None,
        },
        Tool { name: "g".into(), description: None, input: ToolInput::Schema(None), strict: None },
    ];
    form.output = Output::Schema { name: None, schema: std::borrow::Cow::Owned(schema()), strict: None };
    form.turns = vec![turn(Role::User, vec![text("a")])];
    form.sampling.temperature = Some(0.5);
    form.sampling.top_p = Some(0.25);
    form.sampling.top_k = Some(3);
    form.sampling.seed = Some(-7);
    form.sampling.stop = vec!["END".into()];
    form.sampling.answers = Some(2);
    for choice in [Choice::Unspecified, Choice::Auto, Choice::Never, Choice::Any, Choice::Tool("g".into())] {
        for thinking in [Thinking::Unspecified, Thinking::Budget(500), Thinking::Effort(Effort::Low)] {
            form.choice = choice.clone();
            form.thinking = thinking;
            let written = body::write(&form, facts(&form.model));
            assert!(written.left.is_empty(), "{:?}", written.left);
            let again = GeminiRequest::parse("gemini-3-flash-preview", false, &written.body).unwrap();
            let read = again.form();
            assert_eq!((&read.choice, read.thinking), (&form.choice, form.thinking));
            assert_eq!((&read.sampling, read.max_output), (&form.sampling, form.max_output));
            assert_eq!(
                format!("{:?}{:?}", read.tools, read.output),
                format!("{:?}{:?}", form.tools, form.output)
            );
        }
    }
}

#[test]
fn names_of_the_conversation_are_fitted_by_one_rule() {
    let call = |name: &'static str| Call {
        id: name.into(),
        name: name.into(),
        arguments: "{}".into(),
        ..Call::default()
    };
    for (name, fitted) in
        [("read-file.v2:x", "read-file.v2:x"), ("9 lives", "_9_lives"), ("", "_"), ("größe", "gr__e")]
    {
        let turns = vec![
            turn(Role::User, vec![text("a")]),
            turn(Role::Assistant, vec![Part::Call(call(name))]),
            turn(Role::User, vec![outcome(name, "x")]),
        ];
        let (value, rules) = written(&Form { turns, ..Form::default() });
        assert_eq!(value["contents"][1]["parts"][0]["functionCall"]["name"], fitted);
        assert_eq!(value["contents"][2]["parts"][0]["functionResponse"]["name"], fitted);
        assert_eq!(rules.contains(&"fit_tool_name"), name != fitted);
    }
}
