//! Poisoned conversations are mended, each mend by name; sound ones stay as they are.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use std::collections::HashSet;

use crate::forms;
use koboshi_wire::Dialect;
use koboshi_wire::form::sanitize::{Target, sanitize};
use koboshi_wire::form::{Call, Form, Outcome, Part, Role, Signature, Thought, Turn};
use proptest::prelude::*;

const CHAT: Target = Target { dialect: Dialect::Chat, prefill: true };

fn turn<'a>(role: Role, parts: Vec<Part<'a>>) -> Turn<'a> {
    Turn { role, parts }
}

fn text<'a>(text: &'a str) -> Part<'a> {
    Part::Text(text.into())
}

fn call<'a>(id: &'a str, arguments: &'a str) -> Part<'a> {
    Part::Call(Call { id: id.into(), name: "f".into(), arguments: arguments.into(), ..Call::default() })
}

fn result<'a>(id: &'a str, said: &'a str) -> Part<'a> {
    Part::Outcome(Outcome {
        id: id.into(),
        name: Some("f".into()),
        parts: vec![text(said)],
        ..Outcome::default()
    })
}

/// The mended turns, and the rules.
fn mended<'a>(turns: Vec<Turn<'a>>, target: Target) -> (Vec<Turn<'a>>, Vec<&'static str>) {
    let mut form = Form { turns, ..Form::default() };
    let mends = sanitize(&mut form, target);
    holds(&form);
    (form.turns, mends.into_iter().map(|mend| mend.rule).collect())
}

