//! Thoughts without a signature in the vendor's own request: where another vendor's model thought, the client has them from us, and brings them
//! back in every later request of its conversation. The vendor refuses them.
//!
//! They are cut out of the bytes, and nothing else is touched: the marks for the cache and all that only this dialect has must stay, or
//! one answer of another vendor would cost the conversation its cache for good.

use bytes::Bytes;
use serde_json::value::RawValue;

use super::message::{Block, Role, blocks, full, raw_blocks};
use super::request::MessagesRequest;
use crate::splice::{Splices, place};

impl MessagesRequest<'_> {
    /// The body without these thoughts. None if a message would be empty then.
    #[must_use]
    pub fn without_unsigned_thinking(&self, body: &Bytes) -> Option<Bytes> {
        let mut splices = Splices::default();
        let answers = self.messages.iter().filter(|message| message.role == Role::Assistant);
        for content in answers.filter_map(|message| message.content) {
            self.cut(content, &mut splices)?;
        }
        Some(splices.apply(body))
    }

    fn cut(&self, content: &RawValue, splices: &mut Splices) -> Option<()> {
        let gone: Vec<bool> = blocks(content).iter().map(is_unsigned).collect();
        if !gone.contains(&true) {
            return Some(());
        }
        let last_kept = gone.iter().rposition(|gone| !gone)?;
        let raw = raw_blocks(content);
        let places: Option<Vec<_>> = raw.iter().map(|block| place(self.body, block.get())).collect();
        let places = places.filter(|places| places.len() == gone.len())?;
        // With its comma: up to the block behind it, and at the end of the list from the block before.
        for (here, next) in (0..last_kept).filter(|at| gone.get(*at) == Some(&true)).map(|at| (at, at + 1)) {
            splices.replace(places.get(here)?.start..places.get(next)?.start, "");
        }
        let (kept, end) = (places.get(last_kept)?.end, places.last()?.end);
        if kept < end {
            splices.replace(kept..end, "");
        }
        Some(())
    }
}

fn is_unsigned(block: &Block<'_>) -> bool {
    (block.is("thinking") && full(block.signature).is_none())
        || (block.is("redacted_thinking") && full(block.data).is_none())
}
