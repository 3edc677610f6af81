//! The live feed as server-sent events: `entry` for each journal entry, `lost` where the reader was too slow.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use koboshi_wire::chat::frames::COMMENT;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use super::{AdminRequest, access, journal};
use crate::http::response_future::ResponseFuture;
use crate::observe::feed::FeedEvent;
use crate::reply::refusal::Refusal;
use crate::reply::stream_head;
use crate::shared::disclosure::Disclosure;

/// After this long without an entry, a comment keeps the connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// New journal entries, as they are written.
#[cfg_attr(test, utoipa::path(get, path = super::paths::FEED, tag = "journal",
    params(("what" = Option<String>, Query, description = "As for the journal"),
           ("kind" = Option<String>, Query, description = "As for the journal"),
           ("key" = Option<String>, Query, description = "As for the journal")),
    responses((status = 200, content_type = "text/event-stream",
        description = "Events `entry` (an entry of the journal) and `lost` ({\"lost\": n}, entries that were not read in time)", body = String))))]
pub(super) fn watch(request: &AdminRequest<'_>, query: &str) -> Result<ResponseFuture, Refusal> {
    let query = journal::parse(query, request.core.state.wall())?;
    let Some(mut watcher) = request.core.state.feed.watch() else {
        return Err(Refusal::feed_full());
    };
    let (state, session) = (Arc::clone(&request.core.state), request.session.clone());
    let head = stream_head(request.context, &Disclosure::default());
    Ok(ResponseFuture::of(move |sender| async move {
        sender.head(head);
        // The first byte shows the reader that it misses nothing from here on.
        sender.send(Bytes::from_static(COMMENT)).await;
        loop {
            let event = timeout(KEEP_ALIVE, watcher.next()).await;
            // A person who signed out meanwhile sees nothing more.
            if session.as_deref().is_some_and(|session| !access::is_live(&state, session)) {
                return;
            }
            let piece = match event {
                Err(_) => Bytes::from_static(COMMENT),
                Ok(FeedEvent::End) => return,
                Ok(FeedEvent::Lost(count)) => frame("lost", &json!({"lost": count})),
                Ok(FeedEvent::Entry(entry)) if query.matches(&entry) => frame("entry", &entry.tidied()),
                Ok(FeedEvent::Entry(_)) => continue,
            };
            sender.send(piece).await;
        }
    }))
}

/// One event. JSON contains no line breaks, so it is one line.
fn frame(event: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {event}\ndata: {data}\n\n").into()
}
