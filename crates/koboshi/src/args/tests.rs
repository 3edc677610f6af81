//! Promises of `check` that no other test holds: what refusals say, and choices that the schema decides.

use super::*;

fn schema(text: &str) -> ToolSchema {
    ToolSchema::parse(text).unwrap()
}

fn read(text: &str, properties: &str) -> Option<String> {
    let schema = schema(&format!(r#"{{"type": "object", "properties": {{{properties}}}}}"#));
    let verdict = check(text, Some(&schema), Finish::Unknown, &ArgsPolicy::default());
    verdict.json(text).map(str::to_owned)
}

fn defect(text: &str) -> Option<Defect> {
    let verdict = check(text, None, Finish::Unknown, &ArgsPolicy::default());
    verdict.refusal().map(|refusal| refusal.defect)
}

#[test]
fn a_refusal_says_where_and_why() {
    let text = "{\n  \"a\": 1,\n  \"b\": [1, 2\n";
    let verdict = check(text, None, Finish::Unknown, &ArgsPolicy::default());
    let refusal = verdict.refusal().unwrap();
    assert_eq!(refusal.defect, Defect::Cut);
    assert_eq!((refusal.position.byte, refusal.position.line, refusal.position.column), (25, 4, 1));
    assert!(refusal.excerpt.contains("[1, 2"));
    assert!(refusal.to_string().contains("line 4, column 1"), "{refusal}");
}

#[test]
fn the_schema_s_misses_name_places_and_repeat_no_values() {
    let schema = schema(r#"{"properties": {"o": {"properties": {"n": {"type": "integer", "maximum": 5}}}}}"#);
    let verdict = check(r#"{"o": {"n": 77}}"#, Some(&schema), Finish::Unknown, &ArgsPolicy::default());
    let refusal = verdict.refusal().unwrap();
    assert_eq!(refusal.defect, Defect::Schema);
    assert_eq!(refusal.misses.len(), 1);
    assert_eq!(refusal.misses[0].path, "/o/n");
    assert!(refusal.misses[0].demand.contains('5') && !refusal.misses[0].demand.contains("77"));
}

#[test]
fn each_defect_has_its_own_name() {
    for (text, due) in [
        ("", Defect::Empty),
        ("no idea", Defect::NotAnObject),
        ("[1, 2]", Defect::NotAnObject),
        ("{\"a\": 1}{\"a\": 2}", Defect::SeveralObjects),
        ("{\"a\": 1, \"a\": 2}", Defect::DuplicateKey),
        ("{\"a\": \"C:\\new\\dir\"}", Defect::BadEscape),
        ("{\"a\": 1/3}", Defect::BadNumber),
        ("{\"a\": }", Defect::MissingValue),
        ("{\"a\": \"x", Defect::Cut),
        ("{\"a\": 12", Defect::Cut),
        ("{\"a\": \"he said \"x\", \"b\": \"y\"\"}", Defect::Ambiguous),
        ("{\"a\": @}", Defect::Unreadable),
    ] {
        assert_eq!(defect(text), Some(due), "{text}");
    }
    let tight = ArgsPolicy { max_bytes: 3, ..ArgsPolicy::default() };
    let verdict = check("{   }", None, Finish::Unknown, &tight);
    assert_eq!(verdict.refusal().map(|refusal| refusal.defect), Some(Defect::TooLong));
}

#[test]
fn numbers_keep_every_digit() {
    let text = "{'id': 12345678901234567890123, 'v': 1.10, 'w': 1e400,}";
    let verdict = check(text, None, Finish::Unknown, &ArgsPolicy::default());
    assert_eq!(verdict.json(text), Some(r#"{"id":12345678901234567890123,"v":1.10,"w":1e400}"#));
    assert_eq!(read("{\"v\": 1.10}", r#""v": {"type": "string"}"#).unwrap(), r#"{"v":"1.10"}"#);
    assert_eq!(read("{\"v\": 020}", r#""v": {"type": "string"}"#).unwrap(), r#"{"v":"020"}"#);
    assert_eq!(read("{\"v\": 020}", r#""v": {"type": "integer"}"#), None);
    let long = "{\"v\": \"12345678901234567890123\"}";
    assert_eq!(read(long, r#""v": {"type": "integer"}"#).unwrap(), r#"{"v":12345678901234567890123}"#);
}

#[test]
fn large_numbers_and_the_deepest_nesting_are_checked_too() {
    let number = r#""v": {"type": "number"}"#;
    assert_eq!(read("{\"v\": 1e400}", number).unwrap(), "{\"v\": 1e400}");
    let deep = format!("{}1{}", "{\"a\":".repeat(128), "}".repeat(128));
    assert_eq!(read(&deep, number).unwrap(), deep);
}

#[test]
fn a_type_is_changed_only_where_one_choice_is_left() {
    for (text, properties, due) in [
        (r#"{"v":"5"}"#, r#""v": {"type": "integer"}"#, Some(r#"{"v":5}"#)),
        (r#"{"v":"5.5"}"#, r#""v": {"type": "integer"}"#, None),
        (r#"{"v":"5"}"#, r#""v": {"type": ["integer", "null"]}"#, Some(r#"{"v":5}"#)),
        (r#"{"v":"5"}"#, r#""v": {"type": ["integer", "array"], "items": {"type": "integer"}}"#, None),
        (r#"{"v":"yes"}"#, r#""v": {"type": "boolean"}"#, None),
        (r#"{"v":"FALSE"}"#, r#""v": {"type": "boolean"}"#, Some(r#"{"v":false}"#)),
        (r#"{"v":"[1, 2]"}"#, r#""v": {"type": "array"}"#, Some(r#"{"v":[1,2]}"#)),
        (r#"{"v":"['a', None]"}"#, r#""v": {"type": "array"}"#, Some(r#"{"v":["a",null]}"#)),
        (r#"{"v":"[1, 2"}"#, r#""v": {"type": "array"}"#, None),
        (r#"{"v":"a"}"#, r#""v": {"type": "array", "items": {"type": "string"}}"#, Some(r#"{"v":["a"]}"#)),
        (r#"{"v":7}"#, r#""v": {"type": "array", "items": {"type": "integer"}}"#, Some(r#"{"v":[7]}"#)),
        (r#"{"v":"on"}"#, r#""v": {"enum": ["On", "Off"]}"#, Some(r#"{"v":"On"}"#)),
        (r#"{"v":"on"}"#, r#""v": {"enum": ["On", "ON"]}"#, None),
        (r#"{"v":null,"w":1}"#, r#""v": {"type": "string"}"#, Some(r#"{"w":1}"#)),
        (r#"{"v":true}"#, r#""v": {"type": "string"}"#, None),
        (
            r#"{"v":{"n":"1"}}"#,
            r##""v": {"$ref": "#/properties/w"}, "w": {"properties": {"n": {"type": "number"}}}"##,
            Some(r#"{"v":{"n":1}}"#),
        ),
    ] {
        assert_eq!(read(text, properties).as_deref(), due, "{text} {properties}");
    }
}

#[test]
fn words_without_quotation_marks_are_decided_by_the_schema() {
    assert_eq!(read("{\"v\": yes}", r#""v": {"type": "string"}"#).unwrap(), r#"{"v":"yes"}"#);
    assert_eq!(read("{\"v\": TRUE}", r#""v": {"type": "boolean"}"#).unwrap(), r#"{"v":true}"#);
    assert_eq!(defect("{\"v\": TRUE}"), Some(Defect::Ambiguous));
    assert_eq!(defect("{\"v\": 2024-01-15}"), Some(Defect::BadNumber));
    assert_eq!(read("{\"v\": 2024-01-15}", r#""v": {"type": "string"}"#).unwrap(), r#"{"v":"2024-01-15"}"#);
}

#[test]
fn the_output_limit_is_believed() {
    let schema = schema(r#"{"type": "object", "properties": {"a": {"type": "string"}}}"#);
    let judge = |text, finish| check(text, Some(&schema), finish, &ArgsPolicy::default());
    for text in ["", "{\"a\": \"x\"", "{\"a\": \"x\",}", "{'a': 'x'}"] {
        let refusal = judge(text, Finish::Cut);
        assert_eq!(refusal.refusal().map(|refusal| refusal.defect), Some(Defect::CutByLimit), "{text}");
        assert!(matches!(judge(text, Finish::Done), Verdict::Repaired { .. }), "{text}");
    }
    assert_eq!(judge("{\"a\": \"x\"}", Finish::Cut), Verdict::Valid, "an object that has ended is whole");
}

/// A long file whose quotation marks were not escaped has many places where its string could end.
#[test]
fn a_long_text_with_many_inner_quotes_is_read() {
    let line = "    print(\"a\", \"b\")  # say \"hi\", {\"k\"}\n";
    let code = line.repeat(2_000);
    let text = format!("{{\"path\": \"a.py\", \"content\": \"def f():\n{code}\"}}");
    let closed = r#"{"type": "object", "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
        "required": ["path", "content"], "additionalProperties": false}"#;
    let verdict = check(&text, Some(&schema(closed)), Finish::Unknown, &ArgsPolicy::default());
    let value: Value = serde_json::from_str(verdict.json(&text).unwrap()).unwrap();
    assert_eq!(value["content"], format!("def f():\n{code}"));
}

#[test]
fn surplus_closers_follow_their_object_at_once() {
    for text in ["{'a': 1}}", "```json\n{'a': 1}}]\n```", "{'a': 1} }\n;"] {
        let verdict = check(text, None, Finish::Unknown, &ArgsPolicy::default());
        assert_eq!(verdict.json(text), Some(r#"{"a":1}"#), "{text}");
    }
    for text in ["} {'a': 1}", "x: {'a': 1}}", "{'a': 1} and so on }"] {
        assert_eq!(defect(text), Some(Defect::Ambiguous), "{text}");
    }
}

const LISTS: &str = r#""tags": {"type": "array", "items": {"type": "string"}}"#;

#[test]
fn a_text_that_may_be_several_or_none_is_no_array_of_one() {
    for text in ["red; blue", "red|blue", "null", "None", "undefined", "N/A", "nil"] {
        assert_eq!(read(&format!(r#"{{"tags": "{text}"}}"#), LISTS), None, "{text}");
    }
    assert_eq!(read(r#"{"tags": "red"}"#, LISTS).as_deref(), Some(r#"{"tags":["red"]}"#));
}

#[test]
fn a_null_is_left_out_only_where_the_schema_declares_the_member() {
    let map = r#""labels": {"type": "object", "additionalProperties": {"type": "string"}}, "n": {"type": "integer"}"#;
    assert_eq!(read(r#"{"labels": {"team": null}}"#, map), None, "null may mean: take it away");
    assert_eq!(read(r#"{"n": null}"#, map).as_deref(), Some("{}"));
}

#[test]
fn what_was_done_inside_an_encoded_value_is_named() {
    let schema = schema(
        r#"{"properties": {"e": {"type": "array", "items": {"type": "object", "properties":
            {"a": {"type": "integer"}, "b": {"type": "string"}}}}}}"#,
    );
    let text = r#"{"e": "[{'a': '5', 'b': None}]"}"#;
    let Verdict::Repaired { json, changes } =
        check(text, Some(&schema), Finish::Done, &ArgsPolicy::default())
    else {
        panic!("one reading")
    };
    assert_eq!(json, r#"{"e":[{"a":5}]}"#);
    for what in
        [ChangeKind::Decoded, ChangeKind::QuotesChanged, ChangeKind::ToNumber, ChangeKind::NullDropped]
    {
        assert!(changes.iter().any(|change| change.what == what), "{what}: {changes:?}");
    }
    assert!(changes.iter().all(|change| change.span == (7..30)), "{changes:?}");
}

#[test]
fn a_string_that_the_text_ends_with_is_whole_only_if_its_last_mark_does_not_open_another() {
    let properties = r#""path": {"type": "string"}, "content": {"type": "string"}"#;
    for content in ["<div class=", "print(", "echo ", "git commit -m ", "x = [", "a\n"] {
        let text = format!(r#"{{"path": "a", "content": "{content}""#);
        assert_eq!(read(&text, properties), None, "{text}");
    }
    for content in ["hello", "f(x);", "", "終わり。"] {
        let text = format!(r#"{{"path": "a", "content": "{content}""#);
        assert!(read(&text, properties).is_some(), "{text}");
    }
}

#[test]
fn a_mark_that_lost_its_partner_is_not_guessed() {
    for text in [
        r#"{"query": "SELECT * FROM t WHERE a = "b", "limit": 5}"#, r#"{"query": "say "hello", "limit": 5}"#,
        r#"{"query": "5"", "limit": 5}"#, r#"{"query": "echo \\"hi\\""}"#,
    ] {
        assert!(defect(text).is_some(), "{text}");
    }
    for (text, due) in [
        (r#"{"query": "a 5" pipe", "limit": 5}"#, r#"{"query":"a 5\" pipe","limit":5}"#),
        (r#"{"query": "say "hi"", "limit": 5}"#, r#"{"query":"say \"hi\"","limit":5}"#),
    ] {
        assert_eq!(read(text, "").as_deref(), Some(due));
    }
}

#[test]
fn a_member_without_quotation_marks_outside_the_object_is_no_prose() {
    let properties =
        r#""path": {"type": "string"}, "filter": {"type": "object"}, "limit": {"type": "integer"}"#;
    for text in [
        "filter: {\"lang\": \"rs\"}", "path: src\nfilter: {\"lang\": \"rs\"}\nlimit: 5",
        "- path: src\n- filter: {\"lang\": \"rs\"}", "filter={\"lang\": \"rs\"}, limit=5",
        "{\"path\": \"a\"}, limit: 5", "{\"path\": \"a\"} limit: 5",
        "```yaml\nfilter: {\"lang\": \"rs\"}\n```",
    ] {
        assert_eq!(read(text, properties), None, "{text}");
    }
    for text in ["options: {\"a\": 1}\npath: x", "options = {\"a\": 1}", "{\"a\": 1}, limit: 5"] {
        assert_eq!(defect(text), Some(Defect::Ambiguous), "{text}");
    }
    for text in [
        "arguments: {\"a\": 1}", "data: {\"a\": 1}",
        "Action: get\nAction Input: {\"a\": 1}\nObservation: sunny", "I look for the path: {\"a\": 1}",
    ] {
        assert_eq!(defect(text), None, "{text}");
        assert!(read(text, properties).is_some(), "{text}");
    }
}

#[test]
fn of_several_objects_none_is_dropped_that_was_meant_for_the_tool() {
    let properties = r#""path": {"type": "string"}, "limit": {"type": "integer"}"#;
    for text in [
        r#"{"path": "a"}{"path": "b", "limit": "ten"}"#,
        r#"{"path": ["b"]}{"path": "a"}"#,
        r#"{"path": "a"}{"name": "read", "arguments": {"path": ["b"]}}"#,
    ] {
        let schema =
            schema(&format!(r#"{{"type": "object", "properties": {{{properties}}}, "required": ["path"]}}"#));
        let verdict = check(text, Some(&schema), Finish::Done, &ArgsPolicy::default());
        assert_eq!(verdict.refusal().map(|refusal| refusal.defect), Some(Defect::SeveralObjects), "{text}");
    }
}

#[test]
fn tokens_of_chat_templates_are_left_out() {
    let city = r#""city": {"type": "string"}"#;
    for text in [
        r#"[TOOL_CALLS]{"city": "Paris"}"#, r#"[TOOL_CALLS]get_weather[ARGS]{"city": "Paris"}"#,
        r#"[TOOL_REQUEST]{"city": "Paris"}[END_TOOL_REQUEST]"#,
        "<tool_call>{\"city\": \"Paris\"}</tool_call>",
    ] {
        assert_eq!(read(text, city).as_deref(), Some(r#"{"city":"Paris"}"#), "{text}");
    }
    let text = r#"<tool_call>{"city": "parameter=5"}</tool_call>"#;
    assert_eq!(read(text, city).as_deref(), Some(r#"{"city":"parameter=5"}"#));
}

#[test]
fn an_escape_of_python_is_no_text() {
    assert_eq!(defect(r#"{"a": "\U0001F600"}"#), Some(Defect::BadEscape));
    assert_eq!(defect(r#"{"a": "C:\Users\dir"}"#), None);
}

#[test]
fn a_flood_of_line_breaks_or_commas_outside_is_passed_over_once() {
    for flood in ["\n", ",", ", ", "\n- ", ">\n", "a,\n", "\\n"] {
        let text = format!("x{}{{'a': 1}}", flood.repeat(300_000));
        assert_eq!(defect(&text), None, "{flood:?}");
    }
}

#[test]
fn a_single_mark_that_lost_its_partner_is_not_guessed_either() {
    let properties = r#""command": {"type": "string"}"#;
    for text in [
        "{'command': 'git commit -m 'fix', 'timeout': 5}", "{'command': 'don'",
        "{'command': 'the dogs'', 'timeout': 5}",
    ] {
        assert_eq!(read(text, properties), None, "{text}");
    }
    for text in ["{'command': 'the dogs' bowl', 'n': 2}", "{'command': 'it's 5 o'clock'}"] {
        assert!(read(text, properties).is_some(), "{text}");
    }
}

#[test]
fn a_comment_with_quotation_marks_is_not_read_as_part_of_a_string() {
    for text in [
        "{\"command\": \"echo hi\" // \"greet\"\n}", "{\"command\": \"echo hi\" # a \"b\"\n}",
        "{\"command\": \"echo hi\" /* \"b\" */ }",
    ] {
        assert!(defect(text).is_some(), "{text}");
    }
    assert_eq!(defect("{\"css\": \"color: \"#fff\"\"}"), None);
}

#[test]
fn an_object_that_was_thought_is_not_called() {
    assert_eq!(defect("I could {\"a\": 1} or not </think>\nOk."), Some(Defect::Ambiguous));
    assert_eq!(defect("Let me see. </think>\n{\"a\": 1}"), None);
}

#[test]
fn a_fence_or_tag_that_belongs_to_the_content_does_not_end_the_text() {
    let properties = r#""path": {"type": "string"}, "content": {"type": "string"}"#;
    for end in ["</p>", "</a>\n", "\n```python\nx\n```", "\n```\nx\n```"] {
        let text = format!(r#"{{"path": "a", "content": "x"{end}"#);
        assert_eq!(read(&text, properties), None, "{text}");
    }
    for (start, end) in [
        ("", "\n```"),
        ("```json\n", "\n```\n"),
        ("<call>", "</call>"),
        ("", "</tool_call>"),
        ("", "</s>"),
        ("", "<|im_end|>"),
    ] {
        let text = format!(r#"{start}{{"path": "a", "content": "x"{end}"#);
        assert!(read(&text, properties).is_some(), "{text}");
    }
}

#[test]
fn an_envelope_that_says_two_things_is_not_opened() {
    let schema = schema(r#"{"properties": {"city": {"type": "string"}}, "required": ["city"]}"#);
    let text = r#"{"name": "a", "name": "b", "arguments": {"city": "Paris"}}"#;
    let verdict = check(text, Some(&schema), Finish::Done, &ArgsPolicy::default());
    assert_eq!(verdict.refusal().map(|refusal| refusal.defect), Some(Defect::DuplicateKey));
}

#[test]
fn a_call_of_another_tool_is_not_taken_for_this_one() {
    let plain =
        schema(r#"{"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}"#);
    let named = plain.named("get_weather");
    let judge =
        |text: &str, schema: &ToolSchema| check(text, Some(schema), Finish::Done, &ArgsPolicy::default());
    let wrapped = |name: &str| {
        vec![
            format!(r#"{{"name": "{name}", "arguments": {{"city": "Paris"}}}}"#),
            format!(r#"{{"tool": "{name}", "input": "{{\"city\": \"Paris\"}}"}}"#),
            format!(
                r#"{{"type": "function", "function": {{"name": "{name}", "arguments": {{"city": "Paris"}}}}}}"#
            ),
            format!(r#"[{{"recipient_name": "{name}", "parameters": {{"city": "Paris"}}}}]"#),
            format!(
                "I will call it:\n```json\n{{\"name\": \"{name}\", \"parameters\": {{\"city\": \"Paris\"}}}}\n```"
            ),
            format!("{name}(city='Paris')"),
            format!("<function={name}><parameter=city>Paris</parameter></function>"),
            format!(r#"<invoke name="{name}"><parameter name="city">Paris</parameter></invoke>"#),
        ]
    };
    for text in wrapped("drop_table") {
        let verdict = judge(&text, &named);
        assert_eq!(verdict.refusal().map(|refusal| refusal.defect), Some(Defect::OtherTool), "{text}");
        assert!(judge(&text, &plain).json("").is_some(), "as ever without a name: {text}");
    }
    for name in ["get_weather", "functions.get_weather", "mcp__sky__get_weather", " get_weather"] {
        for text in wrapped(name).into_iter().take(5) {
            assert_eq!(judge(&text, &named).json(""), Some(r#"{"city":"Paris"}"#), "{text}");
        }
    }
    assert_eq!(judge("get_weather(city='Paris')", &named).json(""), Some(r#"{"city":"Paris"}"#));
    assert!(judge(&wrapped("forget_weather")[0], &named).refusal().is_some(), "a part of a word is no name");
    assert!(judge(&wrapped("")[0], &named).refusal().is_some());
    let mcp = plain.named("mcp__sky__get_weather");
    assert!(judge(&wrapped("get_weather")[0], &mcp).json("").is_some());
}

#[test]
fn members_of_the_tool_itself_are_no_names_of_tools() {
    let schema = schema(
        r#"{"type": "object", "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
            "required": ["name"]}"#,
    )
    .named("start");
    let text = r#"{"name": "drop_table", "arguments": {"city": "Paris"}}"#;
    assert_eq!(check(text, Some(&schema), Finish::Done, &ArgsPolicy::default()), Verdict::Valid);
}
