//! Streams of many servers, frame by frame, in their own words.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use koboshi_wire::Malformed;
use koboshi_wire::chat::event::read;
use koboshi_wire::step::{CallPiece, Step, Usage};

/// A chunk with this delta, as OpenAI frames it.
fn delta(delta: &str) -> String {
    format!(
        r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1694268190,"model":"gpt-4o-mini","system_fingerprint":"fp_44709d6fcb","choices":[{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":null}}],"usage":null}}"#
    )
}

fn piece<'a>(index: u32, id: &'a str, name: &'a str, arguments: &'a str) -> CallPiece<'a> {
    let some = |text: &'a str| (!text.is_empty()).then_some(text.into());
    CallPiece {
        index,
        id: some(id),
        name: some(name),
        arguments: Some(arguments.into()),
        ..CallPiece::default()
    }
}

#[test]
fn openai_says_role_text_end_and_usage() {
    let role = delta(r#"{"role":"assistant","content":"","refusal":null}"#);
    let step = read(&role).unwrap();
    assert_eq!(
        (step.id.as_deref(), step.model.as_deref(), step.choices),
        (Some("chatcmpl-1"), Some("gpt-4o-mini"), 1)
    );
    assert!(!step.has_content() && step.text.is_none(), "a role is no content");

    let text = delta(r#"{"content":"Hello"}"#);
    let step = read(&text).unwrap();
    assert_eq!(step.text.as_deref(), Some("Hello"));
    assert!(matches!(step.text, Some(std::borrow::Cow::Borrowed(_))), "nothing is copied");
    assert!(step.has_content());
    let escaped = delta(r#"{"content":"a\n\"\u3042\""}"#);
    assert_eq!(read(&escaped).unwrap().text.as_deref(), Some("a\n\"あ\""));

    let step =
        read(r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"obfuscation":"xxxx"}"#).unwrap();
    assert_eq!(step.finish, [(0, "stop".into())]);
    assert!(!step.has_content());

    let usage = r#"{"id":"c","choices":[],"usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29,"prompt_tokens_details":{"cached_tokens":8,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":4,"audio_tokens":0}}}"#;
    let step = read(usage).unwrap();
    assert_eq!(
        step.usage,
        Some(Usage { input: 19, output: 10, cached: 8, reasoning: 4, ..Usage::default() })
    );
    assert_eq!((step.choices, step.has_content()), (0, false));
    assert_eq!(read(" [DONE]\r").unwrap(), Step { done: true, ..Step::default() });
}

#[test]
fn openai_calls_tools_in_pieces() {
    let first = delta(
        r#"{"role":"assistant","content":null,"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"get_weather","arguments":""}}]}"#,
    );
    assert_eq!(read(&first).unwrap().calls, [piece(0, "call_a", "get_weather", "")]);
    assert!(read(&first).unwrap().has_content(), "a call has begun");
    let more = delta(r#"{"tool_calls":[{"index":1,"function":{"arguments":"{\"city\":\"東"}}]}"#);
    assert_eq!(read(&more).unwrap().calls, [piece(1, "", "", "{\"city\":\"東")]);
    let null = delta(r#"{"tool_calls":[{"index":1,"id":null,"function":{"name":null,"arguments":null}}]}"#);
    assert_eq!(read(&null).unwrap().calls, [CallPiece { index: 1, ..CallPiece::default() }]);
    let custom = delta(
        r#"{"tool_calls":[{"index":0,"id":"call_c","type":"custom","custom":{"name":"run","input":"ls -l"}}]}"#,
    );
    let free = CallPiece { free_text: true, ..piece(0, "call_c", "run", "ls -l") };
    assert_eq!(read(&custom).unwrap().calls, [free]);
    let legacy = delta(r#"{"role":"assistant","function_call":{"name":"f","arguments":"{"}}"#);
    assert_eq!(read(&legacy).unwrap().calls, [piece(0, "", "f", "{")]);
}

#[test]
fn several_choices_are_distinguished() {
    let chunk = r#"{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"},{"index":0,"delta":{"content":"a"}}]}"#;
    let step = read(chunk).unwrap();
    assert_eq!((step.text.as_deref(), step.other_text, step.choices), (Some("a"), true, 2));
    assert_eq!(step.finish, [(1, "length".into())]);
    let only_other = read(r#"{"choices":[{"index":1,"delta":{"content":"b"}}]}"#).unwrap();
    assert!(only_other.text.is_none() && only_other.has_content());
}

#[test]
fn refusals_and_sound_are_content() {
    assert!(read(&delta(r#"{"refusal":"I cannot"}"#)).unwrap().refusal);
    assert!(!read(&delta(r#"{"refusal":""}"#)).unwrap().has_content());
    assert!(read(&delta(r#"{"audio":{"id":"a","data":"UklGR"}}"#)).unwrap().has_content());
}

#[test]
fn azure_begins_with_a_report_of_its_filter() {
    let first = r#"{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]}"#;
    let step = read(first).unwrap();
    assert_eq!(step, Step::default(), "no id, no model, no content");
    let asynchronous = r#"{"id":"","object":"","created":0,"model":"","choices":[{"index":0,"finish_reason":null,"content_filter_results":{"violence":{"filtered":false}},"content_filter_offsets":{"check_offset":44,"start_offset":44,"end_offset":198}}]}"#;
    assert!(!read(asynchronous).unwrap().has_content());
    let filtered = r#"{"id":"c","choices":[{"index":0,"finish_reason":"content_filter","delta":{}}]}"#;
    assert_eq!(read(filtered).unwrap().finish, [(0, "content_filter".into())]);
}

#[test]
fn thinking_is_content_under_every_name_and_not_text() {
    // DeepSeek, vLLM; OpenRouter; OpenRouter, encrypted; Ollama.
    for said in [
        r#"{"content":null,"reasoning_content":"Let me"}"#,
        r#"{"role":"assistant","content":"","reasoning":"Let me","reasoning_details":[{"type":"reasoning.text","text":"Let me"}]}"#,
        r#"{"content":"","reasoning":null,"reasoning_details":[{"type":"reasoning.encrypted","data":"gAAA"}]}"#,
        r#"{"role":"assistant","content":"","reasoning":"Okay"}"#,
        // Mistral's Magistral sends parts.
        r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}"#,
    ] {
        let chunk = delta(said);
        let step = read(&chunk).unwrap();
        assert!(step.reasoning && step.has_content() && step.text.is_none(), "{said}");
    }
    let empty = delta(r#"{"content":"","reasoning_content":"","reasoning":null}"#);
    assert!(!read(&empty).unwrap().has_content());
    let parts = delta(r#"{"content":[{"type":"text","text":"Hel"},{"type":"text","text":"lo"}]}"#);
    assert_eq!(read(&parts).unwrap().text.as_deref(), Some("Hello"));
}

#[test]
fn deepseek_counts_its_cache_by_another_name() {
    let chunk = r#"{"choices":[{"index":0,"delta":{"content":"","reasoning_content":null},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":17,"completion_tokens":9,"total_tokens":26,"prompt_tokens_details":{"cached_tokens":0},"prompt_cache_hit_tokens":12,"prompt_cache_miss_tokens":5}}"#;
    let step = read(chunk).unwrap();
    assert_eq!(step.usage, Some(Usage { input: 17, output: 9, cached: 12, ..Usage::default() }));
    let out_of_resources =
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"insufficient_system_resource"}]}"#;
    assert_eq!(read(out_of_resources).unwrap().finish, [(0, "insufficient_system_resource".into())]);
}

#[test]
fn errors_inside_a_stream_are_seen_in_every_form() {
    for (server, chunk) in [
        (
            "OpenAI",
            r#"{"error":{"message":"The server had an error","type":"server_error","param":null,"code":null}}"#,
        ),
        (
            "OpenRouter",
            r#"{"id":"gen-1","provider":"X","model":"m","error":{"code":502,"message":"Provider returned error"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        ),
        (
            "OpenRouter, empty choices",
            r#"{"id":"gen-1","choices":[],"error":{"code":429,"message":"Rate limited"}}"#,
        ),
        (
            "OpenRouter, in the choice",
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":null,"error":{"code":500,"message":"x"}}]}"#,
        ),
        (
            "a bare reason",
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"error","native_finish_reason":"network"}]}"#,
        ),
        (
            "vLLM",
            r#"{"object":"error","message":"EngineCore died","type":"InternalServerError","param":null,"code":500}"#,
        ),
        (
            "Groq",
            r#"{"error":{"message":"Failed to call a function","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<x>"}}"#,
        ),
        ("LM Studio", r#"{"error":"The model has crashed"}"#),
    ] {
        let step = read(chunk).unwrap();
        assert!(step.error && !step.has_content(), "{server}");
    }
    for healthy in
        [r#"{"error":null,"choices":[]}"#, r#"{"error":{},"choices":[]}"#, r#"{"error":"","choices":[]}"#]
    {
        assert!(!read(healthy).unwrap().error, "{healthy}");
    }
}

#[test]
fn vllm_ollama_and_groq_have_small_ways_of_their_own() {
    let vllm = r#"{"id":"chatcmpl-9","object":"chat.completion.chunk","created":1,"model":"Qwen","choices":[{"index":0,"delta":{"tool_calls":[{"id":"chatcmpl-tool-1","type":"function","index":0,"function":{"name":"f"}}]},"logprobs":null,"finish_reason":null,"stop_reason":null}],"prompt_token_ids":null}"#;
    assert_eq!(
        read(vllm).unwrap().calls,
        [CallPiece { arguments: None, ..piece(0, "chatcmpl-tool-1", "f", "") }]
    );
    // Ollama sends whole calls, and its last chunk has an empty content.
    let ollama = r#"{"id":"chatcmpl-2","object":"chat.completion.chunk","created":1,"model":"qwen3","system_fingerprint":"fp_ollama","choices":[{"index":0,"delta":{"role":"assistant","content":"","tool_calls":[{"id":"call_1","index":0,"type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},"finish_reason":null}]}"#;
    assert_eq!(read(ollama).unwrap().calls, [piece(0, "call_1", "f", "{\"a\":1}")]);
    // Groq's usage stands in a field of its own.
    let groq = r#"{"id":"chatcmpl-3","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"req_1","usage":{"queue_time":0.01,"prompt_tokens":18,"completion_tokens":5}}}"#;
    assert_eq!(read(groq).unwrap().usage, Some(Usage { input: 18, output: 5, ..Usage::default() }));
    // Moonshot's stands in the choice.
    let moonshot = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":2,"cached_tokens":1}}]}"#;
    assert_eq!(
        read(moonshot).unwrap().usage,
        Some(Usage { input: 1, output: 2, cached: 1, ..Usage::default() })
    );
}

#[test]
fn what_is_nearly_right_is_read() {
    // No index; arguments as an object; calls without index in one frame; a reason that is empty; a key twice.
    let chunk = r#"{"choices":[{"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"x": 1}}},{"id":"b","function":{"name":"g","arguments":"{}"}}]},"finish_reason":""}]}"#;
    let step = read(chunk).unwrap();
    assert_eq!(step.calls, [piece(0, "a", "f", "{\"x\": 1}"), piece(1, "b", "g", "{}")]);
    assert!(step.finish.is_empty());
    assert_eq!(
        read(r#"{"choices":null,"choices":[{"delta":{"content":"x"}}],"id":7}"#).unwrap().text.as_deref(),
        Some("x")
    );
    assert_eq!(
        read(r#"{"choices":[null,{"delta":null},7,{"index":-1,"delta":{"content":5}}]}"#).unwrap().choices,
        4
    );
    assert_eq!(
        read(r#"{"usage":{"prompt_tokens":3.0,"completion_tokens":"x"}}"#).unwrap().usage.unwrap().input,
        3
    );
    assert_eq!(read(r#"{"usage":{}}"#).unwrap().usage, None);
    assert_eq!(read("  ").unwrap(), Step::default(), "an event without data is no event");
}

#[test]
fn half_a_character_does_not_spoil_a_chunk() {
    let first = delta(r#"{"content":"a\ud83d","role":"\\ud83d \ud83d\ude00"}"#);
    assert_eq!(read(&first).unwrap().text.as_deref(), Some("a\u{fffd}"));
    let second = delta(
        r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"\ude00\\ud83d\ud83d\ude00"}}]}"#,
    );
    assert_eq!(read(&second).unwrap().calls, [piece(0, "c", "f", "\u{fffd}\\ud83d😀")]);
    assert!(read(r#"{"id":"\ud83d"} x"#).is_err(), "the rest must be sound");
}

#[test]
fn what_is_no_chunk_says_why() {
    assert_eq!(read(r#"{"id":"chatcmpl-1","cho"#), Err(Malformed::Cut { line: 1, column: 23 }));
    assert_eq!(read("<html>"), Err(Malformed::NotJson { line: 1, column: 1 }));
    assert_eq!(read("{} {}"), Err(Malformed::NotJson { line: 1, column: 4 }));
    assert_eq!(read("[]"), Err(Malformed::NotAnObject));
    assert_eq!(read("\"ping\""), Err(Malformed::NotAnObject));
}
