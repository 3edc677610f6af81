//! A form that chat can carry comes back from a chat body as it was, and every request has a form.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use koboshi_wire::Dialect;
use koboshi_wire::chat::ChatRequest;
use koboshi_wire::chat::body::write;
use koboshi_wire::chat::model::Flavor;
use koboshi_wire::form::{
    Call, Effort, Form, Image, Omission, Outcome, Part, Role, Signature, Thinking, Thought, Turn,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::common::facts;
use crate::forms;

fn written(form: &Form<'_>, flavor: Flavor) -> (Value, Vec<Omission>) {
    let written = write(form, flavor);
    (serde_json::from_slice(&written.body).unwrap(), written.left)
}

fn rules(left: &[Omission]) -> Vec<&'static str> {
    left.iter().map(|left| left.rule).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_chat_can_carry_comes_back(form in forms::carried_by_chat()) {
        let written = write(&form, Flavor::of(true, facts(&form.model)));
        prop_assert!(written.left.is_empty(), "{:?}", written.left);
        let again = ChatRequest::parse(&written.body).unwrap().form();
        prop_assert!(again.left.is_empty(), "{:?}", again.left);
        prop_assert_eq!(format!("{again:#?}"), format!("{form:#?}"));
        prop_assert_eq!(again.turn(), form.turn());
        prop_assert_eq!(again.needs(), form.needs());
    }

    /// The guard sees the same in a request and in its form.
    #[test]
    fn a_request_and_its_form_tell_the_same(form in forms::carried_by_chat()) {
        tell_the_same(&write(&form, Flavor::of(true, facts(&form.model))).body)?;
    }

    /// So it does where messages come in an order that no writer of ours makes: answers in a row, results without calls.
    #[test]
    fn messages_in_any_order_tell_the_same(messages in prop::collection::vec(message(), 0..12)) {
        tell_the_same(json!({"model": "m", "messages": messages}).to_string().as_bytes())?;
    }

    /// Whatever a form holds, what is written is a chat request.
    #[test]
    fn any_form_is_written_as_a_request(form in forms::anything()) {
        for flavor in [Flavor::of(true, facts(&form.model)), Flavor::default(), Flavor { reasoning: true, ..Flavor::default() }] {
            let body = write(&form, flavor).body;
            let again = ChatRequest::parse(&body).unwrap().form();
            prop_assert_eq!(again.tools.len(), form.tools.len());
            prop_assert!(again.left.is_empty(), "{:?}", again.left);
        }
    }
}

/// A message of a client that keeps to no order.
fn message() -> impl Strategy<Value = Value> {
    let call =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}});
    let id = || prop_oneof![Just("1"), Just("2"), Just("3")];
    prop_oneof![
        Just(json!({"role": "user", "content": "go"})),
        Just(json!({"role": "assistant", "content": "so"})),
        id().prop_map(move |id| json!({"role": "assistant", "content": null, "tool_calls": [call(id)]})),
        id().prop_map(|id| json!({"role": "tool", "tool_call_id": id, "content": format!("out {id}")})),
    ]
}

/// A request and its form tell the same of the conversation.
fn tell_the_same(body: &[u8]) -> Result<(), TestCaseError> {
    let request = ChatRequest::parse(body).unwrap();
    let form = request.form();
    let (mut of_form, of_request) = (form.calls(), request.calls());
    prop_assert_eq!(of_form.len(), of_request.len());
    for (one, other) in of_form.iter_mut().zip(&of_request) {
        // Turns and messages are numbered each in their own way.
        one.batch = other.batch;
    }
    prop_assert_eq!(of_form, of_request);
    prop_assert_eq!(form.turn(), request.turn());
    prop_assert_eq!(form.last_user_text(), request.last_user_text());
    let (one, other) = (form.needs(), request.needs());
    prop_assert_eq!(
        (one.tools, one.images, one.json, one.prefill, one.output),
        (other.tools, other.images, other.json, other.prefill, other.output)
    );
    Ok(())
}

fn turn<'a>(role: Role, parts: Vec<Part<'a>>) -> Turn<'a> {
    Turn { role, parts }
}

