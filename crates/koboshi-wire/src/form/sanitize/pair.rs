//! Calls and their results: each call gets exactly one, directly behind its answer.
//!
//! A result belongs to a call of the answer before it with the same id; several calls with one id are served in their order. What finds none
//! there may belong to an earlier call that still waits: then it stood in the wrong place. Places are noted first and parts are moved
//! afterwards, so the work is linear.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};

use super::arguments::{ArgumentRepair, mend};
use super::{Mends, PlacedTurn};
use crate::form::{Call, Outcome, Part, Role, Turn};

/// The text in place of a result that the client did not send.
const MISSING: &str = "[koboshi] no result was recorded";

/// Where a part stands: turn and place in it.
type PartPlace = (usize, usize);

/// The conversation with its calls paired.
pub(super) fn pair<'a>(spots: Vec<PlacedTurn<'a>>, mends: &mut Mends) -> Vec<PlacedTurn<'a>> {
    let spots = joined(set_apart(spots, mends), mends);
    let pairs = Pairs::of(&spots);
    rebuilt(spots, &pairs, mends)
}

/// Results that stand in a turn of another role get a turn of their own behind it.
fn set_apart<'a>(spots: Vec<PlacedTurn<'a>>, mends: &mut Mends) -> Vec<PlacedTurn<'a>> {
    let mut all = Vec::with_capacity(spots.len());
    for PlacedTurn { from, mut turn } in spots {
        let mut results = Vec::new();
        if turn.role != Role::User && turn.has_results() {
            mends.note("move_result", from);
            let parts = std::mem::take(&mut turn.parts);
            (results, turn.parts) = parts.into_iter().partition(|part| matches!(part, Part::Outcome(_)));
        }
        if !turn.parts.is_empty() {
            all.push(PlacedTurn { from, turn });
        }
        if !results.is_empty() {
            all.push(PlacedTurn { from, turn: Turn { role: Role::User, parts: results } });
        }
    }
    all
}

/// Answers in a row become one if another than the last calls tools: results can only stand behind the last.
fn joined<'a>(spots: Vec<PlacedTurn<'a>>, mends: &mut Mends) -> Vec<PlacedTurn<'a>> {
    let mut all: Vec<PlacedTurn<'a>> = Vec::with_capacity(spots.len());
    for spot in spots {
        let before = all.last_mut().filter(|before| {
            let answers = before.turn.role == Role::Assistant && spot.turn.role == Role::Assistant;
            answers && calls(&before.turn).next().is_some()
        });
        match before {
            Some(before) => {
                mends.note("join_answers", spot.from);
                before.turn.parts.extend(spot.turn.parts);
            }
            None => all.push(spot),
        }
    }
    all
}

fn calls<'s, 'a>(turn: &'s Turn<'a>) -> impl Iterator<Item = &'s Call<'a>> {
    turn.parts.iter().filter_map(|part| match part {
        Part::Call(call) => Some(call),
        _ => None,
    })
}

/// Which result belongs to which call.
#[derive(Debug, Default)]
struct Pairs {
    /// For each turn the results of its calls, in the order of the calls.
    of_turn: Vec<Vec<Option<PartPlace>>>,
    /// Results without a call that repeat another one.
    repeated: HashSet<PartPlace>,
}

/// A call that waits: its turn, and its number there.
type WaitingCall = (usize, usize);

