//! What a stream says, read from its lines as they arrive.
//!
//! Frames are searched and not parsed: in a burst the client must not be what is slow. The texts of the mock have no escapes, so a
//! text ends at the next quote. A proxy that writes `"content": "…"` with a space is understood too.

use std::sync::LazyLock;

use memchr::memchr;
use memchr::memmem::Finder;

static ERROR: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"error\":"));
static CHAT: LazyLock<Marks> = LazyLock::new(|| Marks::new("content", "finish_reason", "[DONE]"));
static MESSAGES: LazyLock<Marks> = LazyLock::new(|| Marks::new("text", "stop_reason", "\"message_stop\""));
static RESPONSES: LazyLock<Marks> = LazyLock::new(|| Marks::new("delta", "type", "\"response.completed\""));
static GEMINI: LazyLock<Marks> = LazyLock::new(|| Marks::new("text", "finishReason", "\"STOP\""));

/// How an answer is written.
#[derive(Debug, Default, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Dialect {
    #[default]
    Chat,
    Messages,
    Responses,
    Gemini,
}

impl Dialect {
    fn marks(self) -> &'static Marks {
        match self {
            Self::Chat => &CHAT,
            Self::Messages => &MESSAGES,
            Self::Responses => &RESPONSES,
            Self::Gemini => &GEMINI,
        }
    }
}

/// What is looked for in a frame: the key of a text, the key of a reason to finish, the last words.
struct Marks {
    text: Finder<'static>,
    finish: Finder<'static>,
    done: Finder<'static>,
}

impl Marks {
    fn new(text: &str, finish: &str, done: &str) -> Self {
        let key = |name: &str| Finder::new(&format!("\"{name}\":")).into_owned();
        Self { text: key(text), finish: key(finish), done: Finder::new(done).into_owned() }
    }
}

/// What was heard so far.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// When the first text came.
    pub(crate) first: Option<u64>,
    /// Texts.
    pub(crate) pieces: u64,
    /// All of them joined.
    pub(crate) text: Vec<u8>,
    /// The longest silence between two texts.
    pub(crate) gap: u64,
    /// How long each text with a time in it was on the way.
    pub(crate) delays: Vec<u64>,
    /// A reason to finish came.
    pub(crate) finished: bool,
    /// The last words came: `[DONE]` or what stands for it.
    pub(crate) done: bool,
    /// The first error frame.
    pub(crate) error: Option<String>,
    dialect: Dialect,
    last: u64,
    rest: Vec<u8>,
}

impl Events {
    /// Nothing yet of a stream in this dialect.
    pub(crate) fn of(dialect: Dialect) -> Self {
        Self { dialect, ..Self::default() }
    }

    /// Takes bytes of the body that arrived at this time.
    pub(crate) fn feed(&mut self, bytes: &[u8], at: u64) {
        let mut bytes = bytes;
        while let Some(end) = memchr(b'\n', bytes) {
            let (line, after) = bytes.split_at(end);
            if self.rest.is_empty() {
                self.line(line, at);
            } else {
                let mut whole = std::mem::take(&mut self.rest);
                whole.extend_from_slice(line);
                self.line(&whole, at);
            }
            bytes = after.get(1..).unwrap_or_default();
        }
        self.rest.extend_from_slice(bytes);
    }

    fn line(&mut self, line: &[u8], at: u64) {
        let Some(data) = line.strip_prefix(b"data:") else { return };
        let marks = self.dialect.marks();
        if let Some(text) = quoted(&marks.text, data) {
            self.piece(text, at);
            // Only Google's last text may be the end too.
            if !matches!(self.dialect, Dialect::Gemini) {
                return;
            }
        }
        self.finished |= quoted(&marks.finish, data).is_some();
        self.done |= marks.done.find(data).is_some();
        if self.error.is_none() && is_error(data) {
            self.error = Some(String::from_utf8_lossy(data).trim().chars().take(300).collect());
        }
    }

    fn piece(&mut self, text: &[u8], at: u64) {
        match self.first {
            None => self.first = Some(at),
            Some(_) => self.gap = self.gap.max(at.saturating_sub(self.last)),
        }
        self.last = at;
        self.pieces += 1;
        if let Some(written) = stamp(text) {
            self.delays.push(at.saturating_sub(written));
        } else {
            self.text.extend_from_slice(text);
        }
    }
}

/// The text after a key, where it is one and not empty.
fn quoted<'a>(key: &Finder<'_>, data: &'a [u8]) -> Option<&'a [u8]> {
    let after = data.get(key.find(data)? + key.needle().len()..)?.trim_ascii_start().strip_prefix(b"\"")?;
    let text = after.get(..memchr(b'"', after)?)?;
    (!text.is_empty()).then_some(text)
}

/// An error, and not the word that there is none.
fn is_error(data: &[u8]) -> bool {
    let value = ERROR.find(data).and_then(|at| data.get(at + ERROR.needle().len()..)).unwrap_or_default();
    value.trim_ascii_start().starts_with(b"{")
}

/// The time in `t123456 `.
fn stamp(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"t")?.trim_ascii_end();
    if digits.len() < 6 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_no_content_and_bytes_may_be_split_anywhere() {
        let stream = b"data: {\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}\n\n\
            : alive\n\ndata: {\"delta\":{\"content\": \"t1000000 \"}}\n\ndata: {\"delta\":{\"content\":\"doll \"}}\n\n\
            data: {\"delta\":{},\"finish_reason\":\"stop\"}\n\ndata: [DONE]\n\n";
        for size in [1, 7, stream.len()] {
            let mut events = Events::default();
            for (at, bytes) in stream.chunks(size).enumerate() {
                events.feed(bytes, 1_000_500 + at as u64);
            }
            assert_eq!((events.pieces, events.text.as_slice()), (2, b"doll ".as_slice()));
            assert!(events.finished && events.done && events.error.is_none());
            assert!(events.delays.first().is_some_and(|delay| *delay >= 500));
        }
    }

    #[test]
    fn every_dialect_has_its_texts_and_its_end() {
        let streams: [(Dialect, &[&str]); 3] = [
            (
                Dialect::Messages,
                &[
                    r#"{"type":"content_block_start","content_block":{"type":"text","text":""}}"#,
                    r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"doll "}}"#,
                    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
                    r#"{"type":"message_stop"}"#,
                ],
            ),
            (
                Dialect::Responses,
                &[
                    r#"{"type":"response.created","response":{"error":null}}"#,
                    r#"{"type":"response.output_text.delta","delta":"doll "}"#,
                    r#"{"type":"response.output_text.done","text":"doll "}"#,
                    r#"{"type":"response.completed","response":{"error":null}}"#,
                ],
            ),
            (
                Dialect::Gemini,
                &[r#"{"candidates":[{"content":{"parts":[{"text":"doll "}]},"finishReason":"STOP"}]}"#],
            ),
        ];
        for (dialect, frames) in streams {
            let mut events = Events::of(dialect);
            for frame in frames {
                assert!(!events.done, "{dialect:?}");
                events.feed(format!("data: {frame}\n\n").as_bytes(), 1);
            }
            assert!(events.finished && events.done && events.error.is_none(), "{dialect:?}: {events:?}");
            assert_eq!(events.text, b"doll ", "{dialect:?}");
        }
    }

    #[test]
    fn an_error_frame_is_reported() {
        let mut events = Events::default();
        events.feed(b"data: {\"error\":{\"message\":\"fallen\"}}\n\n", 1);
        assert!(events.error.is_some() && !events.done);
    }
}
