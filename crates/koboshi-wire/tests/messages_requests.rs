//! Requests of this dialect: what is asked is understood, written for the vendor as it demands, and changed byte-exactly.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::borrow::Cow;

use bytes::Bytes;
use koboshi_wire::chat::Correction;
use koboshi_wire::dialect::Dialect;
use koboshi_wire::form::{
    Call, Choice, Effort, Form, Image, Media, Omission, Outcome, Output, Part, Role, Sampling, Signature,
    Thinking, Thought, Tool, ToolInput, Turn,
};
use koboshi_wire::messages::writer::WholeCall;
use koboshi_wire::messages::{MessagesRequest, Rewrite, body};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::common::facts;

fn raw(value: &Value) -> Cow<'static, RawValue> {
    Cow::Owned(RawValue::from_string(value.to_string()).unwrap())
}

fn turn<'a>(role: Role, parts: impl IntoIterator<Item = Part<'a>>) -> Turn<'a> {
    Turn { role, parts: parts.into_iter().collect() }
}

fn text(text: &str) -> Part<'_> {
    Part::Text(text.into())
}

fn call<'a>(id: &'a str, arguments: &'a str) -> Part<'a> {
    Part::Call(Call { id: id.into(), name: "f".into(), arguments: arguments.into(), ..Call::default() })
}

fn outcome<'a>(id: &'a str, said: &'a str) -> Part<'a> {
    Part::Outcome(Outcome { id: id.into(), parts: vec![text(said)], ..Outcome::default() })
}

fn form<'a>(turns: impl IntoIterator<Item = Turn<'a>>) -> Form<'a> {
    Form { model: "claude-sonnet-4-5".into(), turns: turns.into_iter().collect(), ..Form::default() }
}

/// The body of a form, and the names of what did not come along.
fn written(form: &Form<'_>) -> (Value, Vec<&'static str>) {
    let written = body::write(form, facts(&form.model));
    MessagesRequest::parse(&written.body).unwrap();
    let rules = written.left.iter().map(|left| left.rule).collect();
    (serde_json::from_slice(&written.body).unwrap(), rules)
}

