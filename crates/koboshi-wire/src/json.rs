//! JSON that we write ourselves: texts, numbers and maps with text keys, into memory. Neither can fail, so nothing here does.

use bytes::Bytes;
use serde::Serialize;

/// What a small answer takes without growing.
const USUAL: usize = 128;

/// A value as a body.
pub(crate) fn bytes(value: &impl Serialize) -> Bytes {
    let mut text = Vec::with_capacity(USUAL);
    write(&mut text, value);
    text.into()
}

/// A value behind what stands there.
pub(crate) fn write(text: &mut Vec<u8>, value: &impl Serialize) {
    let written = serde_json::to_writer(text, value);
    debug_assert!(written.is_ok());
}