fn call<'a>(id: &'a str, free_text: bool) -> Part<'a> {
    let arguments = if free_text { "patch \"it\"" } else { "{\"a\":1}" };
    Part::Call(Call {
        id: id.into(),
        name: "f".into(),
        arguments: arguments.into(),
        free_text,
        signature: None,
    })
}

#[test]
fn pictures_of_results_come_after_all_results() {
    let image = || Part::Image(Image::Data { media_type: "image/png".into(), data: "AA".into() });
    let result = |id: &'static str, parts: Vec<Part<'static>>| {
        Part::Outcome(Outcome { id: id.into(), parts, failed: Some(true), ..Outcome::default() })
    };
    let form = Form {
        model: "gpt-4o".into(),
        turns: vec![
            turn(Role::Assistant, vec![call("1", false), call("2", false), call("3", false)]),
            turn(Role::User, vec![result("1", vec![Part::Text("one".into()), image()])]),
            turn(
                Role::User,
                vec![Part::Text("and?".into()), result("2", vec![image()]), result("3", vec![])],
            ),
        ],
        ..Form::default()
    };
    let (body, left) = written(&form, Flavor::of(true, facts("gpt-4o")));
    let roles: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["assistant", "tool", "tool", "tool", "user", "user"]);
    assert_eq!(body["messages"][1]["content"], "one\n[image: in the next message]");
    assert_eq!(body["messages"][3]["content"], "error", "a flag that says all is said");
    let pictures = body["messages"][4]["content"].as_array().unwrap();
    assert_eq!(pictures.len(), 2);
    assert_eq!(pictures[0], json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}));
    assert_eq!(body["messages"][5]["content"], "and?");
    assert_eq!(rules(&left), ["move_tool_image", "drop_error_flag"]);
    assert!(left.iter().all(|left| left.droppable));
}

#[test]
fn free_text_is_custom_for_openai_and_wrapped_for_others() {
    let tool = koboshi_wire::form::Tool {
        name: "f".into(),
        description: None,
        input: koboshi_wire::form::ToolInput::FreeText,
        strict: None,
    };
    let form = Form {
        model: "m".into(),
        turns: vec![turn(Role::Assistant, vec![call("1", true)])],
        tools: vec![tool],
        choice: koboshi_wire::form::Choice::Tool("f".into()),
        ..Form::default()
    };
    let (own, _) = written(&form, Flavor { openai: true, ..Flavor::default() });
    assert_eq!(own["tools"][0], json!({"type": "custom", "custom": {"name": "f"}}));
    assert_eq!(own["tool_choice"]["type"], "custom");
    assert_eq!(own["messages"][0]["tool_calls"][0]["custom"]["input"], "patch \"it\"");
    let (other, _) = written(&form, Flavor::default());
    assert_eq!(other["tools"][0]["function"]["parameters"]["required"], json!(["input"]));
    assert_eq!(other["tool_choice"], json!({"type": "function", "function": {"name": "f"}}));
    let arguments = other["messages"][0]["tool_calls"][0]["function"]["arguments"].as_str().unwrap();
    assert_eq!(koboshi_wire::form::free_text::unwrapped(arguments).as_deref(), Some("patch \"it\""));
}

#[test]
fn what_openais_thinkers_refuse_is_not_sent_to_them() {
    let mut form = Form { model: "o3".into(), max_output: Some(5), parallel: Some(false), ..Form::default() };
    form.sampling.temperature = Some(0.5);
    form.sampling.top_k = Some(3);
    form.thinking = Thinking::Budget(20_000);
    let (body, left) = written(&form, Flavor::of(true, facts("o3")));
    assert_eq!((&body["max_completion_tokens"], &body["reasoning_effort"]), (&json!(5), &json!("high")));
    assert!(
        body.get("max_tokens").is_none()
            && body.get("temperature").is_none()
            && body.get("parallel_tool_calls").is_none()
    );
    assert_eq!(rules(&left), ["drop_top_k", "drop_sampling_of_reasoning"]);
    let (body, left) = written(&form, Flavor::default());
    assert_eq!((&body["max_tokens"], &body["temperature"]), (&json!(5), &json!(0.5)));
    assert_eq!(rules(&left), ["drop_top_k", "drop_thinking"]);
}

