//! Makes a conversation shorter that is longer than any window there is.
//!
//! What costs least goes first: long results of tools lose their middle first, the longest before all others; then older images that
//! tools sent go; then the oldest exchanges. A call and its result go together or stay together. System texts, the first task,
//! what the user wrote last, the last exchange and turns that hold a pinned text are kept. What is left out is said where it stood, so that the
//! model does not take the rest for the whole.
//!
//! Own weights are rough, so the size is given in the count of the provider that refused: [`trim`] gets how many tokens the conversation has by that
//! count, and scales. The outcome is smaller in any case, or there is none.
//!
//! *Not here*: how often that may be tried, and whether it may at all.

use std::borrow::Cow;
use std::ops::Range;

use super::{Form, Part, Role, Turn};

/// A text of a result is cut only if it is longer.
const MIN_CUT_LENGTH: usize = 2_000;
/// At least this much of it stays: two thirds from its beginning, the rest from its end.
const MIN_KEPT: usize = 1_500;
/// The length that our own notes may have.
const NOTE_LENGTH: usize = 160;
/// In place of an image.
const NO_PICTURE: &str = "[koboshi] an image stood here; it was left out to fit the model's window";

/// A shorter conversation.
#[derive(Debug, Clone)]
pub struct TrimmedRequest<'a> {
    /// The request with it.
    pub form: Form<'a>,
    /// Tokens before, as they were handed in.
    pub before: u64,
    /// Tokens now, by the same count, about.
    pub after: u64,
    /// Whether that is as few as was asked for.
    pub fits: bool,
    /// Results that lost their middle.
    pub cut_results: usize,
    /// Images and files of results that were left out.
    pub dropped_images: usize,
    /// Turns that were left out.
    pub dropped_turns: usize,
}

/// Trims a form to about this many tokens. `estimate` is how many it has now: by the provider's count where that is known, else
/// [`Needs::input_tokens`](super::Needs). None if nothing can be left out. A turn that holds one of the texts that are `pinned` is not left out,
/// and a result that does is not cut.
///
/// ```
/// use koboshi_wire::form::{Call, Form, Outcome, Part, Role, Turn, trim::trim};
///
/// let turn = |role, part| Turn { role, parts: vec![part] };
/// let call = Call { id: "1".into(), name: "read".into(), arguments: "{}".into(), ..Call::default() };
/// let file = Outcome { id: "1".into(), parts: vec![Part::Text("x".repeat(50_000).into())], ..Outcome::default() };
/// let turns = vec![turn(Role::User, Part::Text("Read it.".into())), turn(Role::Assistant, Part::Call(call)), turn(Role::User, Part::Outcome(file))];
/// let form = Form { turns, ..Form::default() };
/// let trimmed = trim(&form, 2_000, 12_500, &[]).unwrap();
/// assert!(trimmed.fits && trimmed.after <= 2_000 && trimmed.cut_results == 1);
/// assert!(trim(&trimmed.form, 100, 2_000, &[]).is_some_and(|again| !again.fits), "the last exchange stays");
/// ```
#[must_use]
pub fn trim<'a>(
    form: &Form<'a>,
    to_tokens: u64,
    estimate: u64,
    pinned: &[String],
) -> Option<TrimmedRequest<'a>> {
    if to_tokens >= estimate {
        return None;
    }
    let heavy = form.weight();
    let mut work = TrimProgress {
        target: scaled(heavy, to_tokens, estimate),
        weight: heavy,
        cut_results: 0,
        dropped_images: 0,
        form: form.clone(),
    };
    work.cut_results(pinned);
    work.drop_images();
    let dropped_turns = work.drop_oldest(pinned);
    let TrimProgress { form, target, cut_results, dropped_images, .. } = work;
    let weight = form.weight();
    (weight < heavy).then(|| TrimmedRequest {
        form,
        before: estimate,
        after: u64::try_from(scaled(weight, estimate, u64::try_from(heavy).unwrap_or(u64::MAX)))
            .unwrap_or(u64::MAX),
        fits: weight <= target,
        cut_results,
        dropped_images,
        dropped_turns,
    })
}

/// Whether one of these texts stands in it.
fn holds(text: &str, pinned: &[String]) -> bool {
    pinned.iter().any(|pin| text.contains(pin.as_str()))
}

