//! Counting the tokens of a request.

/// The answer of `POST /v1/messages/count_tokens`.
#[must_use]
pub fn answer(tokens: u64) -> Vec<u8> {
    format!(r#"{{"input_tokens":{tokens}}}"#).into_bytes()
}
