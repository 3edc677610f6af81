//! What the gateway asks of a request, from its form alone.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use koboshi_wire::form::{
    Call, Form, Image, JsonNeed, Media, Outcome, Output, Part, Role, Tool, ToolInput, Turn,
};

fn user(text: &str) -> Turn<'_> {
    Turn { role: Role::User, parts: vec![Part::Text(text.into())] }
}

fn turn<'a>(role: Role, parts: Vec<Part<'a>>) -> Turn<'a> {
    Turn { role, parts }
}

fn call<'a>(id: &'a str, name: &'a str, arguments: &'a str) -> Part<'a> {
    Part::Call(Call { id: id.into(), name: name.into(), arguments: arguments.into(), ..Call::default() })
}

fn outcome<'a>(id: &'a str, text: &'a str, failed: Option<bool>) -> Part<'a> {
    Part::Outcome(Outcome {
        id: id.into(),
        parts: vec![Part::Text(text.into())],
        failed,
        ..Outcome::default()
    })
}

fn image<'a>() -> Part<'a> {
    Part::Image(Image::Url("https://example.com/a.png".into()))
}

fn form(turns: Vec<Turn<'_>>) -> Form<'_> {
    Form { model: "m".into(), turns, ..Form::default() }
}

#[test]
fn calls_since_the_user_wrote_are_paired_and_say_whether_they_failed() {
    let form = form(vec![
        user("one"),
        turn(Role::Assistant, vec![call("old", "before", "{}")]),
        turn(Role::User, vec![outcome("old", "x", None)]),
        user("two"),
        turn(Role::Assistant, vec![call("1", "f", "1"), call("2", "g", "2"), call("3", "unanswered", "3")]),
        turn(
            Role::User,
            vec![
                outcome("2", "second", Some(true)),
                outcome("1", "first", Some(false)),
                outcome("no", "x", None),
            ],
        ),
        turn(Role::Assistant, vec![call("1", "again", "{}")]),
        turn(Role::User, vec![outcome("1", "", None)]),
    ]);
    let calls = form.calls();
    let seen: Vec<_> =
        calls.iter().map(|call| (&*call.tool, &*call.output, call.is_error, call.turn, call.batch)).collect();
    assert_eq!(
        seen,
        [("f", "first", Some(false), 2, 4), ("g", "second", Some(true), 2, 4), ("again", "", None, 2, 6)]
    );
    assert_eq!(calls[1].call().is_error, Some(true));
    assert_eq!(form.last_user_text().as_deref(), Some("two"));
}

#[test]
fn answers_in_a_row_are_one_and_equal_ids_go_by_order() {
    let form = form(vec![
        user("go"),
        turn(Role::Assistant, vec![call("a", "f", "1")]),
        turn(Role::Assistant, vec![call("a", "f", "2")]),
        turn(Role::User, vec![outcome("a", "first", None)]),
        turn(Role::User, vec![outcome("a", "second", None), outcome("a", "surplus", None)]),
    ]);
    let calls = form.calls();
    let seen: Vec<_> = calls.iter().map(|call| (&*call.args, &*call.output, call.batch)).collect();
    assert_eq!(seen, [("1", "first", 1), ("2", "second", 1)]);
}

#[test]
fn a_text_beside_a_result_is_the_users_but_a_reminder_and_a_picture_are_not() {
    let with = |extra: Part<'static>| {
        let result = turn(Role::User, vec![outcome("1", "x", None), extra]);
        let form = form(vec![user("look"), turn(Role::Assistant, vec![call("1", "f", "{}")]), result]);
        (form.turn(), form.calls().len())
    };
    assert_eq!(with(Part::Text("stop".into())), (2, 0));
    assert_eq!(with(Part::Text(" <system-reminder>todo</system-reminder>\n".into())), (1, 1));
    assert_eq!(with(Part::Text(" ".into())), (1, 1));
    assert_eq!(with(image()), (1, 1));
    let after = form(vec![
        user("look"),
        turn(Role::Assistant, vec![call("1", "f", "{}")]),
        turn(Role::User, vec![outcome("1", "x", None)]),
        turn(Role::User, vec![image()]),
    ]);
    assert_eq!((after.turn(), after.calls().len()), (1, 1));
    assert_eq!(form(vec![user("one"), turn(Role::User, vec![image()])]).turn(), 2);
    assert_eq!(form(vec![user(" "), turn(Role::System, vec![Part::Text("x".into())])]).turn(), 0);
}

#[test]
fn of_a_long_turn_the_last_calls_are_read_and_the_others_counted() {
    let numbers: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
    let mut turns = vec![user("go")];
    for number in &numbers {
        turns.push(turn(Role::Assistant, vec![call(number, "f", number)]));
        turns.push(turn(Role::User, vec![outcome(number, "out", None)]));
    }
    let form = form(turns);
    let calls = form.calls();
    assert_eq!(calls.len(), 1000);
    assert!(calls[..700].iter().all(|call| call.args.is_empty() && call.turn == 1));
    assert!(calls[700..].iter().zip(&numbers[700..]).all(|(call, number)| call.args == *number));
    assert!(calls.windows(2).all(|two| two[0].batch < two[1].batch));
}

#[test]
fn needs_say_what_a_target_must_be_able_to_do() {
    let plain =
        form(vec![Turn { role: Role::User, parts: vec![Part::Text("x".repeat(400).into())] }]).needs();
    assert_eq!((plain.input_tokens, plain.tools, plain.images, plain.prefill), (100, false, false, false));
    let rich = Form {
        tools: vec![Tool {
            name: "f".into(),
            description: None,
            input: ToolInput::Schema(None),
            strict: None,
        }],
        output: Output::Json,
        max_output: Some(9),
        ..form(vec![
            turn(Role::Assistant, vec![call("1", "f", "{}")]),
            turn(
                Role::User,
                vec![Part::Outcome(Outcome { id: "1".into(), parts: vec![image()], ..Outcome::default() })],
            ),
            turn(Role::Assistant, vec![Part::Text("So".into())]),
        ])
    };
    let needs = rich.needs();
    assert!(needs.tools && needs.images && needs.prefill);
    assert_eq!((needs.json, needs.output), (JsonNeed::Object, Some(9)));
    assert!((1000..1100).contains(&needs.input_tokens));
    let sound = Media { media_type: "audio/wav".into(), data: "A".repeat(99_999).into(), name: None };
    let sound = form(vec![turn(Role::User, vec![Part::Media(sound)])]).needs();
    assert!(!sound.images && sound.input_tokens < 1100);
    assert!(!form(vec![turn(Role::Assistant, vec![call("1", "f", "{}")])]).needs().prefill);
}
