//! Arguments written as tags: `<parameter=city>Paris</parameter>`, `<parameter name="city">Paris</parameter>`.
//!
//! Tags carry no types, so the schema must say what each value is. Values of several lines, with entities or with
//! something like a tag inside have more than one reading and are refused.

use std::ops::Range;

use serde_json::Value;

use super::demand::{Types, property, types};
use super::lexis::blank_end;
use super::settle::{Arguments, Case, TapeValue, settle_object};
use super::tape::{Form, Kind, Tape};
use super::verdict::{Change, ChangeKind, Defect, Stop};
use super::wrap::names_this_tool;

const NAME: &str = "parameter";

/// Whether the text has parameters as tags, and no object.
pub(super) fn has_parameters(text: &str) -> bool {
    let is_tag = |place: usize| {
        let before = text.get(..place).unwrap_or_default();
        let after = text.get(place + NAME.len()..).unwrap_or_default();
        before.ends_with(['<', ':']) && (after.starts_with('=') || after.starts_with(" name="))
    };
    text.starts_with('<') && memchr::memmem::find_iter(text.as_bytes(), NAME).any(is_tag)
}

/// A tag: what it is called, what it says beside that, and where it stands.
struct Tag<'a> {
    name: &'a str,
    extra: &'a str,
    span: Range<usize>,
}

/// The tag that begins here.
fn tag(text: &str, at: usize) -> Option<Tag<'_>> {
    let rest = text.get(at..)?.strip_prefix('<')?;
    let near = rest.get(..rest.floor_char_boundary(256))?;
    let inside = near.get(..near.find('>')?)?;
    if inside.contains(['<', '\n']) {
        return None;
    }
    let end = inside.find([' ', '=']).unwrap_or(inside.len());
    let (name, extra) = inside.split_at(end);
    Some(Tag { name: without_prefix(name), extra, span: at..at + inside.len() + 2 })
}

/// Without a name space: `antml:parameter` is a parameter.
fn without_prefix(name: &str) -> &str {
    let (slash, bare) = name.strip_prefix('/').map_or(("", name), |bare| ("/", bare));
    match bare.rsplit_once(':') {
        Some((_, last)) if slash.is_empty() => last,
        Some(_) => name,
        None => name,
    }
}

/// `="city"`, `=city` or ` name="city"`.
fn parameter_name(extra: &str) -> Option<&str> {
    let value = extra.trim().strip_prefix("name").unwrap_or(extra.trim()).trim_start().strip_prefix('=')?;
    let value = value.trim().trim_matches(['"', '\'']);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '$');
    (!value.is_empty() && value.chars().all(plain)).then_some(value)
}

/// Arguments from tags.
pub(super) fn settle(text: &str, case: Case<'_>) -> Result<Arguments, Stop> {
    let Some(schema) = case.schema else {
        let why = "tags carry no types, and the tool's schema is not known";
        return Err(Stop::new(Defect::Ambiguous, 0, why));
    };
    let mut tape = Tape::default();
    let mut open: Vec<&str> = Vec::new();
    let mut calls = 0;
    let mut at = blank_end(text, 0).0;
    tape.push(Kind::Object, Form::Plain, at, text.len());
    while at < text.len() {
        let place = at;
        let unreadable = || Stop::new(Defect::Unreadable, place, "a tag is expected here");
        let found = tag(text, at).ok_or_else(unreadable)?;
        at = found.span.end;
        if let Some(closed) = found.name.strip_prefix('/') {
            if open.pop().is_none_or(|last| last != without_prefix(closed)) {
                return Err(unreadable());
            }
        } else if found.name == NAME {
            let name = parameter_name(found.extra).ok_or_else(unreadable)?;
            at = parameter(text, name, found.span, &mut tape)?;
            let value = tape.made.last().map(String::as_str).unwrap_or_default();
            if is_undecided(value, name, schema.root()) {
                return Err(Stop::new(Defect::Ambiguous, place, "this value can be text or something else"));
            }
        } else {
            if let Some(name) = parameter_name(found.extra) {
                names_this_tool(name, place, case)?;
            }
            calls += usize::from(!found.extra.is_empty());
            open.push(found.name);
        }
        at = blank_end(text, at).0;
    }
    if !open.is_empty() {
        return Err(Stop::new(Defect::Cut, at, "the text ends before its tags do"));
    }
    if calls > 1 {
        return Err(Stop::new(Defect::SeveralObjects, 0, "several calls: each has its own arguments"));
    }
    tape.close(0, at, at);
    let changes = vec![Change { what: ChangeKind::MarkupRead, span: 0..text.len() }];
    settle_object(TapeValue { tape: &tape, root: 0, source: text }, changes, case)
}

/// Whether the schema takes a value both as text and as what it looks like.
fn is_undecided(value: &str, name: &str, root: &Value) -> bool {
    let Some(schema) = property(root, root, name) else { return true };
    let looks = match serde_json::from_str::<Value>(value) {
        Ok(Value::Null) => Types::NULL,
        Ok(Value::Bool(_)) => Types::BOOLEAN,
        Ok(Value::Number(_)) => Types::NUMBER,
        Ok(Value::Array(_)) => Types::ARRAY,
        Ok(Value::Object(_)) => Types::OBJECT,
        Ok(Value::String(_)) => return true,
        Err(_) => return false,
    };
    let allowed = types(root, schema);
    allowed.has(Types::TEXT) && allowed.has(looks)
}

/// Puts one parameter on the tape; where it ends.
fn parameter(text: &str, name: &str, opening: Range<usize>, tape: &mut Tape) -> Result<usize, Stop> {
    let rest = text.get(opening.end..).unwrap_or_default();
    let prefix =
        text.get(opening.start + 1..opening.end).and_then(|tag| tag.split(NAME).next()).unwrap_or_default();
    let close = format!("</{prefix}{NAME}>");
    let Some(length) = rest.find(&close) else {
        return Err(Stop::new(Defect::Cut, text.len(), "the text ends inside a parameter"));
    };
    let value = rest.get(..length).unwrap_or_default();
    let span = opening.end..opening.end + length;
    let end = span.end + close.len();
    let after = blank_end(text, end).0;
    let entity = value.contains('&') && value.contains(';');
    let tagged = value.contains("</") || value.contains(NAME);
    let goes_on = after < text.len() && !text.get(after..).is_some_and(|rest| rest.starts_with('<'));
    if entity || tagged || goes_on || value.trim() != value || value.contains('\n') {
        let why = "tags, entities, line breaks or spaces around a value can be read in several ways";
        return Err(Stop::new(Defect::Ambiguous, span.start, why));
    }
    let key = tape.make(name.to_owned());
    tape.push(Kind::Key, Form::Made(key), opening.start, opening.end);
    let made = tape.make(value.to_owned());
    tape.push(Kind::Text, Form::Made(made), span.start, span.end);
    Ok(end)
}
