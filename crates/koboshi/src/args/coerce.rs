//! Other types where the schema is not met and leaves one choice.
//!
//! Walks the tape beside the schema, without recursion but for strings that hold encoded values, whose number of levels
//! is bounded. Nothing is rounded, clamped, renamed or made up; where two coercions would do, none is done. The
//! caller checks the outcome against the whole schema.

use serde_json::Value;

use super::bare::is_nothing;
use super::body::write_text;
use super::demand::{Types, choices, element, is_declared, is_required, property, types};
use super::lexis::blank_end;
use super::number::{self, NumberReading};
use super::reader::{ReadObject, Reader};
use super::schema::ToolSchema;
use super::settle::{Case, TapeValue, is_like_literal};
use super::tape::{Edit, Form, Item, Kind};
use super::verdict::{Change, ChangeKind, Defect, Stop};

/// At most this many encodings inside each other are taken off a value.
const MAX_ENCODINGS: usize = 4;

type NewText = Option<(String, ChangeKind)>;

/// The edits that make a value fit the schema, those given included.
pub(super) fn coerce(
    place: TapeValue<'_>,
    schema: &ToolSchema,
    case: Case<'_>,
    given: &[(usize, Edit)],
    changes: &mut Vec<Change>,
) -> Result<Vec<(usize, Edit)>, Stop> {
    let root = schema.root();
    Coercion { place, root, case, edits: given.to_vec(), changes, inside: Vec::new() }.walk(root)
}

struct Coercion<'a, 'c> {
    place: TapeValue<'a>,
    root: &'a Value,
    case: Case<'a>,
    edits: Vec<(usize, Edit)>,
    changes: &'c mut Vec<Change>,
    /// What was done inside the value that was decoded last.
    inside: Vec<Change>,
}