#[test]
fn only_what_the_gateway_must_understand_is_refused() {
    for (body, said) in [
        ("{", "the request body ends too early, at line 1, column 1"),
        ("[]", "the request body must be a JSON object"),
        (r#"{"messages":[]}"#, "`model` is missing"),
        (r#"{"model":7,"messages":[]}"#, "`model` must be the name of a model, as text"),
        (r#"{"model":"m"}"#, "`messages` is missing"),
        (r#"{"model":"m","messages":{}}"#, "`messages` must be a list of messages"),
        (r#"{"model":"m","messages":["x"]}"#, "`messages[0]` must be an object"),
        (r#"{"model":"m","messages":[{"content":"x"}]}"#, "`messages[0].role` is missing"),
        (r#"{"model":"m","messages":[],"stream":"yes"}"#, "`stream` must be true or false"),
        (r#"{"model":"m","model":"n","messages":[]}"#, "`model` is given twice; give it once"),
    ] {
        assert_eq!(MessagesRequest::parse(body.as_bytes()).unwrap_err().to_string(), said);
    }
    let odd = r#"{"model":"m","messages":[{"role":"user","content":7},{"role":"user"},{"role":"user","content":[7,{"type":"text"}]}],"tools":"x","system":7,"max_tokens":"many","thinking":[],"stop_sequences":{"a":1},"tool_choice":"auto","metadata":3,"output_config":1}"#;
    assert_eq!(MessagesRequest::parse(odd.as_bytes()).unwrap().form().turns.len(), 3);
}

#[test]
fn what_only_the_vendor_can_do_is_needed() {
    let user = |block: Value| json!({"messages": [{"role": "user", "content": [block]}]});
    for (fields, rule) in [
        (
            json!({"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]}),
            "needs_hosted_tool",
        ),
        (json!({"tools": [{"type": "bash_20250124", "name": "bash"}]}), "needs_hosted_tool"),
        (json!({"mcp_servers": [{"type": "url", "url": "https://example.com"}]}), "needs_hosted_tool"),
        (json!({"container": "container_1"}), "needs_container"),
        (json!({"inference_geo": "eu"}), "needs_inference_geo"),
        (json!({"thread": {"id": "t"}}), "needs_server_state"),
        (json!({"output_format": {"type": "xml"}}), "needs_response_format"),
        (
            user(json!({"type": "image", "source": {"type": "file", "file_id": "file_1"}})),
            "needs_stored_file",
        ),
        (
            user(json!({"type": "document", "source": {"type": "url", "url": "https://example.com/a.pdf"}})),
            "needs_document_url",
        ),
        (
            user(json!({"type": "web_search_tool_result", "tool_use_id": "srv", "content": []})),
            "needs_hosted_tool",
        ),
        (
            user(json!({"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {}})),
            "needs_hosted_tool",
        ),
        (user(json!({"type": "hologram"})), "needs_part"),
    ] {
        let mut body = json!({"model": "m", "messages": []});
        body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let body = body.to_string();
        let request = MessagesRequest::parse(body.as_bytes()).unwrap();
        let needed: Vec<_> = request.form().left.iter().filter(|left| !left.droppable).collect();
        assert_eq!(needed.iter().map(|left| left.rule).collect::<Vec<_>>(), [rule], "{body}");
    }
    let empty = br#"{"model":"m","messages":[],"container":null,"mcp_servers":[]}"#;
    assert!(MessagesRequest::parse(empty).unwrap().form().left.iter().all(|left| left.droppable));
}

#[test]
fn metadata_tools_and_opening_are_found() {
    let body = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/messages/claude_code.json"))
        .unwrap();
    let request = MessagesRequest::parse(&body).unwrap();
    assert!(request.metadata("user_id").unwrap().contains("session_id"));
    assert_eq!(request.metadata("mode"), None);
    let tools: Vec<_> = request.tools().map(|(name, schema)| (name, schema.is_some())).collect();
    assert_eq!(tools, [("Bash", true), ("Write", true), ("TodoWrite", true)]);
    let opening = std::str::from_utf8(request.opening()).unwrap();
    assert!(
        opening.starts_with(r#"[{"role":"user""#) && opening.ends_with(r#""Write hello.txt and show it.""#),
        "{opening}"
    );
    // The mark for the cache moves on; the opening stays.
    let one = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"go","cache_control":{"type":"ephemeral"}}]}]}"#;
    let two = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"go"}]},{"role":"assistant","content":"ok"}]}"#;
    let [one, two] = [one, two].map(|body| MessagesRequest::parse(body.as_bytes()).unwrap().opening());
    assert_eq!(one, two);
    let plain = br#"{"messages":[{"role":"user","content":"go"}],"model":"m"}"#;
    assert_eq!(MessagesRequest::parse(plain).unwrap().opening(), br#"[{"role":"user","content":"go""#);
}

#[test]
fn turns_alternate_and_results_follow_their_calls() {
    let asked = form([
        turn(Role::Assistant, [text("Welcome.")]),
        turn(Role::User, [text("a")]),
        turn(Role::User, [text("  "), text("b")]),
        turn(Role::Assistant, [text("I call."), call("x.1", "{\"a\": 1}"), call("2", "{oops")]),
        turn(Role::Assistant, [call("3", "")]),
        turn(Role::System, [text("Be quick.")]),
        turn(Role::User, [outcome("3", "three"), text("go on")]),
        turn(Role::User, [outcome("x.1", "one"), outcome("9", "whose?")]),
    ]);
    let (body, rules) = written(&asked);
    let messages = body["messages"].as_array().unwrap();
    let roles: Vec<_> = messages.iter().map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
    assert_eq!(messages[2]["content"], json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]));
    let calls = messages[3]["content"].as_array().unwrap();
    assert_eq!(calls[1]["input"], json!({"a": 1}));
    assert_eq!(calls[2]["input"], json!({"_raw": "{oops"}));
    assert_eq!(calls[3]["input"], json!({}));
    let said = messages[4]["content"].as_array().unwrap();
    let ids: Vec<_> = said[..3].iter().map(|result| &result["tool_use_id"]).collect();
    assert_eq!(
        ids,
        [&calls[1]["id"], &calls[2]["id"], &calls[3]["id"]],
        "in the order of the calls, each once"
    );
    assert_eq!(
        (&said[0]["content"], &said[1]["is_error"], &said[2]["content"]),
        (&json!("one"), &json!(true), &json!("three"))
    );
    let rest: Vec<_> = said[3..].iter().map(|block| block["text"].as_str().unwrap()).collect();
    assert_eq!(rest, ["Be quick.", "go on", "whose?"]);
    for rule in [
        "add_first_user_turn", "wrap_broken_arguments", "system_turn_as_user", "add_missing_result",
        "orphan_result_as_text", "declare_past_tools",
    ] {
        assert_eq!(rules.iter().filter(|known| **known == rule).count(), 1, "{rule}: {rules:?}");
    }
    assert_eq!(body["tools"], json!([{"name": "f", "input_schema": {"type": "object"}}]));
    assert_eq!(body["tool_choice"], json!({"type": "none"}));
}

#[test]
fn ids_that_come_again_are_made_distinct() {
    let round =
        |said| [turn(Role::Assistant, [call("call_0", "{}")]), turn(Role::User, [outcome("call_0", said)])];
    let twice = turn(Role::Assistant, [call("", "{}"), call("", "{}")]);
    let asked = form(
        [turn(Role::User, [text("go")])]
            .into_iter()
            .chain(round("one"))
            .chain(round("two"))
            .chain([twice, turn(Role::User, [outcome("", "three"), outcome("", "four")])]),
    );
    let (body, rules) = written(&asked);
    assert!(!rules.contains(&"add_missing_result") && !rules.contains(&"orphan_result_as_text"), "{rules:?}");
    let blocks: Vec<&Value> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| message["content"].as_array())
        .flatten()
        .collect();
    let of = |kind: &str, field: &str| -> Vec<String> {
        blocks
            .iter()
            .filter(|block| block["type"] == kind)
            .map(|block| block[field].as_str().unwrap().to_owned())
            .collect()
    };
    let made = of("tool_use", "id");
    assert_eq!(made, of("tool_result", "tool_use_id"));
    assert_eq!(of("tool_result", "content"), ["one", "two", "three", "four"]);
    let mut different = made.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 4, "{made:?}");
}

#[test]
fn a_result_goes_to_the_call_of_its_own_answer() {
    let asked = form([
        turn(Role::User, [text("go")]),
        turn(Role::Assistant, [call("call_0", "{\"n\":1}")]),
        turn(Role::User, [text("never mind")]),
        turn(Role::Assistant, [call("call_0", "{\"n\":2}")]),
        turn(Role::User, [outcome("call_0", "two")]),
    ]);
    let (body, rules) = written(&asked);
    assert_eq!(rules.iter().filter(|rule| **rule == "add_missing_result").count(), 1);
    let last = &body["messages"][4]["content"][0];
    assert_eq!(
        (&last["content"], &last["tool_use_id"]),
        (&json!("two"), &body["messages"][3]["content"][0]["id"])
    );
    assert_eq!(body["messages"][2]["content"][1], json!({"type": "text", "text": "never mind"}));
}

#[test]
fn foreign_thoughts_and_seals_stay_behind() {
    let thought =
        |of, said: &'static str| Part::Thought(Thought { text: said.into(), signature: of, hidden: false });
    let signature = |of| Some(Signature { of, id: None, data: "s".into() });
    let mut signed = Call { id: "1".into(), name: "f".into(), arguments: "{}".into(), ..Call::default() };
    signed.signature = signature(Dialect::Gemini);
    let asked = form([
        turn(Role::User, [text("go")]),
        turn(
            Role::Assistant,
            [
                thought(signature(Dialect::Messages), "ours"),
                thought(signature(Dialect::Responses), "theirs"),
                thought(None, "bare"),
                Part::Call(signed),
            ],
        ),
        turn(Role::User, [outcome("1", "ok")]),
        turn(Role::Assistant, [thought(signature(Dialect::Messages), "last")]),
    ]);
    let (body, rules) = written(&asked);
    let content = &body["messages"][1]["content"];
    assert_eq!(content[0], json!({"type": "thinking", "thinking": "ours", "signature": "s"}));
    assert_eq!(content[1]["type"], "tool_use");
    assert_eq!(body["messages"].as_array().unwrap().len(), 3, "a thought alone cannot end a conversation");
    let count = |rule| rules.iter().filter(|known| **known == rule).count();
    assert_eq!(
        (count("drop_foreign_seal"), count("drop_foreign_thought"), count("drop_last_thought")),
        (2, 2, 1)
    );
}

fn with_thinking(
    model: &'static str,
    thinking: Thinking,
    max_output: Option<u64>,
) -> (Value, Vec<&'static str>) {
    let asked = form([turn(Role::User, [text("go")])]);
    let sampling =
        Sampling { temperature: Some(1.5), top_p: Some(0.5), top_k: Some(3), ..Sampling::default() };
    written(&Form { model: model.into(), thinking, max_output, sampling, ..asked })
}

#[test]
fn thinking_is_said_as_the_model_takes_it() {
    for (model, wish, max, thinking, effort, max_tokens) in [
        ("claude-sonnet-4-5", Thinking::Unspecified, None, Value::Null, Value::Null, 8192),
        ("claude-sonnet-4-5", Thinking::Off, Some(9), json!({"type": "disabled"}), Value::Null, 9),
        (
            "claude-sonnet-4-5",
            Thinking::Budget(4000),
            None,
            json!({"type": "enabled", "budget_tokens": 4000}),
            Value::Null,
            12192,
        ),
        (
            "claude-sonnet-4-5",
            Thinking::Budget(4000),
            Some(4000),
            json!({"type": "enabled", "budget_tokens": 3999}),
            Value::Null,
            4000,
        ),
        (
            "claude-sonnet-4-5",
            Thinking::Budget(100),
            Some(4000),
            json!({"type": "enabled", "budget_tokens": 1024}),
            Value::Null,
            4000,
        ),
        ("claude-sonnet-4-5", Thinking::Budget(4000), Some(1024), Value::Null, Value::Null, 1024),
        (
            "claude-sonnet-4-5",
            Thinking::Effort(Effort::High),
            None,
            json!({"type": "enabled", "budget_tokens": 16384}),
            Value::Null,
            24576,
        ),
        (
            "claude-opus-4-6",
            Thinking::Budget(4000),
            None,
            json!({"type": "enabled", "budget_tokens": 4000}),
            Value::Null,
            12192,
        ),
        (
            "claude-opus-4-6",
            Thinking::Effort(Effort::Low),
            None,
            json!({"type": "adaptive"}),
            json!("low"),
            8192,
        ),
        ("claude-sonnet-5", Thinking::Adaptive, None, json!({"type": "adaptive"}), Value::Null, 8192),
        (
            "claude-sonnet-5",
            Thinking::Budget(31999),
            Some(32000),
            json!({"type": "adaptive"}),
            json!("high"),
            32000,
        ),
        (
            "claude-sonnet-5",
            Thinking::Effort(Effort::Minimal),
            None,
            json!({"type": "adaptive"}),
            json!("low"),
            8192,
        ),
        ("claude-3-5-haiku-latest", Thinking::Adaptive, None, Value::Null, Value::Null, 8192),
    ] {
        let (body, rules) = with_thinking(model, wish, max);
        let found = |name: &str| body.get(name).cloned().unwrap_or_default();
        assert_eq!(
            (found("thinking"), found("max_tokens")),
            (thinking, json!(max_tokens)),
            "{model} {wish:?} {rules:?}"
        );
        assert_eq!(
            found("output_config").get("effort").cloned().unwrap_or_default(),
            effort,
            "{model} {wish:?}"
        );
        let thinks = body.get("thinking").is_some_and(|thinking| thinking["type"] != "disabled");
        assert_eq!(
            body.get("temperature").is_none(),
            thinks || model == "claude-sonnet-5",
            "{model} {wish:?}"
        );
    }
}

#[test]
fn sampling_is_kept_in_bounds() {
    let (body, rules) = with_thinking("claude-sonnet-4-5", Thinking::Unspecified, None);
    assert_eq!((&body["temperature"], body.get("top_p"), &body["top_k"]), (&json!(1.0), None, &json!(3)));
    assert_eq!(rules, ["clamp_temperature", "drop_top_p_beside_temperature"]);
    let (body, rules) = with_thinking("MiniMax-M2", Thinking::Unspecified, None);
    assert_eq!((&body["top_p"], rules), (&json!(0.5), vec!["clamp_temperature"]));
    let (_, rules) = with_thinking("claude-opus-4-7", Thinking::Unspecified, None);
    assert_eq!(rules, ["drop_sampling"; 3]);
    let sampling = Sampling {
        frequency_penalty: Some(0.1),
        presence_penalty: Some(0.1),
        seed: Some(7),
        stop: vec!["\n".into(), "END".into()],
        answers: Some(2),
        ..Sampling::default()
    };
    let asked = Form { sampling, ..form([turn(Role::User, [text("go")])]) };
    let (body, rules) = written(&asked);
    assert_eq!(body["stop_sequences"], json!(["END"]));
    assert_eq!(
        rules,
        ["drop_frequency_penalty", "drop_presence_penalty", "drop_seed", "drop_blank_stop", "needs_answers"]
    );
}

#[test]
fn thinking_gives_way_to_what_it_cannot_go_with() {
    let tool = Tool { name: "f".into(), description: None, input: ToolInput::Schema(None), strict: None };
    let base = || Form {
        thinking: Thinking::Budget(2000),
        tools: vec![tool.clone()],
        ..form([turn(Role::User, [text("go")])])
    };
    let forced = Form { choice: Choice::Any, ..base() };
    let mut prefilled = base();
    prefilled.turns.push(turn(Role::Assistant, [text("So")]));
    let mut looping = base();
    looping.turns.push(turn(Role::Assistant, [call("1", "{}")]));
    looping.turns.push(turn(Role::User, [outcome("1", "ok")]));
    for (asked, rule) in [
        (forced, "drop_thinking_for_forced_tool"),
        (prefilled, "drop_thinking_for_prefill"),
        (looping, "drop_thinking_in_tool_loop"),
    ] {
        let (body, rules) = written(&asked);
        assert_eq!((body.get("thinking"), rules), (None, vec![rule]));
    }
    assert!(written(&base()).0.get("thinking").is_some());
}

#[test]
fn tools_and_answers_are_fitted() {
    let tool = |name: &'static str, input| Tool {
        name: name.into(),
        description: Some("d".into()),
        input,
        strict: Some(true),
    };
    let tools = vec![
        tool("plain", ToolInput::Schema(Some(raw(&json!({"type": "object"}))))),
        tool("patch", ToolInput::FreeText),
        tool("dotted.name", ToolInput::Schema(None)),
        tool("union", ToolInput::Schema(Some(raw(&json!({"anyOf": []}))))),
    ];
    let schema = Output::Schema {
        name: Some("n".into()),
        schema: raw(&json!({"type": "object"})),
        strict: Some(true),
    };
    let asked = Form {
        tools,
        choice: Choice::Tool("plain".into()),
        parallel: Some(false),
        output: schema,
        user: Some("u".repeat(300).into()),
        system: vec!["s".into(), " ".into()],
        ..form([turn(Role::User, [text("go")])])
    };
    let (body, rules) = written(&asked);
    assert_eq!(body["tools"][1]["input_schema"]["required"], json!(["input"]));
    assert_eq!(
        body["tool_choice"],
        json!({"type": "tool", "name": "plain", "disable_parallel_tool_use": true})
    );
    assert_eq!(
        body["output_config"]["format"],
        json!({"type": "json_schema", "schema": {"type": "object", "additionalProperties": false}})
    );
    assert_eq!(body["system"], json!([{"type": "text", "text": "s"}]));
    assert_eq!(rules, ["fit_schema", "needs_tool_name", "loosen_union_schema", "drop_user"]);
    let (body, rules) = written(&Form { model: "claude-3-haiku-20240307".into(), ..asked.clone() });
    assert!(body["system"][1]["text"].as_str().unwrap().ends_with(r#"{"type":"object"}"#));
    assert!(
        rules.contains(&"schema_by_prompt")
            && rules.contains(&"drop_strict")
            && body.get("output_config").is_none()
    );
    let (body, rules) = written(&Form { output: Output::Json, tools: Vec::new(), ..asked });
    assert_eq!((body["system"].as_array().unwrap().len(), rules[0]), (2, "json_by_prompt"));
    assert!(body.get("tool_choice").is_none(), "no tools, no choice");
}

#[test]
fn a_prompt_alone_and_odd_media_are_handled() {
    let (body, rules) = written(&Form { system: vec!["Say hi.".into()], ..form([]) });
    assert_eq!(
        (&body["messages"], body.get("system"), rules),
        (&json!([{"role": "user", "content": "Say hi."}]), None, vec!["system_as_user"])
    );
    let media =
        |kind: &'static str| Part::Media(Media { media_type: kind.into(), data: "AA".into(), name: None });
    let picture = Part::Image(Image::Data { media_type: "image/tiff".into(), data: "AA".into() });
    let asked = form([
        turn(Role::User, [media("application/pdf"), media("audio/wav"), media("text/csv"), picture]),
        turn(Role::Assistant, [media("application/pdf"), text("x")]),
    ]);
    let (body, rules) = written(&asked);
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 1);
    assert_eq!(rules, ["needs_audio", "needs_media", "needs_media", "drop_image_of_model"]);
}

#[test]
fn a_failed_result_with_a_picture_loses_its_mark() {
    let picture = Part::Image(Image::Url("https://example.com/a.png".into()));
    let failed =
        |parts| Part::Outcome(Outcome { id: "1".into(), parts, failed: Some(true), ..Outcome::default() });
    for (parts, mark, rules) in [
        (vec![text("no"), picture], None, vec!["drop_error_flag", "declare_past_tools"]),
        (vec![text("no")], Some(&json!(true)), vec!["declare_past_tools"]),
    ] {
        let asked = form([
            turn(Role::User, [text("go")]),
            turn(Role::Assistant, [call("1", "{}")]),
            turn(Role::User, [failed(parts)]),
        ]);
        let (body, found) = written(&asked);
        assert_eq!((body["messages"][2]["content"][0].get("is_error"), found), (mark, rules));
    }
}

// What is written is read back.

fn words() -> impl Strategy<Value = String> {
    "[a-zé\"\\\\]{1,3}[ -~\n日]{0,8}[a-z]"
}

fn of_user() -> impl Strategy<Value = Part<'static>> {
    prop_oneof![
        words().prop_map(|text| Part::Text(text.into())),
        "[A-Za-z0-9+/]{4}"
            .prop_map(|data| Part::Image(Image::Data { media_type: "image/png".into(), data: data.into() })),
        "https://[a-z]{1,5}/".prop_map(|url| Part::Image(Image::Url(url.into()))),
        ("[A-Za-z0-9+/]{4}", option::of("[a-z.]{1,5}")).prop_map(|(data, name)| {
            Part::Media(Media {
                media_type: "application/pdf".into(),
                data: data.into(),
                name: name.map(Cow::Owned),
            })
        }),
    ]
}

