//! Responses requests: what they ask is found, what has no place is named, and only what cannot be understood is refused.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "helpers of tests")]

use koboshi_wire::dialect::Dialect;
use koboshi_wire::form::{Choice, Effort, Form, Image, Omission, Output, Part, Role, Thinking, ToolInput};
use koboshi_wire::responses::ResponsesRequest;
use serde_json::{Value, json};

fn with<T>(body: &Value, look: impl FnOnce(&ResponsesRequest<'_>) -> T) -> T {
    let body = body.to_string();
    look(&ResponsesRequest::parse(body.as_bytes()).unwrap())
}

fn error(body: &str) -> String {
    ResponsesRequest::parse(body.as_bytes()).unwrap_err().to_string()
}

type Found = Vec<(&'static str, String)>;

/// Rules and places of what was left, droppable and not.
fn left(form: &Form<'_>) -> (Found, Found) {
    let of = |droppable: bool| {
        let some = form.left.iter().filter(|left| left.droppable == droppable);
        some.map(|left: &Omission| (left.rule, left.at.clone())).collect()
    };
    (of(true), of(false))
}

/// What Codex sends in the middle of a task: developer messages in place of instructions, tools of every kind, results without a flag.
fn codex() -> Value {
    json!({
        "model": "gpt-5.1-codex",
        "input": [
            {"type": "message", "id": "msg_dev", "role": "developer", "content": [{"type": "input_text", "text": "<permissions>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "<environment_context>"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Write a file."}]},
            {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "**Plan**"}], "content": null, "encrypted_content": "gAAA"},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "On it."}]},
            {"type": "function_call", "id": "fc_1", "name": "exec_command", "arguments": "{\"cmd\":\"ls\"}", "call_id": "call_1"},
            {"type": "custom_tool_call", "id": "ctc_1", "status": "completed", "call_id": "call_2", "name": "apply_patch", "input": "*** Begin Patch"},
            {"type": "function_call_output", "call_id": "call_1", "output": "Chunk ID: 1\nProcess exited with code 0\nOutput:\na.txt"},
            {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Success."}
        ],
        "tools": [
            {"type": "function", "name": "exec_command", "description": "Runs a command.", "strict": false,
                "parameters": {"type": "object", "properties": {"cmd": {"type": "string"}}, "required": ["cmd"]}},
            {"type": "custom", "name": "apply_patch", "description": "Use it to edit files.",
                "format": {"type": "grammar", "syntax": "lark", "definition": "start: begin_patch"}},
            {"type": "namespace", "name": "mcp__x", "description": "d", "tools": []},
            {"type": "tool_search", "execution": "client", "description": "d", "parameters": {}},
            {"type": "web_search", "external_web_access": false}
        ],
        "tool_choice": "auto",
        "parallel_tool_calls": false,
        "reasoning": {"effort": "medium", "summary": "auto"},
        "store": false,
        "stream": true,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "0199",
        "text": {"verbosity": "low"},
        "client_metadata": {"x-codex-installation-id": "1"}
    })
}

#[test]
fn codex_is_understood() {
    with(&codex(), |request| {
        let form = request.form();
        assert_eq!(
            (request.model(), request.stream(), request.is_bound_to_provider()),
            ("gpt-5.1-codex", true, false)
        );
        assert_eq!(form.system, ["<permissions>"]);
        let roles: Vec<_> = form.turns.iter().map(|turn| turn.role).collect();
        assert_eq!(roles, [Role::User, Role::User, Role::Assistant, Role::User]);
        let answer = &form.turns[2].parts;
        let Part::Thought(thought) = &answer[0] else { panic!("{answer:?}") };
        let signature = thought.signature.as_ref().unwrap();
        assert_eq!(
            (signature.of, signature.id.as_deref(), &*signature.data),
            (Dialect::Responses, Some("rs_1"), "gAAA")
        );
        assert_eq!(thought.text, "**Plan**");
        assert_eq!(answer[1], Part::Text("On it.".into()));
        let Part::Call(call) = &answer[2] else { panic!("{answer:?}") };
        assert_eq!(
            (&*call.id, &*call.name, &*call.arguments, call.free_text),
            ("call_1", "exec_command", "{\"cmd\":\"ls\"}", false)
        );
        let Part::Call(patch) = &answer[3] else { panic!("{answer:?}") };
        assert_eq!((&*patch.arguments, patch.free_text), ("*** Begin Patch", true));
        let Part::Outcome(result) = &form.turns[3].parts[1] else { panic!() };
        assert_eq!((result.name.as_deref(), result.free_text), (Some("apply_patch"), true));
        assert_eq!(form.tools.len(), 2);
        assert!(matches!(form.tools[1].input, ToolInput::FreeText));
        let description = form.tools[1].description.as_deref().unwrap();
        assert!(
            description.ends_with("lark grammar:\nstart: begin_patch"),
            "a model of another vendor must know what to write"
        );
        assert_eq!((form.parallel, form.thinking), (Some(false), Thinking::Effort(Effort::Medium)));
        let (dropped, needed) = left(form);
        assert_eq!(needed, []);
        let rules: Vec<_> = dropped.iter().map(|(rule, at)| format!("{rule} {at}")).collect();
        assert_eq!(
            rules,
            [
                "describe_grammar tools[1].format", "flatten_namespace tools[2]",
                "drop_tool_search tools[3]", "drop_web_search tools[4]", "drop_metadata client_metadata",
                "drop_include include", "drop_cache_hint prompt_cache_key", "drop_summary reasoning.summary",
                "drop_verbosity text.verbosity",
            ]
        );
        let tools: Vec<_> = request.tools().map(|(name, schema)| (name, schema.is_some())).collect();
        assert_eq!(tools, [("exec_command".into(), true), ("apply_patch".into(), false)]);
    });
}

