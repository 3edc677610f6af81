//! What was read, as a flat list: an object is its opening, its members and its end, one after the other.
//!
//! A list can be cut back to an earlier length, which is all that trying another reading takes, and it is walked
//! without recursion. Strings and numbers stay where they are in the text; only what had to be decoded is kept apart.
//! Changes that the schema demands are edits beside the list, so that it never moves.

use std::borrow::Cow;

use serde_json::{Map, Number, Value};

use super::body::{unescape, write_text};
use super::number;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Object,
    Array,
    End,
    Key,
    Text,
    Number,
    True,
    False,
    Null,
}

/// How a key, text or number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As strict JSON, between `start` and `end`.
    Plain,
    /// Otherwise; this is the decoded text or the strict number.
    Made(u32),
    /// A text without quotation marks.
    Word,
    /// A token that begins like a number and is none. Text where the schema wants text, nothing elsewhere.
    Loose,
    /// A number where the schema wants one, nothing elsewhere.
    Wide(u32),
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) kind: Kind,
    pub(super) form: Form,
    pub(super) start: usize,
    pub(super) end: usize,
    /// For an opening: the place after its end.
    pub(super) link: usize,
}

/// An item as it is kept: large texts have many.
#[derive(Debug, Clone, Copy)]
struct TapeItem {
    kind: Kind,
    form: Form,
    start: u32,
    end: u32,
    link: u32,
}

/// Texts beyond this are refused before they are read, so nothing is lost.
pub(super) const MAX_TEXT: usize = u32::MAX as usize;

fn small(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// What is put in the place of a value, or of a member if the place is a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Edit {
    /// Left out, with its value.
    Drop,
    /// Strict JSON.
    Json(String),
}

/// Edits in the order of the tape.
pub(super) type Edits = [(usize, Edit)];

#[derive(Debug, Default, Clone)]
pub(super) struct Tape {
    items: Vec<TapeItem>,
    pub(super) made: Vec<String>,
}

impl Tape {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    pub(super) fn get(&self, index: usize) -> Option<Item> {
        let TapeItem { kind, form, start, end, link } = *self.items.get(index)?;
        Some(Item { kind, form, start: start as usize, end: end as usize, link: link as usize })
    }

    pub(super) fn last(&self) -> Option<Item> {
        self.get(self.items.len().checked_sub(1)?)
    }

    pub(super) fn pop(&mut self) -> Option<Item> {
        let last = self.last()?;
        self.items.pop();
        Some(last)
    }

    pub(super) fn push(&mut self, kind: Kind, form: Form, start: usize, end: usize) {
        self.items.push(TapeItem { kind, form, start: small(start), end: small(end), link: 0 });
    }

    /// Moves the last item to an earlier place, over what is there.
    pub(super) fn put_last_at(&mut self, index: usize) {
        if let (Some(last), Some(place)) = (self.items.pop(), self.items.get_mut(index)) {
            *place = last;
        }
    }

    pub(super) fn make(&mut self, text: String) -> u32 {
        self.made.push(text);
        small(self.made.len() - 1)
    }

    /// Ends the value that was opened at this place.
    pub(super) fn close(&mut self, open: usize, start: usize, end: usize) {
        self.push(Kind::End, Form::Plain, start, end);
        let link = small(self.items.len());
        if let Some(item) = self.items.get_mut(open) {
            item.link = link;
            item.end = small(end);
        }
    }

    pub(super) fn cut(&mut self, items: usize, made: usize) {
        self.items.truncate(items);
        self.made.truncate(made);
    }

    /// The place after the value, or after the key.
    pub(super) fn after(&self, index: usize) -> usize {
        match self.get(index) {
            Some(Item { kind: Kind::Object | Kind::Array, link, .. }) => link,
            _ => index + 1,
        }
    }

    /// The places of the keys of an object.
    pub(super) fn keys(&self, object: usize) -> impl Iterator<Item = usize> {
        let mut next = object + 1;
        std::iter::from_fn(move || {
            let key = next;
            (self.get(key)?.kind == Kind::Key).then(|| {
                next = self.after(key + 1);
                key
            })
        })
    }

    /// The places of the elements of an array.
    pub(super) fn elements(&self, array: usize) -> impl Iterator<Item = usize> {
        let mut next = array + 1;
        std::iter::from_fn(move || {
            let element = next;
            (self.get(element)?.kind != Kind::End).then(|| {
                next = self.after(element);
                element
            })
        })
    }

    /// A key or a text, decoded; a number as strict JSON.
    pub(super) fn text<'a>(&'a self, item: Item, source: &'a str) -> Cow<'a, str> {
        let raw = source.get(item.start..item.end).unwrap_or_default();
        match item.form {
            Form::Made(index) | Form::Wide(index) => {
                Cow::Borrowed(self.made.get(index as usize).map(String::as_str).unwrap_or_default())
            }
            Form::Plain if item.kind != Kind::Number => unescape(raw),
            _ => Cow::Borrowed(raw),
        }
    }

