//! The body of an answer by its shape, whatever its headers claim.
//!
//! Providers and the proxies before them send JSON as `text/event-stream`, HTML with a 200, an error
//! object bare in the middle of an SSE stream, or one JSON array as a stream. So the content type is not
//! asked: the first characters are.

use serde_json::Value;

/// A frame of a stream.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) event: Option<String>,
    pub(super) data: Data,
}

/// What a frame holds.
#[derive(Debug)]
pub(super) enum Data {
    Json(Value),
    /// The end mark of the chat dialect.
    Done,
    /// Something that should have been JSON.
    Broken,
}

/// A body by shape.
#[derive(Debug)]
pub(super) enum Body<'a> {
    Empty,
    Json(Value),
    Frames(Vec<Frame>),
    Page(&'a str),
    /// Begins like JSON but is not.
    Broken(&'a str),
    Text(&'a str),
}

impl<'a> Body<'a> {
    pub(super) fn read(body: &'a str) -> Self {
        let text = body.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
        match text.as_bytes().first() {
            None => Self::Empty,
            Some(b'{' | b'[') => Self::json(text),
            Some(b'<') => Self::Page(text),
            Some(_) if is_sse(text) => Self::Frames(sse_frames(text)),
            Some(_) => Self::Text(text),
        }
    }

    fn json(text: &'a str) -> Self {
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(items)) => Self::Frames(items.into_iter().map(frame).collect()),
            Ok(value) => Self::Json(value),
            Err(_) => Self::lines(text),
        }
    }

    /// Several JSON values, one a line; the last may be cut.
    fn lines(text: &'a str) -> Self {
        let first = text.lines().next().unwrap_or_default();
        if serde_json::from_str::<Value>(first).is_err() {
            // A stream sent as one array that never closed: what came before the cut still counts.
            return match text.strip_prefix('[').map(array_prefix) {
                Some(frames) if !frames.is_empty() => Self::Frames(frames),
                _ => Self::Broken(text),
            };
        }
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Self::Frames(lines.map(|line| Frame { event: None, data: data(line) }).collect())
    }
}

fn frame(value: Value) -> Frame {
    Frame { event: None, data: Data::Json(value) }
}

fn array_prefix(text: &str) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else { return frames };
        rest = rest.get(values.byte_offset()..).unwrap_or_default();
        frames.push(frame(value));
    }
}

fn data(text: &str) -> Data {
    if text == "[DONE]" {
        return Data::Done;
    }
    serde_json::from_str(text).map_or(Data::Broken, Data::Json)
}

fn is_sse(text: &str) -> bool {
    text.lines().take(64).any(|line| {
        line.starts_with("data:")
            || line.starts_with("event:")
            || line.starts_with(':')
            || line.starts_with("id:")
            || line.starts_with("retry:")
    })
}

/// Frames of an SSE stream. Lines that belong to no field are kept: some providers drop a bare JSON error
/// into the stream.
fn sse_frames(text: &str) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut bare = String::new();
    let (mut event, mut lines) = (None, String::new());
    for line in text.lines().chain([""]) {
        if line.is_empty() {
            flush(&mut frames, &mut event, &mut lines);
        } else if let Some(value) = line.strip_prefix("data:") {
            if !lines.is_empty() {
                lines.push('\n');
            }
            lines.push_str(value.strip_prefix(' ').unwrap_or(value));
        } else if let Some(value) = line.strip_prefix("event:") {
            event = Some(value.trim().to_owned());
        } else if !line.starts_with(':') && !line.starts_with("id:") && !line.starts_with("retry:") {
            bare.push_str(line);
            bare.push('\n');
        }
    }
    if let Ok(value) = serde_json::from_str::<Value>(bare.trim()) {
        frames.push(frame(value));
    }
    frames
}

fn flush(frames: &mut Vec<Frame>, event: &mut Option<String>, lines: &mut String) {
    let event = event.take();
    let text = std::mem::take(lines);
    if !text.trim().is_empty() {
        frames.push(Frame { event, data: data(text.trim()) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shape_follows_from_the_text() {
        assert!(matches!(Body::read(" \r\n"), Body::Empty));
        assert!(matches!(Body::read("{\"a\":1}"), Body::Json(_)));
        assert!(matches!(Body::read("<html>"), Body::Page(_)));
        assert!(matches!(Body::read("{\"a\":"), Body::Broken(_)));
        assert!(matches!(Body::read("no healthy upstream"), Body::Text(_)));
        assert!(matches!(Body::read("\n\n: keep-alive\n\n"), Body::Frames(frames) if frames.is_empty()));
    }

    #[test]
    fn a_bare_error_in_a_stream_is_a_frame() {
        let body = Body::read("data: {\"a\":1}\n\n{\n \"error\": {}\n}\n");
        assert!(matches!(body, Body::Frames(frames) if frames.len() == 2));
    }

    #[test]
    fn lines_of_json_are_frames() {
        let body = Body::read("{\"a\":1}\n{\"b\":2}\n{\"c\":");
        let Body::Frames(frames) = body else { panic!("frames") };
        assert_eq!(frames.len(), 3);
        assert!(matches!(frames[2].data, Data::Broken));
    }

    #[test]
    fn an_array_that_never_closed_keeps_what_came() {
        assert!(matches!(Body::read("[{\"a\":1},\n{\"b\":"), Body::Frames(frames) if frames.len() == 1));
    }
}
