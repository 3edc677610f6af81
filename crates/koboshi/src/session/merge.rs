//! Merging events on their way to a reader: adjacent pieces of one answer become one frame that says which numbers it covers.

use super::event::{Body, Event};

/// The same events with adjacent text joined; no joined piece gets longer than that.
#[must_use]
pub fn merged<'e>(events: impl IntoIterator<Item = &'e Event>, max_bytes: usize) -> Vec<Event> {
    let mut all: Vec<Event> = Vec::new();
    for event in events {
        let joined = all.last_mut().is_some_and(|last| join(last, event, max_bytes));
        if !joined {
            all.push(event.clone());
        }
    }
    all
}

/// Adds a piece to the one before it, where both are of the same text.
fn join(last: &mut Event, next: &Event, max_bytes: usize) -> bool {
    if last.turn != next.turn || next.first() != last.seq + 1 {
        return false;
    }
    let first = last.first();
    match (&mut last.body, &next.body) {
        (
            Body::Content { attempt, data, source, .. },
            Body::Content { attempt: other, data: more, source: from, .. },
        ) if attempt == other && source == from && data.len() + more.len() <= max_bytes => {
            data.push_str(more);
        }
        (Body::Reasoning { attempt, data, .. }, Body::Reasoning { attempt: other, data: more, .. })
            if attempt == other && data.len() + more.len() <= max_bytes =>
        {
            data.push_str(more);
        }
        _ => return false,
    }
    last.seq = next.seq;
    last.first = Some(first);
    true
}