impl Pairs {
    fn of(spots: &[PlacedTurn<'_>]) -> Self {
        let mut pairs = Self::default();
        let mut open: HashMap<&str, VecDeque<WaitingCall>> = HashMap::new();
        let mut waiting: HashMap<&str, VecDeque<WaitingCall>> = HashMap::new();
        let mut answered: HashMap<&str, PartPlace> = HashMap::new();
        let mut orphans = Vec::new();
        for (index, PlacedTurn { turn, .. }) in spots.iter().enumerate() {
            if turn.role == Role::Assistant {
                for (id, calls) in open.drain() {
                    waiting.entry(id).or_default().extend(calls);
                }
                answered.clear();
            }
            let made = calls(turn).enumerate();
            made.for_each(|(number, call)| {
                open.entry(&call.id).or_default().push_back((index, number));
            });
            pairs.of_turn.push(vec![None; calls(turn).count()]);
            for (place, outcome) in outcomes(turn) {
                let id = outcome.id.as_ref();
                match open.get_mut(id).and_then(VecDeque::pop_front) {
                    Some(call) => {
                        pairs.set(call, (index, place));
                        answered.insert(id, (index, place));
                    }
                    None => {
                        let same = answered.get(id).and_then(|place| outcome_at(spots, *place));
                        if same.is_some_and(|same| same.parts == outcome.parts) {
                            pairs.repeated.insert((index, place));
                        }
                        orphans.push((id, (index, place)));
                    }
                }
            }
        }
        for (id, place) in orphans {
            let Some(queue) = waiting.get_mut(id).filter(|_| !pairs.repeated.contains(&place)) else {
                continue;
            };
            // Only of an answer before it.
            if queue.front().is_some_and(|(turn, _)| *turn < place.0)
                && let Some(call) = queue.pop_front()
            {
                pairs.set(call, place);
            }
        }
        pairs
    }

    fn set(&mut self, (turn, number): WaitingCall, place: PartPlace) {
        if let Some(result) = self.of_turn.get_mut(turn).and_then(|calls| calls.get_mut(number)) {
            *result = Some(place);
        }
    }
}

fn outcomes<'s, 'a>(turn: &'s Turn<'a>) -> impl Iterator<Item = (usize, &'s Outcome<'a>)> {
    turn.parts.iter().enumerate().filter_map(|(place, part)| match part {
        Part::Outcome(outcome) => Some((place, outcome)),
        _ => None,
    })
}

fn outcome_at<'s, 'a>(spots: &'s [PlacedTurn<'a>], (turn, place): PartPlace) -> Option<&'s Outcome<'a>> {
    match spots.get(turn)?.turn.parts.get(place)? {
        Part::Outcome(outcome) => Some(outcome),
        _ => None,
    }
}

/// Puts the results where they belong.
fn rebuilt<'a>(spots: Vec<PlacedTurn<'a>>, pairs: &Pairs, mends: &mut Mends) -> Vec<PlacedTurn<'a>> {
    let mut paired: HashMap<PartPlace, Outcome<'a>> = HashMap::new();
    let places: HashSet<PartPlace> = pairs.of_turn.iter().flatten().flatten().copied().collect();
    // Results that belong to a call are taken out; all others stay.
    let mut rest: Vec<PlacedTurn<'a>> = Vec::with_capacity(spots.len());
    for (index, PlacedTurn { from, turn }) in spots.into_iter().enumerate() {
        let mut parts = Vec::with_capacity(turn.parts.len());
        for (place, part) in turn.parts.into_iter().enumerate() {
            match part {
                Part::Outcome(outcome) if places.contains(&(index, place)) => {
                    paired.insert((index, place), outcome);
                }
                Part::Outcome(outcome) => {
                    parts.extend(orphan(outcome, pairs.repeated.contains(&(index, place)), from, mends));
                }
                part => parts.push(part),
            }
        }
        rest.push(PlacedTurn { from, turn: Turn { role: turn.role, parts } });
    }
    let mut ids = Ids::default();
    let mut all: Vec<PlacedTurn<'a>> = Vec::with_capacity(rest.len());
    let mut host: Option<(usize, Vec<Part<'a>>)> = None;
    for (index, PlacedTurn { from, mut turn }) in rest.into_iter().enumerate() {
        let results = host.take();
        let of_calls = pairs.of_turn.get(index).map(Vec::as_slice).unwrap_or_default();
        if let Some((_, parts)) = results {
            turn.parts.splice(..0, parts);
        }
        if !of_calls.is_empty() {
            let parts = settle(&mut turn, index, from, of_calls, &mut paired, &mut ids, mends);
            all.push(PlacedTurn { from, turn });
            let follows = of_calls.iter().flatten().any(|(turn, _)| *turn == index + 1);
            if follows {
                host = Some((from, parts));
            } else {
                all.push(PlacedTurn { from, turn: Turn { role: Role::User, parts } });
            }
        } else if !turn.parts.is_empty() {
            all.push(PlacedTurn { from, turn });
        }
    }
    all
}

