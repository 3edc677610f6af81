//! Texts, secrets and paths, single and in lists: variables are filled in, and what must not be shown is not.

use std::path::PathBuf;

use super::{Read, Reader, Wrong, is_scalar, wrong};
use crate::at::At;
use crate::check::Place;
use crate::schema::{Form, Range};
use crate::secret::{ExpandError, expand, is_one_variable};
use crate::tree::{Node, Raw, Spot};

/// What of a value must not be shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum Hide {
    /// It is no secret.
    Not,
    /// What it is filled in with; what is written is the name of a variable.
    Value,
    /// Everything from this place on.
    From(Place),
}

impl Hide {
    /// For a secret.
    pub(super) fn of(node: &Node) -> Self {
        if is_variable(node) { Self::Value } else { Self::From(node.spot.place()) }
    }

    fn place(self) -> Option<Place> {
        match self {
            Self::From(place) => Some(place),
            Self::Not | Self::Value => None,
        }
    }
}

fn is_variable(node: &Node) -> bool {
    matches!(&node.value, Raw::Text(text) if is_one_variable(text))
}

impl Reader<'_> {
    pub(super) fn text(&self, at: &At, node: &Node, hide: Hide) -> Read<String> {
        let Raw::Text(written) = &node.value else {
            let mut wrong = self.wrong_type(at, node, "text");
            wrong.hint = Some("put it in quotes".to_owned()).filter(|_| is_scalar(node));
            if let Hide::From(place) = hide {
                wrong.message = format!("`{}` must be text", at.shown);
                wrong.hide = Some(place);
            }
            return Err(wrong);
        };
        expand(written, self.lookup).map_err(|error| self.variable(node, &error, hide.place()))
    }

    pub(super) fn in_form(&self, at: &At, node: &Node, form: Form, hide: Hide) -> Read<String> {
        let text = self.text(at, node, hide).map_err(|wrong| match &node.value {
            // In quotes it would be as wrong as it is.
            Raw::Whole(count) if !(form.holds)(&count.to_string()) => {
                Wrong { hint: (form.hint)(&count.to_string()).map(str::to_owned), ..wrong }
            }
            _ => wrong,
        })?;
        if (form.holds)(&text) {
            return Ok(text);
        }
        let filled_in = matches!(&node.value, Raw::Text(written) if *written != text);
        let message = match (hide, filled_in) {
            (Hide::Not, _) => {
                format!("`{}` must be {}, not `{}`", at.shown, form.said, self.source.quote(&text))
            }
            (_, true) => format!("`{}` must be {}; what the variable holds is not", at.shown, form.said),
            (_, false) => format!("`{}` must be {}", at.shown, form.said),
        };
        let hint = (form.hint)(&text).map(str::to_owned);
        Err(Wrong { hide: hide.place(), ..wrong(node, message, hint) })
    }

    /// A list of texts. `secret` are never shown, and neither are their neighbours in the line.
    pub(super) fn list(
        &self,
        at: &At,
        node: &Node,
        (form, range): (Form, Range<u64>),
        secret: bool,
    ) -> Read<Vec<String>> {
        let nodes = match &node.value {
            Raw::Null => return Ok(Vec::new()),
            Raw::List(nodes) => nodes,
            Raw::Text(text) => {
                let open = !secret || is_one_variable(text);
                let hint = open.then(|| format!("write `[\"{}\"]`", self.source.quote(text)));
                let message = format!("`{}` must be a list, not a single text", at.shown);
                let hide = (!open).then_some(node.spot.place());
                return Err(Wrong { hide, ..wrong(node, message, hint) });
            }
            _ if secret => {
                let message = format!("`{}` must be a list", at.shown);
                return Err(Wrong { hide: Some(node.spot.place()), ..wrong(node, message, None) });
            }
            _ => return Err(self.wrong_type(at, node, "a list")),
        };
        let count = u64::try_from(nodes.len()).unwrap_or(u64::MAX);
        let open = nodes.iter().all(is_variable);
        let hide = match secret {
            false => Hide::Not,
            true if open => Hide::Value,
            true => Hide::From(node.spot.place()),
        };
        if !range.has(count) {
            let message = format!("`{}` must have {range} parts, not {count}", at.shown);
            return Err(Wrong { hide: hide.place(), ..wrong(node, message, None) });
        }
        nodes.iter().map(|node| self.in_form(at, node, form, hide)).collect()
    }

    pub(super) fn path(&self, at: &At, node: &Node) -> Read<PathBuf> {
        let text = self.text(at, node, Hide::Not)?;
        if text.trim().is_empty() {
            return Err(wrong(node, format!("`{}` is an empty path", at.shown), None));
        }
        Ok(self.folder.join(text))
    }

    pub(super) fn paths(&self, at: &At, node: &Node) -> Read<Vec<PathBuf>> {
        match &node.value {
            Raw::Null => Ok(Vec::new()),
            Raw::List(nodes) => nodes.iter().map(|node| self.path(at, node)).collect(),
            Raw::Text(text) => {
                let hint = Some(format!("write `[{}]`", self.source.quote(text)));
                Err(Wrong { hint, ..self.wrong_type(at, node, "a list of paths") })
            }
            _ => Err(self.wrong_type(at, node, "a list of paths")),
        }
    }

    /// A variable that cannot be filled in, at its own place within the value.
    fn variable(&self, node: &Node, error: &ExpandError, hide: Option<Place>) -> Wrong {
        let (at, mark, message, hint) = match error {
            ExpandError::Unset { name, at } => (
                at,
                name.len() + 3,
                format!("the environment variable `{name}` is not set"),
                format!("set it, or write `${{{name}:-default}}` for a value to use without it"),
            ),
            ExpandError::Empty { name, at } => (
                at,
                name.len() + 3,
                format!("the environment variable `{name}` is set, but empty"),
                format!("give it a value, or write `${{{name}:-}}` if empty is meant"),
            ),
            ExpandError::Open { at } => {
                (at, 2, "`${` without a `}`".to_owned(), "write `$${` for a plain `${`".to_owned())
            }
            ExpandError::Name { written, at } => (
                at,
                written.len() + 3,
                "what stands in `${…}` is no name of a variable".to_owned(),
                "write `${NAME}` or `${NAME:-default}`; defaults hold no variables".to_owned(),
            ),
        };
        Wrong { spot: self.inside(node, *at, mark), message, hint: Some(hint), hide }
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

/// Line breaks up to and with the one that follows the text.
fn count_lines(above: &str) -> u64 {
    u64::try_from(above.matches('\n').count()).unwrap_or(u64::MAX).saturating_add(1)
}
