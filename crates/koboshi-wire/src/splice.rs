//! Changes to a text that leave every other byte as it is.
//!
//! Replacements are noted by place and made in one pass. Where nothing was noted the same bytes come back, uncopied.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use serde_json::value::RawValue;

use crate::lenient::text_of;

/// Replacements to be made in one body. Those of one place are made in the order they were noted.
#[derive(Debug, Default)]
pub(crate) struct Splices {
    all: Vec<(Range<usize>, Vec<u8>)>,
}

impl Splices {
    /// These bytes in place of that range.
    pub(crate) fn replace(&mut self, range: Range<usize>, with: impl Into<Vec<u8>>) {
        self.all.push((range, with.into()));
    }

    /// These bytes before that place.
    pub(crate) fn insert(&mut self, at: usize, text: impl Into<Vec<u8>>) {
        self.replace(at..at, text);
    }

    /// Gives a field of the top level a value, in place of its `known` one or in front of the others. There are others: without a model there
    /// is no request.
    pub(crate) fn set(&mut self, body: &[u8], name: &str, known: Option<&RawValue>, json: &str) {
        match known {
            Some(raw) if raw.get() == json => {}
            Some(raw) => {
                if let Some(range) = place(body, raw.get()) {
                    self.replace(range, json);
                }
            }
            None => {
                let front = body.iter().position(|byte| *byte == b'{').map_or(0, |brace| brace + 1);
                self.insert(front, format!("{}:{json},", quoted(name)));
            }
        }
    }

    /// Adds a text to the end of a content: to the text itself, with this `between`, or as one more part of this `kind`.
    pub(crate) fn lengthen(
        &mut self,
        body: &[u8],
        content: &RawValue,
        text: &str,
        between: &str,
        kind: &str,
    ) {
        let Some(range) = place(body, content.get()) else { return };
        // Before the closing quote or bracket.
        let end = range.end.saturating_sub(1);
        if content.get().starts_with('[') {
            let is_empty = content.get().trim_matches(['[', ']', ' ', '\n', '\r', '\t']).is_empty();
            let comma = if is_empty { "" } else { "," };
            self.insert(end, format!(r#"{comma}{{"type":"{kind}","text":{}}}"#, quoted(text)));
        } else if let Some(before) = text_of(content) {
            let between = if before.is_empty() { "" } else { between };
            self.insert(end, escaped(between) + &escaped(text));
        }
    }

    /// The changed body. A range that overlaps an earlier one, or lies outside, is not made: half a change is worse.
    pub(crate) fn apply(mut self, body: &Bytes) -> Bytes {
        if self.all.is_empty() {
            return body.clone();
        }
        // Stable: insertions at one place keep their order.
        self.all.sort_by_key(|(range, _)| (range.start, range.end));
        let grown: usize = self.all.iter().map(|(_, with)| with.len()).sum();
        let mut changed = BytesMut::with_capacity(body.len() + grown);
        let mut at = 0;
        for (range, with) in &self.all {
            let Some(kept) = body.get(at..range.start).filter(|_| range.end <= body.len()) else { continue };
            changed.extend_from_slice(kept);
            changed.extend_from_slice(with);
            at = range.end;
        }
        changed.extend_from_slice(body.get(at..).unwrap_or_default());
        changed.freeze()
    }
}

/// Where `part` stands in `whole`, if it is a piece of the same memory. Readers hand out borrowed parts; this gives their
/// places back without a second search.
pub(crate) fn place(whole: &[u8], part: &str) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= whole.len()).then_some(start..end)
}

/// A text as a JSON string, with its quotes.
pub(crate) fn quoted(text: &str) -> String {
    // Writing a text into memory cannot fail.
    serde_json::to_string(text).unwrap_or_else(|_| String::from("\"\""))
}

/// A text as the inside of a JSON string.
pub(crate) fn escaped(text: &str) -> String {
    let mut quoted = quoted(text);
    quoted.pop();
    if !quoted.is_empty() {
        quoted.remove(0);
    }
    quoted
}