impl<'a> Coercion<'a, '_> {
    fn walk(mut self, schema: &'a Value) -> Result<Vec<(usize, Edit)>, Stop> {
        let tape = self.place.tape;
        let dropped: Vec<usize> = self.edits.iter().map(|(index, _)| *index).collect();
        let mut left = vec![(self.place.root, Some(schema), None)];
        while let Some((index, schema, member)) = left.pop() {
            let Some(item) = tape.get(index) else { continue };
            let Some(schema) = schema else {
                self.certain(item, None)?;
                let inside = tape.keys(index).map(|key| key + 1);
                match item.kind {
                    Kind::Object => left.extend(inside.map(|value| (value, None, None))),
                    Kind::Array => left.extend(tape.elements(index).map(|value| (value, None, None))),
                    _ => {}
                }
                continue;
            };
            if self.fix(index, item, schema, member)? {
                continue;
            }
            if item.kind == Kind::Object {
                for key in tape.keys(index).filter(|key| dropped.binary_search(key).is_err()) {
                    let name = self.place.at(key).text();
                    // In a map a null may be meant: as the sign that an entry is to go.
                    let optional =
                        is_declared(self.root, schema, &name) && !is_required(self.root, schema, &name);
                    left.push((key + 1, property(self.root, schema, &name), optional.then_some(key)));
                }
            } else if item.kind == Kind::Array {
                for (nth, value) in tape.elements(index).enumerate() {
                    left.push((value, element(self.root, schema, nth), None));
                }
            }
        }
        self.edits.sort_by_key(|(index, _)| *index);
        Ok(self.edits)
    }

    /// Values whose meaning depends on the type that is due.
    fn certain(&self, item: Item, allowed: Option<Types>) -> Result<(), Stop> {
        let has = |types| allowed.is_none_or(|allowed| allowed.has(types));
        let raw = self.place.source.get(item.start..item.end).unwrap_or_default();
        let (doubtful, defect) = match item.form {
            Form::Loose => (has(Types::NUMBER) || !has(Types::TEXT), Defect::BadNumber),
            Form::Wide(_) => (has(Types::TEXT) || !has(Types::NUMBER), Defect::BadNumber),
            Form::Word if is_like_literal(raw) => {
                (has(Types::TEXT) && has(Types::BOOLEAN), Defect::Ambiguous)
            }
            _ => (false, Defect::Ambiguous),
        };
        if doubtful {
            return Err(Stop::new(defect, item.start, "text or something else? Quotation marks are missing"));
        }
        Ok(())
    }

    /// Gives a value another type, if one is due; whether it did.
    fn fix(&mut self, index: usize, item: Item, schema: &Value, member: Option<usize>) -> Result<bool, Stop> {
        let allowed = types(self.root, schema);
        self.certain(item, Some(allowed))?;
        let place = self.place.at(index);
        let kind = match item.kind {
            Kind::Object => Types::OBJECT,
            Kind::Array => Types::ARRAY,
            Kind::Text => Types::TEXT,
            Kind::Number => Types::NUMBER,
            Kind::True | Kind::False => Types::BOOLEAN,
            Kind::Null => Types::NULL,
            Kind::Key | Kind::End => return Ok(false),
        };
        let is_of_two = is_boolean_or_nothing(place, item, allowed);
        let fixed = if is_of_two {
            None
        } else if allowed.has(kind) {
            if kind == Types::TEXT { self.other_case(&place.text(), schema) } else { None }
        } else if kind == Types::NULL {
            if let Some(key) = member {
                self.edits.push((key, Edit::Drop));
                self.changes.push(Change { what: ChangeKind::NullDropped, span: item.start..item.end });
                return Ok(true);
            }
            None
        } else {
            only(match kind {
                Types::TEXT => self.of_text(&place.text(), schema, allowed),
                Types::NUMBER | Types::BOOLEAN => self.of_scalar(place, schema, allowed, kind),
                _ => Vec::new(),
            })
        };
        let Some((json, what)) = fixed else { return Ok(false) };
        let span = item.start..item.end;
        self.edits.push((index, Edit::Json(json)));
        self.changes.push(Change { what, span: span.clone() });
        if what == ChangeKind::Decoded {
            // Places inside the string mean nothing to the reader of the outer text.
            let inside = self.inside.drain(..);
            self.changes.extend(inside.map(|change| Change { span: span.clone(), ..change }));
        }
        Ok(true)
    }

    /// The one choice that differs only in case.
    fn other_case(&self, text: &str, schema: &Value) -> NewText {
        let values = choices(self.root, schema)?;
        let names: Vec<&str> = values.iter().filter_map(|value| value.as_str()).collect();
        if names.contains(&text) {
            return None;
        }
        let lower = text.to_lowercase();
        let mut like = names.iter().filter(|name| name.to_lowercase() == lower);
        match (like.next(), like.next()) {
            (Some(name), None) => Some((quoted(name), ChangeKind::EnumCase)),
            _ => None,
        }
    }

    fn of_text(&mut self, text: &str, schema: &Value, allowed: Types) -> Vec<(String, ChangeKind)> {
        let trimmed = text.trim();
        let mut found = scalars(trimmed, allowed);
        let lists = allowed.has(Types::ARRAY) || allowed.has(Types::OBJECT);
        if lists && trimmed.starts_with(['[', '{', '(']) {
            found.extend(self.decoded(trimmed, schema, allowed).map(|json| (json, ChangeKind::Decoded)));
        } else if allowed.has(Types::ARRAY) && is_one_thing(text) && !is_other_number(trimmed, allowed) {
            // An array of one, of whatever the text can be.
            let inside = element(self.root, schema, 0).map(|inside| types(self.root, inside));
            let scalars = match inside {
                Some(inside) if inside.has(Types::TEXT) => vec![quoted(text)],
                Some(inside) => scalars(trimmed, inside).into_iter().map(|(json, _)| json).collect(),
                None => Vec::new(),
            };
            found.extend(scalars.into_iter().map(|json| (format!("[{json}]"), ChangeKind::ToArray)));
        }
        found
    }

    fn of_scalar(
        &self,
        place: TapeValue<'_>,
        schema: &Value,
        allowed: Types,
        kind: Types,
    ) -> Vec<(String, ChangeKind)> {
        let mut found = Vec::new();
        // As it was written: `1.10` is a version, `+49` a prefix. `1e3` could be either.
        let token = place.source.get(place.span()).unwrap_or_default();
        if allowed.has(Types::TEXT) && kind == Types::NUMBER && !is_scientific(token) {
            found.push((quoted(token), ChangeKind::ToText));
        }
        // `true` is a text or a number in other languages.
        let is_of_two = kind == Types::BOOLEAN && (allowed.has(Types::TEXT) || allowed.has(Types::NUMBER));
        if allowed.has(Types::ARRAY) && !is_of_two {
            let inside = element(self.root, schema, 0);
            if inside.is_some_and(|inside| types(self.root, inside).has(kind)) {
                found.push((format!("[{}]", place.json(&[])), ChangeKind::ToArray));
            }
        }
        found
    }

    /// An array or object that was encoded in a string, as JSON that fits the schema of this place.
    fn decoded(&mut self, text: &str, schema: &Value, allowed: Types) -> Option<String> {
        if self.case.level >= MAX_ENCODINGS {
            return None;
        }
        let ReadObject { tape, mut changes, end } =
            Reader::new(text, 0, None, self.case.max_depth).read().ok()?;
        let whole = blank_end(text, end).0 == text.len();
        let place = TapeValue { tape: &tape, root: 0, source: text };
        let kind = place.item()?.kind;
        let due = if kind == Kind::Object { Types::OBJECT } else { Types::ARRAY };
        if !whole || !allowed.has(due) {
            return None;
        }
        let twice = super::settle::duplicates(place, &mut changes).ok()?;
        let case = Case { level: self.case.level + 1, ..self.case };
        let root = self.root;
        let inner = Coercion { place, root, case, edits: twice, changes: &mut changes, inside: Vec::new() };
        let edits = inner.walk(schema).ok()?;
        self.inside = changes;
        Some(place.json(&edits))
    }
}

