//! The list of models, as `GET /v1/models` gives it to clients of this dialect.

use serde::Serialize;

/// When a model was made is not known; the vendor uses this time for that.
const UNKNOWN: &str = "1970-01-01T00:00:00Z";

#[derive(Serialize)]
struct ModelList<'a> {
    data: Vec<Model<'a>>,
    has_more: bool,
    first_id: Option<&'a str>,
    last_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Model<'a> {
    r#type: &'static str,
    id: &'a str,
    display_name: &'a str,
    created_at: &'static str,
}

impl<'a> Model<'a> {
    const fn of(id: &'a str) -> Self {
        Self { r#type: "model", id, display_name: id, created_at: UNKNOWN }
    }
}

/// The list, as JSON, on one page.
#[must_use]
pub fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<u8> {
    let data: Vec<Model<'a>> = names.into_iter().map(Model::of).collect();
    let first_id = data.first().map(|model| model.id);
    let last_id = data.last().map(|model| model.id);
    // Texts into memory: this cannot fail.
    serde_json::to_vec(&ModelList { data, has_more: false, first_id, last_id }).unwrap_or_default()
}

/// One model, as `GET /v1/models/{id}` gives it.
#[must_use]
pub fn one(name: &str) -> Vec<u8> {
    serde_json::to_vec(&Model::of(name)).unwrap_or_default()
}
