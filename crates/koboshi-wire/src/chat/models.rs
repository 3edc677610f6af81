//! The list of models, as `GET /v1/models` gives it.

use serde::Serialize;

#[derive(Serialize)]
struct ModelList<'a> {
    object: &'static str,
    data: Vec<Model<'a>>,
}

#[derive(Serialize)]
struct Model<'a> {
    id: &'a str,
    object: &'static str,
    created: i64,
    owned_by: &'a str,
}

/// The list, as JSON. Of `provider/model` the owner is the provider, of other names Koboshi. When a model was made is not
/// known, so it says 0.
#[must_use]
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let models = names.into_iter().map(model);
    // Texts and numbers into memory: this cannot fail.
    serde_json::to_vec(&ModelList { object: "list", data: models.collect() }).unwrap_or_default()
}

/// One of them.
#[must_use]
pub fn one(name: &str) -> Vec<u8> {
    serde_json::to_vec(&model(name)).unwrap_or_default()
}

fn model(id: &str) -> Model<'_> {
    let owned_by = id.split_once('/').map_or("koboshi", |(provider, _)| provider);
    Model { id, object: "model", created: 0, owned_by }
}
