//! What stays the same for one request whoever is asked: the request itself, the chain, and how a target's version of it is written.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bytes::Bytes;
use koboshi::breaker::Breaker;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi_config::gateway::Commit;
use koboshi_store::EntryKind;
use koboshi_wire::Dialect;
use koboshi_wire::any::{Edits, Mending, Request, Turn, WrittenRequest};
use koboshi_wire::form::trim::trim;
use serde_json::json;

use crate::attempt::Shape;
use crate::attempt::journey::{ChangeRequest, Journey, Open};
use crate::route::plan::Plan;
use crate::route::target::Target;
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::{Disclosure, Lack};
use crate::stream::forbidden::{ForbiddenCalls, RefusedAnswer};
use crate::stream::writer::LazyStreamWriter;

/// What the loop guard changes in a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Steer {
    /// Added to the last tool result.
    pub(crate) note: Option<String>,
    /// No more tools in this turn.
    pub(crate) close: bool,
    /// Calls that are refused.
    pub(crate) forbidden: Option<Box<ForbiddenCalls>>,
}

/// One request, whoever is asked.
pub(crate) struct Run<'r> {
    pub(crate) core: &'r CoreState,
    pub(crate) plan: &'r Plan,
    pub(crate) context: &'r RequestContext,
    pub(crate) request: &'r Request<'r>,
    pub(crate) body: &'r Bytes,
    pub(crate) targets: &'r [Arc<Target>],
    pub(crate) breakers: &'r [Arc<Breaker>],
    pub(crate) shape: Shape,
    pub(crate) commit: Commit,
    pub(crate) steer: Steer,
    /// Something lesser is left to give.
    pub(crate) can_degrade: bool,
    pub(crate) facts: RefCell<Disclosure>,
    /// Writes the frames of a stream.
    pub(crate) writer: &'r LazyStreamWriter<'r>,
    /// The journal knows what was left out in translation.
    pub(crate) noted: Cell<bool>,
    /// The journal knows that something of the answer did not come along.
    pub(crate) lost_media: Cell<bool>,
    /// So many tokens are left of the conversation, where it was too long.
    pub(crate) trimmed: Cell<Option<u64>>,
    /// What a target has refused of the conversation, where that can be mended.
    pub(crate) mending: Cell<Option<Mending>>,
    /// The answer that was refused last for what the guard forbids.
    pub(crate) refused: RefCell<RefusedAnswer>,
    /// How many answers were.
    pub(crate) refusals: Cell<u32>,
}

/// Of what a provider has refused, so much is left by the first trim and by every further one: its count is not known.
const LEFT_BY_A_TRIM: (u64, u64) = (7, 10);
/// Of a window that is known so much is used: our count is an estimate.
const LEFT_OF_A_WINDOW: (u64, u64) = (9, 10);

impl<'r> Run<'r> {
    pub(crate) fn journey(&self) -> Journey<'_> {
        Journey::new(self.core, self.plan, self.context, self.targets, self.breakers, self.can_degrade)
            .changing(self)
    }

    /// What this target speaks with this client.
    pub(crate) fn target_dialect(&self, target: &Target) -> Dialect {
        target.speaks(self.request.dialect())
    }

    /// Whether the target speaks the client's dialect.
    pub(crate) fn is_native(&self, target: &Target) -> bool {
        self.target_dialect(target) == self.request.dialect()
    }

    /// The request as this target gets it; none if it cannot be said in the target's dialect.
    pub(crate) fn write(&self, target: &Target, turn: &Turn<'_>) -> Option<Bytes> {
        let written = self.written(target, turn);
        if !written.left.is_empty() || !written.mends.is_empty() {
            self.note(target, &written);
        }
        if written.lacks().is_some() {
            return None;
        }
        Some(written.body)
    }

    fn written(&self, target: &Target, turn: &Turn<'_>) -> WrittenRequest {
        let wants_usage = self.request.stream() && target.asks_usage;
        let edits = Edits {
            model: &target.model,
            include_usage: wants_usage && !self.request.include_usage(),
            note: self.steer.note.as_deref(),
            close: self.is_closed(),
            trim: self.trimmed.get(),
            pinned: &self.plan.config.pinned,
            mend: self.mending.get().filter(|_| self.is_native(target)),
            turn: *turn,
        };
        self.request.write(self.body, target.to(self.request.dialect()), &edits)
    }

    /// Tells the journal what did not come along, once a request.
    fn note(&self, target: &Target, written: &WrittenRequest) {
        if self.noted.replace(true) && written.lacks().is_none() {
            return;
        }
        let left: Vec<_> = written
            .left
            .iter()
            .take(50)
            .map(|left| json!({"rule": left.rule, "at": left.at, "needed": !left.droppable}))
            .collect();
        let mends: Vec<_> =
            written.mends.iter().take(50).map(|mend| json!({"rule": mend.rule, "at": mend.at})).collect();
        if let Some(left) = written.lacks() {
            let lack = Lack { target: target.name.to_string(), rule: left.rule, at: left.at.clone() };
            self.disclose(|facts| facts.lacks.push(lack));
        }
        let refused = written.lacks().is_some();
        let text = match written.lacks() {
            Some(left) => format!(
                "{}: {} cannot get this request ({} at {})",
                self.context.id, target.name, left.rule, left.at
            ),
            None => format!("{}: translated for {}", self.context.id, target.name),
        };
        let data = json!({
            "from": self.request.dialect().name(),
            "to": self.target_dialect(target).name(),
            "left": left,
            "mends": mends,
            "request": &*self.context.id,
        });
        let what = if refused { "untranslatable" } else { "translated" };
        self.core.state.note(EntryKind::Remedy, what, target.scopes.target.as_ref(), text, data);
    }

    /// Tells the journal that a picture or a sound of the answer does not come along, once a request: no other dialect has a place for them.
    pub(crate) fn note_lost_media(&self, target: &Target) {
        if self.lost_media.replace(true) {
            return;
        }
        let text = format!("{}: what {} drew or spoke is left out", self.context.id, target.name);
        let data = json!({
            "from": self.target_dialect(target).name(),
            "to": self.request.dialect().name(),
            "left": [{"rule": "drop_media_output", "at": "answer", "needed": false}],
            "request": &*self.context.id,
        });
        self.core.state.note(EntryKind::Remedy, "translated", target.scopes.target.as_ref(), text, data);
    }

    /// Who answers, for the client.
    pub(crate) fn served_by(&self, open: &Open) {
        let target = &*open.target;
        let target_dialect = self.target_dialect(target);
        let translated = (target_dialect != self.request.dialect()).then(|| target_dialect.name());
        self.disclose(|facts| {
            facts.served_by(target);
            facts.translated = translated;
            match translated {
                None => facts.limited(&open.head),
                Some(_) => facts.limits.clear(),
            }
        });
    }

    pub(crate) fn disclose(&self, change: impl FnOnce(&mut Disclosure)) {
        change(&mut self.facts.borrow_mut());
    }

    pub(crate) fn facts(&self) -> Disclosure {
        self.facts.borrow().clone()
    }
}

