//! Forms for property tests: sound ones, and any.

#![allow(dead_code, clippy::unwrap_used, reason = "shared by several tests")]

use std::borrow::Cow;

use koboshi_wire::Dialect;
use koboshi_wire::form::{
    Call, Choice, Form, Image, Media, Outcome, Output, Part, Role, Sampling, Signature, Thinking, Thought,
    Tool, ToolInput, Turn,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::value::RawValue;

type Text = Cow<'static, str>;

fn schema(text: &str) -> Cow<'static, RawValue> {
    Cow::Owned(RawValue::from_string(text.to_owned()).unwrap())
}

fn text() -> impl Strategy<Value = Text> {
    prop_oneof!["[a-z \\n\"\\\\{}é日😀]{1,12}", Just("\u{1}\u{7f}x".to_owned())]
        .prop_filter("says something", |text| !text.trim().is_empty())
        .prop_map(Cow::Owned)
}

fn encoded() -> impl Strategy<Value = Text> {
    "[A-Za-z0-9+/]{4,12}".prop_map(Cow::Owned)
}

fn image() -> impl Strategy<Value = Part<'static>> {
    let data = encoded().prop_map(|data| Image::Data { media_type: "image/png".into(), data });
    let url = "https://example.com/[a-z]{1,5}".prop_map(|url| Image::Url(url.into()));
    prop_oneof![data, url].prop_map(Part::Image)
}

fn media() -> impl Strategy<Value = Part<'static>> {
    let sound = encoded().prop_map(|data| Media { media_type: "audio/wav".into(), data, name: None });
    let file = encoded().prop_map(|data| Media {
        media_type: "application/pdf".into(),
        data,
        name: Some("a.pdf".into()),
    });
    prop_oneof![sound, file].prop_map(Part::Media)
}

fn user() -> impl Strategy<Value = Turn<'static>> {
    let rich = (text(), vec(prop_oneof![image(), media(), text().prop_map(Part::Text)], 0..3));
    rich.prop_map(|(text, more)| {
        let mut parts = vec![Part::Text(text)];
        parts.extend(more);
        Turn { role: Role::User, parts }
    })
}

fn answer() -> impl Strategy<Value = Turn<'static>> {
    (text(), option::of(text())).prop_map(|(text, refusal)| {
        let mut parts = vec![Part::Text(text)];
        parts.extend(refusal.map(Part::Refusal));
        Turn { role: Role::Assistant, parts }
    })
}

/// An answer that calls, and what came back.
fn exchange(number: usize) -> impl Strategy<Value = Vec<Turn<'static>>> {
    let one = (text(), any::<bool>(), prop::bool::ANY);
    (option::of(text()), vec(one, 1..4)).prop_map(move |(said, calls)| {
        let mut asked: Vec<Part<'static>> = said.map(Part::Text).into_iter().collect();
        let mut back = Vec::new();
        for (at, (text, free_text, says)) in calls.into_iter().enumerate() {
            let id: Text = format!("call_{number}_{at}").into();
            let name: Text = if free_text { "free" } else { "tool" }.into();
            let arguments = if free_text { text.clone() } else { r#"{"a":[1,2]}"#.into() };
            asked.push(Part::Call(Call {
                id: id.clone(),
                name: name.clone(),
                arguments,
                free_text,
                signature: None,
            }));
            let parts = vec![Part::Text(if says { text } else { "".into() })];
            back.push(Part::Outcome(Outcome { id, name: Some(name), parts, failed: None, free_text }));
        }
        vec![Turn { role: Role::Assistant, parts: asked }, Turn { role: Role::User, parts: back }]
    })
}

fn turns() -> impl Strategy<Value = Vec<Turn<'static>>> {
    let system = || text().prop_map(|text| Turn { role: Role::System, parts: vec![Part::Text(text)] });
    let one = |number| {
        prop_oneof![
            user().prop_map(|turn| vec![turn]),
            answer().prop_map(|turn| vec![turn]),
            exchange(number),
            system().prop_map(|turn| vec![turn]),
        ]
    };
    let rest: Vec<_> = (0..6).map(one).collect();
    (user(), rest, 0..7_usize).prop_map(|(first, rest, count)| {
        let mut turns = vec![first];
        turns.extend(rest.into_iter().take(count).flatten());
        turns
    })
}