/// Mends the calls of an answer, and gives their results: first those that were recorded, in the order in which they stood.
fn settle<'a>(
    turn: &mut Turn<'a>,
    index: usize,
    from: usize,
    of_calls: &[Option<PartPlace>],
    paired: &mut HashMap<PartPlace, Outcome<'a>>,
    ids: &mut Ids,
    mends: &mut Mends,
) -> Vec<Part<'a>> {
    let mut results: Vec<(Option<PartPlace>, Outcome<'a>)> = Vec::with_capacity(of_calls.len());
    let made = turn.parts.iter_mut().filter_map(|part| match part {
        Part::Call(call) => Some(call),
        _ => None,
    });
    for (call, place) in made.zip(of_calls) {
        if ids.settle(call) {
            mends.note("rename_call", from);
        }
        let found = place.and_then(|place| paired.remove(&place));
        let mended = mend(call);
        let mut outcome = found.unwrap_or_else(|| Outcome {
            parts: vec![Part::Text(Cow::Borrowed(MISSING))],
            ..Outcome::default()
        });
        outcome.id.clone_from(&call.id);
        outcome.name = Some(call.name.clone());
        outcome.free_text = call.free_text;
        match mended {
            ArgumentRepair::Sound => {}
            ArgumentRepair::Read => mends.note("mend_arguments", from),
            ArgumentRepair::Emptied(note) => {
                mends.note("empty_arguments", from);
                outcome.parts.insert(0, Part::Text(Cow::Owned(note)));
            }
        }
        results.push((*place, outcome));
    }
    if results.iter().any(|(place, _)| place.is_none()) {
        mends.note("add_missing_result", from);
    }
    results.sort_by_key(|(place, _)| place.unwrap_or((usize::MAX, 0)));
    let stands = |(number, (place, _)): (usize, &(Option<PartPlace>, Outcome<'a>))| {
        place.is_none_or(|place| place == (index + 1, number))
    };
    if !results.iter().enumerate().all(stands) {
        mends.note("move_result", from);
    }
    results.into_iter().map(|(_, outcome)| Part::Outcome(outcome)).collect()
}

/// What becomes of a result without a call.
fn orphan<'a>(outcome: Outcome<'a>, is_repeated: bool, from: usize, mends: &mut Mends) -> Vec<Part<'a>> {
    if is_repeated || outcome.parts.is_empty() {
        mends.note("drop_orphan", from);
        return Vec::new();
    }
    mends.note("orphan_to_text", from);
    let tool = outcome.name.map(|name| format!(" ({name})")).unwrap_or_default();
    let note =
        format!("[koboshi] What follows came from a tool{tool} whose call is not in this conversation.");
    let mut parts = vec![Part::Text(Cow::Owned(note))];
    parts.extend(outcome.parts);
    parts
}

/// The ids of all calls that were read.
#[derive(Debug, Default)]
struct Ids {
    used: HashSet<String>,
    /// The next number for an id that comes again.
    next: HashMap<String, usize>,
}

impl Ids {
    /// Gives a call an id of its own if it has none. Whether it was changed.
    fn settle(&mut self, call: &mut Call<'_>) -> bool {
        let is_new = !call.id.is_empty() && self.used.insert(call.id.as_ref().to_owned());
        if is_new {
            return false;
        }
        let base = if call.id.is_empty() { "call" } else { call.id.as_ref() };
        let next = self.next.entry(base.to_owned()).or_insert(2);
        let id = loop {
            let id = format!("{base}_{next}");
            *next += 1;
            if self.used.insert(id.clone()) {
                break id;
            }
        };
        call.id = Cow::Owned(id);
        true
    }
}
