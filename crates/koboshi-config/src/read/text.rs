//! Texts, secrets and paths, single and in lists: variables are filled in, and what must not be shown is not.
//!
//! What a variable holds is never shown, of whatever key: the file says its name, and its value may be a secret.

use std::path::PathBuf;

use super::{Read, Reader, Wrong, is_scalar, wrong};
use crate::as_text::as_list;
use crate::at::At;
use crate::schema::{Form, Range};
use crate::secret::{ExpandError, expand, is_name, is_one_variable};
use crate::size;
use crate::source::HIDDEN;
use crate::spacing;
use crate::tree::{Node, Raw, Spot};
use crate::vocabulary::is_plain_variable;
use crate::words::{Text, text, tr, words};

/// Whether a value may be quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hide {
    /// It is no secret.
    No,
    /// It is one.
    Yes,
}

impl Reader<'_> {
    pub(super) fn text(&self, at: &At, node: &Node, hide: Hide) -> Read<String> {
        let Raw::Text(written) = &node.value else {
            let mut wrong = self.wrong_type(at, node, |language| tr!(language, "text", "文字列"));
            wrong.hint = Some(Text::from(words("put it in quotes", "引用符で囲んでください")))
                .filter(|_| is_scalar(node));
            if hide == Hide::Yes {
                wrong.message = text!("`{}` must be text", "`{}` は文字列にしてください", at.shown);
            }
            return Err(wrong);
        };
        expand(written, self.lookup).map_err(|error| self.variable(node, &error, hide))
    }

    /// Where nothing is no value, an empty default is no way out.
    fn empty(&self, at: &At, node: &Node) -> Option<Wrong> {
        let Raw::Text(written) = &node.value else { return None };
        let inside = written.strip_prefix("${")?.strip_suffix('}')?;
        let (name, default) =
            inside.split_once(":-").map_or((inside, None), |(name, default)| (name, Some(default)));
        let is_set = (self.lookup)(name);
        if !is_name(name)
            || default.is_some_and(|default| !default.is_empty())
            || is_set.as_ref().is_some_and(|value| !value.is_empty())
        {
            return None;
        }
        let (shown, key) = (if is_plain_variable(name) { name } else { HIDDEN }, at.key.name());
        let (message, hint) = match (is_set.is_some(), default) {
            (true, _) => (
                text!(
                    "the environment variable `{shown}` is set, but empty", "環境変数 `{shown}` の値が空です"
                ),
                text!("give it a value, or take `{key}` out", "値を設定するか、`{key}` を削除してください"),
            ),
            (false, Some(_)) => (
                text!(
                    "the environment variable `{shown}` is not set, and its default is empty",
                    "環境変数 `{shown}` が設定されておらず、既定値も空です"
                ),
                text!("set it, or take `{key}` out", "設定するか、`{key}` を削除してください"),
            ),
            (false, None) => return None,
        };
        Some(wrong(node, message, Some(hint)))
    }

    pub(super) fn in_form(&self, at: &At, node: &Node, form: Form, hide: Hide) -> Read<String> {
        if let Some(wrong) = self.empty(at, node).filter(|_| !(form.holds)("")) {
            return Err(wrong);
        }
        let text = self.text(at, node, hide).map_err(|wrong| match &node.value {
            // In quotes it would be as wrong as it is.
            Raw::Whole(count) if !(form.holds)(&count.to_string()) => {
                Wrong { hint: hint_for(at, form, &count.to_string()), ..wrong }
            }
            _ => wrong,
        })?;
        if (form.holds)(&text) {
            return Ok(text);
        }
        let filled_in = matches!(&node.value, Raw::Text(written) if *written != text);
        let quoted = self.source.quote(&text);
        let message = Text::of(|language| {
            let (shown, form) = (&at.shown, form.said.get(language));
            match (hide, filled_in) {
                (_, true) => tr!(
                    language,
                    "`{shown}` must be {form}; what the variable holds is not",
                    "`{shown}` は{form}にしてください（環境変数の値がその形ではありません）"
                ),
                (Hide::No, false) => tr!(
                    language,
                    "`{shown}` must be {form}, not `{quoted}`",
                    "`{shown}` は{form}にしてください（現在: `{quoted}`）"
                ),
                (Hide::Yes, false) => {
                    tr!(language, "`{shown}` must be {form}", "`{shown}` は{form}にしてください")
                }
            }
        });
        let hint = hint_for(at, form, &text);
        Err(wrong(node, message, hint))
    }

    /// A list of texts. Secrets among them are never shown.
    pub(super) fn list(
        &self,
        at: &At,
        node: &Node,
        (form, range): (Form, Range<u64>),
        hide: Hide,
    ) -> Read<Vec<String>> {
        let shown = &at.shown;
        let nodes = match &node.value {
            Raw::Null => return Ok(Vec::new()),
            Raw::List(nodes) => nodes,
            Raw::Text(text) => {
                let named = is_one_variable(text) && is_plain_variable(text.trim_matches(['$', '{', '}']));
                let open = hide == Hide::No || named;
                let quoted = self.source.quote(text);
                // A command with its arguments is a word for each.
                let quoted = if at.key.name() == "token_command" {
                    quoted.split_whitespace().collect::<Vec<_>>().join("\", \"")
                } else {
                    quoted
                };
                let hint = if open {
                    as_list(&quoted)
                } else {
                    words(
                        "write a list that takes it from an environment variable: `[\"${NAME}\"]`",
                        "環境変数から読み込むリストにしてください: `[\"${NAME}\"]`",
                    )
                    .into()
                };
                let message = text!(
                    "`{shown}` must be a list, not a single text",
                    "`{shown}` は 1 つの文字列ではなくリストにしてください"
                );
                return Err(wrong(node, message, Some(hint)));
            }
            _ if hide == Hide::Yes => {
                return Err(wrong(
                    node,
                    text!("`{shown}` must be a list", "`{shown}` はリストにしてください"),
                    None,
                ));
            }
            _ => return Err(self.wrong_type(at, node, |language| tr!(language, "a list", "リスト"))),
        };
        let count = u64::try_from(nodes.len()).unwrap_or(u64::MAX);
        if !range.has(count) {
            let message = Text::of(|language| {
                let range = range.say(language);
                tr!(
                    language,
                    "`{shown}` must have {range} parts, not {count}",
                    "`{shown}` の要素数は {range}にしてください（現在: {count}）"
                )
            });
            return Err(wrong(node, message, None));
        }
        nodes.iter().map(|node| self.in_form(at, node, form, hide)).collect()
    }

    pub(super) fn path(&self, at: &At, node: &Node) -> Read<PathBuf> {
        let text = self.text(at, node, Hide::No)?;
        if text.trim().is_empty() {
            return Err(wrong(node, text!("`{}` is an empty path", "`{}` のパスが空です", at.shown), None));
        }
        Ok(self.folder.join(text))
    }

    pub(super) fn paths(&self, at: &At, node: &Node) -> Read<Vec<PathBuf>> {
        let paths = |language| tr!(language, "a list of paths", "パスのリスト");
        match &node.value {
            Raw::Null => Ok(Vec::new()),
            Raw::List(nodes) => nodes.iter().map(|node| self.path(at, node)).collect(),
            Raw::Text(text) => {
                let quoted = self.source.quote(text);
                let hint = Some(as_list(&quoted));
                Err(Wrong { hint, ..self.wrong_type(at, node, paths) })
            }
            _ => Err(self.wrong_type(at, node, paths)),
        }
    }

    /// A variable that cannot be filled in, at its own place within the value.
    fn variable(&self, node: &Node, error: &ExpandError, hide: Hide) -> Wrong {
        // People write the key itself in the braces.
        let shown = |name: &str| if is_plain_variable(name) { name.to_owned() } else { "***".to_owned() };
        let (at, mark, message, hint) = match error {
            ExpandError::Unset { name, at } => (
                at,
                name.len() + 3,
                text!(
                    "the environment variable `{}` is not set",
                    "環境変数 `{}` が設定されていません",
                    shown(name)
                ),
                about_unset(&shown(name), hide),
            ),
            ExpandError::Empty { name, at } => (
                at,
                name.len() + 3,
                text!(
                    "the environment variable `{}` is set, but empty",
                    "環境変数 `{}` の値が空です",
                    shown(name)
                ),
                text!(
                    "give it a value, or write `${{{}:-}}` if empty is meant",
                    "値を設定するか、空でよければ `${{{}:-}}` と書いてください",
                    shown(name)
                ),
            ),
            ExpandError::Open { at } => (
                at,
                2,
                text!("`${{` without a `}}`", "`${{` に対応する `}}` がありません"),
                text!("write `$${{` for a plain `${{`", "`${{` という文字そのものは `$${{` と書いてください"),
            ),
            ExpandError::Name { written, at } => (
                at,
                written.len() + 3,
                text!(
                    "what stands in `${{…}}` is no name of a variable",
                    "`${{…}}` の中が環境変数名ではありません"
                ),
                text!(
                    "write `${{NAME}}` or `${{NAME:-default}}`; defaults hold no variables",
                    "`${{NAME}}` または `${{NAME:-default}}` と書いてください（既定値に変数は使えません）"
                ),
            ),
        };
        Wrong { spot: self.inside(node, *at, mark), message, hint: Some(hint) }
    }

    /// The place of a `${` within a value: the same one that is the n-th in what was written.
    fn inside(&self, node: &Node, at: usize, chars: usize) -> Spot {
        let Raw::Text(value) = &node.value else { return node.spot };
        let before = value.get(..at).unwrap_or_default().matches("${").count();
        let written = node.spot.start.and_then(|start| self.source.text.get(start..)).unwrap_or_default();
        let Some((offset, _)) = written.match_indices("${").nth(before) else { return node.spot };
        let lead = written.get(..offset).unwrap_or_default();
        let count = |text: &str| u64::try_from(text.chars().count()).unwrap_or(u64::MAX);
        let (line, column) = match lead.rsplit_once('\n') {
            Some((above, left)) => (node.spot.line + count_lines(above), count(left) + 1),
            None => (node.spot.line, node.spot.column.saturating_add(count(lead))),
        };
        Spot { line, column, start: None, chars: u64::try_from(chars).unwrap_or(1) }
    }
}

