//! What stays the same for one request whoever is asked: the request itself, the chain, and how a target's version of it is written.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use koboshi::breaker::Breaker;
use koboshi_config::gateway::Commit;
use koboshi_wire::chat::{ChatRequest, Corrected, Rewrite};

use crate::attempt::Shape;
use crate::core::Core;
use crate::journey::Journey;
use crate::plan::Plan;
use crate::reply::Disclosure;
use crate::story::Story;
use crate::target::Target;

/// What the loop guard changes in a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Steer {
    /// Added to the last tool result.
    pub(crate) note: Option<String>,
    /// No more tools in this turn.
    pub(crate) close: bool,
}

/// One request, whoever is asked.
pub(crate) struct Run<'r> {
    pub(crate) core: &'r Core,
    pub(crate) plan: &'r Plan,
    pub(crate) story: &'r Story,
    pub(crate) request: &'r ChatRequest<'r>,
    pub(crate) body: &'r Bytes,
    pub(crate) targets: &'r [Arc<Target>],
    pub(crate) breakers: &'r [Arc<Breaker>],
    pub(crate) shape: Shape,
    pub(crate) commit: Commit,
    pub(crate) steer: Steer,
    /// Something lesser is left to give.
    pub(crate) lesser: bool,
    pub(crate) facts: RefCell<Disclosure>,
}

/// What is different about an attempt.
pub(crate) enum Turn<'t> {
    /// Nothing.
    Plain,
    /// The answer is to go on with this text.
    Prefill(&'t str),
    /// The model is to mend its call.
    Reask(&'t [Corrected<'t>], &'t str),
}

impl<'r> Run<'r> {
    pub(crate) fn journey(&self) -> Journey<'_> {
        Journey::new(self.core, self.plan, self.story, self.targets, self.breakers, self.lesser)
    }

    /// The request as this target gets it: the client's bytes with only what must change changed.
    pub(crate) fn write(&self, target: &Target, turn: &Turn<'_>) -> Bytes {
        let mut rewrite = Rewrite::of(self.request, self.body);
        rewrite.model(&target.model);
        if self.request.stream() && !self.request.include_usage() && target.asks_usage {
            rewrite.include_usage();
        }
        if let Some(note) = &self.steer.note {
            rewrite.append_to_last_tool_result(note);
        }
        if self.steer.close {
            rewrite.tool_choice_none();
        }
        match turn {
            Turn::Plain => {}
            Turn::Prefill(text) => {
                rewrite.prefill(text);
            }
            Turn::Reask(broken, tool) => {
                rewrite.append_exchange(broken).force_tool(tool).parallel_off().stream(false);
            }
        }
        rewrite.finish()
    }

    pub(crate) fn disclose(&self, change: impl FnOnce(&mut Disclosure)) {
        change(&mut self.facts.borrow_mut());
    }

    pub(crate) fn facts(&self) -> Disclosure {
        self.facts.borrow().clone()
    }
}
