//! Recognises files of other programs: one message names the program, in place of one for each wrong line.

use crate::check::Problem;
use crate::source::Source;
use crate::tree::{Node, Raw};
use crate::words::text;

/// Keys at the top of LiteLLM's `config.yaml` that are none of ours.
const LITELLM: &[&str] = &["model_list", "litellm_settings", "router_settings", "general_settings"];

/// Whether a tree is the config of LiteLLM's proxy.
pub(crate) fn is_litellm(root: &Node) -> bool {
    litellm_key(root).is_some()
}

fn litellm_key(root: &Node) -> Option<&Node> {
    let Raw::Map(entries) = &root.value else { return None };
    let is_one = |name: &Node| matches!(&name.value, Raw::Text(name) if LITELLM.contains(&name.as_str()));
    entries.iter().map(|(name, _)| name).find(|name| is_one(name))
}

/// The problem that names the file's program.
pub(crate) fn check(source: &Source<'_>, root: &Node) -> Option<Problem> {
    let key = litellm_key(root)?;
    let Raw::Text(name) = &key.value else { return None };
    let message = text!(
        "this is a config of LiteLLM (`{name}`), not of Koboshi",
        "これは Koboshi ではなく LiteLLM の設定ファイルです（`{name}`）"
    );
    let file = source.name;
    let hint = text!(
        "`koboshi import litellm {file} -o koboshi.yaml` translates it",
        "`koboshi import litellm {file} -o koboshi.yaml` で変換できます"
    );
    Some(source.problem(key.spot, name, message, Some(hint)))
}