fn of_model() -> impl Strategy<Value = Part<'static>> {
    let signature = |data: String| Some(Signature { of: Dialect::Messages, id: None, data: data.into() });
    prop_oneof![
        words().prop_map(|text| Part::Text(text.into())),
        (words(), "[a-z]{3}").prop_map(move |(text, data)| Part::Thought(Thought {
            text: text.into(),
            signature: signature(data),
            hidden: false
        })),
        "[a-z]{3}".prop_map(move |data| Part::Thought(Thought {
            text: "".into(),
            signature: signature(data),
            hidden: true
        })),
    ]
}

type Round = (Vec<Part<'static>>, Vec<Part<'static>>, Vec<(String, Option<bool>)>);

/// A round: the user speaks, the model answers and calls, the results come back.
fn round() -> impl Strategy<Value = Round> {
    (vec(of_user(), 1..3), vec(of_model(), 0..3), vec((words(), option::of(any::<bool>())), 0..3))
}

fn conversation() -> impl Strategy<Value = Vec<Turn<'static>>> {
    vec(round(), 1..4).prop_map(|rounds| {
        let mut turns: Vec<Turn<'static>> = Vec::new();
        let mut carried: Vec<Part<'static>> = Vec::new();
        let mut made = 0;
        for (said, mut answered, calls) in rounds {
            carried.extend(said);
            turns.push(turn(Role::User, std::mem::take(&mut carried)));
            answered.push(text("done"));
            for (result, failed) in calls {
                made += 1;
                let (id, name) = (format!("toolu_{made}"), format!("tool_{}", made % 2));
                answered.push(Part::Call(Call {
                    id: id.clone().into(),
                    name: name.clone().into(),
                    arguments: json!({ "said": result }).to_string().into(),
                    ..Call::default()
                }));
                carried.push(Part::Outcome(Outcome {
                    id: id.into(),
                    name: Some(name.into()),
                    parts: vec![Part::Text(result.into())],
                    failed,
                    free_text: false,
                }));
            }
            turns.push(turn(Role::Assistant, answered));
        }
        carried.push(text("and now"));
        turns.push(turn(Role::User, carried));
        turns
    })
}

