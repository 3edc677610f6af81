//! What is on the screen: three lists, the one that is read, the chosen line in each, and the figures above them. Pure: time is an argument.

use std::collections::VecDeque;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::read::{Counts, Snapshot, Target};

/// Rates are those of this time.
const WINDOW: SignedDuration = SignedDuration::from_secs(10);
/// Lines of a list that stay, however full the others are.
const LEAST: [usize; 3] = [4, 3, 2];

/// A list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pane {
    Targets,
    Faults,
    Agents,
}

impl Pane {
    pub(super) const ALL: [Self; 3] = [Self::Targets, Self::Faults, Self::Agents];

    pub(super) const fn at(self) -> usize {
        self as usize
    }
}

/// What a person wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wish {
    Quit,
    Next,
    Previous,
    /// So many lines down, or up.
    Move(isize),
    First,
    Last,
}

/// Requests and faults a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Rates {
    pub(super) requests: Option<f64>,
    pub(super) faults: f64,
}

/// What was read and what is chosen.
#[derive(Debug)]
pub(super) struct Board {
    pub(super) pane: Pane,
    pub(super) chosen: [usize; 3],
    pub(super) snapshot: Option<Snapshot>,
    /// Why the last reading failed: what is shown is older.
    pub(super) trouble: Option<String>,
    totals: VecDeque<Totals>,
}

#[derive(Debug, Clone, Copy)]
struct Totals {
    at: Timestamp,
    started: Option<Timestamp>,
    counts: Counts,
}

impl Board {
    pub(super) const fn new() -> Self {
        Self { pane: Pane::Targets, chosen: [0; 3], snapshot: None, trouble: None, totals: VecDeque::new() }
    }

    /// Takes a reading. One that failed leaves what is known, and says so.
    pub(super) fn take(&mut self, read: Result<Snapshot, String>) {
        match read {
            Err(why) => self.trouble = Some(why),
            Ok(snapshot) => {
                self.trouble = None;
                if let Some(counts) = snapshot.counts {
                    self.count(Totals { at: snapshot.now, started: snapshot.started, counts });
                }
                self.snapshot = Some(snapshot);
            }
        }
    }

    /// A gateway that started again counts from zero.
    fn count(&mut self, totals: Totals) {
        let is_other = |before: &Totals| before.started != totals.started || before.at >= totals.at;
        if self.totals.back().is_some_and(is_other) {
            self.totals.clear();
        }
        self.totals.push_back(totals);
        // The oldest one that is kept is the newest one beyond the window.
        while self.totals.get(1).is_some_and(|second| totals.at.duration_since(second.at) >= WINDOW) {
            self.totals.pop_front();
        }
    }

    /// Of a gateway the rates of the last seconds, of a store those faults that its journal has of the last minute.
    pub(super) fn rates(&self) -> Option<Rates> {
        let snapshot = self.snapshot.as_ref()?;
        if let Some(faults) = snapshot.faults_last_minute {
            return Some(Rates { requests: None, faults: per_second(faults, 60.0) });
        }
        let (first, last) = (self.totals.front()?, self.totals.back()?);
        let seconds = last.at.duration_since(first.at).as_secs_f64();
        let more =
            |of: fn(&Counts) -> u64| per_second(of(&last.counts).saturating_sub(of(&first.counts)), seconds);
        (seconds > 0.0)
            .then(|| Rates { requests: Some(more(Counts::requests)), faults: more(|counts| counts.faults) })
    }

    /// Does what a person wants; returns whether the screen stays. `lines` are the lengths of the lists.
    pub(super) fn obey(&mut self, wish: Wish, lines: [usize; 3]) -> bool {
        let chosen = self.pane.at();
        match wish {
            Wish::Quit => return false,
            Wish::Next => self.pane = self.beside(1, lines),
            Wish::Previous => self.pane = self.beside(2, lines),
            Wish::Move(by) => {
                if let Some(at) = self.chosen.get_mut(chosen) {
                    *at = at.saturating_add_signed(by);
                }
            }
            Wish::First => self.choose(chosen, 0),
            Wish::Last => self.choose(chosen, usize::MAX),
        }
        self.settle(lines);
        true
    }

