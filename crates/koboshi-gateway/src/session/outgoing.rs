//! A connection as a cursor: what it gets next of the log.
//!
//! There is no queue per connection: what comes after the cursor is read from the log when the socket can take it, adjacent text merged. A
//! reader that is slower than the log's tail gets a snapshot, page by page as it takes them, so a slow one takes no more memory than a fast one.

use koboshi::session::{Body, Event, Hello, Log, Place, Snapshot};
use koboshi_report::phrase::Lang;
use serde_json::json;

use super::frames::written;
use crate::shared::state::SharedState;

/// A page of a snapshot; a message that is larger has a page of its own.
const MAX_PAGE: usize = 64 * 1024;
/// Text in one merged frame.
const MAX_MERGED: usize = 16 * 1024;
/// Bytes that are written in one go: a reader that takes nothing holds so much, and a thousand of them must not matter.
const MAX_OUTGOING: usize = 32 * 1024;

/// Where a reader stands.
pub(crate) struct Cursor {
    epoch: String,
    seq: u64,
    lang: Lang,
    shows_reasoning: bool,
    /// Events from here on were left out: the next frame covers them.
    skipped: Option<u64>,
    /// How far a snapshot was read that is not whole yet.
    place: Option<Place>,
    is_over: bool,
}

impl Cursor {
    /// The cursor of a client that comes back, or of a new one.
    pub(crate) fn of(hello: &Hello, lang: Lang) -> Self {
        Self {
            epoch: hello.epoch.clone().unwrap_or_default(),
            seq: hello.after.unwrap_or(0),
            lang,
            shows_reasoning: hello.can("reasoning"),
            skipped: None,
            place: None,
            is_over: false,
        }
    }

    /// At the beginning of a log.
    pub(crate) fn start(log: &Log, lang: Lang) -> Self {
        Self {
            epoch: log.epoch().to_owned(),
            seq: 0,
            lang,
            shows_reasoning: false,
            skipped: None,
            place: None,
            is_over: false,
        }
    }

    /// With what the client can show.
    pub(crate) fn showing(self, hello: &Hello) -> Self {
        Self { shows_reasoning: hello.can("reasoning"), ..self }
    }

    /// An error went out after which the client closes.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    /// How the reader goes on with this log.
    pub(crate) fn manner(&self, log: &Log) -> &'static str {
        if log.replay(&self.epoch, self.seq, 0).is_some() { "replay" } else { "snapshot" }
    }

    /// The frames after the cursor, which moves behind them. Empty where there are none.
    pub(crate) fn next(&mut self, state: &SharedState, log: &Log) -> Vec<String> {
        if self.place.is_some() {
            return vec![self.snapshot(state, log)];
        }
        if !log.is_beyond(&self.epoch, self.seq) {
            return Vec::new();
        }
        match log.replay(&self.epoch, self.seq, MAX_MERGED) {
            Some(events) => self.events(state, events),
            None => vec![self.snapshot(state, log)],
        }
    }

    fn events(&mut self, state: &SharedState, events: Vec<Event>) -> Vec<String> {
        let (mut frames, mut bytes) = (Vec::new(), 0);
        for mut event in events {
            if bytes > MAX_OUTGOING {
                break;
            }
            self.seq = event.seq;
            if matches!(event.body, Body::Reasoning { .. }) && !self.shows_reasoning {
                self.skipped.get_or_insert(event.first());
                continue;
            }
            if let Some(first) = self.skipped.take() {
                event.first = Some(first);
            }
            self.is_over |= matches!(&event.body, Body::Error(error) if !error.recoverable);
            let frame = written(state, &event, self.lang);
            bytes += frame.len();
            frames.push(frame);
        }
        frames
    }

    /// The next page of a snapshot.
    fn snapshot(&mut self, state: &SharedState, log: &Log) -> String {
        let (page, next) = log.page(self.place.as_ref(), MAX_PAGE);
        self.place = next;
        log.epoch().clone_into(&mut self.epoch);
        (self.seq, self.skipped) = (log.seq(), None);
        self.page(state, page)
    }

    /// A page, with the words of errors in the reader's language.
    fn page(&self, state: &SharedState, mut page: Snapshot) -> String {
        let open = page.open.iter_mut().filter_map(|open| open.error.as_mut());
        let errors = page.messages.iter_mut().filter_map(|message| message.error.as_mut()).chain(open);
        for error in errors {
            let event = Event { seq: 0, first: None, turn: 0, body: Body::Error(error.clone()) };
            let event: Event = serde_json::from_str(&written(state, &event, self.lang)).unwrap_or(event);
            if let Body::Error(worded) = event.body {
                *error = worded;
            }
        }
        let mut frame = json!(page);
        if let Some(fields) = frame.as_object_mut() {
            fields.insert("type".to_owned(), "snapshot".into());
        }
        frame.to_string()
    }
}
