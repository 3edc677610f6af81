//! Tools that a tab runs: offered → claimed → done, at most once.
//!
//! A claim is stored before it is sent, so of all tabs one runs the tool. When the tab that claimed it is gone, a tool that may run twice is
//! offered again; any other becomes `unknown`, and the model learns that.

use serde_json::{Value, json};

use super::client::{ToolResult, ToolStatus};
use super::event::{Body, ToolState};
use super::log::{Change, Log, Refusal};

impl Log {
    /// A tab wants to run a call. None where it has claimed it already.
    ///
    /// # Errors
    /// Another tab has it, or it is over.
    pub fn claim(&self, call: &str, by: &str) -> Result<Option<Change>, Refusal> {
        let known = self.open_call(call)?;
        match known.state {
            ToolState::Offered => Ok(self.call_is(call, ToolState::Claimed, Some(by), None)),
            ToolState::Claimed if known.by.as_deref() == Some(by) => Ok(None),
            _ => Err(Refusal::Taken),
        }
    }

    /// Whether a change lets a tab run a tool that must not run twice: then a lost write would be harm.
    #[must_use]
    pub fn claims_once(&self, change: &Change) -> bool {
        let claimed = change.events.iter().filter_map(|event| match &event.body {
            Body::ToolState { call, state: ToolState::Claimed, .. } => self.open_call(call).ok(),
            _ => None,
        });
        claimed.into_iter().any(|call| !self.may_run_again(&call.name))
    }

    /// Whether the client has declared that a tool of the running turn may run a second time.
    #[must_use]
    pub fn may_run_again(&self, name: &str) -> bool {
        let Some((spec, _)) = self.running() else { return false };
        spec.tools.iter().any(|tool| tool.name == name && tool.idempotent)
    }

    /// A tool has returned. None where its result is known: the first one counts.
    ///
    /// # Errors
    /// There is no such call.
    pub fn result(&self, result: &ToolResult, by: &str) -> Result<Option<Change>, Refusal> {
        let known = self.transcript().call(&result.call).ok_or(Refusal::UnknownCall)?;
        if known.state.is_final() || self.open_call(&result.call).is_err() {
            return Ok(None);
        }
        let by = known.by.as_deref().unwrap_or(by);
        let (state, content) = match result.status {
            ToolStatus::Ok => (ToolState::Done, result.content.clone()),
            ToolStatus::Error => (ToolState::Done, json!({"error": result.content})),
            ToolStatus::Unknown => (ToolState::Unknown, Value::Null),
        };
        Ok(self.call_is(&result.call, state, Some(by), Some(content).filter(|content| !content.is_null())))
    }

    /// The tab that claimed a call is gone, and stays away.
    #[must_use]
    pub fn claimer_is_gone(&self, call: &str) -> Option<Change> {
        let known = self.open_call(call).ok().filter(|known| known.state == ToolState::Claimed)?;
        let state = if self.may_run_again(&known.name) { ToolState::Offered } else { ToolState::Unknown };
        self.call_is(call, state, None, None)
    }

    /// No result came in time.
    #[must_use]
    pub fn expire(&self, call: &str) -> Option<Change> {
        let known = self.open_call(call).ok().filter(|known| !known.state.is_final())?;
        self.call_is(call, ToolState::Expired, known.by.as_deref(), None)
    }

    fn open_call(&self, call: &str) -> Result<&super::Call, Refusal> {
        let open = self.transcript().open.as_ref().ok_or(Refusal::UnknownCall)?;
        open.calls.iter().find(|known| known.call == call).ok_or(Refusal::UnknownCall)
    }

    fn call_is(
        &self,
        call: &str,
        state: ToolState,
        by: Option<&str>,
        content: Option<Value>,
    ) -> Option<Change> {
        self.tell(Body::ToolState { call: call.to_owned(), state, by: by.map(str::to_owned), content })
    }
}
