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

/// Fields that are written from the form in any case: in Messages those about thinking, which must match the thoughts in the conversation.
const fn rewritten(dialect: Dialect) -> &'static [&'static str] {
    match dialect {
        Dialect::Messages => &["thinking", "context_management"],
        Dialect::Chat | Dialect::Responses | Dialect::Gemini => &[],
    }
}

/// Whole fields of the top level, as they were written.
pub(super) struct KeptFields<'a>(Vec<(String, &'a RawValue)>);

impl<'a> KeptFields<'a> {
    /// The fields that the form has no place for and the request's own vendor knows. They count as carried over.
    pub(super) fn of(request: &Request<'a>, form: &mut Form<'_>) -> Self {
        let mut kept = Vec::new();
        let rewritten = rewritten(request.dialect());
        form.left.retain(|left| {
            let is_whole =
                left.droppable || left.rule == "needs_logprobs" || passes(left.rule, request.dialect());
            let found = request.raw(&left.at).filter(|_| is_whole && !rewritten.contains(&left.at.as_str()));
            if let Some(raw) = found {
                kept.push((left.at.clone(), raw));
            }
            found.is_none()
        });
        Self(kept)
    }

    /// The body with these fields; without a stream the stream options are left out. The body has other fields: without a conversation there is
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