/// Whether one of these texts stands in what a turn says or in a result.
fn is_pinned_in(turn: &Turn<'_>, pinned: &[String]) -> bool {
    turn.parts.iter().any(|part| match part {
        Part::Text(text) => holds(text, pinned),
        Part::Outcome(outcome) => {
            outcome.parts.iter().any(|part| matches!(part, Part::Text(text) if holds(text, pinned)))
        }
        _ => false,
    })
}

/// `weight * part / whole`, without overflow.
fn scaled(weight: usize, part: u64, whole: u64) -> usize {
    let weight = u128::try_from(weight).unwrap_or(u128::MAX);
    let scaled = weight.saturating_mul(u128::from(part)) / u128::from(whole.max(1));
    usize::try_from(scaled).unwrap_or(usize::MAX)
}

struct TrimProgress<'a> {
    form: Form<'a>,
    target: usize,
    weight: usize,
    cut_results: usize,
    dropped_images: usize,
}

impl<'a> TrimProgress<'a> {
    fn is_over(&self) -> bool {
        self.weight > self.target
    }

    /// Takes the middle out of long results, the longest first.
    fn cut_results(&mut self, pinned: &[String]) {
        let mut long: Vec<(usize, &mut Cow<'a, str>)> = Vec::new();
        for part in self.form.turns.iter_mut().flat_map(|turn| &mut turn.parts) {
            let Part::Outcome(outcome) = part else { continue };
            long.extend(outcome.parts.iter_mut().filter_map(|part| match part {
                Part::Text(text) if text.len() > MIN_CUT_LENGTH && !holds(text, pinned) => {
                    Some((text.len(), text))
                }
                _ => None,
            }));
        }
        // Stable: of equal ones the oldest first.
        long.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
        for (length, text) in long {
            let Some(excess) = self.weight.checked_sub(self.target).filter(|excess| *excess > 0) else {
                return;
            };
            let keep = length.saturating_sub(excess).saturating_sub(NOTE_LENGTH).max(MIN_KEPT);
            *text = Cow::Owned(without_middle(text, keep));
            self.weight = self.weight - length + text.len();
            self.cut_results += 1;
        }
    }

    /// Leaves out images and files of results, the oldest first; those of the last results stay, because the model is about to read them.
    fn drop_images(&mut self) {
        let last = self.form.turns.iter().rposition(Turn::has_results).unwrap_or(0);
        for turn in self.form.turns.iter_mut().take(last) {
            for part in &mut turn.parts {
                let Part::Outcome(outcome) = part else { continue };
                for part in &mut outcome.parts {
                    if self.weight <= self.target {
                        return;
                    }
                    if matches!(part, Part::Image(_) | Part::Media(_)) {
                        let heavy = part.weight();
                        *part = Part::Text(Cow::Borrowed(NO_PICTURE));
                        self.weight = self.weight.saturating_sub(heavy).saturating_add(NO_PICTURE.len());
                        self.dropped_images += 1;
                    }
                }
            }
        }
    }

    /// Leaves out the oldest exchanges and turns, and says so. How many turns are gone.
    fn drop_oldest(&mut self, pinned: &[String]) -> usize {
        if !self.is_over() {
            return 0;
        }
        let (mut weight, goal) = (self.weight, self.target.saturating_sub(NOTE_LENGTH));
        let plan = Plan::of(&self.form, pinned);
        let mut gone = Removals::none(self.form.turns.len());
        for unit in &plan.units {
            if weight <= goal {
                break;
            }
            weight = weight.saturating_sub(gone.take(unit, &self.form.turns));
        }
        let dropped = gone.count(&self.form.turns);
        // Leaving out less than the note about it would take gains nothing.
        if dropped == 0 || weight.saturating_add(NOTE_LENGTH) >= self.weight {
            return 0;
        }
        self.leave_out(&gone, plan.first_task, dropped);
        self.weight = self.form.weight();
        dropped
    }

    fn leave_out(&mut self, gone: &Removals, first_task: Option<usize>, dropped: usize) {
        let note = format!(
            "[koboshi] {dropped} earlier messages of this conversation were left out here to fit the model's window."
        );
        let note = Turn { role: Role::User, parts: vec![Part::Text(Cow::Owned(note))] };
        let mut kept = Vec::with_capacity(self.form.turns.len());
        let mut note = Some(note);
        if first_task.is_none() {
            kept.extend(note.take());
        }
        for (index, mut turn) in std::mem::take(&mut self.form.turns).into_iter().enumerate() {
            turn.parts.retain(|part| !gone.has(index, part));
            if !turn.parts.is_empty() {
                kept.push(turn);
            }
            if first_task == Some(index) {
                kept.extend(note.take());
            }
        }
        self.form.turns = kept;
    }
}

/// A text with its beginning and its end; between them how much was cut.
fn without_middle(text: &str, keep: usize) -> String {
    let head = text.get(..text.floor_char_boundary(keep / 3 * 2)).unwrap_or_default();
    let tail = text.get(text.ceil_char_boundary(text.len().saturating_sub(keep / 3))..).unwrap_or_default();
    let cut = text.len() - head.len() - tail.len();
    format!("{head}\n[koboshi] {cut} of {} bytes were cut here to fit the model's window\n{tail}", text.len())
}

/// What goes together.
#[derive(Debug)]
enum TrimUnit {
    /// Answers in a row, and the results in the turns behind them.
    Exchange { answers: Range<usize>, results: Range<usize> },
    /// The other parts of a turn.
    Words(usize),
}

/// What may be left out, oldest first.
struct Plan {
    units: Vec<TrimUnit>,
    first_task: Option<usize>,
}

impl Plan {
    fn of(form: &Form<'_>, pinned: &[String]) -> Self {
        let turns = &form.turns;
        let written = |index: &usize| form.is_real_user(*index);
        let first_task = (0..turns.len()).find(written);
        let last_words = (0..turns.len()).rev().find(written);
        let is_pinned = |index: usize| turns.get(index).is_some_and(|turn| is_pinned_in(turn, pinned));
        let stays = |index: usize| {
            Some(index) == first_task
                || Some(index) == last_words
                || is_pinned(index)
                || turns.get(index).is_some_and(|turn| turn.role == Role::System)
        };
        let is_answer = |index: usize| turns.get(index).is_some_and(|turn| turn.role == Role::Assistant);
        let mut units = Vec::new();
        let mut index = 0;
        while index < turns.len() {
            let start = index;
            while is_answer(index) {
                index += 1;
            }
            let answers = start..index;
            while index < turns.len() && !is_answer(index) {
                index += 1;
            }
            let results = answers.end..index;
            let is_last = index == turns.len();
            let held = answers.clone().any(is_pinned)
                || results.clone().any(|at| is_pinned(at) && turns.get(at).is_some_and(Turn::has_results));
            if !is_last && !held {
                units.push(TrimUnit::Exchange { answers, results: results.clone() });
            }
            units.extend(results.filter(|at| !stays(*at) && !is_last).map(TrimUnit::Words));
        }
        Self { units, first_task }
    }
}

/// What is left out of each turn.
struct Removals {
    results: Vec<bool>,
    words: Vec<bool>,
}

impl Removals {
    fn none(turns: usize) -> Self {
        Self { results: vec![false; turns], words: vec![false; turns] }
    }

