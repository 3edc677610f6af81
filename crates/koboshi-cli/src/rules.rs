//! Loads the built-in rules and the user's rule files.

use std::path::PathBuf;

use koboshi::classify::{RuleSource, Rules};
use koboshi_config::words::Text;

use crate::Failure;

/// Larger rule files are refused: they are written by hand.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) fn load(files: &[PathBuf]) -> Result<Rules, Failure> {
    let mut texts = Vec::new();
    for path in files {
        let name = path.display().to_string();
        let unreadable = |en: String, ja: String| {
            Failure::of(Text::new(
                format!("cannot read rule file {name}: {en}"),
                format!("ルールファイル {name} を読み取れません: {ja}"),
            ))
        };
        let failed = |error: std::io::Error| unreadable(error.to_string(), error.to_string());
        let size = std::fs::metadata(path).map_err(failed)?.len();
        if size > MAX_BYTES {
            let en = format!("it has {size} bytes, {MAX_BYTES} are the most");
            return Err(unreadable(en, format!("{size} バイトあります（最大 {MAX_BYTES} バイト）")));
        }
        let text = std::fs::read_to_string(path).map_err(failed)?;
        texts.push((name, text));
    }
    let sources: Vec<_> = texts.iter().map(|(name, text)| RuleSource { name, text }).collect();
    Ok(Rules::with_user(&sources)?)
}
