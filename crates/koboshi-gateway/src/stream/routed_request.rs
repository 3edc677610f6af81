//! A request with its chain of targets: what stays the same whichever target is asked, how a target's version of it is written, and what became
//! of it so far ([`Progress`]).

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use bytes::Bytes;
use koboshi::breaker::Breaker;
use koboshi::fault::{Fault, Kind, Sub};
use koboshi_config::gateway::Commit;
use koboshi_store::EntryKind;
use koboshi_wire::Dialect;
use koboshi_wire::any::{AttemptMode, Edits, HistoryRepair, Request, WrittenRequest};
use koboshi_wire::form::trim::trim;
use serde_json::json;

use crate::attempt::Shape;
use crate::attempt::journey::{ChangeRequest, Journey, OpenAttempt};
use crate::route::plan::Plan;
use crate::route::target::Target;
use crate::shared::context::RequestContext;
use crate::shared::core_state::CoreState;
use crate::shared::disclosure::{Disclosure, Lack};
use crate::shared::notice::Notice;
use crate::stream::forbidden::{ForbiddenCalls, RefusedAnswer};
use crate::stream::writer::LazyStreamWriter;

/// What the loop guard changes in a request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct GuardChanges {
    /// A note for the last tool result.
    pub(crate) note: Option<String>,
    /// Whether the turn is closed: no more tools.
    pub(crate) close: bool,
    /// Calls that are refused.
    pub(crate) forbidden: Option<Box<ForbiddenCalls>>,
}

/// One request, whichever target is asked.
pub(crate) struct RoutedRequest<'r> {
    pub(crate) core: &'r CoreState,
    pub(crate) plan: &'r Plan,
    pub(crate) context: &'r RequestContext,
    pub(crate) request: &'r Request<'r>,
    pub(crate) body: &'r Bytes,
    pub(crate) targets: &'r [Arc<Target>],
    pub(crate) breakers: &'r [Arc<Breaker>],
    pub(crate) shape: Shape,
    pub(crate) commit: Commit,
    pub(crate) guard_changes: GuardChanges,
    /// Whether there is a lesser answer.
    pub(crate) can_degrade: bool,
    pub(crate) facts: RefCell<Disclosure>,
    /// Writes the frames of a stream.
    pub(crate) writer: &'r LazyStreamWriter<'r>,
    /// What became of it so far.
    pub(crate) progress: Progress,
}

/// What became of one request so far.
#[derive(Default)]
pub(crate) struct Progress {
    /// Whether the journal has what was left out in translation.
    pub(crate) noted: Cell<bool>,
    /// Whether the journal has that a part of the answer was lost.
    pub(crate) lost_media: Cell<bool>,
    /// How many tokens are left of the conversation, where it was too long.
    pub(crate) trimmed: Cell<Option<u64>>,
    /// What a target has refused of the conversation, where that can be mended.
    pub(crate) mending: Cell<Option<HistoryRepair>>,
    /// The last answer that was refused for a forbidden call.
    pub(crate) guard_refused: RefCell<RefusedAnswer>,
    /// How many answers were refused so.
    pub(crate) guard_refusals: Cell<u32>,
}

impl Progress {
    /// What a simpler model begins with: the conversation as it was shortened and mended, and how often the guard refused.
    fn for_simple(&self) -> Self {
        Self {
            trimmed: self.trimmed.clone(),
            mending: self.mending.clone(),
            guard_refusals: self.guard_refusals.clone(),
            ..Self::default()
        }
    }
}

/// How long an answer is assumed to be where the client sets no limit.
pub(crate) const ASSUMED_OUTPUT_TOKENS: u64 = 1024;
/// The share of a refused conversation that each trim leaves: the provider's count is not known.
const TRIM_SHARE: (u64, u64) = (7, 10);
/// The share of a known window that is used: our count is an estimate.
const WINDOW_SHARE: (u64, u64) = (9, 10);

