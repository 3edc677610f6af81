//! Settings that a request keeps when it is written again in its own dialect, to be mended or made shorter.
//!
//! The form has no place for them, but this vendor knows them, and some the next request depends on: without its `include` Codex gets no encrypted thoughts, and
//! without those its next request is refused. They go back as they were written.
//!
//! *Not here*: parts of fields that the form has a place for, which are left out by name as everywhere.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::request::Request;
use crate::dialect::Dialect;
use crate::form::Form;
use crate::numbers;
use crate::splice::quoted;

/// Fields that belong to what is written again: in Messages whether there is thinking, and its traces in the conversation.
const fn made_anew(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Messages => &["thinking", "context_management"],
        Dialect::Chat | Dialect::Responses | Dialect::Gemini => &[],
    }
}

/// Whole fields of the top level, as they were written.
pub(super) struct KeptFields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> KeptFields<'a> {
    /// What a form does not say of its request but its own vendor can be told. It is not left out then.
    pub(super) fn of(request: &Request<'a>, form: &mut Form<'_>) -> Self {
        let mut kept = Vec::new();
        let made_anew = made_anew(request.dialect());
        form.left.retain(|left| {
            let is_whole =
                left.droppable || left.rule == "needs_logprobs" || passes(left.rule, request.dialect());
            let found = request.raw(&left.at).filter(|_| is_whole && !made_anew.contains(&left.at.as_str()));
            if let Some(raw) = found {
                kept.push((left.at.clone(), raw));
            }
            found.is_none()
        });
        Self(kept)
    }

    /// The body with them; where no stream is asked for any more, nothing is said of it. It has fields of its own: without a conversation there is
    /// no request.
    pub(super) fn put_into(mut self, body: Bytes, streams: bool) -> Bytes {
        self.0.retain(|(name, _)| streams || name != "stream_options");
        let Some(rest) = body.strip_prefix(b"{").filter(|_| !self.0.is_empty()) else { return body };
        let mut all = Vec::with_capacity(body.len() + 64 * self.0.len());
        all.push(b'{');
        for (name, raw) in &self.0 {
            all.extend_from_slice(format!("{}:{},", quoted(name), raw.get()).as_bytes());
        }
        all.extend_from_slice(rest);
        all.into()
    }
}

/// Whether a number that we cannot read goes back to the client's own vendor. Where a limit is required, one is written in its place.
fn passes(rule: &str, dialect: Dialect) -> bool {
    rule == numbers::RULE && !dialect.requires_output_limit()
}
