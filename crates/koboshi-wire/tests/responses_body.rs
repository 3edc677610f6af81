//! A form as a responses request: what the dialect can carry comes back as it went, the rest is named.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::borrow::Cow;

use crate::common;
use koboshi_wire::dialect::Dialect;
use koboshi_wire::form::{
    Call, Choice, Effort, Form, Image, Media, Outcome, Output, Part, Role, Sampling, Signature, Thinking,
    Thought, Tool, ToolInput, Turn,
};
use koboshi_wire::responses::{ResponsesRequest, body};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::Value;
use serde_json::value::RawValue;

fn raw(text: &str) -> Cow<'static, RawValue> {
    Cow::Owned(RawValue::from_string(text.to_owned()).unwrap())
}

fn written(form: &Form<'_>) -> (Value, Vec<String>, Vec<String>) {
    let written = body::write(form, common::facts(&form.model));
    let rules = |droppable: bool| {
        let some = written.left.iter().filter(|left| left.droppable == droppable);
        some.map(|left| format!("{} {}", left.rule, left.at)).collect()
    };
    (serde_json::from_slice(&written.body).unwrap(), rules(true), rules(false))
}

fn user(parts: Vec<Part<'static>>) -> Turn<'static> {
    Turn { role: Role::User, parts }
}

fn assistant(parts: Vec<Part<'static>>) -> Turn<'static> {
    Turn { role: Role::Assistant, parts }
}

/// A conversation as an Anthropic client has it in the middle of a task.
fn foreign() -> Form<'static> {
    let signature = Signature { of: Dialect::Messages, id: None, data: "sig".into() };
    let call = |id: &str, arguments: &str| {
        Part::Call(Call {
            id: id.to_owned().into(),
            name: "Bash".into(),
            arguments: arguments.to_owned().into(),
            ..Call::default()
        })
    };
    let result = |id: &str, parts, failed| {
        Part::Outcome(Outcome {
            id: id.to_owned().into(),
            name: Some("Bash".into()),
            parts,
            failed,
            free_text: false,
        })
    };
    Form {
        model: "gpt-5.1".into(),
        stream: true,
        system: vec!["You are an agent.".into(), "Be brief.".into()],
        turns: vec![
            user(vec![
                Part::Text("List, then look.".into()),
                Part::Image(Image::Data { media_type: "image/png".into(), data: "AAAA".into() }),
            ]),
            assistant(vec![
                Part::Thought(Thought { text: "Hm.".into(), signature: Some(signature), hidden: false }),
                Part::Text("I will.".into()),
                call("toolu_1", r#"{"command":"ls"}"#),
                call("toolu_2", r#"{"command":"pwd"}"#),
            ]),
            user(vec![
                result("toolu_1", vec![Part::Text("a.txt".into())], None),
                result(
                    "toolu_2",
                    vec![Part::Text("no".into()), Part::Image(Image::Url("https://x/y.png".into()))],
                    Some(true),
                ),
                Part::Text("Go on.".into()),
            ]),
        ],
        tools: vec![Tool {
            name: "Bash".into(),
            description: Some("Runs a command.".into()),
            input: ToolInput::Schema(Some(raw(
                r#"{"type":"object", "properties":{"command":{"type":"string"}}}"#,
            ))),
            strict: None,
        }],
        choice: Choice::Auto,
        parallel: Some(true),
        max_output: Some(32000),
        thinking: Thinking::Budget(31999),
        sampling: Sampling { temperature: Some(1.0), top_k: Some(40), ..Sampling::default() },
        user: Some("u".repeat(100).into()),
        ..Form::default()
    }
}

#[test]
fn a_foreign_conversation_is_written_as_the_vendor_takes_it() {
    let (value, dropped, needed) = written(&foreign());
    common::golden("responses/request.json", &(serde_json::to_string_pretty(&value).unwrap() + "\n"));
    assert_eq!(
        dropped,
        [
            "drop_sampling_of_reasoning sampling", "drop_foreign_seal turns[1].parts[0]",
            "drop_error_flag turns[2].parts[1]", "budget_as_effort thinking", "drop_user user",
            "drop_top_k sampling",
        ]
    );
    assert_eq!(needed, Vec::<String>::new());
    // The schema goes as it came: prompt caches look at the text.
    let text = body::write(&foreign(), common::facts(&foreign().model)).body;
    assert!(
        String::from_utf8_lossy(&text)
            .contains(r#"{"type":"object", "properties":{"command":{"type":"string"}}}"#)
    );
    assert!(!String::from_utf8_lossy(&text).contains("sig\""));
}

#[test]
fn what_cannot_be_carried_is_needed() {
    let with = |change: &dyn Fn(&mut Form<'static>)| {
        let mut form = foreign();
        change(&mut form);
        written(&form).2
    };
    assert_eq!(with(&|form| form.sampling.stop.push("END".into())), ["needs_stop stop"]);
    assert_eq!(with(&|form| form.sampling.answers = Some(2)), ["needs_answers answers"]);
    assert_eq!(with(&|form| form.tools[0].name = "a.b".into()), ["needs_tool_name tools[0].name"]);
    let sound = || Part::Media(Media { media_type: "audio/wav".into(), data: "AA".into(), name: None });
    assert_eq!(with(&|form| form.turns[0].parts.push(sound())), ["needs_audio turns[0].parts[2]"]);
    let forced = |form: &mut Form<'static>| {
        form.tools.clear();
        form.choice = Choice::Any;
    };
    assert_eq!(with(&forced), ["needs_tools choice"]);
}

#[test]
fn limits_of_the_vendor_are_kept() {
    let long = "toolu_".repeat(30);
    let mut form = foreign();
    form.model = "gpt-4o".into();
    form.max_output = Some(1);
    form.sampling = Sampling { temperature: Some(3.5), top_p: Some(-1.0), ..Sampling::default() };
    form.thinking = Thinking::Off;
    for turn in &mut form.turns {
        for part in &mut turn.parts {
            match part {
                Part::Call(call) if call.id == "toolu_1" => call.id = long.clone().into(),
                Part::Outcome(outcome) if outcome.id == "toolu_1" => outcome.id = long.clone().into(),
                _ => {}
            }
        }
    }
    let (value, dropped, _) = written(&form);
    assert_eq!(
        (&value["max_output_tokens"], &value["temperature"], &value["top_p"]),
        (&16.into(), &2.0.into(), &0.0.into())
    );
    assert_eq!(value.get("reasoning"), None);
    for rule in [
        "raise_max_output max_output", "clamp_temperature sampling", "clamp_top_p sampling",
        "drop_thinking_off thinking",
    ] {
        assert!(dropped.iter().any(|found| found == rule), "{rule}: {dropped:?}");
    }
    let ids: Vec<&str> =
        value["input"].as_array().unwrap().iter().filter_map(|item| item["call_id"].as_str()).collect();
    assert!(ids[0].len() <= 64 && ids[0] != ids[1]);
    assert_eq!(ids[0], ids[2], "call and result find each other");
}

#[test]
fn free_text_tools_stay_so() {
    let form = Form {
        tools: vec![Tool {
            name: "apply_patch".into(),
            description: None,
            input: ToolInput::FreeText,
            strict: None,
        }],
        choice: Choice::Tool("apply_patch".into()),
        ..foreign()
    };
    let (value, ..) = written(&form);
    assert_eq!(value["tools"][0], serde_json::json!({"type": "custom", "name": "apply_patch"}));
    assert_eq!(value["tool_choice"], serde_json::json!({"type": "custom", "name": "apply_patch"}));
}

fn word() -> impl Strategy<Value = Cow<'static, str>> {
    "[a-zA-Z é\"\\\\\n]{1,10}".prop_map(Cow::Owned)
}

fn said() -> impl Strategy<Value = Part<'static>> {
    prop_oneof![
        3 => word().prop_map(Part::Text),
        1 => word().prop_map(|data| Part::Image(Image::Data { media_type: "image/png".into(), data })),
        1 => word().prop_map(|url| Part::Image(Image::Url(format!("https://{url}").into()))),
        1 => (word(), word()).prop_map(|(data, name)| Part::Media(Media { media_type: "application/pdf".into(), data, name: Some(name) })),
    ]
}

/// One answer and, where it calls, the results: as this dialect can say it.
fn exchange() -> impl Strategy<Value = Vec<Turn<'static>>> {
    let thought = (proptest::option::of(word()), "[A-Z]{1,6}", proptest::option::of("rs_[a-z]{1,5}"))
        .prop_map(|(text, data, id)| {
            let signature =
                Signature { of: Dialect::Responses, id: id.map(|id: String| id.into()), data: data.into() };
            Part::Thought(Thought {
                text: text.unwrap_or_default(),
                signature: Some(signature),
                hidden: false,
            })
        });
    let answer = vec(prop_oneof![thought, word().prop_map(Part::Text), word().prop_map(Part::Refusal)], 1..4);
    let calls = vec((word(), any::<bool>(), vec(said(), 0..3)), 0..3);
    (vec(said(), 1..4), answer, calls).prop_map(|(asked, mut answer, calls)| {
        let mut results = Vec::new();
        for (index, (text, free_text, parts)) in calls.into_iter().enumerate() {
            let id: Cow<'static, str> = format!("call_{index}").into();
            let name: Cow<'static, str> = format!("tool_{index}").into();
            answer.push(Part::Call(Call {
                id: id.clone(),
                name: name.clone(),
                arguments: text,
                free_text,
                signature: None,
            }));
            results.push(Part::Outcome(Outcome { id, name: Some(name), parts, failed: None, free_text }));
        }
        let mut turns = vec![user(asked), assistant(answer)];
        if !results.is_empty() {
            turns.push(user(results));
        }
        turns
    })
}