    /// Writes one value as strict JSON.
    pub(super) fn write(&self, root: usize, source: &str, edits: &Edits, out: &mut String) {
        let mut edits = edits.iter().skip_while(|(place, _)| *place < root).peekable();
        let last = self.after(root);
        let mut open: Vec<Kind> = Vec::new();
        let mut index = root;
        while index < last {
            let Some(item) = self.get(index) else { return };
            let edit = edits.next_if(|(place, _)| *place == index).map(|(_, edit)| edit);
            if item.kind != Kind::End
                && !matches!(edit, Some(Edit::Drop))
                && !matches!(out.as_bytes().last(), None | Some(b'{' | b'[' | b':'))
            {
                out.push(',');
            }
            match edit {
                Some(Edit::Drop) => {
                    index = self.after(index + 1);
                    continue;
                }
                Some(Edit::Json(json)) => {
                    out.push_str(json);
                    index = self.after(index);
                    continue;
                }
                None => {}
            }
            match item.kind {
                Kind::Object | Kind::Array => {
                    out.push(if item.kind == Kind::Object { '{' } else { '[' });
                    open.push(item.kind);
                }
                Kind::End => out.push(if open.pop() == Some(Kind::Object) { '}' } else { ']' }),
                Kind::Key => {
                    self.write_string(item, source, out);
                    out.push(':');
                }
                Kind::Text => self.write_string(item, source, out),
                Kind::Number => out.push_str(&self.text(item, source)),
                Kind::True => out.push_str("true"),
                Kind::False => out.push_str("false"),
                Kind::Null => out.push_str("null"),
            }
            index += 1;
        }
    }

    fn write_string(&self, item: Item, source: &str, out: &mut String) {
        if item.form == Form::Plain {
            out.push('"');
            out.push_str(source.get(item.start..item.end).unwrap_or_default());
            out.push('"');
        } else {
            write_text(&self.text(item, source), out);
        }
    }

    /// One value as the schema check wants it.
    pub(super) fn value(&self, root: usize, source: &str, edits: &Edits) -> Value {
        let mut edits = edits.iter().skip_while(|(place, _)| *place < root).peekable();
        let last = self.after(root);
        let mut open: Vec<(Value, Option<String>)> = vec![(Value::Array(Vec::new()), None)];
        let mut index = root;
        while index < last {
            let Some(item) = self.get(index) else { break };
            let edit = edits.next_if(|(place, _)| *place == index).map(|(_, edit)| edit);
            match (edit, item.kind) {
                (Some(Edit::Drop), _) => {
                    index = self.after(index + 1);
                    continue;
                }
                (Some(Edit::Json(json)), _) => {
                    put(&mut open, serde_json::from_str(json).unwrap_or_default());
                    index = self.after(index);
                    continue;
                }
                (None, Kind::Object) => open.push((Value::Object(Map::new()), None)),
                (None, Kind::Array) => open.push((Value::Array(Vec::new()), None)),
                (None, Kind::End) => {
                    if let Some((value, _)) = open.pop() {
                        put(&mut open, value);
                    }
                }
                (None, Kind::Key) => {
                    if let Some((_, key)) = open.last_mut() {
                        *key = Some(self.text(item, source).into_owned());
                    }
                }
                (None, Kind::Text) => put(&mut open, Value::String(self.text(item, source).into_owned())),
                (None, Kind::Number) => put(&mut open, Value::Number(as_number(&self.text(item, source)))),
                (None, Kind::True) => put(&mut open, Value::Bool(true)),
                (None, Kind::False) => put(&mut open, Value::Bool(false)),
                (None, Kind::Null) => put(&mut open, Value::Null),
            }
            index += 1;
        }
        match open.pop() {
            Some((Value::Array(values), _)) => values.into_iter().next().unwrap_or_default(),
            _ => Value::Null,
        }
    }

    /// Whether two values are the same, members in the same order.
    pub(super) fn equal(&self, left: usize, right: usize, source: &str) -> bool {
        let length = self.after(left) - left;
        if self.after(right) - right != length {
            return false;
        }
        (0..length).all(|offset| match (self.get(left + offset), self.get(right + offset)) {
            (Some(left), Some(right)) if left.kind == right.kind => match left.kind {
                Kind::Number => number::equal(&self.text(left, source), &self.text(right, source)),
                Kind::Key | Kind::Text => self.text(left, source) == self.text(right, source),
                _ => true,
            },
            _ => false,
        })
    }
}

fn put(open: &mut [(Value, Option<String>)], value: Value) {
    match open.last_mut() {
        Some((Value::Array(values), _)) => values.push(value),
        Some((Value::Object(members), key)) => {
            members.insert(key.take().unwrap_or_default(), value);
        }
        _ => {}
    }
}

/// Near enough for a check against a schema; the text of the number is what is passed on.
fn as_number(token: &str) -> Number {
    if let Ok(whole) = token.parse::<i64>() {
        return whole.into();
    }
    if let Ok(whole) = token.parse::<u64>() {
        return whole.into();
    }
    let float = token.parse::<f64>().unwrap_or_default().clamp(f64::MIN, f64::MAX);
    Number::from_f64(float).unwrap_or_else(|| 0.into())
}
