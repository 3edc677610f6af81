//! Changes of a responses request: what was wished is there, and every other byte is as it was.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use koboshi_wire::responses::writer::WholeCall;
use koboshi_wire::responses::{Correction, ResponsesRequest, Rewrite};
use serde_json::{Value, json};

/// The body after these wishes.
fn changed(body: &str, wish: impl Fn(&mut Rewrite<'_>)) -> String {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let request = ResponsesRequest::parse(&body).unwrap();
    let mut rewrite = Rewrite::of(&request, &body);
    wish(&mut rewrite);
    let changed = rewrite.finish();
    ResponsesRequest::parse(&changed).unwrap();
    String::from_utf8(changed.to_vec()).unwrap()
}

const ODD: &str = " {\t\"mod\\u0065l\" :\"fast\",\n \"seed\": 7.0e0, \"input\" : [ {\"role\":\"user\", \"content\":\"h\\u0069\" } ] ,\"stop\":null } \n";

#[test]
fn only_the_model_changes() {
    let after = changed(ODD, |rewrite| {
        rewrite.model("openai/gpt-5.1");
    });
    assert_eq!(after, ODD.replace("\"fast\"", "\"openai/gpt-5.1\""));
}

#[test]
fn what_is_so_already_is_not_copied() {
    let body = Bytes::from_static(br#"{"model":"m","stream":true,"input":"x"}"#);
    let request = ResponsesRequest::parse(&body).unwrap();
    let mut rewrite = Rewrite::of(&request, &body);
    // No tools: nothing to forbid or to force, and no result to write to.
    rewrite.model("m").stream(true).tool_choice_none().force_tool("f").parallel_off().drop_own_thoughts();
    rewrite.append_to_last_tool_result("note");
    assert_eq!(rewrite.finish().as_ptr(), body.as_ptr());
}

#[test]
fn fields_are_set_in_place_or_in_front() {
    let body = r#"{"model":"m","input":"x","tools":[{"type":"custom","name":"p"}],"tool_choice" : "auto","stream_options":{}}"#;
    let after = changed(body, |rewrite| {
        rewrite.stream(true).force_tool("p").parallel_off().max_output(99);
    });
    assert_eq!(
        after,
        r#"{"stream":true,"parallel_tool_calls":false,"max_output_tokens":99,"model":"m","input":"x","tools":[{"type":"custom","name":"p"}],"tool_choice" : {"name":"p","type":"custom"},"stream_options":{}}"#
    );
    let whole = changed(&after, |rewrite| {
        rewrite.stream(false).tool_choice_none();
    });
    assert!(whole.contains(r#""stream":false"#) && whole.contains(r#""stream_options":null"#));
    assert!(whole.contains(r#""tool_choice" : "none""#));
}

#[test]
fn notes_go_to_the_last_result() {
    let text = r#"{"model":"m","input":[{"type":"function_call_output","call_id":"a","output":"one"},{"type":"custom_tool_call_output","call_id":"b","output":"tw\u006f"},{"role":"user","content":"x"}]}"#;
    let note = |rewrite: &mut Rewrite<'_>| {
        rewrite.append_to_last_tool_result("a \"note\"");
    };
    assert_eq!(changed(text, note), text.replace(r"tw\u006f", r#"tw\u006f\n\na \"note\""#));
    let parts = r#"{"model":"m","input":[{"type":"function_call_output","call_id":"a","output":[{"type":"input_text","text":"one"} ]}]}"#;
    assert_eq!(
        changed(parts, note),
        parts.replace("} ]}", r#"} ,{"type":"input_text","text":"a \"note\""}]}"#)
    );
    let empty = r#"{"model":"m","input":[{"type":"function_call_output","call_id":"a","output":[ ]}]}"#;
    assert_eq!(changed(empty, note), empty.replace("[ ]", r#"[ {"type":"input_text","text":"a \"note\""}]"#));
}

#[test]
fn a_text_becomes_a_list_and_stays_the_text_it_was() {
    let after = changed(r#"{"model":"m","input":"h\u0069","x":1}"#, |rewrite| {
        rewrite.append_assistant("done");
    });
    assert_eq!(
        after,
        r#"{"model":"m","input":[{"role":"user","content":"h\u0069"},{"content":[{"text":"done","type":"output_text"}],"role":"assistant","type":"message"}],"x":1}"#
    );
    let stored = changed(r#"{"model":"m","previous_response_id":"r"}"#, |rewrite| {
        rewrite.append_assistant("x");
    });
    assert!(stored.starts_with(r#"{"input":[{"content":"#), "{stored}");
}

#[test]
fn an_answer_is_continued() {
    let go_on = |rewrite: &mut Rewrite<'_>| {
        rewrite.continue_with(" a time").continue_with("\n");
    };
    let text =
        r#"{"model":"m","input":[{"role":"user","content":"x"},{"role":"assistant","content":"Once upon"}]}"#;
    assert_eq!(changed(text, go_on), text.replace("upon", r"upon a time\n"));
    let list =
        r#"{"model":"m","input":[{"role":"assistant","content":[{"type":"output_text","text":"Once"}]}]}"#;
    assert_eq!(
        changed(list, go_on),
        list.replace("}]}]}", r#"},{"type":"output_text","text":" a time\n"}]}]}"#)
    );
    let begun: Value = serde_json::from_str(&changed(r#"{"model":"m","input":[ ]}"#, go_on)).unwrap();
    assert_eq!(begun["input"].as_array().unwrap().len(), 2);
    assert_eq!(begun["input"][0]["content"][0]["text"], " a time");
}

#[test]
fn broken_calls_are_shown_with_one_result_each() {
    let call =
        |id, arguments, free_text| WholeCall { id, name: "f", arguments, free_text, ..WholeCall::default() };
    let broken = [
        Correction { call: call("c1", r#"{"a":"#, false), correction: "no JSON" },
        Correction { call: call("c2", r#"{"a":1}"#, false), correction: "not run" },
        Correction { call: call("c3", "*** x", true), correction: "no patch" },
    ];
    let body = r#"{"model":"m","input":[{"role":"user","content":"x"} ]}"#;
    let after = changed(body, |rewrite| {
        rewrite.corrected("I will.", &broken);
    });
    let value: Value = serde_json::from_str(&after).unwrap();
    let items = value["input"].as_array().unwrap();
    assert_eq!(items.len(), 8);
    assert_eq!(items[1]["content"][0]["text"], "I will.");
    assert_eq!(items[2]["arguments"], json!({"_raw": "{\"a\":"}).to_string());
    assert_eq!(items[3]["arguments"], r#"{"a":1}"#);
    assert_eq!((&items[4]["type"], &items[4]["input"]), (&json!("custom_tool_call"), &json!("*** x")));
    assert_eq!((&items[5]["call_id"], &items[5]["output"]), (&json!("c1"), &json!("no JSON")));
    assert_eq!(items[7]["type"], "custom_tool_call_output");
    let request = ResponsesRequest::parse(after.as_bytes()).unwrap();
    assert_eq!(request.form().turns.len(), 3);
}

#[test]
fn our_own_thoughts_can_be_taken_out() {
    let own = r#"{"type":"reasoning","id":"rs_kbs_1_0","summary":[]}"#;
    let kept = r#"{"role":"user","content":"x"}"#;
    // Signed by the vendor, whatever its id.
    let other = r#"{"type":"reasoning","id":"rs_kbs_2_0","summary":[],"encrypted_content":"g"}"#;
    for (items, left) in [
        (format!("[{own}]"), "[]".to_owned()),
        (format!("[ {own} , {kept}]"), format!("[ {kept}]")),
        (format!("[{kept},{own}]"), format!("[{kept}]")),
        (format!("[{own},{own},{kept} , {own},{other}, {own} ]"), format!("[{kept},{other} ]")),
        (format!("[{kept}]"), format!("[{kept}]")),
    ] {
        let body = |items: &str| format!(r#"{{"model":"m","input":{items}}}"#);
        let wish = |rewrite: &mut Rewrite<'_>| {
            rewrite.drop_own_thoughts();
        };
        let before = body(&items);
        assert_eq!(ResponsesRequest::parse(before.as_bytes()).unwrap().has_own_thoughts(), items != left);
        assert_eq!(changed(&before, wish), body(&left), "{items}");
        let more = changed(&before, |rewrite| {
            rewrite.drop_own_thoughts().append_assistant("y");
        });
        let count =
            |text: &str| serde_json::from_str::<Value>(text).unwrap()["input"].as_array().unwrap().len();
        assert_eq!(count(&more), count(&body(&left)) + 1, "{more}");
    }
}