fn form() -> impl Strategy<Value = Form<'static>> {
    let tool = (proptest::option::of(word()), any::<bool>(), any::<bool>());
    let effort = prop_oneof![
        Just(Thinking::Unspecified),
        Just(Thinking::Effort(Effort::Low)),
        Just(Thinking::Effort(Effort::Medium)),
        Just(Thinking::Effort(Effort::High)),
    ];
    let sampling = (
        proptest::option::of(0.0..2.0_f64),
        proptest::option::of(0.0..1.0_f64),
        proptest::option::of(16..9000_u64),
    );
    (
        vec(exchange(), 0..4),
        vec(tool, 0..3),
        effort,
        sampling,
        proptest::option::of(word()),
        0..3_u8,
        any::<bool>(),
    )
        .prop_map(
            |(exchanges, tools, thinking, (temperature, top_p, max_output), system, output, flag)| {
                let tools: Vec<Tool<'static>> = tools
                    .into_iter()
                    .enumerate()
                    .map(|(index, (description, free_text, strict))| Tool {
                        name: format!("tool_{index}").into(),
                        description,
                        input: if free_text {
                            ToolInput::FreeText
                        } else {
                            ToolInput::Schema(Some(raw(r#"{"type": "object", "properties": {}}"#)))
                        },
                        strict: (!free_text).then_some(strict),
                    })
                    .collect();
                let asked = user(vec![Part::Text("As JSON, if at all.".into())]);
                let choice = if flag && !tools.is_empty() {
                    Choice::Tool("tool_0".into())
                } else {
                    Choice::Unspecified
                };
                Form {
                    model: "m".into(),
                    stream: flag,
                    system: system.clone().into_iter().collect(),
                    turns: exchanges.into_iter().flatten().chain([asked]).collect(),
                    parallel: (!tools.is_empty()).then_some(flag),
                    tools,
                    choice,
                    output: match output {
                        0 => Output::Text,
                        1 => Output::Json,
                        _ => {
                            Output::Schema { name: Some("n".into()), schema: raw("{ }"), strict: Some(flag) }
                        }
                    },
                    sampling: Sampling { temperature, top_p, ..Sampling::default() },
                    max_output,
                    thinking,
                    user: system,
                    left: Vec::new(),
                }
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_back(form in form()) {
        let written = body::write(&form, common::facts(&form.model));
        prop_assert_eq!(&written.left, &[]);
        let request = ResponsesRequest::parse(&written.body).unwrap();
        prop_assert_eq!(format!("{:?}", request.form()), format!("{form:?}"));
        prop_assert!(!request.is_bound_to_provider());
        // And once more, to the byte.
        prop_assert_eq!(body::write(request.form(), common::facts(&request.form().model)).body, written.body.clone());
    }
}

#[test]
fn a_system_text_alone_is_the_question() {
    let form = Form { model: "m".into(), system: vec!["Say hello.".into()], ..Form::default() };
    let (sent, ..) = written(&form);
    let wanted = serde_json::json!([{"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Say hello."}]}]);
    assert_eq!((&sent["input"], sent.get("instructions")), (&wanted, None));
}

/// The vendor refuses objects without `properties`, and schemas that are no object at their top.
#[test]
fn the_schema_of_a_tool_is_one_that_the_vendor_takes() {
    let sent = |schema: &str| {
        let input = ToolInput::Schema(Some(raw(schema)));
        let tool = Tool { name: "f".into(), description: None, input, strict: None };
        let (body, dropped, _) = written(&Form { tools: vec![tool], ..foreign() });
        let has = |rule: &str| dropped.contains(&format!("{rule} tools[0]"));
        (body["tools"][0]["parameters"].to_string(), has("fit_tool_schema"), has("loosen_union_schema"))
    };
    let empty = r#"{"properties":{},"type":"object"}"#;
    assert_eq!(sent(r#"{"type":"object"}"#), (empty.to_owned(), true, false));
    assert_eq!(sent(empty), (empty.to_owned(), false, false));
    assert_eq!(sent(r#"{"oneOf":[]}"#), (empty.to_owned(), false, true));
}

#[test]
fn reasoning_models_of_the_vendor_get_only_the_efforts_they_know() {
    let said = |model: &'static str, thinking: Thinking| {
        let sampling = Sampling { temperature: Some(0.5), top_p: Some(0.9), ..Sampling::default() };
        let (body, dropped, _) =
            written(&Form { model: model.into(), thinking, sampling, tools: Vec::new(), ..foreign() });
        let samples = (body.get("temperature").is_some(), body.get("top_p").is_some());
        let named = dropped.iter().any(|rule| rule.starts_with("drop_sampling_of_reasoning"));
        assert_eq!(samples, (!named, !named), "{model} {dropped:?}");
        (body["reasoning"]["effort"].as_str().unwrap_or_default().to_owned(), named)
    };
    for (model, off, min, max, thinks) in [
        ("o3", "low", "low", "high", true),
        ("gpt-5", "minimal", "minimal", "high", true),
        ("gpt-5.1", "none", "low", "high", true),
        ("gpt-5.6-terra", "none", "low", "xhigh", true),
        ("gpt-5-codex", "low", "low", "high", true),
        ("gpt-5.1-codex", "low", "low", "high", true),
        ("gpt-5.1-codex-max", "low", "low", "xhigh", true),
        ("gpt-5.3-codex", "low", "low", "xhigh", true),
        ("gpt-5-pro", "high", "high", "high", true),
        ("gpt-5.4-pro", "medium", "medium", "xhigh", true),
        ("other", "", "low", "high", false),
    ] {
        assert_eq!(said(model, Thinking::Off), (off.to_owned(), thinks), "{model}");
        assert_eq!(said(model, Thinking::Effort(Effort::Minimal)), (min.to_owned(), thinks), "{model}");
        assert_eq!(said(model, Thinking::Effort(Effort::Max)), (max.to_owned(), thinks), "{model}");
    }
}

/// The vendor refuses the mode where the input does not name it; what the instructions say does not count.
#[test]
fn json_is_named_where_an_answer_in_it_is_asked_for() {
    let said = |text: &'static str, output: Output<'static>| {
        let turns = vec![user(vec![Part::Text(text.into())])];
        let form = Form { system: vec!["As JSON.".into()], turns, output, ..Form::default() };
        let (body, dropped, _) = written(&form);
        (body["input"][0]["content"][0]["text"].as_str().unwrap().to_owned(), dropped)
    };
    let asked = "Answer with one JSON object and nothing else.".to_owned();
    assert_eq!(said("A list.", Output::Json), (asked, vec!["name_json output".to_owned()]));
    assert_eq!(said("A list in json.", Output::Json), ("A list in json.".to_owned(), vec![]));
    assert_eq!(said("A list.", Output::Text), ("A list.".to_owned(), vec![]));
}
