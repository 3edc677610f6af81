//! From a tape to arguments: keys that come twice, the schema, the wrappings, the coercions, in this order.
//!
//! A tape is settled when what it says satisfies the schema. If it does not, the schema may leave one choice: another
//! type at a place (`coerce`), or the inside of an envelope (`wrap`).

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::coerce::coerce;
use super::reader::Reader;
use super::schema::ToolSchema;
use super::strict;
use super::tape::{Edit, Form, Item, Kind, Tape};
use super::unsatisfied;
use super::verdict::{Change, ChangeKind, Defect, Stop};

/// Arguments that were read.
#[derive(Debug)]
pub(super) struct Arguments {
    pub(super) json: String,
    pub(super) changes: Vec<Change>,
}

/// At most this many members may come twice.
const MAX_DUPLICATES: usize = 64;

/// What a text is read for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) schema: Option<&'a ToolSchema>,
    pub(super) max_depth: usize,
    /// How many encodings have been taken off.
    pub(super) level: usize,
}

/// A value on a tape.
#[derive(Debug, Clone, Copy)]
pub(super) struct TapeValue<'a> {
    pub(super) tape: &'a Tape,
    pub(super) root: usize,
    pub(super) source: &'a str,
}

impl<'a> TapeValue<'a> {
    pub(super) fn at(self, root: usize) -> Self {
        Self { root, ..self }
    }

    pub(super) fn item(self) -> Option<Item> {
        self.tape.get(self.root)
    }

    pub(super) fn text(self) -> Cow<'a, str> {
        self.item().map(|item| self.tape.text(item, self.source)).unwrap_or_default()
    }

    pub(super) fn span(self) -> std::ops::Range<usize> {
        self.item().map_or(0..0, |item| item.start..item.end)
    }

    pub(super) fn value(self, edits: &[(usize, Edit)]) -> Value {
        self.tape.value(self.root, self.source, edits)
    }

    pub(super) fn json(self, edits: &[(usize, Edit)]) -> String {
        let mut json = String::with_capacity(self.source.len() + 16);
        self.tape.write(self.root, self.source, edits, &mut json);
        json
    }
}

/// Arguments from the object at a place, without looking into envelopes.
pub(super) fn settle_object(
    place: TapeValue<'_>,
    mut changes: Vec<Change>,
    case: Case<'_>,
) -> Result<Arguments, Stop> {
    let twice = duplicates(place, &mut changes)?;
    let Some(schema) = case.schema else {
        no_doubts(place)?;
        return Ok(Arguments { json: place.json(&twice), changes });
    };
    let value = place.value(&twice);
    if no_doubts(place).is_ok() && schema.is_satisfied_by(&value) {
        return Ok(Arguments { json: place.json(&twice), changes });
    }
    let edits = coerce(place, schema, case, &twice, &mut changes)?;
    let coerced = place.value(&edits);
    if !schema.is_satisfied_by(&coerced) {
        return Err(unsatisfied(schema, &value, place.span().start));
    }
    changes.sort_by_key(|change| (change.span.start, change.span.end));
    let json = place.json(&edits);
    if changes.iter().any(|change| change.what == ChangeKind::Decoded) {
        // What was encoded adds its depth to that of its place.
        strict::scan(&json, case.max_depth).map_err(|failure| failure.inside(place.span().start))?;
    }
    Ok(Arguments { json, changes })
}

/// Values whose meaning depends on the schema are refused where it does not say.
fn no_doubts(place: TapeValue<'_>) -> Result<(), Stop> {
    let last = place.tape.after(place.root);
    for item in (place.root..last).filter_map(|index| place.tape.get(index)) {
        let doubtful = match item.form {
            Form::Loose | Form::Wide(_) => true,
            Form::Word => is_like_literal(place.source.get(item.start..item.end).unwrap_or_default()),
            _ => false,
        };
        if doubtful {
            let defect = if item.form == Form::Word { Defect::Ambiguous } else { Defect::BadNumber };
            return Err(Stop::new(defect, item.start, "text or something else? Quotation marks are missing"));
        }
    }
    Ok(())
}

/// A word that could be a boolean or null in one more notation.
pub(super) fn is_like_literal(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    matches!(lower.as_str(), "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n" | "t" | "f")
}

/// Leaves out members that are there already; an error if they differ.
pub(super) fn duplicates(
    place: TapeValue<'_>,
    changes: &mut Vec<Change>,
) -> Result<Vec<(usize, Edit)>, Stop> {
    const MAX_COMPARED_KEYS: usize = 8;
    let tape = place.tape;
    let mut edits = Vec::new();
    let last = tape.after(place.root);
    let mut seen: HashMap<Cow<'_, str>, usize> = HashMap::new();
    for object in place.root..last {
        if tape.get(object).is_none_or(|item| item.kind != Kind::Object) {
            continue;
        }
        let mut few: [Option<(usize, &str)>; MAX_COMPARED_KEYS] = [None; MAX_COMPARED_KEYS];
        seen.clear();
        for (count, key) in tape.keys(object).enumerate() {
            let Some(item) = tape.get(key) else { continue };
            let raw = place.source.get(item.start..item.end).unwrap_or_default();
            // A few plain keys need no map.
            let simple = item.form == Form::Plain && !raw.contains('\\');
            let before = if simple && seen.is_empty() && count < MAX_COMPARED_KEYS {
                let known = few.iter().flatten().find(|(_, name)| *name == raw).map(|(index, _)| *index);
                if let (None, Some(slot)) = (known, few.get_mut(count)) {
                    *slot = Some((key, raw));
                }
                known
            } else {
                if seen.is_empty() {
                    seen.extend(few.iter().flatten().map(|(index, name)| (Cow::Borrowed(*name), *index)));
                }
                let known = seen.get(&tape.text(item, place.source)).copied();
                if known.is_none() {
                    seen.insert(tape.text(item, place.source), key);
                }
                known
            };
            let Some(before) = before else { continue };
            if !tape.equal(before + 1, key + 1, place.source) {
                let why = "this key comes twice in one object, with different values";
                return Err(Stop::new(Defect::DuplicateKey, item.start, why));
            }
            if edits.len() >= MAX_DUPLICATES {
                return Err(Stop::new(Defect::DuplicateKey, item.start, "a flood of one key"));
            }
            changes.push(Change { what: ChangeKind::DuplicateDropped, span: item.start..item.end });
            edits.push((key, Edit::Drop));
        }
    }
    edits.sort_by_key(|(index, _)| *index);
    // A member inside one that is left out needs no edit of its own.
    let mut end = 0;
    edits.retain(|(index, _)| {
        let kept = *index >= end;
        if kept {
            end = tape.after(*index + 1);
        }
        kept
    });
    Ok(edits)
}

/// Strict JSON as a value, where the quick way of making one failed.
pub(super) fn strict_value(text: &str) -> Option<Value> {
    let start = text.find('{')?;
    let read = Reader::new(text, start, None, super::MAX_DEPTH).read().ok()?;
    Some(read.tape.value(0, text, &[]))
}
