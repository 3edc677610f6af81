//! The calls since the user last wrote, as far back as the rules look.
//!
//! A turn forgets by itself: a call of another user turn begins a new one, and only the last [`LOOK_BACK`] calls are
//! kept, so pushing is cheap and memory is bounded however long an agent runs. Counters count beyond that.

use std::collections::VecDeque;
use std::ops::Range;

use super::digest::Digest;
use super::{Effect, LOOK_BACK, Reach};

/// The calls of one user turn.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    digests: VecDeque<Digest>,
    /// Index of the next call in the whole history.
    next: usize,
    number: Option<u32>,
    reach: Reach,
    /// The response that is still making calls, and how many it has made.
    batch: Option<u32>,
    width: u32,
}

impl Turn {
    /// An empty turn.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a call. One with another turn number begins a new turn.
    pub fn push(&mut self, digest: Digest) {
        self.count(digest.turn, digest.batch);
        if self.digests.len() == LOOK_BACK {
            self.digests.pop_front();
        }
        self.digests.push_back(digest);
    }

    /// Counts a call that is too far back to matter otherwise.
    pub(super) fn count(&mut self, turn: u32, batch: Option<u32>) {
        if self.number.is_some_and(|number| number != turn) {
            self.begin();
        }
        let same = batch.is_some() && batch == self.batch && self.reach.calls > 0;
        self.number = Some(turn);
        self.next = self.next.saturating_add(1);
        self.batch = batch;
        self.width = if same { self.width.saturating_add(1) } else { 1 };
        self.reach.calls = self.reach.calls.saturating_add(1);
        self.reach.responses = self.reach.responses.saturating_add(u32::from(!same));
        self.reach.widest = self.reach.widest.max(self.width);
    }

    /// Passes over calls of earlier turns, so that indexes are those of the whole history.
    pub(super) fn skip(&mut self, calls: usize) {
        self.next = self.next.saturating_add(calls);
    }

    /// The user has written: the turn begins again; indexes continue.
    pub fn begin(&mut self) {
        *self = Self { next: self.next, ..Self::default() };
    }

    /// How much was called.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach
    }

    /// Calls of the response that came last.
    pub(super) fn width(&self) -> u32 {
        self.width
    }

    /// Calls that are kept, oldest first.
    pub fn digests(&self) -> impl DoubleEndedIterator<Item = &Digest> + ExactSizeIterator {
        self.digests.iter()
    }

    /// Attempts, the latest first: parallel calls of one response are one.
    pub(super) fn rounds(&self) -> Vec<Round<'_>> {
        let mut rounds: Vec<Round<'_>> = Vec::new();
        let first = self.next.saturating_sub(self.digests.len());
        let all: Vec<&Digest> = self.digests.iter().collect();
        let mut end = all.len();
        while end > 0 {
            let start = start_of_round(&all, end);
            let calls = all.get(start..end).unwrap_or_default();
            rounds.push(Round { first: first + start, calls: calls.to_vec() });
            end = start;
        }
        rounds
    }
}

fn start_of_round(all: &[&Digest], end: usize) -> usize {
    let batch = all.get(end - 1).and_then(|digest| digest.batch);
    let same = |digest: &&&Digest| batch.is_some() && digest.batch == batch;
    let before: Range<usize> = 0..end - 1;
    let more = all.get(before).unwrap_or_default().iter().rev().take_while(same).count();
    end - 1 - more
}

/// One attempt.
#[derive(Debug)]
pub(super) struct Round<'t> {
    /// Index of its first call in the whole history.
    first: usize,
    calls: Vec<&'t Digest>,
}

impl<'t> Round<'t> {
    /// All its calls with their indexes.
    pub(super) fn all(&self) -> impl Iterator<Item = (usize, &'t Digest)> {
        self.calls.iter().enumerate().map(|(at, digest)| (self.first + at, *digest))
    }

    /// The calls that count. Ways out of the turn are no part of any loop.
    pub(super) fn calls(&self) -> impl Iterator<Item = (usize, &'t Digest)> {
        self.all().filter(|(_, digest)| digest.effect != Effect::Ends)
    }

    pub(super) fn failures(&self) -> impl Iterator<Item = (usize, &'t Digest)> {
        self.calls().filter(|(_, digest)| digest.failed())
    }

    /// A pause, alone or before something else.
    pub(super) fn lets_time_pass(&self) -> bool {
        self.calls().any(|(_, digest)| digest.pauses || (digest.effect == Effect::Waits && !digest.failed()))
    }

    pub(super) fn successes(&self) -> impl Iterator<Item = &'t Digest> {
        self.calls().map(|(_, digest)| digest).filter(|digest| !digest.failed())
    }
}
