//! Repairs a conversation that providers would refuse, or that was made for another provider.
//!
//! Transcripts are poisoned by what once went wrong: a call that was cut, a result whose call was trimmed away, an empty message, a signature
//! that only another vendor can read. One such turn makes every later request fail. Each repair has a name and a place, so that the journal can
//! say what was changed, and the same conversation is repaired the same way each time: its beginning does not change with what
//! follows, because prompt caches compare it.
//!
//! | rule | what was found | what is done |
//! |---|---|---|
//! | `mend_arguments` | arguments of a call in another notation, with exactly one reading | written as JSON |
//! | `empty_arguments` | arguments that cannot be read: cut, or no object | `{}`, and the call's result begins with a line that says so and quotes their beginning |
//! | `orphan_to_text` | a result without a call | a text of the user's side that says what it is |
//! | `drop_orphan` | the same, without content, or a repetition | left out |
//! | `add_missing_result` | a call without a result | a result that says that none was recorded |
//! | `move_result` | a result that does not stand directly behind the answer with its call | moved there |
//! | `join_answers` | a call in one of several answers in a row | the answers become one |
//! | `rename_call` | a call without an id, or with one that was there before | a new id, in its result too |
//! | `drop_empty` | texts without a letter, turns without parts | left out |
//! | `drop_misplaced` | a part that this role cannot have, such as a call by the user | left out |
//! | `drop_foreign_seal` | a signature of another vendor | left out, with the thought if it was hidden |
//! | `drop_own_note` | a note of Koboshi's guard that came back | left out; what stands in the last results is news, and stays |
//! | `prefill_refused` | the conversation ends with an answer, and the target does not continue one | nothing: only the caller can say what is meant |
//!
//! Afterwards every call has exactly one result, in the turn directly behind its own, before anything else there, and no id comes twice. Repairing
//! twice changes nothing. Free text of tools is never touched.
//!
//! *Not here*: what a dialect cannot express. Its writer knows that.

mod arguments;
mod notes;
mod pair;

use super::{Form, Part, Role, Turn};
use crate::dialect::Dialect;

/// For whom a conversation is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Target {
    /// Its dialect: only signatures of its vendor stay.
    pub dialect: Dialect,
    /// It continues an answer that was begun.
    pub prefill: bool,
}

/// Something that was mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mend {
    /// Name of the rule, stable. The journal shows it.
    pub rule: &'static str,
    /// Where it stood, by the turns of the conversation as it came: `turns[3]`. Never what stood there.
    pub at: String,
}

/// A turn, and where it stood.
#[derive(Debug)]
struct PlacedTurn<'a> {
    from: usize,
    turn: Turn<'a>,
}

#[derive(Debug, Default)]
struct Mends(Vec<Mend>);

impl Mends {
    fn note(&mut self, rule: &'static str, from: usize) {
        let mend = Mend { rule, at: format!("turns[{from}]") };
        // A rule is noted once for each turn.
        if self.0.last() != Some(&mend) {
            self.0.push(mend);
        }
    }
}

/// Repairs the conversation of a form, and returns what was repaired.
///
/// ```
/// use koboshi_wire::form::{Call, Form, Part, Role, Turn, sanitize};
///
/// let call = Call { id: "1".into(), name: "read".into(), arguments: r#"{"path": "a"#.into(), ..Call::default() };
/// let mut form = Form { turns: vec![Turn { role: Role::Assistant, parts: vec![Part::Call(call)] }], ..Form::default() };
/// let mends = sanitize::sanitize(&mut form, sanitize::Target::default());
/// let rules: Vec<_> = mends.iter().map(|mend| mend.rule).collect();
/// assert_eq!(rules, ["empty_arguments", "add_missing_result"]);
/// assert_eq!(form.turns.len(), 2);
/// ```
pub fn sanitize(form: &mut Form<'_>, target: Target) -> Vec<Mend> {
    let mut mends = Mends::default();
    let blocks = form.system.len();
    form.system.retain(|text| !is_blank(text));
    if form.system.len() < blocks {
        mends.0.push(Mend { rule: "drop_empty", at: "system".to_owned() });
    }
    let mut spots = Vec::with_capacity(form.turns.len());
    for (from, mut turn) in std::mem::take(&mut form.turns).into_iter().enumerate() {
        clean(&mut turn, from, target.dialect, &mut mends);
        if turn.parts.is_empty() {
            mends.note("drop_empty", from);
        } else {
            spots.push(PlacedTurn { from, turn });
        }
    }
    let mut spots = pair::pair(spots, &mut mends);
    if let Some((_, before)) = spots.split_last_mut() {
        before.iter_mut().for_each(|spot| notes::drop_from_results(&mut spot.turn, spot.from, &mut mends));
    }
    let last = spots.last().map_or(0, |spot| spot.from);
    form.turns = spots.into_iter().map(|spot| spot.turn).collect();
    if form.is_prefilled() && !target.prefill {
        mends.note("prefill_refused", last);
    }
    mends.0
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// Removes from a turn what is wrong by itself, whatever is around it.
fn clean(turn: &mut Turn<'_>, from: usize, dialect: Dialect, mends: &mut Mends) {
    let role = turn.role;
    turn.parts.retain_mut(|part| {
        let is_foreign = drop_foreign_seal(part, dialect);
        if is_foreign {
            mends.note("drop_foreign_seal", from);
        }
        if let (Part::Text(text), Role::Assistant) = (&mut *part, role)
            && notes::drop_from_text(text)
        {
            mends.note("drop_own_note", from);
        }
        match part {
            Part::Call(_) | Part::Thought(_) | Part::Refusal(_) if role != Role::Assistant => {
                mends.note("drop_misplaced", from);
                return false;
            }
            Part::Outcome(outcome) => {
                let inside = outcome.parts.len();
                // A result may be empty, so empty texts in it are not reported.
                outcome.parts.retain(|part| !matches!(part, Part::Text(text) if is_blank(text)));
                let full = outcome.parts.len();
                outcome.parts.retain(|part| matches!(part, Part::Text(_) | Part::Image(_) | Part::Media(_)));
                if outcome.parts.len() < full.min(inside) {
                    mends.note("drop_misplaced", from);
                }
                return true;
            }
            _ => {}
        }
        let says_nothing = match part {
            Part::Text(text) | Part::Refusal(text) => is_blank(text),
            Part::Thought(thought) => {
                thought.signature.is_none() && (thought.hidden || thought.text.is_empty())
            }
            _ => false,
        };
        if says_nothing && !is_foreign {
            mends.note("drop_empty", from);
        }
        !says_nothing
    });
}

/// Whether there was a signature that the target cannot read.
fn drop_foreign_seal(part: &mut Part<'_>, dialect: Dialect) -> bool {
    let signature = match part {
        Part::Thought(thought) => &mut thought.signature,
        Part::Call(call) => &mut call.signature,
        _ => return false,
    };
    let is_foreign = signature.as_ref().is_some_and(|signature| signature.of != dialect);
    if is_foreign {
        *signature = None;
    }
    is_foreign
}