/// Every result directly follows the turn with its call, every call has one, and no id comes twice.
fn holds(form: &Form<'_>) {
    let ids = |turn: &Turn<'_>| -> Vec<String> {
        turn.parts
            .iter()
            .filter_map(|part| match part {
                Part::Call(call) => Some(call.id.to_string()),
                _ => None,
            })
            .collect()
    };
    let of_results = |turn: &Turn<'_>| -> Vec<String> {
        turn.parts
            .iter()
            .filter_map(|part| match part {
                Part::Outcome(outcome) => Some(outcome.id.to_string()),
                _ => None,
            })
            .collect()
    };
    let all: Vec<String> = form.turns.iter().flat_map(ids).collect();
    assert_eq!(all.iter().collect::<HashSet<_>>().len(), all.len(), "ids are unique");
    assert!(all.iter().all(|id| !id.is_empty()));
    for (index, turn) in form.turns.iter().enumerate() {
        assert!(!turn.parts.is_empty());
        let made = ids(turn);
        assert!(made.is_empty() || turn.role == Role::Assistant);
        let answered = form.turns.get(index + 1).map(&of_results).unwrap_or_default();
        assert_eq!(
            made.iter().collect::<HashSet<_>>(),
            answered.iter().collect(),
            "one result for each call"
        );
        assert_eq!(made.len(), answered.len());
        let results = of_results(turn);
        if !results.is_empty() {
            assert_eq!(turn.role, Role::User);
            assert!(index > 0 && ids(&form.turns[index - 1]).len() == results.len());
            assert!(
                turn.parts[..results.len()].iter().all(|part| matches!(part, Part::Outcome(_))),
                "results come first"
            );
        }
        for part in &turn.parts {
            if let Part::Call(call) = part {
                let is_object = serde_json::from_str::<serde_json::Value>(&call.arguments)
                    .is_ok_and(|value| value.is_object());
                assert!(call.free_text || is_object, "{}", call.arguments);
            }
            assert!(!matches!(part, Part::Text(text) if text.trim().is_empty()));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_is_mended_once(form in forms::anything(), dialect in prop::sample::select(Dialect::ALL.to_vec()), prefill in any::<bool>()) {
        let target = Target { dialect, prefill };
        let mut once = form;
        sanitize(&mut once, target);
        holds(&once);
        let mut twice = once.clone();
        let again = sanitize(&mut twice, target);
        prop_assert_eq!(format!("{:#?}", twice.turns), format!("{:#?}", once.turns));
        prop_assert!(again.iter().all(|mend| mend.rule == "prefill_refused"), "{:?}", again);
    }

    #[test]
    fn a_sound_conversation_stays_as_it_is(form in forms::carried_by_chat()) {
        let mut mended = form.clone();
        let mends = sanitize(&mut mended, CHAT);
        prop_assert!(mends.is_empty(), "{:?}", mends);
        // Empty texts of results are no news.
        prop_assert_eq!(mended.turns.len(), form.turns.len());
        prop_assert_eq!(mended.turn(), form.turn());
        prop_assert_eq!(mended.calls(), form.calls());
    }

    /// The beginning does not change with what follows: prompt caches look at it.
    #[test]
    fn what_is_mended_stays_mended_the_same_way(form in forms::anything(), more in forms::anything()) {
        let mut long = form;
        // A user's word ends what may still be waited for, and what stood last.
        long.turns.push(turn(Role::User, vec![text("go on")]));
        let mut longer = long.clone();
        longer.turns.extend(more.turns.into_iter().filter(|turn| !turn.parts.iter().any(|part| matches!(part, Part::Outcome(_)))));
        sanitize(&mut long, CHAT);
        sanitize(&mut longer, CHAT);
        let same = long.turns.len() - 1;
        prop_assert_eq!(format!("{:#?}", &long.turns[..same]), format!("{:#?}", &longer.turns[..same]));
    }
}

#[test]
fn cut_arguments_are_emptied_and_the_result_says_so() {
    let (turns, rules) = mended(
        vec![
            turn(Role::Assistant, vec![call("1", "{\"path\": \"/tmp/a"), call("2", "{'a': True}")]),
            turn(Role::User, vec![result("1", "error: bad JSON"), result("2", "ok")]),
        ],
        CHAT,
    );
    assert_eq!(rules, ["empty_arguments", "mend_arguments"]);
    let Part::Call(first) = &turns[0].parts[0] else { panic!() };
    let Part::Call(second) = &turns[0].parts[1] else { panic!() };
    assert_eq!((&*first.arguments, &*second.arguments), ("{}", "{\"a\":true}"));
    let Part::Outcome(outcome) = &turns[1].parts[0] else { panic!() };
    let said = outcome.text().unwrap();
    assert!(
        said.contains("could not be read") && said.contains("/tmp/a") && said.ends_with("error: bad JSON"),
        "{said}"
    );
}

#[test]
fn results_without_calls_become_texts_or_go() {
    let empty = Part::Outcome(Outcome { id: "y".into(), ..Outcome::default() });
    let (turns, rules) = mended(
        vec![turn(Role::User, vec![result("x", "42"), empty]), turn(Role::User, vec![text("so?")])],
        CHAT,
    );
    assert_eq!(rules, ["orphan_to_text", "drop_orphan"]);
    assert!(
        matches!(&turns[0].parts[..], [Part::Text(note), Part::Text(said)] if note.contains("(f)") && said == "42")
    );
    // Said twice is said once.
    let (turns, rules) = mended(
        vec![
            turn(Role::Assistant, vec![call("1", "{}")]),
            turn(Role::User, vec![result("1", "a"), result("1", "a"), result("1", "b")]),
        ],
        CHAT,
    );
    assert_eq!(rules, ["drop_orphan", "orphan_to_text"]);
    assert_eq!(turns[1].parts.len(), 3);
}

#[test]
fn a_call_without_a_result_gets_one_wherever_it_stands() {
    let (turns, rules) = mended(
        vec![
            turn(Role::Assistant, vec![call("1", "{}"), call("2", "{}")]),
            turn(Role::User, vec![result("2", "two")]),
            turn(Role::User, vec![text("stop")]),
            turn(Role::Assistant, vec![call("3", "{}")]),
        ],
        CHAT,
    );
    assert_eq!(rules, ["add_missing_result", "add_missing_result"]);
    let Part::Outcome(added) = &turns[1].parts[1] else { panic!() };
    assert!(added.id == "1" && added.text().unwrap().contains("no result was recorded"));
    assert_eq!(turns.len(), 5);
}

#[test]
fn results_in_the_wrong_place_are_moved_behind_their_calls() {
    let (turns, rules) = mended(
        vec![
            turn(Role::Assistant, vec![call("1", "{}")]),
            turn(Role::Assistant, vec![call("2", "{}"), text("both")]),
            turn(Role::User, vec![text("wait"), result("2", "two")]),
            turn(Role::Assistant, vec![text("hm")]),
            turn(Role::User, vec![result("1", "one"), text("there")]),
        ],
        CHAT,
    );
    assert_eq!(rules, ["join_answers", "move_result"]);
    assert_eq!(turns.len(), 4);
    assert_eq!(turns[1].parts, vec![result("2", "two"), result("1", "one"), text("wait")]);
    assert_eq!(turns[3].parts, vec![text("there")]);
}

#[test]
fn equal_ids_become_different_in_call_and_result() {
    let exchange = |said: &'static str| {
        [turn(Role::Assistant, vec![call("call_0", "{}")]), turn(Role::User, vec![result("call_0", said)])]
    };
    let (turns, rules) = mended([exchange("a"), exchange("b"), exchange("c")].concat(), CHAT);
    assert_eq!(rules, ["rename_call", "rename_call"]);
    assert_eq!(turns[3].parts, vec![result("call_0_2", "b")]);
    assert_eq!(turns[5].parts, vec![result("call_0_3", "c")]);
}