fn tools() -> impl Strategy<Value = Vec<Tool<'static>>> {
    let input = prop_oneof![
        Just(ToolInput::Schema(None)),
        Just(ToolInput::Schema(Some(schema(r#"{"type": "object",  "properties":{"z":{},"a":{}}}"#)))),
        Just(ToolInput::FreeText),
    ];
    vec((option::of(text()), input, option::of(any::<bool>())), 0..4).prop_map(|all| {
        let each = all.into_iter().enumerate().map(|(index, (description, input, strict))| {
            let strict = strict.filter(|_| matches!(input, ToolInput::Schema(_)));
            Tool { name: format!("tool_{index}").into(), description, input, strict }
        });
        each.collect()
    })
}

fn output() -> impl Strategy<Value = Output<'static>> {
    let by_schema = option::of(any::<bool>()).prop_map(|strict| Output::Schema {
        name: Some("list".into()),
        schema: schema(r#"{"type":"object","required":[ "z", "a" ]}"#),
        strict,
    });
    prop_oneof![Just(Output::Text), Just(Output::Json), by_schema]
}

fn sampling() -> impl Strategy<Value = Sampling<'static>> {
    let tenths = |max: u32| option::of((0..=max).prop_map(|tenths| f64::from(tenths) / 8.0));
    (tenths(16), tenths(8), tenths(16), option::of(any::<i64>()), vec(text(), 0..4)).prop_map(
        |(temperature, top_p, penalty, seed, stop)| Sampling {
            temperature,
            top_p,
            frequency_penalty: penalty,
            presence_penalty: penalty.map(|number| -number),
            seed,
            stop,
            ..Sampling::default()
        },
    )
}

/// A form that a chat body of OpenAI carries whole.
pub(crate) fn carried_by_chat() -> impl Strategy<Value = Form<'static>> {
    let limits = (option::of(1..9999_u64), option::of(text()), option::of(any::<bool>()), any::<bool>());
    (option::of(text()), turns(), tools(), 0..5_usize, output(), sampling(), limits).prop_map(
        |(system, mut turns, tools, choice, output, sampling, (max_output, user, parallel, stream))| {
            if matches!(output, Output::Json) {
                // It must be named somewhere.
                let asked = vec![Part::Text("As JSON.".into())];
                turns.extend([
                    Turn { role: Role::Assistant, parts: vec![Part::Text("How?".into())] },
                    Turn { role: Role::User, parts: asked },
                ]);
            }
            let choice = match choice {
                _ if tools.is_empty() => Choice::Unspecified,
                0 => Choice::Unspecified,
                1 => Choice::Auto,
                2 => Choice::Never,
                3 => Choice::Any,
                _ => Choice::Tool(tools.first().unwrap().name.clone()),
            };
            Form {
                model: "gpt-4o".into(),
                stream,
                system: system.into_iter().collect(),
                parallel: parallel.filter(|_| !tools.is_empty()),
                turns,
                tools,
                choice,
                output,
                sampling,
                max_output,
                thinking: Thinking::Unspecified,
                user,
                left: Vec::new(),
            }
        },
    )
}

fn any_part() -> impl Strategy<Value = Part<'static>> {
    let id = || prop::sample::select(vec!["", "a", "b", "c", "call_0"]).prop_map(Cow::Borrowed);
    let words = || prop_oneof![text(), Just(Cow::Borrowed("")), Just(Cow::Borrowed("  "))];
    let signature = || {
        let of = prop::sample::select(Dialect::ALL.to_vec());
        option::of((of, encoded()).prop_map(|(of, data)| Signature { of, id: None, data }))
    };
    let arguments = prop::sample::select(vec![
        "{}", "{\"a\":1}", "{\"a\":", "{a: 1}", "[1]", "nonsense", "", "{\"a\":1}{\"a\":2}",
        "{\"a\":\"x\ny\"}",
    ]);
    let call =
        (id(), arguments, any::<bool>(), signature()).prop_map(|(id, arguments, free_text, signature)| {
            Part::Call(Call { id, name: "tool".into(), arguments: arguments.into(), free_text, signature })
        });
    let inside = prop_oneof![words().prop_map(Part::Text), image(), noted().prop_map(Part::Text)];
    let outcome = (id(), vec(inside, 0..3), option::of(any::<bool>())).prop_map(|(id, parts, failed)| {
        Part::Outcome(Outcome { id, name: None, parts, failed, free_text: false })
    });
    let thought = (words(), signature(), any::<bool>())
        .prop_map(|(text, signature, hidden)| Part::Thought(Thought { text, signature, hidden }));
    prop_oneof![
        3 => words().prop_map(Part::Text),
        1 => image(),
        1 => media(),
        4 => call,
        4 => outcome,
        2 => thought,
        1 => words().prop_map(Part::Refusal),
        1 => noted().prop_map(Part::Text),
    ]
}

/// A text with a note of ours in it.
fn noted() -> impl Strategy<Value = Text> {
    (option::of(text()), text()).prop_map(|(before, note)| {
        let before = before.map(|before| format!("{before}\n\n")).unwrap_or_default();
        Cow::Owned(format!("{before}[koboshi guard] {note}"))
    })
}

fn any_turn() -> impl Strategy<Value = Turn<'static>> {
    let role =
        prop::sample::select(vec![Role::User, Role::User, Role::Assistant, Role::Assistant, Role::System]);
    (role, vec(any_part(), 0..5)).prop_map(|(role, parts)| Turn { role, parts })
}

/// Any conversation at all, sound or not.
pub(crate) fn anything() -> impl Strategy<Value = Form<'static>> {
    (vec(prop_oneof![text(), Just(Cow::Borrowed(""))], 0..3), vec(any_turn(), 0..8), tools()).prop_map(
        |(system, turns, tools)| Form { model: "gpt-4o".into(), system, turns, tools, ..Form::default() },
    )
}