    fn choose(&mut self, list: usize, line: usize) {
        if let Some(at) = self.chosen.get_mut(list) {
            *at = line;
        }
    }

    /// The next list, or the second next; the list of agents is there only if there are any.
    fn beside(&self, by: usize, lines: [usize; 3]) -> Pane {
        let shown: Vec<Pane> = shown(lines).collect();
        let at = shown.iter().position(|pane| *pane == self.pane).unwrap_or_default();
        let by = if by == 1 { 1 } else { shown.len().saturating_sub(1) };
        shown.get((at + by) % shown.len().max(1)).copied().unwrap_or(self.pane)
    }

    /// Keeps the choice inside lists that have become shorter.
    pub(super) fn settle(&mut self, lines: [usize; 3]) {
        for (at, count) in self.chosen.iter_mut().zip(lines) {
            *at = (*at).min(count.saturating_sub(1));
        }
        if !shown(lines).any(|pane| pane == self.pane) {
            self.pane = Pane::Targets;
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits than a float has")]
fn per_second(count: u64, seconds: f64) -> f64 {
    count as f64 / seconds
}

/// The lists that are on the screen.
pub(super) fn shown(lines: [usize; 3]) -> impl Iterator<Item = Pane> {
    Pane::ALL
        .into_iter()
        .filter(move |pane| *pane != Pane::Agents || lines.get(2).is_some_and(|agents| *agents > 0))
}

/// How many lines each list gets of those that there are: none is squeezed out by another, and the one that is read grows first.
pub(super) fn heights(lines: [usize; 3], pane: Pane, room: usize) -> [usize; 3] {
    // An empty list says so on one line.
    let wanted = [lines[0].max(1), lines[1].max(1), lines[2]];
    let mut heights = [0; 3];
    let mut left = room;
    let give = |heights: &mut [usize; 3], at: usize, most: usize, left: &mut usize| {
        if let (Some(height), Some(wanted)) = (heights.get_mut(at), wanted.get(at)) {
            let more = wanted.min(&most).saturating_sub(*height).min(*left);
            *height += more;
            *left -= more;
        }
    };
    for (at, least) in LEAST.into_iter().enumerate() {
        give(&mut heights, at, least, &mut left);
    }
    for at in [pane.at(), 0, 2, 1] {
        give(&mut heights, at, usize::MAX, &mut left);
    }
    heights
}

/// The first line that is shown of a list, so that the chosen one is among those that are.
pub(super) const fn first_of(chosen: usize, height: usize) -> usize {
    (chosen + 1).saturating_sub(height)
}

/// Routes none of whose targets can be asked. A link that depends on the request (`{model}`) leads somewhere.
pub(super) fn dead_routes(snapshot: &Snapshot) -> Vec<&str> {
    let is_down = |link: &String| {
        let mut its = snapshot.targets.iter().filter(|target| target.name == *link).peekable();
        its.peek().is_some() && its.all(Target::is_down)
    };
    let dead =
        snapshot.routes.iter().filter(|route| !route.chain.is_empty() && route.chain.iter().all(is_down));
    dead.map(|route| route.name.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::super::read::Route;
    use super::*;
    use koboshi_store::RowState;

    fn reading(second: i64, requests: u64, faults: u64) -> Snapshot {
        Snapshot {
            now: Timestamp::from_second(second).unwrap(),
            started: Some(Timestamp::UNIX_EPOCH),
            counts: Some(Counts { whole: requests, faults, ..Counts::default() }),
            ..Snapshot::default()
        }
    }

    #[test]
    fn rates_are_those_of_the_last_seconds_and_a_restart_begins_at_zero() {
        let mut board = Board::new();
        board.take(Ok(reading(100, 1_000, 7)));
        assert_eq!(board.rates(), None, "one reading has no rate");
        board.take(Ok(reading(102, 1_020, 8)));
        assert_eq!(board.rates(), Some(Rates { requests: Some(10.0), faults: 0.5 }));
        for second in 1..=10 {
            board.take(Ok(reading(102 + 2 * second, 1_020, 8)));
        }
        assert_eq!(
            board.rates(),
            Some(Rates { requests: Some(0.0), faults: 0.0 }),
            "the old ones are forgotten"
        );
        let again = Snapshot { started: Timestamp::from_second(123).ok(), ..reading(124, 3, 0) };
        board.take(Ok(again));
        assert_eq!(board.rates(), None);
        board.take(Err("away".to_owned()));
        assert_eq!(board.trouble.as_deref(), Some("away"));
        assert!(board.snapshot.is_some(), "what was known is still shown");
        let of_store = Snapshot { faults_last_minute: Some(30), ..Snapshot::default() };
        board.take(Ok(of_store));
        assert_eq!(board.rates(), Some(Rates { requests: None, faults: 0.5 }));
        assert_eq!(board.trouble, None);
    }

    #[test]
    fn every_list_has_a_place_and_the_one_that_is_read_grows() {
        assert_eq!(heights([2, 0, 0], Pane::Targets, 15), [2, 1, 0], "an empty list says so on one line");
        assert_eq!(heights([50, 200, 9], Pane::Targets, 15), [10, 3, 2]);
        assert_eq!(heights([50, 200, 9], Pane::Faults, 15), [4, 9, 2]);
        assert_eq!(heights([3, 200, 9], Pane::Agents, 15), [3, 3, 9]);
        for room in 0..40 {
            let heights = heights([50, 200, 9], Pane::Faults, room);
            assert_eq!(heights.iter().sum::<usize>(), room, "no line is left empty");
        }
    }

    #[test]
    fn keys_choose_a_list_and_a_line_and_stay_inside() {
        let mut board = Board::new();
        let lines = [3, 9, 0];
        assert!(board.obey(Wish::Move(1), lines) && board.obey(Wish::Move(9), lines));
        assert_eq!((board.pane, board.chosen), (Pane::Targets, [2, 0, 0]));
        board.obey(Wish::Next, lines);
        board.obey(Wish::Last, lines);
        assert_eq!((board.pane, board.chosen), (Pane::Faults, [2, 8, 0]));
        board.obey(Wish::Next, lines);
        assert_eq!(board.pane, Pane::Targets, "there are no agents");
        board.obey(Wish::Previous, [3, 9, 2]);
        assert_eq!(board.pane, Pane::Agents);
        board.settle([1, 9, 0]);
        assert_eq!((board.pane, board.chosen), (Pane::Targets, [0, 8, 0]), "the lists have become shorter");
        assert!(!board.obey(Wish::Quit, lines));
        assert_eq!([first_of(0, 4), first_of(3, 4), first_of(4, 4)], [0, 0, 1]);
    }

    #[test]
    fn a_route_is_dead_when_no_link_of_it_can_be_asked() {
        let target = |name: &str, state| Target { name: name.to_owned(), state, ..Target::default() };
        let route = |name: &str, chain: &[&str]| Route {
            name: name.to_owned(),
            chain: chain.iter().map(ToString::to_string).collect(),
        };
        let snapshot = Snapshot {
            targets: vec![
                target("a/one", Some(RowState::Cooling)),
                target("a/one", None),
                target("b/two", Some(RowState::Parked)),
            ],
            routes: vec![
                route("two keys", &["a/one", "b/two"]),
                route("dead", &["b/two"]),
                route("any", &["b/two", "c/{model}"]),
                route("empty", &[]),
            ],
            ..Snapshot::default()
        };
        assert_eq!(dead_routes(&snapshot), ["dead"]);
    }
}