#[test]
fn an_opening_stays_the_same_from_turn_to_turn() {
    let first =
        json!({"model": "m", "input": codex()["input"].as_array().unwrap()[..3].to_vec()}).to_string();
    let later = json!({"model": "m", "input": codex()["input"]}).to_string();
    let opening = |body: &str| ResponsesRequest::parse(body.as_bytes()).unwrap().opening().to_vec();
    assert_eq!(opening(&first), opening(&later));
    assert!(String::from_utf8(opening(&first)).unwrap().contains("<environment_context>"));
    assert_eq!(opening(r#"{"model":"m","input":"Hi"}"#), b"\"Hi\"");
    assert_eq!(opening(r#"{"model":"m","input":[]}"#), b"");
}

#[test]
fn only_what_cannot_be_understood_is_refused() {
    for (body, words) in [
        (r#"{"input":"x"}"#, "`model` is missing"),
        (r#"{"model":"m"}"#, "`input` is missing"),
        (r#"{"model":"m","input":null}"#, "`input` is missing"),
        (r#"{"model":"m","input":7}"#, "`input` must be a text or a list of items"),
        (r#"{"model":"m","input":[1]}"#, "`input[0]` must be an object"),
        (r#"{"model":"m","input":[{"content":"x"}]}"#, "`input[0].role` is missing"),
        (r#"{"model":"m","input":"x","stream":1}"#, "`stream` must be true or false"),
        (r#"{"model":"m","input":"x","input":"y"}"#, "`input` is given twice; give it once"),
        ("[]", "the request body must be a JSON object"),
    ] {
        assert_eq!(error(body), words, "{body}");
    }
    let deep = format!(
        r#"{{"model":"m","input":[{{"role":"user","content":{}1{}}}]}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    assert_eq!(error(&deep), "the request body is nested deeper than 128 levels");
    // The provider's store may hold the rest.
    assert!(ResponsesRequest::parse(br#"{"model":"m","prompt":{"id":"pmpt_1"}}"#).is_ok());
}

#[test]
fn stored_conversations_stay_where_they_are() {
    for (field, value) in
        [("previous_response_id", json!("resp_1")), ("conversation", json!({"id": "conv_1"}))]
    {
        let body = json!({"model": "m", "input": "x", field: value});
        with(&body, |request| {
            assert!(request.is_bound_to_provider());
            assert_eq!(left(request.form()).1, [("needs_server_state", field.to_owned())]);
        });
    }
    let reference = json!({"model": "m", "input": [{"type": "item_reference", "id": "msg_1"}]});
    with(&reference, |request| assert!(request.is_bound_to_provider()));
    let plain = json!({"model": "m", "input": "x", "previous_response_id": null, "background": false, "store": false, "truncation": "disabled"});
    with(&plain, |request| {
        assert!(!request.is_bound_to_provider());
        assert_eq!(request.form().left, []);
    });
}

#[test]
fn what_the_client_counts_on_is_needed() {
    let needed = |body: Value| {
        let mut whole = json!({"model": "m", "input": "x"});
        whole.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        with(&whole, |request| left(request.form()).1)
    };
    for (body, rule, at) in [
        (json!({"background": true}), "needs_background", "background"),
        (json!({"prompt": {"id": "p"}}), "needs_prompt_template", "prompt"),
        (json!({"top_logprobs": 3}), "needs_logprobs", "top_logprobs"),
        (json!({"include": ["message.output_text.logprobs"]}), "needs_logprobs", "include"),
        (
            json!({"tools": [{"type": "file_search", "vector_store_ids": []}]}),
            "needs_hosted_tool",
            "tools[0]",
        ),
        (json!({"tools": [{"type": "mcp"}]}), "needs_hosted_tool", "tools[0]"),
        (
            json!({"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}),
            "needs_hosted_tool",
            "tool_choice",
        ),
        (
            json!({"tools": [{"type": "web_search"}], "tool_choice": "required"}),
            "needs_hosted_tool",
            "tool_choice",
        ),
        (json!({"tool_choice": {"type": "function", "name": "gone"}}), "needs_tool_choice", "tool_choice"),
        (json!({"text": {"format": {"type": "grammar"}}}), "needs_text_format", "text.format"),
        (json!({"input": [{"type": "computer_call", "id": "x"}]}), "needs_hosted_item", "input[0]"),
        (
            json!({"input": [{"type": "compaction", "encrypted_content": "x"}]}),
            "needs_compaction",
            "input[0]",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}),
            "needs_file_id",
            "input[0].content[0]",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_file", "file_url": "u"}]}]}),
            "needs_file_url",
            "input[0].content[0]",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "hologram"}]}]}),
            "needs_part",
            "input[0].content[0]",
        ),
    ] {
        assert_eq!(needed(body.clone()), [(rule, at.to_owned())], "{body}");
    }
    // Traces of what Codex can do without.
    let trace =
        json!({"model": "m", "input": [{"type": "web_search_call", "id": "ws_1", "status": "completed"}]});
    assert_eq!(
        with(&trace, |request| left(request.form())),
        (vec![("drop_hosted_trace", "input[0]".to_owned())], vec![])
    );
    let odd = json!({"model": "m", "input": "x", "moon": 1});
    assert_eq!(with(&odd, |request| left(request.form()).0), [("drop_unknown_field", "moon".to_owned())]);
}

#[test]
fn pictures_and_files_are_taken_apart() {
    let body = json!({"model": "m", "input": [{"role": "user", "content": [
        {"type": "input_image", "image_url": "https://x/y.png", "detail": "auto"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,BBBB"},
        {"type": "input_file", "file_data": "CCCC"},
        {"type": "input_audio", "input_audio": {"data": "DDDD", "format": "mp3"}}
    ]}, {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "t"}, {"type": "input_image", "image_url": "data:image/png;base64,EE"}]}]});
    with(&body, |request| {
        let parts = &request.form().turns[0].parts;
        assert_eq!(parts[0], Part::Image(Image::Url("https://x/y.png".into())));
        assert_eq!(
            parts[1],
            Part::Image(Image::Data { media_type: "image/png".into(), data: "AAAA".into() })
        );
        let Part::Media(file) = &parts[2] else { panic!() };
        assert_eq!(
            (&*file.media_type, &*file.data, file.name.as_deref()),
            ("application/pdf", "BBBB", Some("a.pdf"))
        );
        let Part::Media(bare) = &parts[3] else { panic!() };
        assert_eq!((&*bare.media_type, &*bare.data), ("application/pdf", "CCCC"));
        let Part::Media(sound) = &parts[4] else { panic!() };
        assert_eq!(sound.media_type, "audio/mp3");
        let Part::Outcome(result) = &request.form().turns[1].parts[0] else { panic!() };
        assert_eq!(result.parts.len(), 2);
        assert_eq!(request.form().left, []);
    });
}

#[test]
fn choices_and_formats() {
    let tools = json!([{"type": "function", "name": "f", "parameters": {"type": "object"}}, {"type": "custom", "name": "g"}]);
    let choice = |choice: Value| {
        let body = json!({"model": "m", "input": "x", "tools": tools, "tool_choice": choice});
        with(&body, |request| (format!("{:?}", request.form().choice), request.form().tools.len()))
    };
    for (said, found, offered) in [
        (json!("auto"), Choice::Auto, 2),
        (json!("none"), Choice::Never, 2),
        (json!("required"), Choice::Any, 2),
        (json!({"type": "custom", "name": "g"}), Choice::Tool("g".into()), 2),
        (
            json!({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}),
            Choice::Any,
            1,
        ),
        (
            json!({"type": "allowed_tools", "mode": "auto", "tools": [{"type": "image_generation"}]}),
            Choice::Never,
            0,
        ),
    ] {
        assert_eq!(choice(said), (format!("{found:?}"), offered));
    }
    let format = json!({"model": "m", "input": "x", "text": {"format": {"type": "json_schema", "name": "n", "strict": true, "schema": {"b": 1, "a": 2}}}});
    let text = format.to_string().replace(r#"{"a":2,"b":1}"#, r#"{"b":1, "a":2}"#);
    let request = ResponsesRequest::parse(text.as_bytes()).unwrap();
    let Output::Schema { name, schema, strict } = &request.form().output else { panic!() };
    assert_eq!(
        (name.as_deref(), schema.get(), *strict),
        (Some("n"), r#"{"b":1, "a":2}"#, Some(true)),
        "to the byte"
    );
    with(&json!({"model": "m", "input": "x", "text": {"format": {"type": "json_object"}}}), |request| {
        assert!(matches!(request.form().output, Output::Json));
    });
}

#[test]
fn a_system_message_in_the_middle_stays_there() {
    let body = json!({"model": "m", "instructions": "one", "input": [
        {"role": "system", "content": "two"}, {"role": "user", "content": "hi"}, {"role": "developer", "content": "three"}]});
    with(&body, |request| {
        assert_eq!(request.form().system, ["one", "two"]);
        assert_eq!(request.form().turns[1].role, Role::System);
    });
}

#[test]
fn metadata_is_read_as_in_chat() {
    let body = json!({"model": "m", "input": "x", "metadata": {"mode": "fast", "n": 7, "o": {}}});
    with(&body, |request| {
        assert_eq!(request.metadata("mode").as_deref(), Some("fast"));
        assert_eq!(request.metadata("n").as_deref(), Some("7"));
        assert_eq!(request.metadata("o"), None);
    });
}

#[test]
fn tools_in_a_group_are_offered_one_by_one_and_found_again() {
    let long = "a_very_long_name_of_a_tool_that_does_not_fit_beside_the_name_of_its_group";
    let body = json!({
        "model": "m",
        "input": [
            {"role": "user", "content": "List."},
            {"type": "function_call", "call_id": "c", "namespace": "mcp__x", "name": "list", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "none"},
        ],
        "tools": [
            {"type": "function", "name": "mcp__x__taken", "parameters": {"type": "object"}},
            {"type": "namespace", "name": "mcp__x", "description": "d", "tools": [
                {"type": "function", "name": "list", "description": "lists", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}}},
                {"type": "custom", "name": "run"},
                {"type": "function", "name": "taken"},
                {"type": "function", "name": long},
                {"type": "tool_search"},
            ]},
            {"type": "namespace", "name": "apps__", "tools": [{"type": "function", "name": "find.it"}]},
        ],
    });
    with(&body, |request| {
        let form = request.form();
        let names: Vec<&str> = form.tools.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names[..3], ["mcp__x__taken", "mcp__x__list", "mcp__x__run"]);
        assert_eq!(names.len(), 5, "one name was taken, one is no tool: {names:?}");
        let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        assert!(names.iter().all(|name| name.len() <= 64 && name.chars().all(fits)), "{names:?}");
        let found =
            |flat: &str| request.in_group(flat).map(|(group, name)| (group.into_owned(), name.into_owned()));
        let of = |group: &str, name: &str| Some((group.to_owned(), name.to_owned()));
        assert_eq!(found(names[1]), of("mcp__x", "list"));
        assert_eq!(found(names[3]), of("mcp__x", long));
        assert_eq!(found(names[4]), of("apps__", "find.it"));
        assert_eq!(found("list"), None);
        let schemas: Vec<(String, bool)> =
            request.tools().map(|(name, schema)| (name.into_owned(), schema.is_some())).collect();
        assert!(schemas.contains(&("mcp__x__list".to_owned(), true)), "{schemas:?}");
        let Part::Call(call) = &form.turns[1].parts[0] else { panic!("{:?}", form.turns) };
        assert_eq!(call.name, "mcp__x__list", "the call of before has the name that is offered");
        let (dropped, needed) = left(form);
        let rules: Vec<&str> = dropped.iter().map(|(rule, _)| *rule).collect();
        assert_eq!(rules, ["drop_namespace", "drop_namespace", "flatten_namespace", "flatten_namespace"]);
        assert!(needed.is_empty());
    });
}
