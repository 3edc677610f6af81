//! What a reader of a log gets: the events after its cursor, or the whole transcript in pages.

use super::Log;
use super::size::size_of_message;
use crate::session::event::Event;
use crate::session::merge::merged;
use crate::session::transcript::{Snapshot, Transcript};

impl Log {
    /// The events after this cursor, adjacent text merged; none where the cursor is of no use, and a snapshot must do.
    #[must_use]
    pub fn replay(&self, epoch: &str, after: u64, max_bytes: usize) -> Option<Vec<Event>> {
        if epoch != self.epoch() || after > self.seq() {
            return None;
        }
        let first = self.tail.front().map_or(self.seq() + 1, |event| event.seq);
        if after + 1 < first {
            return None;
        }
        let skip = usize::try_from(after + 1 - first).ok()?;
        Some(merged(self.tail.iter().skip(skip).map(|event| &**event), max_bytes))
    }

    /// Whether there is something after this cursor.
    #[must_use]
    pub fn is_beyond(&self, epoch: &str, after: u64) -> bool {
        epoch != self.epoch() || after != self.seq()
    }

    /// The whole transcript in pages.
    #[must_use]
    pub fn snapshot(&self, page_bytes: usize) -> Vec<Snapshot> {
        let mut pages = Vec::new();
        let mut place = None;
        loop {
            let (page, next) = self.page(place.as_ref(), page_bytes);
            pages.push(page);
            match next {
                Some(next) => place = Some(next),
                None => return pages,
            }
        }
    }

    /// The page of a snapshot after this place, and the place of the next one; none after the last page. A reader gets one page when it has taken
    /// the one before, so it holds no copy of the transcript however slow it is. Always all of it: a message that the reader has is no proof
    /// that it has those before (decision 14). Where those before it have changed meanwhile, the snapshot begins again.
    #[must_use]
    pub fn page(&self, place: Option<&Place>, page_bytes: usize) -> (Snapshot, Option<Place>) {
        let Transcript { epoch, seq, messages, open } = &self.transcript;
        let is_good = |place: &&Place| place.epoch == *epoch && place.rewrites == self.rewrites;
        let begin = place.filter(is_good).map_or(0, |place| place.count);
        let rest = messages.get(begin..).unwrap_or_default();
        let mut bytes = 0;
        let fits = rest.iter().take_while(|message| {
            bytes += size_of_message(message);
            bytes <= page_bytes
        });
        // One message at least, however large it is.
        let count = fits.count().max(1).min(rest.len());
        let after = begin.checked_sub(1).and_then(|last| messages.get(last));
        let more = count < rest.len();
        let page = Snapshot {
            epoch: epoch.clone(),
            upto: *seq,
            after: after.map(|message| message.id.clone()),
            messages: rest.iter().take(count).cloned().collect(),
            ids: if more { Vec::new() } else { self.ids.iter().map(|(id, _)| id.clone()).collect() },
            open: open.clone().filter(|_| !more),
            more,
        };
        let next = Place { epoch: epoch.clone(), rewrites: self.rewrites, count: begin + count };
        (page, more.then_some(next))
    }
}

/// How far a snapshot was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    epoch: String,
    rewrites: u64,
    count: usize,
}
