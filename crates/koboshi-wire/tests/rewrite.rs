//! Changes of a request: what was wished is there, and every other byte is as it was.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use koboshi_wire::chat::frames::WholeCall;
use koboshi_wire::chat::{ChatRequest, Correction, Rewrite};
use serde_json::{Value, json};

/// The body after these wishes.
fn changed(body: &str, wish: impl Fn(&mut Rewrite<'_>)) -> String {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let request = ChatRequest::parse(&body).unwrap();
    let mut rewrite = Rewrite::of(&request, &body);
    wish(&mut rewrite);
    let changed = rewrite.finish();
    ChatRequest::parse(&changed).unwrap();
    String::from_utf8(changed.to_vec()).unwrap()
}

/// The same, where the result need not be looked at byte by byte.
fn value(body: &Value, wish: impl Fn(&mut Rewrite<'_>)) -> Value {
    serde_json::from_str(&changed(&body.to_string(), wish)).unwrap()
}

const ODD: &str = " {\t\"mod\\u0065l\" :\"fast\",\n \"seed\": 7.0e0, \"messages\" : [ {\"role\":\"user\", \"content\":\"h\\u0069\" } ] ,\"stop\":null } \n";

#[test]
fn only_the_model_changes() {
    let after = changed(ODD, |rewrite| {
        rewrite.model("openai/gpt-4o");
    });
    assert_eq!(after, ODD.replace("\"fast\"", "\"openai/gpt-4o\""));
}

#[test]
fn what_is_so_already_is_not_copied() {
    let body = Bytes::from_static(
        br#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#,
    );
    let request = ChatRequest::parse(&body).unwrap();
    let mut rewrite = Rewrite::of(&request, &body);
    // No tools: nothing to forbid or to force, and no result to write to.
    rewrite.model("m").stream(true).include_usage().tool_choice_none().force_tool("f").parallel_off();
    rewrite.append_to_last_tool_result("note");
    assert_eq!(rewrite.finish().as_ptr(), body.as_ptr());
}

#[test]
fn a_stream_can_be_asked_for_and_given_up() {
    let plain = r#"{"model":"m","messages":[]}"#;
    let on = |rewrite: &mut Rewrite<'_>| {
        rewrite.stream(true).include_usage();
    };
    assert_eq!(
        changed(plain, on),
        r#"{"stream":true,"stream_options":{"include_usage":true},"model":"m","messages":[]}"#
    );
    let off = r#"{"model":"m","stream":false,"messages":[],"stream_options":null}"#;
    assert_eq!(
        changed(off, on),
        r#"{"model":"m","stream":true,"messages":[],"stream_options":{"include_usage":true}}"#
    );
    let streaming = r#"{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[]}"#;
    let whole = |rewrite: &mut Rewrite<'_>| {
        rewrite.stream(false).include_usage();
    };
    assert_eq!(
        changed(streaming, whole),
        r#"{"model":"m","stream":false,"stream_options":null,"messages":[]}"#
    );
}