#[test]
fn effort_is_said_in_words_that_the_model_knows() {
    let said = |model: &'static str, openai: bool, thinking: Thinking| {
        let form = Form { model: model.into(), thinking, ..Form::default() };
        let flavor = if openai {
            Flavor::of(true, facts(model))
        } else {
            Flavor { reasoning: true, ..Flavor::default() }
        };
        written(&form, flavor)
            .0
            .get("reasoning_effort")
            .and_then(Value::as_str)
            .map(str::to_owned)
            .unwrap_or_default()
    };
    let max = Thinking::Effort(Effort::Max);
    let minimal = Thinking::Effort(Effort::Minimal);
    for (model, openai, off, lowest, highest) in [
        ("o3", true, "low", "low", "high"),
        ("gpt-5", true, "minimal", "minimal", "high"),
        ("gpt-5-mini", true, "minimal", "minimal", "high"),
        ("openai/gpt-5.1", true, "none", "low", "high"),
        ("gpt-5.2", true, "none", "low", "xhigh"),
        ("gpt-5-chat-latest", true, "", "", ""),
        ("gpt-4o", true, "", "", ""),
        ("qwen3", false, "low", "low", "high"),
    ] {
        assert_eq!(
            (said(model, openai, Thinking::Off), said(model, openai, minimal), said(model, openai, max)),
            (off.to_owned(), lowest.to_owned(), highest.to_owned()),
            "{model}"
        );
        assert_eq!(said(model, openai, Thinking::Adaptive), "");
    }
}

#[test]
fn thoughts_and_seals_of_others_are_dropped_once_by_name() {
    let signature = || Some(Signature { of: Dialect::Messages, id: None, data: "sig".into() });
    let thought = || Part::Thought(Thought { text: "hm".into(), signature: signature(), hidden: false });
    let signed = Part::Call(Call {
        id: "1".into(),
        name: "f".into(),
        arguments: "{}".into(),
        free_text: false,
        signature: signature(),
    });
    let turns = vec![turn(Role::Assistant, vec![thought(), signed]), turn(Role::Assistant, vec![thought()])];
    let (body, left) = written(&Form { model: "m".into(), turns, ..Form::default() }, Flavor::default());
    assert_eq!(rules(&left), ["drop_foreign_thought", "drop_foreign_seal"]);
    assert_eq!(left[0].at, "turns[0]");
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "of a thought alone nothing is left");
    assert!(!body.to_string().contains("sig") && !body.to_string().contains("hm"));
}

#[test]
fn names_and_ids_fit_openai() {
    let long = "x".repeat(41);
    let mut form = Form {
        model: "gpt-4o".into(),
        turns: vec![
            turn(Role::Assistant, vec![call(&long, false)]),
            turn(Role::User, vec![Part::Outcome(Outcome { id: long.as_str().into(), ..Outcome::default() })]),
        ],
        ..Form::default()
    };
    let (body, left) = written(&form, Flavor::of(true, facts("gpt-4o")));
    let id = body["messages"][0]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 40 && body["messages"][1]["tool_call_id"] == id && left.is_empty());
    let tool = |name: &'static str| koboshi_wire::form::Tool {
        name: name.into(),
        description: None,
        input: koboshi_wire::form::ToolInput::Schema(None),
        strict: None,
    };
    form.tools = vec![tool("fine_name-1"), tool("my.server:tool")];
    let needed: Vec<_> = written(&form, Flavor::of(true, facts("gpt-4o")))
        .1
        .into_iter()
        .filter(|left| !left.droppable)
        .collect();
    assert_eq!(needed, [Omission::needed("needs_tool_name", "tools[1].name")]);
    assert!(written(&form, Flavor::default()).1.is_empty());
}

/// Claude Code names its user in some 150 letters.
#[test]
fn an_id_of_a_user_that_is_too_long_is_not_sent() {
    let said = |letters: usize| {
        let form = Form { model: "m".into(), user: Some("u".repeat(letters).into()), ..Form::default() };
        let (body, left) = written(&form, Flavor::of(true, facts("gpt-4o")));
        (body.get("user").is_some(), rules(&left))
    };
    assert_eq!(said(64), (true, vec![]));
    assert_eq!(said(65), (false, vec!["drop_user"]));
}