fn choices() -> impl Strategy<Value = (Choice<'static>, Option<bool>)> {
    prop_oneof![
        Just((Choice::Unspecified, None)),
        option::of(any::<bool>()).prop_map(|parallel| (Choice::Auto, parallel)),
        option::of(any::<bool>()).prop_map(|parallel| (Choice::Any, parallel)),
        option::of(any::<bool>()).prop_map(|parallel| (Choice::Tool("tool_1".into()), parallel)),
        Just((Choice::Never, None)),
    ]
}

/// What can be compared of a form.
fn shape(form: &Form<'_>) -> (Value, Vec<Turn<'static>>) {
    let tools: Vec<Value> = form
        .tools
        .iter()
        .map(|tool| {
            let schema = match &tool.input {
                ToolInput::Schema(schema) => schema.as_ref().map(|schema| schema.get()),
                ToolInput::FreeText => None,
            };
            json!([tool.name, tool.description, schema, tool.strict])
        })
        .collect();
    let output = match &form.output {
        Output::Schema { schema, .. } => json!(schema.get()),
        _ => Value::Null,
    };
    let rest = json!([
        form.model,
        form.stream,
        form.system,
        tools,
        output,
        form.max_output,
        form.user,
        form.parallel,
        format!("{:?} {:?} {:?}", form.choice, form.thinking, form.sampling),
    ]);
    let owned = body_turns(form);
    (rest, owned)
}