#[test]
fn stream_options_keep_what_else_they_say() {
    let with =
        |options: &str| format!(r#"{{"model":"m","stream":true,"stream_options":{options},"messages":[]}}"#);
    for (before, after) in [
        ("{}", r#"{"include_usage":true}"#),
        (r#"{ "include_usage" : false , "x":1}"#, r#"{ "include_usage" : true , "x":1}"#),
        (r#"{ "include_obfuscation":false}"#, r#"{"include_usage":true, "include_obfuscation":false}"#),
        ("7", r#"{"include_usage":true}"#),
    ] {
        let after_all = changed(&with(before), |rewrite| {
            rewrite.include_usage();
        });
        assert_eq!(after_all, with(after));
    }
}

fn with_tools() -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": "go"}],
        "tools": [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "custom": {"name": "c"}}], "tool_choice": "auto"})
}

#[test]
fn tools_are_forbidden_or_forced() {
    let none = value(&with_tools(), |rewrite| {
        rewrite.tool_choice_none();
    });
    assert_eq!(none["tool_choice"], "none");
    let forced = value(&with_tools(), |rewrite| {
        rewrite.tool_choice_none().force_tool("f").parallel_off();
    });
    assert_eq!(
        forced["tool_choice"],
        json!({"type": "function", "function": {"name": "f"}}),
        "the last wish counts"
    );
    assert_eq!(forced["parallel_tool_calls"], false);
    let custom = value(&with_tools(), |rewrite| {
        rewrite.force_tool("c");
    });
    assert_eq!(custom["tool_choice"], json!({"type": "custom", "custom": {"name": "c"}}));
    let old = json!({"model": "m", "messages": [], "functions": [{"name": "f"}]});
    let forced = value(&old, |rewrite| {
        rewrite.force_tool("f").parallel_off();
    });
    assert_eq!(
        (&forced["function_call"], forced.get("tool_choice"), forced.get("parallel_tool_calls")),
        (&json!({"name": "f"}), None, None)
    );
}

#[test]
fn a_note_goes_to_the_last_result_of_a_tool() {
    let with = |content: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"tool","tool_call_id":"0","content":"earlier"}},{{"role":"tool","content": {content} ,"tool_call_id":"1"}},{{"role":"user","content":"x"}}]}}"#
        )
    };
    for (before, after) in [
        (r#""failed\u0021""#, r#""failed\u0021\n\n[note] \"twice\"""#),
        (r#""""#, r#""[note] \"twice\"""#),
        (
            r#"[{"type":"text","text":"a"} ]"#,
            r#"[{"type":"text","text":"a"} ,{"type":"text","text":"[note] \"twice\""}]"#,
        ),
        ("[ ]", r#"[ {"type":"text","text":"[note] \"twice\""}]"#),
        ("null", "null"),
        (r#"{"odd":1}"#, r#"{"odd":1}"#),
    ] {
        let note = |rewrite: &mut Rewrite<'_>| {
            rewrite.append_to_last_tool_result("[note] \"twice\"");
        };
        assert_eq!(changed(&with(before), note), with(after));
    }
}

#[test]
fn messages_are_appended_in_order() {
    let message = |text: &str| json!({"role": "user", "content": text});
    let two = |rewrite: &mut Rewrite<'_>| {
        rewrite.append_message(&message("a")).append_message(&message("b"));
    };
    let appended = format!("{},{}", message("a"), message("b"));
    assert_eq!(
        changed(r#"{"messages" : [ ] ,"model":"m"}"#, two),
        format!(r#"{{"messages" : [{appended} ] ,"model":"m"}}"#)
    );
    let after = ODD.replace("\"h\\u0069\" }", &format!("\"h\\u0069\" }},{appended}"));
    assert_eq!(changed(ODD, two), after);
    let escaped = r#"{"m\u0065ssages":[{"content":"x","role":"user"}],"model":"m"}"#;
    assert_eq!(changed(escaped, two), escaped.replace("}]", &format!("}},{appended}]")));
}

#[test]
fn a_prefill_is_appended_or_goes_on_with_the_clients_own() {
    let prefill = |rewrite: &mut Rewrite<'_>| {
        rewrite.prefill("so \"far");
    };
    let fresh = value(&json!({"model": "m", "messages": [{"role": "user", "content": "go"}]}), prefill);
    assert_eq!(fresh["messages"][1], json!({"role": "assistant", "content": "so \"far"}));
    let begun = |content: Value| json!({"model": "m", "messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": content}]});
    let text = value(&begun(json!("Once, ")), prefill);
    assert_eq!(text["messages"].as_array().unwrap().len(), 2);
    assert_eq!(text["messages"][1]["content"], "Once, so \"far");
    let parts = value(&begun(json!([{"type": "text", "text": "Once, "}])), prefill);
    assert_eq!(parts["messages"][1]["content"][1], json!({"type": "text", "text": "so \"far"}));
    assert_eq!(value(&begun(json!(null)), prefill)["messages"].as_array().unwrap().len(), 3);
}

#[test]
fn a_broken_call_is_shown_back_as_sound_json_with_its_correction() {
    let broken = WholeCall { id: "call_1", name: "f", arguments: "{\"a\": oops", ..WholeCall::default() };
    let sound = WholeCall { id: "call_2", name: "f", arguments: "{\"a\":1}", ..WholeCall::default() };
    let exchange = |rewrite: &mut Rewrite<'_>| {
        rewrite.append_exchange(
            "",
            &[
                Correction { call: broken, correction: "not JSON at column 7" },
                Correction { call: sound, correction: "`b` is missing" },
            ],
        );
    };
    let messages = value(&with_tools(), exchange)["messages"].clone();
    let call = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
    let assistant = json!({"role": "assistant", "content": null, "tool_calls": [call("call_1", "{}"), call("call_2", "{\"a\":1}")]});
    assert_eq!(messages[1], assistant, "servers refuse a history with broken arguments");
    assert_eq!(
        messages[2],
        json!({"role": "tool", "tool_call_id": "call_1", "content": "not JSON at column 7"})
    );
    assert_eq!(messages[3], json!({"role": "tool", "tool_call_id": "call_2", "content": "`b` is missing"}));
    let old = json!({"model": "m", "messages": [], "functions": [{"name": "f"}]});
    let messages = value(&old, exchange)["messages"].clone();
    assert_eq!(messages[0]["function_call"], json!({"name": "f", "arguments": "{}"}));
    assert_eq!(messages[1], json!({"role": "function", "name": "f", "content": "not JSON at column 7"}));
}

#[test]
fn all_wishes_at_once_are_all_there() {
    let mut body = with_tools();
    body["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}),
        json!({"role": "tool", "tool_call_id": "1", "content": "out"}),
    ]);
    let after = value(&body, |rewrite| {
        rewrite.model("other").stream(true).include_usage().force_tool("f").parallel_off();
        rewrite
            .append_to_last_tool_result("note")
            .append_message(&json!({"role": "user", "content": "x"}))
            .prefill("p");
    });
    let mut expected = body.clone();
    expected["model"] = json!("other");
    expected["stream"] = json!(true);
    expected["stream_options"] = json!({"include_usage": true});
    expected["tool_choice"] = json!({"type": "function", "function": {"name": "f"}});
    expected["parallel_tool_calls"] = json!(false);
    expected["messages"][2]["content"] = json!("out\n\nnote");
    let messages = expected["messages"].as_array_mut().unwrap();
    messages.extend([json!({"role": "user", "content": "x"}), json!({"role": "assistant", "content": "p"})]);
    assert_eq!(after, expected);
}
