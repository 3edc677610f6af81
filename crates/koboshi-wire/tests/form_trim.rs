//! A conversation that is too long becomes shorter, and what matters stays.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::forms;
use koboshi_wire::form::sanitize::{Target, sanitize};
use koboshi_wire::form::trim::trim;
use koboshi_wire::form::{Call, Form, Image, Outcome, Part, Role, Turn};
use proptest::prelude::*;

fn turn<'a>(role: Role, parts: Vec<Part<'a>>) -> Turn<'a> {
    Turn { role, parts }
}

fn user(text: &str) -> Turn<'_> {
    turn(Role::User, vec![Part::Text(text.into())])
}

fn exchange(id: &str, bytes: usize) -> [Turn<'static>; 2] {
    let call =
        Call { id: id.to_owned().into(), name: "read".into(), arguments: "{}".into(), ..Call::default() };
    let text = format!("begin{}end", "x".repeat(bytes.saturating_sub(8)));
    let outcome =
        Outcome { id: id.to_owned().into(), parts: vec![Part::Text(text.into())], ..Outcome::default() };
    [turn(Role::Assistant, vec![Part::Call(call)]), turn(Role::User, vec![Part::Outcome(outcome)])]
}

fn tokens(form: &Form<'_>) -> u64 {
    form.needs().input_tokens
}

/// The length of each result.
fn results(form: &Form<'_>) -> Vec<usize> {
    let parts = form.turns.iter().flat_map(|turn| &turn.parts);
    parts
        .filter_map(|part| match part {
            Part::Outcome(outcome) => Some(outcome.text().unwrap().len()),
            _ => None,
        })
        .collect()
}

#[test]
fn the_longest_result_loses_its_middle_first() {
    let mut turns = vec![user("task")];
    turns.extend([exchange("1", 8_000), exchange("2", 80_000), exchange("3", 9_000)].concat());
    let form = Form { turns, ..Form::default() };
    let all = tokens(&form);
    let trimmed = trim(&form, all - 10_000, all, &[]).unwrap();
    assert!(trimmed.fits && trimmed.after <= all - 10_000 && trimmed.before == all);
    assert_eq!((trimmed.cut_results, trimmed.dropped_turns), (1, 0));
    let left = results(&trimmed.form);
    assert_eq!((left[0], left[2]), (8_000, 9_000));
    let Part::Outcome(outcome) = &trimmed.form.turns[4].parts[0] else { panic!() };
    let text = outcome.text().unwrap();
    assert!(
        text.starts_with("begin") && text.ends_with("end") && text.contains("of 80000 bytes were cut here")
    );
    assert!((39_000..41_000).contains(&text.len()), "no more than must be: {}", text.len());
}

#[test]
fn then_the_oldest_exchanges_go_whole() {
    let mut turns = vec![user("the task")];
    for number in 0..50 {
        turns.extend(exchange(&number.to_string(), 1_900));
    }
    turns.push(turn(Role::Assistant, vec![Part::Text("done?".into())]));
    turns.push(user("go on"));
    turns.extend(exchange("last", 1_900));
    let form = Form { turns, system: vec!["rules".into()], ..Form::default() };
    let trimmed = trim(&form, tokens(&form) / 2, tokens(&form), &[]).unwrap();
    assert!(trimmed.fits && trimmed.cut_results == 0 && trimmed.dropped_turns >= 50);
    let turns = &trimmed.form.turns;
    assert_eq!((turns[0].clone(), trimmed.form.system.len()), (user("the task"), 1));
    assert!(
        matches!(&turns[1].parts[0], Part::Text(note) if note.contains("earlier messages") && note.contains(&trimmed.dropped_turns.to_string()))
    );
    assert_eq!(turns[turns.len() - 3], user("go on"));
    assert_eq!(turns[turns.len() - 2..], exchange("last", 1_900));
    assert_eq!(turns[turns.len() - 6..turns.len() - 4], exchange("49", 1_900), "the newest stay");
}

#[test]
fn old_pictures_of_results_go_before_turns() {
    let picture = |id: &'static str| {
        let mut both = exchange(id, 20);
        let Part::Outcome(outcome) = &mut both[1].parts[0] else { panic!() };
        outcome.parts.push(Part::Image(Image::Url("https://example.com/a".into())));
        both
    };
    let form = Form {
        turns: [vec![user("look")], picture("1").to_vec(), picture("2").to_vec(), picture("3").to_vec()]
            .concat(),
        ..Form::default()
    };
    let trimmed = trim(&form, 2_100, tokens(&form), &[]).unwrap();
    assert_eq!((trimmed.dropped_images, trimmed.dropped_turns, trimmed.fits), (1, 0, true));
    assert_eq!(
        trim(&form, 1_200, tokens(&form), &[]).unwrap().dropped_images,
        2,
        "the last is what is looked at"
    );
}