/// `DeepSeek` and Kimi refuse calls in the history without the thought before them; Groq refuses the field.
#[test]
fn who_demands_thoughts_before_calls_gets_them_back() {
    let thought = Part::Thought(Thought { text: "hm".into(), signature: None, hidden: false });
    let turns = vec![
        turn(Role::Assistant, vec![thought.clone(), call("1", false)]),
        turn(Role::Assistant, vec![call("2", false)]),
        turn(Role::Assistant, vec![thought, Part::Text("so".into())]),
    ];
    let said = |openai: bool, model: &'static str, thinks: bool| {
        let form = Form { model: model.into(), turns: turns.clone(), ..Form::default() };
        let (body, left) =
            written(&form, Flavor::of(openai, facts(model).with(|facts| facts.reasoning = Some(thinks))));
        let each = body["messages"].as_array().unwrap().iter();
        let thoughts = each.map(|message| message.get("reasoning_content").cloned()).collect::<Vec<_>>();
        (thoughts, rules(&left))
    };
    let back = vec![Some(json!("hm")), Some(json!(".")), None];
    for model in ["deepseek-v4-pro", "deepseek/deepseek-reasoner", "moonshotai/Kimi-K2.5"] {
        assert_eq!(
            said(false, model, true),
            (back.clone(), vec!["add_missing_thought", "drop_foreign_thought"]),
            "{model}"
        );
    }
    for (openai, model, thinks) in
        [(true, "o3", true), (false, "gpt-oss-120b", true), (false, "deepseek-chat", false)]
    {
        assert_eq!(said(openai, model, thinks), (vec![None; 3], vec!["drop_foreign_thought"]), "{model}");
    }
}

/// OpenAI refuses objects without `properties`, and schemas that are no object at their top.
#[test]
fn the_schema_of_a_tool_is_one_that_openai_takes() {
    let sent = |schema: &str, flavor: Flavor| {
        let raw = serde_json::value::RawValue::from_string(schema.to_owned()).unwrap();
        let tool = koboshi_wire::form::Tool {
            name: "f".into(),
            description: None,
            input: koboshi_wire::form::ToolInput::Schema(Some(std::borrow::Cow::Owned(raw))),
            strict: None,
        };
        let form = Form { model: "gpt-4o".into(), tools: vec![tool], ..Form::default() };
        let (body, left) = written(&form, flavor);
        (body["tools"][0]["function"]["parameters"].to_string(), rules(&left))
    };
    let openai = Flavor::of(true, facts("gpt-4o"));
    let empty = r#"{"properties":{},"type":"object"}"#;
    for schema in [r#"{"type":"object"}"#, "{}", r#"{"type":"null"}"#] {
        assert_eq!(sent(schema, openai), (empty.to_owned(), vec!["fit_tool_schema"]), "{schema}");
    }
    let whole = r#"{"properties":{"a":{}},"type":"object"}"#;
    assert_eq!(sent(whole, openai), (whole.to_owned(), vec![]));
    let union = r#"{"anyOf":[{"type":"object"}]}"#;
    assert_eq!(sent(union, openai), (empty.to_owned(), vec!["loosen_union_schema"]));
    assert_eq!(sent(union, Flavor::default()), (union.to_owned(), vec![]), "others may take it");
}