fn body_turns(form: &Form<'_>) -> Vec<Turn<'static>> {
    // Through their text: turns borrow from bodies that are gone when they are compared.
    form.turns
        .iter()
        .map(|turn| Turn { role: turn.role, parts: vec![Part::Text(format!("{:?}", turn.parts).into())] })
        .collect()
}

#[test]
fn what_the_dialect_can_carry_is_read_back_as_it_was() {
    let config = ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() };
    let settings = (
        vec(words(), 0..3),
        choices(),
        any::<bool>(),
        option::of(2000..100_000_u64),
        option::of(words()),
        0..4_u8,
    );
    proptest!(config, |(turns in conversation(), (system, (choice, parallel), stream, max, user, kind) in settings)| {
        let forced = matches!(choice, Choice::Any | Choice::Tool(_));
        let (model, thinking) = match kind {
            0 => ("claude-sonnet-5", Thinking::Unspecified),
            1 => ("claude-sonnet-4-5", Thinking::Off),
            2 if !forced => ("claude-sonnet-5", Thinking::Effort(Effort::High)),
            _ if !forced => ("claude-sonnet-5", Thinking::Adaptive),
            _ => ("claude-opus-4-6", Thinking::Unspecified),
        };
        let sampling = if kind == 1 { Sampling { temperature: Some(0.5), top_k: Some(3), stop: vec!["END".into()], ..Sampling::default() } } else { Sampling::default() };
        let schema = json!({"type": "object", "properties": {}, "additionalProperties": false});
        let tool = |name: &'static str| Tool { name: name.into(), description: Some("d".into()), input: ToolInput::Schema(Some(raw(&schema))), strict: Some(true) };
        let asked = Form {
            model: model.into(),
            stream,
            system: system.into_iter().map(Cow::Owned).collect(),
            turns,
            tools: vec![tool("tool_0"), tool("tool_1")],
            choice,
            parallel,
            output: Output::Schema { name: None, schema: raw(&schema), strict: None },
            sampling,
            max_output: Some(max.unwrap_or(5000)),
            thinking,
            user: user.map(Cow::Owned),
            left: Vec::new(),
        };
        let written = body::write(&asked, facts(&asked.model));
        prop_assert_eq!(written.left, Vec::<Omission>::new());
        let request = MessagesRequest::parse(&written.body).unwrap();
        prop_assert_eq!(&request.form().left, &Vec::<Omission>::new());
        prop_assert_eq!(shape(request.form()), shape(&asked));
    });
}

