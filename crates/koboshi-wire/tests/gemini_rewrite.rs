//! Changes of a Gemini request: what was wished is there, and every other byte is as it was.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use bytes::Bytes;
use koboshi_wire::chat::Correction;
use koboshi_wire::gemini::{GeminiRequest, Rewrite};
use koboshi_wire::writer::WholeCall;
use serde_json::{Value, json};

/// The body after these wishes.
fn changed(body: &str, wish: impl Fn(&mut Rewrite<'_>)) -> String {
    let body = Bytes::copy_from_slice(body.as_bytes());
    let request = GeminiRequest::parse("m", false, &body).unwrap();
    let mut rewrite = Rewrite::of(&request, &body);
    wish(&mut rewrite);
    let changed = rewrite.finish();
    GeminiRequest::parse("m", false, &changed).unwrap();
    String::from_utf8(changed.to_vec()).unwrap()
}

#[test]
fn what_is_so_already_is_not_copied() {
    let body = Bytes::from_static(
        br#"{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"maxOutputTokens":9}}"#,
    );
    let request = GeminiRequest::parse("m", false, &body).unwrap();
    let mut rewrite = Rewrite::of(&request, &body);
    // No tools: nothing to forbid or to force, and no result to write to. Model and stream stand in the path.
    rewrite.model("other").stream(true).tool_choice_none().force_tool("f").parallel_off().max_output(9);
    rewrite.append_to_last_tool_result("note").whole_calls().corrected("", &[]);
    assert_eq!(rewrite.finish().as_ptr(), body.as_ptr());
}

#[test]
fn limits_and_choices_are_set_where_they_stand() {
    let tools = r#""tools":[{"functionDeclarations":[{"name":"f"}]}]"#;
    let none = |rewrite: &mut Rewrite<'_>| {
        rewrite.tool_choice_none();
    };
    for (before, after) in [
        (
            format!(r#"{{ "contents":[] ,{tools}}}"#),
            format!(
                r#"{{"toolConfig":{{"functionCallingConfig":{{"mode":"NONE"}}}}, "contents":[] ,{tools}}}"#
            ),
        ),
        (
            format!(r#"{{"contents":[],{tools},"tool_config":{{ }}}}"#),
            format!(
                r#"{{"contents":[],{tools},"tool_config":{{"functionCallingConfig":{{"mode":"NONE"}} }}}}"#
            ),
        ),
        (
            format!(
                r#"{{"contents":[],{tools},"toolConfig":{{"retrievalConfig":{{}} , "function_calling_config" : {{"mode":"AUTO"}} }}}}"#
            ),
            format!(
                r#"{{"contents":[],{tools},"toolConfig":{{"retrievalConfig":{{}} , "function_calling_config" : {{"mode":"NONE"}} }}}}"#
            ),
        ),
        (
            format!(r#"{{"contents":[],{tools},"toolConfig":null}}"#),
            format!(
                r#"{{"contents":[],{tools},"toolConfig":{{"functionCallingConfig":{{"mode":"NONE"}}}}}}"#
            ),
        ),
    ] {
        assert_eq!(changed(&before, none), after);
    }
    let forced = changed(&format!(r#"{{"contents":[],{tools}}}"#), |rewrite| {
        rewrite.tool_choice_none().force_tool("f").max_output(5);
    });
    let value: Value = serde_json::from_str(&forced).unwrap();
    assert_eq!(
        value["toolConfig"]["functionCallingConfig"],
        json!({"mode": "ANY", "allowedFunctionNames": ["f"]})
    );
    assert_eq!(value["generationConfig"], json!({"maxOutputTokens": 5}));
    let streamed = format!(
        r#"{{"contents":[],{tools},"toolConfig":{{"functionCallingConfig":{{"mode":"AUTO","streamFunctionCallArguments": true}}}}}}"#
    );
    let whole = changed(&streamed, |rewrite| {
        rewrite.whole_calls();
    });
    assert_eq!(whole, streamed.replace(": true", ": false"));
}

#[test]
fn a_note_is_added_where_the_model_reads_next() {
    let with = |response: &str| {
        format!(
            r#"{{"contents":[{{"parts":[{{"functionResponse":{{"name":"g","response":{{"output":"old"}}}}}},{{"function_response" : {{"name":"f"{response}}}}},{{"text":"x"}}]}}, {{"role":"model","parts":[]}}]}}"#
        )
    };
    for (before, after) in [
        (r#","response":{"output":"a"}"#, r#","response":{"output":"a\n\n\"n\"\n\nm"}"#),
        (r#","response":{"x":1,"error":""}"#, r#","response":{"x":1,"error":"\"n\"\n\nm"}"#),
        (r#","response":{ "x":1}"#, r#","response":{"koboshi_note":"\"n\"\n\nm", "x":1}"#),
        (r#","response":{}"#, r#","response":{"koboshi_note":"\"n\"\n\nm"}"#),
        (r#","response":null"#, r#","response":{"output":"\"n\"\n\nm"}"#),
    ] {
        let found = changed(&with(before), |rewrite| {
            rewrite.append_to_last_tool_result("\"n\"").append_to_last_tool_result("m");
        });
        assert_eq!(found, with(after));
    }
    let found = changed(&with(""), |rewrite| {
        rewrite.append_to_last_tool_result("n");
    });
    assert_eq!(found, with("").replace(r#"{"name":"f""#, r#"{"response":{"output":"n"},"name":"f""#));
}

#[test]
fn answers_are_continued_or_appended() {
    let go_on = |rewrite: &mut Rewrite<'_>| {
        rewrite.continue_with("so ").continue_with("\"far\"");
    };
    let own = r#"{"contents":[ {"parts":[{"text":"a"}]} , {"role":"model","parts":[ {"text":"And "} ]} ]}"#;
    assert_eq!(changed(own, go_on), own.replace("And ", r#"And so \"far\""#));
    let closing = |rewrite: &mut Rewrite<'_>| {
        rewrite.append_assistant("b");
    };
    assert_eq!(
        changed(own, closing),
        own.replace(r#"{"text":"And "} ]"#, r#"{"text":"And "} ,{"text":"b"}]"#)
    );
    let user = r#"{"contents":[{"parts":[{"text":"a"}]}]}"#;
    let value: Value = serde_json::from_str(&changed(user, closing)).unwrap();
    assert_eq!(value["contents"][1], json!({"role": "model", "parts": [{"text": "b"}]}));
    // One content in place of a list becomes a list.
    let alone = r#"{"contents": {"parts":{"text":"a"}} }"#;
    assert_eq!(
        changed(alone, closing),
        r#"{"contents": [{"parts":{"text":"a"}},{"parts":[{"text":"b"}],"role":"model"}] }"#
    );
    let signed = r#"{"contents":[{"role":"model","parts":[{"text":"a","thoughtSignature":"s"}]}]}"#;
    assert_eq!(changed(signed, closing), signed.replace(r#""s"}"#, r#""s"},{"text":"b"}"#));
    assert_eq!(
        changed(r#"{"contents":[]}"#, closing),
        r#"{"contents":[{"parts":[{"text":"b"}],"role":"model"}]}"#
    );
}

#[test]
fn broken_calls_come_back_with_one_result_each() {
    let broken = [
        Correction {
            call: WholeCall { id: "1", name: "f", arguments: "{\"a\":", ..WholeCall::default() },
            correction: "cut",
        },
        Correction {
            call: WholeCall {
                id: "2",
                name: "g",
                arguments: "{\"b\":1}",
                signature: Some("s"),
                ..WholeCall::default()
            },
            correction: "no \"b\"",
        },
    ];
    let body = r#"{"contents":[{"parts":[{"text":"a"}]}], "x": 1}"#;
    let found = changed(body, |rewrite| {
        rewrite.corrected("Let me.", &broken);
    });
    assert!(found.ends_with(r#"], "x": 1}"#));
    let value: Value = serde_json::from_str(&found).unwrap();
    assert_eq!(
        value["contents"][1],
        json!({"role": "model", "parts": [
            {"text": "Let me."},
            {"functionCall": {"name": "f", "args": {"_raw": "{\"a\":"}}, "thoughtSignature": "skip_thought_signature_validator"},
            {"functionCall": {"name": "g", "args": {"b": 1}}, "thoughtSignature": "s"},
        ]})
    );
    assert_eq!(
        value["contents"][2],
        json!({"role": "user", "parts": [
            {"functionResponse": {"name": "f", "response": {"error": "cut"}}},
            {"functionResponse": {"name": "g", "response": {"error": "no \"b\""}}},
        ]})
    );
}

#[test]
fn ids_are_taken_away_with_one_comma_each() {
    let with = |call: &str, result: &str| {
        format!(
            r#"{{"contents":[{{"role":"model","parts":[{{"functionCall":{{{call}}}}}]}},{{"parts":[{{"function_response":{{{result}}}}}]}}]}}"#
        )
    };
    for (before, after) in [
        (r#""id":"a","name":"f""#, r#""name":"f""#),
        (r#" "id" : "a" , "name":"f" "#, r#" "name":"f" "#),
        (r#""name":"f", "args":{"id":"b"},"id":"a" "#, r#""name":"f", "args":{"id":"b"} "#),
        (r#""id":"a""#, ""),
        (r#""name":"f","args":{"id":"b"}"#, r#""name":"f","args":{"id":"b"}"#),
    ] {
        let found = changed(&with(before, before), |rewrite| {
            rewrite.without_ids();
        });
        assert_eq!(found, with(after, after));
    }
}