/// In chat OpenAI's later models call tools only while they do not think, and think unless told otherwise.
#[test]
fn beside_tools_later_models_get_no_thinking() {
    let said = |model: &'static str, openai: bool, tools: usize, thinking: Thinking| {
        let tool = koboshi_wire::form::Tool {
            name: "f".into(),
            description: None,
            input: koboshi_wire::form::ToolInput::Schema(None),
            strict: None,
        };
        let form = Form { model: model.into(), thinking, tools: vec![tool; tools], ..Form::default() };
        let (body, left) = written(&form, Flavor::of(openai, facts(model)));
        (body["reasoning_effort"].as_str().unwrap_or_default().to_owned(), rules(&left))
    };
    let high = Thinking::Effort(Effort::High);
    let rule = vec!["drop_effort_beside_tools"];
    for model in ["gpt-5.4", "gpt-5.4-mini", "openai/gpt-5.6-terra", "gpt-5.10"] {
        assert_eq!(said(model, true, 1, high), ("none".to_owned(), rule.clone()), "{model}");
        assert_eq!(said(model, true, 1, Thinking::Unspecified), ("none".to_owned(), rule.clone()), "{model}");
        assert_eq!(said(model, true, 1, Thinking::Off), ("none".to_owned(), vec![]), "{model}");
        assert_eq!(said(model, true, 0, high), ("high".to_owned(), vec![]), "{model}");
    }
    for model in ["gpt-5", "gpt-5.1", "gpt-5.2-mini", "o3"] {
        assert_eq!(said(model, true, 1, high), ("high".to_owned(), vec![]), "{model}");
        assert_eq!(said(model, true, 1, Thinking::Unspecified), (String::new(), vec![]), "{model}");
    }
    assert_eq!(said("gpt-5.6", false, 1, Thinking::Unspecified), (String::new(), vec![]), "not OpenAI's own");
}

/// Servers refuse the mode where the conversation does not name it.
#[test]
fn json_is_named_where_an_answer_in_it_is_asked_for() {
    let said = |system: &'static str, text: &'static str, output: koboshi_wire::form::Output<'static>| {
        let system = (!system.is_empty()).then(|| system.into()).into_iter().collect();
        let turns = vec![turn(Role::User, vec![Part::Text(text.into())])];
        let form = Form { model: "gpt-4o".into(), system, turns, output, ..Form::default() };
        let (body, left) = written(&form, Flavor::of(true, facts("gpt-4o")));
        (body["messages"][0]["content"].as_str().unwrap().to_owned(), rules(&left))
    };
    use koboshi_wire::form::Output::{Json, Text};
    let asked = "Answer with one JSON object and nothing else.";
    assert_eq!(said("", "A list.", Json), (asked.to_owned(), vec!["name_json"]));
    assert_eq!(said("Be brief.", "A list.", Json), (format!("Be brief.\n\n{asked}"), vec!["name_json"]));
    assert_eq!(said("As json.", "A list.", Json), ("As json.".to_owned(), vec![]));
    assert_eq!(said("", "A list in Json.", Json), ("A list in Json.".to_owned(), vec![]));
    assert_eq!(said("", "A list.", Text), ("A list.".to_owned(), vec![]));
}

/// It refuses fields that it does not know, and ids of calls other than its own.
#[test]
fn mistral_gets_only_what_it_knows() {
    let result = |id: &'static str| Part::Outcome(Outcome { id: id.into(), ..Outcome::default() });
    let mut form = Form {
        model: "mistral-large-latest".into(),
        stream: true,
        user: Some("u".into()),
        turns: vec![
            turn(
                Role::Assistant,
                vec![call("toolu_01", false), call("toolu_02", false), call("D681PevKs", false)],
            ),
            turn(Role::User, vec![result("toolu_01"), result("toolu_02"), result("D681PevKs")]),
        ],
        ..Form::default()
    };
    form.sampling.seed = Some(7);
    let (body, left) = written(&form, Flavor { mistral: true, ..Flavor::default() });
    for field in ["stream_options", "user", "seed"] {
        assert_eq!(body.get(field), None);
    }
    assert_eq!((&body["random_seed"], rules(&left)), (&json!(7), vec!["drop_user"]));
    let ids: Vec<&str> =
        (0..3).map(|at| body["messages"][0]["tool_calls"][at]["id"].as_str().unwrap()).collect();
    for (at, id) in ids.iter().enumerate() {
        assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        assert_eq!(body["messages"][at + 1]["tool_call_id"], *id, "call and result find each other");
    }
    assert!(ids[0] != ids[1] && ids[2] == "D681PevKs");
    form.sampling.seed = Some(-7);
    let (body, left) = written(&form, Flavor { mistral: true, ..Flavor::default() });
    assert_eq!((body.get("random_seed"), rules(&left)), (None, vec!["drop_seed", "drop_user"]));
}
