//! What is understood of a chat request, and what is said of one that cannot be.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use koboshi::guard::Call;
use koboshi_wire::chat::request::Role;
use koboshi_wire::chat::{ChatRequest, IntakeError, JsonNeed, Needs, embeddings};
use serde_json::{Value, json};

/// The error, its words and its place.
fn refused(body: &[u8]) -> (String, Option<String>) {
    let error = ChatRequest::parse(body).unwrap_err();
    (error.to_string(), error.param().map(String::from))
}

fn says(body: &str, message: &str, param: Option<&str>) {
    assert_eq!(refused(body.as_bytes()), (message.to_owned(), param.map(str::to_owned)), "{body:.200}");
}

#[test]
fn every_refusal_has_its_own_sentence_and_names_the_place() {
    assert_eq!(refused(b"{\"model\":\"\xff\"}").0, "the request body must be UTF-8; byte 10 does not fit");
    says("", "the request body ends too early, at line 1, column 0", None);
    says(r#"{"model":"#, "the request body ends too early, at line 1, column 9", None);
    says(
        "{\n \"model\": oops}",
        "the request body is not JSON: there is a mistake at line 2, column 11",
        None,
    );
    says(
        r#"{"model":"m","messages":[]} x"#,
        "the request body is not JSON: there is a mistake at line 1, column 29",
        None,
    );
    says("[]", "the request body must be a JSON object", None);
    says("null", "the request body must be a JSON object", None);
    says("{}", "`model` is missing", Some("model"));
    says(r#"{"model":null,"messages":[]}"#, "`model` is missing", Some("model"));
    for model in ["7", "[]", "{}", "true", r#""""#] {
        let body = format!(r#"{{"model":{model},"messages":[]}}"#);
        says(&body, "`model` must be the name of a model, as text", Some("model"));
    }
    says(r#"{"model":"m"}"#, "`messages` is missing", Some("messages"));
    says(r#"{"model":"m","messages":null}"#, "`messages` is missing", Some("messages"));
    for messages in ["7", r#""hi""#, "{}", "true", "-1", "0.5"] {
        let body = format!(r#"{{"model":"m","messages":{messages}}}"#);
        says(&body, "`messages` must be a list of messages", Some("messages"));
    }
    let second = r#"{"model":"m","messages":[{"role":"user"},"hi"]}"#;
    says(second, "`messages[1]` must be an object", Some("messages[1]"));
    says(r#"{"model":"m","messages":[{}]}"#, "`messages[0].role` is missing", Some("messages[0].role"));
    says(r#"{"model":"m","messages":[],"stream":"yes"}"#, "`stream` must be true or false", Some("stream"));
}

#[test]
fn a_key_given_twice_is_refused_however_it_is_written() {
    for body in
        [r#"{"model":"a","messages":[],"model":"b"}"#, r#"{"model":"a","messages":[],"m\u006fdel":"b"}"#]
    {
        says(body, "`model` is given twice; give it once", Some("model"));
    }
    says(
        r#"{"messages":[],"model":"a","messages":[]}"#,
        "`messages` is given twice; give it once",
        Some("messages"),
    );
    says(r#"{"x":1,"model":"a","messages":[],"x":1}"#, "`x` is given twice; give it once", Some("x"));
    let long = "k".repeat(100_000);
    let body = format!(r#"{{"{long}":1,"{long}":1}}"#);
    assert!(refused(body.as_bytes()).0.len() < 200, "what is said is bounded");
}

#[test]
fn nesting_is_limited_wherever_it_is() {
    let nest = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let of_field = |levels| format!(r#"{{"model":"m","messages":[],"x":{}}}"#, nest(levels));
    let of_content =
        |levels| format!(r#"{{"model":"m","messages":[{{"role":"user","content":{}}}]}}"#, nest(levels));
    let of_other = |levels| format!(r#"{{"model":"m","messages":[{{"role":"user","y":{}}}]}}"#, nest(levels));
    assert!(ChatRequest::parse(of_field(127).as_bytes()).is_ok());
    assert!(ChatRequest::parse(of_content(125).as_bytes()).is_ok());
    assert!(ChatRequest::parse(of_other(125).as_bytes()).is_ok());
    for body in [of_field(128), of_content(126), of_other(126), of_field(1_000_000)] {
        says(&body, "the request body is nested deeper than 128 levels", None);
    }
    let brackets = json!({"model": "m", "messages": [{"role": "user", "content": "[{".repeat(1000)}], "x": "\\\"[".repeat(500)});
    assert!(ChatRequest::parse(brackets.to_string().as_bytes()).is_ok(), "brackets in texts are no nesting");
}

#[test]
fn the_fields_of_a_request_are_found() {
    let body = br#" { "n": 2, "stream_options" : {"include_usage": true}, "max_tokens": 50, "max_completion_tokens": 70,
        "parallel_tool_calls": false, "user": "u\u0031", "reasoning_effort": "high", "tool_choice": "auto",
        "response_format": {"type": "json_object"}, "logit_bias": null, "stream": true,
        "messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "Hi"}], "model" : "gpt-\u0034o" } "#;
    let request = ChatRequest::parse(body).unwrap();
    assert_eq!(
        (request.model(), request.stream(), request.include_usage(), request.n()),
        ("gpt-4o", true, true, 2)
    );
    assert_eq!((request.max_output(), request.parallel_tool_calls()), (Some(70), Some(false)));
    assert_eq!(request.user().as_deref(), Some("u1"));
    assert_eq!(request.raw("tool_choice").unwrap().get(), "\"auto\"");
    assert_eq!(request.response_format().unwrap().get(), r#"{"type": "json_object"}"#);
    assert!(request.raw("logit_bias").is_none(), "null is absent");
    let roles: Vec<Role> = request.messages().iter().map(|message| message.role).collect();
    assert_eq!(roles, [Role::System, Role::User]);
    assert_eq!(request.messages()[0].text().as_deref(), Some("Be brief."));
    let plain = ChatRequest::parse(br#"{"model":"m","messages":[],"n":"two","stream":null}"#).unwrap();
    assert_eq!(
        (plain.n(), plain.stream(), plain.include_usage(), plain.max_output()),
        (1, false, false, None)
    );
}

fn needs(body: &Value) -> Needs {
    ChatRequest::parse(body.to_string().as_bytes()).unwrap().needs()
}

#[test]
fn needs_say_what_a_target_must_be_able_to_do() {
    let plain = json!({"model": "m", "messages": [{"role": "user", "content": "x".repeat(400)}]});
    assert_eq!(needs(&plain), Needs { input_tokens: 101, ..Needs::default() });
    let tools = json!({"model": "m", "messages": [], "tools": [{"type": "function", "function": {"name": "f"}}], "max_tokens": 9});
    let of_tools = needs(&tools);
    assert_eq!((of_tools.tools, of_tools.output), (true, Some(9)));
    assert!(of_tools.input_tokens > 5, "tools are sent too");
    assert!(!needs(&json!({"model": "m", "messages": [], "tools": []})).tools);
    assert!(needs(&json!({"model": "m", "messages": [], "functions": [{"name": "f"}]})).tools);
    let form = |kind| json!({"model": "m", "messages": [], "response_format": {"type": kind}});
    assert_eq!(needs(&form("json_object")).json, JsonNeed::Object);
    assert_eq!(needs(&form("json_schema")).json, JsonNeed::Schema);
    assert_eq!(needs(&form("text")).json, JsonNeed::None);
}

#[test]
fn an_image_counts_flat_however_long_it_is() {
    let image = |length| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,{}", "A".repeat(length))}});
    let body = |length| json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "What?"}, image(length)]}]});
    let (short, long) = (needs(&body(10)), needs(&body(1_000_000)));
    assert!(short.images && short == long);
    assert!((1000..1100).contains(&long.input_tokens), "{}", long.input_tokens);
    let sound = json!({"model": "m", "messages": [{"role": "user", "content": [{"type": "input_audio", "input_audio": {"data": "A".repeat(99_999)}}]}]});
    assert!(!needs(&sound).images && needs(&sound).input_tokens < 1100);
}

#[test]
fn an_answer_that_is_to_go_on_is_a_prefill_and_a_call_is_not() {
    let with_last = |last: Value| {
        needs(&json!({"model": "m", "messages": [{"role": "user", "content": "go"}, last]})).prefill
    };
    assert!(with_last(json!({"role": "assistant", "content": "So"})));
    assert!(!with_last(json!({"role": "user", "content": "So"})));
    assert!(!with_last(json!({"role": "assistant", "content": null, "tool_calls": []})));
}

#[test]
fn tools_have_names_and_schemas_in_both_forms() {
    let body = json!({"model": "m", "messages": [],
        "tools": [{"type": "function", "function": {"name": "a", "parameters": {"type": "object"}}}, {"type": "custom", "custom": {"name": "b"}},
                  {"type": "function", "function": {"name": "c", "parameters": null}}, {"type": "web_search"}, 7],
        "functions": [{"name": "d", "parameters": {}}]})
    .to_string();
    let request = ChatRequest::parse(body.as_bytes()).unwrap();
    let found: Vec<(String, Option<String>)> = request
        .tools()
        .map(|(name, schema)| (name.into_owned(), schema.map(|raw| raw.get().to_owned())))
        .collect();
    let named = |name: &str, schema: Option<&str>| (name.to_owned(), schema.map(str::to_owned));
    assert_eq!(
        found,
        [
            named("a", Some(r#"{"type":"object"}"#)),
            named("b", None),
            named("c", None),
            named("d", Some("{}"))
        ]
    );
    assert!(!request.is_legacy());
    assert!(ChatRequest::parse(br#"{"model":"m","messages":[],"functions":[]}"#).unwrap().is_legacy());
}

/// An answer that calls a tool, and the tool's result.
fn exchange(id: &str, tool: &str, args: &str, output: &Value) -> [Value; 2] {
    let call = json!({"id": id, "type": "function", "function": {"name": tool, "arguments": args}});
    [
        json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        json!({"role": "tool", "tool_call_id": id, "content": output}),
    ]
}

fn conversation(messages: &[Value]) -> String {
    json!({"model": "m", "messages": messages}).to_string()
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[test]
fn calls_since_the_user_wrote_are_paired_with_their_results() {
    let mut messages = vec![json!({"role": "system", "content": "s"}), user("one")];
    messages.extend(exchange("old", "before", "{}", &json!("x")));
    messages.push(user("two"));
    let call = |id: &str, tool: &str| json!({"id": id, "type": "function", "function": {"name": tool, "arguments": "{\"a\":1}"}});
    messages.push(json!({"role": "assistant", "content": "both", "tool_calls": [call("1", "f"), call("2", "g"), call("3", "unanswered")]}));
    messages.push(json!({"role": "tool", "tool_call_id": "2", "content": [{"type": "text", "text": "second"}, {"type": "text", "text": "line"}]}));
    messages.push(json!({"role": "tool", "tool_call_id": "1", "content": "first"}));
    messages.push(json!({"role": "tool", "tool_call_id": "nobody's", "content": "orphan"}));
    messages.extend(exchange("1", "again", "", &json!(null)));
    let body = conversation(&messages);
    let request = ChatRequest::parse(body.as_bytes()).unwrap();
    let calls = request.calls();
    let seen: Vec<Call<'_>> = calls.iter().map(|call| call.call()).collect();
    let made =
        |tool, args, output, batch| Call { tool, args, output, is_error: None, turn: 2, batch: Some(batch) };
    assert_eq!(
        seen,
        [
            made("f", "{\"a\":1}", "first", 5),
            made("g", "{\"a\":1}", "second\nline", 5),
            made("again", "", "", 9),
        ]
    );
    assert_eq!(request.turn(), 2);
}

#[test]
fn the_user_writing_again_forgets_all_calls() {
    let mut messages = vec![user("one")];
    messages.extend(exchange("1", "f", "{}", &json!("x")));
    messages.push(user("stop it"));
    let body = conversation(&messages);
    let request = ChatRequest::parse(body.as_bytes()).unwrap();
    assert!(request.calls().is_empty());
    assert_eq!(request.last_user_text().as_deref(), Some("stop it"));
}

#[test]
fn an_image_after_a_result_is_part_of_it_and_not_the_user() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,A"}});
    let mut messages = vec![user("look")];
    messages.extend(exchange("1", "screenshot", "{}", &json!("taken")));
    messages.push(json!({"role": "user", "content": [image]}));
    messages.push(json!({"role": "user", "content": ""}));
    let body = conversation(&messages);
    let request = ChatRequest::parse(body.as_bytes()).unwrap();
    assert_eq!((request.calls().len(), request.turn()), (1, 1));
    assert_eq!(request.last_user_text().as_deref(), Some("look"));
    // With a text beside it, it is the user's.
    messages.pop();
    messages.pop();
    messages.push(json!({"role": "user", "content": [{"type": "text", "text": "and this?"}, image]}));
    let body = conversation(&messages);
    let request = ChatRequest::parse(body.as_bytes()).unwrap();
    assert_eq!((request.calls().len(), request.turn()), (0, 2));
}

#[test]
fn an_image_alone_is_the_users_where_no_tool_was_asked() {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,A"}});
    let body = conversation(&[user("one"), json!({"role": "user", "content": [image]})]);
    assert_eq!(ChatRequest::parse(body.as_bytes()).unwrap().turn(), 2);
}

#[test]
fn calls_that_share_an_id_are_paired_in_their_order() {
    let call = |args: &str| json!({"id": "call_0", "function": {"name": "f", "arguments": args}});
    let result = |text: &str| json!({"role": "tool", "tool_call_id": "call_0", "content": text});
    let asked = json!({"role": "assistant", "tool_calls": [call("1"), call("2")]});
    let body = conversation(&[user("go"), asked, result("first"), result("second"), result("surplus")]);
    let request = ChatRequest::parse(body.as_bytes()).unwrap();
    let calls = request.calls();
    let pairs: Vec<(&str, &str)> =
        calls.iter().map(|call| (call.args.as_ref(), call.output.as_ref())).collect();
    assert_eq!(pairs, [("1", "first"), ("2", "second")]);
}

/// Some clients write a text and the calls behind it as two messages, or each call as one.
#[test]
fn calls_of_answers_in_a_row_are_all_seen() {
    let [first, first_result] = exchange("1", "f", "{}", &json!("one"));
    let [second, second_result] = exchange("2", "g", "{}", &json!("two"));
    let body = conversation(&[user("go"), first, second, first_result, second_result]);
    let request = ChatRequest::parse(body.as_bytes()).unwrap();
    let calls = request.calls();
    let seen: Vec<_> =
        calls.iter().map(|call| (call.tool.as_ref(), call.output.as_ref(), call.batch)).collect();
    assert_eq!(seen, [("f", "one", 1), ("g", "two", 1)]);
    assert_eq!(calls, request.form().calls());
}

#[test]
fn calls_in_the_old_form_are_seen() {
    let messages = [
        user("go"),
        json!({"role": "assistant", "content": null, "function_call": {"name": "f", "arguments": "{}"}}),
        json!({"role": "function", "name": "f", "content": "done"}),
    ];
    let body = conversation(&messages);
    let request = ChatRequest::parse(body.as_bytes()).unwrap();
    let calls = request.calls();
    assert_eq!((calls.len(), calls[0].tool.as_ref(), calls[0].output.as_ref()), (1, "f", "done"));
}

#[test]
fn of_a_long_turn_the_last_calls_are_read_and_the_others_counted() {
    let mut messages = vec![user("go")];
    for number in 0..1000 {
        messages.extend(exchange(&number.to_string(), "f", &number.to_string(), &json!("out")));
    }
    let body = conversation(&messages);
    let calls_of = ChatRequest::parse(body.as_bytes()).unwrap();
    let calls = calls_of.calls();
    assert_eq!(calls.len(), 1000);
    assert!(calls[..700].iter().all(|call| call.args.is_empty() && call.output.is_empty() && call.turn == 1));
    assert!(calls[700..].iter().zip(700..).all(|(call, number)| call.args == number.to_string()));
    assert!(calls.windows(2).all(|two| two[0].batch < two[1].batch));
}

#[test]
fn the_opening_stays_the_same_from_turn_to_turn() {
    let mut messages = vec![json!({"role": "system", "content": "s"}), user("task")];
    let first = conversation(&messages);
    messages.push(json!({"role": "assistant", "content": "a"}));
    messages.push(user("more"));
    let second = conversation(&messages);
    let opening = |body: &str| {
        String::from_utf8(ChatRequest::parse(body.as_bytes()).unwrap().opening().to_vec()).unwrap()
    };
    assert_eq!(opening(&first), opening(&second));
    assert!(opening(&first).starts_with('[') && opening(&first).contains("task"));
    let other = conversation(&[json!({"role": "system", "content": "s"}), user("other task")]);
    assert_ne!(opening(&first), opening(&other));
    assert_eq!(opening(r#"{"model":"m","messages": [ ]}"#), "");
    assert!(opening(r#"{"m\u0065ssages":[{"role":"user","content":"x"}],"model":"m"}"#).starts_with("[{"));
}

#[test]
fn metadata_is_found_by_key() {
    let body = br#"{"model":"m","messages":[],"metadata":{"mode":"quiz\u0021","screen":7,"on":true,"deep":{},"none":null}}"#;
    let request = ChatRequest::parse(body).unwrap();
    assert_eq!(request.metadata("mode").as_deref(), Some("quiz!"));
    assert_eq!(request.metadata("screen").as_deref(), Some("7"));
    assert_eq!(request.metadata("on").as_deref(), Some("true"));
    assert_eq!(
        (request.metadata("deep"), request.metadata("none"), request.metadata("other")),
        (None, None, None)
    );
}

#[test]
fn half_a_character_does_not_spoil_a_request() {
    let body = br#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"x\ud83d"}]},{"role":"user","content":"\ude00!"}]}"#;
    let request = ChatRequest::parse(body).unwrap();
    assert_eq!(request.messages()[0].text().as_deref(), Some("x\u{fffd}"));
    assert_eq!((request.turn(), request.last_user_text().as_deref()), (2, Some("\u{fffd}!")));
}

#[test]
fn embeddings_change_their_model_only() {
    let body = bytes::Bytes::from_static(br#"{"input": ["a", "b"] , "model" : "text-embedding-3-small"}"#);
    assert_eq!(embeddings::model(&body).unwrap(), "text-embedding-3-small");
    assert_eq!(embeddings::with_model(&body, "e\"5"), &br#"{"input": ["a", "b"] , "model" : "e\"5"}"#[..]);
    assert_eq!(embeddings::with_model(&body, "text-embedding-3-small").as_ptr(), body.as_ptr());
    assert_eq!(embeddings::model(b"{\"input\":1}"), Err(IntakeError::Missing("model")));
}