/// Whether a value could stand for a boolean or for nothing, which may stand here, and for something else: `1`, `"no"`, `"None"`.
fn is_boolean_or_nothing(place: TapeValue<'_>, item: Item, allowed: Types) -> bool {
    let text = match item.kind {
        Kind::Text => place.text(),
        Kind::Number => place.source.get(place.span()).unwrap_or_default().into(),
        _ => return false,
    };
    let text = text.trim();
    let is_own_word = ["true", "false"].iter().any(|word| text.eq_ignore_ascii_case(word));
    // Beside a choice `"True"`, the word itself may be meant.
    let like_boolean =
        matches!(text, "0" | "1") || is_like_literal(text) && (!is_own_word || allowed.has(Types::TEXT));
    allowed.has(Types::BOOLEAN) && like_boolean || allowed.has(Types::NULL) && is_nothing(text)
}

/// Whether a text is a number in a notation that is not JSON's, where one may stand: `+5`, `1_000`.
fn is_other_number(text: &str, allowed: Types) -> bool {
    let is_number = matches!(number::read(text), NumberReading::Other(_) | NumberReading::Wide(_));
    allowed.has(Types::NUMBER) && is_number
}

/// Whether a text is neither a list of several in some notation, nor a word for nothing.
fn is_one_thing(text: &str) -> bool {
    let one = !text.contains([',', ';', '|', '\n', '\t', '，', '、', '；', '｜']);
    one && !text.trim().is_empty() && !is_nothing(text.trim())
}

/// The numbers and booleans that a text can stand for.
fn scalars(text: &str, allowed: Types) -> Vec<(String, ChangeKind)> {
    let mut found = Vec::new();
    if allowed.has(Types::NUMBER) && number::is_strict(text) && is_finite(text) {
        found.push((text.to_owned(), ChangeKind::ToNumber));
    }
    if allowed.has(Types::BOOLEAN) {
        let words = ["true", "false"].into_iter().filter(|word| text.eq_ignore_ascii_case(word));
        found.extend(words.map(|word| (word.to_owned(), ChangeKind::ToBoolean)));
    }
    found
}

fn only(mut found: Vec<(String, ChangeKind)>) -> NewText {
    let first = found.pop();
    if found.is_empty() { first } else { None }
}

fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    write_text(text, &mut json);
    json
}

fn is_finite(number: &str) -> bool {
    number.parse::<f64>().is_ok_and(f64::is_finite)
}

fn is_scientific(token: &str) -> bool {
    let hexadecimal = token.contains(['x', 'X']);
    !hexadecimal && token.contains(['e', 'E'])
}
