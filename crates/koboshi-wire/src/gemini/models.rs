//! The list of models, as `GET /v1beta/models` gives it, and one of them.

use bytes::Bytes;
use serde::Serialize;

use crate::json;

/// What can be asked of each.
const METHODS: [&str; 3] = ["generateContent", "streamGenerateContent", "countTokens"];

#[derive(Serialize)]
struct ModelList<'a> {
    models: Vec<Model<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Model<'a> {
    name: String,
    base_model_id: &'a str,
    version: &'static str,
    display_name: &'a str,
    description: &'static str,
    supported_generation_methods: [&'static str; 3],
}

/// The list. How many tokens a model takes is not known here, so the field is left out.
#[must_use]
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> Bytes {
    json::bytes(&ModelList { models: names.into_iter().map(model).collect() })
}

/// One model: `GET /v1beta/models/{name}`.
#[must_use]
pub fn one(name: &str) -> Bytes {
    json::bytes(&model(name))
}

fn model(name: &str) -> Model<'_> {
    Model {
        name: format!("models/{name}"),
        base_model_id: name,
        version: "koboshi",
        display_name: name,
        description: "Answered through Koboshi.",
        supported_generation_methods: METHODS,
    }
}