// Changes.

/// The body after these wishes.
fn changed(body: &str, wish: impl Fn(&mut Rewrite<'_>)) -> String {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let request = MessagesRequest::parse(&body).unwrap();
    let mut rewrite = Rewrite::of(&request, &body);
    wish(&mut rewrite);
    let changed = rewrite.finish();
    MessagesRequest::parse(&changed).unwrap();
    String::from_utf8(changed.to_vec()).unwrap()
}

fn value(body: &Value, wish: impl Fn(&mut Rewrite<'_>)) -> Value {
    serde_json::from_str(&changed(&body.to_string(), wish)).unwrap()
}

const ODD: &str = " {\t\"mod\\u0065l\" :\"fast\",\n \"max_tokens\": 7.0e0, \"m\\u0065ssages\" : [ {\"role\":\"user\", \"content\":\"h\\u0069\" } ] ,\"stream\":null } \n";

#[test]
fn only_what_was_wished_changes() {
    let after = changed(ODD, |rewrite| {
        rewrite.model("claude-opus-4-6").stream(true);
    });
    assert_eq!(after, ODD.replace("\"fast\"", "\"claude-opus-4-6\"").replace("null", "true"));
    let body = Bytes::from_static(br#"{"model":"m","stream":true,"messages":[]}"#);
    let request = MessagesRequest::parse(&body).unwrap();
    let mut rewrite = Rewrite::of(&request, &body);
    // No tools: nothing to forbid or to force, and no result to write to.
    rewrite.model("m").stream(true).tool_choice_none().force_tool("f").parallel_off().continue_with(" \n");
    rewrite.append_to_last_tool_result("note").corrected("", &[]);
    assert_eq!(rewrite.finish().as_ptr(), body.as_ptr(), "what is so already is not copied");
    let limited = changed(ODD, |rewrite| {
        rewrite.max_output(64);
    });
    assert_eq!(limited, ODD.replace("7.0e0", "64"));
}

#[test]
fn choices_of_tools_are_made_and_keep_their_switch() {
    let with = |choice: &str| format!(r#"{{"model":"m","messages":[],"tools":[{{"name":"f"}}]{choice}}}"#);
    let off = |rewrite: &mut Rewrite<'_>| {
        rewrite.parallel_off();
    };
    for (before, after) in [
        (
            r#","tool_choice":{ "type":"auto"}"#,
            r#","tool_choice":{"disable_parallel_tool_use":true, "type":"auto"}"#,
        ),
        (
            r#","tool_choice":{"disable_parallel_tool_use": false,"type":"any"}"#,
            r#","tool_choice":{"disable_parallel_tool_use": true,"type":"any"}"#,
        ),
        (
            r#","tool_choice":{"type":"any","disable_parallel_tool_use":true}"#,
            r#","tool_choice":{"type":"any","disable_parallel_tool_use":true}"#,
        ),
        (r#","tool_choice":{"type":"none"}"#, r#","tool_choice":{"type":"none"}"#),
    ] {
        assert_eq!(changed(&with(before), off), with(after));
    }
    let made: Value = serde_json::from_str(&changed(&with(""), off)).unwrap();
    assert_eq!(made["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    let forced =
        changed(&with(r#","tool_choice":{"type":"any","disable_parallel_tool_use":true}"#), |rewrite| {
            rewrite.tool_choice_none().force_tool("f");
        });
    let forced: Value = serde_json::from_str(&forced).unwrap();
    assert_eq!(
        forced["tool_choice"],
        json!({"type": "tool", "name": "f", "disable_parallel_tool_use": true})
    );
    let none = changed(&with(""), |rewrite| {
        rewrite.parallel_off().tool_choice_none();
    });
    assert_eq!(serde_json::from_str::<Value>(&none).unwrap()["tool_choice"], json!({"type": "none"}));
}

#[test]
fn thinking_is_switched_off_where_it_would_be_refused() {
    let base = json!({"model": "m", "max_tokens": 32000, "messages": [], "tools": [{"name": "f"}],
        "thinking": {"type": "enabled", "budget_tokens": 31999},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}});
    let forced = value(&base, |rewrite| {
        rewrite.force_tool("f");
    });
    assert_eq!(
        (&forced["thinking"], &forced["context_management"]),
        (&json!({"type": "disabled"}), &Value::Null)
    );
    let smaller = value(&base, |rewrite| {
        rewrite.max_output(4096);
    });
    assert_eq!((&smaller["thinking"]["budget_tokens"], &smaller["max_tokens"]), (&json!(4095), &json!(4096)));
    let tiny = value(&base, |rewrite| {
        rewrite.max_output(1000);
    });
    assert_eq!(tiny["thinking"], json!({"type": "disabled"}));
    let call = WholeCall { id: "toolu_1", name: "f", arguments: "{", ..WholeCall::default() };
    let asked_again = |rewrite: &mut Rewrite<'_>| {
        rewrite.corrected("", &[Correction { call, correction: "no" }]);
    };
    assert_eq!(value(&base, asked_again)["thinking"], json!({"type": "disabled"}));
    let adaptive = json!({"model": "m", "messages": [], "thinking": {"type": "adaptive"}});
    assert_eq!(value(&adaptive, asked_again)["thinking"], json!({"type": "adaptive"}));
}

#[test]
fn a_note_goes_to_the_last_result() {
    let with = |content: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"0","content":"earlier"}},{{"type":"tool_result",{content}"tool_use_id":"1"}},{{"type":"text","text":"x"}}]}},{{"role":"user","content":"y"}}]}}"#
        )
    };
    for (before, after) in [
        (r#""content":"failed\u0021","#, r#""content":"failed\u0021\n\n[note] \"twice\"","#),
        (r#""content":"","#, r#""content":"[note] \"twice\"","#),
        (
            r#""content":[{"type":"text","text":"a"} ],"#,
            r#""content":[{"type":"text","text":"a"} ,{"type":"text","text":"[note] \"twice\""}],"#,
        ),
        (r#""content": [ ],"#, r#""content": [ {"type":"text","text":"[note] \"twice\""}],"#),
        (r#""content":null,"#, r#""content":"[note] \"twice\"","#),
    ] {
        let note = |rewrite: &mut Rewrite<'_>| {
            rewrite.append_to_last_tool_result("[note] \"twice\"");
        };
        assert_eq!(changed(&with(before), note), with(after));
    }
    let two = changed(&with(""), |rewrite| {
        rewrite.append_to_last_tool_result("a").append_to_last_tool_result("b");
    });
    assert_eq!(
        two,
        with("").replace(
            r#"{"type":"tool_result","tool_use_id":"1""#,
            r#"{"content":"a\n\nb","type":"tool_result","tool_use_id":"1""#
        )
    );
}

#[test]
fn answers_are_gone_on_with_and_calls_corrected() {
    let base = |messages: Value| json!({"model": "m", "messages": messages});
    let go_on = |rewrite: &mut Rewrite<'_>| {
        rewrite.continue_with("so \"far \n");
    };
    let user = json!({"role": "user", "content": "go"});
    let fresh = value(&base(json!([user])), go_on);
    assert_eq!(fresh["messages"][1], json!({"role": "assistant", "content": "so \"far"}));
    let begun = value(&base(json!([user, {"role": "assistant", "content": "Once, "}])), go_on);
    assert_eq!(begun["messages"][1]["content"], "Once, so \"far");
    let blocks = value(
        &base(json!([user, {"role": "assistant", "content": [{"type": "text", "text": "Once, "}]}])),
        go_on,
    );
    assert_eq!(blocks["messages"][1]["content"][1], json!({"type": "text", "text": "so \"far"}));
    let calls =
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "f", "input": {}}]});
    assert_eq!(value(&base(json!([user, calls])), go_on)["messages"].as_array().unwrap().len(), 3);
    let broken = WholeCall { id: "call.1", name: "f", arguments: "{\"a\": oops", ..WholeCall::default() };
    let sound = WholeCall { id: "call_2", name: "f", arguments: "{\"a\":1}", ..WholeCall::default() };
    let again = value(&base(json!([user])), |rewrite| {
        let broken = [
            Correction { call: broken, correction: "not JSON" },
            Correction { call: sound, correction: "`b` is missing" },
        ];
        rewrite.corrected("I call.", &broken).append_assistant("end");
    });
    let said = &again["messages"][1]["content"];
    assert_eq!(said[0], json!({"type": "text", "text": "I call."}));
    assert_eq!((&said[1]["input"], &said[2]["input"]), (&json!({"_raw": "{\"a\": oops"}), &json!({"a": 1})));
    let results = again["messages"][2]["content"].as_array().unwrap();
    assert_eq!(results.len(), 2, "one for each call");
    assert_eq!((&results[0]["tool_use_id"], &results[0]["is_error"]), (&said[1]["id"], &json!(true)));
    assert_eq!(
        results[1],
        json!({"type": "tool_result", "tool_use_id": "call_2", "content": "`b` is missing", "is_error": true})
    );
    assert_eq!(again["messages"][3], json!({"role": "assistant", "content": "end"}));
}

/// Many clients name the type of a picture so, and the vendor knows only the right name.
#[test]
fn a_jpg_is_a_jpeg() {
    let image = Part::Image(Image::Data { media_type: "image/jpg".into(), data: "AA".into() });
    let turns = vec![Turn { role: Role::User, parts: vec![image] }];
    let written = body::write(
        &Form { model: "claude-opus-4-6".into(), turns, ..Form::default() },
        facts("claude-opus-4-6"),
    );
    assert_eq!(written.left, []);
    assert!(String::from_utf8_lossy(&written.body).contains(r#""media_type":"image/jpeg""#));
}