#[test]
fn seals_stay_with_their_vendor() {
    let thought = |of, hidden| {
        Part::Thought(Thought {
            text: if hidden { "" } else { "hm" }.into(),
            signature: Some(Signature { of, id: None, data: "s".into() }),
            hidden,
        })
    };
    let turns = || {
        vec![turn(
            Role::Assistant,
            vec![thought(Dialect::Messages, false), thought(Dialect::Messages, true), text("x")],
        )]
    };
    let own = Target { dialect: Dialect::Messages, prefill: true };
    assert_eq!(mended(turns(), own), (turns(), vec![]));
    let (left, rules) = mended(turns(), Target { dialect: Dialect::Gemini, prefill: true });
    assert_eq!(rules, ["drop_foreign_seal"]);
    assert_eq!(
        left[0].parts,
        vec![Part::Thought(Thought { text: "hm".into(), ..Thought::default() }), text("x")]
    );
}

#[test]
fn our_own_notes_go_but_the_newest() {
    let noted = "out\n\n[koboshi guard] The same error again.";
    let turns = vec![
        turn(Role::Assistant, vec![call("1", "{}")]),
        turn(Role::User, vec![result("1", noted)]),
        turn(Role::Assistant, vec![text("[koboshi guard] The same error again.\n\nI see."), call("2", "{}")]),
        turn(Role::User, vec![result("2", noted)]),
    ];
    let (left, rules) = mended(turns, CHAT);
    assert_eq!(rules, ["drop_own_note", "drop_own_note"]);
    assert_eq!(left[1].parts, vec![result("1", "out")]);
    assert_eq!(left[2].parts[0], text("I see."));
    assert_eq!(left[3].parts, vec![result("2", noted)]);
    let quoted = vec![turn(Role::User, vec![text("[koboshi guard] What is this?")])];
    assert_eq!(mended(quoted.clone(), CHAT), (quoted, vec![]));
}

#[test]
fn empty_turns_go_and_a_begun_answer_is_only_reported() {
    let turns = vec![
        turn(Role::User, vec![text("hi")]),
        turn(Role::Assistant, vec![text("")]),
        turn(Role::User, vec![]),
        turn(Role::Assistant, vec![text("So")]),
    ];
    let refuses = Target { dialect: Dialect::Messages, prefill: false };
    let mut form = Form { turns, system: vec!["".into(), "s".into()], ..Form::default() };
    let mends: Vec<_> = sanitize(&mut form, refuses).into_iter().map(|mend| (mend.rule, mend.at)).collect();
    let at = |rule, at: &str| (rule, at.to_owned());
    assert_eq!(
        mends,
        [
            at("drop_empty", "system"),
            at("drop_empty", "turns[1]"),
            at("drop_empty", "turns[2]"),
            at("prefill_refused", "turns[3]")
        ]
    );
    assert_eq!((form.turns.len(), form.system.len()), (2, 1));
}

/// Sizes at which anything quadratic would be felt.
#[test]
fn long_conversations_take_linear_time() {
    let ids: Vec<String> = (0..20_000).map(|number| number.to_string()).collect();
    let calls = ids.iter().map(|_| call("same", "{}")).collect();
    let results = ids.iter().rev().map(|id| result(id, "x")).collect();
    let (turns, _) = mended(vec![turn(Role::Assistant, calls), turn(Role::User, results)], CHAT);
    assert_eq!(turns.len(), 3, "calls, what stands for their results, and texts");
    let notes = "[koboshi guard] x\n\n".repeat(50_000);
    let (turns, _) = mended(vec![turn(Role::Assistant, vec![text(&notes), text("y")])], CHAT);
    assert_eq!(turns[0].parts, vec![text("y")]);
}
