//! What happens, as a stream of server-sent events: `entry` for each thing, `lost` where the reader was too slow.

use std::time::Duration;

use bytes::Bytes;
use koboshi_wire::chat::frames::COMMENT;
use serde::Serialize;
use serde_json::json;
use tokio::time::timeout;

use super::{AdminRequest, journal};
use crate::http::response_future::ResponseFuture;
use crate::observe::feed::FeedEvent;
use crate::reply::refusal::Refusal;
use crate::reply::stream_head;
use crate::shared::disclosure::Disclosure;

/// After so long without news a comment says that somebody is there.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What happens from now on, as it happens.
#[utoipa::path(get, path = super::paths::FEED, tag = "journal",
    params(("what" = Option<String>, Query, description = "As for the journal"),
           ("kind" = Option<String>, Query, description = "As for the journal"),
           ("key" = Option<String>, Query, description = "As for the journal")),
    responses((status = 200, content_type = "text/event-stream",
        description = "Events `entry` (an entry of the journal) and `lost` ({\"lost\": n}, entries that were not read in time)", body = String)))]
pub(super) fn watch(request: &AdminRequest<'_>, query: &str) -> Result<ResponseFuture, Refusal> {
    let query = journal::parse(query, request.core.state.wall())?;
    let Some(mut watcher) = request.core.state.feed.watch() else {
        return Err(Refusal::feed_full());
    };
    let head = stream_head(request.context, &Disclosure::default());
    Ok(ResponseFuture::of(move |sender| async move {
        sender.head(head);
        // The first byte tells the reader that it misses nothing from here on.
        sender.send(Bytes::from_static(COMMENT)).await;
        loop {
            let piece = match timeout(KEEP_ALIVE, watcher.next()).await {
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

/// One event. JSON has no line ends, so it is one line.
fn frame(event: &str, data: &impl Serialize) -> Bytes {
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("event: {event}\ndata: {data}\n\n").into()
}
