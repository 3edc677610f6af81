//! What an answer cost, as far as it was stated: OpenAI's two dialects count the same things under other names.
//!
//! *Not here*: Anthropic's and Google's counts, which leave out of one number what these put into it.

use serde::de::MapAccess;

use crate::lenient::{Fields, Number, skip};
use crate::step::Usage;

/// The counts that were stated.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) input: Option<u64>,
    pub(crate) output: Option<u64>,
    pub(crate) cached: Option<u64>,
    pub(crate) stored: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

impl Tally {
    /// The cost, if any was stated.
    pub(crate) fn usage(&self) -> Option<Usage> {
        if self.input.is_none() && self.output.is_none() {
            return None;
        }
        Some(Usage {
            input: self.input.unwrap_or(0),
            output: self.output.unwrap_or(0),
            cached: self.cached.unwrap_or(0),
            stored: self.stored.unwrap_or(0),
            reasoning: self.reasoning.unwrap_or(0),
        })
    }
}

/// The details of the sent or of the received tokens.
#[derive(Debug, Default)]
pub(crate) struct Details {
    pub(crate) cached: Option<u64>,
    pub(crate) stored: Option<u64>,
    pub(crate) reasoning: Option<u64>,
}

impl<'a> Fields<'a> for Details {
    fn field<A: MapAccess<'a>>(&mut self, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "cached_tokens" => self.cached = map.next_value::<Number>()?.0,
            "cache_write_tokens" => self.stored = map.next_value::<Number>()?.0,
            "reasoning_tokens" => self.reasoning = map.next_value::<Number>()?.0,
            _ => skip(map)?,
        }
        Ok(())
    }
}
