//! The arguments of a call as the object that this dialect wants.
//!
//! A model's broken text is neither dropped nor repaired: it is shown in one field, so that the model sees what it wrote.

use std::borrow::Cow;

use serde_json::json;
use serde_json::value::RawValue;

use crate::form::free_text;

/// The one field in which a text stands that is no JSON object.
pub(super) const RAW: &str = "_raw";

/// The arguments as the text of a JSON object: the same text if it is one. A call without any has an empty object.
pub(super) fn object(arguments: &str, is_free_text: bool) -> Cow<'_, str> {
    if is_free_text {
        return Cow::Owned(free_text::wrapped(arguments));
    }
    let trimmed = arguments.trim_ascii();
    if trimmed.is_empty() {
        return Cow::Borrowed("{}");
    }
    if is_object(trimmed) {
        Cow::Borrowed(trimmed)
    } else {
        Cow::Owned(json!({ RAW: arguments }).to_string())
    }
}

/// Whether a text is a JSON object.
pub(super) fn is_object(text: &str) -> bool {
    text.starts_with('{') && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// The same as a value.
pub(super) fn value(arguments: &str, is_free_text: bool) -> Box<RawValue> {
    let text = object(arguments, is_free_text).into_owned();
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}
