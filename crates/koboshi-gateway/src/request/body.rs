//! Reads the body of a request, within the limits of size, time and memory.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use koboshi_wire::http1::Fields;

use crate::http::body::{self, BodyError, BodyLimits};
use crate::http::exchange::Request;
use crate::http::memory::MemoryShare;
use crate::route::plan::Plan;
use crate::shared::core_state::CoreState;

/// Whether the body is declared as JSON.
pub(crate) fn is_json(headers: &Fields) -> bool {
    let kind = headers.text(CONTENT_TYPE).unwrap_or_default();
    // The usual spelling.
    if kind == "application/json" {
        return true;
    }
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json")
}

/// Reads the body of a request, within its limits.
pub(crate) async fn read_body(
    core: &CoreState,
    plan: &Plan,
    request: &Request,
    max_bytes: usize,
    share: &mut MemoryShare,
) -> Result<Bytes, BodyError> {
    let memory = core.state.memory_limit(plan);
    body::read(&request.connection, BodyLimits { max_bytes, memory, share }, plan.config.serve.body_time)
        .await
}
