//! One object in place of a union: it names what its branches name. What all of a conjunction demand is demanded, what some of a choice
//! demand is not.
//!
//! Nothing is copied and nothing becomes a tree: branches, fields and definitions are borrowed as the text they are. A definition is taken in
//! once, so definitions that lead back to themselves end, and the work is linear in the length of the schema.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{REFUSED_BY_OPENAI, UNIONS};
use crate::intake::fields;
use crate::lenient::{Fields, List, Text, filled, otherwise, skip};

/// The number of branches of a union that are read, and how deep they may be nested.
const MAX_BRANCHES: usize = 256;
const MAX_DEPTH: usize = 8;

type RawMembers<'a> = BTreeMap<Cow<'a, str>, &'a RawValue>;

/// The object in place of a schema with a union at its top; none if the schema is no object.
pub(super) fn loosened(schema: &RawValue) -> Option<Box<RawValue>> {
    let mut union = Union { top: named(schema)?, ..Union::default() };
    union.take(schema, true, 0);
    let Union { top, properties, required, .. } = union;
    let mut object: BTreeMap<Cow<'_, str>, Piece<'_>> = top
        .into_iter()
        .filter(|(name, _)| !is_left_out(name))
        .map(|(name, raw)| (name, Piece::Raw(raw)))
        .collect();
    if !required.is_empty() {
        object.insert("required".into(), Piece::List(required));
    }
    let properties = properties.into_iter().map(|(name, all)| (name, Piece::any_of(all))).collect();
    object.insert("type".into(), Piece::Text("object"));
    object.insert("properties".into(), Piece::Object(properties));
    serde_json::value::to_raw_value(&object).ok()
}

/// The fields of the top that belong to the union, or would demand too much beside the object.
fn is_left_out(name: &str) -> bool {
    UNIONS.contains(&name)
        || REFUSED_BY_OPENAI.contains(&name)
        || ["required", "additionalProperties"].contains(&name)
}

/// The fields of an object by their names; of a name that comes twice the last counts.
fn named(raw: &RawValue) -> Option<RawMembers<'_>> {
    Some(fields(raw)?.into_iter().collect())
}

/// A piece of the object that is written.
#[derive(Serialize)]
#[serde(untagged)]
enum Piece<'a> {
    Raw(&'a RawValue),
    Text(&'static str),
    List(Vec<&'a RawValue>),
    Object(BTreeMap<Cow<'a, str>, Piece<'a>>),
}

impl<'a> Piece<'a> {
    /// A field that several branches name may be what any of them says.
    fn any_of(all: Vec<&'a RawValue>) -> Self {
        match all.as_slice() {
            [one] => Self::Raw(one),
            _ => Self::Object(BTreeMap::from([("anyOf".into(), Self::List(all))])),
        }
    }
}

/// What the branches of a union name.
#[derive(Default)]
struct Union<'a> {
    top: RawMembers<'a>,
    /// The lists of definitions that were referred to.
    lists: BTreeMap<String, RawMembers<'a>>,
    /// The definitions that were taken in, and whether their demands were.
    taken: BTreeSet<(Cow<'a, str>, bool)>,
    properties: BTreeMap<Cow<'a, str>, Vec<&'a RawValue>>,
    required: Vec<&'a RawValue>,
    seen: usize,
}

impl<'a> Union<'a> {
    /// Takes in a branch and those in it; `must` where its demands hold for every call.
    fn take(&mut self, branch: &'a RawValue, must: bool, depth: usize) {
        self.seen += 1;
        if self.seen > MAX_BRANCHES || depth > MAX_DEPTH {
            return;
        }
        let Ok(branch) = filled::<Branch<'a>>(branch.get()) else { return };
        if let Some(defined) = branch.reference.and_then(|name| self.defined(&name, must)) {
            self.take(defined, must, depth + 1);
        }
        self.name(branch.properties);
        if must {
            self.demand(branch.required);
        }
        for (kind, branches) in UNIONS.into_iter().zip(branch.unions) {
            for one in branches.0 {
                self.take(one, must && kind == "allOf", depth + 1);
            }
        }
    }

    fn name(&mut self, properties: Option<&'a RawValue>) {
        for (name, one) in properties.and_then(named).unwrap_or_default() {
            let known = self.properties.entry(name).or_default();
            if !known.iter().any(|known| known.get() == one.get()) {
                known.push(one);
            }
        }
    }

    fn demand(&mut self, required: Option<&'a RawValue>) {
        let names = required.and_then(|raw| serde_json::from_str::<List<&RawValue>>(raw.get()).ok());
        let mut known: BTreeSet<&str> = self.required.iter().map(|name| name.get()).collect();
        let new = names.unwrap_or_default().0.into_iter().filter(|name| known.insert(name.get()));
        self.required.extend(new);
    }

    /// A definition of the same schema that was not taken in before.
    fn defined(&mut self, reference: &Cow<'a, str>, must: bool) -> Option<&'a RawValue> {
        if !self.taken.insert((reference.clone(), must)) {
            return None;
        }
        let (list, name) = reference.strip_prefix("#/")?.split_once('/')?;
        if !self.lists.contains_key(list) {
            let definitions = self.top.get(list).and_then(|raw| named(raw)).unwrap_or_default();
            self.lists.insert(list.to_owned(), definitions);
        }
        self.lists.get(list)?.get(name).copied()
    }
}

/// What a branch says.
#[derive(Default)]
struct Branch<'a> {
    reference: Option<Cow<'a, str>>,
    properties: Option<&'a RawValue>,
    required: Option<&'a RawValue>,
    /// In the order of [`UNIONS`].
    unions: [FirstElements<'a>; UNIONS.len()],
}

impl<'a> Fields<'a> for Branch<'a> {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        let union = UNIONS.iter().position(|union| *union == name);
        match name {
            "$ref" => self.reference = map.next_value::<Text<'a>>()?.0,
            "properties" => self.properties = map.next_value()?,
            "required" => self.required = map.next_value()?,
            _ => match union.and_then(|at| self.unions.get_mut(at)) {
                Some(branches) => *branches = map.next_value()?,
                None => skip(map)?,
            },
        }
        Ok(())
    }
}

/// The first elements of a list, up to the limit of branches; of anything else none.
#[derive(Default)]
struct FirstElements<'a>(Vec<&'a RawValue>);

struct FirstVisitor;

impl<'a> Visitor<'a> for FirstVisitor {
    type Value = FirstElements<'a>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<FirstElements<'a>, A::Error> {
        let mut first = Vec::new();
        while first.len() < MAX_BRANCHES
            && let Some(one) = list.next_element()?
        {
            first.push(one);
        }
        while first.len() == MAX_BRANCHES && list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(FirstElements(first))
    }

    otherwise!(texts, numbers, flags, null, objects);
}

impl<'a> Deserialize<'a> for FirstElements<'a> {
    fn deserialize<D: Deserializer<'a>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(FirstVisitor)
    }
}
