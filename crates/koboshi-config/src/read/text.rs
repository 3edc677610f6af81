//! Texts, secrets and paths, single and in lists: variables are filled in, and secrets are not shown.
//!
//! The value of a variable is never shown, for any key: the file contains its name, and its value may be a secret.

use std::path::PathBuf;

use super::{ReadResult, Reader, Wrong, is_scalar, wrong};
use crate::arguments;
use crate::as_text::as_list;
use crate::at::At;
use crate::schema::{Form, Range, print_length};
use crate::secret::{ExpandError, expand, is_name, is_one_variable};
use crate::size;
use crate::source::HIDDEN;
use crate::spacing;
use crate::tree::{Node, Raw, Spot};
use crate::vocabulary::is_plain_variable;
use crate::words::{Text, text, tr, words};
use koboshi::wait::parse_duration;

/// Whether a value may be quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hide {
    /// It is no secret.
    No,
    /// It is one.
    Yes,
}

impl Reader<'_> {
    pub(super) fn text(&self, at: &At, node: &Node, hide: Hide) -> ReadResult<String> {
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

    /// Where a value is required, an empty default does not help.
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

    pub(super) fn in_form(&self, at: &At, node: &Node, form: Form, hide: Hide) -> ReadResult<String> {
        if let Some(wrong) = self.empty(at, node).filter(|_| !(form.holds)("")) {
            return Err(wrong);
        }
        let text = self.text(at, node, hide).map_err(|wrong| match &node.value {
            // In quotes it would be equally wrong.
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
            let (shown, form) = (&at.shown, form.description.get(language));
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
    ) -> ReadResult<Vec<String>> {
        let shown = &at.shown;
        let nodes = match &node.value {
            Raw::Null => return Ok(Vec::new()),
            Raw::List(nodes) => nodes,
            Raw::Text(text) => {
                let named = is_one_variable(text) && is_plain_variable(text.trim_matches(['$', '{', '}']));
                let open = hide == Hide::No || named;
                let quoted = self.source.quote(text);
                // Each word of a command is an item of its own.
                let quoted = if at.key.is_command() {
                    // In the list each stands in double quotes.
                    let escaped = |word: String| word.replace('\\', "\\\\").replace('"', "\\\"");
                    arguments::split(&quoted).into_iter().map(escaped).collect::<Vec<_>>().join("\", \"")
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
        nodes
            .iter()
            .map(|node| match self.secret_argument(at, node) {
                Some(wrong) => Err(wrong),
                None => self.in_form(at, node, form, hide),
            })
            .collect()
    }

    /// The arguments of an agent's program can be read by every user of the machine, and are printed: no place for a secret.
    fn secret_argument(&self, at: &At, node: &Node) -> Option<Wrong> {
        let Raw::Text(written) = &node.value else { return None };
        let is_command = at.key.path.starts_with("agents.") && at.key.name() == "command";
        let (start, name) =
            variables_of(written).find(|(_, name)| is_command && arguments::is_name_of_secret(name))?;
        let shown = if is_plain_variable(name) { name } else { HIDDEN };
        let message = text!(
            "`${{{shown}}}` looks like a secret, and every user of the machine can read the arguments of a program",
            "`${{{shown}}}` は秘密の値のようですが、プログラムの引数はマシンの全ユーザーから見えます"
        );
        let hint = text!(
            "give it to the agent as a variable: `env: [\"{shown}=${{{shown}}}\"]`",
            "環境変数としてエージェントに渡してください: `env: [\"{shown}=${{{shown}}}\"]`"
        );
        Some(Wrong { spot: self.inside(node, start, name.len() + 3), message, hint: Some(hint) })
    }

    pub(super) fn path(&self, at: &At, node: &Node) -> ReadResult<PathBuf> {
        let text = self.text(at, node, Hide::No)?;
        if text.trim().is_empty() {
            return Err(wrong(node, text!("`{}` is an empty path", "`{}` のパスが空です", at.shown), None));
        }
        Ok(self.folder.join(text))
    }

    pub(super) fn paths(&self, at: &At, node: &Node) -> ReadResult<Vec<PathBuf>> {
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
        // Users write the key itself in the braces.
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

    /// The place of a `${` within a value: the n-th one in the value is the n-th one in the file.
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

/// The hint for a variable that is not set. A made-up default of a key or an address would be used unchanged.
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

/// The hint for a text that does not have the form of its key.
fn hint_for(at: &At, form: Form, text: &str) -> Option<Text> {
    let size = Some(at.key.path).filter(|path| *path == "serve.memory").and_then(|_| size::meant(text));
    match size {
        Some(meant) => Some(text!("write `{meant}`", "`{meant}` と書いてください")),
        None if at.key.name() == "chain" => {
            spacing::of_item(text).or_else(|| (form.hint)(text).map(Text::from))
        }
        None => (form.hint)(text).map(Text::from).or_else(|| every(at, form, text)),
    }
}

/// `every 10分` and the like: a length in other words, in the form that the schedule takes.
fn every(at: &At, form: Form, text: &str) -> Option<Text> {
    let length = text.strip_prefix("every").filter(|_| at.key.path == "agents.*.when.schedule")?;
    let meant = format!("every {}", print_length(parse_duration(length.trim())?));
    (form.holds)(&meant).then(|| text!("write `{meant}`", "`{meant}` と書いてください"))
}

/// The variables of a text, each with the place of its `${`.
fn variables_of(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.match_indices("${").filter_map(|(at, _)| {
        let is_plain_text = at > 0 && text.as_bytes().get(at - 1) == Some(&b'$');
        let inside = text.get(at + 2..)?.split(['}', ':']).next()?;
        (!is_plain_text && is_name(inside)).then_some((at, inside))
    })
}

/// Counts line breaks, including the one after the text.
fn count_lines(above: &str) -> u64 {
    u64::try_from(above.matches('\n').count()).unwrap_or(u64::MAX).saturating_add(1)
}