/// What to do about a variable that is not set. A made-up default of a key or an address would be taken as it stands.
fn about_unset(name: &str, hide: Hide) -> Text {
    if name == HIDDEN {
        return words("set it", "設定してください").into();
    }
    let port = (name.contains("REDIS") && name.ends_with("PORT")).then_some("6379");
    match (port, hide) {
        (Some(port), _) => text!(
            "set it (`export {name}=…`), or write `${{{name}:-{port}}}`",
            "設定するか（`export {name}=…`）、`${{{name}:-{port}}}` と書いてください"
        ),
        (None, Hide::Yes) => {
            text!("set it (`export {name}=…`)", "設定してください（`export {name}=…`）")
        }
        (None, Hide::No) => text!(
            "set it (`export {name}=…`), or put a value to use without it behind `:-`, as in `${{{name}:-VALUE}}`",
            "設定するか（`export {name}=…`）、設定されていないときの値を `${{{name}:-値}}` の形で書いてください"
        ),
    }
}

/// What to write in place of a text that has not the form of its key.
fn hint_for(at: &At, form: Form, text: &str) -> Option<Text> {
    let size = Some(at.key.path).filter(|path| *path == "serve.memory").and_then(|_| size::meant(text));
    match size {
        Some(meant) => Some(text!("write `{meant}`", "`{meant}` と書いてください")),
        None if at.key.name() == "chain" => {
            spacing::of_item(text).or_else(|| (form.hint)(text).map(Text::from))
        }
        None => (form.hint)(text).map(Text::from),
    }
}

/// Line breaks up to and with the one that follows the text.
fn count_lines(above: &str) -> u64 {
    u64::try_from(above.matches('\n').count()).unwrap_or(u64::MAX).saturating_add(1)
}