    /// Whether this part of this turn is left out.
    fn has(&self, index: usize, part: &Part<'_>) -> bool {
        let list = if matches!(part, Part::Outcome(_)) { &self.results } else { &self.words };
        list.get(index).copied().unwrap_or(false)
    }

    /// Leaves a unit out. What it weighs.
    fn take(&mut self, unit: &TrimUnit, turns: &[Turn<'_>]) -> usize {
        let mut weight = 0;
        let mut leave = |list: &mut [bool], index: usize, of_results: bool| {
            let parts = turns.get(index).map(|turn| turn.parts.as_slice()).unwrap_or_default();
            let these = parts.iter().filter(|part| matches!(part, Part::Outcome(_)) == of_results);
            weight += these.map(Part::weight).sum::<usize>();
            if let Some(gone) = list.get_mut(index) {
                *gone = true;
            }
        };
        match unit {
            TrimUnit::Exchange { answers, results } => {
                answers.clone().for_each(|index| {
                    leave(&mut self.words, index, false);
                    leave(&mut self.results, index, true);
                });
                results.clone().for_each(|index| leave(&mut self.results, index, true));
            }
            TrimUnit::Words(index) => leave(&mut self.words, *index, false),
        }
        weight
    }

    /// Turns of which nothing is left.
    fn count(&self, turns: &[Turn<'_>]) -> usize {
        let is_gone = |(index, turn): &(usize, &Turn<'_>)| {
            !turn.parts.is_empty() && turn.parts.iter().all(|part| self.has(*index, part))
        };
        turns.iter().enumerate().filter(is_gone).count()
    }
}