impl<'r> RoutedRequest<'r> {
    /// The same request for the targets of the simpler model.
    pub(crate) fn for_simple<'s>(
        &self,
        targets: &'s [Arc<Target>],
        breakers: &'s [Arc<Breaker>],
        can_degrade: bool,
        facts: Disclosure,
    ) -> RoutedRequest<'s>
    where
        'r: 's,
    {
        RoutedRequest {
            core: self.core,
            plan: self.plan,
            context: self.context,
            request: self.request,
            body: self.body,
            targets,
            breakers,
            shape: self.shape,
            commit: self.commit,
            guard_changes: self.guard_changes.clone(),
            can_degrade,
            facts: RefCell::new(facts),
            writer: self.writer,
            progress: self.progress.for_simple(),
        }
    }

    pub(crate) fn journey(&self) -> Journey<'_> {
        Journey::new(self.core, self.plan, self.context, self.targets, self.breakers, self.can_degrade)
            .about(self.request)
            .changing(self)
    }

    /// The dialect of this target for this client.
    pub(crate) fn target_dialect(&self, target: &Target) -> Dialect {
        target.dialect_for(self.request.dialect())
    }

    /// Whether the target speaks the client's dialect.
    pub(crate) fn is_native(&self, target: &Target) -> bool {
        self.target_dialect(target) == self.request.dialect()
    }

    /// The request as this target gets it; none if the target's dialect cannot express it.
    pub(crate) fn write(&self, target: &Target, mode: &AttemptMode<'_>) -> Option<Bytes> {
        let written = self.written(target, mode);
        if !written.left.is_empty() || !written.mends.is_empty() {
            self.note(target, &written);
        }
        if written.lacks().is_some() {
            return None;
        }
        Some(written.body)
    }

    fn written(&self, target: &Target, mode: &AttemptMode<'_>) -> WrittenRequest {
        let wants_usage = self.request.stream() && target.asks_usage;
        let edits = Edits {
            model: &target.model,
            include_usage: wants_usage && !self.request.include_usage(),
            note: self.guard_changes.note.as_deref(),
            close: self.is_closed(),
            trim: self.progress.trimmed.get(),
            pinned: &self.plan.config.pinned,
            mend: self.progress.mending.get().filter(|_| self.is_native(target)),
            mode: *mode,
        };
        self.request.write(self.body, target.traits_for(self.request.dialect()), &edits)
    }

    /// Writes to the journal what was lost in translation, once per request.
    fn note(&self, target: &Target, written: &WrittenRequest) {
        if self.progress.noted.replace(true) && written.lacks().is_none() {
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

    /// Writes to the journal that a picture or a sound of the answer was lost, once per request: no other dialect can express them.
    pub(crate) fn note_lost_media(&self, target: &Target) {
        if self.progress.lost_media.replace(true) {
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

    /// Records the target that answers, for the client.
    pub(crate) fn served_by(&self, open: &OpenAttempt) {
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

impl ChangeRequest for RoutedRequest<'_> {
    /// Whether this target refused our translation and not the client's own request.
    fn was_translated(&self, target: &Target, fault: &Fault) -> bool {
        fault.kind == Kind::InvalidRequest && !self.is_native(target)
    }

    /// Writes to the journal that our translation was refused, and that another target is asked for that reason.
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

    /// Shortens the conversation for this target. False if nothing can be left out.
    fn trim(&self, target: &Target) -> bool {
        let all = self.request.needs().input_tokens;
        let now = self.progress.trimmed.get().unwrap_or(all);
        let output = self.request.max_output().unwrap_or(ASSUMED_OUTPUT_TOKENS);
        let window = target
            .facts
            .context_window
            .map(|window| (window / WINDOW_SHARE.1 * WINDOW_SHARE.0).saturating_sub(output));
        let less = now / TRIM_SHARE.1 * TRIM_SHARE.0;
        let goal = window.map_or(less, |window| if now > window { window } else { less });
        let Some(trimmed) = trim(&self.request.form(), goal, all, &self.plan.config.pinned)
            .filter(|trimmed| trimmed.after < now)
        else {
            return false;
        };
        self.progress.trimmed.set(Some(goal));
        self.disclose(|facts| facts.trimmed = Some((all, trimmed.after)));
        self.context.notify(|| Notice::Trimmed {
            tokens: now.saturating_sub(trimmed.after),
            messages: trimmed.dropped_turns as u64,
        });
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

    /// Whether the conversation can be mended for a target that refused the client's own bytes. Once per request.
    fn mend(&self, target: &Target, fault: &Fault) -> bool {
        let refuses = fault.kind == Kind::InvalidRequest && fault.sub != Some(Sub::Capability);
        if !refuses || self.progress.mending.get().is_some() || !self.is_native(target) {
            return false;
        }
        let mending = self.request.mending(target.traits_for(self.request.dialect()), &fault.detail);
        self.progress.mending.set(mending);
        // What only the client's own bytes can express must not be lost.
        let mends = mending.is_some() && self.written(target, &AttemptMode::Plain).lacks().is_none();
        if mends {
            // The journal must get what was mended, even if it has an entry already.
            self.progress.noted.set(false);
        } else {
            self.progress.mending.set(None);
        }
        mends
    }
}
