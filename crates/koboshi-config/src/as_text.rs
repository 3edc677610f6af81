//! Hints for a section that a user wrote as a text.
//!
//! Users write keys and passwords there, so the text itself is repeated only where it is surely the name of a file.

use crate::mask;
use crate::source::HIDDEN;
use crate::words::{Text, text, words};

/// The right spelling of a section, where its keys alone would not show it.
pub(crate) fn hint(path: &str, text: &str) -> Option<Text> {
    Some(match path {
        "keys" => words(
            "write a name and the hash of the key, as in `keys: {alice: {sha256: 64-DIGITS}}`; `printf %s THE-KEY | sha256sum` prints it",
            "`keys: {alice: {sha256: 64 桁の値}}` のように、名前とキーのハッシュを書いてください。ハッシュは `printf %s キー | sha256sum` で表示できます",
        )
        .into(),
        "keys.*" | "admin" => words(
            "write the hash of the key as `sha256`: `printf %s THE-KEY | sha256sum` prints it",
            "キーのハッシュを `sha256` に書いてください。`printf %s キー | sha256sum` で表示できます",
        )
        .into(),
        "providers.*" => words(
            "write its keys below, as in `{kind: openai, keys: [\"${OPENAI_API_KEY}\"]}`",
            "`{kind: openai, keys: [\"${OPENAI_API_KEY}\"]}` のように、中に設定項目を書いてください",
        )
        .into(),
        "store" => store(text),
        _ => return None,
    })
}

/// The hint for `store`. An address may hold a password, and a text that is no file name may be one.
fn store(text: &str) -> Text {
    if let Some(path) = mask::store_file(text) {
        return text!("write `store: {{path: {path}}}`", "`store: {{path: {path}}}` と書いてください");
    }
    if ["redis", "rediss", "valkey", "unix"].iter().any(|scheme| text.starts_with(&format!("{scheme}://"))) {
        return words(
            "write `store: {redis: \"${REDIS_URL}\"}`, with the address in an environment variable",
            "アドレスを環境変数に入れて、`store: {redis: \"${REDIS_URL}\"}` と書いてください",
        )
        .into();
    }
    words(
        "write `store: {path: FILE}` for a file, `store: {redis: ADDRESS}` for a Redis, or `store: memory`",
        "ファイルなら `store: {path: ファイル名}`、Redis なら `store: {redis: アドレス}`、メモリなら `store: memory` と書いてください",
    )
    .into()
}

/// What to write where one text is in place of a list. A text that may not be shown is not repeated here either.
pub(crate) fn as_list(quoted: &str) -> Text {
    if quoted.contains(HIDDEN) {
        return words(
            "it must be a list: put it in quotes and brackets, as in `[\"…\"]`",
            "リストにしてください。`[\"…\"]` のように引用符とかっこで囲みます",
        )
        .into();
    }
    text!("write `[\"{quoted}\"]`", "`[\"{quoted}\"]` と書いてください")
}