impl ChangeRequest for Run<'_> {
    /// Whether what this target has refused was not the client's own request but what we made of it in another dialect.
    fn was_translated(&self, target: &Target, fault: &Fault) -> bool {
        fault.kind == Kind::InvalidRequest && !self.is_native(target)
    }

    /// Tells the journal that our words were refused, and that the request goes on elsewhere for that.
    fn note_refused_translation(&self, target: &Target) {
        let text = format!("{}: {} refused what was translated for it", self.context.id, target.name);
        let data = json!({
            "from": self.request.dialect().name(),
            "to": self.target_dialect(target).name(),
            "request": &*self.context.id,
        });
        self.core.state.note(
            EntryKind::Remedy,
            "refused_translation",
            target.scopes.target.as_ref(),
            text,
            data,
        );
    }

    /// The conversation is too long for this target: makes it shorter. False if nothing can be left out.
    fn trim(&self, target: &Target) -> bool {
        let all = self.request.needs().input_tokens;
        let now = self.trimmed.get().unwrap_or(all);
        let output = self.request.max_output().unwrap_or(1024);
        let window = target
            .facts
            .context_window
            .map(|window| (window / LEFT_OF_A_WINDOW.1 * LEFT_OF_A_WINDOW.0).saturating_sub(output));
        let less = now / LEFT_BY_A_TRIM.1 * LEFT_BY_A_TRIM.0;
        let goal = window.map_or(less, |window| if now > window { window } else { less });
        let Some(trimmed) = trim(&self.request.form(), goal, all, &self.plan.config.pinned)
            .filter(|trimmed| trimmed.after < now)
        else {
            return false;
        };
        self.trimmed.set(Some(goal));
        self.disclose(|facts| facts.trimmed = Some((all, trimmed.after)));
        let text = format!(
            "{}: the conversation was shortened from about {all} to {} tokens",
            self.context.id, trimmed.after
        );
        let data = json!({
            "before": all,
            "after": trimmed.after,
            "results": trimmed.cut_results,
            "images": trimmed.dropped_images,
            "turns": trimmed.dropped_turns,
            "request": &*self.context.id,
        });
        self.core.state.note(EntryKind::Remedy, "trim", target.scopes.target.as_ref(), text, data);
        true
    }

    /// The target has refused the client's own bytes: whether the conversation can be mended for it. Once a request.
    fn mend(&self, target: &Target, fault: &Fault) -> bool {
        let refuses = fault.kind == Kind::InvalidRequest && fault.sub != Some(Sub::Capability);
        if !refuses || self.mending.get().is_some() || !self.is_native(target) {
            return false;
        }
        let mending = self.request.mending(target.to(self.request.dialect()), &fault.detail);
        self.mending.set(mending);
        // What only the client's own bytes can say must not be lost for it.
        let mends = mending.is_some() && self.written(target, &Turn::Plain).lacks().is_none();
        if mends {
            // The journal is to know what was mended, whatever it knows already.
            self.noted.set(false);
        } else {
            self.mending.set(None);
        }
        mends
    }
}
