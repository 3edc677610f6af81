//! Counting the tokens of a request.

use bytes::Bytes;

/// The answer of `POST /v1/responses/input_tokens`.
#[must_use]
pub fn answer(tokens: u64) -> Bytes {
    format!(r#"{{"object":"response.input_tokens","input_tokens":{tokens}}}"#).into()
}
