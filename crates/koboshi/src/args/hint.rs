//! What arguments a schema asks for, in one short line that a model reads at once.
//!
//! The form is the one of type declarations: `{"city": string, "days"?: integer, "unit"?: "C" | "F"}`. It is a hint and no
//! schema: descriptions, patterns and bounds are left out, and what is too long or too deep is an ellipsis. Members that
//! must be there come first, so that they are not the ones that are cut.

use serde_json::{Map, Value};

use super::demand::resolve;
use super::schema::ToolSchema;

/// The longest hint, in characters.
pub const MAX_HINT_CHARS: usize = 600;

/// Objects within objects that are shown.
const MAX_DEPTH: usize = 3;

/// Choices that are shown of one place.
const MAX_CHOICES: usize = 12;

const MORE: &str = "…";

impl ToolSchema {
    /// The members that the schema declares and their types, at most [`MAX_HINT_CHARS`] characters; nothing where it
    /// declares none.
    ///
    /// ```
    /// use koboshi::args::ToolSchema;
    /// let schema = ToolSchema::parse(
    ///     r#"{"properties": {"days": {"type": "integer"}, "city": {"type": "string"}}, "required": ["city"]}"#,
    /// )?;
    /// assert_eq!(schema.hint(), r#"{"city": string, "days"?: integer}"#);
    /// # Ok::<(), koboshi::args::SchemaError>(())
    /// ```
    #[must_use]
    pub fn hint(&self) -> String {
        if self.takes_nothing() {
            return String::new();
        }
        let root = self.root();
        let mut hint = Hint { root, text: String::new(), room: MAX_HINT_CHARS };
        hint.place(root, MAX_DEPTH);
        hint.text
    }
}

/// A hint that is being written.
struct Hint<'s> {
    root: &'s Value,
    text: String,
    /// Characters that are left.
    room: usize,
}

impl Hint<'_> {
    /// Writes if all of it fits beside what must still be closed; whether it did.
    fn put(&mut self, piece: &str) -> bool {
        // Each open bracket may still need an ellipsis and its partner.
        const KEPT: usize = 4 * (MAX_DEPTH + 2);
        let length = piece.chars().count();
        let fits = length + KEPT <= self.room;
        if fits {
            self.close(piece);
        }
        fits
    }

    /// Writes what room was kept for.
    fn close(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.room = self.room.saturating_sub(piece.chars().count());
    }

    fn place(&mut self, schema: &Value, depth: usize) {
        let Some(schema) = resolve(self.root, schema) else { return self.close(MORE) };
        if let Some(choices) = choices(schema) {
            return self.either(&choices);
        }
        for word in ["anyOf", "oneOf"] {
            if let (Some(parts), None) =
                (schema.get(word).and_then(Value::as_array), schema.get("properties"))
            {
                return self.one_of(parts, depth);
            }
        }
        if let Some(members) = schema.get("properties").and_then(Value::as_object) {
            return self.object(schema, members, depth);
        }
        match schema.get("type") {
            Some(Value::String(name)) if name == "array" => self.array(schema, depth),
            Some(Value::String(name)) => self.word(name),
            Some(Value::Array(names)) => {
                let names: Vec<String> = names.iter().filter_map(Value::as_str).map(str::to_owned).collect();
                self.either(&names);
            }
            _ => self.word("any"),
        }
    }

    fn word(&mut self, word: &str) {
        if !self.put(word) {
            self.close(MORE);
        }
    }

    fn either(&mut self, words: &[String]) {
        for (at, word) in words.iter().enumerate() {
            let bar = if at == 0 { "" } else { " | " };
            if at == MAX_CHOICES || !self.put(&format!("{bar}{word}")) {
                return self.close(MORE);
            }
        }
    }

    fn one_of(&mut self, parts: &[Value], depth: usize) {
        for (at, part) in parts.iter().enumerate() {
            if at == MAX_CHOICES || at > 0 && !self.put(" | ") {
                return self.close(MORE);
            }
            match depth.checked_sub(1) {
                Some(depth) => self.place(part, depth),
                None => return self.close(MORE),
            }
        }
    }

    fn array(&mut self, schema: &Value, depth: usize) {
        let (Some(items), Some(depth)) =
            (schema.get("items").filter(|items| items.is_object()), depth.checked_sub(1))
        else {
            return self.word("array");
        };
        if !self.put("[") {
            return self.close(MORE);
        }
        self.place(items, depth);
        self.close(", …]");
    }

    fn object(&mut self, schema: &Value, members: &Map<String, Value>, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return self.word("object") };
        if !self.put("{") {
            return self.close(MORE);
        }
        let required = schema.get("required").and_then(Value::as_array);
        let is_required = |key: &str| required.is_some_and(|list| list.iter().any(|name| name == key));
        let (first, rest): (Vec<_>, Vec<_>) = members.iter().partition(|(key, _)| is_required(key));
        for (at, (key, member)) in first.into_iter().chain(rest).enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let mark = if is_required(key) { "" } else { "?" };
            if !self.put(&format!("{comma}{}{mark}: ", Value::from(key.as_str()))) {
                self.close(MORE);
                break;
            }
            self.place(member, depth);
        }
        self.close("}");
    }
}

fn choices(schema: &Value) -> Option<Vec<String>> {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Some(values.iter().take(MAX_CHOICES + 1).map(Value::to_string).collect());
    }
    schema.get("const").map(|value| vec![value.to_string()])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hint(schema: &Value) -> String {
        ToolSchema::compile(schema).unwrap().hint()
    }

    #[test]
    fn members_types_and_choices_are_shown() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "array", "items": {"type": "string"}},
                "any": {},
                "n": {"type": ["integer", "null"]},
                "o": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]},
                "r": {"$ref": "#/$defs/r"},
                "u": {"enum": ["C", "F"]},
                "z": {"anyOf": [{"type": "string"}, {"type": "boolean"}]},
            },
            "required": ["u"],
            "$defs": {"r": {"const": 5}},
        });
        assert_eq!(
            hint(&schema),
            r#"{"u": "C" | "F", "a"?: [string, …], "any"?: any, "n"?: integer | null, "o"?: {"x": number}, "r"?: 5, "z"?: string | boolean}"#
        );
        assert_eq!(hint(&json!({"type": "object"})), "");
    }

    #[test]
    fn a_hint_is_bounded_and_shows_what_must_be_there_first() {
        let mut members = Map::new();
        for n in 0..500 {
            members.insert(format!("member_{n}"), json!({"enum": ["x".repeat(n), "y"]}));
        }
        members.insert("zzz".to_owned(), json!({"type": "string"}));
        let wide = hint(&json!({"properties": members, "required": ["zzz"]}));
        assert!(wide.chars().count() <= MAX_HINT_CHARS, "{}", wide.len());
        assert!(wide.starts_with(r#"{"zzz": string, "#) && wide.ends_with("…}"), "{wide}");

        let itself =
            json!({"properties": {"next": {"$ref": "#"}, "or": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        let endless = hint(&itself);
        assert!(endless.chars().count() <= MAX_HINT_CHARS && endless.ends_with('}'), "{endless}");
    }
}
