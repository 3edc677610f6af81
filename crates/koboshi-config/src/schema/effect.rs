//! The effective config as a tree for programs: every key of the table with its value, in the spelling of the file.
//!
//! It is made from the table, so no key is forgotten and no secret is shown: a secret always prints a mask. Unset keys
//! are `null`, and keys that are off are `"off"`.

use serde_json::{Map, Value as Json, json};

use super::{KEYS, Key, Shape, Value};
use crate::config::Config;

/// All settings of a config, defaults included.
///
/// ```
/// use koboshi_config::{Config, schema::in_effect};
///
/// let shown = in_effect(&Config::default());
/// assert_eq!(shown["serve"]["listen"], "127.0.0.1:4141");
/// assert_eq!(shown["admin"]["sha256"], serde_json::Value::Null);
/// ```
#[must_use]
pub fn in_effect(config: &Config) -> Json {
    let mut root = Map::new();
    for key in KEYS.iter() {
        match (&key.shape, key.entries()) {
            (Shape::Entry(entries), _) => {
                for name in (entries.names)(config) {
                    section(&mut root, &parts(key, &name));
                }
            }
            (Shape::Section { .. }, None) => {
                section(&mut root, &parts(key, ""));
            }
            (Shape::Section { .. }, Some(_)) => {}
            (_, None) => put(&mut root, key, config, ""),
            (_, Some(entries)) => {
                for name in (entries.names)(config) {
                    put(&mut root, key, config, &name);
                }
            }
        }
    }
    Json::Object(root)
}

/// The parts of a key's path, with the name of the entry as one of them, whatever characters it contains.
fn parts<'k>(key: &'k Key, entry: &'k str) -> Vec<&'k str> {
    key.path.split('.').map(|part| if part == "*" { entry } else { part }).collect()
}

/// The section at a path, added where it is missing; none where a value is in its place.
fn section<'m>(root: &'m mut Map<String, Json>, path: &[&str]) -> Option<&'m mut Map<String, Json>> {
    path.iter().try_fold(root, |above, part| above.entry(*part).or_insert_with(|| json!({})).as_object_mut())
}

fn put(root: &mut Map<String, Json>, key: &Key, config: &Config, entry: &str) {
    let path = parts(key, entry);
    if let (Some(value), Some((name, above))) = (key.get(config, entry), path.split_last())
        && let Some(section) = section(root, above)
    {
        section.insert((*name).to_owned(), shown(key, value));
    }
}

fn shown(key: &Key, value: Value) -> Json {
    match value {
        Value::Off if key.may_be_off() => json!("off"),
        Value::Off => Json::Null,
        Value::Count(count) => json!(count),
        Value::Number(number) => json!(number),
        Value::Flag(flag) => json!(flag),
        Value::Texts(texts) => json!(texts),
        Value::Secrets(secrets) => json!(secrets.iter().map(ToString::to_string).collect::<Vec<_>>()),
        Value::Paths(paths) => {
            json!(paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>())
        }
        value @ (Value::Length(_) | Value::Word(_) | Value::Text(_) | Value::Secret(_) | Value::Path(_)) => {
            json!(value.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load;

    #[test]
    fn every_key_is_there_and_no_secret_is() {
        let text = "providers: {my-one: {kind: openai, keys: [\"${KEY}\", \"${KEY}\"]}}\nroutes: {gpt-4.1: [my-one/a]}\n\
                    admin: {sha256: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08}\n";
        let config = load("koboshi.yaml", text, &|_| Some("sk-secret-123456".to_owned())).unwrap();
        let shown = in_effect(&config);
        assert_eq!(shown["providers"]["my-one"]["keys"], json!(["***", "***"]), "each is masked");
        assert_eq!(shown["routes"]["gpt-4.1"]["chain"], json!(["my-one/a"]), "a point in a name is no path");
        assert_eq!(shown["admin"]["sha256"], "***");
        let text = shown.to_string();
        assert!(!text.contains("sk-secret") && !text.contains("9f86d081"), "{text}");
        for key in KEYS.iter().filter(|key| !key.is_section() && key.entries().is_none()) {
            let found = key.path.split('.').try_fold(&shown, |above, part| above.get(part));
            assert!(found.is_some(), "{} is missing", key.path);
        }
    }
}
