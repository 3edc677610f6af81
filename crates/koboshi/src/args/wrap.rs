//! Wrappings that models put around arguments: an encoded string, a list of one, an envelope with the tool's name.
//!
//! A wrapping is taken off only where the schema fits the inside and not the outside. Where the schema itself asks for
//! keys like `name` and `arguments`, they are arguments.

use super::find;
use super::settle::{Arguments, Case, TapeValue, settle_object};
use super::tape::Kind;
use super::verdict::{Change, ChangeKind, Defect, Stop};

/// Keys under which envelopes carry the arguments.
const INSIDE: &[&str] = &["arguments", "parameters", "input"];

/// Other keys that an envelope may have.
const BESIDE: &[&str] =
    &["name", "type", "id", "call_id", "tool_call_id", "index", "tool", "tool_name", "recipient_name"];

/// Those of them that name the tool.
const NAMING: &[&str] = &["name", "tool", "tool_name", "recipient_name", "function"];

/// Arguments from whatever was found at a place.
pub(super) fn settle_any(
    place: TapeValue<'_>,
    changes: Vec<Change>,
    case: Case<'_>,
) -> Result<Arguments, Stop> {
    let whole = place.span();
    match place.item().map(|item| item.kind) {
        Some(Kind::Object) => {
            if case.schema.is_none() {
                return settle_object(place, changes, case);
            }
            match settle_object(place, changes.clone(), case) {
                Err(failure) if failure.defect != Defect::DuplicateKey => {
                    meant_here(place, case)?;
                    let inside = envelope(place).and_then(|inside| unwrap(inside, changes, case).ok());
                    let inside = inside.map(|settled| noted(settled, ChangeKind::EnvelopeUnwrapped, whole));
                    inside.ok_or(failure)
                }
                other => other,
            }
        }
        Some(Kind::Array) => {
            let mut elements = place.tape.elements(place.root);
            let (Some(only), None, Some(_)) = (elements.next(), elements.next(), case.schema) else {
                return Err(not_an_object(whole.start));
            };
            if place.tape.get(only).is_none_or(|item| item.kind != Kind::Object) {
                return Err(not_an_object(whole.start));
            }
            let settled = settle_any(place.at(only), changes, case)?;
            Ok(noted(settled, ChangeKind::ListUnwrapped, whole))
        }
        _ => Err(not_an_object(whole.start)),
    }
}

fn not_an_object(at: usize) -> Stop {
    Stop::new(Defect::NotAnObject, at, "the arguments of a call must be one JSON object")
}

/// The same, with one more change in front.
pub(super) fn noted(mut settled: Arguments, what: ChangeKind, span: std::ops::Range<usize>) -> Arguments {
    settled.changes.insert(0, Change { what, span });
    settled
}

/// An error where the place is an envelope that names another tool.
fn meant_here(place: TapeValue<'_>, case: Case<'_>) -> Result<(), Stop> {
    if envelope(place).is_none() {
        return Ok(());
    }
    for key in place.tape.keys(place.root) {
        let (name, value) = (place.at(key).text(), place.at(key + 1));
        match value.item().map(|item| item.kind) {
            Some(Kind::Object) if name == "function" => meant_here(value, case)?,
            Some(Kind::Text) if NAMING.contains(&&*name) => {
                names_this_tool(&value.text(), value.span().start, case)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// An error where a call names another tool than the one whose arguments are read.
pub(super) fn names_this_tool(name: &str, at: usize, case: Case<'_>) -> Result<(), Stop> {
    if case.schema.is_none_or(|schema| schema.answers_to(name)) {
        return Ok(());
    }
    Err(Stop::new(Defect::OtherTool, at, "these are the arguments of another tool: call that one"))
}

/// The value that an envelope carries.
pub(super) fn envelope(place: TapeValue<'_>) -> Option<TapeValue<'_>> {
    let mut inside = None;
    let mut function = None;
    for key in place.tape.keys(place.root) {
        let name = place.at(key).text();
        let kind = place.tape.get(key + 1)?.kind;
        if INSIDE.contains(&&*name) && matches!(kind, Kind::Object | Kind::Text) {
            if inside.replace(place.at(key + 1)).is_some() {
                return None;
            }
        } else if name == "function" && kind == Kind::Object {
            function = Some(place.at(key + 1));
        } else if !(BESIDE.contains(&&*name) || name == "function") {
            return None;
        }
    }
    match (inside, function) {
        (Some(inside), None) => Some(inside),
        // `{"function": {"name": …, "arguments": …}}`; one level only.
        (None, Some(function)) => {
            let own = |key| function.at(key).text();
            let nested = function.tape.keys(function.root).any(|key| own(key) == "function");
            if nested { None } else { envelope(function) }
        }
        _ => None,
    }
}

fn unwrap(inside: TapeValue<'_>, changes: Vec<Change>, case: Case<'_>) -> Result<Arguments, Stop> {
    let Some(item) = inside.item() else { return Err(not_an_object(0)) };
    if item.kind == Kind::Object {
        return settle_object(inside, changes, case);
    }
    let span = item.start..item.end;
    let mut settled = encoded(&inside.text(), span, case)?;
    settled.changes.splice(0..0, changes);
    Ok(settled)
}

/// Arguments from a text that was encoded in a string at a place.
pub(super) fn encoded(text: &str, span: std::ops::Range<usize>, case: Case<'_>) -> Result<Arguments, Stop> {
    let case = Case { level: case.level + 1, ..case };
    let mut settled = find::settle(text, case).map_err(|stop| stop.inside(span.start))?;
    // Places inside the string mean nothing to the reader of the outer text.
    for change in &mut settled.changes {
        change.span = span.clone();
    }
    Ok(noted(settled, ChangeKind::StringUnwrapped, span))
}