#[test]
fn what_is_pinned_stays() {
    let mut turns = vec![user("task")];
    turns.extend(
        [exchange("1", 1_000), exchange("keep", 5_000), exchange("3", 1_000), exchange("4", 1_000)].concat(),
    );
    turns.push(turn(Role::User, vec![Part::Text("also KEEP ME".into())]));
    turns.extend(exchange("5", 1_000));
    turns.push(user("last"));
    let Some(Part::Outcome(kept)) = turns.get_mut(4).and_then(|turn| turn.parts.first_mut()) else {
        panic!()
    };
    kept.parts = vec![Part::Text(format!("{} KEEP ME {}", "x".repeat(2_500), "x".repeat(2_500)).into())];
    let form = Form { turns, ..Form::default() };
    let pinned = ["KEEP ME".to_owned()];
    let trimmed = trim(&form, 1, tokens(&form), &pinned).unwrap();
    assert!(!trimmed.fits);
    let ids: Vec<_> = trimmed
        .form
        .turns
        .iter()
        .flat_map(|turn| &turn.parts)
        .filter_map(|part| match part {
            Part::Outcome(outcome) => Some(outcome.id.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["keep", "5"]);
    let pins = trimmed.form.turns.iter().filter(|turn| format!("{turn:?}").contains("KEEP ME")).count();
    assert_eq!((pins, trimmed.cut_results), (2, 0), "the words of the user, and a result with its middle");
}

#[test]
fn what_cannot_be_made_shorter_is_said_to_be_so() {
    let long = "x".repeat(100_000);
    let form = Form { turns: vec![user(&long)], ..Form::default() };
    assert!(trim(&form, 10, tokens(&form), &[]).is_none(), "the user's own words are not cut");
    assert!(trim(&form, tokens(&form), tokens(&form), &[]).is_none(), "it fits already");
    assert!(trim(&Form::default(), 0, 0, &[]).is_none() && trim(&Form::default(), 0, 9, &[]).is_none());
}

#[test]
fn the_count_of_the_provider_that_refused_is_what_counts() {
    let form =
        Form { turns: [vec![user("task")], exchange("1", 100_000).to_vec()].concat(), ..Form::default() };
    // About 25,000 by our count; the provider says twice as many.
    let trimmed = trim(&form, 25_000, 50_000, &[]).unwrap();
    assert!(trimmed.fits && (24_000..=25_000).contains(&trimmed.after), "{}", trimmed.after);
    assert!((12_000..=12_600).contains(&tokens(&trimmed.form)));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn smaller_or_nothing_and_pairs_stay_pairs(mut form in forms::anything(), long in prop::collection::vec(0..9_000_usize, 0..6), share in 0..100_u64, count in 1..100_000_u64) {
        for (number, bytes) in long.into_iter().enumerate() {
            form.turns.extend(exchange(&format!("long_{number}"), bytes));
        }
        let target = Target { prefill: true, ..Target::default() };
        sanitize(&mut form, target);
        let first = form.last_user_text().map(String::from);
        let Some(trimmed) = trim(&form, count * share / 100, count, &[]) else { return Ok(()) };
        prop_assert!(tokens(&trimmed.form) <= tokens(&form));
        prop_assert!(trimmed.after <= trimmed.before);
        prop_assert!(!trimmed.fits || trimmed.after <= count * share / 100);
        prop_assert_eq!(&trimmed.form.system, &form.system);
        // What the user wrote last is there still, and calls and results need no mending.
        let texts: Vec<String> = trimmed.form.turns.iter().filter(|turn| turn.role == Role::User).map(|turn| turn.parts.iter().filter_map(|part| match part { Part::Text(text) => Some(text.to_string()), _ => None }).collect::<Vec<_>>().join("\n")).collect();
        if let Some(first) = first {
            prop_assert!(texts.contains(&first), "{first}");
        }
        let mut again = trimmed.form.clone();
        let mends = sanitize(&mut again, target);
        prop_assert!(mends.is_empty(), "{:?}", mends);
    }
}
